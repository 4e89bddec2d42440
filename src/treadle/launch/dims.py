"""Launch dimensions, and whether threads stay inside the arrays, as far as that shows without the kernel's code."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import warp as wp

from treadle.launch.errors import LaunchError
from treadle.launch.signature import is_struct

__all__ = ["Dim", "check_dim", "covered_arrays", "extents", "is_empty", "other_shape"]

Dim = int | Sequence[int]


def extents(dim: Dim) -> tuple[int, ...]:
    """Return a launch dimension as a tuple of integers."""
    if isinstance(dim, int):
        return (dim,)
    try:
        return tuple(operator.index(extent) for extent in dim)
    except TypeError:
        return (operator.index(dim),)  # type: ignore[arg-type]


def is_empty(dim: Dim) -> bool:
    """Return whether a launch of this dimension runs no thread at all."""
    return dim == 0 if isinstance(dim, int) else 0 in dim


def covered_arrays(args: Sequence[Any], dim: Dim) -> list[int]:
    """Return the positions of the arrays that have one element, or one row, for each thread."""
    sizes = extents(dim)
    arrays = ((index, value) for index, value in enumerate(args) if isinstance(value, wp.array | wp.indexedarray))
    return [index for index, value in arrays if tuple(value.shape[: len(sizes)]) == sizes]


def check_dim(kernel: wp.Kernel, args: Sequence[Any], covered: Iterable[int], dim: Dim) -> None:
    """Refuse more threads than the arrays have elements that were covered with one thread each.

    Raises:
        LaunchError: Threads would run past the end of an array.
    """
    sizes = extents(dim)
    for index in covered:
        shape = tuple(getattr(args[index], "shape", sizes))
        if any(size > there for size, there in zip(sizes, shape, strict=False)):
            raise LaunchError(
                f"kernel {kernel.key!r}: dim {sizes} is more than argument {kernel.adj.args[index].label!r} of shape "
                f"{shape} has. It had a thread for each element before, so threads would run past its end: replace the "
                f"array as well. If the kernel looks where the array ends, bind it anew, or name another site"
            )


def other_shape(name: str, old: Any, new: Any) -> tuple[str, tuple[int, ...], tuple[int, ...]] | None:
    """Return the first array of an argument that would have another shape: its name, its shape, and the new one.

    Arrays in structs count, with names as ``argument.field``. ``None`` stands for no array, and fits any.
    """
    was, now = dict(_shapes(name, old)), dict(_shapes(name, new))
    for path, shape in was.items():
        if path in now and now[path] != shape:
            return path, shape, now[path]
    return None


def _shapes(name: str, value: Any) -> Iterator[tuple[str, tuple[int, ...]]]:
    if is_struct(value):
        for field in value._cls.vars:
            yield from _shapes(f"{name}.{field}", getattr(value, field))
    elif getattr(value, "shape", None) is not None:
        yield name, tuple(value.shape)
