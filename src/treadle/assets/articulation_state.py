"""The arrays of an articulation as one argument of a kernel."""

from __future__ import annotations

from typing import Any

import warp as wp

__all__ = ["ArticulationState"]


@wp.struct
class ArticulationState:
    """What :class:`treadle.assets.ArticulationData` documents, under the same names, and what only kernels write."""

    joint_pos: wp.array2d[float]
    joint_vel: wp.array2d[float]
    joint_acc: wp.array2d[float]
    previous_joint_vel: wp.array2d[float]
    gravity_dir_w: wp.array[wp.vec3]
    root_pos_w: wp.array[wp.vec3]
    root_quat_w: wp.array[wp.quat]
    root_lin_vel_w: wp.array[wp.vec3]
    root_ang_vel_w: wp.array[wp.vec3]
    root_lin_vel_b: wp.array[wp.vec3]
    root_ang_vel_b: wp.array[wp.vec3]
    projected_gravity_b: wp.array[wp.vec3]
    body_pose_w: wp.array2d[wp.transform]
    body_vel_w: wp.array2d[wp.spatial_vector]
    body_acc_w: wp.array2d[wp.spatial_vector]
    joint_effort_target: wp.array2d[float]
    joint_pos_target: wp.array2d[float]
    joint_vel_target: wp.array2d[float]
    applied_effort: wp.array2d[float]
    computed_effort: wp.array2d[float]
    default_root_pose: wp.array[wp.transform]
    default_root_vel: wp.array[wp.spatial_vector]
    default_joint_pos: wp.array2d[float]
    default_joint_vel: wp.array2d[float]
    joint_pos_lower: wp.array2d[float]
    joint_pos_upper: wp.array2d[float]
    soft_joint_pos_lower: wp.array2d[float]
    soft_joint_pos_upper: wp.array2d[float]
    joint_vel_limits: wp.array2d[float]
    soft_joint_vel_limits: wp.array2d[float]
    joint_effort_limits: wp.array2d[float]
    joint_stiffness: wp.array2d[float]
    joint_damping: wp.array2d[float]
    env_origins: wp.array[wp.vec3]
    root_q: wp.array2d[float]
    """Root pose for writing: world position [m], quaternion (x, y, z, w); shape (num_envs, 7), empty if fixed."""
    root_qd: wp.array2d[float]
    """Root velocity for writing: linear of the centre of mass [m/s], angular [rad/s]; shape (num_envs, 6)."""


def fill_state(data: Any, env_origins: wp.array, root_q: wp.array, root_qd: wp.array) -> ArticulationState:
    """Return the struct of an articulation's data."""
    state = ArticulationState()
    for name in ArticulationState.vars:  # type: ignore[attr-defined]
        if hasattr(data, name):
            setattr(state, name, getattr(data, name))
    state.env_origins, state.root_q, state.root_qd = env_origins, root_q, root_qd
    return state
