"""What is compared of the declared inputs of a graph, containers included."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Any, NoReturn

import warp as wp

from treadle.launch.errors import LaunchError
from treadle.launch.signature import ArgumentSignature, is_struct, leaves

__all__ = ["input_leaves", "input_signature", "read_inputs"]

_MAX_DEPTH = 16
"""Containers inside containers. It also ends cycles."""
_BY_VALUE = (str, bytes, complex)
_BY_IDENTITY = (type, wp.Kernel)


def read_inputs(inputs: Sequence[Any] | Callable[[], Sequence[Any]]) -> list[Any]:
    """Return declared inputs as a list; a single array, dictionary, string or dataclass counts as one input."""
    values: Any = inputs() if callable(inputs) else inputs
    if type(values) is tuple or type(values) is list:
        return list(values)
    if isinstance(values, dict | str | bytes) or hasattr(values, "shape") or _is_dataclass(values):
        return [values]
    try:
        return list(values)
    except TypeError:
        return [values]


def input_signature(value: Any, depth: int = 0) -> object:
    """Return what tells whether an input is still the same: hashable, and equal for equal inputs.

    Containers and dataclasses are compared item by item, arrays by storage and layout, numbers, vectors and structs by
    content, strings by value, kernels and classes by identity.

    Raises:
        LaunchError: The input is, or contains, an object whose content is not known.
    """
    if isinstance(value, _BY_VALUE) or isinstance(value, _BY_IDENTITY):
        return type(value), value
    if isinstance(value, Enum):
        return type(value), value.name
    children = _children(value)
    if children is None:
        signature = ArgumentSignature.of(value)
        if not signature.comparable:
            _refuse(value)
        return signature
    if depth >= _MAX_DEPTH:
        raise LaunchError(f"an input of a graph is nested more than {_MAX_DEPTH} deep, or contains itself")
    parts = (input_signature(child, depth + 1) for child in children)
    return type(value), frozenset(parts) if isinstance(value, set | frozenset) else tuple(parts)


def input_leaves(value: Any) -> Iterator[Any]:
    """Yield the objects that must stay alive for the pointers of an input to stay valid."""
    children = _children(value)
    if children is None:
        yield from leaves(value)
        return
    for child in children:
        yield from input_leaves(child)


def _children(value: Any) -> list[Any] | None:
    """Return what a container holds, ``None`` for what is none."""
    if isinstance(value, dict):
        return [part for pair in value.items() for part in pair]
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    if _is_dataclass(value):
        return [getattr(value, field.name) for field in dataclasses.fields(value)]
    return None


def _is_dataclass(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type) and not is_struct(value)


def _refuse(value: Any) -> NoReturn:
    raise LaunchError(
        f"an input of a graph is a {type(value).__qualname__} object, which can't be compared: pass what of it reaches "
        f"the launches. Allowed are arrays, numbers, vectors, matrices, Warp structs, strings, enum members, kernels, "
        f"classes, None, and lists, tuples, sets, dictionaries and dataclasses of these"
    )
