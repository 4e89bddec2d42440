"""Observation terms, each in torch and, for one environment, in Warp."""

from __future__ import annotations

from typing import TYPE_CHECKING

import warp as wp

from treadle.assets.articulation_state import ArticulationState
from treadle.managers.scene_entity import SceneEntityCfg
from treadle.managers.twins import warp_twin

if TYPE_CHECKING:
    import torch

    from treadle.envs import ManagerBasedRLEnv

__all__ = ["joint_pos_rel", "joint_vel_rel"]

wp.set_module_options({"enable_backward": False})

ROBOT = SceneEntityCfg(name="robot")


def joint_pos_rel(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Joint positions relative to the default ones [rad or m], shape (num_envs, num_joints)."""
    data = env.scene[asset_cfg.name].data.torch
    return (data.joint_pos - data.default_joint_pos)[:, asset_cfg.joint_ids]


@warp_twin(joint_pos_rel)
def _(env: int, asset: ArticulationState, joint_ids: wp.array[int], out: wp.array[float]):
    for i in range(joint_ids.shape[0]):
        j = joint_ids[i]
        out[i] = asset.joint_pos[env, j] - asset.default_joint_pos[env, j]


def joint_vel_rel(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Joint velocities relative to the default ones [rad/s or m/s], shape (num_envs, num_joints)."""
    data = env.scene[asset_cfg.name].data.torch
    return (data.joint_vel - data.default_joint_vel)[:, asset_cfg.joint_ids]


@warp_twin(joint_vel_rel)
def _(env: int, asset: ArticulationState, joint_ids: wp.array[int], out: wp.array[float]):
    for i in range(joint_ids.shape[0]):
        j = joint_ids[i]
        out[i] = asset.joint_vel[env, j] - asset.default_joint_vel[env, j]
