"""The graph cache: run a function without a graph once, capture it at the second call, then launch the graph."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator, Sequence
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
from treadle.launch.modes import LaunchContract, LaunchMode, resolve_contract, resolve_mode
from treadle.launch.pointers import CachedPointer
from treadle.launch.stats import GraphStats, LaunchStats
from treadle.launch.topology import GraphTopology, count_operations, read_topology
from treadle.launch.warn import warn_caller

__all__ = ["GraphCache"]

_MAX_RESTLESS = 8
"""Captures in a row, each launched only a few times, before a key is given up: its inputs never settle."""
_PROBE_EVERY = 64
"""Launches of a graph between two checks of the ``debug`` contract that its function still does the same."""
_UNSEEN = (
    "does more than its launch caches see (wp.launch, wp.copy, fill_, torch), which may or may not always be the same: "
    "say capture=True if it is"
)


class GraphCache:
    """Graphs of one owner, by key.

    The function runs **exactly once per call**, also at the first: it runs without a graph the first time (modules
    load, buffers are allocated), is captured and launched the second time, and from then on only the graph is launched.
    A capture that is not legal does not end the run: the graph is dropped, the function runs as it is from then on, and
    the reason is kept in the statistics and warned about once.

    During a capture, and during the run that follows a failed one, the function's *Python* code runs an additional
    time. It must have no lasting effect of its own; what it launches takes effect once.

    A graph does not run the function, so it can't see that the function would now pass another array or number. What
    may change belongs in ``inputs``; what is replaced for good needs :meth:`invalidate`. The ``debug`` contract finds
    what was forgotten: at the next call after a capture, and at each 64th from there, it runs the function again in a
    capture that is thrown away, and compares. ``checked`` and ``trusted`` do not.

    Args:
        device: Device to capture on, CUDA or CPU.
        mode: Launch mode; ``eager`` and ``replay`` never capture.
        contract: ``checked`` captures again when an argument changed behind its identity (a struct, a vector, a
            tensor), ``debug`` raises then, ``trusted`` does not look.
        name: Name of the owner, for messages.
        stats: Where to count; a :class:`LaunchScope` shares the one of its launch cache.
        captures: Where the owner's launch caches note launches during a capture.
        capture_mode: What the CUDA driver refuses during a capture: ``THREAD_LOCAL`` is about this thread only, so that
            others may allocate meanwhile; ``GLOBAL`` refuses that too; ``RELAXED`` is for libraries that make calls
            which are not safe in general. It means nothing on the CPU.
    """

    def __init__(
        self,
        device: wp.DeviceLike = None,
        *,
        mode: LaunchMode | str | None = None,
        contract: LaunchContract | str | None = None,
        name: str | None = None,
        stats: LaunchStats | None = None,
        captures: CaptureLog | None = None,
        capture_mode: wp.CaptureMode = wp.CaptureMode.THREAD_LOCAL,
    ):
        self.device = wp.get_device(device)
        self.name = name or "GraphCache"
        self.stats = stats or LaunchStats(self.name)
        self.captures = captures or CaptureLog()
        self._mode = resolve_mode(mode)
        self._contract = resolve_contract(contract)
        self._runtime = self.device.runtime
        self._checks = self._contract is LaunchContract.CHECKED
        self._verifies = self._contract is LaunchContract.DEBUG
        self._wants_graphs = self._mode in (LaunchMode.GRAPH, LaunchMode.AUTO)
        self._entries: dict[Hashable, GraphEntry] = {}
        self.generation = 0
        """How often everything was dropped."""
        self.closed = False
        self._capturer = GraphCapturer(self.device, self.captures, capture_mode)
        self.exclusive = exclusive_on(self.device, capturing_allowed=self.capturing_allowed)
        """See :meth:`LaunchScope.exclusive`. It can be entered again and again."""
        if self._mode is LaunchMode.GRAPH and not self.capturing_allowed:
            message = f"{self.name}: no graphs on {self.device}: its memory pool is off; see wp.set_mempool_enabled"
            warn_caller(message)

    @property
    def mode(self) -> LaunchMode:
        """Whether graphs are captured. Fixed: another mode is another cache."""
        return self._mode

    @property
    def contract(self) -> LaunchContract:
        """What is verified before a graph is launched. Fixed, too."""
        return self._contract

    @property
    def capture_mode(self) -> wp.CaptureMode:
        """What the CUDA driver refuses during a capture."""
        return self._capturer.mode

    @property
    def capturing_allowed(self) -> bool:
        """Whether the mode asks for graphs and the device can capture them."""
        return self._wants_graphs and (self.device.is_cpu or self.device.is_mempool_enabled)

    def run(
        self,
        key: Hashable,
        fn: Callable[[], object],
        *,
        inputs: Sequence[Any] | Callable[[], Sequence[Any]] = (),
        may_allocate: bool = True,
    ) -> None:
        """Run a function that launches kernels, from its graph where there is one.

        Inside another capture, the user's own included, the function just runs: its launches become part of that graph.

        Args:
            key: Names the graph. It stands for one function: the same code, of the same object.
            fn: Issues the launches. It must not allocate, or replace buffers. Reading an array on the host makes the
                capture fail, and so does torch code that can't be part of a graph; see
                :mod:`treadle.launch.host_reads` and :mod:`treadle.launch.torch_guard`.
            inputs: Arguments whose change makes the graph wrong, or a function that returns them: arrays, numbers,
                structs, strings, and lists, tuples, sets, dictionaries and dataclasses of these. They are compared at
                each call, and the function is captured again when one of them has other storage, layout or content.
            may_allocate: ``False`` makes the ``debug`` contract raise where Warp allocates memory during the capture.
                Such memory belongs to the graph: what is made lazily there and kept is wrong once the graph is gone.

        Raises:
            AllocationError: ``debug`` contract, and the function allocates although it may not.
            LaunchError: The key stands for another function, or an input is an object that can't be compared.
            StaleArgumentError: ``debug`` contract, and a captured argument is not what it was, or the function passes
                another one.
        """
        reason = self.attempt(key, fn, inputs=inputs, may_allocate=may_allocate)
        if reason is not None and self._mode is LaunchMode.GRAPH:
            message = f"{self.name}: {key!r} runs without a graph: {reason}"
            warn_caller(message)

    def attempt(
        self,
        key: Hashable,
        fn: Callable[[], object],
        *,
        inputs: Inputs = (),
        may_allocate: bool = True,
    ) -> str | None:
        """Do as :meth:`run` does; where this very call gave the graph up, return the reason instead of warning."""
        with self.exclusive:
            return self._attempt(key, fn, inputs, may_allocate)

    def _attempt(self, key: Hashable, fn: Callable[[], object], inputs: Inputs, may_allocate: bool) -> str | None:
        self.check_open()
        entry = self._entries.get(key) or self._add_entry(key)
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

    def reason(self, key: Hashable) -> str | None:
        """Return why a key has no graph, ``None`` while all is well."""
        entry = self._entries.get(key)
        return None if entry is None else entry.stats.reason

    def give_up(self, key: Hashable, reason: str) -> None:
        """Run the function of a key without a graph from now on."""
        entry = self._entries.get(key) or self._add_entry(key)
        self._destroy(entry.forget_graphs())
        entry.stats.reason = reason

    def forget(self, key: Hashable) -> None:
        """Drop a key that is not used any more, with its statistics."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._destroy(entry.forget_graphs())
            del self.stats.graphs[key]

    def has_graph(self, key: Hashable) -> bool:
        """Return whether a key is launched from a graph now."""
        entry = self._entries.get(key)
        return entry is not None and entry.graph is not None

    def topology(self, key: Hashable) -> GraphTopology | None:
        """Return what the graph of a key consists of, ``None`` without a graph. For reports: it is slow on CUDA."""
        entry = self._entries.get(key)
        if entry is None or entry.graph is None:
            return None
        names = tuple(entry.stats.sites)
        return read_topology(entry.graph) or GraphTopology(len(names), names, exact=False)

    def invalidate(self) -> None:
        """Drop all graphs, wait for the device, then let go of what they used.

        The next call of each key runs without a graph. A key that was given up gets another chance.
        """
        self.generation += 1
        self._destroy([graph for entry in self._entries.values() for graph in entry.forget_graphs()])
        for entry in self._entries.values():
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
        self._destroy([graph for entry in self._entries.values() for graph in entry.forget_outdated()])

    def _add_entry(self, key: Hashable) -> GraphEntry:
        stats = self.stats.graphs[key] = GraphStats(key=key, owner=self.name)
        entry = self._entries[key] = GraphEntry(stats)
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

    def sites(self, key: Hashable) -> list[str]:
        """Return the kernels that the launch caches put into the graph of a key, empty without a graph."""
        entry = self._entries.get(key)
        return [] if entry is None or entry.graph is None else entry.stats.sites

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

    def pointers(self) -> Iterator[CachedPointer]:
        """Yield the pointers that the graphs have baked in."""
        for entry in self._entries.values():
            for graph in entry.graphs:
                yield from graph.launches.pointers()

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
