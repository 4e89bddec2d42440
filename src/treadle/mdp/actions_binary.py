"""Actions that open or close joints, each in torch and, for one environment, in Warp."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import torch
import warp as wp

from treadle._checks import is_finite
from treadle.assets.articulation_data import TorchViews, torch_view
from treadle.assets.articulation_state import ArticulationState
from treadle.assets.names import match_names, values_by_name
from treadle.errors import ConfigError
from treadle.managers.action_manager import ActionTerm
from treadle.managers.cfg import ActionTermCfg
from treadle.managers.scene_entity import SceneEntityCfg
from treadle.managers.twins import warp_twin
from treadle.mdp.actions import check_control

__all__ = [
    "BinaryJointAction",
    "BinaryJointActionCfg",
    "BinaryJointPositionAction",
    "BinaryJointPositionActionCfg",
    "BinaryJointVelocityAction",
    "BinaryJointVelocityActionCfg",
]

wp.set_module_options({"enable_backward": False})


class BinaryJointAction(ActionTerm):
    """Base of the terms with one column, whose sign chooses between two commands: negative closes, else it opens."""

    cfg: BinaryJointActionCfg
    control: ClassVar[Literal["position", "velocity"]]
    """What the term commands."""

    def __init__(self, cfg: BinaryJointActionCfg, env: Any):
        super().__init__(cfg, env)
        self.action_dim = 1
        names = [cfg.joint_names] if isinstance(cfg.joint_names, str) else list(cfg.joint_names)
        resolved: Any = SceneEntityCfg(name=cfg.asset_name, joint_names=names).resolve(env.scene, "asset").resolved
        self.joint_names = resolved.joint_names
        self.joint_ids = resolved.joint_ids
        self._torch_ids = resolved.torch_joint_ids
        check_control(self, self.control)
        self._views = TorchViews(self)
        self.open_command = self._command(cfg.open_command_expr, "open_command_expr")
        self.close_command = self._command(cfg.close_command_expr, "close_command_expr")

    def allocate(self) -> None:
        """Make the buffer of the commands, with a column per joint."""
        shape = (self.env.num_envs, len(self.joint_names))
        self.processed = wp.zeros(shape, dtype=float, device=self.env.device)
        self.processed_actions = torch_view(self.processed)

    def process_actions(self, actions: torch.Tensor) -> None:
        """Choose the commands, and set the targets."""
        closes = actions < 0.0
        self.processed_actions.copy_(torch.where(closes, self._views.close_command, self._views.open_command))
        self.set_targets(self.processed_actions)

    def set_targets(self, processed: torch.Tensor) -> None:
        """Set the targets of the joints, shape (num_envs, num_joints)."""
        raise NotImplementedError

    def _command(self, values: Mapping[str, float], name: str) -> wp.array:
        covered = set(match_names(list(values), self.joint_names, name)) if values else set()
        if missing := [joint for i, joint in enumerate(self.joint_names) if i not in covered]:
            raise ConfigError(f"{name} has no value for {', '.join(missing)}; allowed: one for each joint")
        return wp.array(values_by_name(values, self.joint_names, name), dtype=float, device=self.env.device)


@dataclass(kw_only=True)
class BinaryJointActionCfg(ActionTermCfg):
    """Base of the terms with one column, whose sign chooses between two commands."""

    joint_names: str | tuple[str, ...] = ".*"
    """Regular expressions of whole joint names."""
    open_command_expr: dict[str, float] = field(default_factory=dict)
    """Commands of an action of at least 0, by regular expression."""
    close_command_expr: dict[str, float] = field(default_factory=dict)
    """Commands of a negative action, by regular expression."""

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        yield from super().problems(where)
        for name in ("open_command_expr", "close_command_expr"):
            if not is_finite(*getattr(self, name).values()):
                yield f"{where}.{name} is {getattr(self, name)}; allowed: finite numbers"


class BinaryJointPositionAction(BinaryJointAction):
    """Commands one of two positions of the joints [rad or m]."""

    control = "position"

    def set_targets(self, processed: torch.Tensor) -> None:
        """Set the positions."""
        self.asset.set_joint_position_target(processed, self._torch_ids)


@dataclass(kw_only=True)
class BinaryJointPositionActionCfg(BinaryJointActionCfg):
    """Commands one of two positions of the joints [rad or m]."""

    class_type: ClassVar[type[ActionTerm]] = BinaryJointPositionAction


@warp_twin(BinaryJointPositionAction)
def _(
    env: int,
    asset_state: ArticulationState,
    joint_ids: wp.array[int],
    open_command: wp.array[float],
    close_command: wp.array[float],
    raw: wp.array[float],
    processed: wp.array[float],
):
    for i in range(joint_ids.shape[0]):
        processed[i] = wp.where(raw[0] < 0.0, close_command[i], open_command[i])
        asset_state.joint_pos_target[env, joint_ids[i]] = processed[i]


class BinaryJointVelocityAction(BinaryJointAction):
    """Commands one of two velocities of the joints [rad/s or m/s]."""

    control = "velocity"

    def set_targets(self, processed: torch.Tensor) -> None:
        """Set the velocities."""
        self.asset.set_joint_velocity_target(processed, self._torch_ids)


@dataclass(kw_only=True)
class BinaryJointVelocityActionCfg(BinaryJointActionCfg):
    """Commands one of two velocities of the joints [rad/s or m/s]."""

    class_type: ClassVar[type[ActionTerm]] = BinaryJointVelocityAction


@warp_twin(BinaryJointVelocityAction)
def _(
    env: int,
    asset_state: ArticulationState,
    joint_ids: wp.array[int],
    open_command: wp.array[float],
    close_command: wp.array[float],
    raw: wp.array[float],
    processed: wp.array[float],
):
    for i in range(joint_ids.shape[0]):
        processed[i] = wp.where(raw[0] < 0.0, close_command[i], open_command[i])
        asset_state.joint_vel_target[env, joint_ids[i]] = processed[i]
