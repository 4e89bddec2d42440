"""Kernels that do nothing, to measure what launching them costs."""

import warp as wp

__all__ = ["nothing_with_arrays", "nothing_with_one", "nothing_with_scalars"]


@wp.kernel(enable_backward=False)
def nothing_with_one(a: float):
    """Do nothing."""


@wp.kernel(enable_backward=False)
def nothing_with_scalars(
    a: float,
    b: float,
    c: float,
    d: float,
    e: float,
    f: float,
    g: float,
    h: float,
    i: float,
    j: float,
    k: float,
    m: float,
):
    """Do nothing."""


@wp.kernel(enable_backward=False)
def nothing_with_arrays(
    a: wp.array[float],
    b: wp.array[float],
    c: wp.array[float],
    d: wp.array[float],
    e: wp.array[float],
    f: wp.array[float],
    g: wp.array[float],
    h: wp.array[float],
    i: wp.array[float],
    j: wp.array[float],
    k: wp.array[float],
    m: wp.array[float],
):
    """Do nothing."""
