"""The graph cache: run a function without a graph once, capture it at the second call, then launch the graph."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import warp as wp

from treadle.launch.captured import CaptureLog
from treadle.launch.graph_recorder import GraphRecorder
from treadle.launch.modes import LaunchContract, LaunchMode, resolve_contract, resolve_mode
from treadle.launch.pointers import CachedPointer
from treadle.launch.stats import LaunchStats
from treadle.launch.topology import GraphTopology, read_topology
from treadle.launch.warn import warn_caller

__all__ = ["GraphCache"]


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
        self._mode = resolve_mode(mode)
        self._contract = resolve_contract(contract)
        self.recorder = GraphRecorder(
            self.device,
            self._mode,
            self._contract,
            self.name,
            self.stats,
            captures or CaptureLog(),
            capture_mode,
        )
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
        return self.recorder.capture_mode

    @property
    def capturing_allowed(self) -> bool:
        """Whether the mode asks for graphs and the device can capture them."""
        return self.recorder.capturing_allowed

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
        reason = self.recorder.attempt(key, fn, inputs=inputs, may_allocate=may_allocate)
        if reason is not None and self._mode is LaunchMode.GRAPH:
            message = f"{self.name}: {key!r} runs without a graph: {reason}"
            warn_caller(message)

    def reason(self, key: Hashable) -> str | None:
        """Return why a key has no graph, ``None`` while all is well."""
        entry = self.recorder.entries.get(key)
        return None if entry is None else entry.stats.reason

    def forget(self, key: Hashable) -> None:
        """Drop a key that is not used any more, with its statistics."""
        self.recorder.forget(key)

    def has_graph(self, key: Hashable) -> bool:
        """Return whether a key is launched from a graph now."""
        entry = self.recorder.entries.get(key)
        return entry is not None and entry.graph is not None

    def topology(self, key: Hashable) -> GraphTopology | None:
        """Return what the graph of a key consists of, ``None`` without a graph. For reports: it is slow on CUDA."""
        entry = self.recorder.entries.get(key)
        if entry is None or entry.graph is None:
            return None
        names = tuple(entry.stats.sites)
        return read_topology(entry.graph) or GraphTopology(len(names), names, exact=False)

    def sites(self, key: Hashable) -> list[str]:
        """Return the kernels that the launch caches put into the graph of a key, empty without a graph."""
        entry = self.recorder.entries.get(key)
        return [] if entry is None or entry.graph is None else entry.stats.sites

    def invalidate(self) -> None:
        """Drop all graphs, wait for the device, then let go of what they used.

        The next call of each key runs without a graph. A key that was given up gets another chance.
        """
        self.recorder.invalidate()

    def pointers(self) -> Iterator[CachedPointer]:
        """Yield the pointers that the graphs have baked in."""
        for entry in self.recorder.entries.values():
            for graph in entry.graphs:
                yield from graph.launches.pointers()
