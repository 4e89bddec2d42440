"""Which function a key stands for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

__all__ = ["function_identity", "function_name"]

_FUNCTIONS = (FunctionType, MethodType, partial)
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
