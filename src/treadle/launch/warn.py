"""Warnings that point at the caller's code."""

from __future__ import annotations

import sys
import warnings

from treadle.launch.errors import CaptureWarning

__all__ = ["warn_caller"]

_PACKAGE = __name__.rpartition(".")[0]


def warn_caller(message: str) -> None:
    """Warn that something runs without a graph, at the line outside of this package that led here."""
    level = 1
    frame = sys._getframe(0)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, CaptureWarning, stacklevel=level)
