"""Launch dimensions, and whether threads stay inside the arrays, as far as that shows without the kernel's code."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import warp as wp

from treadle.launch.errors import LaunchError

__all__ = ["Dim", "check_dim", "covered_arrays", "extents", "is_empty"]

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
