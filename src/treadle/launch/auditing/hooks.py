"""Routing the calls of a Python function through another one for a while."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from treadle.launch.errors import LaunchError

__all__ = ["Around", "FunctionHook"]

Around = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]
"""Receives the original function and the arguments of a call; it calls the original."""

_KEYWORD = "_treadle_around"


def _route(*args: Any, _treadle_around: Callable[..., Any], **kwargs: Any) -> Any:
    return _treadle_around(args, kwargs)


class FunctionHook:
    """Gives a function another code while it is active.

    The function stays the object that it is, so that a module that did ``from warp import launch`` long ago, a
    ``functools.partial`` and a bound method are routed as well, and what is restored is exactly what was there.

    Args:
        function: A plain Python function.
        around: What its calls run.
    """

    ROUTE_CODE = _route.__code__
    """Code of the frames that stand between a caller and ``around``."""

    def __init__(self, function: Callable[..., Any], around: Around):
        if not isinstance(function, types.FunctionType) or function.__closure__:
            raise LaunchError(f"{function!r} can't be watched: it has been replaced by something of another kind")
        self._function = function
        self._around = around
        self._saved: tuple[Any, Any, Any] | None = None

    def attach(self) -> None:
        """Begin to route calls.

        Raises:
            LaunchError: The function is routed already.
        """
        function, around = self._function, self._around
        if function.__code__ is self.ROUTE_CODE:
            raise LaunchError(f"{function.__qualname__} is being watched already: audits can't be nested")
        self._saved = (function.__code__, function.__defaults__, function.__kwdefaults__)
        original = types.FunctionType(*self._saved[:1], function.__globals__, function.__name__, self._saved[1])
        original.__kwdefaults__ = self._saved[2]
        original.__qualname__ = function.__qualname__

        def route(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            return around(original, args, kwargs)

        function.__kwdefaults__ = {_KEYWORD: route}
        function.__defaults__ = None
        function.__code__ = self.ROUTE_CODE

    def detach(self) -> None:
        """Restore the function. Does nothing where it is not routed by this hook."""
        if self._saved is not None:
            code, self._function.__defaults__, self._function.__kwdefaults__ = self._saved
            self._function.__code__ = code
            self._saved = None
