"""Typed configuration of manager-based environments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields

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

__all__ = ["ManagerBasedRLEnvCfg"]

_MANAGERS = (
    "observations",
    "actions",
    "rewards",
    "terminations",
    "commands",
    "events",
    "curriculum",
    "recorders",
)


@dataclass(kw_only=True)
class ManagerBasedRLEnvCfg(EnvCfg):
    """Configuration of an environment that is a set of terms. One configuration serves both frontends.

    A term that is ``None`` is left out.
    """

    observations: dict[str, ObservationGroupCfg] = field(default_factory=dict)
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
            if not getattr(self, name):
                yield f"{name} is empty; allowed: at least one"
        for manager in _MANAGERS:
            terms = getattr(self, manager)
            pairs = (
                terms.items() if isinstance(terms, dict) else ((f.name, getattr(terms, f.name)) for f in fields(terms))
            )
            for name, term in pairs:
                if term is not None:
                    yield from term.problems(f"{manager}.{name}")
