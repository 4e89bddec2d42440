"""Events that randomize the surfaces of bodies, each in torch and, for one environment, in Warp."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
import warp as wp

from treadle._checks import is_finite
from treadle.assets.articulation_data import torch_view
from treadle.errors import ConfigError
from treadle.managers.env_state import EnvState
from treadle.managers.scene_entity import SceneEntityCfg
from treadle.managers.twins import warp_twin
from treadle.mdp.randomization import (
    Distribution,
    Randomization,
    draw_value,
    draw_values,
    numbers_or_none,
    structs,
    write_rows,
)
from treadle.physics.properties import ModelChange, ModelProperties

if TYPE_CHECKING:
    from treadle.envs import ManagerBasedRLEnv

__all__ = ["randomize_rigid_body_collider_offsets", "randomize_rigid_body_material"]

wp.set_module_options({"enable_backward": False})

ROBOT = SceneEntityCfg(name="robot")

_LEAST_FRICTION = 0.01
"""Below it the solver's forces may not be finite."""


class _ShapeRandomization(Randomization):
    """Base of the randomizations of all shapes of the selected bodies."""

    changes: tuple[ModelChange, ...] = ("shapes",)
    consumes: ClassVar[tuple[str, ...]] = (*Randomization.consumes, "asset_cfg")

    def __init__(self, cfg: Any, env: Any):
        super().__init__(cfg, env)
        bodies = {int(body) for body in cfg.params["asset_cfg"].resolved.body_ids.numpy()}
        shapes = [shape for shape, body in enumerate(env.physics.shape_bodies) if body in bodies]
        if not shapes:
            names = ", ".join(cfg.params["asset_cfg"].resolved.body_names)
            raise ConfigError(f"asset_cfg selects bodies without shapes ({names}); allowed: at least one with a shape")
        self.shape_ids = wp.array(shapes, dtype=int, device=env.device)
        self._torch_ids = torch.tensor(shapes, dtype=torch.long, device=env.device)


class randomize_rigid_body_material(_ShapeRandomization):
    """Randomize friction, of each shape by itself, which takes one of a number of values.

    MuJoCo has one coefficient of sliding friction for grip and for slip: it is the static one. In contacts of these
    bodies their friction decides, not that of the ground.

    Parameters: ``static_friction_range``; ``dynamic_friction_range``, which is checked and has no effect;
    ``restitution_range``, (0, 0) since MuJoCo's contacts do not bounce; ``num_buckets`` different values;
    ``make_consistent``, which has no effect on a single coefficient; and ``asset_cfg``, the bodies.
    """

    consumes: ClassVar[tuple[str, ...]] = (
        *_ShapeRandomization.consumes,
        "static_friction_range",
        "dynamic_friction_range",
        "restitution_range",
        "make_consistent",
    )

    def __init__(self, cfg: Any, env: Any):
        super().__init__(cfg, env)
        self.num_buckets = cfg.params["num_buckets"]
        low, high = cfg.params["static_friction_range"]
        values = np.random.default_rng(env.cfg.seed).uniform(low, high, self.num_buckets)
        self.buckets = wp.array(values, dtype=float, device=env.device)
        self._torch_buckets = torch_view(self.buckets)
        env.physics.prefer_shape_friction(self.shape_ids.numpy().tolist())

    @classmethod
    def param_problems(cls, params: Mapping[str, Any]) -> Iterator[str]:
        """Yield one sentence for each parameter that is not allowed; see :class:`ManagerTermBase`."""
        yield from super().param_problems(params)
        for name in ("static_friction_range", "dynamic_friction_range"):
            value = params.get(name, (1.0, 1.0))
            if not (len(value) == 2 and is_finite(*value) and _LEAST_FRICTION <= value[0] <= value[1]):
                yield f"{name} is {value}; allowed: two numbers of at least {_LEAST_FRICTION}, the lower first"
        if any(restitution := params.get("restitution_range", ())):
            yield f"restitution_range is {restitution}; allowed: (0, 0) with MuJoCo"
        buckets = params.get("num_buckets", 1)
        if not (isinstance(buckets, int) and 1 <= buckets <= 2**16):
            yield f"num_buckets is {buckets!r}; allowed: 1 to 65536"

    def __call__(
        self,
        env: ManagerBasedRLEnv,
        env_mask: torch.Tensor,
        static_friction_range: tuple[float, float],
        dynamic_friction_range: tuple[float, float],
        restitution_range: tuple[float, float] = (0.0, 0.0),
        num_buckets: int = 64,
        make_consistent: bool = False,
        asset_cfg: SceneEntityCfg = ROBOT,
    ) -> None:
        """Draw the friction of the masked environments, bool, shape (num_envs,)."""
        unit = env.rand(len(self._torch_ids), 0.0, 1.0, mask=env_mask)
        bucket = (unit * self.num_buckets).long().clamp(0, self.num_buckets - 1)
        write_rows(self.views.shape_friction, self._torch_ids, self._torch_buckets[bucket], env_mask)


@warp_twin(randomize_rigid_body_material, extra=structs)
def _(
    env: int,
    state: EnvState,
    properties: ModelProperties,
    shape_ids: wp.array[int],
    buckets: wp.array[float],
    num_buckets: int,
):
    rng = state.random_state[env]
    for i in range(shape_ids.shape[0]):
        bucket = wp.min(int(wp.randf(rng) * float(num_buckets)), num_buckets - 1)
        properties.shape_friction[env, shape_ids[i]] = buckets[bucket]
    state.random_state[env] = rng


class randomize_rigid_body_collider_offsets(_ShapeRandomization):
    """Randomize the distances at which contacts push and at which they are detected, of each shape by itself.

    Parameters: ``rest_offset_distribution_params``, the distance from the surface at which a contact pushes [m];
    ``contact_offset_distribution_params``, that at which it is detected [m], at least the former; ``None`` leaves one
    as it is. Then ``distribution`` as for :class:`randomize_rigid_body_mass`, and ``asset_cfg``, the bodies.
    """

    def __init__(self, cfg: Any, env: Any):
        super().__init__(cfg, env)
        if cfg.params["rest_offset_distribution_params"] is not None and not env.physics.has_contact_margins():
            raise ConfigError(
                "rest_offset_distribution_params has no effect, as MuJoCo ignores margins in a scene with boxes or "
                "meshes; allowed: None"
            )

    def __call__(
        self,
        env: ManagerBasedRLEnv,
        env_mask: torch.Tensor,
        rest_offset_distribution_params: tuple[float, float] | None = None,
        contact_offset_distribution_params: tuple[float, float] | None = None,
        distribution: Distribution = "uniform",
        asset_cfg: SceneEntityCfg = ROBOT,
    ) -> None:
        """Draw the offsets of the masked environments, bool, shape (num_envs,)."""
        ids, views = self._torch_ids, self.views
        if rest_offset_distribution_params is not None:
            drawn = draw_values(env, env_mask, len(ids), rest_offset_distribution_params, self.distribution_code)
            write_rows(views.shape_margin, ids, drawn, env_mask)
        if contact_offset_distribution_params is not None:
            drawn = draw_values(env, env_mask, len(ids), contact_offset_distribution_params, self.distribution_code)
            write_rows(views.shape_gap, ids, (drawn - views.shape_margin[:, ids]).clamp(min=0.0), env_mask)


_OFFSETS = ("rest_offset_distribution_params", "contact_offset_distribution_params")


@warp_twin(randomize_rigid_body_collider_offsets, converts=dict.fromkeys(_OFFSETS, numbers_or_none), extra=structs)
def _(
    env: int,
    state: EnvState,
    properties: ModelProperties,
    shape_ids: wp.array[int],
    rest_offset_distribution_params: wp.vec2,
    contact_offset_distribution_params: wp.vec2,
    distribution_code: int,
):
    if not wp.isnan(rest_offset_distribution_params[0]):
        for i in range(shape_ids.shape[0]):
            drawn = draw_value(state, env, rest_offset_distribution_params, distribution_code)
            properties.shape_margin[env, shape_ids[i]] = drawn
    if not wp.isnan(contact_offset_distribution_params[0]):
        for i in range(shape_ids.shape[0]):
            shape = shape_ids[i]
            drawn = draw_value(state, env, contact_offset_distribution_params, distribution_code)
            properties.shape_gap[env, shape] = wp.max(drawn - properties.shape_margin[env, shape], 0.0)
