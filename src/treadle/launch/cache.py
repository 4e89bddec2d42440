"""The launch cache: record a launch once, replay it safely."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import warp as wp

from treadle.launch.bound import BoundLaunch
from treadle.launch.captured import CaptureLog
from treadle.launch.modes import LaunchContract, LaunchMode, resolve_contract, resolve_mode
from treadle.launch.record import Dim, LaunchRecord, has_zero_extent
from treadle.launch.stats import LaunchStats, SiteStats

__all__ = ["LaunchCache"]


class LaunchCache:
    """Launches kernels for one owner, recording each argument set once.

    The first call at a site records **and** executes; later calls replay. A *site* names one persistent argument set: the key is
    ``(kernel, site)``, so a kernel that is launched with two sets of buffers needs two sites to replay well. A call is always
    right, whatever the site: with the ``checked`` contract what changed is patched into the command first.

    Args:
        device: Device to launch on.
        mode: Launch mode; see :func:`treadle.launch.resolve_mode`. ``graph`` and ``auto`` replay here.
        contract: What a replay verifies; see :func:`treadle.launch.resolve_contract`.
        name: Name of the owner, for messages.
        captures: Where launches are noted while the owner captures a graph. A :class:`LaunchScope` passes its own.
    """

    def __init__(
        self,
        device: wp.DeviceLike = None,
        *,
        mode: LaunchMode | str | None = None,
        contract: LaunchContract | str | None = None,
        name: str | None = None,
        captures: CaptureLog | None = None,
    ):
        self.device = wp.get_device(device)
        self.mode = resolve_mode(mode)
        self.contract = resolve_contract(contract)
        self.name = name or "LaunchCache"
        self.stats = LaunchStats()
        self.captures = captures or CaptureLog()
        self._records: dict[tuple[wp.Kernel, Hashable], LaunchRecord] = {}
        self._bound: list[BoundLaunch] = []

    def launch(
        self,
        kernel: wp.Kernel,
        dim: Dim,
        inputs: Sequence[Any] = (),
        outputs: Sequence[Any] = (),
        *,
        site: Hashable = None,
        stream: wp.Stream | None = None,
        block_dim: int | None = None,
        max_blocks: int = 0,
    ) -> None:
        """Launch a kernel, as ``wp.launch`` would, from its record where there is one.

        Args:
            kernel: A ``@wp.kernel`` function.
            dim: Number of threads, an integer or up to four extents. A launch without threads does nothing.
            inputs: Input arguments.
            outputs: Output arguments.
            site: Names the argument set.
            stream: CUDA stream; ``None`` takes the device's current stream at each call.
            block_dim: Threads per block.
            max_blocks: Most blocks; 0 for no limit.

        Raises:
            StaleArgumentError: ``debug`` contract, and an argument is not what was recorded at this site.
        """
        record = self._records.get((kernel, site))
        if record is None or self.tape_active:
            self._launch_unrecorded(kernel, dim, [*inputs, *outputs], site, stream, block_dim, max_blocks)
            return
        if self.contract is not LaunchContract.TRUSTED or dim != record.dim:
            args = [*inputs, *outputs]
            if not self._refresh(record, dim, args, block_dim, max_blocks):
                self._launch_unrecorded(kernel, dim, args, site, stream, block_dim, max_blocks)
                return
        record.stats.replayed += 1
        self.replay(record, stream)

    def replay(self, record: LaunchRecord, stream: wp.Stream | None) -> None:
        """Issue a recorded command; while a graph is being captured, note what it uses."""
        if self.captures.open is not None:
            self.captures.open.note(self.name, record.kernel, record.site, record.args)
        record.command.launch(stream)

    def bind(
        self,
        kernel: wp.Kernel,
        dim: Dim,
        inputs: Sequence[Any] = (),
        outputs: Sequence[Any] = (),
        *,
        site: Hashable = None,
        block_dim: int | None = None,
        max_blocks: int = 0,
    ) -> BoundLaunch:
        """Return a callable that launches the kernel with these arguments: the cheapest replay there is.

        Nothing is launched here. The arguments are those of :meth:`launch`.
        """
        stats = self._site_stats(kernel, ("bound", len(self._bound)) if site is None else site)
        bound = BoundLaunch(self, kernel, dim, [*inputs, *outputs], stats, site, block_dim, max_blocks)
        self._bound.append(bound)
        return bound

    def invalidate(self) -> None:
        """Drop all recorded commands and the arguments that they kept alive. The next calls record again.

        A graph that used these arguments must be gone already; :meth:`LaunchScope.invalidate` sees to that.
        """
        self._records.clear()
        for bound in self._bound:
            bound.release()

    @property
    def records(self) -> list[LaunchRecord]:
        """The recorded launches, bound ones included."""
        bound = (launch.record for launch in self._bound)
        return [*self._records.values(), *(record for record in bound if record is not None)]

    @property
    def tape_active(self) -> bool:
        """Whether a ``wp.Tape`` is recording: launches then go through ``wp.launch``, so that the tape sees them."""
        return self.device.runtime.tape is not None

    def _refresh(self, record: LaunchRecord, dim: Dim, args: list[Any], block_dim: int | None, max_blocks: int) -> bool:
        """Make a record fit the arguments of a call; return False where it has to be recorded again."""
        if self.contract is LaunchContract.DEBUG:
            record.verify(self.name, args)
        if has_zero_extent(dim) or not record.matches_layout(args, block_dim, max_blocks):
            return False
        record.refresh(args, dim)
        return True

    def _launch_unrecorded(
        self,
        kernel: wp.Kernel,
        dim: Dim,
        args: list[Any],
        site: Hashable,
        stream: wp.Stream | None,
        block_dim: int | None,
        max_blocks: int,
    ) -> None:
        if has_zero_extent(dim):
            return
        stats = self._site_stats(kernel, site)
        if self.mode is LaunchMode.EAGER or self.tape_active:
            stats.eager += 1
            self.launch_eagerly(kernel, dim, args, site, stream, block_dim, max_blocks)
            return
        record = LaunchRecord(
            kernel,
            dim,
            args,
            device=self.device,
            site=site,
            stats=stats,
            block_dim=block_dim,
            max_blocks=max_blocks,
        )
        if self.contract is LaunchContract.DEBUG:
            record.snapshot()
        self._records[(kernel, site)] = record
        self.replay(record, stream)

    def launch_eagerly(
        self,
        kernel: wp.Kernel,
        dim: Dim,
        args: list[Any],
        site: Hashable,
        stream: wp.Stream | None,
        block_dim: int | None,
        max_blocks: int,
    ) -> None:
        """Launch through ``wp.launch``; while a graph is being captured, note what the launch uses."""
        if self.captures.open is not None:
            self.captures.open.note(self.name, kernel, site, args)
        wp.launch(kernel, dim, args, device=self.device, stream=stream, block_dim=block_dim, max_blocks=max_blocks)

    def _site_stats(self, kernel: wp.Kernel, site: Hashable) -> SiteStats:
        key = (kernel, site)
        stats = self.stats.sites.get(key)
        if stats is None:
            stats = self.stats.sites[key] = SiteStats(kernel=kernel.key, site=site)  # type: ignore[assignment]
        return stats  # type: ignore[return-value]
