"""Scenes with sensors, and what tests do with them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import warp as wp
from support.ant import snapshot
from support.scenes import ant_robot_cfg

from treadle.assets import ArticulationCfg
from treadle.launch import LaunchScope
from treadle.physics import MJWarpSolverCfg, SimulationCfg
from treadle.scene import Scene, SceneCfg
from treadle.sensors import SensorCfg

FEET = (".*_foot",)


def make_sensor_scene(
    sensors: Mapping[str, SensorCfg],
    *,
    robot: ArticulationCfg | None = None,
    num_envs: int = 4,
    mode: str = "eager",
    device: object = "cpu",
    **sim,
) -> Scene:
    """Build a scene of ants with sensors; further keywords go into the simulation."""
    scope = LaunchScope(str(device), mode=mode, name="test")
    cfg = SceneCfg(num_envs=num_envs, robot=robot or ant_robot_cfg(), sensors=dict(sensors))
    options = {"device": str(device), "solver": MJWarpSolverCfg(njmax=90, nconmax=25)} | sim
    scene = Scene(cfg, SimulationCfg(**options), scope)
    scene.scope = scope
    reset(scene)
    return scene


def reset(scene: Scene, envs: object = slice(None)) -> None:
    """Put the robots of some environments back to their default state, as an environment does."""
    mask = np.zeros(scene.physics.num_envs, dtype=bool)
    mask[envs] = True
    wp.copy(scene.physics.reset_mask, wp.array(mask, dtype=wp.bool, device=scene.physics.device))

    def launch() -> None:
        robot, data, env_mask = scene.robot, scene.robot.data, scene.physics.reset_mask
        robot.write_default_root_state_to_sim(env_mask)
        robot.write_joint_state_to_sim(data.default_joint_pos, data.default_joint_vel, env_mask)
        scene.physics.reset()
        scene.reset()

    scene.scope.graphs.run("reset", launch)
    scene.physics.reset_mask.zero_()


def step(scene: Scene, steps: int = 1, decimation: int = 1) -> None:
    """Take environment steps."""

    def launch() -> None:
        for _ in range(decimation):
            scene.robot.write_targets_to_sim()
            scene.physics.step()
            scene.after_physics_step()
        scene.update()

    for _ in range(steps):
        scene.scope.graphs.run(("step", decimation), launch)


def arrays_of(sensor: object) -> dict[str, wp.array]:
    """Return all arrays that a sensor holds by name, private ones too if they have a row per environment."""
    return {
        name: value
        for name, value in vars(sensor).items()
        if isinstance(value, wp.array) and name not in ("_body_ids", "_offsets", "_anchor_in_body", "_body_parent_f")
    }


def measurements(scene: Scene) -> dict[str, np.ndarray]:
    """Return copies of the arrays of all sensors of a scene."""
    return {
        f"{name}.{array_name}": snapshot(array)
        for name, sensor in scene.sensors.items()
        for array_name, array in arrays_of(sensor).items()
    } | {"bad_measurement": snapshot(scene.physics.bad_measurement)}
