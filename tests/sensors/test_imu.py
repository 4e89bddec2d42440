"""The inertial measurement unit against NumPy, finite differences and free fall."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import warp as wp
from support.ant import snapshot
from support.rotations import rotate, rotate_inverse
from support.scenes import assign, cartpole_cfg, random_joint_state
from support.sensors import make_sensor_scene, reset, step

from treadle.errors import ConfigError
from treadle.sensors import ImuCfg, OffsetCfg

GRAVITY = 9.81
HALF = np.sqrt(0.5)
OFFSET = OffsetCfg(pos=(0.3, -0.2, 0.1), rot=(HALF, 0.0, 0.0, HALF))


def imu_scene(num_envs: int = 3, **options):
    imu = {name: options.pop(name) for name in ("body_name", "offset", "gravity_bias") if name in options}
    scene = make_sensor_scene({"imu": ImuCfg(**{"body_name": "torso"} | imu)}, num_envs=num_envs, **options)
    return scene, scene["imu"]


def start(scene) -> None:
    """Let the sensor start from the state that was written."""
    scene.physics.reset_mask.fill_(True)
    scene.reset()
    scene.physics.reset_mask.zero_()


def multiply(first, second) -> np.ndarray:
    """Multiply quaternions (x, y, z, w), the second one of all rows."""
    second = np.broadcast_to(second, first.shape)
    xyz = rotate_product(first, second)
    w = first[..., 3] * second[..., 3] - (first[..., :3] * second[..., :3]).sum(axis=-1)
    return np.concatenate([xyz, w[..., None]], axis=-1)


def rotate_product(first, second) -> np.ndarray:
    return (
        first[..., 3:] * second[..., :3] + second[..., 3:] * first[..., :3] + np.cross(first[..., :3], second[..., :3])
    )


def test_any_motion(device):
    """The kernel against NumPy: a moving frame off the centre of mass, before and after a step."""
    scene, sensor = imu_scene(
        5, body_name="left_back_foot", offset=OFFSET, gravity_bias=(0.5, -1.0, 9.0), device=device
    )
    rng = np.random.default_rng(2)
    body = sensor.body_ids[0]
    gravity, com = rng.normal(size=(5, 3)), rng.uniform(-0.5, 0.5, (5, 9, 3))
    assign(scene.physics.gravity, gravity)
    assign(scene.physics.body_com, com)
    speeds = []
    for _ in range(2):
        poses, speed = rng.normal(size=(5, 9, 7)), rng.normal(size=(5, 9, 6))
        poses[..., 3:] /= np.linalg.norm(poses[..., 3:], axis=-1, keepdims=True)
        assign(scene.physics.body_q, poses)
        assign(scene.physics.body_qd, speed)
        for array in (sensor.quat_w, sensor.ang_vel_b, sensor.lin_acc_b, sensor.projected_gravity_b):
            array.fill_(float("nan"))
        sensor.after_physics_step()
        lever = rotate(poses[:, body, 3:], np.array(OFFSET.pos) - com[:, body])
        speeds.append(speed[:, body, :3] + np.cross(speed[:, body, 3:], lever))
    quat = multiply(poses[:, body, 3:], np.array(OFFSET.rot))
    lin_acc = (speeds[1] - speeds[0]) / scene.physics.dt + [0.5, -1.0, 9.0]
    down = gravity / np.linalg.norm(gravity, axis=1, keepdims=True)
    np.testing.assert_allclose(sensor.quat_w.numpy(), quat, atol=1e-6)
    np.testing.assert_allclose(sensor.ang_vel_b.numpy(), rotate_inverse(quat, speed[:, body, 3:]), atol=1e-5)
    np.testing.assert_allclose(sensor.lin_acc_b.numpy(), rotate_inverse(quat, lin_acc), atol=2e-3)
    np.testing.assert_allclose(sensor.projected_gravity_b.numpy(), rotate_inverse(quat, down), atol=1e-5)


@pytest.mark.parametrize(("bias", "expected"), [((0.0, 0.0, GRAVITY), 0.0), ((0.0, 0.0, 0.0), GRAVITY)])
def test_free_fall(bias, expected):
    """An accelerometer shows nothing in free fall; without the bias it is the acceleration of gravity."""
    scene, sensor = imu_scene(gravity_bias=bias)
    rng = np.random.default_rng(0)
    quat = rng.normal(size=(3, 4))
    quat /= np.linalg.norm(quat, axis=1, keepdims=True)
    joint_q = snapshot(scene.physics.joint_q)
    joint_q[:, 2], joint_q[:, 3:7] = 5.0, quat
    assign(scene.physics.joint_q, joint_q)
    scene.physics.reset_mask.fill_(True)
    scene.physics.reset()
    start(scene)
    step(scene, 10)
    np.testing.assert_allclose(np.linalg.norm(sensor.lin_acc_b.numpy(), axis=1), expected, atol=2e-2)
    np.testing.assert_allclose(sensor.lin_acc_b.numpy(), expected * sensor.projected_gravity_b.numpy(), atol=2e-2)


def test_at_rest_and_after_a_reset_the_bias_is_left():
    scene, sensor = imu_scene(2, offset=OFFSET, mode="graph")
    up = -sensor.projected_gravity_b.numpy()
    np.testing.assert_allclose(sensor.lin_acc_b.numpy(), GRAVITY * up, atol=1e-5)
    step(scene, 600)
    np.testing.assert_allclose(sensor.lin_acc_b.numpy(), GRAVITY * up, atol=2e-2)
    np.testing.assert_allclose(up, [[0.0, 1.0, 0.0]] * 2, atol=1e-2)  # 90 degrees about x turn z up into y


def test_a_pole_that_falls_against_a_finite_difference_of_positions():
    """The sensor rides on the tip of a pole: second differences of its path."""
    cfg = ImuCfg(body_name="pole", offset=OffsetCfg(pos=(0.0, 0.0, 0.97)), gravity_bias=(0.0, 0.0, 0.0))
    robot = cartpole_cfg(joint_pos={"cart_to_pole": 0.7}, joint_vel={"cart_to_pole": 2.0})
    dt = 1e-3
    scene = make_sensor_scene({"imu": cfg}, robot=robot, num_envs=2, dt=dt)
    sensor = scene["imu"]
    body, path, measured = sensor.body_ids[0], [], []
    for _ in range(21):
        step(scene)
        pose = snapshot(scene.physics.body_q)[:, body].astype(float)
        path.append(pose[:, :3] + rotate(pose[:, 3:], np.array([0.0, 0.0, 0.97])))
        measured.append(rotate(pose[:, 3:], sensor.lin_acc_b.numpy()))
    expected = (path[20] - 2.0 * path[10] + path[0]) / (10 * dt) ** 2
    assert np.abs(expected).max() > 3.0
    np.testing.assert_allclose(measured[10], expected, atol=0.02 * np.abs(expected).max())
    np.testing.assert_allclose(sensor.ang_vel_b.numpy()[:, 0], scene.robot.data.joint_vel.numpy()[:, 1], atol=1e-5)


def test_a_reset_touches_the_masked_environments_only():
    scene, sensor = imu_scene(4)
    random_joint_state(scene)
    start(scene)
    step(scene, 3)
    names = ("quat_w", "ang_vel_b", "lin_acc_b", "projected_gravity_b", "_last_lin_vel_w")
    before = {name: snapshot(getattr(sensor, name)) for name in names}
    reset(scene, [2])
    for name, values in before.items():
        after = getattr(sensor, name).numpy()
        assert np.array_equal(after[[0, 1, 3]], values[[0, 1, 3]])
        assert not np.array_equal(after[2], values[2])


@pytest.mark.parametrize("measure", ["step", "reset"])
def test_motion_that_is_not_finite_is_reported(measure):
    scene, sensor = imu_scene(3)
    speed = snapshot(scene.physics.body_qd)
    speed[1, 0, 2] = np.inf
    assign(scene.physics.body_qd, speed)
    if measure == "step":
        sensor.after_physics_step()
    else:
        start(scene)
    assert scene.physics.bad_measurement.numpy().tolist() == [False, measure == "step", False]


def test_torch_views():
    scene, sensor = imu_scene(2)
    view = sensor.torch.lin_acc_b
    step(scene)
    assert view is sensor.torch.lin_acc_b and isinstance(view, torch.Tensor) and view.shape == (2, 3)
    assert np.array_equal(view.numpy(), sensor.lin_acc_b.numpy())
    assert sensor.state.lin_acc_b is sensor.lin_acc_b and isinstance(sensor.lin_acc_b, wp.array)


def test_names_that_do_not_match_one_body():
    with pytest.raises(ConfigError, match=r"scene\.sensors\.imu: body names: 'hand' matches no name; allowed: torso"):
        imu_scene(1, body_name="hand")
    with pytest.raises(ConfigError, match=r"'left_back_.*' matches left_back_leg, left_back_foot; allowed: an"):
        imu_scene(1, body_name="left_back_.*")


def push(scene, envs, joint_q=None) -> None:
    """Give the robots of some environments another velocity, and another pose where there is one, without a reset."""
    moved = np.zeros(scene.physics.num_envs, dtype=bool)
    moved[envs] = True
    scene.physics.moved_mask = wp.array(moved, dtype=wp.bool, device=scene.physics.device)
    joint_qd = snapshot(scene.physics.joint_qd)
    joint_qd[envs, :6] += [3.0, -2.0, 1.0, 0.5, 1.5, -4.0]
    assign(scene.physics.joint_qd, joint_qd)
    if joint_q is not None:
        assign(scene.physics.joint_q, joint_q)
    scene.physics.reset()
    scene.reset()


def test_a_push_shows_in_the_rates_at_once_and_never_as_an_acceleration():
    scene, sensor = imu_scene(4)
    step(scene, 3)
    names = ("quat_w", "ang_vel_b", "lin_acc_b", "projected_gravity_b", "_last_lin_vel_w")
    before = {name: snapshot(getattr(sensor, name)) for name in names}
    push(scene, [1, 3])
    scene.robot.update()
    torso = scene.robot.body_names.index("torso")
    pose, speed = (snapshot(array)[:, torso] for array in (scene.physics.body_q, scene.physics.body_qd))
    np.testing.assert_allclose(sensor.ang_vel_b.numpy(), rotate_inverse(pose[:, 3:], speed[:, 3:]), atol=1e-6)
    np.testing.assert_allclose(sensor.ang_vel_b.numpy(), scene.robot.data.root_ang_vel_b.numpy(), atol=1e-6)
    assert (np.abs(sensor.ang_vel_b.numpy() - before["ang_vel_b"])[[1, 3]].max(axis=1) > 1.0).all()
    for name, values in before.items():
        np.testing.assert_array_equal(getattr(sensor, name).numpy()[[0, 2]], values[[0, 2]], err_msg=name)
    np.testing.assert_array_equal(sensor.lin_acc_b.numpy(), before["lin_acc_b"])
    step(scene)
    assert (np.linalg.norm(sensor.lin_acc_b.numpy(), axis=1) < 100.0).all()  # the push within a step would be 400


def test_a_reset_beside_a_push_leaves_the_bias_alone():
    scene, sensor = imu_scene(3)
    step(scene, 3)
    acceleration = snapshot(sensor.lin_acc_b)
    scene.physics.reset_mask.assign([False, True, False])
    push(scene, [1, 2])
    up = -sensor.projected_gravity_b.numpy()
    np.testing.assert_allclose(sensor.lin_acc_b.numpy()[1], GRAVITY * up[1], atol=1e-5)
    np.testing.assert_array_equal(sensor.lin_acc_b.numpy()[[0, 2]], acceleration[[0, 2]])


@pytest.mark.parametrize("frontend", ["warp", "torch"])
def test_the_observation_of_the_step_of_a_push_is_that_of_the_body(frontend):
    from support.mdp_envs import ants_cfg

    from treadle import mdp
    from treadle.envs import ManagerBasedTorchEnv, ManagerBasedWarpEnv
    from treadle.managers import EventTermCfg, ObservationGroupCfg, ObservationTermCfg

    terms = {"body": ObservationTermCfg(func=mdp.base_ang_vel), "imu": ObservationTermCfg(func=mdp.imu_ang_vel)}
    velocity = {"velocity_range": {"roll": (2.0, 3.0), "x": (-1.0, 1.0)}}
    shove = EventTermCfg(
        func=mdp.push_by_setting_velocity, mode="interval", interval_range_s=(0.01, 0.03), params=velocity
    )
    cfg = ants_cfg(events={"push": shove}, observations={"policy": ObservationGroupCfg(terms=terms)})
    cfg.scene.sensors = {"imu": ImuCfg(body_name="torso")}
    env = {"warp": ManagerBasedWarpEnv, "torch": ManagerBasedTorchEnv}[frontend](cfg)
    env.reset(seed=1)
    for _ in range(8):
        observation = env.step(torch.zeros(4, 4))[0]["policy"].numpy()
        np.testing.assert_allclose(observation[:, 3:], observation[:, :3], atol=1e-5)
    env.close()
