"""Terms of the cartpole task."""

from __future__ import annotations

from typing import TYPE_CHECKING

import warp as wp

from treadle.assets.articulation_state import ArticulationState
from treadle.managers.scene_entity import SceneEntityCfg
from treadle.managers.twins import warp_twin
from treadle.mdp import math_torch
from treadle.mdp.math_funcs import wrap_to_pi

if TYPE_CHECKING:
    import torch

    from treadle.envs import ManagerBasedRLEnv

__all__ = ["joint_pos_target_l2"]

wp.set_module_options({"enable_backward": False})


def joint_pos_target_l2(env: ManagerBasedRLEnv, target: float, asset_cfg: SceneEntityCfg) -> torch.Tensor:
    """Sum of squared differences to a target position, wrapped to [-pi, pi] [rad^2], shape (num_envs,)."""
    position = env.scene[asset_cfg.name].data.torch.joint_pos[:, asset_cfg.joint_ids]
    return (math_torch.wrap_to_pi(position) - target).square().sum(dim=1)


@warp_twin(joint_pos_target_l2)
def _(env: int, asset: ArticulationState, joint_ids: wp.array[int], target: float) -> float:
    total = float(0.0)
    for i in range(joint_ids.shape[0]):
        position = asset.joint_pos[env, joint_ids[i]]
        difference = wrap_to_pi(position) - target
        total += difference * difference
    return total
