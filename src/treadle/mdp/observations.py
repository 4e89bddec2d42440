"""Observation terms of an articulation, each in torch and, for one environment, in Warp."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import warp as wp

from treadle.assets.articulation_data import torch_view
from treadle.assets.articulation_state import ArticulationState
from treadle.managers.env_state import EnvState
from treadle.managers.scene_entity import SceneEntityCfg
from treadle.managers.twins import warp_twin
from treadle.mdp import math_torch
from treadle.mdp.math_funcs import normalized_position

if TYPE_CHECKING:
    from treadle.envs import ManagerBasedRLEnv

__all__ = [
    "base_ang_vel",
    "base_lin_vel",
    "base_pos_z",
    "body_pose_w",
    "body_projected_gravity_b",
    "joint_effort",
    "joint_pos",
    "joint_pos_limit_normalized",
    "joint_pos_rel",
    "joint_vel",
    "joint_vel_rel",
    "projected_gravity",
    "root_ang_vel_w",
    "root_lin_vel_w",
    "root_pos_w",
    "root_quat_w",
]

wp.set_module_options({"enable_backward": False})

ROBOT = SceneEntityCfg(name="robot")


def base_pos_z(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Height of the root above the environment's origin [m], shape (num_envs, 1)."""
    height = env.scene[asset_cfg.name].data.torch.root_pos_w[:, 2] - torch_view(env.scene.env_origins)[:, 2]
    return height[:, None]


@warp_twin(base_pos_z)
def _(env: int, asset: ArticulationState, state: EnvState) -> float:
    return asset.root_pos_w[env][2] - state.env_origins[env][2]


def base_lin_vel(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Velocity of the root's centre of mass, body frame [m/s], shape (num_envs, 3)."""
    return env.scene[asset_cfg.name].data.torch.root_lin_vel_b


@warp_twin(base_lin_vel)
def _(env: int, asset: ArticulationState) -> wp.vec3:
    return asset.root_lin_vel_b[env]


def base_ang_vel(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Angular velocity of the root, body frame [rad/s], shape (num_envs, 3)."""
    return env.scene[asset_cfg.name].data.torch.root_ang_vel_b


@warp_twin(base_ang_vel)
def _(env: int, asset: ArticulationState) -> wp.vec3:
    return asset.root_ang_vel_b[env]


def projected_gravity(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Direction of gravity, body frame of the root, shape (num_envs, 3)."""
    return env.scene[asset_cfg.name].data.torch.projected_gravity_b


@warp_twin(projected_gravity)
def _(env: int, asset: ArticulationState) -> wp.vec3:
    return asset.projected_gravity_b[env]


def root_pos_w(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Position of the root relative to the environment's origin, axes of the world [m], shape (num_envs, 3)."""
    return env.scene[asset_cfg.name].data.torch.root_pos_w - torch_view(env.scene.env_origins)


@warp_twin(root_pos_w)
def _(env: int, asset: ArticulationState, state: EnvState) -> wp.vec3:
    return asset.root_pos_w[env] - state.env_origins[env]


def root_quat_w(
    env: ManagerBasedRLEnv, make_quat_unique: bool = False, asset_cfg: SceneEntityCfg = ROBOT
) -> torch.Tensor:
    """Orientation of the root (x, y, z, w), world frame, shape (num_envs, 4).

    Args:
        env: The environment.
        make_quat_unique: Whether to turn the sign so that w is not negative.
        asset_cfg: Articulation.
    """
    quat = env.scene[asset_cfg.name].data.torch.root_quat_w
    return torch.where(quat[:, 3:] < 0.0, -quat, quat) if make_quat_unique else quat


@warp_twin(root_quat_w)
def _(env: int, asset: ArticulationState, make_quat_unique: bool) -> wp.vec4:
    q = asset.root_quat_w[env]
    sign = wp.where(make_quat_unique and q[3] < 0.0, -1.0, 1.0)
    return sign * wp.vec4(q[0], q[1], q[2], q[3])


def root_lin_vel_w(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Velocity of the root's centre of mass, world frame [m/s], shape (num_envs, 3)."""
    return env.scene[asset_cfg.name].data.torch.root_lin_vel_w


@warp_twin(root_lin_vel_w)
def _(env: int, asset: ArticulationState) -> wp.vec3:
    return asset.root_lin_vel_w[env]


def root_ang_vel_w(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Angular velocity of the root, world frame [rad/s], shape (num_envs, 3)."""
    return env.scene[asset_cfg.name].data.torch.root_ang_vel_w


@warp_twin(root_ang_vel_w)
def _(env: int, asset: ArticulationState) -> wp.vec3:
    return asset.root_ang_vel_w[env]


def body_pose_w(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Poses of bodies: position relative to the environment's origin [m], quaternion (x, y, z, w), axes of the world.

    Shape (num_envs, 7 * num_bodies), body by body.
    """
    pose = env.scene[asset_cfg.name].data.torch.body_pose_w[:, asset_cfg.body_ids]
    position = pose[..., :3] - torch_view(env.scene.env_origins)[:, None]
    return torch.cat((position, pose[..., 3:]), dim=-1).flatten(1)


@warp_twin(body_pose_w)
def _(env: int, asset: ArticulationState, state: EnvState, body_ids: wp.array[int], out: wp.array[float]) -> None:
    for i in range(body_ids.shape[0]):
        pose = asset.body_pose_w[env, body_ids[i]]
        position = wp.transform_get_translation(pose) - state.env_origins[env]
        quat = wp.transform_get_rotation(pose)
        for axis in range(3):
            out[7 * i + axis] = position[axis]
        for axis in range(4):
            out[7 * i + 3 + axis] = quat[axis]


def body_projected_gravity_b(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Direction of gravity in the frames of bodies, shape (num_envs, 3 * num_bodies), body by body."""
    data = env.scene[asset_cfg.name].data.torch
    quat = data.body_pose_w[:, asset_cfg.body_ids, 3:]
    return math_torch.quat_rotate_inverse(quat, data.gravity_dir_w[:, None]).flatten(1)


@warp_twin(body_projected_gravity_b)
def _(env: int, asset: ArticulationState, body_ids: wp.array[int], out: wp.array[float]) -> None:
    for i in range(body_ids.shape[0]):
        quat = wp.transform_get_rotation(asset.body_pose_w[env, body_ids[i]])
        direction = wp.quat_rotate_inv(quat, asset.gravity_dir_w[env])
        for axis in range(3):
            out[3 * i + axis] = direction[axis]


def joint_pos(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Joint positions [rad or m], shape (num_envs, num_joints)."""
    return env.scene[asset_cfg.name].data.torch.joint_pos[:, asset_cfg.joint_ids]


@warp_twin(joint_pos)
def _(env: int, asset: ArticulationState, joint_ids: wp.array[int], out: wp.array[float]) -> None:
    for i in range(joint_ids.shape[0]):
        out[i] = asset.joint_pos[env, joint_ids[i]]


def joint_pos_rel(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Joint positions relative to the default ones [rad or m], shape (num_envs, num_joints)."""
    data = env.scene[asset_cfg.name].data.torch
    return (data.joint_pos - data.default_joint_pos)[:, asset_cfg.joint_ids]


@warp_twin(joint_pos_rel)
def _(env: int, asset: ArticulationState, joint_ids: wp.array[int], out: wp.array[float]) -> None:
    for i in range(joint_ids.shape[0]):
        j = joint_ids[i]
        out[i] = asset.joint_pos[env, j] - asset.default_joint_pos[env, j]


def joint_pos_limit_normalized(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Joint positions scaled so that the soft limits are -1 and 1, shape (num_envs, num_joints)."""
    data = env.scene[asset_cfg.name].data.torch
    scaled = math_torch.normalized_position(data.joint_pos, data.soft_joint_pos_lower, data.soft_joint_pos_upper)
    return scaled[:, asset_cfg.joint_ids]


@warp_twin(joint_pos_limit_normalized)
def _(env: int, asset: ArticulationState, joint_ids: wp.array[int], out: wp.array[float]) -> None:
    for i in range(joint_ids.shape[0]):
        j = joint_ids[i]
        lower, upper = asset.soft_joint_pos_lower[env, j], asset.soft_joint_pos_upper[env, j]
        out[i] = normalized_position(asset.joint_pos[env, j], lower, upper)


def joint_vel(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Joint velocities [rad/s or m/s], shape (num_envs, num_joints)."""
    return env.scene[asset_cfg.name].data.torch.joint_vel[:, asset_cfg.joint_ids]


@warp_twin(joint_vel)
def _(env: int, asset: ArticulationState, joint_ids: wp.array[int], out: wp.array[float]) -> None:
    for i in range(joint_ids.shape[0]):
        out[i] = asset.joint_vel[env, joint_ids[i]]


def joint_vel_rel(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Joint velocities relative to the default ones [rad/s or m/s], shape (num_envs, num_joints)."""
    data = env.scene[asset_cfg.name].data.torch
    return (data.joint_vel - data.default_joint_vel)[:, asset_cfg.joint_ids]


@warp_twin(joint_vel_rel)
def _(env: int, asset: ArticulationState, joint_ids: wp.array[int], out: wp.array[float]) -> None:
    for i in range(joint_ids.shape[0]):
        j = joint_ids[i]
        out[i] = asset.joint_vel[env, j] - asset.default_joint_vel[env, j]


def joint_effort(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Efforts applied to the joints [N*m or N], shape (num_envs, num_joints)."""
    return env.scene[asset_cfg.name].data.torch.applied_effort[:, asset_cfg.joint_ids]


@warp_twin(joint_effort)
def _(env: int, asset: ArticulationState, joint_ids: wp.array[int], out: wp.array[float]) -> None:
    for i in range(joint_ids.shape[0]):
        out[i] = asset.applied_effort[env, joint_ids[i]]
