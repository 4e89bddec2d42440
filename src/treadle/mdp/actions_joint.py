"""Actions that command positions and velocities of joints, each in torch and, for one environment, in Warp."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
import warp as wp

from treadle.assets.articulation_state import ArticulationState
from treadle.managers.action_manager import ActionTerm
from treadle.managers.twins import warp_twin
from treadle.mdp.actions import JointAction, JointActionCfg, process_joint_action

__all__ = [
    "JointPositionAction",
    "JointPositionActionCfg",
    "JointVelocityAction",
    "JointVelocityActionCfg",
    "RelativeJointPositionAction",
    "RelativeJointPositionActionCfg",
]

wp.set_module_options({"enable_backward": False})


class JointPositionAction(JointAction):
    """Commands joint positions [rad or m]."""

    control = "position"

    def set_targets(self, processed: torch.Tensor) -> None:
        """Set the positions."""
        self.asset.set_joint_position_target(processed, self._torch_ids)


@dataclass(kw_only=True)
class _DefaultOffsetCfg(JointActionCfg):
    """Base of the terms that may take the defaults as offsets."""

    use_default_offset: bool = True
    """Whether the offsets are the defaults of the joints, in place of :attr:`offset`."""

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        yield from super().problems(where)
        if self.use_default_offset and self.offset != 0.0:
            yield f"{where}.offset is {self.offset} beside use_default_offset; allowed: one of both"


@dataclass(kw_only=True)
class JointPositionActionCfg(_DefaultOffsetCfg):
    """Commands joint positions [rad or m]."""

    class_type: ClassVar[type[ActionTerm]] = JointPositionAction


@warp_twin(JointPositionAction)
def _(
    env: int,
    asset_state: ArticulationState,
    joint_ids: wp.array[int],
    scale: wp.array[float],
    offset: wp.array[float],
    clip_lower: wp.array[float],
    clip_upper: wp.array[float],
    raw: wp.array[float],
    processed: wp.array[float],
):
    for i in range(joint_ids.shape[0]):
        processed[i] = process_joint_action(raw[i], i, scale, offset, clip_lower, clip_upper)
        asset_state.joint_pos_target[env, joint_ids[i]] = processed[i]


class JointVelocityAction(JointAction):
    """Commands joint velocities [rad/s or m/s]."""

    control = "velocity"

    def set_targets(self, processed: torch.Tensor) -> None:
        """Set the velocities."""
        self.asset.set_joint_velocity_target(processed, self._torch_ids)


@dataclass(kw_only=True)
class JointVelocityActionCfg(_DefaultOffsetCfg):
    """Commands joint velocities [rad/s or m/s]."""

    class_type: ClassVar[type[ActionTerm]] = JointVelocityAction


@warp_twin(JointVelocityAction)
def _(
    env: int,
    asset_state: ArticulationState,
    joint_ids: wp.array[int],
    scale: wp.array[float],
    offset: wp.array[float],
    clip_lower: wp.array[float],
    clip_upper: wp.array[float],
    raw: wp.array[float],
    processed: wp.array[float],
):
    for i in range(joint_ids.shape[0]):
        processed[i] = process_joint_action(raw[i], i, scale, offset, clip_lower, clip_upper)
        asset_state.joint_vel_target[env, joint_ids[i]] = processed[i]


class RelativeJointPositionAction(JointAction):
    """Commands joint positions relative to those that the joints have at each physics step [rad or m]."""

    control = "position"

    def set_targets(self, processed: torch.Tensor) -> None:
        """Set nothing; the targets follow the joints."""

    def apply_actions(self) -> None:
        """Set the positions, before each physics step."""
        joint_pos = self.asset.data.torch.joint_pos[:, self._torch_ids]
        self.asset.set_joint_position_target(self.processed_actions + joint_pos, self._torch_ids)


@dataclass(kw_only=True)
class RelativeJointPositionActionCfg(JointActionCfg):
    """Commands joint positions relative to those that the joints have at each physics step [rad or m]."""

    class_type: ClassVar[type[ActionTerm]] = RelativeJointPositionAction


@wp.func
def apply_relative_positions(
    env: int, asset_state: ArticulationState, joint_ids: wp.array[int], processed: wp.array[float]
):
    """Set the positions, before each physics step."""
    for i in range(joint_ids.shape[0]):
        joint = joint_ids[i]
        asset_state.joint_pos_target[env, joint] = processed[i] + asset_state.joint_pos[env, joint]


@warp_twin(RelativeJointPositionAction, methods={"apply": apply_relative_positions})
def _(
    env: int,
    joint_ids: wp.array[int],
    scale: wp.array[float],
    offset: wp.array[float],
    clip_lower: wp.array[float],
    clip_upper: wp.array[float],
    raw: wp.array[float],
    processed: wp.array[float],
):
    for i in range(joint_ids.shape[0]):
        processed[i] = process_joint_action(raw[i], i, scale, offset, clip_lower, clip_upper)
