"""A kernel with its arguments, and what its launches must add up to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import warp as wp

from treadle.bench.launch import kernels

__all__ = ["Workload"]

_ARRAYS = {"arrays-1": 1, "arrays-4": 4, "arrays-12": 12, "struct": 4, "tiled": 3}
_KERNELS = {
    "arrays-1": kernels.add_with_1_array,
    "arrays-4": kernels.add_with_4_arrays,
    "arrays-12": kernels.add_with_12_arrays,
    "struct": kernels.add_struct,
    "tiled": kernels.add_tiles,
}


@dataclass
class Workload:
    """The inputs of one kernel for one number of threads. Each launch mode adds to a sum of its own."""

    name: str
    """One of :data:`treadle.bench.launch.cfg.KERNEL_NAMES`."""
    device: wp.Device
    threads: int
    """Elements to be added to. The tiled kernel rounds up to whole tiles."""
    seed: int = 0
    kernel: wp.Kernel = field(init=False)
    dim: int = field(init=False)
    """Launch dimension: threads, or tiles."""
    size: int = field(init=False)
    """Elements of each array."""
    array_count: int = field(init=False)
    """Arrays among the arguments, those in a struct included."""
    inputs: list[Any] = field(init=False)
    """Arguments before the weight."""

    def __post_init__(self) -> None:
        tile = int(kernels.TILE)
        self.kernel = _KERNELS[self.name]
        self.dim = -(-self.threads // tile) if self.tiled else self.threads
        self.size = self.dim * tile if self.tiled else self.threads
        self.array_count = _ARRAYS[self.name]
        rng = np.random.default_rng(self.seed)
        self.host_inputs = rng.integers(1, 1000, (self.array_count - 1, self.size), dtype=np.uint32)
        arrays = [wp.array(values, dtype=wp.uint32, device=self.device) for values in self.host_inputs]
        self.inputs = [_struct(arrays)] if self.name == "struct" else arrays

    @property
    def tiled(self) -> bool:
        """Whether the kernel is launched with ``wp.launch_tiled``."""
        return self.name == "tiled"

    @property
    def block_dim(self) -> int:
        """Threads of a tile."""
        return int(kernels.TILE)

    def new_total(self) -> wp.array:
        """Return a sum that starts at zero, shape (size,)."""
        return wp.zeros(self.size, dtype=wp.uint32, device=self.device)

    def arguments(self, weight: int, total: wp.array) -> tuple[list[Any], list[Any]]:
        """Return inputs and outputs of a launch."""
        return [*self.inputs, weight], [total]

    def record(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> wp.Launch:
        """Record a launch through Warp."""
        options: dict[str, Any] = {"dim": self.dim, "inputs": inputs, "outputs": outputs, "device": self.device}
        if self.tiled:
            return wp.launch_tiled(self.kernel, **options, block_dim=self.block_dim, record_cmd=True)
        return wp.launch(self.kernel, **options, record_cmd=True)

    def expected(self, launches: int, weight_sum: int) -> np.ndarray:
        """Return the sum after some launches, shape (size,).

        Args:
            launches: Number of launches.
            weight_sum: Sum of their weights.
        """
        if self.array_count == 1:
            return np.full(self.size, weight_sum % 2**32, dtype=np.uint32)
        weighted = self.host_inputs[0].astype(np.uint64) * np.uint64(weight_sum % 2**32)
        others = self.host_inputs[1:].sum(axis=0, dtype=np.uint64) * np.uint64(launches)
        return ((weighted + others) & np.uint64(2**32 - 1)).astype(np.uint32)


def _struct(arrays: Sequence[wp.array]) -> Any:
    terms = kernels.Terms()
    terms.a, terms.b, terms.c = arrays
    return terms
