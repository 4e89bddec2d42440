"""One thread at a time: what Warp knows of a capture, it keeps for the process.

On the CPU it records the launches of the capturing thread only, but every thread is told that the device is capturing,
and what launches and allocations note in Python goes into the one capture. On CUDA a device has one current stream for
all threads: while one captures, the launches of the others would go into its graph.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import warp as wp

if TYPE_CHECKING:
    from treadle.launch.captured import CapturedLaunches

__all__ = ["CAPTURES", "OPEN_CAPTURE", "after_captures", "capturing_on", "exclusive_on", "noted_in"]

_LOCK = threading.RLock()
_NOTHING: AbstractContextManager[Any] = contextlib.nullcontext()


class _Captures:
    """What all threads have to know."""

    __slots__ = ("_counting", "open", "thread")

    def __init__(self) -> None:
        self.open = 0
        """How many captures, and runs that are watched, are open. While there are any, each launch looks closer."""
        self.thread: int | None = None
        """The thread that captures."""
        self._counting = threading.Lock()

    def count(self, change: int) -> None:
        """Count a capture that opens or closes."""
        with self._counting:
            self.open += change


class _OpenCapture(threading.local):
    """The capture, or the run that is watched, of this thread."""

    launches: CapturedLaunches | None = None
    """Where launch caches note what they launch, whoever captures and whoever they belong to."""
    device: wp.Device | None = None
    """Device of the capture; ``None`` where nothing is captured."""


CAPTURES = _Captures()
OPEN_CAPTURE = _OpenCapture()


def exclusive_on(device: wp.Device, *, capturing_allowed: bool = True) -> AbstractContextManager[Any]:
    """Return the lock under which graphs are captured and launched; without graphs, a context that does nothing."""
    return _LOCK if capturing_allowed else _NOTHING


def after_captures(device: wp.Device) -> AbstractContextManager[Any]:
    """Return a context that waits while another thread captures, which a launch would meddle with."""
    foreign = CAPTURES.thread not in (None, threading.get_ident())
    return _LOCK if foreign else _NOTHING


@contextlib.contextmanager
def capturing_on(device: wp.Device) -> Iterator[None]:
    """Hold the lock, and tell the launches of other threads that a capture is open."""
    with _LOCK:
        outer, CAPTURES.thread = CAPTURES.thread, threading.get_ident()
        CAPTURES.count(1)
        try:
            yield
        finally:
            CAPTURES.count(-1)
            CAPTURES.thread = outer


@contextlib.contextmanager
def noted_in(launches: CapturedLaunches, device: wp.Device | None = None) -> Iterator[None]:
    """Note what the launch caches launch in this thread.

    Args:
        launches: Takes the notes.
        device: Device that is being captured, if any.
    """
    outer = OPEN_CAPTURE.launches, OPEN_CAPTURE.device
    CAPTURES.count(1)
    OPEN_CAPTURE.launches, OPEN_CAPTURE.device = launches, device
    try:
        yield
    finally:
        OPEN_CAPTURE.launches, OPEN_CAPTURE.device = outer
        CAPTURES.count(-1)
