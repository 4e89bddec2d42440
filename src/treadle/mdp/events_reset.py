"""Events that write the state of an articulation, each in torch and, for one environment, in Warp."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
import warp as wp

from treadle.assets.articulation_state import ArticulationState
from treadle.errors import ConfigError
from treadle.managers.env_state import EnvState
from treadle.managers.scene_entity import SceneEntityCfg
from treadle.managers.twins import warp_twin
from treadle.mdp.draws import (
    Ranges,
    axis_ranges,
    draw_axes,
    draw_rows,
    quat_from_euler,
    random_quat,
    rows_of,
    torch_quat_from_euler,
    torch_random_quat,
)
from treadle.mdp.math_torch import quat_mul

if TYPE_CHECKING:
    from treadle.envs import ManagerBasedRLEnv

__all__ = [
    "push_by_setting_velocity",
    "reset_root_state_uniform",
    "reset_root_state_with_random_orientation",
    "reset_scene_to_default",
]

wp.set_module_options({"enable_backward": False})

ROBOT = SceneEntityCfg(name="robot")


@wp.func
def write_root(asset: ArticulationState, env: int, position: wp.vec3, quat: wp.quat, velocity: wp.spatial_vector):
    """Write the pose and the velocity of the root, world frame."""
    for i in range(3):
        asset.root_q[env, i] = position[i]
    for i in range(4):
        asset.root_q[env, 3 + i] = quat[i]
    for i in range(6):
        asset.root_qd[env, i] = velocity[i]


def _floating(env: Any, params: Mapping[str, Any]) -> dict[str, Any]:
    """Refuse an articulation whose root is fixed."""
    _floating_asset(env, params["asset_cfg"])
    return {}


def _floating_asset(env: Any, asset_cfg: SceneEntityCfg) -> Any:
    asset = env.scene[asset_cfg.name]
    if not asset.layout.floating_base:
        raise ConfigError(f"the root of {asset_cfg.name!r} is fixed; allowed: an articulation with a free root")
    return asset


def reset_scene_to_default(env: ManagerBasedRLEnv, env_mask: torch.Tensor, reset_joint_targets: bool = False) -> None:
    """Put root and joints back to their defaults.

    Args:
        env: The environment.
        env_mask: Environments to reset, bool, shape (num_envs,).
        reset_joint_targets: Whether position targets go to the default positions and velocity targets to zero too.
    """
    asset, data, rows = env.scene.robot, env.scene.robot.data.torch, env_mask[:, None]
    if asset.layout.floating_base:
        asset.write_root_state_to_sim(data.default_root_pose, data.default_root_vel, env_mask)
    data.joint_pos.copy_(torch.where(rows, data.default_joint_pos, data.joint_pos))
    data.joint_vel.copy_(torch.where(rows, data.default_joint_vel, data.joint_vel))
    if reset_joint_targets:
        data.joint_pos_target.copy_(torch.where(rows, data.default_joint_pos, data.joint_pos_target))
        data.joint_vel_target.masked_fill_(rows, 0.0)


@warp_twin(reset_scene_to_default, extra=lambda env, params: {"asset": env.scene.robot.state})
def _(env: int, asset: ArticulationState, reset_joint_targets: bool):
    if asset.root_q.shape[1] > 0:
        pose = asset.default_root_pose[env]
        position = wp.transform_get_translation(pose) + asset.env_origins[env]
        write_root(asset, env, position, wp.transform_get_rotation(pose), asset.default_root_vel[env])
    for j in range(asset.joint_pos.shape[1]):
        asset.joint_pos[env, j] = asset.default_joint_pos[env, j]
        asset.joint_vel[env, j] = asset.default_joint_vel[env, j]
        if reset_joint_targets:
            asset.joint_pos_target[env, j] = asset.default_joint_pos[env, j]
            asset.joint_vel_target[env, j] = 0.0


def reset_root_state_uniform(
    env: ManagerBasedRLEnv,
    env_mask: torch.Tensor,
    pose_range: Ranges,
    velocity_range: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
) -> None:
    """Set the root to its default pose and velocity plus uniform offsets.

    Args:
        env: The environment.
        env_mask: Environments to reset, bool, shape (num_envs,).
        pose_range: Offset of ``x``, ``y``, ``z`` [m], world frame, and ``roll``, ``pitch``, ``yaw`` [rad], in the frame
            of the default orientation. What is not given is (0, 0).
        velocity_range: Offset of the linear ``x``, ``y``, ``z`` [m/s] and the angular velocity ``roll``, ``pitch``,
            ``yaw`` [rad/s], world frame.
        asset_cfg: Articulation, whose root is free.
    """
    asset = _floating_asset(env, asset_cfg)
    data = asset.data.torch
    offset = draw_rows(env, env_mask, rows_of(pose_range))
    velocity = data.default_root_vel + draw_rows(env, env_mask, rows_of(velocity_range))
    quat = quat_mul(data.default_root_pose[:, 3:], torch_quat_from_euler(*offset[:, 3:].unbind(1)))
    pose = torch.cat((data.default_root_pose[:, :3] + offset[:, :3], quat), dim=1)
    asset.write_root_state_to_sim(pose, velocity, env_mask)


@warp_twin(reset_root_state_uniform, converts={"pose_range": rows_of, "velocity_range": rows_of}, extra=_floating)
def _(
    env: int,
    asset: ArticulationState,
    state: EnvState,
    pose_range: axis_ranges,
    velocity_range: axis_ranges,
):
    offset = draw_axes(state, env, pose_range)
    velocity = asset.default_root_vel[env] + draw_axes(state, env, velocity_range)
    pose = asset.default_root_pose[env]
    position = wp.transform_get_translation(pose) + wp.spatial_top(offset) + asset.env_origins[env]
    quat = wp.transform_get_rotation(pose) * quat_from_euler(offset[3], offset[4], offset[5])
    write_root(asset, env, position, quat, velocity)


def reset_root_state_with_random_orientation(
    env: ManagerBasedRLEnv,
    env_mask: torch.Tensor,
    pose_range: Ranges,
    velocity_range: Ranges,
    asset_cfg: SceneEntityCfg = ROBOT,
) -> None:
    """Set the root to its default position and velocity plus uniform offsets, in any orientation.

    Args:
        env: The environment.
        env_mask: Environments to reset, bool, shape (num_envs,).
        pose_range: Offset of ``x``, ``y``, ``z`` [m], world frame; angles are not read.
        velocity_range: As for :func:`reset_root_state_uniform`.
        asset_cfg: Articulation, whose root is free.
    """
    asset = _floating_asset(env, asset_cfg)
    data = asset.data.torch
    offset = draw_rows(env, env_mask, rows_of(pose_range)[:3])
    quat = torch_random_quat(env.rand(3, 0.0, 1.0, mask=env_mask))
    velocity = data.default_root_vel + draw_rows(env, env_mask, rows_of(velocity_range))
    asset.write_root_state_to_sim(torch.cat((data.default_root_pose[:, :3] + offset, quat), dim=1), velocity, env_mask)


@warp_twin(
    reset_root_state_with_random_orientation,
    converts={"pose_range": rows_of, "velocity_range": rows_of},
    extra=_floating,
)
def _(
    env: int,
    asset: ArticulationState,
    state: EnvState,
    pose_range: axis_ranges,
    velocity_range: axis_ranges,
):
    position = wp.transform_get_translation(asset.default_root_pose[env])
    rng = state.random_state[env]
    for i in range(3):
        position[i] += pose_range[i, 0] + (pose_range[i, 1] - pose_range[i, 0]) * wp.randf(rng)
    a = wp.randf(rng)
    b = wp.randf(rng)
    quat = random_quat(a, b, wp.randf(rng))
    state.random_state[env] = rng
    velocity = asset.default_root_vel[env] + draw_axes(state, env, velocity_range)
    write_root(asset, env, position + asset.env_origins[env], quat, velocity)


def push_by_setting_velocity(
    env: ManagerBasedRLEnv, env_mask: torch.Tensor, velocity_range: Ranges, asset_cfg: SceneEntityCfg = ROBOT
) -> None:
    """Add uniform offsets to the velocity that the root has.

    Args:
        env: The environment.
        env_mask: Environments to push, bool, shape (num_envs,).
        velocity_range: As for :func:`reset_root_state_uniform`.
        asset_cfg: Articulation, whose root is free.
    """
    asset = _floating_asset(env, asset_cfg)
    offset = draw_rows(env, env_mask, rows_of(velocity_range))
    root_qd = asset.state_views.root_qd
    root_qd.copy_(torch.where(env_mask[:, None], root_qd + offset, root_qd))


@warp_twin(push_by_setting_velocity, converts={"velocity_range": rows_of}, extra=_floating)
def _(
    env: int,
    asset: ArticulationState,
    state: EnvState,
    velocity_range: axis_ranges,
):
    offset = draw_axes(state, env, velocity_range)
    for i in range(6):
        asset.root_qd[env, i] = asset.root_qd[env, i] + offset[i]
