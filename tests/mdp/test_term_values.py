"""Values of terms against formulas written down once more in NumPy, so that both forms can't be wrong together."""

from __future__ import annotations

import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
from support.rotations import rotate, rotate_inverse
from support.term_cases import OBSERVATIONS, REWARDS, TERMINATIONS
from support.terms import compute_torch, make_env, randomize

DT = 1.0 / 60.0
SIMPLE = {
    "action_l2",
    "ang_vel_xy_l2",
    "base_ang_vel",
    "base_lin_vel",
    "current_time_s",
    "generated_commands",
    "imu_ang_vel",
    "imu_lin_acc",
    "imu_orientation",
    "imu_projected_gravity",
    "is_alive",
    "is_terminated",
    "joint_effort",
    "joint_pos",
    "joint_pos_rel",
    "joint_vel",
    "joint_vel_l1",
    "joint_vel_l2",
    "lin_vel_z_l2",
    "non_finite_state",
    "projected_gravity",
    "root_ang_vel_w",
    "root_lin_vel_w",
    "survival_success_rate",
    "terrain_out_of_bounds",
    "time_out",
}
"""Terms of one array each that have no formula here."""


@pytest.fixture(scope="module")
def env():
    env = make_env(OBSERVATIONS, REWARDS, TERMINATIONS)
    randomize(env, 11)
    return env


@pytest.fixture(scope="module")
def state(env) -> SimpleNamespace:
    """What the random state is, in double precision."""
    data, contacts = env.robot.data, env.scene["contacts"]
    found = {name: value for name, value in vars(data).items() if hasattr(value, "numpy")}
    found |= {"actions": env.buffers.actions, "previous_actions": env.buffers.previous_actions}
    found |= {"terminated": env.buffers.terminated, "length": env.buffers.episode_length}
    found |= {"origins": env.scene.env_origins, "wrench": env.scene["wrenches"].wrench}
    found |= {name: env.command_manager.get_term(name).command_buffer for name in ("velocity", "pose")}
    found |= {name: array for name, array in vars(contacts).items() if hasattr(array, "numpy")}
    found |= {"truncated": env.buffers.truncated, "held": env.termination_manager.values}
    velocity = env.command_manager.get_term("velocity")
    found |= {"time_left": velocity.time_left, "draws": velocity.counter}
    for name in ("progress_reward", "progress_reward_again"):
        found[name] = env.reward_manager.terms[name].instance.distance
    values = {name: array.numpy().astype(np.float64) for name, array in found.items()}
    feet = [i for i, name in enumerate(contacts.body_names) if name.endswith("_foot")]
    names = {"joint_names": env.robot.joint_names, "body_names": env.robot.body_names}
    return SimpleNamespace(**values, **names, feet=feet, endings=env.termination_manager.active_terms)


def yaw_of(quat: np.ndarray) -> np.ndarray:
    """Direction of the rotated x axis in the ground plane."""
    forward = rotate(quat, np.array([1.0, 0.0, 0.0]))
    return np.arctan2(forward[:, 1], forward[:, 0])


def target_direction(s: SimpleNamespace) -> np.ndarray:
    to_target = s.origins + np.array([1000.0, -20.0, 0.5]) - s.root_pos_w
    return np.arctan2(to_target[:, 1], to_target[:, 0])


def heading(s: SimpleNamespace) -> np.ndarray:
    forward = rotate(s.root_quat_w, np.array([1.0, 0.0, 0.0]))
    angle = target_direction(s)
    return forward[:, 0] * np.cos(angle) + forward[:, 1] * np.sin(angle)


def distance(s: SimpleNamespace, body: str) -> np.ndarray:
    wanted = s.root_pos_w + rotate(s.root_quat_w, s.pose[:, :3])
    return np.linalg.norm(s.body_pose_w[:, s.body_names.index(body), :3] - wanted, axis=1)


def rotation_matrix(quat: np.ndarray) -> np.ndarray:
    return np.stack([rotate(quat, axis) for axis in np.eye(3)], axis=-1)


def angle_between(s: SimpleNamespace, body: str) -> np.ndarray:
    """From the traces of rotation matrices."""
    wanted = rotation_matrix(s.root_quat_w) @ rotation_matrix(s.pose[:, 3:])
    found = rotation_matrix(s.body_pose_w[:, s.body_names.index(body), 3:])
    return np.arccos((np.trace(wanted.swapaxes(1, 2) @ found, axis1=1, axis2=2) - 1.0) / 2.0)


def forces(s: SimpleNamespace) -> np.ndarray:
    return np.linalg.norm(s.net_forces_w_history, axis=-1).max(axis=1)[:, s.feet]


def joints(s: SimpleNamespace, ending: str) -> list[int]:
    return [i for i, name in enumerate(s.joint_names) if name.endswith(ending)]


def gears(s: SimpleNamespace) -> np.ndarray:
    return np.array([10.0 if name.endswith("_leg") else 15.0 for name in s.joint_names]) / 15.0


def power(s: SimpleNamespace) -> np.ndarray:
    actions = np.zeros_like(s.joint_vel)
    actions[:, joints(s, "_foot")] = s.actions[:, :4]
    actions[:, joints(s, "_leg")] = s.actions[:, 4:]
    return np.abs(actions * s.joint_vel * gears(s)).sum(axis=1)


def near_limits(s: SimpleNamespace) -> np.ndarray:
    middle = (s.soft_joint_pos_lower + s.soft_joint_pos_upper) / 2.0
    share = np.abs(s.joint_pos - middle) / ((s.soft_joint_pos_upper - s.soft_joint_pos_lower) / 2.0)
    return (np.maximum(share - 0.8, 0.0) / 0.2 * gears(s)).sum(axis=1)


def moving(s: SimpleNamespace) -> np.ndarray:
    return np.hypot(s.velocity[:, 0], s.velocity[:, 1]) > 0.1


def air_time(s: SimpleNamespace) -> np.ndarray:
    contact = s.current_contact_time[:, s.feet]
    landed = (contact > 0.0) & (contact < DT + 0.25 / 120.0)
    return ((s.last_air_time[:, s.feet] - 0.4) * landed).sum(axis=1) * moving(s)


def one_foot_time(s: SimpleNamespace) -> np.ndarray:
    contact, air = s.current_contact_time[:, s.feet], s.current_air_time[:, s.feet]
    single = (contact > 0.0).sum(axis=1) == 1
    return np.minimum(np.maximum(contact, air).min(axis=1), 0.2) * single * moving(s)


def variance(s: SimpleNamespace) -> np.ndarray:
    times = (s.last_air_time[:, s.feet], s.last_contact_time[:, s.feet])
    return sum(np.minimum(time, 0.6).var(axis=1, ddof=1) for time in times) * moving(s)


def slide(s: SimpleNamespace) -> np.ndarray:
    velocity = s.body_vel_w[:, [i for i, name in enumerate(s.body_names) if name.endswith("_foot")], :2]
    return (np.linalg.norm(velocity, axis=-1) * (forces(s) > 1.0)).sum(axis=1)


def yaw_frame_error(s: SimpleNamespace) -> np.ndarray:
    yaw = yaw_of(s.root_quat_w)
    x, y = s.root_lin_vel_w[:, 0], s.root_lin_vel_w[:, 1]
    turned = np.stack((np.cos(yaw) * x + np.sin(yaw) * y, -np.sin(yaw) * x + np.cos(yaw) * y), axis=1)
    return ((s.velocity[:, :2] - turned) ** 2).sum(axis=1)


def roll_of(quat: np.ndarray) -> np.ndarray:
    """Last angle of a rotation by roll, pitch, yaw about the fixed axes: from the heights of the rotated axes."""
    return np.arctan2(rotate(quat, np.array([0.0, 1.0, 0.0]))[:, 2], rotate(quat, np.array([0.0, 0.0, 1.0]))[:, 2])


def poses(s: SimpleNamespace) -> np.ndarray:
    local = s.body_pose_w.copy()
    local[..., :3] -= s.origins[:, None]
    return local.reshape(len(local), -1)


def speed_to(s: SimpleNamespace, name: str, target: tuple[float, float]) -> np.ndarray:
    now = np.hypot(*(s.origins[:, :2] + np.array(target) - s.root_pos_w[:, :2]).T)
    return (getattr(s, name) - now) / DT


def count_held(s: SimpleNamespace, pattern: str) -> np.ndarray:
    columns = [i for i, ending in enumerate(s.endings) if re.fullmatch(pattern, ending)]
    return s.held[:, columns].sum(axis=1) * (1.0 - s.truncated)


OBSERVED = {
    "body_pose_w": poses,
    "base_yaw_roll": lambda s: np.stack((yaw_of(s.root_quat_w), roll_of(s.root_quat_w)), axis=1),
    "base_up_proj": lambda s: -s.projected_gravity_b[:, 2:],
    "base_pos_z": lambda s: (s.root_pos_w - s.origins)[:, 2:],
    "root_pos_w": lambda s: s.root_pos_w - s.origins,
    "root_quat_w_again": lambda s: s.root_quat_w * np.where(s.root_quat_w[:, 3:] < 0.0, -1.0, 1.0),
    "body_projected_gravity_b": lambda s: rotate_inverse(s.body_pose_w[..., 3:], s.gravity_dir_w[:, None]).reshape(
        len(s.origins), -1
    ),
    "joint_pos_limit_normalized": lambda s: (
        (s.joint_pos - s.soft_joint_pos_lower) / (s.soft_joint_pos_upper - s.soft_joint_pos_lower) * 2.0 - 1.0
    ),
    "joint_vel_rel": lambda s: s.joint_vel - s.default_joint_vel,
    "last_action_again": lambda s: s.actions[:, 4:],
    "remaining_time_s": lambda s: 1.0 - s.length[:, None] / 60.0,
    "body_incoming_wrench": lambda s: s.wrench.reshape(len(s.origins), -1),
    "base_heading_proj": lambda s: heading(s)[:, None],
    "base_angle_to_target": lambda s: np.angle(np.exp(1j * (target_direction(s) - yaw_of(s.root_quat_w))))[:, None],
}
REWARDED = {
    "progress_reward": lambda s: speed_to(s, "progress_reward", (1000.0, -20.0)),
    "progress_reward_again": lambda s: speed_to(s, "progress_reward_again", (0.0, 5.0)),
    "is_terminated_term": lambda s: count_held(s, ".*"),
    "is_terminated_term_again": lambda s: count_held(s, "joint_pos.*|illegal_contact"),
    "track_ang_vel_z_world_exp": lambda s: np.exp(-((s.velocity[:, 2] - s.root_ang_vel_w[:, 2]) ** 2) / 0.64),
    "flat_orientation_l2": lambda s: 1.0 - s.projected_gravity_b[:, 2] ** 2,
    "base_height_l2": lambda s: ((s.root_pos_w - s.origins)[:, 2] - 0.4) ** 2,
    "body_lin_acc_l2": lambda s: np.sqrt((s.body_acc_w[..., :3] ** 2).sum(axis=-1)).sum(axis=1),
    "joint_torques_l2": lambda s: (s.applied_effort**2).sum(axis=1),
    "joint_acc_l2": lambda s: (s.joint_acc**2).sum(axis=1),
    "joint_deviation_l1": lambda s: np.abs(s.joint_pos - s.default_joint_pos).sum(axis=1),
    "joint_pos_limits": lambda s: np.abs(
        s.joint_pos - np.clip(s.joint_pos, s.soft_joint_pos_lower, s.soft_joint_pos_upper)
    ).sum(axis=1),
    "joint_vel_limits": lambda s: np.clip(np.abs(s.joint_vel) - 0.6 * s.joint_vel_limits, 0.0, 1.0).sum(axis=1),
    "applied_torque_limits": lambda s: np.abs(s.computed_effort - s.applied_effort).sum(axis=1),
    "action_rate_l2": lambda s: ((s.actions - s.previous_actions) ** 2).sum(axis=1),
    "undesired_contacts": lambda s: (forces(s) > 1.5).sum(axis=1),
    "desired_contacts": lambda s: forces(s).max(axis=1) <= 1.0,
    "contact_forces": lambda s: np.maximum(forces(s) - 0.7, 0.0).sum(axis=1),
    "track_lin_vel_xy_exp": lambda s: np.exp(-((s.velocity[:, :2] - s.root_lin_vel_b[:, :2]) ** 2).sum(axis=1) / 0.81),
    "track_ang_vel_z_exp": lambda s: np.exp(-((s.velocity[:, 2] - s.root_ang_vel_b[:, 2]) ** 2) / 0.64),
    "joint_pos_target_l2": lambda s: ((s.joint_pos[:, joints(s, "_leg")] - 0.3) ** 2).sum(axis=1),
    "upright_posture_bonus": lambda s: -s.projected_gravity_b[:, 2] > 0.2,
    "move_to_target_bonus": lambda s: np.minimum(heading(s) / 0.4, 1.0),
    "terminated_penalty": lambda s: 60.0 * s.terminated,
    "joint_pos_limits_penalty_ratio": near_limits,
    "power_consumption": power,
    "feet_air_time": air_time,
    "feet_air_time_positive_biped": one_foot_time,
    "feet_air_time_variance": variance,
    "feet_slide": slide,
    "track_lin_vel_xy_yaw_frame_exp": lambda s: np.exp(-yaw_frame_error(s) / 0.81),
    "stand_still_joint_deviation_l1": lambda s: (
        np.abs(s.joint_pos - s.default_joint_pos).sum(axis=1) * (np.hypot(*s.velocity[:, :2].T) < 0.06)
    ),
    "position_command_error": lambda s: distance(s, "left_back_foot"),
    "position_command_error_again": lambda s: distance(s, "right_back_foot"),
    "position_command_error_tanh": lambda s: 1.0 - np.tanh(distance(s, "left_back_foot") / 2.0),
    "orientation_command_error": lambda s: angle_between(s, "right_back_foot"),
}
ENDED = {
    "command_resample": lambda s: (s.time_left <= DT) & (s.draws == 1),
    "illegal_contact": lambda s: (forces(s) > 2.5).any(axis=1),
    "joint_pos_out_of_limit": lambda s: (
        (s.joint_pos < s.soft_joint_pos_lower) | (s.joint_pos > s.soft_joint_pos_upper)
    ).any(axis=1),
    "joint_pos_out_of_manual_limit": lambda s: (np.abs(s.joint_pos - 0.025) > 0.925).any(axis=1),
    "joint_vel_out_of_manual_limit": lambda s: np.abs(s.joint_vel).max(axis=1) > 1.8,
    "bad_orientation": lambda s: -s.projected_gravity_b[:, 2] < math.cos(1.2),
    "root_height_below_minimum": lambda s: (s.root_pos_w - s.origins)[:, 2] < 0.3,
    "joint_vel_out_of_limit": lambda s: (np.abs(s.joint_vel) > s.joint_vel_limits).any(axis=1),
    "joint_effort_out_of_limit": lambda s: ~np.isclose(s.computed_effort, s.applied_effort).all(axis=1),
    "pose_command_success": lambda s: (
        (distance(s, "left_back_foot") < 2.5) & (angle_between(s, "left_back_foot") < 2.2)
    ),
}


@pytest.mark.parametrize("name", OBSERVED)
def test_observations(env, state, name):
    expected = OBSERVED[name](state)
    value = compute_torch(env.observation_manager.groups["policy"].terms[name])[0].numpy()
    np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", REWARDED)
def test_rewards(env, state, name):
    expected = REWARDED[name](state)
    value = compute_torch(env.reward_manager.terms[name])[0].numpy()
    np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ENDED)
def test_terminations(env, state, name):
    value = compute_torch(env.termination_manager.terms[name])[0].numpy()
    np.testing.assert_array_equal(value, ENDED[name](state))


def test_what_has_no_formula_here_is_simple():
    formulas = {name.removesuffix("_again") for name in (*OBSERVED, *REWARDED, *ENDED)}
    cases = {case.func.__name__ for case in (*OBSERVATIONS, *REWARDS, *TERMINATIONS)}
    assert cases - formulas == SIMPLE
