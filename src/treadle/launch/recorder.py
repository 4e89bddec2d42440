"""The records of one owner: how they are made, and how what has none is launched."""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import warp as wp

from treadle.launch.captured import CapturedLaunches, CaptureLog
from treadle.launch.dims import is_empty
from treadle.launch.errors import LaunchError
from treadle.launch.exclusive import OPEN_CAPTURE
from treadle.launch.modes import LaunchContract, LaunchMode
from treadle.launch.modules import LoadedModule
from treadle.launch.pointers import CachedPointer, recorded_pointers
from treadle.launch.record import LaunchCall, LaunchRecord
from treadle.launch.signature import ArgumentSignature
from treadle.launch.stats import LaunchStats, SiteStats

if TYPE_CHECKING:
    from treadle.launch.bound import BoundLaunch

__all__ = ["LaunchRecorder"]

_MOST_NAMESAKES = 8
"""Records of different kernels of one name and site. Those that one function makes may take turns; those that a
notebook defines again and again would pile up, with the arrays of their last launch."""


class LaunchRecorder:
    """What a launch cache and its bound launches share.

    Args:
        device: Device to launch on.
        mode: Launch mode.
        contract: What a replay verifies.
        name: Name of the owner, for messages.
        captures: Where the graphs are known that hold launches of the owner.
    """

    def __init__(
        self, device: wp.Device, mode: LaunchMode, contract: LaunchContract, name: str, captures: CaptureLog | None
    ):
        self.device = device
        self.name = name
        self.runtime = device.runtime
        self.captures = captures or CaptureLog()
        self.stats = LaunchStats(name)
        self.closed = False
        self.eager = mode is LaunchMode.EAGER
        self.trusts = contract is LaunchContract.TRUSTED
        self.verifies = contract is LaunchContract.DEBUG
        self.records: dict[tuple[wp.Kernel, Hashable], LaunchRecord] = {}
        self._bound: weakref.WeakSet[BoundLaunch] = weakref.WeakSet()
        self._modules: weakref.WeakValueDictionary[int, LoadedModule] = weakref.WeakValueDictionary()
        self._namesakes: dict[tuple[str, str, Hashable], list[wp.Kernel]] = {}

    def check_open(self) -> None:
        """Raise where the owner is closed.

        Raises:
            LaunchError: It is.
        """
        if self.closed:
            raise LaunchError(f"{self.name} is closed: nothing can be launched or bound with it any more")

    @property
    def bound(self) -> list[BoundLaunch]:
        """The bound launches that somebody holds."""
        return list(self._bound)

    def add_bound(self, launch: BoundLaunch) -> None:
        """Remember a bound launch for as long as somebody holds it."""
        self._bound.add(launch)

    def pointers(self) -> Iterator[CachedPointer]:
        """Yield the pointers of the recorded launches, and of what is bound."""
        for record in self.records.values():
            yield from recorded_pointers(self.name, "record", record)
        for bound in self.bound:
            yield from bound.pointers()

    def invalidate(self) -> None:
        """Drop all records. The graphs that hold launches of this owner are captured again before they are launched."""
        self.drop()
        for bound in self.bound:
            bound.release()

    def close(self) -> None:
        """Refuse whatever needs a record, from now on, and let go of what was bound."""
        self.closed = True
        for bound in self.bound:
            bound.close()

    def drop(self) -> None:
        """Do as :meth:`invalidate` does, and leave the bound launches as they are."""
        self.outdate_graphs()
        self.records.clear()
        self._namesakes.clear()

    def outdate_graphs(self) -> None:
        """Mark the graphs, of whatever owner, that hold launches of this one."""
        self.captures.outdate(self)

    def site_stats(self, kernel: wp.Kernel, site: Hashable) -> SiteStats:
        """Return the statistics of a site, new ones where there are none."""
        key = (kernel, site)
        stats = self.stats.sites.get(key)
        if stats is None:
            stats = self.stats.sites[key] = SiteStats(kernel=kernel.key, site=site, owner=self.name)
        return stats

    def record(self, call: LaunchCall, stats: SiteStats) -> LaunchRecord:
        """Record a launch without issuing it."""
        self.check_open()
        record = LaunchRecord(call, self.device, stats)
        # One object for each executable: it is looked at in each replay, and a step of many launches fills the cache.
        record.module = self._modules.setdefault(id(record.module.executable), record.module)
        if self.verifies:
            record.snapshot()
        return record

    def launch(self, call: LaunchCall) -> None:
        """Launch what has no record, and keep the new one, if one is made."""
        stats = self.site_stats(call.kernel, call.site)
        record = self.launch_unrecorded(call, stats)
        if record is not None:
            key = (call.kernel, call.site)
            stats.rerecorded += key in self.records
            self.records[key] = record
            self._drop_namesakes(call.kernel, call.site)

    def launch_unrecorded(self, call: LaunchCall, stats: SiteStats) -> LaunchRecord | None:
        """Launch what has no record, and return the new one where the mode is to record."""
        self.check_open()
        log = OPEN_CAPTURE.launches
        if is_empty(call.dim):
            call.issue(self.device)  # runs nothing, but says what is wrong with the call, if anything is
            return None
        if log is not None:
            if log.probing:
                self._note_call(log, call)
                return None
            self._check_capturable(call.kernel, call.args, call.stream)
        if self.eager or self.runtime.tape is not None or call.adjoint:
            stats.eager += 1
            call.issue(self.device)
            if log is not None:
                self._note_call(log, call)
            return None
        record = self.record(call, stats)
        self.replay(record, call.stream)
        return record

    def replay(self, record: LaunchRecord, stream: wp.Stream | None) -> None:
        """Launch a record, and note it where a graph is being captured."""
        log = OPEN_CAPTURE.launches
        if log is not None:
            self._check_capturable(record.kernel, record.args, stream)
            log.note(self.name, record.kernel, record.site, record.args, record.declared, self, record.dim)
            log.depends_on(record.module)
            self.captures.add(log)
        record.command.launch(stream)

    def _note_call(self, log: CapturedLaunches, call: LaunchCall) -> None:
        """Note a launch that has no record."""
        declared = [parameter.type for parameter in call.kernel.adj.args]
        log.note(self.name, call.kernel, call.site, call.args, declared, self, call.dim)
        log.keep((call.adj_inputs, call.adj_outputs))
        self.captures.add(log)

    def _check_capturable(self, kernel: wp.Kernel, args: Sequence[Any], stream: wp.Stream | None) -> None:
        """Refuse what would run now, while a graph is being captured, and would be missing from the graph."""
        capturing = OPEN_CAPTURE.device
        if capturing is None:
            return
        if self.device is not capturing:
            raise LaunchError(
                f"{self.name} launches kernel {kernel.key!r} on {self.device}, which can't be part of a graph of "
                f"{capturing}"
            )
        if self.device.is_cpu:
            self._refuse_foreign_arrays(kernel, args)
        elif not (self.device.stream if stream is None else stream).is_capturing:
            raise LaunchError(
                f"{self.name} launches kernel {kernel.key!r} on a stream that does not take part in the capture: leave "
                f"stream= out, or let the stream wait for the one that is being captured"
            )

    def _refuse_foreign_arrays(self, kernel: wp.Kernel, args: Sequence[Any]) -> None:
        """Refuse, while the CPU captures, what Warp can't put into a graph there: it knows its own arrays only."""
        for parameter, value in zip(kernel.adj.args, args, strict=False):
            if ArgumentSignature.of(value, parameter.type).kind == "buffer":
                raise LaunchError(
                    f"argument {parameter.label!r} of kernel {kernel.key!r} is a {type(value).__name__}: a graph of "
                    f"the CPU takes arrays of Warp only, for example wp.from_torch(...)"
                )

    def _drop_namesakes(self, kernel: wp.Kernel, site: Hashable) -> None:
        """Drop the oldest of the kernels of one name, where there are many, with its statistics."""
        kernels = self._namesakes.setdefault((kernel.func.__module__, kernel.key, site), [])
        if kernel in kernels:
            return
        kernels.append(kernel)
        if len(kernels) > _MOST_NAMESAKES:
            key = (kernels.pop(0), site)
            self.records.pop(key, None)
            self.stats.sites.pop(key, None)
