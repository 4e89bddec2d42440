"""Events that randomize bodies and gravity, each in torch and, for one environment, in Warp."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import warp as wp

from treadle.managers.env_state import EnvState
from treadle.managers.scene_entity import SceneEntityCfg
from treadle.managers.twins import warp_twin
from treadle.mdp.draws import Ranges, axis_ranges, draw_rows, rows_of
from treadle.mdp.randomization import (
    Distribution,
    Operation,
    Randomization,
    draw_value,
    operated,
    structs,
    write_rows,
)
from treadle.physics.properties import ModelChange, ModelProperties

if TYPE_CHECKING:
    from treadle.envs import ManagerBasedRLEnv

__all__ = [
    "randomize_physics_scene_gravity",
    "randomize_rigid_body_com",
    "randomize_rigid_body_inertia",
    "randomize_rigid_body_mass",
]

wp.set_module_options({"enable_backward": False})

ROBOT = SceneEntityCfg(name="robot")

_LEAST_MASS = wp.constant(1.0e-6)
_LEAST_INERTIA = wp.constant(1.0e-9)

gravity_bounds = wp.types.matrix(shape=(2, 3), dtype=float)


class randomize_rigid_body_mass(Randomization):
    """Randomize masses, of each body by itself.

    Parameters: ``mass_distribution_params``, the two numbers of the distribution ([kg], or a factor);
    ``operation`` on the default: ``"abs"`` replaces, ``"scale"`` multiplies, ``"add"`` adds; ``distribution``, of which
    ``"gaussian"`` takes mean and deviation and the others two ends; ``recompute_inertia``, whether the inertia follows
    the mass; and ``asset_cfg``, the bodies. Applying it in mode ``reset`` costs about 200 launches a step.
    """

    changes: tuple[ModelChange, ...] = ("inertia",)

    def __call__(
        self,
        env: ManagerBasedRLEnv,
        env_mask: torch.Tensor,
        mass_distribution_params: tuple[float, float],
        operation: Operation,
        distribution: Distribution = "uniform",
        recompute_inertia: bool = True,
        asset_cfg: SceneEntityCfg = ROBOT,
    ) -> None:
        """Draw the masses of the masked environments, bool, shape (num_envs,)."""
        default, views, ids = self.default_views, self.views, asset_cfg.body_ids
        old = default.body_mass[:, ids]
        mass = self.randomized(env, env_mask, old, mass_distribution_params).clamp(min=_LEAST_MASS)
        write_rows(views.body_mass, ids, mass, env_mask)
        write_rows(views.body_inv_mass, ids, 1.0 / mass, env_mask)
        if recompute_inertia:
            ratio = (mass / old)[:, :, None, None]
            write_rows(views.body_inertia, ids, ratio * default.body_inertia[:, ids], env_mask)
            write_rows(views.body_inv_inertia, ids, default.body_inv_inertia[:, ids] / ratio, env_mask)


@warp_twin(randomize_rigid_body_mass, extra=structs)
def _(
    env: int,
    state: EnvState,
    properties: ModelProperties,
    defaults: ModelProperties,
    body_ids: wp.array[int],
    mass_distribution_params: wp.vec2,
    operation_code: int,
    distribution_code: int,
    recompute_inertia: bool,
):
    for i in range(body_ids.shape[0]):
        body = body_ids[i]
        old = defaults.body_mass[env, body]
        drawn = draw_value(state, env, mass_distribution_params, distribution_code)
        mass = wp.max(operated(old, drawn, operation_code), _LEAST_MASS)
        properties.body_mass[env, body] = mass
        properties.body_inv_mass[env, body] = 1.0 / mass
        if recompute_inertia:
            ratio = mass / old
            properties.body_inertia[env, body] = ratio * defaults.body_inertia[env, body]
            properties.body_inv_inertia[env, body] = defaults.body_inv_inertia[env, body] / ratio


class randomize_rigid_body_inertia(Randomization):
    """Randomize the diagonal of inertias, each entry by itself.

    Parameters: ``inertia_distribution_params`` ([kg*m^2], or a factor); ``operation``, ``distribution`` and
    ``asset_cfg`` as for :class:`randomize_rigid_body_mass`. Use it after a randomization of the mass with
    ``recompute_inertia=False``: it starts from the default inertia.
    """

    changes: tuple[ModelChange, ...] = ("inertia",)

    def __call__(
        self,
        env: ManagerBasedRLEnv,
        env_mask: torch.Tensor,
        inertia_distribution_params: tuple[float, float],
        operation: Operation,
        distribution: Distribution = "uniform",
        asset_cfg: SceneEntityCfg = ROBOT,
    ) -> None:
        """Draw the inertias of the masked environments, bool, shape (num_envs,)."""
        ids = asset_cfg.body_ids
        inertia = self.default_views.body_inertia[:, ids].clone()
        old = inertia.diagonal(dim1=2, dim2=3)
        new = self.randomized(env, env_mask, old.flatten(1), inertia_distribution_params).clamp(min=_LEAST_INERTIA)
        old.copy_(new.view(old.shape))
        write_rows(self.views.body_inertia, ids, inertia, env_mask)
        write_rows(self.views.body_inv_inertia, ids, torch.linalg.inv(inertia), env_mask)


@warp_twin(randomize_rigid_body_inertia, extra=structs)
def _(
    env: int,
    state: EnvState,
    properties: ModelProperties,
    defaults: ModelProperties,
    body_ids: wp.array[int],
    inertia_distribution_params: wp.vec2,
    operation_code: int,
    distribution_code: int,
):
    for i in range(body_ids.shape[0]):
        inertia = defaults.body_inertia[env, body_ids[i]]
        for axis in range(3):
            drawn = draw_value(state, env, inertia_distribution_params, distribution_code)
            inertia[axis, axis] = wp.max(operated(inertia[axis, axis], drawn, operation_code), _LEAST_INERTIA)
        properties.body_inertia[env, body_ids[i]] = inertia
        properties.body_inv_inertia[env, body_ids[i]] = wp.inverse(inertia)


class randomize_rigid_body_com(Randomization):
    """Move centres of mass by a uniform offset, the same for all selected bodies of an environment.

    Parameters: ``com_range`` for ``x``, ``y`` and ``z`` [m] in the frame of the body, (0, 0) where it is not given, and
    ``asset_cfg``, the bodies.
    """

    changes: tuple[ModelChange, ...] = ("inertia",)

    def __call__(
        self, env: ManagerBasedRLEnv, env_mask: torch.Tensor, com_range: Ranges, asset_cfg: SceneEntityCfg = ROBOT
    ) -> None:
        """Draw the offsets of the masked environments, bool, shape (num_envs,)."""
        ids = asset_cfg.body_ids
        offset = draw_rows(env, env_mask, rows_of(com_range)[:3])
        write_rows(self.views.body_com, ids, self.default_views.body_com[:, ids] + offset[:, None], env_mask)


@warp_twin(randomize_rigid_body_com, converts={"com_range": rows_of}, extra=structs)
def _(
    env: int,
    state: EnvState,
    properties: ModelProperties,
    defaults: ModelProperties,
    body_ids: wp.array[int],
    com_range: axis_ranges,
):
    rng = state.random_state[env]
    offset = wp.vec3()
    for axis in range(3):
        offset[axis] = com_range[axis, 0] + (com_range[axis, 1] - com_range[axis, 0]) * wp.randf(rng)
    state.random_state[env] = rng
    for i in range(body_ids.shape[0]):
        properties.body_com[env, body_ids[i]] = defaults.body_com[env, body_ids[i]] + offset


class randomize_physics_scene_gravity(Randomization):
    """Randomize gravity, of each environment by itself.

    Parameters: ``gravity_distribution_params``, two vectors [m/s^2] (or factors), the lower and the upper ends, or mean
    and deviation; ``operation`` and ``distribution`` as for :class:`randomize_rigid_body_mass`.
    """

    changes: tuple[ModelChange, ...] = ("gravity",)

    def __call__(
        self,
        env: ManagerBasedRLEnv,
        env_mask: torch.Tensor,
        gravity_distribution_params: tuple[tuple[float, float, float], tuple[float, float, float]],
        operation: Operation,
        distribution: Distribution = "uniform",
    ) -> None:
        """Draw gravity in the masked environments, bool, shape (num_envs,)."""
        default, gravity = self.default_views.gravity, self.views.gravity
        low, high = gravity_distribution_params
        columns = [
            self.randomized(env, env_mask, default[:, axis : axis + 1], (low[axis], high[axis])) for axis in range(3)
        ]
        gravity.copy_(torch.cat(columns, dim=1).where(env_mask[:, None], gravity))


@warp_twin(randomize_physics_scene_gravity, extra=structs)
def _(
    env: int,
    state: EnvState,
    properties: ModelProperties,
    defaults: ModelProperties,
    gravity_distribution_params: gravity_bounds,  # type: ignore[valid-type]
    operation_code: int,
    distribution_code: int,
):
    gravity = defaults.gravity[env]
    for axis in range(3):
        ends = wp.vec2(gravity_distribution_params[0, axis], gravity_distribution_params[1, axis])  # type: ignore[index]
        gravity[axis] = operated(gravity[axis], draw_value(state, env, ends, distribution_code), operation_code)
    properties.gravity[env] = gravity
