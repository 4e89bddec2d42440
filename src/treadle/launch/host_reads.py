"""Arrays that are read on the host while Warp captures a graph."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import warp as wp

from treadle.launch.errors import LaunchError

__all__ = ["HostReadGuard"]

_METHODS = {"numpy": ".numpy()", "list": ".list()"}
_EXPORTS = {"__array_interface__": "NumPy", "__dlpack__": "DLPack"}
"""How other libraries come by the data without a method of the array."""
_MAKE_VIEWS = ("warp", "torch")
"""Who asks for an export to make a view; what torch does with it is seen by the guard of torch."""


class HostReadGuard:
    """Keeps a captured function from reading arrays on the host.

    On the CPU an array is memory of the host: reading it gives the values from before the capture, without an error,
    and no launch of the graph reads it again. On CUDA it breaks the capture, with an error that names no place. So it
    is refused on both.

    Warp has no hook for this. Methods of ``wp.array`` are wrapped while a capture is open, act for the thread that
    captures alone, and are put back at its end. What reads a NumPy array that was made before is not seen.
    """

    def __init__(self) -> None:
        self.refused: str | None = None
        """The first read that was refused; the function may have swallowed the error."""

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Refuse reads of this thread.

        Raises:
            LaunchError: An array was read, whether or not the function let the error pass.
        """
        with _WATCHED.by(self):
            yield
        if self.refused is not None:
            raise LaunchError(self.refused)

    def refuse(self, how: str, frame: FrameType) -> None:
        """Fail the capture.

        Raises:
            LaunchError: Always.
        """
        code = frame.f_code
        place = f"{code.co_qualname} ({Path(code.co_filename).name}:{frame.f_lineno})"
        reason = "it would run once, at the capture, and never again"
        self.refused = self.refused or f"reads an array on the host ({how}) in {place}: {reason}"
        raise LaunchError(self.refused)


class _WatchedArrays:
    """The wrapped methods of ``wp.array``, there while any thread captures."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._guards: dict[int, HostReadGuard] = {}
        self._originals: dict[str, Any] = {}

    @contextlib.contextmanager
    def by(self, guard: HostReadGuard) -> Iterator[None]:
        """Let a guard see what this thread reads."""
        thread = threading.get_ident()
        with self._lock:
            if not self._guards:
                self._wrap()
            outer, self._guards[thread] = self._guards.get(thread), guard
        try:
            yield
        finally:
            with self._lock:
                if outer is None:
                    del self._guards[thread]
                else:
                    self._guards[thread] = outer
                if not self._guards:
                    self._restore()

    def _wrap(self) -> None:
        self._originals = {name: vars(wp.array)[name] for name in (*_METHODS, *_EXPORTS)}
        for name, original in self._originals.items():
            setattr(wp.array, name, self._wrapped(name, original))

    def _restore(self) -> None:
        for name, original in self._originals.items():
            setattr(wp.array, name, original)

    def _wrapped(self, name: str, original: Any) -> Any:
        if isinstance(original, property):

            def get(array: wp.array) -> Any:
                self._check(name)
                return original.__get__(array)

            return property(get)

        def method(array: wp.array, *args: Any, **kwargs: Any) -> Any:
            self._check(name)
            return original(array, *args, **kwargs)

        return method

    def _check(self, name: str) -> None:
        guard = self._guards.get(threading.get_ident())
        if guard is None:
            return
        frame = sys._getframe(2)
        if name in _METHODS:
            guard.refuse(_METHODS[name], frame)
        elif frame.f_globals.get("__name__", "").partition(".")[0] not in _MAKE_VIEWS:
            guard.refuse(_EXPORTS[name], frame)


_WATCHED = _WatchedArrays()
