"""Which function a key stands for, and whether calling it runs it."""

from __future__ import annotations

import ctypes
import inspect
import weakref
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from functools import partial
from pathlib import Path
from types import AsyncGeneratorType, CoroutineType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any, NoReturn

import numpy as np
import warp as wp

from treadle.launch.errors import LaunchError
from treadle.launch.signature import is_struct

__all__ = ["call", "check_runs_when_called", "function_identity", "function_name"]

_FUNCTIONS = (FunctionType, MethodType, partial)
_SUSPENDED = (GeneratorType, CoroutineType, AsyncGeneratorType)
_NUMBERS = (bool, int, float, complex, str, bytes, np.generic, np.ndarray, Enum, ctypes.Array, ctypes.Structure)
_CONTAINERS = (list, tuple, dict, set, frozenset)
_OF_WARP = (wp.array, wp.indexedarray, wp.Kernel, wp.Texture)
_DATA = (*_NUMBERS, *_CONTAINERS, *_OF_WARP, type, ModuleType)
"""What belongs to the inputs of a function, not to what it is."""
_OF_ARRAYS = ("data_ptr", "__array_interface__", "__cuda_array_interface__")
"""What tells an array of another library."""
_MAX_DEPTH = 4
"""Functions inside functions that are looked at. It also ends cycles: a function may be in its own closure."""


def function_identity(fn: Callable[..., object]) -> object:
    """Return what tells one function from another, to be compared with ``==``.

    It is the code, the object that a method belongs to, and the functions and objects that are bound as arguments,
    defaults or closure variables, or that a function finds under the global names that it uses. Objects are compared
    with ``is``, and are not kept alive. Data does not count (numbers, strings, arrays, structs, kernels, classes, and
    containers with what they hold): a lambda that is made again at each call, from the same code with other data, is
    the same function.
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
        return _identity(fn.__func__, depth - 1), _OneObject(fn.__self__)
    if isinstance(fn, partial):
        return _identity(fn.func, depth - 1), *_inner((*fn.args, *fn.keywords.values()), depth)
    if isinstance(fn, FunctionType):
        bound = (*(fn.__defaults__ or ()), *(fn.__kwdefaults__ or {}).values(), *_closure(fn))
        return fn.__code__, *_inner(bound, depth), *_global_objects(fn)
    return type(fn), _OneObject(fn)


class _OneObject:
    """An object, compared by identity. The address alone would not do: it is given away again when the object goes.

    The object is held weakly where it can be. It usually owns the graph, and would be in a cycle with it.
    """

    __slots__ = ("_get",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: object):
        try:
            self._get: Callable[[], object] = weakref.ref(value)
        except TypeError:  # of a built-in type, or with slots
            self._get = lambda: value

    def __eq__(self, other: object) -> bool:
        value = self._get()
        return isinstance(other, _OneObject) and value is not None and value is other._get()


def _inner(values: Iterable[Any], depth: int) -> Iterator[object]:
    for value in values:
        if isinstance(value, _FUNCTIONS):
            yield _identity(value, depth - 1)
        elif not _is_data(value):
            yield _OneObject(value)


def _is_data(value: Any) -> bool:
    if value is None or isinstance(value, _DATA) or is_struct(value):
        return True
    return any(hasattr(value, name) for name in _OF_ARRAYS)


def _global_objects(fn: FunctionType) -> Iterator[object]:
    """Yield the objects under the global names of a function: a script's lambda has no closure."""
    known = fn.__globals__
    for name in fn.__code__.co_names:
        value = known.get(name)
        if not (isinstance(value, _FUNCTIONS) or _is_data(value)):
            yield _OneObject(value)


def _closure(fn: FunctionType) -> Iterable[Any]:
    for cell in fn.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not assigned yet
            continue
