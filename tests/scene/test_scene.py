"""Scenes: where environments stand, and what stands in them."""

from __future__ import annotations

import numpy as np
import pytest
from support.scenes import cartpole_cfg, make_scene

from treadle.errors import ConfigError
from treadle.launch import LaunchScope
from treadle.physics import MJWarpSolverCfg, SimulationCfg
from treadle.scene import Scene, SceneCfg
from treadle.scene.scene import grid_origins

SOLVER = MJWarpSolverCfg(njmax=45, nconmax=25)


@pytest.mark.parametrize("num_envs", [1, 2, 3, 4, 5, 9, 17, 100])
def test_origins_lie_on_a_square_grid_about_the_worlds_origin(num_envs):
    origins = grid_origins(num_envs, 2.5)
    assert origins.shape == (num_envs, 3) and origins.dtype == np.float32
    assert len(np.unique(origins, axis=0)) == num_envs
    assert not origins[:, 2].any()
    steps = np.unique(np.diff(np.unique(origins[:, 0]))), np.unique(np.diff(np.unique(origins[:, 1])))
    assert all(np.array_equal(step, [2.5]) for step in steps if len(step))
    side = np.ceil(np.sqrt(num_envs)) * 2.5
    assert np.ptp(origins, axis=0)[:2].max() < side
    assert np.abs(origins[:, 0].max() + origins[:, 0].min()) < 1e-6
    assert np.abs(origins[:, 1].max() + origins[:, 1].min()) < 1e-6


def test_one_environment_stands_at_the_origin():
    assert grid_origins(1, 5.0).tolist() == [[0.0, 0.0, 0.0]]


def test_the_spacing_may_be_zero_since_environments_never_interact():
    scenes = [make_scene(num_envs=4, solver=SOLVER)]
    scope = LaunchScope("cpu", mode="eager")
    scenes.append(
        Scene(SceneCfg(num_envs=4, env_spacing=0.0, robot=scenes[0].cfg.robot), SimulationCfg(solver=SOLVER), scope)
    )
    for scene in scenes:
        for _ in range(60):
            scene.physics.step()
    heights = [scene.physics.joint_q.numpy()[:, 2] for scene in scenes]
    np.testing.assert_allclose(heights[1], heights[1][0])
    np.testing.assert_allclose(heights[0], heights[1], atol=1e-3)


def test_there_is_one_ground_and_no_contact_gap():
    scene = make_scene(num_envs=3, solver=SOLVER)
    model = scene.physics.model
    planes = model.shape_body.numpy() < 0
    assert planes.sum() == 1, "one plane, not one per environment"
    assert not model.shape_gap.numpy().any()
    assert model.world_count == scene.physics.num_envs == 3
    scene.physics.step()
    assert scene.physics.solver.mjw_data.nacon.numpy()[0] == 0, "nothing touches at the start"


def test_environments_are_equal():
    scene = make_scene(num_envs=5, solver=SOLVER)
    for _ in range(30):
        scene.physics.step()
    joint_q = scene.physics.joint_q.numpy()
    np.testing.assert_allclose(joint_q[:, 2:], joint_q[:1, 2:].repeat(5, axis=0), atol=1e-4)


def test_errors_name_the_robot_of_the_scene():
    robot = cartpole_cfg()
    robot.asset_path = "/no/such/file.xml"
    with pytest.raises(ConfigError, match=r"scene\.robot\.asset_path is '/no/such/file\.xml'"):
        make_scene(robot)
