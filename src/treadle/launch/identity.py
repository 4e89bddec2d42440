"""Which function a key stands for, and whether calling it runs it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from types import AsyncGeneratorType, CoroutineType, FunctionType, GeneratorType, MethodType
from typing import Any, NoReturn

from treadle.launch.errors import LaunchError

__all__ = ["call", "check_runs_when_called", "function_identity", "function_name"]

_FUNCTIONS = (FunctionType, MethodType, partial)
_SUSPENDED = (GeneratorType, CoroutineType, AsyncGeneratorType)
_MAX_DEPTH = 4
"""Functions inside functions that are looked at. It also ends cycles: a function may be in its own closure."""


def function_identity(fn: Callable[..., object]) -> object:
    """Return what tells one function from another.

    It is the code, the object that a method belongs to, and the same of functions that are bound as arguments, defaults
    or closure variables. Data that is bound there does not count: a lambda that is made again at each call, from the
    same code with other data, is the same function.
    """
    return _identity(fn, _MAX_DEPTH)


def function_name(fn: Callable[..., object]) -> str:
    """Return the name and place of a function, for messages."""
    while isinstance(fn, partial):
        fn = fn.func
    name = getattr(fn, "__qualname__", type(fn).__name__)
    code = getattr(fn, "__code__", None)
    return str(name) if code is None else f"{name} ({Path(code.co_filename).name}:{code.co_firstlineno})"


def check_runs_when_called(fn: Callable[..., object], what: str) -> None:
    """Refuse a function whose call only makes a generator or a coroutine.

    Args:
        fn: The function.
        what: What it is, for the message.

    Raises:
        LaunchError: It is one.
    """
    for part in (fn, getattr(fn, "__call__", None)):  # noqa: B004
        if inspect.isgeneratorfunction(part) or inspect.iscoroutinefunction(part) or inspect.isasyncgenfunction(part):
            _refuse_suspended(fn, what)


def call(fn: Callable[[], object]) -> None:
    """Call a function.

    Raises:
        LaunchError: It returned a generator or a coroutine, so that its code has not run.
    """
    result = fn()
    if isinstance(result, _SUSPENDED):
        if not isinstance(result, AsyncGeneratorType):
            result.close()
        _refuse_suspended(fn, "the function")


def _refuse_suspended(fn: Callable[..., object], what: str) -> NoReturn:
    raise LaunchError(
        f"{what} {function_name(fn)} gives a generator or a coroutine, whose code would never run: pass a plain "
        f"function, without yield and async"
    )


def _identity(fn: Callable[..., object], depth: int) -> object:
    if depth == 0:
        return None
    if isinstance(fn, MethodType):
        return _identity(fn.__func__, depth - 1), id(fn.__self__)
    if isinstance(fn, partial):
        return _identity(fn.func, depth - 1), *_inner((*fn.args, *fn.keywords.values()), depth)
    if isinstance(fn, FunctionType):
        bound = (*(fn.__defaults__ or ()), *(fn.__kwdefaults__ or {}).values(), *_closure(fn))
        return fn.__code__, *_inner(bound, depth)
    return type(fn), id(fn)


def _inner(values: Iterable[Any], depth: int) -> Iterable[object]:
    return (_identity(value, depth - 1) for value in values if isinstance(value, _FUNCTIONS))


def _closure(fn: FunctionType) -> Iterable[Any]:
    for cell in fn.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not assigned yet
            continue
