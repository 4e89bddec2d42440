"""Building the model of all environments and the entities in it."""

from __future__ import annotations

import math

import newton
import numpy as np
import warp as wp
from newton.solvers import SolverMuJoCo

from treadle.assets import Articulation
from treadle.assets.spawn import spawn_articulation
from treadle.launch import LaunchScope
from treadle.physics import NewtonBackend, PhysicsBackend, SimulationCfg
from treadle.scene.cfg import SceneCfg

__all__ = ["Scene"]


class Scene:
    """Equal environments with one robot each, on a ground plane.

    Args:
        cfg: What stands in each environment.
        sim: The simulation.
        scope: Owner of the launches.

    Raises:
        ConfigError: The device does not exist, or the robot can't be loaded or does not fit its configuration.
    """

    physics: PhysicsBackend
    """The backend."""
    robot: Articulation
    """The robot."""
    env_origins: wp.array
    """Origins of the environments, world frame [m], vec3, shape (num_envs,)."""

    def __init__(self, cfg: SceneCfg, sim: SimulationCfg, scope: LaunchScope):
        self.cfg = cfg
        origins = grid_origins(cfg.num_envs, cfg.env_spacing)
        env_builder = _new_builder(sim.gravity)  # each world has its own gravity, the builder's around it is not used
        layout = spawn_articulation(env_builder, cfg.robot, "scene.robot")
        builder = _new_builder(sim.gravity)
        builder.replicate(
            env_builder, cfg.num_envs, xforms=[wp.transform(origin, wp.quat_identity()) for origin in origins]
        )
        _add_ground(builder, sim.ground_friction)
        model = builder.finalize(device=scope.device)
        self.env_origins = wp.array(origins, dtype=wp.vec3, device=scope.device)
        self.physics = NewtonBackend(model, sim, scope.child("physics"))
        self.robot = Articulation(cfg.robot, layout, self.physics, self.env_origins, sim.gravity, scope.child("robot"))


def grid_origins(num_envs: int, spacing: float) -> np.ndarray:
    """Return origins on a square grid centred on the world's origin [m], shape (num_envs, 3)."""
    columns = math.ceil(math.sqrt(num_envs))
    index = np.arange(num_envs)
    rows = math.ceil(num_envs / columns)
    origins = np.zeros((num_envs, 3), dtype=np.float32)
    origins[:, 0] = (index // columns - (rows - 1) / 2) * spacing
    origins[:, 1] = (index % columns - (columns - 1) / 2) * spacing
    return origins


def _add_ground(builder: newton.ModelBuilder, friction: float) -> None:
    """Add the ground plane. Its priority is the higher one, so its friction decides and not the larger of the two."""
    builder.add_shape_plane(
        plane=(0.0, 0.0, 1.0, 0.0),
        width=0.0,
        length=0.0,
        cfg=newton.ModelBuilder.ShapeConfig(mu=friction, gap=0.0),
        custom_attributes={"mujoco:geom_priority": 1},
        label="ground",
    )


def _new_builder(gravity: tuple[float, float, float]) -> newton.ModelBuilder:
    """Return a builder without contact gap: Newton's default of 0.1 m puts every near pair into the contact buffer."""
    builder = newton.ModelBuilder(up_axis=newton.Axis.Z, gravity=gravity)
    SolverMuJoCo.register_custom_attributes(builder)
    builder.rigid_gap = 0.0
    return builder
