"""Typed configuration of the scene."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from treadle._checks import count_problems, is_finite
from treadle.assets import ArticulationCfg
from treadle.sensors import SensorCfg

__all__ = ["SceneCfg"]


@dataclass(kw_only=True)
class SceneCfg:
    """What stands in each environment, and how many environments there are."""

    num_envs: int = 4096
    """Number of environments."""
    env_spacing: float = 5.0
    """Distance between the origins of neighbouring environments on a square grid [m]. Environments never interact."""
    robot: ArticulationCfg = field(default_factory=ArticulationCfg)
    """The robot."""
    sensors: dict[str, SensorCfg] = field(default_factory=dict)
    """Sensors on the robot by name."""

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        yield from count_problems(self, f"{where}.", ("num_envs",), 2**24)
        if not (is_finite(self.env_spacing) and 0.0 <= self.env_spacing <= 1e3):
            yield f"{where}.env_spacing is {self.env_spacing}; allowed: 0 to 1000 m"
        yield from self.robot.problems(f"{where}.robot")
        for name, sensor in self.sensors.items():
            if name in ("", "robot"):
                yield f"{where}.sensors has the name {name!r}; allowed: any name but '' and 'robot'"
            yield from sensor.problems(f"{where}.sensors.{name}")
