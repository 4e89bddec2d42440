"""Ant-Direct in NumPy and double precision, written from the published description of the task, not from its code.

Every number of the task stands here once more. One function computes what an agent sees and earns in one step from the
simulated state of the environments.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

CONTROL_DT = 2.0 / 120.0
STEPS_PER_EPISODE = 960
TARGET = np.array([1000.0, 0.0, 0.0])
GEAR = 15.0
ACTION_SCALE = 0.5
TERMINATION_HEIGHT = 0.31
JOINTS = (
    *("front_left_leg", "front_left_foot", "front_right_leg", "front_right_foot"),
    *("left_back_leg", "left_back_foot", "right_back_leg", "right_back_foot"),
)
FEET = ("front_left_foot", "front_right_foot", "left_back_foot", "right_back_foot")
DEFAULT_JOINT_POS = np.array([0.0, 0.785398, 0.0, -0.785398, 0.0, -0.785398, 0.0, 0.785398])
LEG, POSITIVE, NEGATIVE = (-40.0, 40.0), (30.0, 100.0), (-100.0, -30.0)
LIMITS = np.deg2rad([LEG, POSITIVE, LEG, NEGATIVE, LEG, NEGATIVE, LEG, POSITIVE])

BLOCKS = {
    "base height": 1,
    "base linear velocity, body frame": 3,
    "base angular velocity, body frame": 3,
    "yaw and roll": 2,
    "angle to target": 1,
    "up projection": 1,
    "heading projection": 1,
    "normalized joint positions": 8,
    "joint velocities": 8,
    "foot wrenches": 24,
    "last actions": 8,
}
"""The observation: name and size of each block, in order."""

REWARDS = (
    *("progress", "alive", "upright", "move_to_target"),
    *("action_l2", "energy", "joint_pos_limits", "terminating"),
)


@dataclass
class AntState:
    """What the reference needs of the environments. Arrays of shape (num_envs, ...), world frame, (x, y, z, w)."""

    origin: np.ndarray
    root_pos: np.ndarray
    root_quat: np.ndarray
    root_lin_vel: np.ndarray
    root_ang_vel: np.ndarray
    joint_pos: np.ndarray
    joint_vel: np.ndarray
    foot_wrench: np.ndarray
    """Force then torque of each foot, shape (num_envs, 4, 6)."""
    actions: np.ndarray
    last_distance: np.ndarray
    """Distance to the target in the ground plane after the step before [m]."""


def rotation_matrix(quat: np.ndarray) -> np.ndarray:
    """Return rotation matrices, body to world, shape (..., 3, 3)."""
    x, y, z, w = np.moveaxis(quat, -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


def wrap(angle: np.ndarray) -> np.ndarray:
    """Wrap an angle to [-pi, pi)."""
    return (angle + np.pi) % (2.0 * np.pi) - np.pi


def efforts(actions: np.ndarray) -> np.ndarray:
    """Return joint efforts [N*m]."""
    return ACTION_SCALE * GEAR * np.clip(actions, -1.0, 1.0)


def terminated(state: AntState) -> np.ndarray:
    """Return which environments are in a terminal state."""
    return state.root_pos[:, 2] - state.origin[:, 2] < TERMINATION_HEIGHT


def target_distance(state: AntState) -> np.ndarray:
    """Return the distance to the target in the ground plane [m]."""
    return np.linalg.norm((state.origin + TARGET - state.root_pos)[:, :2], axis=1)


def rewards(state: AntState) -> dict[str, np.ndarray]:
    """Return the weighted reward terms of a step."""
    matrix = rotation_matrix(state.root_quat)
    up, heading = matrix[:, 2, 2], _heading(state, matrix)
    fell = terminated(state)
    beyond = np.maximum(np.abs(_normalized(state.joint_pos)) - 0.99, 0.0) / (1.0 - 0.99)
    per_second = {
        "progress": 1.0 * (state.last_distance - target_distance(state)) / CONTROL_DT,
        "alive": 0.5 * ~fell,
        "upright": 0.1 * (up > 0.93),
        "move_to_target": 0.5 * np.where(heading > 0.8, 1.0, heading / 0.8),
        "action_l2": -0.005 * (state.actions**2).sum(axis=1),
        "energy": -0.05 * np.abs(state.actions * state.joint_vel).sum(axis=1),
        "joint_pos_limits": -0.1 * beyond.sum(axis=1),
    }
    return {name: value * CONTROL_DT for name, value in per_second.items()} | {"terminating": -2.0 * fell}


def observation(state: AntState) -> np.ndarray:
    """Return the observation, shape (num_envs, 60)."""
    matrix = rotation_matrix(state.root_quat)
    to_body = np.swapaxes(matrix, 1, 2)
    yaw = np.arctan2(matrix[:, 1, 0], matrix[:, 0, 0])
    roll = np.arctan2(matrix[:, 2, 1], matrix[:, 2, 2])
    to_target = state.origin + TARGET - state.root_pos
    blocks = [
        state.root_pos[:, 2:3] - state.origin[:, 2:3],
        np.einsum("nij,nj->ni", to_body, state.root_lin_vel),
        np.einsum("nij,nj->ni", to_body, state.root_ang_vel),
        np.stack((yaw, roll), axis=1),
        wrap(np.arctan2(to_target[:, 1], to_target[:, 0]) - yaw)[:, None],
        matrix[:, 2, 2, None],
        _heading(state, matrix)[:, None],
        _normalized(state.joint_pos),
        0.2 * state.joint_vel,
        0.1 * state.foot_wrench.reshape(len(state.origin), 24),
        state.actions,
    ]
    assert [block.shape[1] for block in blocks] == list(BLOCKS.values())
    return np.concatenate(blocks, axis=1)


def _heading(state: AntState, matrix: np.ndarray) -> np.ndarray:
    direction = state.origin + TARGET - state.root_pos
    direction[:, 2] = 0.0
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return (matrix[:, :, 0] * direction).sum(axis=1)


def _normalized(joint_pos: np.ndarray) -> np.ndarray:
    lower, upper = LIMITS.T
    return (2.0 * joint_pos - lower - upper) / (upper - lower)
