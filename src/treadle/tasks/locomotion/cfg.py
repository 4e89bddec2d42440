"""Configuration of the direct locomotion tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields

from treadle._checks import is_finite
from treadle.envs import DirectEnvCfg

__all__ = ["LocomotionEnvCfg", "LocomotionRewardCfg"]


@dataclass(kw_only=True)
class LocomotionRewardCfg:
    """Weights of the reward terms.

    Each term is multiplied by the step time, except ``terminating``, which acts once.
    """

    progress: float = 1.0
    """Speed towards the target [m/s]."""
    alive: float = 0.5
    """1 unless the episode ended in a terminal state."""
    upright: float = 0.1
    """1 while the up projection exceeds ``upright_threshold``."""
    move_to_target: float = 0.5
    """1 while the heading projection exceeds ``heading_threshold``, below it the share of the threshold."""
    action_l2: float = -0.005
    """Sum of squared actions."""
    energy: float = -0.05
    """Sum over joints of abs(action * joint velocity) times the joint's share of the largest gear [rad/s]."""
    joint_pos_limits: float = -0.1
    """Sum over joints of how far the normalized position exceeds ``joint_limit_threshold``, times the share of the
    gear."""
    terminating: float = -2.0
    """Paid once when the episode ends in a terminal state."""


@dataclass(kw_only=True)
class LocomotionEnvCfg(DirectEnvCfg):
    """A robot runs towards a target that it never reaches.

    The constants are those of Isaac Lab 3.0's tasks of the same names.
    """

    action_scale: float = 0.5
    """Effort = ``action_scale`` * gear * action, the action clamped to [-1, 1]."""
    joint_gears: dict[str, float] = field(default_factory=dict)
    """Gear [N*m] by regular expression of whole joint names."""
    target_pos: tuple[float, float, float] = (1000.0, 0.0, 0.0)
    """Target relative to the environment's origin [m]."""
    termination_height: float = 0.31
    """The episode terminates when the root is lower than this [m]."""
    joint_vel_scale: float = 0.2
    """Scale of joint velocities in the observation."""
    ang_vel_scale: float = 1.0
    """Scale of the root's angular velocity in the observation."""
    contact_force_scale: float = 0.1
    """Scale of the feet's joint wrenches in the observation."""
    feet_names: tuple[str, ...] = (".*_foot",)
    """Regular expressions of the bodies whose incoming joint wrench is observed."""
    upright_threshold: float = 0.93
    """Up projection above which the robot counts as upright."""
    heading_threshold: float = 0.8
    """Heading projection above which the robot counts as moving to the target."""
    joint_limit_threshold: float = 0.99
    """Normalized joint position, -1 to 1, beyond which a joint counts as at its limit."""
    reset_joint_pos_range: tuple[float, float] = (-0.2, 0.2)
    """Uniform offset of joint positions at a reset [rad], then clamped to the soft limits."""
    reset_joint_vel_range: tuple[float, float] = (-0.1, 0.1)
    """Uniform offset of joint velocities at a reset [rad/s]."""
    rewards: LocomotionRewardCfg = field(default_factory=LocomotionRewardCfg)
    """Weights of the reward terms."""

    def problems(self) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed, over the whole configuration."""
        yield from super().problems()
        if not self.joint_gears:
            yield "joint_gears is empty; allowed: a gear above 0 for every joint"
        for pattern, gear in self.joint_gears.items():
            if not (is_finite(gear) and gear > 0.0):
                yield f"joint_gears[{pattern!r}] is {gear}; allowed: a finite number above 0"
        yield from self._finite_problems()
        if not 0.0 < self.joint_limit_threshold < 1.0:
            yield f"joint_limit_threshold is {self.joint_limit_threshold}; allowed: between 0 and 1"
        if not 0.0 < self.heading_threshold <= 1.0:
            yield f"heading_threshold is {self.heading_threshold}; allowed: above 0, at most 1"
        for name in ("reset_joint_pos_range", "reset_joint_vel_range"):
            lower, upper = getattr(self, name)
            if not (is_finite(lower, upper) and lower <= upper):
                yield f"{name} is {(lower, upper)}; allowed: two finite numbers, the lower end first"

    def _finite_problems(self) -> Iterator[str]:
        scales = ("action_scale", "joint_vel_scale", "ang_vel_scale", "contact_force_scale")
        for name in (*scales, "termination_height", "upright_threshold"):
            if not is_finite(getattr(self, name)):
                yield f"{name} is {getattr(self, name)}; allowed: a finite number"
        if not (len(self.target_pos) == 3 and is_finite(*self.target_pos)):
            yield f"target_pos is {self.target_pos}; allowed: three finite numbers"
        for weight in fields(self.rewards):
            value = getattr(self.rewards, weight.name)
            if not is_finite(value):
                yield f"rewards.{weight.name} is {value}; allowed: a finite number"
