"""Configuration of the humanoid tasks. Source of the constants: Isaac Lab 3.0, task ``Humanoid-Direct``."""

from __future__ import annotations

from dataclasses import dataclass, field

from treadle.physics import MJWarpSolverCfg, SimulationCfg
from treadle.scene import SceneCfg
from treadle.tasks.humanoid.robot import JOINT_GEARS, humanoid_articulation
from treadle.tasks.locomotion.cfg import LocomotionEnvCfg, LocomotionRewardCfg

__all__ = ["HumanoidDirectEnvCfg"]


def _rewards() -> LocomotionRewardCfg:
    return LocomotionRewardCfg(alive=2.0, action_l2=-0.01, energy=-0.005, joint_pos_limits=-0.25, terminating=-1.0)


def _sim() -> SimulationCfg:
    return SimulationCfg(dt=1.0 / 120.0, substeps=2, solver=MJWarpSolverCfg(njmax=80, nconmax=25))


def _scene() -> SceneCfg:
    return SceneCfg(num_envs=4096, env_spacing=5.0, robot=humanoid_articulation())


@dataclass(kw_only=True)
class HumanoidDirectEnvCfg(LocomotionEnvCfg):
    """The humanoid: 87 observations, 21 actions."""

    decimation: int = 2
    """Physics steps per environment step."""
    episode_length_s: float = 16.0
    """Length of an episode [s]."""
    action_scale: float = 1.0
    """Effort = ``action_scale`` * gear * action, the action clamped to [-1, 1]."""
    joint_gears: dict[str, float] = field(default_factory=JOINT_GEARS.copy)
    """Gear [N*m] by regular expression of whole joint names."""
    termination_height: float = 0.8
    """The episode terminates when the root is lower than this [m]."""
    joint_vel_scale: float = 0.1
    """Scale of joint velocities in the observation."""
    ang_vel_scale: float = 0.25
    """Scale of the root's angular velocity in the observation."""
    contact_force_scale: float = 0.01
    """Scale of the feet's joint wrenches in the observation."""
    joint_limit_threshold: float = 0.98
    """Normalized joint position, -1 to 1, beyond which a joint counts as at its limit."""
    rewards: LocomotionRewardCfg = field(default_factory=_rewards)
    """Weights of the reward terms."""
    sim: SimulationCfg = field(default_factory=_sim)
    """The simulation."""
    scene: SceneCfg = field(default_factory=_scene)
    """The scene."""
