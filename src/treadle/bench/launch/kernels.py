"""The kernels whose launches are timed.

Each adds to a sum that wraps around, so that any number of launches, in any mode, has one exact result. All have the
arguments ``(arrays, weight, total)``.
"""

import warp as wp

__all__ = ["Terms", "add_struct", "add_tiles", "add_with_1_array", "add_with_4_arrays", "add_with_12_arrays"]

wp.set_module_options({"enable_backward": False})

TILE = wp.constant(64)
"""Elements, and on CUDA threads, of a tile."""


@wp.struct
class Terms:
    """Three arrays in one argument."""

    a: wp.array[wp.uint32]
    b: wp.array[wp.uint32]
    c: wp.array[wp.uint32]


@wp.kernel
def add_with_1_array(weight: wp.uint32, total: wp.array[wp.uint32]):
    """Add the weight."""
    i = wp.tid()
    total[i] = total[i] + weight


@wp.kernel
def add_with_4_arrays(
    a: wp.array[wp.uint32],
    b: wp.array[wp.uint32],
    c: wp.array[wp.uint32],
    weight: wp.uint32,
    total: wp.array[wp.uint32],
):
    """Add one weighted array and two others."""
    i = wp.tid()
    total[i] = total[i] + weight * a[i] + b[i] + c[i]


@wp.kernel
def add_with_12_arrays(
    a: wp.array[wp.uint32],
    b: wp.array[wp.uint32],
    c: wp.array[wp.uint32],
    d: wp.array[wp.uint32],
    e: wp.array[wp.uint32],
    f: wp.array[wp.uint32],
    g: wp.array[wp.uint32],
    h: wp.array[wp.uint32],
    o: wp.array[wp.uint32],
    p: wp.array[wp.uint32],
    q: wp.array[wp.uint32],
    weight: wp.uint32,
    total: wp.array[wp.uint32],
):
    """Add one weighted array and ten others."""
    i = wp.tid()
    others = b[i] + c[i] + d[i] + e[i] + f[i] + g[i] + h[i] + o[i] + p[i] + q[i]
    total[i] = total[i] + weight * a[i] + others


@wp.kernel
def add_struct(terms: Terms, weight: wp.uint32, total: wp.array[wp.uint32]):
    """Add what :func:`add_with_4_arrays` adds, from a struct."""
    i = wp.tid()
    total[i] = total[i] + weight * terms.a[i] + terms.b[i] + terms.c[i]


@wp.kernel
def add_tiles(a: wp.array[wp.uint32], b: wp.array[wp.uint32], weight: wp.uint32, total: wp.array[wp.uint32]):
    """Add one weighted array and another one, a tile per block."""
    start = wp.tid() * TILE
    sums = wp.tile_load(total, shape=TILE, offset=start)
    sums = sums + wp.tile_load(a, shape=TILE, offset=start) * weight + wp.tile_load(b, shape=TILE, offset=start)
    wp.tile_store(total, sums, offset=start)
