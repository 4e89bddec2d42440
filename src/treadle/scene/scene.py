"""Building the model of all environments and the entities in it."""

from __future__ import annotations

import math
from typing import Any

import newton
import numpy as np
import warp as wp
from newton.solvers import SolverMuJoCo

from treadle.assets import Articulation
from treadle.assets.spawn import spawn_articulation
from treadle.errors import ConfigError, UnknownNameError
from treadle.launch import LaunchScope
from treadle.physics import NewtonBackend, PhysicsBackend, SimulationCfg
from treadle.scene.cfg import SceneCfg
from treadle.sensors import Sensor, SensorCfg, SteppedSensor

__all__ = ["Scene"]


class Scene:
    """Equal environments with one robot each, on a ground plane. ``scene[name]`` is the robot or a sensor.

    Args:
        cfg: What stands in each environment.
        sim: The simulation.
        scope: Owner of the launches.

    Raises:
        ConfigError: The device does not exist, the robot can't be loaded or does not fit its configuration, or a
            sensor names a body that the robot does not have.
    """

    physics: PhysicsBackend
    """The backend."""
    robot: Articulation
    """The robot."""
    sensors: dict[str, Sensor]
    """The sensors by name, in the order of the configuration."""
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
        self.robot = Articulation(cfg.robot, layout, self.physics, self.env_origins, scope.child("robot"))
        self.sensors = {name: self._make_sensor(name, sensor, scope) for name, sensor in cfg.sensors.items()}
        self._stepped_sensors = [sensor for sensor in self.sensors.values() if isinstance(sensor, SteppedSensor)]

    def __getitem__(self, name: str) -> Any:
        """Return the robot or a sensor.

        Raises:
            UnknownNameError: There is nothing of that name; the message lists the names.
        """
        if name == "robot":
            return self.robot
        if name not in self.sensors:
            raise UnknownNameError("entity of the scene", name, ("robot", *self.sensors))
        return self.sensors[name]

    def after_physics_step(self) -> None:
        """Let the sensors that measure each physics step do so. Call it after each ``physics.step()``; capturable."""
        for sensor in self._stepped_sensors:
            sensor.after_physics_step()

    def update(self) -> None:
        """Refresh the derived state of the robot and the sensors, once per environment step. Capturable."""
        self.robot.update()
        for sensor in self.sensors.values():
            sensor.update()

    def reset(self) -> None:
        """Refresh the derived state after ``physics.reset()``, and start sensors anew where it did. Capturable."""
        self.robot.reset()
        for sensor in self.sensors.values():
            sensor.reset()

    def _make_sensor(self, name: str, cfg: SensorCfg, scope: LaunchScope) -> Sensor:
        try:
            return cfg.make(self.robot, self.physics, scope.child(name))
        except ConfigError as error:
            raise ConfigError(f"scene.sensors.{name}: {error}") from None


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
