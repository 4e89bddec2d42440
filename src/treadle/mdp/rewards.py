"""Reward terms of an articulation, each in torch and, for one environment, in Warp."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
import warp as wp

from treadle.assets.articulation_data import torch_view
from treadle.assets.articulation_state import ArticulationState
from treadle.errors import ConfigError
from treadle.managers.env_state import EnvState
from treadle.managers.scene_entity import SceneEntityCfg
from treadle.managers.twins import warp_twin

if TYPE_CHECKING:
    from treadle.envs import ManagerBasedRLEnv

__all__ = [
    "ang_vel_xy_l2",
    "applied_torque_limits",
    "base_height_l2",
    "body_lin_acc_l2",
    "flat_orientation_l2",
    "joint_acc_l2",
    "joint_deviation_l1",
    "joint_pos_limits",
    "joint_torques_l2",
    "joint_vel_l1",
    "joint_vel_l2",
    "joint_vel_limits",
    "lin_vel_z_l2",
]

wp.set_module_options({"enable_backward": False})

ROBOT = SceneEntityCfg(name="robot")


def lin_vel_z_l2(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Squared vertical velocity of the root, body frame [m^2/s^2], shape (num_envs,)."""
    return env.scene[asset_cfg.name].data.torch.root_lin_vel_b[:, 2].square()


@warp_twin(lin_vel_z_l2)
def _(env: int, asset: ArticulationState) -> float:
    velocity = asset.root_lin_vel_b[env][2]
    return velocity * velocity


def ang_vel_xy_l2(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Squared angular velocity of the root about the x and y axes of the body [rad^2/s^2], shape (num_envs,)."""
    return env.scene[asset_cfg.name].data.torch.root_ang_vel_b[:, :2].square().sum(dim=1)


@warp_twin(ang_vel_xy_l2)
def _(env: int, asset: ArticulationState) -> float:
    velocity = asset.root_ang_vel_b[env]
    return velocity[0] * velocity[0] + velocity[1] * velocity[1]


def flat_orientation_l2(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Squared x and y components of the direction of gravity in the body frame, 0 upright, shape (num_envs,)."""
    return env.scene[asset_cfg.name].data.torch.projected_gravity_b[:, :2].square().sum(dim=1)


@warp_twin(flat_orientation_l2)
def _(env: int, asset: ArticulationState) -> float:
    gravity = asset.projected_gravity_b[env]
    return gravity[0] * gravity[0] + gravity[1] * gravity[1]


def base_height_l2(
    env: ManagerBasedRLEnv,
    target_height: float,
    asset_cfg: SceneEntityCfg = ROBOT,
    sensor_cfg: SceneEntityCfg | None = None,
) -> torch.Tensor:
    """Squared difference of the root's height above the environment's origin to a target [m^2], shape (num_envs,).

    Args:
        env: The environment.
        target_height: Height above flat ground [m].
        asset_cfg: Articulation.
        sensor_cfg: ``None``; there is no sensor yet that measures the ground below the robot.
    """
    _without_sensor(env, {"sensor_cfg": sensor_cfg})
    height = env.scene[asset_cfg.name].data.torch.root_pos_w[:, 2] - torch_view(env.scene.env_origins)[:, 2]
    return (height - target_height).square()


def _without_sensor(env: Any, params: Mapping[str, Any]) -> dict[str, Any]:
    if params["sensor_cfg"] is not None:
        raise ConfigError(f"base_height_l2: sensor_cfg is {params['sensor_cfg']!r}; allowed: None, for flat ground")
    return {}


@warp_twin(base_height_l2, extra=_without_sensor, consumes=("sensor_cfg",))
def _(env: int, asset: ArticulationState, state: EnvState, target_height: float) -> float:
    difference = asset.root_pos_w[env][2] - state.env_origins[env][2] - target_height
    return difference * difference


def body_lin_acc_l2(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Sum of the lengths of the linear accelerations of bodies, world frame [m/s^2], shape (num_envs,).

    The acceleration of a body's centre of mass as the solver found it, which does not know of damping that is
    integrated implicitly.
    """
    acceleration = env.scene[asset_cfg.name].data.torch.body_acc_w[:, asset_cfg.body_ids, :3]
    return acceleration.norm(dim=-1).sum(dim=1)


body_lin_acc_l2.measures = ("body_qdd",)  # type: ignore[attr-defined]


@warp_twin(body_lin_acc_l2)
def _(env: int, asset: ArticulationState, body_ids: wp.array[int]) -> float:
    total = float(0.0)
    for i in range(body_ids.shape[0]):
        total += wp.length(wp.spatial_top(asset.body_acc_w[env, body_ids[i]]))
    return total


def joint_torques_l2(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Sum of squared efforts applied to joints [N^2*m^2 or N^2], shape (num_envs,)."""
    return env.scene[asset_cfg.name].data.torch.applied_effort[:, asset_cfg.joint_ids].square().sum(dim=1)


@warp_twin(joint_torques_l2)
def _(env: int, asset: ArticulationState, joint_ids: wp.array[int]) -> float:
    total = float(0.0)
    for i in range(joint_ids.shape[0]):
        effort = asset.applied_effort[env, joint_ids[i]]
        total += effort * effort
    return total


def joint_vel_l1(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Sum of absolute joint velocities [rad/s or m/s], shape (num_envs,)."""
    return env.scene[asset_cfg.name].data.torch.joint_vel[:, asset_cfg.joint_ids].abs().sum(dim=1)


@warp_twin(joint_vel_l1)
def _(env: int, asset: ArticulationState, joint_ids: wp.array[int]) -> float:
    total = float(0.0)
    for i in range(joint_ids.shape[0]):
        total += wp.abs(asset.joint_vel[env, joint_ids[i]])
    return total


def joint_vel_l2(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Sum of squared joint velocities [rad^2/s^2 or m^2/s^2], shape (num_envs,)."""
    return env.scene[asset_cfg.name].data.torch.joint_vel[:, asset_cfg.joint_ids].square().sum(dim=1)


@warp_twin(joint_vel_l2)
def _(env: int, asset: ArticulationState, joint_ids: wp.array[int]) -> float:
    total = float(0.0)
    for i in range(joint_ids.shape[0]):
        velocity = asset.joint_vel[env, joint_ids[i]]
        total += velocity * velocity
    return total


def joint_acc_l2(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Sum of squared joint accelerations over the last physics step [rad^2/s^4 or m^2/s^4], shape (num_envs,)."""
    return env.scene[asset_cfg.name].data.torch.joint_acc[:, asset_cfg.joint_ids].square().sum(dim=1)


@warp_twin(joint_acc_l2)
def _(env: int, asset: ArticulationState, joint_ids: wp.array[int]) -> float:
    total = float(0.0)
    for i in range(joint_ids.shape[0]):
        acceleration = asset.joint_acc[env, joint_ids[i]]
        total += acceleration * acceleration
    return total


def joint_deviation_l1(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Sum of absolute differences of joint positions to the default ones [rad or m], shape (num_envs,)."""
    data, ids = env.scene[asset_cfg.name].data.torch, asset_cfg.joint_ids
    return (data.joint_pos - data.default_joint_pos)[:, ids].abs().sum(dim=1)


@warp_twin(joint_deviation_l1)
def _(env: int, asset: ArticulationState, joint_ids: wp.array[int]) -> float:
    total = float(0.0)
    for i in range(joint_ids.shape[0]):
        j = joint_ids[i]
        total += wp.abs(asset.joint_pos[env, j] - asset.default_joint_pos[env, j])
    return total


def joint_pos_limits(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Sum of how far joint positions are beyond the soft limits [rad or m], shape (num_envs,)."""
    data, ids = env.scene[asset_cfg.name].data.torch, asset_cfg.joint_ids
    below = (data.soft_joint_pos_lower - data.joint_pos)[:, ids].clamp(min=0.0)
    above = (data.joint_pos - data.soft_joint_pos_upper)[:, ids].clamp(min=0.0)
    return (below + above).sum(dim=1)


@warp_twin(joint_pos_limits)
def _(env: int, asset: ArticulationState, joint_ids: wp.array[int]) -> float:
    total = float(0.0)
    for i in range(joint_ids.shape[0]):
        j = joint_ids[i]
        total += wp.max(asset.soft_joint_pos_lower[env, j] - asset.joint_pos[env, j], 0.0)
        total += wp.max(asset.joint_pos[env, j] - asset.soft_joint_pos_upper[env, j], 0.0)
    return total


def joint_vel_limits(env: ManagerBasedRLEnv, soft_ratio: float, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Sum of how far joint velocities are beyond a share of the limits, at most 1 each, shape (num_envs,).

    Args:
        env: The environment.
        soft_ratio: Share of the velocity limits.
        asset_cfg: Articulation and joints.
    """
    data, ids = env.scene[asset_cfg.name].data.torch, asset_cfg.joint_ids
    excess = data.joint_vel.abs() - data.soft_joint_vel_limits * soft_ratio
    return excess[:, ids].clamp(0.0, 1.0).sum(dim=1)


@warp_twin(joint_vel_limits)
def _(env: int, asset: ArticulationState, joint_ids: wp.array[int], soft_ratio: float) -> float:
    total = float(0.0)
    for i in range(joint_ids.shape[0]):
        j = joint_ids[i]
        total += wp.clamp(wp.abs(asset.joint_vel[env, j]) - asset.soft_joint_vel_limits[env, j] * soft_ratio, 0.0, 1.0)
    return total


def applied_torque_limits(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Sum of how much the effort limits take from the computed efforts [N*m or N], shape (num_envs,)."""
    data, ids = env.scene[asset_cfg.name].data.torch, asset_cfg.joint_ids
    return (data.applied_effort - data.computed_effort)[:, ids].abs().sum(dim=1)


@warp_twin(applied_torque_limits)
def _(env: int, asset: ArticulationState, joint_ids: wp.array[int]) -> float:
    total = float(0.0)
    for i in range(joint_ids.shape[0]):
        j = joint_ids[i]
        total += wp.abs(asset.applied_effort[env, j] - asset.computed_effort[env, j])
    return total
