"""Scenes without an environment around them, for tests of physics, assets and sensors."""

from __future__ import annotations

import numpy as np
import support.ant  # noqa: F401  sets up the process
import warp as wp

from treadle.assets import ActuatorCfg, ArticulationCfg, InitialStateCfg
from treadle.launch import LaunchScope
from treadle.physics import SimulationCfg
from treadle.registry import task_spec
from treadle.scene import Scene, SceneCfg


def cartpole_cfg(**init) -> ArticulationCfg:
    """Return the cartpole 2 m above the ground; keywords go into its initial state."""
    return ArticulationCfg(
        asset_path="cartpole",
        init_state=InitialStateCfg(pos=(0.0, 0.0, 2.0), **init),
        actuators={
            "cart": ActuatorCfg(joint_names_expr=("slider_to_cart",), damping=10.0, effort_limit=400.0),
            "pole": ActuatorCfg(joint_names_expr=("cart_to_pole",), effort_limit=400.0),
        },
    )


def ant_robot_cfg() -> ArticulationCfg:
    """Return the ant of the ant tasks."""
    return task_spec("Ant-Direct").load_env_cfg().scene.robot


def make_scene(
    robot: ArticulationCfg | None = None, *, num_envs: int = 4, mode: str = "eager", device: object = "cpu", **sim
) -> Scene:
    """Build a scene of ants, or of another robot; further keywords go into the simulation."""
    scope = LaunchScope(str(device), mode=mode, name="test")
    cfg = SceneCfg(num_envs=num_envs, robot=robot or ant_robot_cfg())
    scene = Scene(cfg, SimulationCfg(**{"device": str(device)} | sim), scope)
    scene.scope = scope
    return scene


def assign(array: wp.array, values: object) -> None:
    """Write values into an array, which may be a strided view."""
    values = np.broadcast_to(np.asarray(values, dtype=np.float32), array.numpy().shape)
    wp.copy(array, wp.array(values, dtype=array.dtype, device=array.device))


def apply_state(scene: Scene) -> None:
    """Make bodies and derived state follow from the joint state that was written."""
    scene.physics.reset_mask.fill_(True)
    scene.physics.reset()
    scene.robot.update()
    scene.physics.reset_mask.zero_()


def random_joint_state(scene: Scene, seed: int = 0) -> None:
    """Put robots with a floating root into random states."""
    rng = np.random.default_rng(seed)
    n, coords = scene.physics.joint_q.shape
    quat = rng.normal(size=(n, 4))
    position = rng.uniform((-1.0, -1.0, 1.0), (1.0, 1.0, 3.0), (n, 3)) + scene.env_origins.numpy()
    rows = [position, quat / np.linalg.norm(quat, axis=1, keepdims=True), rng.uniform(-1.0, 1.0, (n, coords - 7))]
    assign(scene.physics.joint_q, np.concatenate(rows, axis=1))
    assign(scene.physics.joint_qd, rng.uniform(-2.0, 2.0, scene.physics.joint_qd.shape))
    apply_state(scene)
