"""Configuration of the ant tasks. Source of the constants: Isaac Lab 3.0, task ``Ant-Direct``."""

from __future__ import annotations

from dataclasses import dataclass, field

from treadle.physics import MJWarpSolverCfg, SimulationCfg
from treadle.scene import SceneCfg
from treadle.tasks.ant.robot import ant_articulation
from treadle.tasks.locomotion.cfg import LocomotionEnvCfg

__all__ = ["AntDirectEnvCfg"]


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
