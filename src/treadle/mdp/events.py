"""Event terms, each in torch and, for one environment, in Warp. Both draw the same numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import warp as wp

from treadle.assets.articulation_state import ArticulationState
from treadle.managers.env_state import EnvState
from treadle.managers.scene_entity import SceneEntityCfg
from treadle.managers.twins import warp_twin

if TYPE_CHECKING:
    import torch

    from treadle.envs import ManagerBasedRLEnv

__all__ = ["reset_joints_by_offset"]

wp.set_module_options({"enable_backward": False})

ROBOT = SceneEntityCfg(name="robot")


def reset_joints_by_offset(
    env: ManagerBasedRLEnv,
    env_mask: torch.Tensor,
    position_range: tuple[float, float],
    velocity_range: tuple[float, float],
    asset_cfg: SceneEntityCfg = ROBOT,
) -> None:
    """Set joints to their defaults plus a uniform offset, clamped to the soft limits.

    Args:
        env: The environment.
        env_mask: Environments to reset, bool, shape (num_envs,).
        position_range: Offset of the positions [rad or m].
        velocity_range: Offset of the velocities [rad/s or m/s].
        asset_cfg: Articulation and joints.
    """
    data, ids = env.scene[asset_cfg.name].data.torch, asset_cfg.joint_ids
    default_pos, default_vel = data.default_joint_pos[:, ids], data.default_joint_vel[:, ids]
    joints = default_pos.shape[1]
    pos = default_pos + env.rand(joints, *position_range, mask=env_mask)
    vel = default_vel + env.rand(joints, *velocity_range, mask=env_mask)
    pos = pos.clamp(data.soft_joint_pos_lower[:, ids], data.soft_joint_pos_upper[:, ids])
    vel = vel.clamp(-data.joint_vel_limits[:, ids], data.joint_vel_limits[:, ids])
    rows = env_mask[:, None]
    data.joint_pos[:, ids] = pos.where(rows, data.joint_pos[:, ids])
    data.joint_vel[:, ids] = vel.where(rows, data.joint_vel[:, ids])


@warp_twin(reset_joints_by_offset)
def _(
    env: int,
    asset: ArticulationState,
    state: EnvState,
    joint_ids: wp.array[int],
    position_range: wp.vec2,
    velocity_range: wp.vec2,
):
    rng = state.random_state[env]
    for i in range(joint_ids.shape[0]):
        j = joint_ids[i]
        pos = asset.default_joint_pos[env, j] + wp.randf(rng, position_range[0], position_range[1])
        asset.joint_pos[env, j] = wp.clamp(pos, asset.soft_joint_pos_lower[env, j], asset.soft_joint_pos_upper[env, j])
    for i in range(joint_ids.shape[0]):
        j = joint_ids[i]
        vel = asset.default_joint_vel[env, j] + wp.randf(rng, velocity_range[0], velocity_range[1])
        asset.joint_vel[env, j] = wp.clamp(vel, -asset.joint_vel_limits[env, j], asset.joint_vel_limits[env, j])
    state.random_state[env] = rng
