"""Typed configuration shared by all environments."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from treadle._checks import choice_problems, count_problems, is_finite, type_problems
from treadle.errors import ConfigError
from treadle.physics import SimulationCfg
from treadle.scene import SceneCfg

__all__ = ["DirectEnvCfg", "EnvCfg", "LaunchCfg"]


@dataclass(kw_only=True)
class LaunchCfg:
    """How kernels are launched; see :mod:`treadle.launch`."""

    mode: Literal["eager", "replay", "graph", "auto"] | None = None
    """Launch mode; ``None`` takes ``TREADLE_LAUNCH_MODE``, else ``auto``."""
    contract: Literal["checked", "trusted", "debug"] | None = None
    """How replays verify their arguments; ``None`` takes ``TREADLE_LAUNCH_CONTRACT``, else ``checked``."""

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        yield from choice_problems(self, f"{where}.")


@dataclass(kw_only=True)
class EnvCfg:
    """Configuration that direct and manager-based environments share."""

    decimation: int = 2
    """Physics steps per environment step."""
    episode_length_s: float = 16.0
    """Length of an episode [s]."""
    seed: int = 42
    """Seed of the environments' random numbers."""
    sim: SimulationCfg = field(default_factory=SimulationCfg)
    """The simulation."""
    scene: SceneCfg = field(default_factory=SceneCfg)
    """The scene."""
    launch: LaunchCfg = field(default_factory=LaunchCfg)
    """How kernels are launched."""

    @property
    def step_dt(self) -> float:
        """Time between two actions [s]."""
        return self.decimation * self.sim.dt

    @property
    def max_episode_length(self) -> int:
        """Length of an episode in environment steps."""
        return math.ceil(self.episode_length_s / self.step_dt - 1e-6)

    def problems(self) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed, over the whole configuration."""
        yield from count_problems(self, "", ("decimation",), 10_000)
        if not (is_finite(self.episode_length_s) and 0.0 < self.episode_length_s <= 1e6):
            yield f"episode_length_s is {self.episode_length_s}; allowed: above 0, at most 1000000 s"
        elif is_finite(self.sim.dt) and self.step_dt > 0.0 and not 1 <= self.max_episode_length < 2**31:
            yield f"episode_length_s is {self.episode_length_s}; allowed: at least one step of {self.step_dt:g} s"
        if not 0 <= self.seed < 2**31:
            yield f"seed is {self.seed}; allowed: 0 to 2147483647"
        yield from self.sim.problems("sim")
        yield from self.scene.problems("scene")
        yield from self.launch.problems("launch")

    def validate(self) -> None:
        """Check all values.

        Raises:
            ConfigError: One or more values are not allowed; all are reported together.
        """
        wrong_types = list(type_problems(self))
        try:
            wrong_values = list(self.problems())
        except (AttributeError, TypeError, ValueError):
            if not wrong_types:
                raise
            wrong_values = []  # the values can't be judged before their types are right
        reported = {_path(problem) for problem in wrong_values}
        problems = [problem for problem in wrong_types if _path(problem) not in reported] + wrong_values
        if problems:
            raise ConfigError.from_problems(problems)


def _path(problem: str) -> str:
    """Return the path that a sentence begins with, written with dots alone."""
    return re.sub(r"\['(\w+)'\]", r".\1", problem.split(" is ")[0])


@dataclass(kw_only=True)
class DirectEnvCfg(EnvCfg):
    """Configuration of a direct environment. Tasks derive from it and change the defaults."""
