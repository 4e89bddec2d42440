"""Poses of frames relative to another one, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp
from support.ant import snapshot
from support.rotations import rotate, rotate_inverse
from support.scenes import assign, cartpole_cfg, random_joint_state
from support.sensors import FEET, make_sensor_scene, reset, step

from treadle.errors import ConfigError
from treadle.sensors import FrameTransformerCfg, OffsetCfg

HALF = np.sqrt(0.5)
TIP = OffsetCfg(pos=(0.4, 0.4, 0.0), rot=(0.0, HALF, 0.0, HALF))
SIDE = OffsetCfg(pos=(0.0, 0.1, 0.2), rot=(0.5, 0.5, 0.5, 0.5))


def frame_scene(num_envs: int = 3, *, device: object = "cpu", **fields):
    cfg = FrameTransformerCfg(**{"source_body": "torso", "target_bodies": FEET} | fields)
    scene = make_sensor_scene({"frames": cfg}, num_envs=num_envs, device=device)
    return scene, scene["frames"]


def matrix(position, quat) -> np.ndarray:
    """Return homogeneous matrices of poses."""
    result = np.zeros((*np.shape(position)[:-1], 4, 4))
    for axis in range(3):
        result[..., :3, axis] = rotate(quat, np.broadcast_to(np.eye(3)[axis], np.shape(position)))
    result[..., :3, 3], result[..., 3, 3] = position, 1.0
    return result


def test_any_poses(device):
    """The kernel against products of homogeneous matrices."""
    scene, sensor = frame_scene(5, source_offset=SIDE, target_offsets={"left_.*": TIP, ".*": SIDE}, device=device)
    rng = np.random.default_rng(4)
    poses = rng.normal(size=(5, 9, 7))
    poses[..., 3:] /= np.linalg.norm(poses[..., 3:], axis=-1, keepdims=True)
    assign(scene.physics.body_q, poses)
    for name in (
        "source_pos_w",
        "source_quat_w",
        "target_pos_w",
        "target_quat_w",
        "target_pos_source",
        "target_quat_source",
    ):
        getattr(sensor, name).fill_(float("nan"))
    sensor.update()
    arrays = {name: getattr(sensor, name).numpy() for name in vars(sensor) if name.startswith(("source_", "target_"))}
    bodies = matrix(poses[..., :3], poses[..., 3:])
    offsets = [TIP if name.startswith("left_") else SIDE for name in sensor.body_names]
    assert offsets.count(TIP) == 1
    source = bodies[:, 0] @ matrix(SIDE.pos, SIDE.rot)
    target = bodies[:, sensor.body_ids] @ np.stack([matrix(offset.pos, offset.rot) for offset in offsets])
    expected = {
        "source_{}_w": source,
        "target_{}_w": target,
        "target_{}_source": np.linalg.inv(source)[:, None] @ target,
    }
    for name, poses_of in expected.items():
        actual = matrix(arrays[name.format("pos")], arrays[name.format("quat")])
        np.testing.assert_allclose(actual, poses_of, atol=2e-5, err_msg=name)


def test_the_tip_of_a_pole():
    cfg = FrameTransformerCfg(
        source_body="cart", target_bodies=("pole",), target_offsets={"pole": OffsetCfg(pos=(0.0, 0.0, 0.97))}
    )
    scene = make_sensor_scene({"tip": cfg}, robot=cartpole_cfg(joint_pos={"cart_to_pole": np.pi / 2}), num_envs=2)
    np.testing.assert_allclose(scene["tip"].target_pos_source.numpy()[:, 0], [[0.12, -0.97, 0.0]] * 2, atol=1e-5)
    half_turn = scene["tip"].target_quat_source.numpy()[:, 0]
    np.testing.assert_allclose(rotate_inverse(half_turn, [0.0, 0.0, 1.0]), [[0.0, 1.0, 0.0]] * 2, atol=1e-5)


def test_a_reset_touches_the_masked_environments_only():
    scene, sensor = frame_scene(3)
    start = snapshot(sensor.target_pos_w)
    random_joint_state(scene)
    step(scene, 2)
    before = snapshot(sensor.target_pos_w)
    reset(scene, [1])
    after = sensor.target_pos_w.numpy()
    assert np.array_equal(after[[0, 2]], before[[0, 2]])
    assert np.array_equal(after[1], start[1])


def test_a_pose_that_is_not_finite_is_reported():
    scene, sensor = frame_scene(3)
    poses = snapshot(scene.physics.body_q)
    poses[2, sensor.body_ids[3], 0] = np.nan
    assign(scene.physics.body_q, poses)
    sensor.update()
    assert scene.physics.bad_measurement.numpy().tolist() == [False, False, True]


def test_names_that_match_nothing():
    with pytest.raises(
        ConfigError, match=r"scene\.sensors\.frames: body names: 'hand' matches no name; allowed: torso"
    ):
        frame_scene(1, target_bodies=("hand",))
    with pytest.raises(ConfigError, match=r"'\.\*' matches torso, .*; allowed: an expression that matches one body"):
        frame_scene(1, source_body=".*")
    with pytest.raises(
        ConfigError, match=r"target_offsets\['torso'\]: 'torso' matches no name; allowed: front_left_foot"
    ):
        frame_scene(1, target_offsets={"torso": TIP})


def test_a_body_that_is_moved_without_a_reset_shows_its_new_pose():
    scene, sensor = frame_scene(3)
    step(scene, 2)
    before = snapshot(sensor.target_pos_w)
    scene.physics.moved_mask = wp.array([True, False, False], dtype=wp.bool, device=scene.physics.device)
    joint_q = snapshot(scene.physics.joint_q)
    joint_q[0, 0] += 2.0
    assign(scene.physics.joint_q, joint_q)
    scene.physics.reset()
    scene.reset()
    np.testing.assert_allclose(sensor.target_pos_w.numpy()[0], before[0] + [2.0, 0.0, 0.0], atol=1e-5)
    np.testing.assert_array_equal(sensor.target_pos_w.numpy()[1:], before[1:])
