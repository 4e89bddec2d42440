"""The graphs of one owner: when they are captured, launched and dropped."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager
from typing import Any, NoReturn

import warp as wp

from treadle.launch.allocations import noting_allocations
from treadle.launch.capture import GraphCapturer, explain
from treadle.launch.captured import CapturedLaunches, CaptureLog
from treadle.launch.errors import AllocationError, LaunchError, StaleArgumentError
from treadle.launch.exclusive import CAPTURES, exclusive_on, noted_in
from treadle.launch.graph_entry import CapturedGraph, GraphEntry
from treadle.launch.identity import call, function_name
from treadle.launch.inputs import Inputs, KnownInputs, read_inputs
from treadle.launch.modes import LaunchContract, LaunchMode
from treadle.launch.stats import GraphStats, LaunchStats
from treadle.launch.topology import count_operations

__all__ = ["GraphRecorder"]

_MAX_RESTLESS = 8
"""Captures in a row, each launched only a few times, before a key is given up: its inputs never settle."""
_PROBE_EVERY = 64
"""Launches of a graph between two checks of the ``debug`` contract that its function still does the same."""
_UNSEEN = (
    "does more than its launch caches see (wp.launch, wp.copy, fill_, torch), which may or may not always be the same: "
    "say capture=True if it is"
)


class GraphRecorder:
    """What a graph cache, its scope and its pipelines share.

    Args:
        device: Device to capture on.
        mode: Launch mode.
        contract: What is verified before a graph is launched.
        name: Name of the owner, for messages.
        stats: Where to count.
        captures: Where the owner's launch caches note launches during a capture.
        capture_mode: What the CUDA driver refuses during a capture.
    """

    def __init__(
        self,
        device: wp.Device,
        mode: LaunchMode,
        contract: LaunchContract,
        name: str,
        stats: LaunchStats,
        captures: CaptureLog,
        capture_mode: wp.CaptureMode,
    ):
        self.device = device
        self.name = name
        self.stats = stats
        self.captures = captures
        self.capture_mode = capture_mode
        self.entries: dict[Hashable, GraphEntry] = {}
        self.generation = 0
        """How often everything was dropped."""
        self.closed = False
        self._runtime = device.runtime
        self._checks = contract is LaunchContract.CHECKED
        self._verifies = contract is LaunchContract.DEBUG
        self._wants_graphs = mode in (LaunchMode.GRAPH, LaunchMode.AUTO)
        self._capturer = GraphCapturer(device, capture_mode)
        self.exclusive = exclusive_on(device, capturing_allowed=self.capturing_allowed)
        """See :meth:`LaunchScope.exclusive`. It can be entered again and again."""

    @property
    def capturing_allowed(self) -> bool:
        """Whether the mode asks for graphs and the device can capture them."""
        return self._wants_graphs and (self.device.is_cpu or self.device.is_mempool_enabled)

    def attempt(
        self,
        key: Hashable,
        fn: Callable[[], object],
        *,
        inputs: Inputs = (),
        may_allocate: bool = True,
    ) -> str | None:
        """Do as :meth:`GraphCache.run` does; where this very call gave the graph up, return the reason."""
        with self.exclusive:
            return self._attempt(key, fn, inputs, may_allocate)

    def _attempt(self, key: Hashable, fn: Callable[[], object], inputs: Inputs, may_allocate: bool) -> str | None:
        self.check_open()
        entry = self.entries.get(key) or self._add_entry(key)
        if not entry.stands_for(fn):
            self._refuse(entry, fn)
        if not self.capturing_now:
            self._run_inside(entry, fn, inputs, may_allocate)
            return None
        if entry.stats.reason is not None:
            entry.stats.fallbacks += 1
            call(fn)
            return None
        if not entry.warm:
            call(fn)
            entry.warm = True
            entry.stats.warmups += 1
            return None
        values = read_inputs(inputs)
        current = entry.current
        if current is None or self._outdated(current, values):
            current = None if not entry.others else entry.recall(values, unmoved=self._checks)
        if current is not None:
            if self._verifies and current.launched % _PROBE_EVERY == 1:
                self._probe(entry, current, fn)
            self._launch(entry, current)
            return None
        entry.may_allocate = may_allocate
        return self._renew(entry, fn, KnownInputs(values))

    def _run_inside(self, entry: GraphEntry, fn: Callable[[], object], inputs: Inputs, may_allocate: bool) -> None:
        """Run a function without a graph of its own. What it declares is declared of the capture that it is part of."""
        log = self.captures.open
        if log is None or not self.device.is_capturing:
            call(fn)
            return
        log.add_inputs(inputs)
        with self._watching_allocations(entry.stats.key, may_allocate):
            call(fn)

    def _refuse(self, entry: GraphEntry, fn: Callable[[], object]) -> NoReturn:
        key, name = entry.stats.key, function_name(fn)
        other = f"{name} of another object" if name == entry.name else name
        raise LaunchError(
            f"{self.name}: key {key!r} stands for {entry.name} and can't run {other} as well: give each function, and "
            f"each object that it works on, a key of its own, or call forget({key!r}) or invalidate() first"
        )

    def give_up(self, key: Hashable, reason: str) -> None:
        """Run the function of a key without a graph from now on."""
        entry = self.entries.get(key) or self._add_entry(key)
        self._destroy(entry.forget_graphs())
        entry.stats.reason = reason

    def forget(self, key: Hashable) -> None:
        """Drop a key that is not used any more, with its statistics."""
        entry = self.entries.pop(key, None)
        if entry is not None:
            self._destroy(entry.forget_graphs())
            del self.stats.graphs[key]

    def invalidate(self) -> None:
        """Drop all graphs, wait for the device, then let go of what they used.

        The next call of each key runs without a graph. A key that was given up gets another chance.
        """
        self.generation += 1
        self._destroy([graph for entry in self.entries.values() for graph in entry.forget_graphs()])
        for entry in self.entries.values():
            entry.warm = False
            entry.restless = 0
            entry.seen = entry.identity = None
            entry.stats.reason = None

    def check_open(self) -> None:
        """Raise where the owner is closed.

        Raises:
            LaunchError: It is.
        """
        if self.closed:
            raise LaunchError(f"{self.name} is closed: nothing can be run or captured with it any more")

    def drop_outdated(self) -> None:
        """Drop the graphs that depend on what is being replaced. They are captured again at their next call."""
        self._destroy([graph for entry in self.entries.values() for graph in entry.forget_outdated()])

    def _add_entry(self, key: Hashable) -> GraphEntry:
        stats = self.stats.graphs[key] = GraphStats(key=key, owner=self.name)
        entry = self.entries[key] = GraphEntry(stats)
        return entry

    @property
    def capturing_now(self) -> bool:
        """Whether a function that is run now may be captured: no tape, no other capture, nobody who watches it run."""
        if self._runtime.tape is not None or not self.capturing_allowed or self.device.is_capturing:
            return False
        return not CAPTURES.open or self.captures.open is None

    def _outdated(self, current: CapturedGraph, values: list[Any]) -> bool:
        launches = current.launches  # asked here one by one: this is at each launch of a graph
        if launches.outdated or launches.reloaded or not current.inputs.match(values) or launches.inputs_changed:
            return True
        return self._checks and launches.moved()

    def _launch(self, entry: GraphEntry, current: CapturedGraph) -> None:
        if self._verifies:
            current.launches.verify()
        wp.capture_launch(current.graph)
        entry.stats.launches += 1
        current.launched += 1

    def _destroy(self, graphs: list[CapturedGraph]) -> None:
        used = [graph.destroy() for graph in graphs]
        if used:
            wp.synchronize_device(self.device)

    def _renew(self, entry: GraphEntry, fn: Callable[[], object], inputs: KnownInputs) -> str | None:
        """Capture and launch; where that fails, run the function, and return the reason.

        The function has not taken effect when its capture fails. If it fails without a capture as well, the fault is
        its own: that error is the caller's, and the key stays capturable.
        """
        self._destroy(entry.make_room(inputs))
        reason = self._restless(entry) or self._capture(entry, fn, inputs) or self._launch_first(entry)
        if reason is None:
            return None
        self._destroy(entry.forget_graphs())
        call(fn)
        entry.stats.reason = reason
        entry.stats.fallbacks += 1
        return entry.stats.reason

    def _restless(self, entry: GraphEntry) -> str | None:
        if entry.restless < _MAX_RESTLESS:
            return None
        return (
            f"captured {_MAX_RESTLESS} times within a few calls each: its inputs never settle. Keep what changes in a "
            f"persistent array that the kernels read, and copy each new value into it"
        )

    def _capture(self, entry: GraphEntry, fn: Callable[[], object], inputs: KnownInputs) -> str | None:
        """Capture the function; where that fails, leave nothing behind and return the reason."""
        launches = CapturedLaunches()
        try:
            with self._watching_allocations(entry.stats.key, entry.may_allocate):
                graph = self._capturer.capture(fn, launches)
        except (StaleArgumentError, AllocationError):
            raise
        except Exception as error:
            return explain(error)
        launches.seal()
        launches.seal_inputs()
        self.captures.add(launches)
        entry.take(CapturedGraph(graph, launches, inputs))
        return None

    @contextlib.contextmanager
    def _watching_allocations(self, key: Hashable, may_allocate: bool) -> Iterator[None]:
        if may_allocate or not self._verifies:
            yield
            return
        with noting_allocations() as found:
            yield
        if found:
            raise AllocationError(
                f"{self.name}: {key!r} allocates while it is captured: {'; '.join(found)}. Allocate before the first "
                f"run, or let it with may_allocate=True"
            )

    def observing(self, launches: CapturedLaunches) -> AbstractContextManager[None]:
        """Note what the launch caches launch inside, for real, without a capture."""
        return noted_in(launches)

    def try_capture(self, fn: Callable[[], object]) -> CapturedLaunches | str:
        """Capture a function and throw the graph away.

        Returns:
            What the launch caches were asked to launch, or why there is no graph, or why they do not tell all that
            would be in it. Nothing has taken effect.
        """
        launches = CapturedLaunches(probing=True)
        try:
            graph = self._capturer.capture(fn, launches)
        except Exception as error:
            return explain(error)
        if count_operations(graph) != 0:  # launch caches only note what they are asked for
            return _UNSEEN
        launches.seal()
        return launches

    def _probe(self, entry: GraphEntry, current: CapturedGraph, fn: Callable[[], object]) -> None:
        """Run the function in a capture that is thrown away, and compare what it launches with what the graph holds."""
        probe = CapturedLaunches(probing=True, held=current.launches)
        try:
            self._capturer.capture(fn, probe)
        except StaleArgumentError:
            raise
        except Exception as error:
            raise LaunchError(
                f"{self.name}: {entry.stats.key!r} runs from a graph, and its function can't be captured any more: "
                f"{explain(error)}"
            ) from error
        current.launches.compare(probe)

    def _launch_first(self, entry: GraphEntry) -> str | None:
        """Launch a new graph; return why it can't be instantiated, if so. Nothing of it has run then."""
        assert entry.current is not None
        try:
            self._launch(entry, entry.current)
        except RuntimeError as error:
            if not self.device.is_cuda:
                raise
            return explain(error)
        entry.stats.captures += 1
        return None
