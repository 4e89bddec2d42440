"""Actions that span the ranges of joints, each in torch and, for one environment, in Warp."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import warp as wp

from treadle._checks import is_finite
from treadle.assets.articulation_state import ArticulationState
from treadle.managers.action_manager import ActionTerm
from treadle.managers.twins import warp_twin
from treadle.mdp.actions import JointAction, JointActionCfg, process_joint_action

__all__ = [
    "EMAJointPositionToLimitsAction",
    "EMAJointPositionToLimitsActionCfg",
    "JointPositionToLimitsAction",
    "JointPositionToLimitsActionCfg",
]

wp.set_module_options({"enable_backward": False})


class JointPositionToLimitsAction(JointAction):
    """Commands joint positions, where -1 and 1 are the soft limits.

    Actions are scaled and clipped, then cut to [-1, 1] and mapped to the range of the joint.
    """

    cfg: JointPositionToLimitsActionCfg
    control = "position"

    def __init__(self, cfg: JointPositionToLimitsActionCfg, env: Any):
        super().__init__(cfg, env)
        self.rescale_to_limits = cfg.rescale_to_limits

    def process_actions(self, actions: torch.Tensor) -> None:
        """Map the actions to the ranges, and set the positions."""
        processed = self._scaled(actions)
        lower, upper = self._soft_limits()
        if self.rescale_to_limits:
            processed = lower + 0.5 * (processed.clamp(-1.0, 1.0) + 1.0) * (upper - lower)
        self.processed_actions.copy_(processed)
        self.set_targets(self.processed_actions)

    def set_targets(self, processed: torch.Tensor) -> None:
        """Set the positions."""
        self.asset.set_joint_position_target(processed, self._torch_ids)

    def _soft_limits(self) -> tuple[torch.Tensor, torch.Tensor]:
        data = self.asset.data.torch
        return data.soft_joint_pos_lower[:, self._torch_ids], data.soft_joint_pos_upper[:, self._torch_ids]


@dataclass(kw_only=True)
class JointPositionToLimitsActionCfg(JointActionCfg):
    """Commands joint positions, where -1 and 1 are the soft limits."""

    class_type: ClassVar[type[ActionTerm]] = JointPositionToLimitsAction
    rescale_to_limits: bool = True
    """Whether actions in [-1, 1] are mapped to the soft limits; else they are positions [rad or m]."""

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        yield from super().problems(where)
        if self.offset != 0.0:
            yield f"{where}.offset is {self.offset}; allowed: 0, as the range of the joint decides"


@wp.func
def position_to_limits(
    asset_state: ArticulationState, env: int, joint: int, value: float, rescale_to_limits: bool
) -> float:
    """Return the position that an action stands for."""
    position = value
    if rescale_to_limits:
        lower, upper = asset_state.soft_joint_pos_lower[env, joint], asset_state.soft_joint_pos_upper[env, joint]
        position = lower + 0.5 * (wp.clamp(value, -1.0, 1.0) + 1.0) * (upper - lower)
    return position


@warp_twin(JointPositionToLimitsAction)
def _(
    env: int,
    asset_state: ArticulationState,
    joint_ids: wp.array[int],
    scale: wp.array[float],
    offset: wp.array[float],
    clip_lower: wp.array[float],
    clip_upper: wp.array[float],
    rescale_to_limits: bool,
    raw: wp.array[float],
    processed: wp.array[float],
):
    for i in range(joint_ids.shape[0]):
        value = process_joint_action(raw[i], i, scale, offset, clip_lower, clip_upper)
        processed[i] = position_to_limits(asset_state, env, joint_ids[i], value, rescale_to_limits)
        asset_state.joint_pos_target[env, joint_ids[i]] = processed[i]


class EMAJointPositionToLimitsAction(JointPositionToLimitsAction):
    """Commands an exponential moving average of the positions of :class:`JointPositionToLimitsAction`."""

    cfg: EMAJointPositionToLimitsActionCfg

    def __init__(self, cfg: EMAJointPositionToLimitsActionCfg, env: Any):
        super().__init__(cfg, env)
        self.alpha = self._row(cfg.alpha, "alpha", 1.0)
        self.average = wp.zeros((env.num_envs, self.action_dim), dtype=float, device=env.device)

    def set_targets(self, processed: torch.Tensor) -> None:
        """Average with the positions before, and set the positions, cut to the soft limits."""
        alpha = self._views.alpha
        averaged = alpha * processed + (1.0 - alpha) * self._views.average
        averaged = torch.clamp(averaged, *self._soft_limits())
        self._views.average.copy_(averaged)
        self.processed_actions.copy_(averaged)
        super().set_targets(averaged)

    def reset(self, env_mask: torch.Tensor) -> None:
        """Start from the positions of the joints."""
        joint_pos = self.asset.data.torch.joint_pos[:, self._torch_ids]
        self._views.average.copy_(torch.where(env_mask[:, None], joint_pos, self._views.average))


@dataclass(kw_only=True)
class EMAJointPositionToLimitsActionCfg(JointPositionToLimitsActionCfg):
    """Commands an exponential moving average of the positions of :class:`JointPositionToLimitsAction`."""

    class_type: ClassVar[type[ActionTerm]] = EMAJointPositionToLimitsAction
    alpha: float | dict[str, float] = 1.0
    """Weight of the new position, 0 to 1, one for all joints or by regular expression; 1 does not average."""

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        yield from super().problems(where)
        values = list(self.alpha.values()) if isinstance(self.alpha, dict) else [self.alpha]
        if not (is_finite(*values) and all(0.0 <= value <= 1.0 for value in values)):
            yield f"{where}.alpha is {self.alpha}; allowed: 0 to 1"


@wp.func
def restart_average(env: int, asset_state: ArticulationState, joint_ids: wp.array[int], average: wp.array2d[float]):
    """Start from the positions of the joints."""
    for i in range(joint_ids.shape[0]):
        average[env, i] = asset_state.joint_pos[env, joint_ids[i]]


@warp_twin(EMAJointPositionToLimitsAction, reset=restart_average)
def _(
    env: int,
    asset_state: ArticulationState,
    joint_ids: wp.array[int],
    scale: wp.array[float],
    offset: wp.array[float],
    clip_lower: wp.array[float],
    clip_upper: wp.array[float],
    rescale_to_limits: bool,
    alpha: wp.array[float],
    average: wp.array2d[float],
    raw: wp.array[float],
    processed: wp.array[float],
):
    for i in range(joint_ids.shape[0]):
        joint = joint_ids[i]
        value = process_joint_action(raw[i], i, scale, offset, clip_lower, clip_upper)
        value = position_to_limits(asset_state, env, joint, value, rescale_to_limits)
        value = alpha[i] * value + (1.0 - alpha[i]) * average[env, i]
        value = wp.clamp(
            value, asset_state.soft_joint_pos_lower[env, joint], asset_state.soft_joint_pos_upper[env, joint]
        )
        average[env, i] = value
        processed[i] = value
        asset_state.joint_pos_target[env, joint] = value
