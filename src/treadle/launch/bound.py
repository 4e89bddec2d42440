"""A launch bound to its arguments."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import warp as wp

from treadle.launch.dims import Dim, check_dim, covered_arrays, extents, is_empty, other_shape
from treadle.launch.errors import LaunchError
from treadle.launch.exclusive import CAPTURES, OPEN_CAPTURE, after_captures
from treadle.launch.pointers import CachedPointer, recorded_pointers
from treadle.launch.record import LaunchCall, LaunchRecord, argument_index
from treadle.launch.stats import SiteStats

if TYPE_CHECKING:
    from treadle.launch.recorder import LaunchRecorder

__all__ = ["BoundLaunch"]


class BoundLaunch:
    """Calling it launches the kernel with the arguments that were bound. Made by :meth:`LaunchCache.bind`."""

    __slots__ = (
        "__weakref__",
        "_cache",
        "_call",
        "_command",
        "_covered",
        "_in_graphs",
        "_module",
        "_positions",
        "_record",
        "_runtime",
        "_stats",
    )

    def __init__(self, cache: LaunchRecorder, call: LaunchCall, stats: SiteStats):
        self._cache = cache
        self._runtime = cache.runtime
        self._call = call
        self._stats = stats
        self._positions = {parameter.label: index for index, parameter in enumerate(call.kernel.adj.args)}
        self._covered = covered_arrays(call.args, call.dim) if cache.verifies else []
        self._in_graphs = False
        self._set_record(None)

    def __call__(self, *, stream: wp.Stream | None = None) -> None:
        """Launch the kernel.

        Args:
            stream: CUDA stream of this call; ``None`` takes the device's current stream.
        """
        command, module = self._command, self._module
        if (
            command is None
            or CAPTURES.open
            or self._runtime.tape is not None
            or module.module.hashers is not module.hashers
        ):
            with after_captures(self._cache.device):
                self._launch_with_care(stream)
            return
        self._stats.replayed += 1
        command.launch(stream)

    def set_dim(self, dim: Dim) -> None:
        """Change the number of threads of the next calls. A graph that holds this launch is captured again.

        Raises:
            LaunchError: The owner is closed; or, with the ``debug`` contract, there are more threads than elements of
                an array that was bound with one thread for each.
        """
        self._cache.check_open()
        dim = dim if isinstance(dim, int) else extents(dim)
        check_dim(self._call.kernel, self._call.args, self._covered, dim)
        with self._all_or_nothing():
            self._replace_dim(dim)
        self._outdate_graphs()

    def set(self, name: str, value: Any, *, dim: Dim | None = None) -> None:
        """Change one argument of the next calls. A graph that holds this launch is captured again.

        It takes about as long as a replay. What changes at each step is cheaper in an array that the kernel reads.

        Args:
            name: Name of the argument in the kernel.
            value: New value.
            dim: New number of threads; required where an array is replaced by one of another shape, since threads that
                run past the end of an array write out of bounds.

        Raises:
            LaunchError: The owner is closed, the kernel has no such argument, the shape changes (of an array in a
                struct, too) and ``dim`` is not given, or ``dim`` is more than the arrays have, as for :meth:`set_dim`.
        """
        self._cache.check_open()
        call = self._call
        index = self._positions.get(name)
        if index is None:
            index = argument_index(call.kernel, name)
        if dim is None:
            self._check_shape(name, call.args[index], value)
        else:
            dim = dim if isinstance(dim, int) else extents(dim)
            args = [*call.args[:index], value, *call.args[index + 1 :]]
            check_dim(call.kernel, args, self._covered, dim)
        self._replace_argument(index, value)
        if dim is not None:
            with self._all_or_nothing():
                self._replace_dim(dim)
        call.args[index] = value
        self._outdate_graphs()

    def _replace_argument(self, index: int, value: Any) -> None:
        record, call = self.record, self._call
        if record is not None and record.takes(index, value):
            record.patch(index, value)
            self._set_record(record)
        elif record is not None:
            args = [*call.args[:index], value, *call.args[index + 1 :]]
            self._set_record(self._cache.record(call._replace(args=args), self._stats))

    def _replace_dim(self, dim: Dim) -> None:
        if is_empty(dim):
            self._set_record(None)
        elif self.record is not None:
            self.record.set_dim(dim)
        self._call = self._call._replace(dim=dim)

    def _launch_with_care(self, stream: wp.Stream | None) -> None:
        """Launch where there is no record, or something to be looked at."""
        record, log = self.record, OPEN_CAPTURE.launches
        if log is not None:
            log.add_source(self)
            self._cache.captures.add(log)
            self._in_graphs = True
        probing = log is not None and log.probing
        if record is None or probing or self._runtime.tape is not None or record.module.changed:
            new = self._cache.launch_unrecorded(self._call._replace(stream=stream), self._stats)
            self._set_record(new or record)
            return
        if self._cache.verifies:
            record.verify(self._cache.name)
        if log is not None or not self._cache.trusts:
            with self._all_or_nothing():
                record.refresh(record.args, record.dim)
        self._stats.replayed += 1
        self._cache.replay(record, stream)

    def pointers(self) -> Iterator[CachedPointer]:
        """Yield the pointers of the recorded command; before there is one, nothing is cached."""
        if self.record is not None:
            yield from recorded_pointers(self._cache.name, "bound", self.record)

    @property
    def record(self) -> LaunchRecord | None:
        """What it replays, ``None`` as long as nothing is recorded."""
        return self._record

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
            self._set_record(self._cache.record(call, self._stats))

    def release(self) -> None:
        """Drop the recorded command; the next call records again. The bound arguments stay bound."""
        self._set_record(None)
        self._outdate_graphs()

    def close(self) -> None:
        """Let go of the record and of the arguments, for good: the owner is closed."""
        self.release()
        self._call = self._call._replace(args=[])

    def _set_record(self, record: LaunchRecord | None) -> None:
        """Keep a record, and its command where that can be launched without looking at the arguments."""
        cache = self._cache
        looks = cache.verifies or (record is not None and bool(record.volatile) and not cache.trusts)
        self._record = record
        self._command: Any = None if looks or record is None else record.command
        self._module: Any = None if record is None else record.module

    def _outdate_graphs(self) -> None:
        """Mark the graphs that hold this launch, once: a graph that is captured anew says so when it is."""
        if self._in_graphs:
            self._cache.captures.outdate(self)
            self._in_graphs = OPEN_CAPTURE.launches is not None

    @contextlib.contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Drop the record where changing it fails: it may be changed in part. The next call records what is bound."""
        try:
            yield
        except BaseException:
            self.release()
            raise

    def _check_shape(self, name: str, old: Any, new: Any) -> None:
        other = other_shape(name, old, new)
        if other is not None:
            argument, recorded, received = other
            raise LaunchError(
                f"kernel {self._call.kernel.key!r}: argument {argument!r} has shape {recorded} and the new one has "
                f"{received}; pass dim= as well, so that no thread runs past its end"
            )
