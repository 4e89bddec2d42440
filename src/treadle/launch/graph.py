"""The graph cache: run a function once without a graph, capture it at the second call, launch the graph from then on."""

from __future__ import annotations

import contextlib
import gc
import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import warp as wp

from treadle.launch.captured import CapturedLaunches, CaptureLog
from treadle.launch.errors import CaptureWarning, LaunchError
from treadle.launch.modes import LaunchContract, LaunchMode, resolve_contract, resolve_mode
from treadle.launch.signature import ArgumentSignature
from treadle.launch.stats import GraphStats, LaunchStats

__all__ = ["GraphCache"]

_MAX_CAPTURES = 8
"""Captures of one key before it is given up: its addresses never settle."""


@dataclass
class _GraphEntry:
    stats: GraphStats
    graph: wp.Graph | None = None
    launches: CapturedLaunches | None = None
    inputs: tuple[ArgumentSignature, ...] = ()


class GraphCache:
    """Graphs of one owner, by key.

    The function runs **exactly once per call**, also at the first: it runs without a graph the first time (modules load, buffers
    are allocated), is captured and launched the second time, and from then on only the graph is launched. A capture that is not
    legal does not end the run: the graph is dropped, the function runs as it is from then on, and the reason is kept in the
    statistics and warned about once.

    Args:
        device: Device to capture on, CUDA or CPU.
        mode: Launch mode; ``eager`` and ``replay`` never capture.
        contract: With ``debug``, the arguments that were captured are verified before each launch of a graph.
        name: Name of the owner, for messages.
        stats: Where to count; a :class:`LaunchScope` shares the one of its launch cache.
        captures: Where the owner's launch caches note launches during a capture.
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
    ):
        self.device = wp.get_device(device)
        self.mode = resolve_mode(mode)
        self.contract = resolve_contract(contract)
        self.name = name or "GraphCache"
        self.stats = stats or LaunchStats()
        self.captures = captures or CaptureLog()
        self._entries: dict[Hashable, _GraphEntry] = {}
        self._capture_stream: wp.Stream | None = None

    @property
    def capturing_allowed(self) -> bool:
        """Whether the mode asks for graphs and the device can capture them."""
        if self.mode not in (LaunchMode.GRAPH, LaunchMode.AUTO):
            return False
        return self.device.is_cpu or self.device.is_mempool_enabled

    def run(self, key: Hashable, fn: Callable[[], object], *, inputs: Sequence[Any] = ()) -> None:
        """Run a function that launches kernels, from its graph where there is one.

        Args:
            key: Names the graph.
            fn: Issues the launches. It must not read device data on the host, allocate, or replace buffers.
            inputs: Arguments (arrays, scalars, structs) whose change makes the graph wrong. They are compared at each call, and
                the function is captured again when one of them has other storage, layout or content.

        Raises:
            StaleArgumentError: ``debug`` contract, and a captured argument is not what it was.
        """
        entry = self._entry(key)
        if not self.capturing_allowed or self.device.runtime.tape is not None:
            fn()
            return
        if entry.stats.reason is not None:
            entry.stats.fallbacks += 1
            fn()
            return
        signature = tuple(ArgumentSignature.of(value) for value in inputs)
        if entry.stats.warmups == 0:
            entry.stats.warmups = 1
            fn()
            return
        if entry.graph is not None and signature != entry.inputs:
            self._drop(entry)
        if entry.graph is None and not self._capture(entry, fn, signature):
            entry.stats.fallbacks += 1
            fn()
            return
        self._launch(entry)

    def reason(self, key: Hashable) -> str | None:
        """Return why a key has no graph, ``None`` while all is well."""
        return self._entry(key).stats.reason

    def give_up(self, key: Hashable, reason: str) -> None:
        """Run the function of a key without a graph from now on."""
        entry = self._entry(key)
        self._drop(entry)
        entry.stats.reason = reason

    def invalidate(self) -> None:
        """Drop all graphs and wait for the device, so that what they used may be freed."""
        had_graphs = any(entry.graph is not None for entry in self._entries.values())
        for key, entry in self._entries.items():
            self._drop(entry)
            entry.stats = self.stats.graphs[key] = GraphStats(key=key, captures=entry.stats.captures)
        if had_graphs:
            wp.synchronize_device(self.device)

    def _entry(self, key: Hashable) -> _GraphEntry:
        entry = self._entries.get(key)
        if entry is None:
            stats = self.stats.graphs[key] = GraphStats(key=key)
            entry = self._entries[key] = _GraphEntry(stats)
        return entry

    def _launch(self, entry: _GraphEntry) -> None:
        if self.contract is LaunchContract.DEBUG and entry.launches is not None:
            entry.launches.verify()
        wp.capture_launch(entry.graph)
        entry.stats.launches += 1

    def _drop(self, entry: _GraphEntry) -> None:
        if entry.graph is not None:
            wp.synchronize_device(self.device)
        entry.graph = None
        entry.launches = None

    def _capture(self, entry: _GraphEntry, fn: Callable[[], object], inputs: tuple[ArgumentSignature, ...]) -> bool:
        """Capture the function; on failure keep the reason, warn and leave nothing behind."""
        if entry.stats.captures >= _MAX_CAPTURES:
            self._fail(entry, f"captured {_MAX_CAPTURES} times, its inputs never settle")
            return False
        launches = CapturedLaunches()
        try:
            with _no_garbage_collection(), self._on_capture_stream() as stream, self._noting(launches):
                with wp.ScopedCapture(device=self.device, stream=stream) as capture:
                    fn()
        except Exception as error:
            self._fail(entry, f"{type(error).__name__}: {error}")
            return False
        entry.graph, entry.launches, entry.inputs = capture.graph, launches, inputs
        entry.stats.captures += 1
        entry.stats.sites = launches.kernel_names
        return True

    def _fail(self, entry: _GraphEntry, reason: str) -> None:
        entry.stats.reason = " ".join(reason.split())
        if self.mode is LaunchMode.GRAPH:
            message = f"{self.name}: {entry.stats.key!r} runs without a graph: {entry.stats.reason}"
            warnings.warn(message, CaptureWarning, stacklevel=2)

    @contextlib.contextmanager
    def _noting(self, launches: CapturedLaunches) -> Iterator[None]:
        if self.captures.open is not None:
            raise LaunchError("a graph of the same owner is being captured already; captures don't nest")
        self.captures.open = launches
        try:
            yield
        finally:
            self.captures.open = None

    @contextlib.contextmanager
    def _on_capture_stream(self) -> Iterator[wp.Stream | None]:
        """On CUDA capture on a stream of our own: the current one may be torch's legacy stream, which can't be captured."""
        if not self.device.is_cuda:
            yield None
            return
        if self._capture_stream is None:
            self._capture_stream = wp.Stream(self.device)
        with wp.ScopedStream(self._capture_stream, sync_enter=False):
            yield self._capture_stream


@contextlib.contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Collect now, then hold the collector off: destructors of graphs and modules inside a capture corrupt it."""
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
