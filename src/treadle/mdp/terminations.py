"""Termination terms of an articulation, each in torch and, for one environment, in Warp."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import warp as wp

from treadle.assets.articulation_data import torch_view
from treadle.assets.articulation_state import ArticulationState
from treadle.managers.env_state import EnvState
from treadle.managers.scene_entity import SceneEntityCfg
from treadle.managers.twins import warp_twin

if TYPE_CHECKING:
    from treadle.envs import ManagerBasedRLEnv

__all__ = [
    "bad_orientation",
    "joint_effort_out_of_limit",
    "joint_pos_out_of_limit",
    "joint_pos_out_of_manual_limit",
    "joint_vel_out_of_limit",
    "joint_vel_out_of_manual_limit",
    "non_finite_state",
    "root_height_below_minimum",
]

wp.set_module_options({"enable_backward": False})

ROBOT = SceneEntityCfg(name="robot")


def bad_orientation(env: ManagerBasedRLEnv, limit_angle: float, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Whether the body's z axis is further from up than an angle, shape (num_envs,).

    Args:
        env: The environment.
        limit_angle: Angle [rad].
        asset_cfg: Articulation.
    """
    up = -env.scene[asset_cfg.name].data.torch.projected_gravity_b[:, 2]
    return up.clamp(-1.0, 1.0).acos() > limit_angle


@warp_twin(bad_orientation)
def _(env: int, asset: ArticulationState, limit_angle: float) -> bool:
    return wp.acos(wp.clamp(-asset.projected_gravity_b[env][2], -1.0, 1.0)) > limit_angle


def root_height_below_minimum(
    env: ManagerBasedRLEnv, minimum_height: float, asset_cfg: SceneEntityCfg = ROBOT
) -> torch.Tensor:
    """Whether the root is lower above the environment's origin than a height, shape (num_envs,).

    Args:
        env: The environment.
        minimum_height: Height above flat ground [m].
        asset_cfg: Articulation.
    """
    height = env.scene[asset_cfg.name].data.torch.root_pos_w[:, 2] - torch_view(env.scene.env_origins)[:, 2]
    return height < minimum_height


@warp_twin(root_height_below_minimum)
def _(env: int, asset: ArticulationState, state: EnvState, minimum_height: float) -> bool:
    return asset.root_pos_w[env][2] - state.env_origins[env][2] < minimum_height


def joint_pos_out_of_limit(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Whether a joint position is beyond its soft limits, shape (num_envs,)."""
    data, ids = env.scene[asset_cfg.name].data.torch, asset_cfg.joint_ids
    outside = (data.joint_pos < data.soft_joint_pos_lower) | (data.joint_pos > data.soft_joint_pos_upper)
    return outside[:, ids].any(dim=1)


@warp_twin(joint_pos_out_of_limit)
def _(env: int, asset: ArticulationState, joint_ids: wp.array[int]) -> bool:
    outside = bool(False)
    for i in range(joint_ids.shape[0]):
        j = joint_ids[i]
        position = asset.joint_pos[env, j]
        outside = outside or position < asset.soft_joint_pos_lower[env, j]
        outside = outside or position > asset.soft_joint_pos_upper[env, j]
    return outside


def joint_pos_out_of_manual_limit(
    env: ManagerBasedRLEnv, bounds: tuple[float, float], asset_cfg: SceneEntityCfg = ROBOT
) -> torch.Tensor:
    """Whether a joint position is outside of given bounds [rad or m], shape (num_envs,)."""
    joint_pos = env.scene[asset_cfg.name].data.torch.joint_pos[:, asset_cfg.joint_ids]
    return ((joint_pos < bounds[0]) | (joint_pos > bounds[1])).any(dim=1)


@warp_twin(joint_pos_out_of_manual_limit)
def _(env: int, asset: ArticulationState, joint_ids: wp.array[int], bounds: wp.vec2) -> bool:
    outside = bool(False)
    for i in range(joint_ids.shape[0]):
        position = asset.joint_pos[env, joint_ids[i]]
        outside = outside or position < bounds[0] or position > bounds[1]
    return outside


def joint_vel_out_of_limit(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Whether a joint is faster than its velocity limit, shape (num_envs,)."""
    data, ids = env.scene[asset_cfg.name].data.torch, asset_cfg.joint_ids
    return (data.joint_vel.abs() > data.soft_joint_vel_limits)[:, ids].any(dim=1)


@warp_twin(joint_vel_out_of_limit)
def _(env: int, asset: ArticulationState, joint_ids: wp.array[int]) -> bool:
    outside = bool(False)
    for i in range(joint_ids.shape[0]):
        j = joint_ids[i]
        outside = outside or wp.abs(asset.joint_vel[env, j]) > asset.soft_joint_vel_limits[env, j]
    return outside


def joint_vel_out_of_manual_limit(
    env: ManagerBasedRLEnv, max_velocity: float, asset_cfg: SceneEntityCfg = ROBOT
) -> torch.Tensor:
    """Whether a joint is faster than a given velocity [rad/s or m/s], shape (num_envs,)."""
    joint_vel = env.scene[asset_cfg.name].data.torch.joint_vel[:, asset_cfg.joint_ids]
    return (joint_vel.abs() > max_velocity).any(dim=1)


@warp_twin(joint_vel_out_of_manual_limit)
def _(env: int, asset: ArticulationState, joint_ids: wp.array[int], max_velocity: float) -> bool:
    outside = bool(False)
    for i in range(joint_ids.shape[0]):
        outside = outside or wp.abs(asset.joint_vel[env, joint_ids[i]]) > max_velocity
    return outside


def joint_effort_out_of_limit(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Whether the effort limits changed the effort of a joint, by more than 1e-5 of it, shape (num_envs,)."""
    data, ids = env.scene[asset_cfg.name].data.torch, asset_cfg.joint_ids
    difference = (data.computed_effort - data.applied_effort).abs()
    return (difference > 1e-8 + 1e-5 * data.applied_effort.abs())[:, ids].any(dim=1)


@warp_twin(joint_effort_out_of_limit)
def _(env: int, asset: ArticulationState, joint_ids: wp.array[int]) -> bool:
    outside = bool(False)
    for i in range(joint_ids.shape[0]):
        j = joint_ids[i]
        applied = asset.applied_effort[env, j]
        outside = outside or wp.abs(asset.computed_effort[env, j] - applied) > 1.0e-8 + 1.0e-5 * wp.abs(applied)
    return outside


def non_finite_state(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Whether a position or a velocity of the root or of a joint is not finite, shape (num_envs,).

    Environments end in this case without the term too; it names the reason in the log.
    """
    data, ids = env.scene[asset_cfg.name].data.torch, asset_cfg.joint_ids
    root = (data.root_pos_w, data.root_quat_w, data.root_lin_vel_w, data.root_ang_vel_w)
    values = torch.cat((*root, data.joint_pos[:, ids], data.joint_vel[:, ids]), dim=1)
    return ~values.isfinite().all(dim=1)


@warp_twin(non_finite_state)
def _(env: int, asset: ArticulationState, joint_ids: wp.array[int]) -> bool:
    is_finite = wp.isfinite(asset.root_pos_w[env]) and wp.isfinite(asset.root_quat_w[env])
    is_finite = is_finite and wp.isfinite(asset.root_lin_vel_w[env]) and wp.isfinite(asset.root_ang_vel_w[env])
    for i in range(joint_ids.shape[0]):
        j = joint_ids[i]
        is_finite = is_finite and wp.isfinite(asset.joint_pos[env, j]) and wp.isfinite(asset.joint_vel[env, j])
    return not is_finite
