"""Termination terms, each in torch and, for one environment, in Warp."""

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

__all__ = ["joint_pos_out_of_manual_limit", "time_out"]

wp.set_module_options({"enable_backward": False})

ROBOT = SceneEntityCfg(name="robot")


def time_out(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Whether the episode is as long as it may be, shape (num_envs,). Set ``time_out=True`` for it."""
    return env.episode_length_buf >= env.max_episode_length


@warp_twin(time_out)
def _(env: int, state: EnvState) -> bool:
    return state.episode_length[env] >= state.max_episode_length


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
