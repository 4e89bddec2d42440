"""What the manager-based locomotion tasks share. Source of the constants: Isaac Lab 3.0, ``Ant`` and ``Humanoid``."""

from __future__ import annotations

from dataclasses import dataclass, field

from treadle import mdp
from treadle.envs import ManagerBasedRLEnvCfg
from treadle.managers import (
    EventTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    SceneEntityCfg,
    TerminationTermCfg,
)
from treadle.tasks.locomotion import mdp as locomotion

__all__ = [
    "FEET_SENSOR",
    "LocomotionManagerEnvCfg",
    "LocomotionNumbers",
    "locomotion_events",
    "locomotion_observations",
    "locomotion_rewards",
    "locomotion_terminations",
]

TARGET = (1000.0, 0.0, 0.0)
"""Target relative to the environment's origin [m]; nobody gets there in an episode."""
FEET_SENSOR = "feet_wrench"
"""Name of the sensor of the feet's joint wrenches."""


@dataclass(frozen=True, kw_only=True)
class LocomotionNumbers:
    """The numbers in which the robots differ."""

    gears: dict[str, float]
    """Gear [N*m] by regular expression of whole joint names."""
    ang_vel_scale: float
    """Scale of the root's angular velocity in the observation."""
    joint_vel_scale: float
    """Scale of joint velocities in the observation."""
    wrench_scale: float
    """Scale of the feet's joint wrenches in the observation."""
    termination_height: float
    """The episode terminates when the root is lower than this [m]."""
    joint_limit_threshold: float
    """Normalized joint position beyond which a joint counts as at its limit."""
    alive: float
    """Weight of being alive."""
    action_l2: float
    """Weight of the squared actions."""
    energy: float
    """Weight of the power."""
    joint_pos_limits: float
    """Weight of joints at their limits."""
    terminating: float
    """Weight of ending in a terminal state, paid once."""


def locomotion_observations(numbers: LocomotionNumbers) -> dict[str, ObservationGroupCfg | None]:
    """Return the observation group of the policy."""
    feet = SceneEntityCfg(name=FEET_SENSOR)
    terms: dict[str, ObservationTermCfg | None] = {
        "base_height": ObservationTermCfg(func=mdp.base_pos_z),
        "base_lin_vel": ObservationTermCfg(func=mdp.base_lin_vel),
        "base_ang_vel": ObservationTermCfg(func=mdp.base_ang_vel, scale=numbers.ang_vel_scale),
        "base_yaw_roll": ObservationTermCfg(func=locomotion.base_yaw_roll),
        "base_angle_to_target": ObservationTermCfg(func=locomotion.base_angle_to_target, params={"target_pos": TARGET}),
        "base_up_proj": ObservationTermCfg(func=locomotion.base_up_proj),
        "base_heading_proj": ObservationTermCfg(func=locomotion.base_heading_proj, params={"target_pos": TARGET}),
        "joint_pos_norm": ObservationTermCfg(func=mdp.joint_pos_limit_normalized),
        "joint_vel_rel": ObservationTermCfg(func=mdp.joint_vel_rel, scale=numbers.joint_vel_scale),
        "feet_body_forces": ObservationTermCfg(
            func=mdp.body_incoming_wrench, params={"sensor_cfg": feet}, scale=numbers.wrench_scale
        ),
        "actions": ObservationTermCfg(func=mdp.last_action),
    }
    return {"policy": ObservationGroupCfg(terms=terms)}


def locomotion_rewards(numbers: LocomotionNumbers) -> dict[str, RewardTermCfg | None]:
    """Return the reward terms."""
    return {
        "progress": RewardTermCfg(func=locomotion.progress_reward, weight=1.0, params={"target_pos": TARGET}),
        "alive": RewardTermCfg(func=mdp.is_alive, weight=numbers.alive),
        "upright": RewardTermCfg(func=locomotion.upright_posture_bonus, weight=0.1, params={"threshold": 0.93}),
        "move_to_target": RewardTermCfg(
            func=locomotion.move_to_target_bonus, weight=0.5, params={"threshold": 0.8, "target_pos": TARGET}
        ),
        "action_l2": RewardTermCfg(func=mdp.action_l2, weight=numbers.action_l2),
        "energy": RewardTermCfg(
            func=locomotion.power_consumption, weight=numbers.energy, params={"gear_ratio": dict(numbers.gears)}
        ),
        "joint_pos_limits": RewardTermCfg(
            func=locomotion.joint_pos_limits_penalty_ratio,
            weight=numbers.joint_pos_limits,
            params={"threshold": numbers.joint_limit_threshold, "gear_ratio": dict(numbers.gears)},
        ),
        "terminating": RewardTermCfg(func=locomotion.terminated_penalty, weight=numbers.terminating),
        "success_rate": RewardTermCfg(func=mdp.survival_success_rate, weight=0.0),
    }


def locomotion_terminations(numbers: LocomotionNumbers) -> dict[str, TerminationTermCfg | None]:
    """Return the termination terms."""
    return {
        "time_out": TerminationTermCfg(func=mdp.time_out, time_out=True),
        "torso_height": TerminationTermCfg(
            func=mdp.root_height_below_minimum, params={"minimum_height": numbers.termination_height}
        ),
    }


def locomotion_events() -> dict[str, EventTermCfg | None]:
    """Return the event terms: the root starts where it stands, the joints nearly so."""
    return {
        "reset_base": EventTermCfg(func=mdp.reset_scene_to_default),
        "reset_robot_joints": EventTermCfg(
            func=mdp.reset_joints_by_offset, params={"position_range": (-0.2, 0.2), "velocity_range": (-0.1, 0.1)}
        ),
    }


@dataclass(kw_only=True)
class LocomotionManagerEnvCfg(ManagerBasedRLEnvCfg):
    """A robot runs towards a target that it never reaches, as a set of terms."""

    decimation: int = 2
    """Physics steps per environment step."""
    episode_length_s: float = 16.0
    """Length of an episode [s]."""
    events: dict[str, EventTermCfg | None] = field(default_factory=locomotion_events)
    """Event terms by name."""
