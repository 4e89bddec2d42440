"""Typed configuration of an articulation."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from treadle._checks import choice_problems, is_finite

__all__ = ["ActuatorCfg", "ArticulationCfg", "InitialStateCfg"]


@dataclass(kw_only=True)
class InitialStateCfg:
    """Default state of an articulation. A joint takes the value of the first pattern that matches its whole name."""

    pos: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Root position relative to the environment's origin [m]."""
    rot: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 1.0)
    """Root orientation, quaternion (x, y, z, w), world frame."""
    lin_vel: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Linear velocity of the root's centre of mass, world frame [m/s]."""
    ang_vel: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Angular velocity of the root, world frame [rad/s]."""
    joint_pos: dict[str, float] = field(default_factory=dict)
    """Joint position [rad or m] by regular expression. Joints that no pattern matches start at 0."""
    joint_vel: dict[str, float] = field(default_factory=dict)
    """Joint velocity [rad/s or m/s] by regular expression."""

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        for name in ("pos", "lin_vel", "ang_vel"):
            value = getattr(self, name)
            if not (len(value) == 3 and is_finite(*value)):
                yield f"{where}.{name} is {value}; allowed: three finite numbers"
        if not (len(self.rot) == 4 and is_finite(*self.rot) and abs(math.hypot(*self.rot) - 1.0) < 1e-3):
            yield f"{where}.rot is {self.rot}; allowed: a quaternion (x, y, z, w) of length 1"
        for name in ("joint_pos", "joint_vel"):
            for pattern, value in getattr(self, name).items():
                if not is_finite(value):
                    yield f"{where}.{name}[{pattern!r}] is {value}; allowed: a finite number"


@dataclass(kw_only=True)
class ActuatorCfg:
    """An implicit joint drive: the solver integrates its stiffness and damping.

    The torque is ``stiffness * (position target - position) - damping * velocity``, plus the commanded effort in effort
    mode. There the position target is the default position, unless something sets it. In velocity mode it is
    ``damping * (velocity target - velocity)``.
    """

    joint_names_expr: tuple[str, ...] = (".*",)
    """Regular expressions, each matched against whole joint names."""
    mode: Literal["effort", "position", "velocity"] = "effort"
    """What an action commands: a joint effort, or a position or velocity target of the drive."""
    stiffness: float = 0.0
    """Drive stiffness [N*m/rad or N/m]; 0 in velocity mode."""
    damping: float = 0.0
    """Drive damping [N*m*s/rad or N*s/m]; that of the joint itself in effort mode without stiffness."""
    armature: float = 0.0
    """Inertia added to the joint [kg*m^2 or kg]."""
    friction: float = 0.0
    """Dry joint friction [N*m or N]."""
    effort_limit: float = math.inf
    """Largest absolute effort [N*m or N], of the commanded effort and of the drive, each by itself; infinity leaves the
    limit of the file."""
    velocity_limit: float = math.inf
    """Largest absolute velocity [rad/s or m/s], for terms that refer to it; MuJoCo does not enforce it."""

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        for name in ("stiffness", "damping", "armature", "friction"):
            value = getattr(self, name)
            if not (is_finite(value) and value >= 0.0):
                yield f"{where}.{name} is {value}; allowed: a finite number of at least 0"
        for name in ("effort_limit", "velocity_limit"):
            if not getattr(self, name) > 0.0:
                yield f"{where}.{name} is {getattr(self, name)}; allowed: above 0"
        yield from choice_problems(self, f"{where}.")
        if self.mode == "velocity" and self.stiffness != 0.0:
            yield f"{where}.stiffness is {self.stiffness}; allowed: 0 in velocity mode"


@dataclass(kw_only=True)
class ArticulationCfg:
    """A robot: where its model comes from, its default state and its actuators."""

    asset_path: str = ""
    """Path of an MJCF file, or the name of a robot that Treadle ships."""
    init_state: InitialStateCfg = field(default_factory=InitialStateCfg)
    """State at the start and after a reset."""
    actuators: dict[str, ActuatorCfg] = field(default_factory=dict)
    """Actuator groups by name. Every joint belongs to one group at most."""
    self_collisions: bool = False
    """Whether bodies of the same articulation collide with each other."""
    soft_joint_pos_limit_factor: float = 1.0
    """Soft joint limits are the joint limits scaled about their middle by this factor."""

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        if not self.asset_path:
            yield f"{where}.asset_path is empty; allowed: the path of an MJCF file or the name of a shipped robot"
        if not 0.0 < self.soft_joint_pos_limit_factor <= 1.0:
            factor = self.soft_joint_pos_limit_factor
            yield f"{where}.soft_joint_pos_limit_factor is {factor}; allowed: above 0, at most 1"
        yield from self.init_state.problems(f"{where}.init_state")
        for name, actuator in self.actuators.items():
            yield from actuator.problems(f"{where}.actuators.{name}")
