"""Articulations: derived state, actuators, and writing states into the simulation."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import warp as wp
from support.ant import snapshot
from support.rotations import rotate_inverse
from support.scenes import ant_robot_cfg, apply_state, assign, cartpole_cfg, make_scene, random_joint_state

from treadle.assets import ActuatorCfg
from treadle.errors import ConfigError
from treadle.physics import MJWarpSolverCfg

SOLVER = MJWarpSolverCfg(njmax=45, nconmax=25)


def above(scene, height: float) -> np.ndarray:
    """Return the points above the origins, shape (num_envs, 3)."""
    return scene.env_origins.numpy() + np.array([0.0, 0.0, height])


def mask_of(scene, *rows: int) -> wp.array:
    mask = np.isin(np.arange(scene.physics.num_envs), rows)
    return wp.array(mask, dtype=wp.bool, device=scene.physics.device)


@pytest.mark.parametrize("gravity", [(0.0, 0.0, -9.81), (3.0, 0.0, -4.0), (0.0, 0.0, 0.0)])
def test_derived_state(gravity, device):
    scene = make_scene(num_envs=32, gravity=gravity, solver=SOLVER, device=device)
    data = scene.robot.data
    names = ("root_pos_w", "root_quat_w", "root_lin_vel_w", "root_ang_vel_w", "root_lin_vel_b", "root_ang_vel_b")
    for name in (*names, "projected_gravity_b"):
        getattr(data, name).fill_(float("nan"))
    random_joint_state(scene)
    joint_q, joint_qd = snapshot(scene.physics.joint_q), snapshot(scene.physics.joint_qd)
    quat = joint_q[:, 3:7]
    down = np.array(gravity) / max(np.linalg.norm(gravity), 1e-9)
    expected = {
        "root_pos_w": joint_q[:, :3],
        "root_quat_w": quat,
        "root_lin_vel_w": joint_qd[:, :3],
        "root_ang_vel_w": joint_qd[:, 3:6],
        "root_lin_vel_b": rotate_inverse(quat, joint_qd[:, :3]),
        "root_ang_vel_b": rotate_inverse(quat, joint_qd[:, 3:6]),
        "projected_gravity_b": rotate_inverse(quat, np.tile(down, (32, 1))),
    }
    for name, values in expected.items():
        np.testing.assert_allclose(getattr(data, name).numpy(), values, atol=2e-5, err_msg=name)
    assert np.array_equal(data.joint_pos.numpy(), joint_q[:, 7:])
    assert np.array_equal(data.joint_vel.numpy(), joint_qd[:, 6:])


def test_torch_views_share_memory_and_are_made_once():
    data = make_scene(num_envs=3, solver=SOLVER).robot.data
    view = data.torch.joint_pos
    assert view.shape == (3, 8) and view is data.torch.joint_pos
    view[2, 7] = 4.5
    assert data.joint_pos.numpy()[2, 7] == 4.5
    with pytest.raises(AttributeError, match="has no attribute 'joint_accc'"):
        _ = data.torch.joint_accc
    with pytest.raises(AttributeError, match=r"ArticulationData\.torch is no Warp array"):
        _ = data.torch.torch


def test_efforts_are_clamped_and_the_solver_sees_the_clamped_ones(device):
    scene = make_scene(num_envs=3, solver=SOLVER, device=device)
    robot, physics = scene.robot, scene.physics
    targets = np.linspace(-40.0, 40.0, 24).reshape(3, 8)
    assign(robot.data.joint_effort_target, targets)
    physics.joint_f.fill_(0.0)
    for array in (robot.data.applied_effort, robot._joint_f):
        array.fill_(float("nan"))
    robot.write_targets_to_sim()
    expected = np.clip(targets, -15.0, 15.0).astype(np.float32)
    np.testing.assert_allclose(robot.data.applied_effort.numpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(physics.joint_f.numpy()[:, 6:], expected, rtol=1e-6)
    assert not physics.joint_f.numpy()[:, :6].any(), "the root is not actuated"
    assert np.abs(expected).max() == 15.0 and (np.abs(expected) < 15.0).any()
    # Two robots in the air whose targets are at the limit and far beyond it move alike.
    apply_state(scene)
    joint_q = snapshot(physics.joint_q)
    joint_q[:, 2] += 3.0
    assign(physics.joint_q, joint_q)
    apply_state(scene)
    assign(robot.data.joint_effort_target, np.array([[15.0], [500.0], [10.0]]).repeat(8, axis=1))
    for _ in range(3):
        robot.write_targets_to_sim()
        physics.step()
    velocity = snapshot(robot.data.joint_vel)
    np.testing.assert_allclose(velocity[0], velocity[1], rtol=1e-3)
    assert (np.abs(velocity[0]) > 1.2 * np.abs(velocity[2])).all()


def test_a_joint_without_an_actuator_takes_efforts_within_the_files_limits():
    robot_cfg = ant_robot_cfg()
    robot_cfg.actuators = {}
    robot = make_scene(robot_cfg, num_envs=1, solver=SOLVER).robot
    assign(robot.data.joint_effort_target, 20.0)
    robot.write_targets_to_sim()
    assert robot.data.applied_effort.numpy().tolist() == [[15.0] * 8]


@pytest.mark.parametrize("mode", ["eager", "replay"])
def test_a_position_drive_reaches_its_target(mode):
    cfg = cartpole_cfg()
    cfg.actuators["cart"] = ActuatorCfg(
        joint_names_expr=("slider_to_cart",), mode="position", stiffness=500.0, damping=60.0, effort_limit=400.0
    )
    cfg.actuators["pole"].damping = 2.0  # or it swings for ever
    scene = make_scene(cfg, num_envs=3, mode=mode)
    robot = scene.robot
    targets = np.array([-0.5, 0.25, 1.0])
    for _ in range(240):
        robot.data.joint_pos_target.numpy()[:, 0] = targets
        assign(robot.data.joint_effort_target, 300.0)  # the drive of a position joint takes no effort
        robot.data.joint_effort_target.numpy()[:, 1] = 0.0
        robot.write_targets_to_sim()
        scene.physics.step()
    np.testing.assert_allclose(robot.data.joint_pos.numpy()[:, 0], targets, atol=0.02)
    # Near the target the drive has little to do, and the effort target does not count.
    np.testing.assert_allclose(robot.data.applied_effort.numpy(), 0.0, atol=10.0)


def test_a_position_drive_is_held_at_its_default_from_the_start():
    cfg = ant_robot_cfg()
    cfg.actuators = {"body": ActuatorCfg(mode="position", stiffness=60.0, damping=2.0, armature=0.05)}
    scene = make_scene(cfg, num_envs=2, solver=SOLVER)
    apply_state(scene)
    for _ in range(240):
        scene.robot.write_targets_to_sim()
        scene.physics.step()
    data = scene.robot.data
    np.testing.assert_allclose(data.joint_pos.numpy(), data.default_joint_pos.numpy(), atol=0.05)


def test_the_effort_limit_of_a_position_drive_reaches_the_solver():
    speeds = []
    for limit in (2.0, 400.0):
        cfg = cartpole_cfg()
        cfg.actuators["cart"] = ActuatorCfg(
            joint_names_expr=("slider_to_cart",), mode="position", stiffness=500.0, effort_limit=limit
        )
        scene = make_scene(cfg, num_envs=1)
        scene.robot.data.joint_pos_target.numpy()[:, 0] = 1.0
        for _ in range(3):
            scene.robot.write_targets_to_sim()
            scene.physics.step()
        speeds.append(scene.robot.data.joint_vel.numpy()[0, 0])
    # 2 N on about 2 kg (1 kg and a part of the pole) for 3/120 s.
    assert 0.02 < speeds[0] < 0.06 and speeds[1] > 1.0


def test_soft_limits_are_scaled_about_the_middle():
    cfg = ant_robot_cfg()
    cfg.soft_joint_pos_limit_factor = 0.5
    data = make_scene(cfg, num_envs=2, solver=SOLVER).robot.data
    np.testing.assert_allclose(np.rad2deg(data.soft_joint_pos_lower.numpy()[1, :2]), [-20.0, 47.5], rtol=1e-5)
    np.testing.assert_allclose(np.rad2deg(data.soft_joint_pos_upper.numpy()[1, :2]), [20.0, 82.5], rtol=1e-5)


def test_joint_limits_hold_in_the_simulation():
    scene = make_scene(num_envs=2, solver=SOLVER)
    joint_q = snapshot(scene.physics.joint_q)
    joint_q[:, 2] += 20.0
    assign(scene.physics.joint_q, joint_q)
    apply_state(scene)
    data = scene.robot.data
    for _ in range(120):
        assign(data.joint_effort_target, 15.0)
        scene.robot.write_targets_to_sim()
        scene.physics.step()
    assert np.abs(data.joint_pos.numpy() - data.soft_joint_pos_upper.numpy()).max() < 0.2


@pytest.mark.parametrize("form", ["array", "tensor", "tensor and tensor mask"])
def test_writing_joint_states_with_a_mask(form):
    scene = make_scene(num_envs=4, solver=SOLVER)
    data = scene.robot.data
    before = snapshot(data.joint_pos), snapshot(data.joint_vel)
    rng = np.random.default_rng(0)
    position, velocity = rng.uniform(-1, 1, (2, 4, 8)).astype(np.float32)
    mask = mask_of(scene, 1, 3)
    if form == "array":
        scene.robot.write_joint_state_to_sim(wp.array(position, dtype=float), wp.array(velocity, dtype=float), mask)
    else:
        env_mask = mask if form == "tensor" else wp.to_torch(mask)
        scene.robot.write_joint_state_to_sim(torch.from_numpy(position), torch.from_numpy(velocity), env_mask)
    for array, old, new in zip((data.joint_pos, data.joint_vel), before, (position, velocity), strict=True):
        written = array.numpy()
        assert np.array_equal(written[[1, 3]], new[[1, 3]])
        assert np.array_equal(written[[0, 2]], old[[0, 2]])


def test_writing_the_default_root_state():
    cfg = ant_robot_cfg()
    cfg.init_state.lin_vel, cfg.init_state.ang_vel = (0.1, 0.2, 0.3), (0.4, 0.5, 0.6)
    scene = make_scene(cfg, num_envs=4, solver=SOLVER)
    random_joint_state(scene)
    physics = scene.physics
    before = snapshot(physics.joint_q), snapshot(physics.joint_qd)
    scene.robot.write_default_root_state_to_sim(mask_of(scene, 0, 3))
    joint_q, joint_qd = physics.joint_q.numpy(), physics.joint_qd.numpy()
    for row in (0, 3):
        origin = scene.env_origins.numpy()[row]
        np.testing.assert_allclose(joint_q[row, :7], [origin[0], origin[1], 0.5, 0, 0, 0, 1], atol=1e-6)
        np.testing.assert_allclose(joint_qd[row, :6], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], atol=1e-6)
    for array, old in zip((joint_q, joint_qd), before, strict=True):
        assert np.array_equal(array[1:3], old[1:3])
    assert np.array_equal(joint_q[:, 7:], before[0][:, 7:]) and np.array_equal(joint_qd[:, 6:], before[1][:, 6:])


def test_robots_start_at_their_origins_in_their_default_state():
    scene = make_scene(num_envs=6, solver=SOLVER)
    scene.robot.update()
    data = scene.robot.data
    expected = above(scene, 0.5)
    np.testing.assert_allclose(data.root_pos_w.numpy(), expected, atol=1e-6)
    assert len(np.unique(expected, axis=0)) == 6
    np.testing.assert_allclose(data.joint_pos.numpy(), data.default_joint_pos.numpy())


def test_a_fixed_base_stands_where_it_is_configured():
    scene = make_scene(cartpole_cfg(joint_pos={"cart_to_pole": 0.2}), num_envs=4)
    robot = scene.robot
    robot.update()
    np.testing.assert_allclose(robot.data.root_pos_w.numpy(), above(scene, 2.0), atol=1e-6)
    cart = robot.find_bodies("cart")[0]
    poses = snapshot(scene.physics.body_q)[:, cart, :3]
    before = snapshot(scene.physics.joint_q)
    robot.write_default_root_state_to_sim(mask_of(scene, 0, 1, 2, 3))
    assert np.array_equal(scene.physics.joint_q.numpy(), before), "there is no root to write"
    np.testing.assert_allclose(poses, above(scene, 2.0), atol=1e-6)
    assign(robot.data.joint_effort_target, np.array([20.0, 0.0]))
    for _ in range(20):
        robot.write_targets_to_sim()
        scene.physics.step()
    assert (robot.data.joint_pos.numpy()[:, 0] > 0.05).all() and (robot.data.joint_pos.numpy()[:, 1] > 0.2).all()


def test_finding_joints_and_bodies():
    robot = make_scene(num_envs=1, solver=SOLVER).robot
    assert robot.find_joints(".*_foot") == [1, 3, 5, 7]
    assert robot.find_joints(["right_back_leg", "front_left_leg"]) == [0, 6]
    assert robot.find_bodies("torso") == [0]
    with pytest.raises(ConfigError, match="joint names: 'knee' matches no name; allowed: front_left_leg, "):
        robot.find_joints("knee")
    with pytest.raises(ConfigError, match="body names: 'tors' matches no name; allowed: torso, "):
        robot.find_bodies("tors")
