"""From what was noted to the report."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median

import warp as wp

from treadle.launch.auditing.classify import classify
from treadle.launch.auditing.costs import Costs
from treadle.launch.auditing.edits import suggest
from treadle.launch.auditing.events import Event, Place, Recording, Step
from treadle.launch.auditing.report import (
    DONE,
    GRAPH_BREAKS,
    UNREPLAYABLE,
    AuditReport,
    HostSync,
    SiteReport,
    Verdict,
)

__all__ = ["Measured", "build_report", "main_device"]

_MIN_US = 0.05
_NO_GAIN = (
    "keep the value in device memory, which a graph needs as well; as long as it changes, replay as below saves "
    "nothing: writing it into the recorded launch costs what the launch does"
)
_MAX_SLOWDOWN = 4.0


@dataclass(frozen=True)
class Measured:
    """What was measured after the program ran."""

    costs: Costs
    hook_outside_us: float
    hook_inside_us: float


def main_device(recording: Recording) -> str:
    """Return the device that most launches went to, the current one if there are none."""
    devices = Counter(event.device for event in recording.events if event.device)
    return devices.most_common(1)[0][0] if devices else wp.get_device().alias


def build_report(
    program: str,
    recording: Recording,
    steps: Sequence[Step],
    what: str,
    measured: Measured,
    notes: Sequence[str] = (),
) -> AuditReport:
    """Return the report of some steps.

    Args:
        program: Name of what was audited.
        recording: What was noted.
        steps: The steps to report.
        what: What was taken as a step.
        measured: Costs of launches on this machine, and of the audit.
        notes: To be shown below the summary.
    """
    groups = [_by_place(recording.events[step.start : step.stop]) for step in steps]
    by_place = {
        place: [(step, group.get(place, [])) for step, group in zip(steps, groups, strict=True)]
        for place in dict.fromkeys(place for group in groups for place in group)
    }
    cpu = main_device(recording) == "cpu"
    costs = {place: _SiteCosts(calls, measured, cpu) for place, calls in by_place.items() if place.kind != "sync"}
    calibrated = sum(cost.calibrated for cost in costs.values())
    slowdown = sum(cost.host for cost in costs.values() if cost.calibrated) / calibrated if calibrated else 1.0
    sites = [_site(by_place[place], cost, min(max(slowdown, 1.0), _MAX_SLOWDOWN)) for place, cost in costs.items()]
    reports = tuple(sorted(sites, key=lambda site: -site.host_us))
    host_us = sum(site.host_us for site in reports)
    kernel_us = sum(cost.kernels for cost in costs.values())
    syncs = tuple(_sync(calls) for place, calls in by_place.items() if place.kind == "sync")
    step_us, wait_us = _step_time(recording, steps, measured, syncs)
    return AuditReport(
        program=program,
        device=str(main_device(recording)),
        step=what,
        sureness=_sureness(recording, steps),
        steps=len(steps),
        sites=reports,
        syncs=syncs,
        step_us=step_us,
        wait_us=wait_us,
        kernel_us=kernel_us,
        between_us=max(step_us - wait_us - host_us - kernel_us, 0.0),
        host_us_per_step=host_us,
        replay_us_per_step=sum(site.replay_us if site.replayable else site.host_us for site in reports),
        edited_us_per_step=sum(site.replay_us for site in reports),
        graph_us_per_step=_graph_us(recording, steps, reports, measured.costs),
        graph_breaks=_graph_breaks(reports, syncs),
        notes=(*notes, *_notes(recording, steps, cpu, step_us, wait_us)),
    )


def _by_place(events: Sequence[Event]) -> dict[Place, list[Event]]:
    groups: dict[Place, list[Event]] = defaultdict(list)
    for event in events:
        groups[event.place].append(event)
    return groups


class _SiteCosts:
    """Host time of a site per step [us].

    Args:
        calls: Its events by step.
        measured: What launches cost on this machine.
        cpu: Whether kernels run within the launch: then ``host`` is what is left without them.
    """

    def __init__(self, calls: list[tuple[Step, list[Event]]], measured: Measured, cpu: bool):
        events = [event for _, launches in calls for event in launches]
        signatures, costs = events[0].signatures, measured.costs
        self.calls = len(events) / len(calls)
        arrays = sum(signature.kind in ("array", "indexedarray", "buffer") for signature in signatures)
        eager = bool(signatures) and events[0].place.kind == "launch"
        self.calibrated = self.calls * costs.eager_us(len(signatures) - arrays, arrays) if eager else 0.0
        self._measured, self._arguments = measured, len(signatures)
        self.node = self.calls * costs.graph_per_launch
        totals = [sum(event.cost_ns for event in launches) / 1000.0 for _, launches in calls]
        whole = median(totals) if all(launches for _, launches in calls) else fmean(totals)
        own = measured.hook_inside_us + (measured.hook_outside_us if events[0].cached is not None else 0.0)
        whole = max(whole - self.calls * own, _MIN_US * self.calls)
        self.host = min(whole, self._packing(events, measured)) if cpu else whole
        self.kernels = whole - self.host

    def replayed(self, patched: int = 0) -> float:
        """Return what replays cost, some of whose arguments are numbers that change."""
        return self.calls * self._measured.costs.replay_us(self._arguments, patched)

    def _packing(self, events: list[Event], measured: Measured) -> float:
        """Return what calls cost without their kernels: measured for some of them, else as calibrated."""
        kind, costs, arguments = events[0].place.kind, measured.costs, len(events[0].signatures)
        if kind == "graph":
            nodes = sum(event.size for event in events) / len(events)
            return self.calls * ((costs.graph or 0.0) + nodes * costs.graph_per_launch)
        sampled = [event.packing_ns / 1000.0 for event in events if event.packing_ns]
        if kind == "replay":
            around = median(sampled) - measured.hook_inside_us - measured.hook_outside_us if sampled else 0.0
            return self.calls * max(costs.command_us(arguments) + around, costs.replay_us(arguments))
        return self.calls * median(sampled) if sampled else self.calibrated or float("inf")


def _site(calls: list[tuple[Step, list[Event]]], cost: _SiteCosts, slowdown: float) -> SiteReport:
    """Return the report of a site.

    Args:
        calls: Its events by step.
        cost: What it costs.
        slowdown: How much dearer launches are in the program than in the calibration, where caches are warm.
    """
    events = [event for _, launches in calls for event in launches]
    first, finding = events[0], classify(calls)
    fixed = finding.verdict in DONE or first.place.owner != "user"
    fixed = fixed or bool({finding.verdict, *finding.also} & UNREPLAYABLE)
    numbers = sum(change.verdict is Verdict.SCALAR for change in finding.changes)
    replay = cost.host if fixed else min(cost.host, cost.replayed(numbers) * slowdown)
    graph = cost.host if finding.verdict is Verdict.GRAPH else min(cost.host, cost.node)
    edit, code = suggest(first.place, first.via, finding)
    worst = finding.also[-1:] if finding.verdict is Verdict.UNSTABLE else (finding.verdict,)
    if code and Verdict.SCALAR in worst and replay > 0.9 * cost.host:
        edit = _NO_GAIN
    return SiteReport(
        file=first.place.file,
        line=first.place.line,
        function=first.place.function,
        kernel=first.place.kernel,
        owner=first.place.owner,
        via=None if first.via is None else (first.via.file, first.via.line),
        verdict=finding.verdict,
        calls_per_step=cost.calls,
        sets=finding.sets,
        steady=finding.steady,
        changes=finding.changes,
        also=finding.also,
        patched=finding.patched,
        host_us=cost.host,
        replay_us=replay,
        graph_us=graph,
        graph_launches=sum(event.size for event in events) / len(calls),
        edit=edit,
        code=code,
    )


def _sync(calls: list[tuple[Step, list[Event]]]) -> HostSync:
    events = [event for _, syncs in calls for event in syncs]
    place, caller = events[0].place, events[0].via
    return HostSync(
        file=place.file,
        line=place.line,
        what=place.kernel,
        owner=place.owner,
        via=None if caller is None else (caller.file, caller.line),
        per_step=len(events) / len(calls),
        wait_us=median(sum(event.cost_ns for event in syncs) / 1000.0 for _, syncs in calls),
    )


def _step_time(
    recording: Recording, steps: Sequence[Step], measured: Measured, syncs: Sequence[HostSync]
) -> tuple[float, float]:
    """Return the time from step to step without the audit's own, and the share of it in which the host waited."""
    events = recording.events
    marks = [(step.start, events[step.start].start_ns, events[step.start].hook_ns) for step in steps if _has(step)]
    if len(marks) < 2:
        marks.append((len(events), recording.end_ns, recording.hook_ns))
    periods = [
        (now[1] - before[1] - now[2] + before[2]) / 1000.0
        - sum(_hooks(event) for event in events[before[0] : now[0]]) * measured.hook_outside_us
        for before, now in pairwise(marks)
    ]
    drain_us = recording.drain_ns / 1000.0 / len(steps) if main_device(recording) != "cpu" else 0.0
    step_us = max(median(periods), 0.0) if periods else 0.0
    return step_us + drain_us, sum(sync.wait_us for sync in syncs) + drain_us


def _hooks(event: Event) -> int:
    """Return how many calls were routed for an event: of a launch cache, its own and the recorded command's."""
    return 1 if event.cached is None else 2


def _has(step: Step) -> bool:
    return step.stop > step.start


def _sureness(recording: Recording, steps: Sequence[Step]) -> str:
    """Say how many of the steps are like each other."""
    runs = [tuple(event.place for event in recording.events[step.start : step.stop]) for step in steps]
    (usual, count), *_ = Counter(runs).most_common()
    launches = _name_kinds(usual)
    if len(runs) == 1:
        return f"it has {launches}"
    if count == len(runs):
        return f"all {count} steps have the same {launches}"
    lengths = sorted(sum(place.kind != "sync" for place in run) for run in runs)
    return f"{count} of {len(runs)} steps have the same {launches}; all have {lengths[0]} to {lengths[-1]}"


def _name_kinds(places: Sequence[Place]) -> str:
    """Return how many launches, and graphs, a step has."""
    graphs = sum(place.kind == "graph" for place in places)
    number = sum(place.kind != "sync" for place in places) - graphs
    launches = "1 launch" if number == 1 else f"{number} launches"
    named = "1 graph" if graphs == 1 else f"{graphs} graphs"
    return f"{launches} and {named}" if graphs and number else named if graphs else launches


def _graph_us(recording: Recording, steps: Sequence[Step], sites: Sequence[SiteReport], costs: Costs) -> float | None:
    """Return what the step costs with its launches in graphs, which synchronizations divide."""
    if costs.graph is None:
        return None
    islands = 0
    for step in steps:
        kinds = [event.place.kind for event in recording.events[step.start : step.stop]]
        starts = zip(["sync", *kinds], kinds, strict=False)
        islands += sum(kind in ("launch", "replay") and before in ("sync", "graph") for before, kind in starts)
    return sum(site.graph_us for site in sites) + costs.graph * islands / len(steps)


def _graph_breaks(sites: Sequence[SiteReport], syncs: Sequence[HostSync]) -> tuple[str, ...]:
    """Say what is in the way of a graph, the program's own first."""
    found = [f"{sync.where}: {sync.what} reads or waits on the host{_from(sync.via)}" for sync in syncs]
    for site in sorted(sites, key=lambda site: site.owner != "user"):
        obstacles = _obstacles(site)
        if obstacles:
            found.append(f"{site.where}: {site.kernel}: {'; '.join(obstacles)}{_from(site.via)}")
    return tuple(found)


def _obstacles(site: SiteReport) -> list[str]:
    """Return what a graph of a site can't hold, replayed or not."""
    found = []
    for verdict in (site.verdict, *site.also):
        if verdict in GRAPH_BREAKS:
            found.append(site.phrase(verdict))
        elif verdict is Verdict.UNKNOWN and site.changes:
            found.append(site.phrase(verdict))
        elif verdict is Verdict.SCALAR:
            found.append(f"{site.phrase(verdict)}; a graph would freeze it")
        elif verdict is Verdict.ALTERNATING and not site.steady:
            found.append(
                f"{site.phrase(verdict)} alternate from step to step: swap an even number of times in a graph, or copy"
            )
    return found


def _is_transient(event: Event, steps: Sequence[Step]) -> bool:
    begin = steps[0].start
    return any(root is not None and root.owns and root.when >= begin for _, root in event.births.values())


def _from(via: tuple[str, int] | None) -> str:
    return "" if via is None else f", called from {via[0]}:{via[1]}"


def _notes(recording: Recording, steps: Sequence[Step], cpu: bool, step_us: float, wait_us: float) -> list[str]:
    """Say what else is to be known."""
    notes = []
    events = [event for step in steps for event in recording.events[step.start : step.stop]]
    streams = {(event.device, event.stream) for event in events if event.stream is not None}
    devices = {event.device for event in events if event.device}
    if len(devices) > 1:
        notes.append(
            f"launches go to several devices ({', '.join(sorted(devices))}): a launch cache has one device each"
        )
    elif len(streams) > 1:
        notes.append(
            f"launches go to {len(streams)} streams: pass stream= at each call; a graph needs them joined by events"
        )
    transient = sum(event.place.kind == "launch" and _is_transient(event, steps) for event in events) / len(steps)
    if transient:
        notes.append(
            f"arrays that are allocated in the step are used by {transient:.4g} of its launches: a graph keeps their "
            "memory for as long as it lives"
        )
    if recording.other_threads:
        notes.append(f"{recording.other_threads} launches of other threads are not in this report")
    if not cpu and step_us > 0 and wait_us > 0.2 * step_us:
        notes.append(
            f"the device is busy: the host waited {wait_us:.0f} of {step_us:.0f} us for it; less host time will not "
            "shorten the step by more than what the device leaves"
        )
    return notes
