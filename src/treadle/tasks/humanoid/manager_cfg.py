"""Configuration of the manager-based humanoid task. Source of the constants: Isaac Lab 3.0, task ``Humanoid``."""

from __future__ import annotations

from dataclasses import dataclass, field

from treadle import mdp
from treadle.managers import ActionTermCfg, ObservationGroupCfg, RewardTermCfg, TerminationTermCfg
from treadle.physics import MJWarpSolverCfg, SimulationCfg
from treadle.scene import SceneCfg
from treadle.sensors import JointWrenchSensorCfg
from treadle.tasks.humanoid.robot import JOINT_GEARS, humanoid_articulation
from treadle.tasks.locomotion.manager_cfg import (
    FEET_SENSOR,
    LocomotionManagerEnvCfg,
    LocomotionNumbers,
    locomotion_observations,
    locomotion_rewards,
    locomotion_terminations,
)

__all__ = ["HumanoidEnvCfg"]

_NUMBERS = LocomotionNumbers(
    gears=JOINT_GEARS,
    ang_vel_scale=0.25,
    joint_vel_scale=0.1,
    wrench_scale=0.01,
    termination_height=0.8,
    joint_limit_threshold=0.98,
    alive=2.0,
    action_l2=-0.01,
    energy=-0.005,
    joint_pos_limits=-0.25,
    terminating=-1.0,
)

_CLIP = {pattern: (-gear, gear) for pattern, gear in JOINT_GEARS.items()}


def _actions() -> dict[str, ActionTermCfg]:
    return {"joint_effort": mdp.JointEffortActionCfg(scale=dict(JOINT_GEARS), clip=_CLIP)}


def _sim() -> SimulationCfg:
    return SimulationCfg(dt=1.0 / 120.0, substeps=2, solver=MJWarpSolverCfg(njmax=80, nconmax=25))


def _scene() -> SceneCfg:
    return SceneCfg(
        num_envs=4096,
        env_spacing=5.0,
        robot=humanoid_articulation(),
        sensors={FEET_SENSOR: JointWrenchSensorCfg(body_names=(".*_foot",))},
    )


@dataclass(kw_only=True)
class HumanoidEnvCfg(LocomotionManagerEnvCfg):
    """The humanoid: 87 observations, 21 actions."""

    observations: dict[str, ObservationGroupCfg | None] = field(
        default_factory=lambda: locomotion_observations(_NUMBERS)
    )
    """Observation groups by name."""
    actions: dict[str, ActionTermCfg] = field(default_factory=_actions)
    """Action terms by name."""
    rewards: dict[str, RewardTermCfg | None] = field(default_factory=lambda: locomotion_rewards(_NUMBERS))
    """Reward terms by name."""
    terminations: dict[str, TerminationTermCfg | None] = field(
        default_factory=lambda: locomotion_terminations(_NUMBERS)
    )
    """Termination terms by name."""
    sim: SimulationCfg = field(default_factory=_sim)
    """The simulation."""
    scene: SceneCfg = field(default_factory=_scene)
    """The scene."""
