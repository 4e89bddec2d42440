"""Which parts of a scene entity a term works on."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    import warp as wp

    Internal = Any
else:
    Internal = object  # no command-line option can be made of it

__all__ = ["Internal", "SceneEntityCfg"]


@dataclass
class SceneEntityCfg:
    """An entity of the scene, and some of its joints and bodies.

    A term receives a copy that is resolved: :attr:`joint_ids` and :attr:`body_ids` are set.
    """

    name: str = "robot"
    """Name of the entity in the scene. It may be given without its name, as in ``SceneEntityCfg("robot")``."""
    _: KW_ONLY
    joint_names: str | Sequence[str] | None = None
    """Regular expressions of whole joint names; ``None`` for all joints."""
    body_names: str | Sequence[str] | None = None
    """Regular expressions of whole body names; ``None`` for all bodies."""
    preserve_order: bool = False
    """Whether joints and bodies come in the order of the expressions rather than in that of the entity."""
    joint_ids: Any = field(default_factory=lambda: slice(None), init=False, compare=False)
    """Joints, set when the term is made: ``slice(None)`` for all in order, else a tensor of indices, int64."""
    body_ids: Any = field(default_factory=lambda: slice(None), init=False, compare=False)
    """Bodies, in the same way."""
    resolved: Internal = field(default=None, init=False, compare=False, repr=False)
    """A :class:`ResolvedEntity`, set when the term is made."""

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        if not isinstance(self.name, str):
            yield f"{where}.name is {self.name!r}; allowed: the name of an entity of the scene"
        for name in ("joint_names", "body_names"):
            value = getattr(self, name)
            if not (value is None or isinstance(value, str) or _is_texts(value)):
                yield f"{where}.{name} is {value!r}; allowed: a regular expression, several, or None"

    def resolve(self, scene: Any, where: str) -> SceneEntityCfg:
        """Return a copy whose indices are those of the entity in a scene.

        Args:
            scene: The scene, by whose names entities are found.
            where: Path of the configuration, for errors.

        Raises:
            ConfigError: There is no such entity, or an expression matches nothing.
        """
        from treadle.managers.resolve import resolve_entity

        copy = dataclasses.replace(self)
        copy.resolved = resolve_entity(self, scene, where)
        copy.joint_ids = copy.resolved.torch_joint_ids
        copy.body_ids = copy.resolved.torch_body_ids
        return copy


def _is_texts(value: Any) -> bool:
    return isinstance(value, Sequence) and all(isinstance(item, str) for item in value)


@dataclass
class ResolvedEntity:
    """An entity and the indices of its selected parts, as Python numbers and on the device."""

    entity: Any
    """Articulation or sensor."""
    joint_names: tuple[str, ...]
    """Names of the selected joints."""
    body_names: tuple[str, ...]
    """Names of the selected bodies."""
    joint_ids: wp.array
    """Selected joints, int32, shape (num_selected,)."""
    body_ids: wp.array
    """Selected bodies, int32, shape (num_selected,)."""
    torch_joint_ids: slice | torch.Tensor
    """``slice(None)`` for all joints in order, else their indices, int64."""
    torch_body_ids: slice | torch.Tensor
    """``slice(None)`` for all bodies in order, else their indices, int64."""
