"""Reward terms, each in torch and, for one environment, in Warp."""

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

__all__ = ["is_alive", "is_terminated", "joint_vel_l1"]

wp.set_module_options({"enable_backward": False})

ROBOT = SceneEntityCfg(name="robot")


def is_alive(env: ManagerBasedRLEnv) -> torch.Tensor:
    """1 unless the episode ended in a terminal state, shape (num_envs,)."""
    return (~env.buffers.torch.terminated).float()


@warp_twin(is_alive)
def _(env: int, state: EnvState) -> bool:
    return not state.terminated[env]


def is_terminated(env: ManagerBasedRLEnv) -> torch.Tensor:
    """1 when the episode ended in a terminal state, shape (num_envs,)."""
    return env.buffers.torch.terminated.float()


@warp_twin(is_terminated)
def _(env: int, state: EnvState) -> bool:
    return state.terminated[env]


def joint_vel_l1(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Sum of absolute joint velocities [rad/s or m/s], shape (num_envs,)."""
    return env.scene[asset_cfg.name].data.torch.joint_vel[:, asset_cfg.joint_ids].abs().sum(dim=1)


@warp_twin(joint_vel_l1)
def _(env: int, asset: ArticulationState, joint_ids: wp.array[int]) -> float:
    total = float(0.0)
    for i in range(joint_ids.shape[0]):
        total += wp.abs(asset.joint_vel[env, joint_ids[i]])
    return total
