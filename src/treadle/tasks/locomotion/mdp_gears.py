"""Reward terms of the locomotion tasks that weigh joints by their gears, each in torch and in Warp."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import warp as wp

from treadle.assets.articulation_data import torch_view
from treadle.assets.articulation_state import ArticulationState
from treadle.assets.names import values_by_name
from treadle.errors import ConfigError
from treadle.managers.cfg import TermCfg
from treadle.managers.env_state import EnvState
from treadle.managers.scene_entity import SceneEntityCfg
from treadle.managers.term_base import ManagerTermBase
from treadle.managers.twins import warp_twin
from treadle.mdp import math_torch
from treadle.mdp.math_funcs import normalized_position

if TYPE_CHECKING:
    from treadle.envs import ManagerBasedRLEnv

__all__ = ["joint_pos_limits_penalty_ratio", "power_consumption"]

wp.set_module_options({"enable_backward": False})

ROBOT = SceneEntityCfg(name="robot")


class _GearTerm(ManagerTermBase):
    """A term that weighs each joint by its gear as a share of the largest."""

    def __init__(self, cfg: TermCfg, env: Any):
        super().__init__(cfg, env)
        self._asset_cfg: SceneEntityCfg = cfg.params["asset_cfg"]
        self.joint_names = _joint_names(self._asset_cfg)
        self.gear_share = wp.zeros(len(self.joint_names), dtype=float, device=env.device)
        """Gear of each selected joint as a share of the largest, float, shape (num_joints,)."""
        self._gears: Any = None
        self._share = torch_view(self.gear_share)
        self._take_gears(cfg.params["gear_ratio"])

    def _take_gears(self, gear_ratio: dict[str, float] | float) -> torch.Tensor:
        """Return the shares, taken anew if the gears changed."""
        if gear_ratio != self._gears:
            gears = {".*": gear_ratio} if isinstance(gear_ratio, int | float) else gear_ratio
            values = np.array(values_by_name(gears, self.joint_names, "gear_ratio"))
            if gearless := [name for name, gear in zip(self.joint_names, values, strict=True) if not gear > 0.0]:
                raise ConfigError(f"gear_ratio gives no gear to {', '.join(gearless)}; allowed: one above 0 for each")
            self._share.copy_(torch.from_numpy((values / values.max()).astype(np.float32)))
            self._gears = dict(gears) if gears is gear_ratio else gear_ratio
        return self._share


class joint_pos_limits_penalty_ratio(_GearTerm):
    """Sum over joints of the excess beyond a share of the soft limits, weighted by the gear, shape (num_envs,).

    With q in [-1, 1] between the soft limits: (abs(q) - threshold) / (1 - threshold), 0 below the threshold.
    """

    def __call__(
        self,
        env: ManagerBasedRLEnv,
        threshold: float,
        gear_ratio: dict[str, float],
        asset_cfg: SceneEntityCfg = ROBOT,
    ) -> torch.Tensor:
        """Return the penalty.

        Args:
            env: The environment.
            threshold: Share of the limits.
            gear_ratio: Gear by regular expression of whole joint names, or one for all.
            asset_cfg: Articulation and joints.
        """
        data, ids = env.scene[asset_cfg.name].data.torch, asset_cfg.joint_ids
        position = math_torch.normalized_position(data.joint_pos, data.soft_joint_pos_lower, data.soft_joint_pos_upper)
        excess = (position[:, ids].abs() - threshold) / (1.0 - threshold)
        return (excess.clamp(min=0.0) * self._take_gears(gear_ratio)).sum(dim=1)


@warp_twin(joint_pos_limits_penalty_ratio, consumes=("gear_ratio",))
def _(
    env: int, asset: ArticulationState, joint_ids: wp.array[int], gear_share: wp.array[float], threshold: float
) -> float:
    total = float(0.0)
    for i in range(joint_ids.shape[0]):
        j = joint_ids[i]
        lower, upper = asset.soft_joint_pos_lower[env, j], asset.soft_joint_pos_upper[env, j]
        position = normalized_position(asset.joint_pos[env, j], lower, upper)
        excess = (wp.abs(position) - threshold) / (1.0 - threshold)
        total += wp.max(excess, 0.0) * gear_share[i]
    return total


class power_consumption(_GearTerm):
    """Sum over joints of abs(action * velocity), weighted by the gear [rad/s or m/s], shape (num_envs,).

    The action is that of the policy, before scaling and clipping.
    """

    def __init__(self, cfg: TermCfg, env: Any):
        super().__init__(cfg, env)
        columns = _action_columns(env, self._asset_cfg)
        self.action_columns = wp.array(columns, dtype=int, device=env.device)
        """Column of each selected joint in the actions, int, shape (num_joints,)."""
        self._columns = torch.tensor(columns, dtype=torch.long, device=env.device)

    def __call__(
        self, env: ManagerBasedRLEnv, gear_ratio: dict[str, float], asset_cfg: SceneEntityCfg = ROBOT
    ) -> torch.Tensor:
        """Return the power.

        Args:
            env: The environment.
            gear_ratio: Gear by regular expression of whole joint names, or one for all.
            asset_cfg: Articulation and joints.
        """
        velocity = env.scene[asset_cfg.name].data.torch.joint_vel[:, asset_cfg.joint_ids]
        actions = env.buffers.torch.actions[:, self._columns]
        return (actions * velocity * self._take_gears(gear_ratio)).abs().sum(dim=1)


@warp_twin(power_consumption, consumes=("gear_ratio",))
def _(
    env: int,
    asset: ArticulationState,
    state: EnvState,
    joint_ids: wp.array[int],
    action_columns: wp.array[int],
    gear_share: wp.array[float],
) -> float:
    total = float(0.0)
    for i in range(joint_ids.shape[0]):
        total += wp.abs(state.actions[env, action_columns[i]] * asset.joint_vel[env, joint_ids[i]] * gear_share[i])
    return total


def _action_columns(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg) -> list[int]:
    """Return the column of each selected joint in the actions.

    Raises:
        ConfigError: No action term commands a joint.
    """
    columns: dict[str, int] = {}
    for name in env.action_manager.active_terms:
        term: Any = env.action_manager.get_term(name)
        if term.cfg.asset_name == asset_cfg.name:
            first = env.action_manager.columns_of(name).start
            for index, joint in enumerate(getattr(term, "joint_names", ())):
                columns.setdefault(joint, first + index)
    selected = _joint_names(asset_cfg)
    if missing := [name for name in selected if name not in columns]:
        raise ConfigError(
            f"no action commands joint {', '.join(missing)}; allowed: an asset_cfg with joints of "
            f"{', '.join(columns) or 'an action term'}"
        )
    return [columns[name] for name in selected]


def _joint_names(asset_cfg: SceneEntityCfg) -> Sequence[str]:
    """Return the names of the selected joints."""
    resolved: Any = asset_cfg.resolved
    names: Sequence[str] = resolved.joint_names
    return names
