"""One thread at a time on the CPU: there Warp keeps what it knows of a capture for the process.

It records the launches of the capturing thread only, but every thread is told that the device is capturing, and what
launches and allocations note in Python goes into the one capture.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import warp as wp

__all__ = ["CPU_CAPTURE", "after_captures", "capturing_on", "exclusive_on"]

_LOCK = threading.RLock()
_NOTHING: AbstractContextManager[Any] = contextlib.nullcontext()


class _OpenCapture:
    """The capture of a CPU graph that is open, if any."""

    __slots__ = ("thread",)

    def __init__(self) -> None:
        self.thread: int | None = None
        """The thread that captures."""


CPU_CAPTURE = _OpenCapture()


def exclusive_on(device: wp.Device, *, capturing_allowed: bool = True) -> AbstractContextManager[Any]:
    """Return the lock under which CPU graphs are captured and launched; elsewhere, a context that does nothing."""
    return _LOCK if device.is_cpu and capturing_allowed else _NOTHING


def after_captures(device: wp.Device) -> AbstractContextManager[Any]:
    """Return a context that waits while another thread captures a CPU graph, which a launch would meddle with."""
    foreign = device.is_cpu and CPU_CAPTURE.thread not in (None, threading.get_ident())
    return _LOCK if foreign else _NOTHING


@contextlib.contextmanager
def capturing_on(device: wp.Device) -> Iterator[None]:
    """Hold the lock of the CPU, and tell the launches of other threads that a capture is open."""
    if not device.is_cpu:
        yield
        return
    with _LOCK:
        outer, CPU_CAPTURE.thread = CPU_CAPTURE.thread, threading.get_ident()
        try:
            yield
        finally:
            CPU_CAPTURE.thread = outer
