"""Events that randomize drives and joints, each in torch and, for one environment, in Warp."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import warp as wp

from treadle.assets.articulation_data import torch_view
from treadle.assets.articulation_state import ArticulationState
from treadle.managers.env_state import EnvState
from treadle.managers.scene_entity import SceneEntityCfg
from treadle.managers.twins import warp_twin
from treadle.mdp.randomization import (
    Distribution,
    Operation,
    Randomization,
    draw_value,
    numbers_or_none,
    operated,
    structs,
    write_rows,
)
from treadle.physics.properties import ModelChange, ModelProperties

if TYPE_CHECKING:
    from treadle.envs import ManagerBasedRLEnv

__all__ = ["randomize_actuator_gains", "randomize_joint_parameters"]

wp.set_module_options({"enable_backward": False})

ROBOT = SceneEntityCfg(name="robot")

Params = tuple[float, float] | None


_PARAMETERS = tuple(f"{name}_distribution_params" for name in ("friction", "armature", "lower_limit", "upper_limit"))


class _JointRandomization(Randomization):
    """Base of the randomizations of joints; what the articulation's data repeats is written there too."""

    def __init__(self, cfg: Any, env: Any):
        super().__init__(cfg, env)
        asset = cfg.params["asset_cfg"].resolved.entity
        self._asset = asset
        self.first_dof = asset.layout.first_dof
        self.soft_factor = float(asset.cfg.soft_joint_pos_limit_factor)
        self._dofs = cfg.params["asset_cfg"].resolved.joint_ids.numpy() + self.first_dof
        self._torch_dofs = torch.tensor(self._dofs, dtype=torch.long, device=env.device)

    def _randomize(self, env: Any, env_mask: torch.Tensor, name: str, params: Params) -> torch.Tensor | None:
        """Draw one property anew, at least 0 unless it is a limit; return it."""
        if params is None:
            return None
        default = getattr(self.default_views, name)[:, self._torch_dofs]
        values = self.randomized(env, env_mask, default, params)
        if name not in ("joint_lower", "joint_upper"):
            values = values.clamp(min=0.0)
        write_rows(getattr(self.views, name), self._torch_dofs, values, env_mask)
        return values


class randomize_actuator_gains(_JointRandomization):
    """Randomize stiffness and damping of drives, of each joint by itself.

    The damping of a joint without a drive is that of the joint itself.

    Parameters: ``stiffness_distribution_params`` [N*m/rad or N/m] and ``damping_distribution_params`` [N*m*s/rad or
    N*s/m], or factors; ``None`` leaves one as it is. Then ``operation`` and ``distribution`` as for
    :class:`randomize_rigid_body_mass`, and ``asset_cfg``, the joints.
    """

    changes: tuple[ModelChange, ...] = ("drives",)

    def __init__(self, cfg: Any, env: Any):
        super().__init__(cfg, env)
        layout = self._asset.layout
        pairs = zip(layout.position_controlled, layout.stiffness, layout.damping, strict=True)
        driven = [controlled or stiffness > 0.0 or damping > 0.0 for controlled, stiffness, damping in pairs]
        self.driven = wp.array(driven, dtype=wp.bool, device=env.device)
        self._torch_driven = torch_view(self.driven)

    def __call__(
        self,
        env: ManagerBasedRLEnv,
        env_mask: torch.Tensor,
        stiffness_distribution_params: Params = None,
        damping_distribution_params: Params = None,
        operation: Operation = "abs",
        distribution: Distribution = "uniform",
        asset_cfg: SceneEntityCfg = ROBOT,
    ) -> None:
        """Draw the gains of the masked environments, bool, shape (num_envs,)."""
        ids, data = asset_cfg.joint_ids, self._asset.data.torch
        stiffness = self._randomize(env, env_mask, "drive_stiffness", stiffness_distribution_params)
        if stiffness is not None:
            driven = self._torch_driven[ids]
            write_rows(data.joint_stiffness, ids, stiffness * driven, env_mask)
        if damping_distribution_params is not None:
            self._randomize_damping(env, env_mask, damping_distribution_params, ids)

    def _randomize_damping(self, env: Any, env_mask: torch.Tensor, params: Params, ids: Any) -> None:
        assert params is not None
        driven, dofs = self._torch_driven[ids], self._torch_dofs
        of_drive, of_joint = self.default_views.drive_damping[:, dofs], self.default_views.joint_damping[:, dofs]
        values = self.randomized(env, env_mask, torch.where(driven, of_drive, of_joint), params).clamp(min=0.0)
        write_rows(self.views.drive_damping, dofs, torch.where(driven, values, of_drive), env_mask)
        write_rows(self.views.joint_damping, dofs, torch.where(driven, of_joint, values), env_mask)
        write_rows(self._asset.data.torch.joint_damping, ids, values * driven, env_mask)


_GAINS = ("stiffness_distribution_params", "damping_distribution_params")


@warp_twin(randomize_actuator_gains, converts=dict.fromkeys(_GAINS, numbers_or_none), extra=structs)
def _(
    env: int,
    asset: ArticulationState,
    state: EnvState,
    properties: ModelProperties,
    defaults: ModelProperties,
    joint_ids: wp.array[int],
    driven: wp.array[wp.bool],
    first_dof: int,
    stiffness_distribution_params: wp.vec2,
    damping_distribution_params: wp.vec2,
    operation_code: int,
    distribution_code: int,
):
    if not wp.isnan(stiffness_distribution_params[0]):
        for i in range(joint_ids.shape[0]):
            joint = int(joint_ids[i])
            dof = first_dof + joint
            drawn = draw_value(state, env, stiffness_distribution_params, distribution_code)
            value = wp.max(operated(defaults.drive_stiffness[env, dof], drawn, operation_code), 0.0)
            properties.drive_stiffness[env, dof] = value
            asset.joint_stiffness[env, joint] = wp.where(driven[joint], value, 0.0)
    if not wp.isnan(damping_distribution_params[0]):
        for i in range(joint_ids.shape[0]):
            joint = int(joint_ids[i])
            dof = first_dof + joint
            drawn = draw_value(state, env, damping_distribution_params, distribution_code)
            if driven[joint]:
                value = wp.max(operated(defaults.drive_damping[env, dof], drawn, operation_code), 0.0)
                properties.drive_damping[env, dof] = value
                asset.joint_damping[env, joint] = value
            else:
                properties.joint_damping[env, dof] = wp.max(
                    operated(defaults.joint_damping[env, dof], drawn, operation_code), 0.0
                )


class randomize_joint_parameters(_JointRandomization):
    """Randomize friction, armature and position limits, of each joint by itself.

    Parameters: ``friction_distribution_params`` [N*m or N], ``armature_distribution_params`` [kg*m^2 or kg],
    ``lower_limit_distribution_params`` and ``upper_limit_distribution_params`` [rad or m], or factors; ``None`` leaves
    one as it is. Then ``operation`` and ``distribution`` as for :class:`randomize_rigid_body_mass`, and ``asset_cfg``,
    the joints. The soft limits follow the limits. Another armature in mode ``reset`` costs about 200 launches a step.
    """

    def __init__(self, cfg: Any, env: Any):
        super().__init__(cfg, env)
        armature = cfg.params["armature_distribution_params"] is not None
        drives = any(cfg.params[name] is not None for name in _PARAMETERS if not name.startswith("armature"))
        self.changes = (*(("drives",) if drives else ()), *(("armature",) if armature else ()))

    def __call__(
        self,
        env: ManagerBasedRLEnv,
        env_mask: torch.Tensor,
        friction_distribution_params: Params = None,
        armature_distribution_params: Params = None,
        lower_limit_distribution_params: Params = None,
        upper_limit_distribution_params: Params = None,
        operation: Operation = "abs",
        distribution: Distribution = "uniform",
        asset_cfg: SceneEntityCfg = ROBOT,
    ) -> None:
        """Draw the parameters of the masked environments, bool, shape (num_envs,)."""
        self._randomize(env, env_mask, "joint_friction", friction_distribution_params)
        self._randomize(env, env_mask, "joint_armature", armature_distribution_params)
        self._randomize(env, env_mask, "joint_lower", lower_limit_distribution_params)
        self._randomize(env, env_mask, "joint_upper", upper_limit_distribution_params)
        if lower_limit_distribution_params is not None or upper_limit_distribution_params is not None:
            self._follow_limits(env_mask, asset_cfg.joint_ids)

    def _follow_limits(self, env_mask: torch.Tensor, ids: Any) -> None:
        views, data, dofs = self.views, self._asset.data.torch, self._torch_dofs
        lower = views.joint_lower[:, dofs]
        upper = torch.maximum(lower, views.joint_upper[:, dofs])
        write_rows(views.joint_upper, dofs, upper, env_mask)
        middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower) * self.soft_factor
        write_rows(data.joint_pos_lower, ids, lower, env_mask)
        write_rows(data.joint_pos_upper, ids, upper, env_mask)
        write_rows(data.soft_joint_pos_lower, ids, middle - half, env_mask)
        write_rows(data.soft_joint_pos_upper, ids, middle + half, env_mask)


@wp.func
def _randomize_joints(
    env: int,
    state: EnvState,
    joint_ids: wp.array[int],
    first_dof: int,
    params: wp.vec2,
    operation: int,
    distribution: int,
    least: float,
    default: wp.array2d[float],
    value_out: wp.array2d[float],
):
    if not wp.isnan(params[0]):
        for i in range(joint_ids.shape[0]):
            dof = first_dof + joint_ids[i]
            drawn = draw_value(state, env, params, distribution)
            value_out[env, dof] = wp.max(operated(default[env, dof], drawn, operation), least)


@wp.func
def _write_limits(
    env: int,
    asset: ArticulationState,
    properties: ModelProperties,
    joint_ids: wp.array[int],
    first_dof: int,
    soft_factor: float,
):
    for i in range(joint_ids.shape[0]):
        joint = int(joint_ids[i])
        dof = first_dof + joint
        lower = properties.joint_lower[env, dof]
        upper = wp.max(lower, properties.joint_upper[env, dof])
        properties.joint_upper[env, dof] = upper
        middle = 0.5 * (lower + upper)
        half = 0.5 * (upper - lower) * soft_factor
        asset.joint_pos_lower[env, joint] = lower
        asset.joint_pos_upper[env, joint] = upper
        asset.soft_joint_pos_lower[env, joint] = middle - half
        asset.soft_joint_pos_upper[env, joint] = middle + half


@warp_twin(randomize_joint_parameters, converts=dict.fromkeys(_PARAMETERS, numbers_or_none), extra=structs)
def _(
    env: int,
    asset: ArticulationState,
    state: EnvState,
    properties: ModelProperties,
    defaults: ModelProperties,
    joint_ids: wp.array[int],
    first_dof: int,
    soft_factor: float,
    friction_distribution_params: wp.vec2,
    armature_distribution_params: wp.vec2,
    lower_limit_distribution_params: wp.vec2,
    upper_limit_distribution_params: wp.vec2,
    operation_code: int,
    distribution_code: int,
):
    op, kind, low = operation_code, distribution_code, -3.0e38
    p, d = properties, defaults
    _randomize_joints(
        env,
        state,
        joint_ids,
        first_dof,
        friction_distribution_params,
        op,
        kind,
        0.0,
        d.joint_friction,
        p.joint_friction,
    )
    _randomize_joints(
        env,
        state,
        joint_ids,
        first_dof,
        armature_distribution_params,
        op,
        kind,
        0.0,
        d.joint_armature,
        p.joint_armature,
    )
    _randomize_joints(
        env, state, joint_ids, first_dof, lower_limit_distribution_params, op, kind, low, d.joint_lower, p.joint_lower
    )
    _randomize_joints(
        env, state, joint_ids, first_dof, upper_limit_distribution_params, op, kind, low, d.joint_upper, p.joint_upper
    )
    if not (wp.isnan(lower_limit_distribution_params[0]) and wp.isnan(upper_limit_distribution_params[0])):
        _write_limits(env, asset, properties, joint_ids, first_dof, soft_factor)
