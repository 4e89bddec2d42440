"""Capturing one function into one graph."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Callable, Iterator

import warp as wp

from treadle.launch.captured import CapturedLaunches
from treadle.launch.errors import LaunchError
from treadle.launch.exclusive import capturing_on, noted_in
from treadle.launch.host_reads import HostReadGuard
from treadle.launch.identity import call
from treadle.launch.topology import count_operations
from treadle.launch.torch_guard import TorchGuard

__all__ = ["GraphCapturer", "explain"]

_EMPTY = "the graph is empty: no kernel was launched, or only with dim 0, or on another stream or device"


class GraphCapturer:
    """Captures functions on one device.

    Args:
        device: Device to capture on.
        mode: What the CUDA driver refuses during a capture.
    """

    def __init__(self, device: wp.Device, mode: wp.CaptureMode = wp.CaptureMode.THREAD_LOCAL):
        self.device = device
        self.mode = mode
        self._stream: wp.Stream | None = None

    def capture(self, fn: Callable[[], object], launches: CapturedLaunches) -> wp.Graph:
        """Capture a function; where that fails, nothing of it has taken effect, and nothing is left behind.

        Args:
            fn: Issues launches, which are recorded and not executed.
            launches: Takes what the launch caches launch, and with it what the graph needs to stay alive.

        Raises:
            LaunchError: The function calls torch where that can't be part of a graph, reads an array on the host, or
                launches nothing.
            Exception: Whatever makes the capture fail.
        """
        guard = TorchGuard(self.device)
        with (
            capturing_on(self.device),
            _COLLECTOR_OFF,
            self._on_capture_stream() as stream,
            noted_in(launches, self.device),
        ):
            with guard.watching(stream), HostReadGuard().watching(), self._scoped_capture(stream) as capture:
                call(fn)
        if not launches.probing and _is_graph_empty(capture.graph):
            raise LaunchError(_EMPTY)
        launches.keep(guard.pool)
        return capture.graph

    def _scoped_capture(self, stream: wp.Stream | None) -> wp.ScopedCapture:
        return wp.ScopedCapture(device=self.device, stream=stream, capture_mode=self.mode)

    @contextlib.contextmanager
    def _on_capture_stream(self) -> Iterator[wp.Stream | None]:
        """On CUDA capture on an own stream: the current one may be torch's legacy stream, which can't be captured."""
        if not self.device.is_cuda:
            yield None
            return
        if self._stream is None:
            self._stream = wp.Stream(self.device)
        with wp.ScopedStream(self._stream, sync_enter=False):
            yield self._stream


def explain(error: Exception) -> str:
    """Return why a capture failed, in one line."""
    text = str(error) if type(error) is LaunchError else f"{type(error).__name__}: {error}"
    return " ".join(text.split())


def _is_graph_empty(graph: wp.Graph) -> bool:
    """Return whether a graph does nothing: it would be launched without an error, and the stage's work be lost."""
    count = count_operations(graph)
    return count == 0 or (count is None and graph.device.is_cpu)


class _CollectorOff:
    """Collects what is young, then holds the collector off: destructors of graphs or modules corrupt a capture.

    The oldest generation is left alone. It can't be collected inside the capture either, and with torch and Newton
    loaded a full collection takes 0.7 s, for each graph. Several threads may capture: the first one that enters
    collects, the last one that leaves puts the collector back as it was.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a destructor that the collection runs may capture
        self._holders = 0
        self._was_on = False

    def __enter__(self) -> None:
        with self._lock:
            if self._holders == 0:
                gc.collect(1)
                self._was_on = gc.isenabled()
                gc.disable()
            self._holders += 1

    def __exit__(self, *exc: object) -> None:
        with self._lock:
            self._holders -= 1
            if self._holders == 0 and self._was_on:
                gc.enable()


_COLLECTOR_OFF = _CollectorOff()
