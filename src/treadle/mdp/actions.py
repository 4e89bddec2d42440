"""Action terms, each in torch and, for one environment, in Warp."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
import warp as wp

from treadle._checks import is_finite
from treadle.assets.articulation_data import TorchViews
from treadle.assets.articulation_state import ArticulationState
from treadle.assets.names import values_by_name
from treadle.errors import ConfigError
from treadle.managers.action_manager import ActionTerm
from treadle.managers.cfg import ActionTermCfg
from treadle.managers.scene_entity import SceneEntityCfg
from treadle.managers.twins import warp_twin

__all__ = ["JointAction", "JointActionCfg", "JointEffortAction", "JointEffortActionCfg"]

wp.set_module_options({"enable_backward": False})

_LARGE = 3.0e38


class JointAction(ActionTerm):
    """Base of the terms with one column per joint: ``processed = clip(raw * scale + offset)``."""

    cfg: JointActionCfg
    control: ClassVar[Literal["effort", "position", "velocity"]]
    """What the term commands."""

    def __init__(self, cfg: JointActionCfg, env: Any):
        super().__init__(cfg, env)
        names = [cfg.joint_names] if isinstance(cfg.joint_names, str) else list(cfg.joint_names)
        entity = SceneEntityCfg(name=cfg.asset_name, joint_names=names, preserve_order=cfg.preserve_order)
        resolved = entity.resolve(env.scene, "asset").resolved
        assert resolved is not None
        self.joint_names = resolved.joint_names
        self.action_dim = len(resolved.joint_names)
        self.joint_ids = resolved.joint_ids
        check_control(self, self.control)
        self._torch_ids = resolved.torch_joint_ids
        self._views = TorchViews(self)
        self.scale = self._row(cfg.scale, "scale", 1.0)
        self.offset = self._row(cfg.offset, "offset", 0.0)
        if getattr(cfg, "use_default_offset", False):
            self.offset = self._array(self.default_offset())
        lower, upper = _clip_by_name(cfg.clip, self.joint_names)
        self.clip_lower, self.clip_upper = self._array(lower), self._array(upper)

    def process_actions(self, actions: torch.Tensor) -> None:
        """Scale, shift and clip the actions, and set the targets."""
        processed = self._scaled(actions)
        self.processed_actions.copy_(processed)
        self.set_targets(processed)

    def _scaled(self, actions: torch.Tensor) -> torch.Tensor:
        """Return ``clip(actions * scale + offset)``."""
        views = self._views
        return (actions * views.scale + views.offset).clamp(views.clip_lower, views.clip_upper)

    def set_targets(self, processed: torch.Tensor) -> None:
        """Set the targets of the joints, shape (num_envs, action_dim)."""
        raise NotImplementedError

    def default_offset(self) -> Sequence[float]:
        """Return the offsets of ``use_default_offset``."""
        default = self.asset.data.default_joint_pos if self.control == "position" else self.asset.data.default_joint_vel
        return [float(default.numpy()[0, joint]) for joint in self.joint_ids.numpy()]

    def _row(self, value: float | dict[str, float], name: str, default: float) -> wp.array:
        if isinstance(value, dict):
            return self._array(values_by_name(value, self.joint_names, name, default))
        return self._array([value] * len(self.joint_names))

    def _array(self, values: Sequence[float]) -> wp.array:
        return wp.array([float(v) for v in values], dtype=float, device=self.env.device)


@dataclass(kw_only=True)
class JointActionCfg(ActionTermCfg):
    """Base of the terms with one column per joint."""

    joint_names: str | tuple[str, ...] = ".*"
    """Regular expressions of whole joint names."""
    scale: float | dict[str, float] = 1.0
    """Factor, one for all joints or by regular expression."""
    offset: float | dict[str, float] = 0.0
    """Offset, added after scaling."""
    clip: tuple[float, float] | dict[str, tuple[float, float]] | None = None
    """Bounds of the processed actions, for all joints or by regular expression."""
    preserve_order: bool = False
    """Whether the columns come in the order of the expressions rather than in that of the joints."""

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        yield from super().problems(where)
        for name in ("scale", "offset"):
            value = getattr(self, name)
            if not is_finite(*(value.values() if isinstance(value, dict) else [value])):
                yield f"{where}.{name} is {value}; allowed: finite numbers"
        for bounds in self.clip.values() if isinstance(self.clip, dict) else [self.clip]:
            if bounds is not None and not (is_finite(*bounds) and bounds[0] <= bounds[1]):
                yield f"{where}.clip is {self.clip}; allowed: two finite numbers, the lower end first"


def check_control(term: Any, control: str) -> None:
    """Refuse joints that do not obey what a term commands.

    Raises:
        ConfigError: The actuator of a joint has another mode.
    """
    layout = term.asset.layout
    joints = [layout.joint_names.index(name) for name in term.joint_names]
    fits = {
        "effort": lambda j: layout.effort_controlled[j],
        "position": lambda j: layout.position_controlled[j] or layout.stiffness[j] > 0.0,
        "velocity": lambda j: layout.velocity_controlled[j],
    }
    if wrong := [layout.joint_names[joint] for joint in joints if not fits[control](joint)]:
        raise ConfigError(
            f"{type(term).__name__} commands the {control} of {', '.join(wrong)}; allowed: joints whose actuator has "
            f"mode {control!r}{' or a stiffness' if control == 'position' else ''}"
        )


class JointEffortAction(JointAction):
    """Commands joint efforts [N*m or N]."""

    control = "effort"

    def set_targets(self, processed: torch.Tensor) -> None:
        """Set the efforts."""
        self.asset.set_joint_effort_target(processed, self._torch_ids)


@dataclass(kw_only=True)
class JointEffortActionCfg(JointActionCfg):
    """Commands joint efforts [N*m or N]."""

    class_type: ClassVar[type[ActionTerm]] = JointEffortAction


@wp.func
def process_joint_action(
    raw: float, i: int, scale: wp.array[float], offset: wp.array[float], lower: wp.array[float], upper: wp.array[float]
) -> float:
    """Return ``clip(raw * scale + offset)`` of one column."""
    return wp.clamp(raw * scale[i] + offset[i], lower[i], upper[i])


@warp_twin(JointEffortAction)
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
        asset_state.joint_effort_target[env, joint_ids[i]] = processed[i]


def _clip_by_name(clip: Any, names: Sequence[str]) -> tuple[list[float], list[float]]:
    if clip is None:
        return [-_LARGE] * len(names), [_LARGE] * len(names)
    if not isinstance(clip, dict):
        return [clip[0]] * len(names), [clip[1]] * len(names)
    lower = values_by_name({key: value[0] for key, value in clip.items()}, names, "clip", -_LARGE)
    return lower, values_by_name({key: value[1] for key, value in clip.items()}, names, "clip", _LARGE)
