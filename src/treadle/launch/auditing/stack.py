"""Who called: the stack of a launch, read from Python's frames."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import cache
from types import CodeType, FrameType
from typing import Any

import warp as wp

from treadle.launch.auditing.events import Place
from treadle.launch.auditing.hooks import FunctionHook

__all__ = ["FrameToken", "find_places", "frames_above", "in_warp", "place_of", "release_tokens", "token_of"]

_WARP_CORE: str = wp.Launch.launch.__code__.co_filename
"""The file of ``wp.launch`` and its helpers."""
_LIBRARY_FOLDERS = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_PACKAGES = ("warp", "newton", "mujoco_warp", "treadle")
"""Libraries that may be installed from a checkout."""
_LAYER = "treadle.launch"
_HOOKS: str = FunctionHook.ROUTE_CODE.co_filename
_OWN_FILES = frozenset((_HOOKS, os.path.join(os.path.dirname(_HOOKS), "watch.py")))
"""Files of the frames that the audit puts between a caller and what it calls."""


class FrameToken:
    """Names one run of a function.

    Frames can't be referred to weakly, holding them would keep their local arrays alive, and their ids are used again.
    So a frame is given a token in ``f_trace``, which Python looks at only while a trace function is set, and which dies
    with the frame.
    """

    def __call__(self, *_: Any) -> None:
        """Do nothing, should Python take the token for the local trace function that ``f_trace`` is meant for."""


def token_of(frame: FrameType) -> object:
    """Return an object that is the same for as long as the frame lives, and then never again."""
    token = frame.f_trace
    if type(token) is FrameToken:
        return token
    if token is not None or sys.gettrace() is not None:
        return id(frame)  # a debugger's or coverage's: ids are nearly as good
    frame.f_trace = token = FrameToken()
    return token


def release_tokens() -> None:
    """Take the tokens off the frames of this stack."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if type(frame.f_trace) is FrameToken:
            frame.f_trace = None
        frame = frame.f_back


def frames_above(frame: FrameType | None, root: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame and its callers, without those that belong to the audit, up to and without ``root``."""
    while frame is not None and frame is not root:
        if frame.f_code.co_filename not in _OWN_FILES:
            yield frame
        frame = frame.f_back


def find_places(frames: list[FrameType], kernel: str, kind: Any) -> tuple[Place, Place | None]:
    """Return where a launch stands, and the program's line that led there where that is another one.

    Frames of Warp's own launching functions and of Treadle's launch layer are passed over.
    """
    place: Place | None = None
    for frame in frames:
        code = frame.f_code
        if place is None:
            if code.co_filename != _WARP_CORE and not _in_layer(frame):
                place = place_of(frame, kernel, kind)
                if place.owner == "user":
                    return place, None
        else:
            caller = place_of(frame, "", "caller")
            if caller.owner == "user":
                return place, caller
    return place or place_of(frames[0], kernel, kind), None


def place_of(frame: FrameType, kernel: str, kind: Any) -> Place:
    """Return the place that a frame is at."""
    return _place(frame.f_code, frame.f_lineno, frame.f_globals.get("__name__", ""), kernel, kind)


@cache
def _place(code: CodeType, line: int, module: str, kernel: str, kind: Any) -> Place:
    return Place(code.co_filename, line, code.co_qualname, _owner(code.co_filename, module), kernel, kind)


def _owner(file: str, module: str) -> str:
    if module == "__main__":
        return "user"
    package = module.partition(".")[0]
    installed = any(folder in file for folder in _LIBRARY_FOLDERS) or package in _PACKAGES
    return package if installed or file.startswith("<frozen") else "user"


def in_warp(frame: FrameType) -> bool:
    """Return whether a frame is one of Warp's, or of the audit."""
    module = frame.f_globals.get("__name__", "")
    return module.startswith(("warp.", f"{_LAYER}.auditing"))


def _in_layer(frame: FrameType) -> bool:
    module = frame.f_globals.get("__name__", "")
    return module == _LAYER or module.startswith(_LAYER + ".")
