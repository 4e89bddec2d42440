"""Ant-Direct and Humanoid-Direct in NumPy and double precision, written from the published description alone.

Every number of the tasks stands here once more. One function computes what an agent sees and earns in one step from the
simulated state of the environments.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

CONTROL_DT = 2.0 / 120.0
STEPS_PER_EPISODE = 960
TARGET = np.array([1000.0, 0.0, 0.0])
REWARDS = (
    *("progress", "alive", "upright", "move_to_target"),
    *("action_l2", "energy", "joint_pos_limits", "terminating"),
)


@dataclass(frozen=True)
class Task:
    """The numbers of a task."""

    task_id: str
    joints: tuple[str, ...]
    feet: tuple[str, ...]
    root_height: float
    default_joint_pos: np.ndarray
    limits: np.ndarray
    """Limits of the joints [rad], shape (num_joints, 2)."""
    gears: np.ndarray
    """Effort of each joint at an action of 1 [N*m], before ``action_scale``."""
    action_scale: float
    stiffness: np.ndarray
    damping: np.ndarray
    armature: float
    effort_limit: float
    termination_height: float
    ang_vel_scale: float
    joint_vel_scale: float
    wrench_scale: float
    limit_threshold: float
    weights: dict[str, float]
    self_collisions: bool
    substeps: int
    njmax: int
    num_bodies: int

    @property
    def blocks(self) -> dict[str, int]:
        """The observation: name and size of each block, in order."""
        return {
            "base height": 1,
            "base linear velocity, body frame": 3,
            "base angular velocity, body frame": 3,
            "yaw and roll": 2,
            "angle to target": 1,
            "up projection": 1,
            "heading projection": 1,
            "normalized joint positions": len(self.joints),
            "joint velocities": len(self.joints),
            "foot wrenches": 6 * len(self.feet),
            "last actions": len(self.joints),
        }

    @property
    def columns(self) -> list[str]:
        """Names of the columns of the observation."""
        return [f"{block}[{i}]" for block, size in self.blocks.items() for i in range(size)]


_LEG, _POSITIVE, _NEGATIVE = (-40.0, 40.0), (30.0, 100.0), (-100.0, -30.0)

ANT = Task(
    task_id="Ant-Direct",
    joints=(
        *("front_left_leg", "front_left_foot", "front_right_leg", "front_right_foot"),
        *("left_back_leg", "left_back_foot", "right_back_leg", "right_back_foot"),
    ),
    feet=("front_left_foot", "front_right_foot", "left_back_foot", "right_back_foot"),
    root_height=0.5,
    default_joint_pos=np.array([0.0, 0.785398, 0.0, -0.785398, 0.0, -0.785398, 0.0, 0.785398]),
    limits=np.deg2rad([_LEG, _POSITIVE, _LEG, _NEGATIVE, _LEG, _NEGATIVE, _LEG, _POSITIVE]),
    gears=np.full(8, 15.0),
    action_scale=0.5,
    stiffness=np.zeros(8),
    damping=np.full(8, 0.1),
    armature=0.05,
    effort_limit=15.0,
    termination_height=0.31,
    ang_vel_scale=1.0,
    joint_vel_scale=0.2,
    wrench_scale=0.1,
    limit_threshold=0.99,
    weights=dict(zip(REWARDS, (1.0, 0.5, 0.1, 0.5, -0.005, -0.05, -0.1, -2.0), strict=True)),
    self_collisions=False,
    substeps=1,
    njmax=45,
    num_bodies=9,
)

# Name, lower and upper limit [deg], gear, stiffness, damping.
_LEFT_AND_RIGHT = ("right", "left")
_HUMANOID = [
    ("lower_waist:0", -45, 45, 67.5, 20, 5),
    ("lower_waist:1", -75, 30, 67.5, 20, 5),
    ("pelvis", -35, 35, 67.5, 10, 5),
    *(
        (f"{side}_{name}", *numbers)
        for side in _LEFT_AND_RIGHT
        for name, *numbers in (
            ("thigh:0", -25, 5, 45.0, 10, 5),
            ("thigh:2", -60, 35, 45.0, 10, 5),
            ("thigh:1", -80, 20, 135.0, 20, 5),
            ("shin", -160, 2, 90.0, 5, 0.1),
            ("foot:0", -50, 50, 22.5, 2, 1),
            ("foot:1", -50, 50, 22.5, 2, 1),
        )
    ),
    *(
        (f"{side}_{name}", *numbers)
        for side in _LEFT_AND_RIGHT
        for name, *numbers in (
            ("upper_arm:0", -60, 60, 67.5, 10, 5),
            ("upper_arm:1", -60, 60, 67.5, 10, 5),
            ("lower_arm", -90, 50, 45.0, 2, 1),
        )
    ),
]
_NUMBERS = np.array([numbers for _, *numbers in _HUMANOID], dtype=float)

HUMANOID = Task(
    task_id="Humanoid-Direct",
    joints=tuple(name for name, *_ in _HUMANOID),
    feet=("right_foot", "left_foot"),
    root_height=1.34,
    default_joint_pos=np.zeros(21),
    limits=np.deg2rad(_NUMBERS[:, :2]),
    gears=_NUMBERS[:, 2],
    action_scale=1.0,
    stiffness=_NUMBERS[:, 3],
    damping=_NUMBERS[:, 4],
    armature=0.01,
    effort_limit=150.0,
    termination_height=0.8,
    ang_vel_scale=0.25,
    joint_vel_scale=0.1,
    wrench_scale=0.01,
    limit_threshold=0.98,
    weights=dict(zip(REWARDS, (1.0, 2.0, 0.1, 0.5, -0.01, -0.005, -0.25, -1.0), strict=True)),
    self_collisions=True,
    substeps=2,
    njmax=80,
    num_bodies=13,
)

TASKS = {task.task_id: task for task in (ANT, HUMANOID)}


@dataclass
class RobotState:
    """What the reference needs of the environments. Arrays of shape (num_envs, ...), world frame, (x, y, z, w)."""

    origin: np.ndarray
    root_pos: np.ndarray
    root_quat: np.ndarray
    root_lin_vel: np.ndarray
    root_ang_vel: np.ndarray
    joint_pos: np.ndarray
    joint_vel: np.ndarray
    foot_wrench: np.ndarray
    """Force then torque of each foot, shape (num_envs, num_feet, 6)."""
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


def efforts(task: Task, actions: np.ndarray) -> np.ndarray:
    """Return joint efforts [N*m]."""
    return task.action_scale * task.gears * np.clip(actions, -1.0, 1.0)


def terminated(task: Task, state: RobotState) -> np.ndarray:
    """Return which environments are in a terminal state."""
    return state.root_pos[:, 2] - state.origin[:, 2] < task.termination_height


def target_distance(state: RobotState) -> np.ndarray:
    """Return the distance to the target in the ground plane [m]."""
    return np.linalg.norm((state.origin + TARGET - state.root_pos)[:, :2], axis=1)


def rewards(task: Task, state: RobotState) -> dict[str, np.ndarray]:
    """Return the weighted reward terms of a step."""
    matrix = rotation_matrix(state.root_quat)
    up, heading = matrix[:, 2, 2], _heading(state, matrix)
    fell, threshold, ratio = terminated(task, state), task.limit_threshold, task.gears / task.gears.max()
    beyond = np.maximum(np.abs(_normalized(task, state.joint_pos)) - threshold, 0.0) / (1.0 - threshold)
    per_second = {
        "progress": (state.last_distance - target_distance(state)) / CONTROL_DT,
        "alive": 1.0 * ~fell,
        "upright": 1.0 * (up > 0.93),
        "move_to_target": np.where(heading > 0.8, 1.0, heading / 0.8),
        "action_l2": (state.actions**2).sum(axis=1),
        "energy": np.abs(state.actions * state.joint_vel * ratio).sum(axis=1),
        "joint_pos_limits": (beyond * ratio).sum(axis=1),
    }
    terms = {name: task.weights[name] * value * CONTROL_DT for name, value in per_second.items()}
    return terms | {"terminating": task.weights["terminating"] * fell}


def observation(task: Task, state: RobotState) -> np.ndarray:
    """Return the observation, shape (num_envs, size)."""
    matrix = rotation_matrix(state.root_quat)
    to_body = np.swapaxes(matrix, 1, 2)
    yaw = np.arctan2(matrix[:, 1, 0], matrix[:, 0, 0])
    roll = np.arctan2(matrix[:, 2, 1], matrix[:, 2, 2])
    to_target = state.origin + TARGET - state.root_pos
    blocks = [
        state.root_pos[:, 2:3] - state.origin[:, 2:3],
        np.einsum("nij,nj->ni", to_body, state.root_lin_vel),
        task.ang_vel_scale * np.einsum("nij,nj->ni", to_body, state.root_ang_vel),
        np.stack((yaw, roll), axis=1),
        wrap(np.arctan2(to_target[:, 1], to_target[:, 0]) - yaw)[:, None],
        matrix[:, 2, 2, None],
        _heading(state, matrix)[:, None],
        _normalized(task, state.joint_pos),
        task.joint_vel_scale * state.joint_vel,
        task.wrench_scale * state.foot_wrench.reshape(len(state.origin), -1),
        state.actions,
    ]
    assert [block.shape[1] for block in blocks] == list(task.blocks.values())
    return np.concatenate(blocks, axis=1)


def _heading(state: RobotState, matrix: np.ndarray) -> np.ndarray:
    direction = state.origin + TARGET - state.root_pos
    direction[:, 2] = 0.0
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return (matrix[:, :, 0] * direction).sum(axis=1)


def _normalized(task: Task, joint_pos: np.ndarray) -> np.ndarray:
    lower, upper = task.limits.T
    return (2.0 * joint_pos - lower - upper) / (upper - lower)
