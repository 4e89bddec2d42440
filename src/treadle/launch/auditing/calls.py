"""What a launch was called with, read from the arguments of the call."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from treadle.launch.bound import BoundLaunch
from treadle.launch.cache import LaunchCache

__all__ = ["read_bound_call", "read_cached_call", "read_call"]


def read_call(
    kernel: Any,
    dim: Any,
    inputs: Any = (),
    outputs: Any = (),
    adj_inputs: Any = (),
    adj_outputs: Any = (),
    device: Any = None,
    stream: Any = None,
    adjoint: bool = False,
    record_tape: bool = True,
    record_cmd: bool = False,
    max_blocks: int = 0,
    block_dim: int | None = None,
) -> dict[str, Any]:
    """Name the arguments of a ``wp.launch`` call. Whatever may be an iterator is read once."""
    return {**locals(), "inputs": list(inputs), "outputs": list(outputs)}


def read_cached_call(
    cache: LaunchCache,
    kernel: Any,
    dim: Any,
    inputs: Any = (),
    outputs: Any = (),
    site: Hashable = None,
    stream: Any = None,
    block_dim: int | None = None,
    max_blocks: int = 0,
    dynamic: tuple[str, ...] = (),
    **options: Any,
) -> dict[str, Any]:
    """Name the arguments of a ``LaunchCache.launch`` call as those of ``wp.launch``, and say where its counts are."""
    call = read_call(kernel, dim, inputs, outputs, device=cache.device, stream=stream, block_dim=block_dim)
    return call | {"dynamic": tuple(dynamic), "find_stats": lambda: cache.stats.sites.get((kernel, site))}


def read_bound_call(bound: BoundLaunch, *, stream: Any = None) -> dict[str, Any]:
    """Name what a bound launch is about to launch, in the same way."""
    held = bound.call
    call = read_call(held.kernel, held.dim, held.args, device=bound.device, stream=stream)
    return call | {"block_dim": held.block_dim, "dynamic": held.dynamic, "find_stats": lambda: bound._stats}
