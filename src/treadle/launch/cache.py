"""The launch cache: record a launch once, replay it safely."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import warp as wp

from treadle.launch.bound import BoundLaunch
from treadle.launch.captured import CaptureLog
from treadle.launch.dims import Dim, extents, is_empty
from treadle.launch.errors import LaunchError
from treadle.launch.exclusive import CAPTURES, OPEN_CAPTURE, after_captures
from treadle.launch.modes import LaunchContract, LaunchMode, resolve_contract, resolve_mode
from treadle.launch.pointers import CachedPointer
from treadle.launch.record import (
    LaunchCall,
    LaunchRecord,
    argument_index,
    as_names,
    check_argument_lists,
    check_site,
)
from treadle.launch.recorder import LaunchRecorder

__all__ = ["LaunchCache"]


class LaunchCache:
    """Launches kernels for one owner, recording each argument set once.

    The first call at a site records **and** executes; later calls replay. A *site* names one persistent argument set:
    the key is ``(kernel, site)``, so a kernel that is launched with two sets of buffers needs two sites to replay well.
    A call is always right, whatever the site: with the ``checked`` contract what changed is patched into the command
    first.

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
        self.name = name or "LaunchCache"
        self._mode = resolve_mode(mode)
        self._contract = resolve_contract(contract)
        self.recorder = LaunchRecorder(self.device, self._mode, self._contract, self.name, captures)
        self.stats = self.recorder.stats
        self._trusts = self.recorder.trusts
        self._verifies = self.recorder.verifies
        self._runtime = self.device.runtime
        self._records = self.recorder.records

    @property
    def mode(self) -> LaunchMode:
        """How kernels are launched. Fixed: another mode is another cache."""
        return self._mode

    @property
    def contract(self) -> LaunchContract:
        """What a replay verifies. Fixed, too."""
        return self._contract

    def launch(
        self,
        kernel: wp.Kernel,
        dim: Dim,
        inputs: Sequence[Any] = (),
        outputs: Sequence[Any] = (),
        site: Hashable = None,  # and all below belong by name; were they keyword-only, a call would cost 0.09 us more
        stream: wp.Stream | None = None,
        block_dim: int | None = None,
        max_blocks: int = 0,
        dynamic: tuple[str, ...] | str = (),
        adjoint: bool = False,
        adj_inputs: Sequence[Any] = (),
        adj_outputs: Sequence[Any] = (),
        record_tape: bool = True,
        device: None = None,
    ) -> None:
        """Launch a kernel, as ``wp.launch`` would, from its record where there is one.

        Args:
            kernel: A ``@wp.kernel`` function.
            dim: Number of threads, an integer or up to four extents. A launch without threads does nothing.
            inputs: Input arguments.
            outputs: Output arguments.
            site: Names the argument set. Give it, and all that follows, by name.
            stream: CUDA stream of this call, not remembered; ``None`` takes the device's current stream at each call.
            block_dim: Threads per block.
            max_blocks: Most blocks; 0 for no limit.
            dynamic: Names of arguments that are meant to change, or one name. Patching them is not counted against the
                site, and the ``debug`` contract allows it. With ``trusted``, nothing else makes a changed argument
                reach the kernel.
            adjoint: Whether to launch the adjoint kernel. Such a launch is never recorded: each call goes through
                ``wp.launch``.
            adj_inputs: Adjoint inputs.
            adj_outputs: Adjoint outputs.
            record_tape: Whether an active ``wp.Tape`` sees the launch.
            device: Not to be given: a cache launches on its own device.

        Raises:
            LaunchError: The kernel has no argument of a name in ``dynamic``; ``inputs`` or ``outputs`` is no list; the
                site can't be hashed; a device is given; a graph is being captured, and this launch can't be part of it:
                it has another device, a stream that is not captured, or, on the CPU, an array of another library; or,
                with the ``debug`` contract, threads would run past the end of an array.
            StaleArgumentError: ``debug`` contract, and an argument is not what was recorded at this site.
        """
        try:
            record = self._records.get((kernel, site))
        except TypeError:
            check_site(kernel, site)
            raise
        if (
            record is None
            or CAPTURES.open
            or adjoint
            or device is not None
            or self._runtime.tape is not None
            or (module := record.module).module.hashers is not module.hashers
            or (dim is not record.dim and _comparable(dim) != record.dim)
            or (
                dynamic
                if self._trusts
                else (block_dim is not record.block_dim and block_dim != record.block_dim)
                or max_blocks != record.max_blocks
                or not record.same(inputs, outputs, record.objects)
            )
        ):
            check_argument_lists(kernel, inputs=inputs, outputs=outputs)
            self._check_device(kernel, device)
            inputs = [*inputs]
            call = LaunchCall(
                kernel, _comparable(dim), [*inputs, *outputs], site, stream, block_dim, max_blocks, dynamic
            )
            call = call._replace(num_inputs=len(inputs))
            if adjoint or not record_tape:
                call = call._replace(
                    adjoint=adjoint, adj_inputs=adj_inputs, adj_outputs=adj_outputs, record_tape=record_tape
                )
            with after_captures(self.device):
                self._launch_with_care(record, call)
            return
        record.stats.replayed += 1
        record.command.launch(stream)

    def launch_tiled(
        self,
        kernel: wp.Kernel,
        dim: Dim,
        inputs: Sequence[Any] = (),
        outputs: Sequence[Any] = (),
        *,
        block_dim: int | None,
        **options: Any,
    ) -> None:
        """Launch one block of threads for each element of a grid, as ``wp.launch_tiled`` would.

        Args:
            kernel: A ``@wp.kernel`` function.
            dim: Up to three extents of the grid.
            inputs: Input arguments.
            outputs: Output arguments.
            block_dim: Threads per block; ``None`` for the device's default. On the CPU it is 1 unless
                ``wp.config.enable_cpu_blocks`` is on.
            options: As for :meth:`launch`.

        Raises:
            LaunchError: The grid has more than three extents.
        """
        grid = extents(dim)
        if len(grid) > 3:
            raise LaunchError(f"a tiled launch of {kernel.key!r} takes up to three extents, received {grid}")
        threads = _block_threads(self.device, block_dim)
        self.launch(kernel, (*grid, threads), inputs, outputs, block_dim=threads, **options)

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
        dynamic: tuple[str, ...] | str = (),
        device: None = None,
    ) -> BoundLaunch:
        """Return a callable that launches the kernel with these arguments: the cheapest replay there is.

        Nothing is launched here. The arguments are those of :meth:`launch`; without a site, the statistics count the
        bound launches of a kernel together. The caller owns what is returned, and with it the arguments.

        An argument is changed with :meth:`BoundLaunch.set`. One that is named in ``dynamic`` may also change behind its
        identity (a struct, a vector, a tensor) under the ``debug`` contract.

        Raises:
            LaunchError: The kernel has no argument of a name in ``dynamic``, ``inputs`` or ``outputs`` is no list, the
                site can't be hashed, or a device is given.
        """
        self.recorder.check_open()
        self._check_device(kernel, device)
        check_argument_lists(kernel, inputs=inputs, outputs=outputs)
        check_site(kernel, site)
        for name in as_names(dynamic):
            argument_index(kernel, name)
        stats = self.recorder.site_stats(kernel, "bound" if site is None else site)
        dim = dim if isinstance(dim, int) else extents(dim)
        call = LaunchCall(kernel, dim, [*inputs, *outputs], site, None, block_dim, max_blocks, dynamic)
        bound = BoundLaunch(self.recorder, call, stats)
        self.recorder.add_bound(bound)
        return bound

    def invalidate(self) -> None:
        """Drop all recorded commands and the arguments that they kept alive. The next calls record again.

        Graphs that hold launches of this cache are captured again before they are launched.
        :meth:`LaunchScope.invalidate` drops them at once, in the right order.
        """
        self.recorder.invalidate()

    @property
    def bound(self) -> list[BoundLaunch]:
        """The bound launches that somebody holds."""
        return self.recorder.bound

    @property
    def records(self) -> list[LaunchRecord]:
        """The recorded launches, bound ones included."""
        bound = (launch.record for launch in self.bound)
        return [*self._records.values(), *(record for record in bound if record is not None)]

    def pointers(self) -> Iterator[CachedPointer]:
        """Yield the pointers of the recorded launches, and of what is bound."""
        yield from self.recorder.pointers()

    @property
    def tape_active(self) -> bool:
        """Whether a ``wp.Tape`` is recording: launches then go through ``wp.launch``, so that the tape sees them."""
        return self._runtime.tape is not None

    def _check_device(self, kernel: wp.Kernel, device: object) -> None:
        if device is not None:
            raise LaunchError(
                f"{self.name}: kernel {kernel.key!r}: device={str(device)!r} can't be given here: a cache launches on "
                f"its own device, {self.device}. Leave it out, or use a cache of the other device"
            )

    def _launch_with_care(self, record: LaunchRecord | None, call: LaunchCall) -> None:
        """Launch whatever is not seen at once to be the recorded call."""
        log = OPEN_CAPTURE.launches
        probing = log is not None and log.probing
        if record is None or probing or call.adjoint or self.tape_active or not self._refresh(record, call):
            self.recorder.launch(call)
            return
        record.stats.replayed += 1
        self.recorder.replay(record, call.stream)

    def _refresh(self, record: LaunchRecord, call: LaunchCall) -> bool:
        """Make a record fit the arguments of a call; return False where it has to be recorded again."""
        if is_empty(call.dim) or record.module.changed:
            return False
        record.declare_dynamic(call.dynamic)
        if self._trusts and not record.dynamic and call.dim == record.dim:
            return True
        if self._verifies:
            record.verify(self.name, call.args, call.dim)
        if not record.matches_layout(call.args, call.block_dim, call.max_blocks):
            return False
        try:
            record.refresh(call.args, call.dim)
            record.split(call.num_inputs)
        except BaseException:
            self._records.pop((call.kernel, call.site), None)  # it may be patched in part
            raise
        return True


def _comparable(dim: Dim) -> Dim:
    return dim if type(dim) is int or type(dim) is tuple else extents(dim)


def _block_threads(device: wp.Device, block_dim: int | None) -> int:
    """Return the number of threads of a block, as Warp resolves it; a bad one is Warp's to refuse."""
    if block_dim is None or block_dim <= 0:
        return 1 if device.is_cpu else 256
    if device.is_cpu and block_dim <= 1024 and not wp.config.enable_cpu_blocks:
        return 1
    return block_dim
