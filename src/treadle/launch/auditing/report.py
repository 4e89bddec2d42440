"""What an audit found."""

from __future__ import annotations

import dataclasses
import enum
import json
from dataclasses import dataclass, field
from typing import Any

__all__ = ["ArgumentChange", "AuditReport", "HostSync", "SiteReport", "Verdict"]


class Verdict(enum.Enum):
    """What can be done about a call site, from what replays as it is to what needs the most work."""

    REPLAYED = "replayed"
    """A recorded launch already."""
    UNSTABLE = "unstable"
    """A recorded launch that the launch cache patches at (nearly) each call."""
    GRAPH = "graph"
    """The launch of a graph."""
    STABLE = "stable"
    """The same arguments in each step: replays as it is."""
    ALTERNATING = "alternating"
    """Some argument sets that recur: replays with a site for each."""
    VIEW = "new view"
    """The same memory behind an array object that is made anew each time."""
    SCALAR = "changing scalar"
    """A number, vector or matrix that has a new value each time."""
    TRANSIENT = "transient array"
    """An array that is allocated in the step. A graph can hold it, with its memory for as long as the graph lives."""
    POINTER = "moving pointer"
    """An array that is another one each time."""
    DIM = "changing dim"
    """The number of threads changes."""
    KERNEL = "new kernel"
    """The kernel object is made anew each time."""
    CONDITIONAL = "not in every step"
    """The number of launches differs between steps."""
    CAPTURED = "captured"
    """A launch that goes into a graph, which is captured in the step."""
    TAPE = "on a tape"
    """A launch that a ``wp.Tape`` records, or an adjoint one."""
    UNKNOWN = "too few steps to tell"
    """Fewer steps were watched than a verdict needs."""


MIN_STEPS = 4
"""Steps that a verdict needs: in the second half of them, what recurs has come round and what changes is new. Sets that
take turns, one in a step, need two steps each."""
REPLAYABLE = frozenset((Verdict.STABLE, Verdict.ALTERNATING))
"""What replays as it is."""
RECORDED = frozenset((Verdict.REPLAYED, Verdict.UNSTABLE))
"""What goes through a launch cache, or is a recorded command."""
DONE = frozenset((Verdict.REPLAYED, Verdict.GRAPH))
"""What is as fast as it gets on its own."""
FACTS = frozenset((*RECORDED, Verdict.GRAPH, Verdict.CONDITIONAL, Verdict.CAPTURED, Verdict.TAPE))
"""What is true however few steps were watched."""
UNREPLAYABLE = frozenset((Verdict.CAPTURED, Verdict.TAPE))
"""What the launch cache does not replay."""
GRAPH_BREAKS = frozenset((Verdict.CONDITIONAL, Verdict.KERNEL, Verdict.DIM, Verdict.POINTER))
"""What a graph can't hold before it is edited. A changing scalar is frozen in it."""


@dataclass(frozen=True, kw_only=True)
class ArgumentChange:
    """An argument that is not the same in each step."""

    name: str
    """Name in the kernel; ``name.field`` for a field of a struct."""
    verdict: Verdict
    shown: tuple[str, ...] = ()
    """Some of its values."""
    allocated_at: str | None = None
    """``file:line`` where the array is allocated, or the view made, in the step."""


@dataclass(frozen=True, kw_only=True)
class SiteReport:
    """A call site: one line of a program that launches one kernel."""

    file: str
    line: int
    function: str
    kernel: str
    owner: str
    """``user``, or the package that the line belongs to."""
    via: tuple[str, int] | None
    """For a package's site: file and line of the program's call that led there."""
    verdict: Verdict
    """The change that needs the most work, ``stable`` if there is none."""
    calls_per_step: float
    sets: int
    """Number of distinct argument sets that were seen, as to the arguments that recur."""
    steady: bool
    """Whether each step has the same ones in the same order, as a graph has."""
    changes: tuple[ArgumentChange, ...]
    also: tuple[Verdict, ...]
    """Other findings."""
    patched: tuple[str, ...] = ()
    """For an unstable site: the arguments that change and are not declared ``dynamic``; ``dim`` for the threads."""
    host_us: float
    """Host time per step, the median over steps, without the kernels that the CPU runs within a launch."""
    replay_us: float
    """The same with replayed launches, after the edit where one is needed. As now where replay is impossible."""
    graph_us: float
    """Its share of a graph."""
    graph_launches: float = 0.0
    """Launches per step that a graph which is launched here holds."""
    edit: str = ""
    """What to do."""
    code: tuple[str, ...] = ()
    """Lines of the file as they are and as they could be."""

    @property
    def where(self) -> str:
        """``file:line``."""
        return f"{self.file}:{self.line}"

    @property
    def replayable(self) -> bool:
        """Whether the site replays as it is, and is the program's own to edit."""
        return self.verdict in REPLAYABLE and self.owner == "user"

    @property
    def describe(self) -> str:
        """The verdict with the names of the arguments."""
        more = "; ".join(map(self.phrase, self.also))
        if self.verdict in RECORDED:
            return "; ".join(filter(None, (self.phrase(self.verdict), more)))
        return f"{self.phrase(self.verdict)}; also {more}" if more else self.phrase(self.verdict)

    def phrase(self, verdict: Verdict) -> str:
        """Return one finding with the names of the arguments."""
        names = _list([change.name for change in self.changes if change.verdict is verdict])
        differs = f"; seen to change: {names}" if names else ""
        patched = f" ({_list(list(self.patched))} patched at each call)" if self.patched else ""
        return {
            Verdict.UNSTABLE: f"unstable{patched}",
            Verdict.ALTERNATING: f"{self.sets} argument sets" + (f" ({names})" if names else ""),
            Verdict.VIEW: f"new view each time: {names}",
            Verdict.SCALAR: f"scalar changes: {names}",
            Verdict.TRANSIENT: f"allocated in step: {names}",
            Verdict.POINTER: f"pointer moves: {names}",
            Verdict.UNKNOWN: f"{verdict.value}{differs}",
        }.get(verdict, verdict.value)


@dataclass(frozen=True, kw_only=True)
class HostSync:
    """A place where the host waits for the device, or reads from it. A graph can't go across it."""

    file: str
    line: int
    what: str
    owner: str
    via: tuple[str, int] | None
    """For a package's line: file and line of the program's call that led there."""
    per_step: float
    wait_us: float
    """Time per step."""

    @property
    def where(self) -> str:
        """``file:line``."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, kw_only=True)
class AuditReport:
    """What an audit found. ``str()`` of it is the table that ``treadle audit`` prints.

    All times are host times per step [us]. ``host_us_per_step`` is measured; the others are estimates, made from what
    launches of kernels that do nothing cost on this machine.
    """

    program: str
    device: str
    step: str
    """What was taken as a step."""
    sureness: str
    """How much the steps are like each other."""
    steps: int
    sites: tuple[SiteReport, ...]
    """All call sites that were active in a step, those that cost the most first."""
    syncs: tuple[HostSync, ...]
    step_us: float
    """Time from one step to the next, without what the audit itself cost."""
    wait_us: float
    """Time of that in which the host waited for the device."""
    kernel_us: float
    """Time within launches in which the CPU ran kernels: in no other figure but ``step_us``. 0 on a GPU."""
    between_us: float
    """Rest of the time from step to step: Python between the launches. A graph skips what it holds of that, too."""
    host_us_per_step: float
    """Of all launches, as they are."""
    replay_us_per_step: float
    """With the program's own sites replayed that replay as they are."""
    edited_us_per_step: float
    """With all of the program's own sites replayed, after the suggested edits."""
    graph_us_per_step: float | None
    """With all launches in graphs, which host synchronizations divide; ``None`` without graphs on the device."""
    graph_breaks: tuple[str, ...] = ()
    """What must be edited before the step can be captured."""
    notes: tuple[str, ...] = field(default=())

    @property
    def launches_per_step(self) -> float:
        """Number of launches per step that Python issues one by one."""
        return sum(site.calls_per_step for site in self.sites if site.verdict is not Verdict.GRAPH)

    def to_json(self) -> str:
        """Return the report as a JSON object."""
        return json.dumps(_plain(self), indent=2)

    def __str__(self) -> str:
        """Return the report as a table with a summary and the suggested edits, at most 120 columns wide."""
        from treadle.launch.auditing.text import render

        return render(self)


def _list(names: list[str]) -> str:
    """Name the first three."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _plain(value: Any) -> Any:
    """Return a report as JSON's types."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        plain = {item.name: _plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
        if isinstance(value, SiteReport):
            plain["replayable"] = value.replayable
        if isinstance(value, AuditReport):
            plain |= {"steps_needed": MIN_STEPS, "conclusive": value.steps >= MIN_STEPS}
        return plain
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return round(value, 3) if isinstance(value, float) else value
