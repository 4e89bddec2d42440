"""What is compared of the declared inputs of a graph, containers included."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Any, NoReturn

import numpy as np
import warp as wp

from treadle.launch.errors import LaunchError
from treadle.launch.signature import ArgumentSignature, is_constant, is_struct, leaves

__all__ = ["Inputs", "KnownInputs", "input_leaves", "input_signature", "read_inputs"]

Inputs = Sequence[Any] | Callable[[], Sequence[Any]]
"""Declared inputs, or what returns them."""

_is = operator.is_
_MAX_DEPTH = 16
"""Containers inside containers. It also ends cycles."""
_BY_VALUE = (str, bytes, complex)
_BY_IDENTITY = (type, wp.Kernel)


def read_inputs(inputs: Inputs) -> list[Any]:
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


class KnownInputs:
    """Declared inputs as they were when a graph was captured, kept alive.

    Whether others are the same is told by identity where that suffices: objects that can't change, and arrays with the
    descriptor that they had then. Signatures are compared where it does not.

    Args:
        values: The inputs.

    Raises:
        LaunchError: One of them can't be compared.
    """

    __slots__ = ("_alive", "_arrays", "_descriptors", "_values", "_volatile", "signature")

    def __init__(self, values: Sequence[Any]):
        self.signature = tuple(map(input_signature, values))
        self._values = list(values)
        self._alive = [leaf for value in values for leaf in input_leaves(value)]
        self._arrays = [value for value in values if type(value) is wp.array]
        self._descriptors = [array.__ctype__() for array in self._arrays]  # made where it was not needed yet
        self._volatile = [index for index, value in enumerate(values) if not _is_steady(value)]

    def match(self, values: Sequence[Any]) -> bool:
        """Return whether other inputs are the same.

        Raises:
            LaunchError: One of them can't be compared.
        """
        if len(values) != len(self._values):
            return False
        if not values:
            return True
        changed: Sequence[int] = self._volatile
        if [array.ctype for array in self._arrays] != self._descriptors:  # by identity: they define no equality
            changed = range(len(values))
        elif not all(map(_is, values, self._values)):
            others = (index for index, value in enumerate(values) if value is not self._values[index])
            changed = [*changed, *others]
        for index in changed:
            if input_signature(values[index]) != self.signature[index]:
                return False
        return True


def _is_steady(value: Any) -> bool:
    return (
        type(value) is wp.array or is_constant(value) or isinstance(value, _BY_VALUE) or isinstance(value, _BY_IDENTITY)
    )


def input_signature(value: Any, depth: int = 0) -> object:
    """Return what tells whether an input is still the same: hashable, and equal for equal inputs.

    Containers and dataclasses are compared item by item, arrays by storage and layout, numbers, vectors and structs by
    content, NumPy arrays too, strings by value, kernels and classes by identity.

    Raises:
        LaunchError: The input is, or contains, an object whose content is not known.
    """
    if isinstance(value, _BY_VALUE) or isinstance(value, _BY_IDENTITY):
        return type(value), value
    if isinstance(value, Enum):
        return type(value), value.name
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:  # not what a kernel reads, but Python
        return np.ndarray, value.dtype.str, value.shape, value.tobytes()
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
        f"the launches. Allowed are arrays, textures, numbers, vectors, matrices, Warp structs, strings, enum members, "
        f"kernels, classes, None, and lists, tuples, sets, dictionaries and dataclasses of these"
    )
