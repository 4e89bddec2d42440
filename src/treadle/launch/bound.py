"""A launch bound to its arguments."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import warp as wp

from treadle.launch.errors import LaunchError
from treadle.launch.modes import LaunchContract, LaunchMode
from treadle.launch.record import Dim, LaunchRecord, has_zero_extent
from treadle.launch.stats import SiteStats

if TYPE_CHECKING:
    from treadle.launch.cache import LaunchCache

__all__ = ["BoundLaunch"]


class BoundLaunch:
    """Calling it launches the kernel with the arguments that were bound. Made by :meth:`LaunchCache.bind`."""

    def __init__(
        self,
        cache: LaunchCache,
        kernel: wp.Kernel,
        dim: Dim,
        args: list[Any],
        stats: SiteStats,
        site: Hashable,
        block_dim: int | None,
        max_blocks: int,
    ):
        self._cache = cache
        self._kernel = kernel
        self._dim = dim
        self._args = args
        self._stats = stats
        self._site = site
        self._block_dim = block_dim
        self._max_blocks = max_blocks
        self.record: LaunchRecord | None = None

    def __call__(self, *, stream: wp.Stream | None = None) -> None:
        """Launch the kernel.

        Args:
            stream: CUDA stream; ``None`` takes the device's current stream.
        """
        cache = self._cache
        record = self.record
        if record is None or cache.tape_active:
            self._launch_unrecorded(stream)
            return
        if record.volatile:
            record.refresh(record.args, record.dim)
        if cache.contract is LaunchContract.DEBUG:
            record.verify(cache.name)
        record.stats.replayed += 1
        cache.replay(record, stream)

    def set_dim(self, dim: Dim) -> None:
        """Change the number of threads of the next calls."""
        self._dim = dim
        if has_zero_extent(dim):
            self.release()
        elif self.record is not None:
            self.record.command.set_dim(dim)
            self.record.dim = dim

    def set(self, name: str, value: Any, *, dim: Dim | None = None) -> None:
        """Change one argument of the next calls.

        Args:
            name: Name of the argument in the kernel.
            value: New value.
            dim: New number of threads; required where an array is replaced by one of another shape, since threads that run past
                the end of an array write out of bounds.

        Raises:
            LaunchError: The kernel has no such argument, or the shape changes and ``dim`` is not given.
        """
        names = [parameter.label for parameter in self._kernel.adj.args]
        if name not in names:
            raise LaunchError(f"kernel {self._kernel.key!r} has no argument {name!r}; allowed: {', '.join(names)}")
        index = names.index(name)
        recorded = getattr(self._args[index], "shape", None)
        received = getattr(value, "shape", None)
        if dim is None and recorded is not None and received is not None and tuple(recorded) != tuple(received):
            raise LaunchError(
                f"kernel {self._kernel.key!r}: argument {name!r} has shape {tuple(recorded)} and the new one has "
                f"{tuple(received)}; pass dim= as well, so that no thread runs past its end"
            )
        self._args[index] = value
        if self.record is not None:
            self.record.patch(index, value)
        if dim is not None:
            self.set_dim(dim)

    def release(self) -> None:
        """Drop the recorded command; the next call records again."""
        self.record = None

    def _launch_unrecorded(self, stream: wp.Stream | None) -> None:
        if has_zero_extent(self._dim):
            return
        cache = self._cache
        if cache.mode is LaunchMode.EAGER or cache.tape_active:
            self._stats.eager += 1
            cache.launch_eagerly(
                self._kernel, self._dim, self._args, self._site, stream, self._block_dim, self._max_blocks
            )
            return
        self.record = LaunchRecord(
            self._kernel,
            self._dim,
            list(self._args),
            device=cache.device,
            site=self._site,
            stats=self._stats,
            block_dim=self._block_dim,
            max_blocks=self._max_blocks,
        )
        if cache.contract is LaunchContract.DEBUG:
            self.record.snapshot()
        cache.replay(self.record, stream)
