"""Finding the entity that a :class:`SceneEntityCfg` names, and its joints and bodies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import warp as wp

from treadle.assets.names import match_names
from treadle.errors import ConfigError, UnknownNameError
from treadle.managers.scene_entity import ResolvedEntity, SceneEntityCfg

__all__ = ["resolve_entity"]


def resolve_entity(cfg: SceneEntityCfg, scene: Any, where: str) -> ResolvedEntity:
    """Return the entity and the indices of what is selected of it.

    Raises:
        ConfigError: There is no such entity, or an expression matches nothing; the message lists the names.
    """
    try:
        entity = scene[cfg.name]
    except UnknownNameError as error:
        raise ConfigError(f"{where}: {error}") from None
    joints = tuple(getattr(entity, "joint_names", ()))
    bodies = tuple(getattr(entity, "body_names", ()))
    joint_ids = _select(cfg.joint_names, joints, cfg.preserve_order, f"{where}.joint_names")
    body_ids = _select(cfg.body_names, bodies, cfg.preserve_order, f"{where}.body_names")
    device = scene.physics.device
    return ResolvedEntity(
        entity=entity,
        joint_names=tuple(joints[i] for i in joint_ids),
        body_names=tuple(bodies[i] for i in body_ids),
        joint_ids=wp.array(joint_ids, dtype=int, device=device),
        body_ids=wp.array(body_ids, dtype=int, device=device),
        torch_joint_ids=_torch_ids(joint_ids, len(joints), device),
        torch_body_ids=_torch_ids(body_ids, len(bodies), device),
    )


def _select(patterns: str | Sequence[str] | None, names: Sequence[str], preserve_order: bool, where: str) -> list[int]:
    if patterns is None:
        return list(range(len(names)))
    patterns = [patterns] if isinstance(patterns, str) else list(patterns)
    matched = match_names(patterns, names, where)
    if not preserve_order:
        return matched
    ordered: list[int] = []
    for pattern in patterns:
        ordered += [index for index in match_names([pattern], names, where) if index not in ordered]
    return ordered


def _torch_ids(ids: Sequence[int], count: int, device: wp.Device) -> slice | torch.Tensor:
    if list(ids) == list(range(count)):
        return slice(None)
    return torch.tensor(list(ids), dtype=torch.long, device=str(device))
