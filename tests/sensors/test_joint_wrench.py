"""Joint wrenches against statics, dynamics and MuJoCo."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import warp as wp
from support.ant import snapshot
from support.rotations import rotate, rotate_inverse
from support.scenes import apply_state, assign, cartpole_cfg, make_scene, random_joint_state

from treadle.assets.robots import robot_path
from treadle.errors import ConfigError
from treadle.physics import MJWarpSolverCfg
from treadle.sensors import JointWrenchSensor

GRAVITY = 9.81
SOLVER = MJWarpSolverCfg(njmax=45, nconmax=25)
FEET = ".*_foot"


def sensor_of(scene, names) -> JointWrenchSensor:
    return JointWrenchSensor(scene.robot, names, scene.physics, scene.scope.child("sensor"))


def cartpole_at(angle: float):
    """Return a cartpole whose pole starts at an angle at rest, with a sensor on the pole."""
    scene = make_scene(cartpole_cfg(joint_pos={"cart_to_pole": angle}), num_envs=2)
    apply_state(scene)
    return scene, sensor_of(scene, "pole")


def step(scene, sensor, steps: int) -> np.ndarray:
    def advance() -> None:
        scene.robot.write_targets_to_sim()
        scene.physics.step()

    for _ in range(steps):
        scene.scope.graphs.run("step", advance)
    sensor.wrench.fill_(float("nan"))
    sensor.update()
    return snapshot(sensor.wrench)


def test_a_hanging_pole_weighs_on_its_hinge():
    scene, sensor = cartpole_at(np.pi)
    wrench = step(scene, sensor, 60)
    # The pole of 1 kg hangs upside down, so up is -z of its joint's frame. Its centre of mass is below the anchor.
    np.testing.assert_allclose(wrench[:, 0, :3], np.tile([0.0, 0.0, -GRAVITY], (2, 1)), atol=2e-3)
    np.testing.assert_allclose(wrench[:, 0, 3:], 0.0, atol=2e-3)


def test_a_standing_pole_pushes_on_its_hinge():
    scene, sensor = cartpole_at(0.0)
    wrench = step(scene, sensor, 1)
    np.testing.assert_allclose(wrench[:, 0], np.tile([0.0, 0.0, GRAVITY, 0.0, 0.0, 0.0], (2, 1)), atol=2e-3)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_pole_released_from_the_horizontal(sign):
    """The hinge carries m g (1 - m l^2 / I): the centre of mass falls as the pole begins to turn about the hinge."""
    scene, sensor = cartpole_at(sign * np.pi / 2.0)
    wrench = step(scene, sensor, 1)
    mass, lever, half_width, half_length = 1.0, 0.47, 0.03, 0.5
    inertia = mass * ((2 * half_width) ** 2 + (2 * half_length) ** 2) / 12.0 + mass * lever**2
    up = mass * GRAVITY * (1.0 - mass * lever**2 / inertia)
    # A turn by +90 degrees about x takes the frame's y axis up, one by -90 degrees down.
    np.testing.assert_allclose(wrench[:, 0, :3], np.tile([0.0, sign * up, 0.0], (2, 1)), atol=2e-2 * up)
    np.testing.assert_allclose(wrench[:, 0, 3:], 0.0, atol=1e-2)


def test_a_torque_at_the_hinge_is_seen():
    """A pole that stands still although its hinge is driven has to be driven against its weight."""
    scene, sensor = cartpole_at(np.pi / 2.0)
    torque = 1.0 * GRAVITY * 0.47
    # At +90 degrees about x the pole lies along -y: its weight turns it on, a negative torque holds it.
    assign(scene.robot.data.joint_effort_target, [0.0, -torque])
    wrench = step(scene, sensor, 1)
    assert np.abs(scene.robot.data.joint_vel.numpy()).max() < 1e-2
    np.testing.assert_allclose(wrench[:, 0, :3], np.tile([0.0, GRAVITY, 0.0], (2, 1)), atol=2e-2)
    np.testing.assert_allclose(wrench[:, 0, 3:], np.tile([-torque, 0.0, 0.0], (2, 1)), atol=2e-2)


@pytest.fixture(scope="module")
def standing_ant():
    """An ant that has come to rest, with a sensor on its feet."""
    scene = make_scene(num_envs=2, mode="graph", solver=SOLVER)
    apply_state(scene)
    sensor = sensor_of(scene, FEET)
    wrench = step(scene, sensor, 1200)
    assert np.abs(scene.physics.joint_qd.numpy()).max() < 2e-3, "at rest"
    return scene, sensor, wrench


def _feet_in_world(scene, sensor, wrench):
    """Return forces and torques in the world frame, the pose of each foot, its mass and its centre of mass."""
    poses = snapshot(scene.physics.body_q)[:, sensor.body_ids]
    force, torque = rotate(poses[..., 3:], wrench[..., :3]), rotate(poses[..., 3:], wrench[..., 3:])
    mass = scene.physics.model.body_mass.numpy().reshape(2, -1)[:, sensor.body_ids]
    com = snapshot(scene.physics.body_com)[:, sensor.body_ids]
    return force, torque, poses, mass, rotate(poses[..., 3:], com)


def test_the_feet_of_a_standing_ant_carry_its_weight(standing_ant):
    scene, sensor, wrench = standing_ant
    force, _, _, mass, _ = _feet_in_world(scene, sensor, wrench)
    total = scene.physics.model.body_mass.numpy().reshape(2, -1).sum(axis=1)
    # The ground pushes a foot up by a share of the weight; what its own weight does not take, it hands to the joint.
    ground = mass * GRAVITY - force[..., 2]
    np.testing.assert_allclose(ground.sum(axis=1), total * GRAVITY, rtol=2e-3)
    np.testing.assert_allclose(ground, np.broadcast_to(total[:, None] * GRAVITY / 4.0, (2, 4)), rtol=2e-2)
    np.testing.assert_allclose(force[..., :2].sum(axis=1), 0.0, atol=2e-2)


def test_the_torques_of_a_standing_ant_balance(standing_ant):
    """Contact force and weight of a foot have no torque left about its joint, once the joint's is counted."""
    scene, sensor, wrench = standing_ant
    force, torque, poses, mass, lever = _feet_in_world(scene, sensor, wrench)
    weight = np.zeros_like(force)
    weight[..., 2] = -mass * GRAVITY
    contact = -force - weight
    names = sensor.body_names
    ends = {
        "front_left_foot": (0.4, 0.4),
        "front_right_foot": (-0.4, 0.4),
        "left_back_foot": (-0.4, -0.4),
        "right_back_foot": (0.4, -0.4),
    }
    tip = np.array([[*ends[name], 0.0] for name in names])
    touch = rotate(poses[..., 3:], np.tile(tip, (2, 1, 1)))
    touch[..., 2] = -poses[..., 2]  # the ground below the centre of the foot's end
    residual = torque + np.cross(lever, weight) + np.cross(touch, contact)
    assert np.abs(torque).max() > 0.1, "there is something to balance"
    np.testing.assert_allclose(residual, 0.0, atol=0.02 * np.abs(torque).max())


def test_a_moving_ant_against_mujoco():
    """MuJoCo's own recursive Newton-Euler pass gives the same wrenches for the same motion in the air.

    The step is short, since the sensor turns the wrench of the step into the frame at its end.
    """
    scene = make_scene(num_envs=6, dt=1e-5, solver=SOLVER)
    random_joint_state(scene)
    data = scene.robot.data
    rng = np.random.default_rng(5)
    middle = 0.5 * (data.soft_joint_pos_lower.numpy() + data.soft_joint_pos_upper.numpy())
    assign(data.joint_pos, middle + rng.uniform(-0.2, 0.2, middle.shape))
    joint_q = snapshot(scene.physics.joint_q)
    joint_q[:, 2] += 5.0
    assign(scene.physics.joint_q, joint_q)
    apply_state(scene)
    effort = rng.uniform(-5.0, 5.0, middle.shape)
    assign(data.joint_effort_target, effort)
    joint_qd = snapshot(scene.physics.joint_qd)
    sensor = sensor_of(scene, FEET)
    dt = scene.physics.dt
    wrench = step(scene, sensor, 1)

    model = mujoco.MjModel.from_xml_path(str(robot_path("ant")))
    model.opt.timestep = dt
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    for row in range(6):
        state = mujoco.MjData(model)
        quat = joint_q[row, 3:7]
        state.qpos = [*joint_q[row, :3], quat[3], *quat[:3], *joint_q[row, 7:]]
        # The torso's centre of mass is at its origin. MuJoCo's angular velocity is in the body frame.
        state.qvel = [*joint_qd[row, :3], *rotate_inverse(quat, joint_qd[row, 3:6]), *joint_qd[row, 6:]]
        state.qfrc_applied[6:] = effort[row]
        mujoco.mj_step(model, state)
        mujoco.mj_rnePostConstraint(model, state)
        for index, name in enumerate(sensor.body_names):
            body = model.body(name).id
            # cfrc_int is (torque, force) in the world frame about the centre of mass of the whole tree.
            torque, force = state.cfrc_int[body, :3].copy(), state.cfrc_int[body, 3:]
            anchor = state.xanchor[model.body_jntadr[body]]
            torque += np.cross(state.subtree_com[model.body_rootid[body]] - anchor, force)
            to_body = state.xmat[body].reshape(3, 3).T
            expected = np.concatenate([to_body @ force, to_body @ torque])
            tolerance = 1e-3 * max(1.0, np.abs(expected).max())
            np.testing.assert_allclose(wrench[row, index], expected, atol=tolerance, err_msg=f"{name} of {row}")


def test_any_wrench_at_any_pose(device):
    """The kernel against NumPy: from the centre of mass to the anchor, and into the anchor's frame."""
    scene = make_scene(num_envs=5, solver=SOLVER, device=device)
    random_joint_state(scene)
    names = ["front_left_leg", "left_back_foot", "right_back_foot"]
    sensor = sensor_of(scene, names)
    assert sensor.body_names == names
    rng = np.random.default_rng(1)
    frames = rng.normal(size=(3, 7))
    frames[:, 3:] /= np.linalg.norm(frames[:, 3:], axis=1, keepdims=True)
    assign(sensor._anchor_in_body, frames)
    applied = rng.uniform(-20.0, 20.0, (5, 9, 6))
    assign(scene.physics.body_parent_f, applied)
    com = rng.uniform(-0.5, 0.5, (5, 9, 3))
    assign(scene.physics.body_com, com)
    sensor.wrench.fill_(float("nan"))
    sensor.update()
    actual = sensor.wrench.numpy()
    body_q = snapshot(scene.physics.body_q)
    for env in range(5):
        for index, body in enumerate(sensor.body_ids):
            quat, anchor = body_q[env, body, 3:], frames[index, 3:]
            force, torque = applied[env, body, :3], applied[env, body, 3:]
            about_anchor = torque + np.cross(rotate(quat, com[env, body] - frames[index, :3]), force)
            parts = (rotate_inverse(anchor, rotate_inverse(quat, part)) for part in (force, about_anchor))
            expected = np.concatenate(list(parts))
            np.testing.assert_allclose(actual[env, index], expected, atol=2e-4)


def test_a_reset_zeroes_the_wrench_of_the_masked_environments():
    scene = make_scene(num_envs=3, solver=SOLVER)
    sensor = sensor_of(scene, FEET)
    before = step(scene, sensor, 60)
    assert before.any(axis=(1, 2)).all()
    wp.copy(scene.physics.reset_mask, wp.array([False, True, False], dtype=wp.bool))
    scene.physics.reset()
    sensor.update()
    after = sensor.wrench.numpy()
    assert not after[1].any()
    assert np.array_equal(after[[0, 2]], before[[0, 2]])


def test_bodies_that_have_no_joint():
    scene = make_scene(num_envs=1, solver=SOLVER)
    with pytest.raises(ConfigError, match="torso have no joint of one degree of freedom to measure"):
        sensor_of(scene, ["torso", FEET])
    with pytest.raises(ConfigError, match="body names: 'hand' matches no name; allowed: torso, "):
        sensor_of(scene, "hand")


def test_a_body_that_is_turned_without_a_reset_keeps_the_wrench_of_the_last_step():
    scene = make_scene(num_envs=3)
    sensor = sensor_of(scene, FEET)
    random_joint_state(scene)
    step(scene, sensor, 3)
    before = snapshot(sensor.wrench)
    assert np.abs(before).max(axis=(1, 2)).all()
    scene.physics.moved_mask = wp.array([True, False, True], dtype=wp.bool, device=scene.physics.device)
    scene.physics.reset_mask.assign([False, False, True])
    joint_q = snapshot(scene.physics.joint_q)
    joint_q[[0, 2], 3:7] = [0.0, 0.0, 1.0, 0.0]
    assign(scene.physics.joint_q, joint_q)
    scene.physics.reset()
    sensor.reset()
    np.testing.assert_array_equal(sensor.wrench.numpy()[:2], before[:2])
    assert not sensor.wrench.numpy()[2].any()
