"""What an articulation derives beside the state of its root: accelerations, efforts, and the direction of gravity."""

from __future__ import annotations

import numpy as np
import torch
from support.ant import make_ant, random_actions, snapshot
from support.scenes import ant_robot_cfg, apply_state, assign, cartpole_cfg, make_scene, random_joint_state

from treadle.assets import ActuatorCfg
from treadle.physics import MJWarpSolverCfg

SOLVER = MJWarpSolverCfg(njmax=90, nconmax=25)


def step(scene) -> None:
    scene.robot.write_targets_to_sim()
    scene.physics.step()
    scene.robot.update()


def test_joint_acceleration_is_the_change_of_velocity_over_a_physics_step(device):
    scene = make_scene(num_envs=3, solver=SOLVER, device=device)
    random_joint_state(scene)
    data = scene.robot.data
    for _ in range(3):
        before = snapshot(data.joint_vel)
        data.joint_acc.fill_(float("nan"))
        step(scene)
        expected = (snapshot(data.joint_vel) - before) / scene.physics.dt
        np.testing.assert_allclose(data.joint_acc.numpy(), expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())
    assert np.abs(expected).max() > 1.0


def test_a_reset_clears_the_acceleration_of_the_masked_environments_alone():
    """Their velocity jumps, which is no acceleration."""
    scene = make_scene(num_envs=3, solver=SOLVER)
    random_joint_state(scene)
    step(scene)
    data, physics = scene.robot.data, scene.physics
    before = snapshot(data.joint_acc)
    mask = np.array([False, True, False])
    assign(data.joint_vel, np.where(mask[:, None], 5.0, data.joint_vel.numpy()))
    physics.reset_mask.numpy()[:] = mask
    physics.reset()
    scene.reset()
    assert not data.joint_acc.numpy()[1].any()
    np.testing.assert_array_equal(data.joint_acc.numpy()[[0, 2]], before[[0, 2]])
    np.testing.assert_array_equal(data.root_pos_w.numpy(), physics.body_q.numpy()[:, 0, :3])


def test_accelerations_are_the_same_in_all_launch_modes():
    found = []
    for mode in ("eager", "graph"):
        env = make_ant(num_envs=4, mode=mode)
        env.reset()
        env.episode_length_buf = torch.tensor([3, env.max_episode_length - 6, 5, env.max_episode_length - 3])
        history = []
        for action in random_actions(env, 8):
            env.step(action)
            history.append(snapshot(env.robot.data.joint_acc))
        found.append(np.stack(history))
        env.close()
    np.testing.assert_array_equal(found[0], found[1])
    ended = np.argwhere(~found[0].any(axis=-1)).tolist()
    assert ended == [[2, 3], [5, 1]], "only where an episode has just begun"


def test_efforts_of_drives_are_computed_and_clamped():
    cfg = cartpole_cfg()
    cfg.actuators["cart"] = ActuatorCfg(
        joint_names_expr=("slider_to_cart",), mode="position", stiffness=50.0, damping=4.0, effort_limit=20.0
    )
    scene = make_scene(cfg, num_envs=3)
    data = scene.robot.data
    assign(data.joint_pos[:, :1], [[0.1], [0.1], [-1.0]])
    assign(data.joint_vel[:, :1], [[0.0], [0.5], [0.0]])
    apply_state(scene)
    assign(data.joint_pos_target, 0.2)
    assign(data.joint_effort_target, 500.0)
    scene.robot.write_targets_to_sim()
    np.testing.assert_allclose(data.computed_effort.numpy(), [[5.0, 500.0], [3.0, 500.0], [60.0, 500.0]], rtol=1e-5)
    np.testing.assert_allclose(data.applied_effort.numpy(), [[5.0, 400.0], [3.0, 400.0], [20.0, 400.0]], rtol=1e-5)
    np.testing.assert_allclose(data.joint_stiffness.numpy(), [[50.0, 0.0]] * 3)
    np.testing.assert_allclose(data.joint_damping.numpy(), [[4.0, 0.0]] * 3, err_msg="the pole's is no drive's")


def test_the_direction_of_gravity_is_that_of_each_environment():
    scene = make_scene(num_envs=3, solver=SOLVER)
    random_joint_state(scene)
    assign(scene.physics.gravity, [[0.0, 0.0, -9.81], [3.0, 0.0, 4.0], [0.0, 0.0, 0.0]])
    scene.robot.update()
    data = scene.robot.data
    np.testing.assert_allclose(data.gravity_dir_w.numpy(), [[0.0, 0.0, -1.0], [0.6, 0.0, 0.8], [0.0, 0.0, 0.0]])
    np.testing.assert_allclose(np.linalg.norm(data.projected_gravity_b.numpy(), axis=1), [1.0, 1.0, 0.0], rtol=1e-6)


def test_soft_velocity_limits_are_the_limits():
    data = make_scene(ant_robot_cfg(), num_envs=2).robot.data
    assert data.soft_joint_vel_limits is data.joint_vel_limits
