"""Events that reset joints, each in torch and, for one environment, in Warp. Both draw the same numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import warp as wp

from treadle.assets.articulation_state import ArticulationState
from treadle.errors import ConfigError
from treadle.managers.env_state import EnvState
from treadle.managers.scene_entity import SceneEntityCfg
from treadle.managers.term_base import ManagerTermBase
from treadle.managers.twins import warp_twin
from treadle.mdp.draws import draw_rows

if TYPE_CHECKING:
    import torch

    from treadle.envs import ManagerBasedRLEnv

__all__ = ["reset_joints_by_offset", "reset_joints_by_scale", "reset_joints_within_limits_range"]

wp.set_module_options({"enable_backward": False})

ROBOT = SceneEntityCfg(name="robot")


def reset_joints_by_offset(
    env: ManagerBasedRLEnv,
    env_mask: torch.Tensor,
    position_range: tuple[float, float],
    velocity_range: tuple[float, float],
    asset_cfg: SceneEntityCfg = ROBOT,
) -> None:
    """Set joints to their defaults plus a uniform offset, clamped to the soft limits.

    Args:
        env: The environment.
        env_mask: Environments to reset, bool, shape (num_envs,).
        position_range: Offset of the positions [rad or m].
        velocity_range: Offset of the velocities [rad/s or m/s].
        asset_cfg: Articulation and joints.
    """
    data, ids = env.scene[asset_cfg.name].data.torch, asset_cfg.joint_ids
    default_pos, default_vel = data.default_joint_pos[:, ids], data.default_joint_vel[:, ids]
    pos = default_pos + env.rand(default_pos.shape[1], *position_range, mask=env_mask)
    vel = default_vel + env.rand(default_pos.shape[1], *velocity_range, mask=env_mask)
    _write(data, ids, pos, vel, env_mask)


def _write(data: Any, ids: Any, pos: torch.Tensor, vel: torch.Tensor, env_mask: torch.Tensor) -> None:
    """Write positions and velocities of some joints in the masked environments, within the limits."""
    pos = pos.clamp(data.soft_joint_pos_lower[:, ids], data.soft_joint_pos_upper[:, ids])
    vel = vel.clamp(-data.joint_vel_limits[:, ids], data.joint_vel_limits[:, ids])
    rows = env_mask[:, None]
    data.joint_pos[:, ids] = pos.where(rows, data.joint_pos[:, ids])
    data.joint_vel[:, ids] = vel.where(rows, data.joint_vel[:, ids])


@wp.func
def write_joint_pos(asset: ArticulationState, env: int, joint: int, pos: float):
    """Write the position of a joint, within the soft limits."""
    lower, upper = asset.soft_joint_pos_lower[env, joint], asset.soft_joint_pos_upper[env, joint]
    asset.joint_pos[env, joint] = wp.clamp(pos, lower, upper)


@wp.func
def write_joint_vel(asset: ArticulationState, env: int, joint: int, vel: float):
    """Write the velocity of a joint, within the limits."""
    limit = asset.joint_vel_limits[env, joint]
    asset.joint_vel[env, joint] = wp.clamp(vel, -limit, limit)


@warp_twin(reset_joints_by_offset)
def _(
    env: int,
    asset: ArticulationState,
    state: EnvState,
    joint_ids: wp.array[int],
    position_range: wp.vec2,
    velocity_range: wp.vec2,
):
    rng = state.random_state[env]
    for i in range(joint_ids.shape[0]):
        offset = wp.randf(rng, position_range[0], position_range[1])
        write_joint_pos(asset, env, joint_ids[i], asset.default_joint_pos[env, joint_ids[i]] + offset)
    for i in range(joint_ids.shape[0]):
        offset = wp.randf(rng, velocity_range[0], velocity_range[1])
        write_joint_vel(asset, env, joint_ids[i], asset.default_joint_vel[env, joint_ids[i]] + offset)
    state.random_state[env] = rng


def reset_joints_by_scale(
    env: ManagerBasedRLEnv,
    env_mask: torch.Tensor,
    position_range: tuple[float, float],
    velocity_range: tuple[float, float],
    asset_cfg: SceneEntityCfg = ROBOT,
) -> None:
    """Set joints to their defaults times a uniform factor, clamped to the soft limits.

    Args:
        env: The environment.
        env_mask: Environments to reset, bool, shape (num_envs,).
        position_range: Factor of the positions.
        velocity_range: Factor of the velocities.
        asset_cfg: Articulation and joints.
    """
    data, ids = env.scene[asset_cfg.name].data.torch, asset_cfg.joint_ids
    default_pos, default_vel = data.default_joint_pos[:, ids], data.default_joint_vel[:, ids]
    pos = default_pos * env.rand(default_pos.shape[1], *position_range, mask=env_mask)
    vel = default_vel * env.rand(default_pos.shape[1], *velocity_range, mask=env_mask)
    _write(data, ids, pos, vel, env_mask)


@warp_twin(reset_joints_by_scale)
def _(
    env: int,
    asset: ArticulationState,
    state: EnvState,
    joint_ids: wp.array[int],
    position_range: wp.vec2,
    velocity_range: wp.vec2,
):
    rng = state.random_state[env]
    for i in range(joint_ids.shape[0]):
        factor = wp.randf(rng, position_range[0], position_range[1])
        write_joint_pos(asset, env, joint_ids[i], asset.default_joint_pos[env, joint_ids[i]] * factor)
    for i in range(joint_ids.shape[0]):
        factor = wp.randf(rng, velocity_range[0], velocity_range[1])
        write_joint_vel(asset, env, joint_ids[i], asset.default_joint_vel[env, joint_ids[i]] * factor)
    state.random_state[env] = rng


class reset_joints_within_limits_range(ManagerTermBase):
    """Set joints to uniform positions and velocities within ranges by joint.

    Parameters: ``position_range`` [rad or m] and ``velocity_range`` [rad/s or m/s], a pair of ends by regular
    expression of joint names, where ``None`` stands for the soft limit of the first environment; a joint that neither
    names keeps its state. ``use_default_offset`` adds the default to what is given. ``operation`` is ``"abs"``, or
    ``"scale"``, which multiplies the ends with the limits. Ends beyond the limits are cut. And ``asset_cfg``.
    """

    consumes: ClassVar[tuple[str, ...]] = ("position_range", "velocity_range", "use_default_offset", "operation")

    def __init__(self, cfg: Any, env: Any):
        super().__init__(cfg, env)
        asset = cfg.params["asset_cfg"].resolved.entity
        data, scale = asset.data, self._is_scale(cfg.params["operation"])
        offset = float(cfg.params["use_default_offset"])
        limits = np.stack([data.soft_joint_pos_lower.numpy()[0], data.soft_joint_pos_upper.numpy()[0]], axis=1)
        speeds = np.stack([-data.joint_vel_limits.numpy()[0], data.joint_vel_limits.numpy()[0]], axis=1)
        self._ids, self._ranges = {}, {}
        for name, bounds, default in (
            ("position", limits, data.default_joint_pos),
            ("velocity", speeds, data.default_joint_vel),
        ):
            ranges = cfg.params[f"{name}_range"]
            self._ids[name], self._ranges[name] = _ranges(
                asset, ranges, bounds, default.numpy()[0] * offset, scale, name
            )
        device = env.device
        self.pos_ids, self.vel_ids = (wp.array(self._ids[n], dtype=int, device=device) for n in self._ids)
        self.pos_ranges, self.vel_ranges = (
            wp.array(self._ranges[n].reshape(-1, 2), dtype=wp.vec2, device=device) for n in self._ranges
        )

    @staticmethod
    def _is_scale(operation: str) -> bool:
        if operation not in ("abs", "scale"):
            raise ConfigError(f"operation is {operation!r}; allowed: abs, scale")
        return operation == "scale"

    def __call__(
        self,
        env: ManagerBasedRLEnv,
        env_mask: torch.Tensor,
        position_range: Mapping[str, tuple[float | None, float | None]],
        velocity_range: Mapping[str, tuple[float | None, float | None]],
        use_default_offset: bool = False,
        operation: str = "abs",
        asset_cfg: SceneEntityCfg = ROBOT,
    ) -> None:
        """Reset the masked environments, bool, shape (num_envs,)."""
        data = env.scene[asset_cfg.name].data.torch
        for view, name in ((data.joint_pos, "position"), (data.joint_vel, "velocity")):
            if ids := self._ids[name]:
                drawn = draw_rows(env, env_mask, self._ranges[name])
                view[:, ids] = drawn.where(env_mask[:, None], view[:, ids])


def _ranges(
    asset: Any, ranges: Mapping[str, Any], limits: np.ndarray, offset: np.ndarray, scale: bool, name: str
) -> tuple[list[int], np.ndarray]:
    """Return the joints that have a range, and its ends."""
    chosen: dict[int, np.ndarray] = {}
    for pattern, ends in ranges.items():
        for joint in asset.find_joints(pattern):
            row = limits[joint].copy()
            for end, value in enumerate(ends):
                if value is not None:
                    row[end] = row[end] * value if scale else value
            chosen[joint] = np.clip(row + offset[joint], *limits[joint])
            if not chosen[joint][0] <= chosen[joint][1]:
                raise ConfigError(f"{name}_range[{pattern!r}] is {ends}; allowed: the lower end first")
    ids = sorted(chosen)
    return ids, np.array([chosen[joint] for joint in ids], dtype=np.float32).reshape(-1, 2)


@warp_twin(reset_joints_within_limits_range)
def _(
    env: int,
    asset: ArticulationState,
    state: EnvState,
    pos_ids: wp.array[int],
    pos_ranges: wp.array[wp.vec2],
    vel_ids: wp.array[int],
    vel_ranges: wp.array[wp.vec2],
):
    rng = state.random_state[env]
    for i in range(pos_ids.shape[0]):
        ends = pos_ranges[i]
        asset.joint_pos[env, pos_ids[i]] = ends[0] + (ends[1] - ends[0]) * wp.randf(rng)
    for i in range(vel_ids.shape[0]):
        ends = vel_ranges[i]
        asset.joint_vel[env, vel_ids[i]] = ends[0] + (ends[1] - ends[0]) * wp.randf(rng)
    state.random_state[env] = rng
