"""Kernels that accumulate, so that a launch too many or too few shows, and the ways to run them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import warp as wp

from treadle.launch import LaunchCache, LaunchScope

N = 8

needs_cpu_kernels = pytest.mark.skipif(not wp.is_cpu_available(), reason="this Warp can't compile kernels for the CPU")


@wp.struct
class Inner:
    scale: float
    values: wp.array[float]


@wp.struct
class Params:
    gain: float
    offset: wp.vec3
    inner: Inner


@wp.kernel
def add(x: wp.array[float], s: float, out: wp.array[float]):
    i = wp.tid()
    out[i] = out[i] * 0.5 + x[i] * s + float(i)


@wp.kernel
def add_grid(x: wp.array2d[float], out: wp.array2d[float]):
    i, j = wp.tid()
    out[i, j] = out[i, j] + x[i, j]


@wp.kernel
def count(out: wp.array[float]):
    wp.atomic_add(out, 0, 1.0)


@wp.kernel
def scalars(
    f32: wp.float32,
    f64: wp.float64,
    f16: wp.float16,
    i32: wp.int32,
    i64: wp.int64,
    u8: wp.uint8,
    flag: wp.bool,
    out: wp.array[wp.float64],
):
    out[0] = out[0] + wp.float64(f32)
    out[1] = out[1] + f64
    out[2] = out[2] + wp.float64(f16)
    out[3] = out[3] + wp.float64(i32)
    out[4] = out[4] + wp.float64(i64)
    out[5] = out[5] + wp.float64(u8)
    if flag:
        out[6] = out[6] + wp.float64(1.0)
    out[7] = wp.float64(1.0) / wp.float64(f32)


@wp.kernel
def vectors(v: wp.vec3, m: wp.mat22, out: wp.array[float]):
    out[0] = out[0] + v[0] + 2.0 * v[1] + 4.0 * v[2]
    out[1] = out[1] + m[0, 0] + 2.0 * m[0, 1] + 4.0 * m[1, 0] + 8.0 * m[1, 1]


@wp.kernel
def structured(params: Params, out: wp.array[float]):
    i = wp.tid()
    out[i] = out[i] + params.gain + params.offset[1] + params.inner.scale * params.inner.values[i]


@wp.kernel
def optional(x: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    if x:
        out[i] = out[i] + x[i]
    else:
        out[i] = out[i] - 1.0


@wp.kernel
def gather(x: wp.indexedarray[float], out: wp.array[float]):
    i = wp.tid()
    out[i] = out[i] + x[i]


@wp.kernel
def generic(x: wp.array[Any], s: Any, out: wp.array[float]):
    i = wp.tid()
    out[i] = out[i] + float(x[i]) + float(s / type(s)(2))


def buffer(device: wp.Device, start: float = 1.0, n: int = N) -> wp.array:
    """Return a float array with distinct values."""
    return wp.array([start + 0.25 * i for i in range(n)], dtype=float, device=device)


def zeros(device: wp.Device, n: int = N, dtype: Any = float) -> wp.array:
    return wp.zeros(n, dtype=dtype, device=device)


def cache(device: wp.Device, contract: str = "checked", mode: str = "replay") -> LaunchCache:
    return LaunchCache(device, mode=mode, contract=contract, name="owner")


def scope(device: wp.Device, contract: str = "checked", mode: str = "auto") -> LaunchScope:
    return LaunchScope(device, mode=mode, contract=contract, name="owner")


def eager_launch(device: wp.Device) -> Callable[..., None]:
    """Return ``wp.launch`` with the signature of ``LaunchCache.launch``."""

    def launch(kernel, dim, inputs=(), outputs=(), *, site=None, block_dim=None, dynamic=()):
        wp.launch(kernel, dim, inputs=list(inputs), outputs=list(outputs), device=device, block_dim=block_dim)

    return launch


def same_bits(first: wp.array, second: wp.array) -> bool:
    return first.numpy().tobytes() == second.numpy().tobytes()
