"""Configuration of the ant tasks. Source of the constants: Isaac Lab 3.0, task ``Ant-Direct``."""

from __future__ import annotations

from dataclasses import dataclass, field

from treadle.assets import ActuatorCfg, ArticulationCfg, InitialStateCfg
from treadle.physics import MJWarpSolverCfg, SimulationCfg
from treadle.scene import SceneCfg
from treadle.tasks.locomotion.cfg import LocomotionEnvCfg

__all__ = ["AntDirectEnvCfg", "ant_articulation"]


def ant_articulation() -> ArticulationCfg:
    """Return the ant with its default pose and its eight effort-controlled joints."""
    return ArticulationCfg(
        asset_path="ant",
        init_state=InitialStateCfg(
            pos=(0.0, 0.0, 0.5),
            joint_pos={
                ".*_leg": 0.0,
                "front_left_foot": 0.785398,
                "front_right_foot": -0.785398,
                "left_back_foot": -0.785398,
                "right_back_foot": 0.785398,
            },
        ),
        actuators={"body": ActuatorCfg(damping=0.1, armature=0.05, effort_limit=15.0)},
    )


@dataclass(kw_only=True)
class AntDirectEnvCfg(LocomotionEnvCfg):
    """The ant: 60 observations, 8 actions."""

    decimation: int = 2
    """Physics steps per environment step."""
    episode_length_s: float = 16.0
    """Length of an episode [s]."""
    joint_gears: dict[str, float] = field(default_factory=lambda: {".*": 15.0})
    """Gear [N*m] by regular expression of whole joint names."""
    sim: SimulationCfg = field(
        default_factory=lambda: SimulationCfg(dt=1.0 / 120.0, solver=MJWarpSolverCfg(njmax=45, nconmax=25))
    )
    """The simulation."""
    scene: SceneCfg = field(default_factory=lambda: SceneCfg(num_envs=4096, env_spacing=5.0, robot=ant_articulation()))
    """The scene."""
