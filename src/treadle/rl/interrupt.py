"""Ctrl-C, SIGTERM and SIGHUP as a request to stop at a point where the learner's state is whole."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any

__all__ = ["StopRequest", "StopTraining"]

_HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_NOTICE = b"\ntreadle: stopping after this step and saving a checkpoint; interrupt again to stop without one\n"


class StopTraining(Exception):
    """Raised by :meth:`StopRequest.check` after a signal."""


class StopRequest:
    """While entered, the first SIGINT, SIGTERM or SIGHUP is remembered, and a later one raises ``KeyboardInterrupt``.

    A later SIGHUP does not: when a terminal is closed, both the system and the shell send one.

    Signals reach the main thread only; in another thread entering changes nothing. A signal that the process ignores,
    as jobs in the background of a script ignore SIGINT and those of ``nohup`` SIGHUP, stays ignored.
    """

    def __init__(self) -> None:
        self.requested = False
        self._previous: dict[int, Any] = {}

    def check(self) -> None:
        """Raise if a signal came.

        Raises:
            StopTraining: It did.
        """
        if self.requested:
            raise StopTraining

    def __enter__(self) -> StopRequest:
        self.requested = False
        if threading.current_thread() is threading.main_thread():
            heard = (n for n in _HEARD if signal.getsignal(n) is not signal.SIG_IGN)
            self._previous = {number: signal.signal(number, self._handle) for number in heard}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._previous = {}

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            if number == signal.SIGHUP:
                return
            raise KeyboardInterrupt
        self.requested = True
        with contextlib.suppress(OSError):  # Ctrl-C ends the reader of our output too, and may end it first
            os.write(2, _NOTICE)  # not print: a signal may come in the middle of one
