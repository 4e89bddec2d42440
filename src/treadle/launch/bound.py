"""A launch bound to its arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import warp as wp

from treadle.launch.dims import Dim, check_dim, covered_arrays, extents, is_empty
from treadle.launch.errors import LaunchError
from treadle.launch.exclusive import CPU_CAPTURE, after_captures
from treadle.launch.modes import LaunchContract
from treadle.launch.pointers import CachedPointer, recorded_pointers
from treadle.launch.record import LaunchCall, LaunchRecord, argument_index
from treadle.launch.stats import SiteStats

if TYPE_CHECKING:
    from treadle.launch.cache import LaunchCache

__all__ = ["BoundLaunch"]


class BoundLaunch:
    """Calling it launches the kernel with the arguments that were bound. Made by :meth:`LaunchCache.bind`."""

    def __init__(self, cache: LaunchCache, call: LaunchCall, stats: SiteStats):
        self._cache = cache
        self._runtime = cache.device.runtime
        self._captures = cache.captures
        self._verifies = cache.contract is LaunchContract.DEBUG
        self._trusts = cache.contract is LaunchContract.TRUSTED
        self._call = call
        self._stats = stats
        self._positions = {parameter.label: index for index, parameter in enumerate(call.kernel.adj.args)}
        self._covered = covered_arrays(call.args, call.dim) if self._verifies else []
        self._in_graphs = False
        self.record: LaunchRecord | None = None

    def __call__(self, *, stream: wp.Stream | None = None) -> None:
        """Launch the kernel.

        Args:
            stream: CUDA stream of this call; ``None`` takes the device's current stream.
        """
        record = self.record
        if (
            record is None
            or self._verifies
            or self._captures.open is not None
            or CPU_CAPTURE.thread is not None
            or self._runtime.tape is not None
            or record.loaded.hashers is not record.module.hashers
            or (record.volatile and not self._trusts)
        ):
            with after_captures(self._cache.device):
                self._launch_with_care(stream)
            return
        self._stats.replayed += 1
        record.command.launch(stream)

    def set_dim(self, dim: Dim) -> None:
        """Change the number of threads of the next calls. A graph that holds this launch is captured again.

        Raises:
            LaunchError: ``debug`` contract, and there are more threads than elements of an array that was bound with
                one thread for each.
        """
        dim = dim if isinstance(dim, int) else extents(dim)
        check_dim(self._call.kernel, self._call.args, self._covered, dim)
        self._outdate_graphs()
        if is_empty(dim):
            self.record = None
        elif self.record is not None:
            self.record.set_dim(dim)
        self._call = self._call._replace(dim=dim)

    def set(self, name: str, value: Any, *, dim: Dim | None = None) -> None:
        """Change one argument of the next calls. A graph that holds this launch is captured again.

        It takes about as long as a replay. What changes at each step is cheaper in an array that the kernel reads.

        Args:
            name: Name of the argument in the kernel.
            value: New value.
            dim: New number of threads; required where an array is replaced by one of another shape, since threads that
                run past the end of an array write out of bounds.

        Raises:
            LaunchError: The kernel has no such argument, the shape changes and ``dim`` is not given, or ``dim`` is more
                than the arrays have, as for :meth:`set_dim`.
        """
        call, record = self._call, self.record
        index = self._positions.get(name)
        if index is None:
            index = argument_index(call.kernel, name)
        if dim is None:
            self._check_shape(name, call.args[index], value)
        else:
            args = [*call.args[:index], value, *call.args[index + 1 :]]
            check_dim(call.kernel, args, self._covered, dim)
        if record is not None and record.takes(index, value):
            record.patch(index, value)
        elif record is not None:
            args = [*call.args[:index], value, *call.args[index + 1 :]]
            self.record = self._cache.record(call._replace(args=args), self._stats)
        call.args[index] = value
        self._outdate_graphs()
        if dim is not None:
            self.set_dim(dim)

    def _launch_with_care(self, stream: wp.Stream | None) -> None:
        """Launch where there is no record, or something to be looked at."""
        record, log = self.record, self._captures.open
        if log is not None:
            log.add_source(self)
            self._in_graphs = True
        probing = log is not None and log.probing
        if record is None or probing or self._runtime.tape is not None or record.module.changed:
            new = self._cache.launch_unrecorded(self._call._replace(stream=stream), self._stats)
            self.record = new or record
            return
        if self._verifies:
            record.verify(self._cache.name)
        if log is not None or not self._trusts:
            record.refresh(record.args, record.dim)
        self._stats.replayed += 1
        if log is not None:
            self._cache.note(record)
        record.command.launch(stream)

    def pointers(self) -> Iterator[CachedPointer]:
        """Yield the pointers of the recorded command; before there is one, nothing is cached."""
        if self.record is not None:
            yield from recorded_pointers(self._cache.name, "bound", self.record)

    @property
    def call(self) -> LaunchCall:
        """What it is called with."""
        return self._call

    @property
    def device(self) -> wp.Device:
        """Device that it launches on."""
        return self._cache.device

    def rebind(self, call: LaunchCall) -> None:
        """Launch something else from now on. It is recorded now if what it replaces was."""
        self._call = call
        recorded = self.record is not None
        self.release()
        if recorded:
            self.record = self._cache.record(call, self._stats)

    def release(self) -> None:
        """Drop the recorded command; the next call records again. The bound arguments stay bound."""
        self.record = None
        self._outdate_graphs()

    def _outdate_graphs(self) -> None:
        """Mark the graphs that hold this launch, once: a graph that is captured anew says so when it is."""
        if self._in_graphs:
            self._captures.outdate(self)
            self._in_graphs = self._captures.open is not None

    def _check_shape(self, name: str, old: Any, new: Any) -> None:
        recorded = getattr(old, "shape", None)
        received = None if recorded is None else getattr(new, "shape", None)
        if recorded is not None and received is not None and tuple(recorded) != tuple(received):
            raise LaunchError(
                f"kernel {self._call.kernel.key!r}: argument {name!r} has shape {tuple(recorded)} and the new one has "
                f"{tuple(received)}; pass dim= as well, so that no thread runs past its end"
            )
