"""Configuration of the manager-based ant task. Source of the constants: Isaac Lab 3.0, task ``Ant``."""

from __future__ import annotations

from dataclasses import dataclass, field

from treadle import mdp
from treadle.managers import ActionTermCfg, ObservationGroupCfg, RewardTermCfg, TerminationTermCfg
from treadle.physics import MJWarpSolverCfg, SimulationCfg
from treadle.scene import SceneCfg
from treadle.sensors import JointWrenchSensorCfg
from treadle.tasks.ant.robot import ant_articulation
from treadle.tasks.locomotion.manager_cfg import (
    FEET_SENSOR,
    LocomotionManagerEnvCfg,
    LocomotionNumbers,
    locomotion_observations,
    locomotion_rewards,
    locomotion_terminations,
)

__all__ = ["AntEnvCfg"]

_NUMBERS = LocomotionNumbers(
    gears={".*": 15.0},
    ang_vel_scale=1.0,
    joint_vel_scale=0.2,
    wrench_scale=0.1,
    termination_height=0.31,
    joint_limit_threshold=0.99,
    alive=0.5,
    action_l2=-0.005,
    energy=-0.05,
    joint_pos_limits=-0.1,
    terminating=-2.0,
)


def _actions() -> dict[str, ActionTermCfg]:
    return {"joint_effort": mdp.JointEffortActionCfg(scale=7.5, clip=(-7.5, 7.5))}


def _sim() -> SimulationCfg:
    return SimulationCfg(dt=1.0 / 120.0, solver=MJWarpSolverCfg(njmax=45, nconmax=25))


def _scene() -> SceneCfg:
    return SceneCfg(
        num_envs=4096,
        env_spacing=5.0,
        robot=ant_articulation(),
        sensors={FEET_SENSOR: JointWrenchSensorCfg(body_names=(".*_foot",))},
    )


@dataclass(kw_only=True)
class AntEnvCfg(LocomotionManagerEnvCfg):
    """The ant: 60 observations, 8 actions."""

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
