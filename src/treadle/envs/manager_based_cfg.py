"""Typed configuration of manager-based environments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from treadle.envs.cfg import EnvCfg
from treadle.managers import (
    ActionTermCfg,
    CommandTermCfg,
    CurriculumTermCfg,
    EventTermCfg,
    ObservationGroupCfg,
    RecorderTermCfg,
    RecordingCfg,
    RewardTermCfg,
    TerminationTermCfg,
)
from treadle.managers.cfg import name_problems, pairs_of

__all__ = ["ManagerBasedRLEnvCfg"]

_MANAGERS: dict[str, type] = {
    "observations": ObservationGroupCfg,
    "actions": ActionTermCfg,
    "rewards": RewardTermCfg,
    "terminations": TerminationTermCfg,
    "commands": CommandTermCfg,
    "events": EventTermCfg,
    "curriculum": CurriculumTermCfg,
    "recorders": RecorderTermCfg,
}
"""Type of the terms of each field."""


@dataclass(kw_only=True)
class ManagerBasedRLEnvCfg(EnvCfg):
    """Configuration of an environment that is a set of terms. One configuration serves both frontends.

    A term, or a group of observations, that is ``None`` is left out.
    """

    observations: dict[str, ObservationGroupCfg | None] = field(default_factory=dict)
    """Observation groups by name."""
    actions: dict[str, ActionTermCfg] = field(default_factory=dict)
    """Action terms by name, in the order of their columns."""
    rewards: dict[str, RewardTermCfg | None] = field(default_factory=dict)
    """Reward terms by name."""
    terminations: dict[str, TerminationTermCfg | None] = field(default_factory=dict)
    """Termination terms by name."""
    commands: dict[str, CommandTermCfg | None] = field(default_factory=dict)
    """Command terms by name."""
    events: dict[str, EventTermCfg | None] = field(default_factory=dict)
    """Event terms by name. They run in this order."""
    curriculum: dict[str, CurriculumTermCfg | None] = field(default_factory=dict)
    """Curriculum terms by name."""
    recorders: dict[str, RecorderTermCfg | None] = field(default_factory=dict)
    """Recorder terms by name. They cost a synchronization each step, and nothing where there are none."""
    recording: RecordingCfg = field(default_factory=RecordingCfg)
    """Where recorder terms write to."""
    allow_torch_terms: bool = False
    """Warp frontend: whether terms without a Warp form run in torch, between graphs, rather than being an error."""

    def problems(self) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed, over the whole configuration."""
        yield from super().problems()
        yield from self.recording.problems("recording")
        for name in ("observations", "actions"):
            if all(term is None for _, term in pairs_of(getattr(self, name))):
                yield f"{name} is empty; allowed: at least one"
        for manager, kind in _MANAGERS.items():
            yield from _term_problems(getattr(self, manager), kind, manager)


def _term_problems(terms: Any, kind: type, manager: str) -> Iterator[str]:
    """Yield one sentence for each value that is not allowed in the terms of a manager."""
    if is_dataclass(terms):
        terms = {f.name: getattr(terms, f.name) for f in fields(terms)}
    if not isinstance(terms, dict):
        yield f"{manager} is {terms!r}; allowed: a dictionary of terms, or a dataclass with a field for each"
        return
    for name, term in terms.items():
        where = f"{manager}.{name}"
        yield from name_problems(name, manager)
        if isinstance(term, kind):
            yield from term.problems(where)  # type: ignore[attr-defined]
        elif term is not None:
            yield f"{where} is {term!r}; allowed: {_article(kind.__name__)}, or None"


def _article(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"
