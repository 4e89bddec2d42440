"""What changes at a call site from step to step."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from treadle.launch.auditing.events import Event, Step
from treadle.launch.auditing.report import FACTS, MIN_STEPS, ArgumentChange, Verdict

__all__ = ["Finding", "classify"]

_SHOWN = 3
_ORDER = list(Verdict)

_SiteCalls = Sequence[tuple[Step, list[Event]]]
"""The events of one site, by step."""


@dataclass(frozen=True)
class Finding:
    """What a site is like."""

    verdict: Verdict
    sets: int
    changes: tuple[ArgumentChange, ...]
    also: tuple[Verdict, ...]
    names: tuple[str, ...] = ()
    """Names of the kernel's arguments."""
    steady: bool = True
    """Whether each step has the same argument sets in the same order."""
    patched: tuple[str, ...] = ()
    """Arguments that a launch cache patches at each call."""


def classify(calls: _SiteCalls) -> Finding:
    """Tell what kind of site this is.

    What recurs is told from what changes by the second half of the steps: it brings nothing that the first half did not
    have. With fewer than ``MIN_STEPS`` steps that can't be told, and only what needs no comparison is.

    Args:
        calls: For each step, in order, its launches at this site.
    """
    events = [event for _, events in calls for event in events]
    kind, captured = events[0].place.kind, any(event.captured for event in events)
    if kind == "graph" or (kind == "replay" and captured):
        return Finding(Verdict.GRAPH if kind == "graph" else Verdict.REPLAYED, 1, (), ())
    changes: list[ArgumentChange] = []
    if not captured:
        changes = [change for index in range(len(events[0].names)) for change in _argument(calls, events, index)]
    verdicts = {*_conditions(calls, events), *(change.verdict for change in changes)}
    keys = [[_recurring(event, changes, verdicts) for event in launches] for _, launches in calls]
    sets = 1 if captured else len({key for step in keys for key in step})
    if sets > 1 and not changes and not verdicts:
        verdicts = {Verdict.ALTERNATING}
    patched: tuple[str, ...] = ()
    if kind == "replay":
        unstable = [event for event in events if event.cached is not None and event.cached.stats.unstable]
        head, patched = Verdict.UNSTABLE if unstable else Verdict.REPLAYED, _patched(unstable, changes)
    else:
        head = max(verdicts, key=_ORDER.index, default=Verdict.STABLE)
    if len(calls) < MIN_STEPS:
        changes = [replace(change, verdict=Verdict.UNKNOWN) for change in changes]
        verdicts = {*verdicts & FACTS, Verdict.UNKNOWN}
        head = head if head in FACTS and head is not Verdict.CONDITIONAL else Verdict.UNKNOWN
    also = sorted(verdicts - {head}, key=_ORDER.index)
    steady = len(set(map(tuple, keys))) == 1
    return Finding(head, sets, tuple(changes), tuple(also), events[0].names, steady, patched)


def recurs(calls: _SiteCalls, values: Iterable[Iterable[Hashable]]) -> bool:
    """Return whether the second half of the steps brings no value that the first half did not have."""
    by_step = [set(step) for step in values]
    half = (len(calls) + 1) // 2
    return set().union(*by_step[half:]) <= set().union(*by_step[:half])


def _recurring(event: Event, changes: Iterable[ArgumentChange], verdicts: set[Verdict]) -> Hashable:
    """Return what tells the argument sets apart: what recurs, without what is new each time."""
    names = {change.name.partition(".")[0] for change in changes if change.verdict is Verdict.ALTERNATING}
    arguments = zip(event.names, event.signatures, strict=False)
    return (
        None if Verdict.KERNEL in verdicts else event.kernel,
        None if Verdict.DIM in verdicts else event.dim,
        event.block_dim,
        tuple(signature for name, signature in arguments if name in names),
    )


def _patched(events: Sequence[Event], changes: Iterable[ArgumentChange]) -> tuple[str, ...]:
    """Return the names of what is not the same from one call of a launch cache's site to the next."""
    if not events:
        return ()
    names: dict[str, None] = {change.name: None for change in changes if change.verdict is Verdict.VIEW}
    last: dict[int, Event] = {}
    for event in events:
        assert event.cached is not None
        before = last.get(id(event.cached.stats))
        last[id(event.cached.stats)] = event
        if before is None:
            continue
        pairs = zip(event.names, before.signatures, event.signatures, strict=False)
        names |= {name: None for name, old, new in pairs if old != new and name not in event.cached.dynamic}
        if before.dim != event.dim:
            names["dim"] = None
    return tuple(names)


def _conditions(calls: _SiteCalls, events: list[Event]) -> list[Verdict]:
    """Return what concerns the launches as a whole."""
    found = []
    if any(event.captured for event in events):
        found.append(Verdict.CAPTURED)
    if any(event.taped or event.adjoint for event in events):
        found.append(Verdict.TAPE)
    if len({len(launches) for _, launches in calls}) > 1:
        found.append(Verdict.CONDITIONAL)
    if not recurs(calls, [[event.kernel for event in launches] for _, launches in calls]):
        found.append(Verdict.KERNEL)
    if not recurs(calls, [[event.dim for event in launches] for _, launches in calls]):
        found.append(Verdict.DIM)
    return found


def _argument(calls: _SiteCalls, events: list[Event], index: int) -> list[ArgumentChange]:
    """Return how one argument changes: nothing, one change, or some fields of a struct."""
    values = [event.signatures[index] for event in events if index < len(event.signatures)]
    name = events[0].names[index]
    shown = tuple(dict.fromkeys(str(value) for value in values))[:_SHOWN]
    born = _born(calls, index)
    if born is not None:
        return [ArgumentChange(name=name, verdict=born[0], shown=shown, allocated_at=born[1])]
    if len(set(values)) <= 1:
        return []
    by_step = [
        [event.signatures[index] for event in launches if index < len(event.signatures)] for _, launches in calls
    ]
    return _changes(calls, name, by_step)


def _changes(calls: _SiteCalls, name: str, by_step: list[list[Any]]) -> list[ArgumentChange]:
    """Return how a value changes, field by field where it is a struct."""
    values = [value for step in by_step for value in step]
    if all(value.kind == "struct" for value in values) and len({value.content.name for value in values}) == 1:
        fields = []
        for number, (field_name, _) in enumerate(values[0].content.fields):
            parts = [[value.content.fields[number][1] for value in step] for step in by_step]
            if len({part for step in parts for part in step}) > 1:
                fields += _changes(calls, f"{name}.{field_name}", parts)
        return fields
    verdict = Verdict.ALTERNATING
    if not recurs(calls, by_step):
        verdict = Verdict.SCALAR if all(value.kind == "value" for value in values) else Verdict.POINTER
    shown = tuple(dict.fromkeys(str(value) for value in values))[:_SHOWN]
    return [ArgumentChange(name=name, verdict=verdict, shown=shown)]


def _born(calls: _SiteCalls, index: int) -> tuple[Verdict, str] | None:
    """Return whether an array is made in the steps, and where.

    An array that is allocated in the step that uses it is transient; one that the step before allocated has a pointer
    that moves. A view of an array that stays is told from both.
    """
    begin = calls[0][0].start
    found: dict[Verdict, list[str]] = {Verdict.POINTER: [], Verdict.TRANSIENT: [], Verdict.VIEW: []}
    seen: set[int] = set()
    for step, launches in calls:
        pairs = [event.births[index] for event in launches if index in event.births]
        owners = [root for _, root in pairs if root is not None and root.owns and root.when >= begin]
        new = [birth for birth in owners if id(birth) not in seen][:1]
        views = [own for own, _ in pairs if own is not None and own.when >= step.start][:1]
        seen.update(map(id, owners))
        for birth in new:
            found[Verdict.TRANSIENT if birth.when >= step.start else Verdict.POINTER].append(birth.place.where)
        found[Verdict.VIEW] += [birth.place.where for birth in views]
    # An array that is made once, at its first use, is new in one step only.
    often = max(1, sum(bool(launches) for _, launches in calls) // 2)
    for verdict, places in found.items():
        if len(places) > often:
            return verdict, max(set(places), key=places.count)
    return None
