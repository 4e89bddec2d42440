"""Terms of the locomotion tasks, each in torch and, for one environment, in Warp.

The target is given relative to the origin of each environment.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import warp as wp

from treadle.assets.articulation_data import torch_view
from treadle.assets.articulation_state import ArticulationState
from treadle.assets.names import values_by_name
from treadle.errors import ConfigError
from treadle.managers.cfg import TermCfg
from treadle.managers.env_state import EnvState
from treadle.managers.scene_entity import SceneEntityCfg
from treadle.managers.term_base import ManagerTermBase
from treadle.managers.twins import warp_twin
from treadle.mdp import math_torch
from treadle.mdp.math_funcs import normalized_position, roll, yaw
from treadle.tasks.locomotion.funcs import angle_to_target, ground_distance, heading_projection

if TYPE_CHECKING:
    from treadle.envs import ManagerBasedRLEnv

__all__ = [
    "base_angle_to_target",
    "base_heading_proj",
    "base_up_proj",
    "base_yaw_roll",
    "joint_pos_limits_penalty_ratio",
    "move_to_target_bonus",
    "power_consumption",
    "progress_reward",
    "terminated_penalty",
    "upright_posture_bonus",
]

wp.set_module_options({"enable_backward": False})

ROBOT = SceneEntityCfg(name="robot")


def base_yaw_roll(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Yaw and roll of the root, each in [-pi, pi] [rad], shape (num_envs, 2)."""
    quat = env.scene[asset_cfg.name].data.torch.root_quat_w
    return torch.stack((math_torch.yaw(quat), math_torch.roll(quat)), dim=1)


@warp_twin(base_yaw_roll)
def _(env: int, asset: ArticulationState) -> wp.vec2:
    return wp.vec2(yaw(asset.root_quat_w[env]), roll(asset.root_quat_w[env]))


def base_up_proj(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Cosine between the body's z axis and up, shape (num_envs, 1)."""
    return -env.scene[asset_cfg.name].data.torch.projected_gravity_b[:, 2:]


@warp_twin(base_up_proj)
def _(env: int, asset: ArticulationState) -> float:
    return -asset.projected_gravity_b[env][2]


def base_heading_proj(
    env: ManagerBasedRLEnv, target_pos: tuple[float, float, float], asset_cfg: SceneEntityCfg = ROBOT
) -> torch.Tensor:
    """Cosine between the body's x axis and the direction to the target in the ground plane, shape (num_envs, 1).

    Args:
        env: The environment.
        target_pos: Target relative to the environment's origin [m].
        asset_cfg: Articulation.
    """
    direction = torch.nn.functional.normalize(_to_target(env, target_pos, asset_cfg)[:, :2], dim=1)
    x, y, z, w = env.scene[asset_cfg.name].data.torch.root_quat_w.unbind(dim=1)
    forward = torch.stack((1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + w * z)), dim=1)
    return (forward * direction).sum(dim=1, keepdim=True)


@warp_twin(base_heading_proj)
def _(env: int, asset: ArticulationState, state: EnvState, target_pos: wp.vec3) -> float:
    target = state.env_origins[env] + target_pos
    return heading_projection(asset.root_pos_w[env], asset.root_quat_w[env], target)


def base_angle_to_target(
    env: ManagerBasedRLEnv, target_pos: tuple[float, float, float], asset_cfg: SceneEntityCfg = ROBOT
) -> torch.Tensor:
    """Angle from the heading to the target in the ground plane, in [-pi, pi] [rad], shape (num_envs, 1).

    Args:
        env: The environment.
        target_pos: Target relative to the environment's origin [m].
        asset_cfg: Articulation.
    """
    to_target = _to_target(env, target_pos, asset_cfg)
    heading = math_torch.yaw(env.scene[asset_cfg.name].data.torch.root_quat_w)
    return math_torch.wrap_to_pi(torch.atan2(to_target[:, 1], to_target[:, 0]) - heading)[:, None]


@warp_twin(base_angle_to_target)
def _(env: int, asset: ArticulationState, state: EnvState, target_pos: wp.vec3) -> float:
    target = state.env_origins[env] + target_pos
    return angle_to_target(asset.root_pos_w[env], asset.root_quat_w[env], target)


def upright_posture_bonus(env: ManagerBasedRLEnv, threshold: float, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """1 while the cosine between the body's z axis and up exceeds a threshold, shape (num_envs,)."""
    return (base_up_proj(env, asset_cfg)[:, 0] > threshold).float()


@warp_twin(upright_posture_bonus)
def _(env: int, asset: ArticulationState, threshold: float) -> bool:
    return -asset.projected_gravity_b[env][2] > threshold


def move_to_target_bonus(
    env: ManagerBasedRLEnv,
    threshold: float,
    target_pos: tuple[float, float, float],
    asset_cfg: SceneEntityCfg = ROBOT,
) -> torch.Tensor:
    """1 while the heading projection exceeds a threshold, below it its share of the threshold, shape (num_envs,).

    Args:
        env: The environment.
        threshold: Heading projection, see :func:`base_heading_proj`.
        target_pos: Target relative to the environment's origin [m].
        asset_cfg: Articulation.
    """
    heading = base_heading_proj(env, target_pos, asset_cfg)[:, 0]
    return torch.where(heading > threshold, 1.0, heading / threshold)


@warp_twin(move_to_target_bonus)
def _(env: int, asset: ArticulationState, state: EnvState, threshold: float, target_pos: wp.vec3) -> float:
    target = state.env_origins[env] + target_pos
    heading = heading_projection(asset.root_pos_w[env], asset.root_quat_w[env], target)
    return wp.where(heading > threshold, 1.0, heading / threshold)


def terminated_penalty(env: ManagerBasedRLEnv) -> torch.Tensor:
    """1 / step_dt when the episode ended in a terminal state, so that the weight counts once, shape (num_envs,)."""
    return env.buffers.torch.terminated.float() / env.step_dt


@warp_twin(terminated_penalty)
def _(env: int, state: EnvState) -> float:
    return wp.where(state.terminated[env], 1.0 / state.step_dt, 0.0)


class progress_reward(ManagerTermBase):
    """Speed towards the target in the ground plane over the last step [m/s], shape (num_envs,).

    The distance is kept in double precision: at a kilometre, the resolution of single precision (0.06 mm) is 0.4 % of a
    step at 1 m/s.
    """

    def __init__(self, cfg: TermCfg, env: Any):
        super().__init__(cfg, env)
        self.distance = wp.zeros(env.num_envs, dtype=wp.float64, device=env.device)
        """Distance to the target in the ground plane at the last step [m], float64, shape (num_envs,)."""
        self._view = torch_view(self.distance)
        self._view.copy_(self._measure())

    def reset(self, env_mask: torch.Tensor) -> None:
        """Measure progress from the new position of the masked environments, bool, shape (num_envs,)."""
        self._view.copy_(torch.where(env_mask, self._measure(), self._view))

    def __call__(
        self, env: ManagerBasedRLEnv, target_pos: tuple[float, float, float], asset_cfg: SceneEntityCfg = ROBOT
    ) -> torch.Tensor:
        """Return the speed, and remember the distance.

        Args:
            env: The environment.
            target_pos: Target relative to the environment's origin [m].
            asset_cfg: Articulation.
        """
        distance = self._measure()
        speed = (self._view - distance).float() / env.step_dt
        self._view.copy_(distance)
        return speed

    def _measure(self) -> torch.Tensor:
        params, data = self.cfg.params, self.env.scene[self.cfg.params["asset_cfg"].name].data.torch
        target = _target(self.env, params["target_pos"])
        x, y, _ = (target.double() - data.root_pos_w.double()).unbind(dim=1)
        return (x * x + y * y).sqrt()


@wp.func
def _restart_progress(
    env: int, asset: ArticulationState, state: EnvState, target_pos: wp.vec3, distance: wp.array[wp.float64]
) -> None:
    distance[env] = ground_distance(asset.root_pos_w[env], state.env_origins[env] + target_pos)


@warp_twin(progress_reward, reset=_restart_progress)
def _(
    env: int, asset: ArticulationState, state: EnvState, target_pos: wp.vec3, distance: wp.array[wp.float64]
) -> float:
    now = ground_distance(asset.root_pos_w[env], state.env_origins[env] + target_pos)
    speed = float(distance[env] - now) / state.step_dt
    distance[env] = now
    return speed


class _GearTerm(ManagerTermBase):
    """A term that weighs each joint by its gear as a share of the largest."""

    def __init__(self, cfg: TermCfg, env: Any):
        super().__init__(cfg, env)
        self._asset_cfg: SceneEntityCfg = cfg.params["asset_cfg"]
        self.joint_names = _joint_names(self._asset_cfg)
        self.gear_share = wp.zeros(len(self.joint_names), dtype=float, device=env.device)
        """Gear of each selected joint as a share of the largest, float, shape (num_joints,)."""
        self._gears: Any = None
        self._share = torch_view(self.gear_share)
        self._take_gears(cfg.params["gear_ratio"])

    def _take_gears(self, gear_ratio: dict[str, float] | float) -> torch.Tensor:
        """Return the shares, taken anew if the gears changed."""
        if gear_ratio != self._gears:
            gears = {".*": gear_ratio} if isinstance(gear_ratio, int | float) else gear_ratio
            values = np.array(values_by_name(gears, self.joint_names, "gear_ratio"))
            if gearless := [name for name, gear in zip(self.joint_names, values, strict=True) if not gear > 0.0]:
                raise ConfigError(f"gear_ratio gives no gear to {', '.join(gearless)}; allowed: one above 0 for each")
            self._share.copy_(torch.from_numpy((values / values.max()).astype(np.float32)))
            self._gears = dict(gears) if gears is gear_ratio else gear_ratio
        return self._share


class joint_pos_limits_penalty_ratio(_GearTerm):
    """Sum over joints of the excess beyond a share of the soft limits, weighted by the gear, shape (num_envs,).

    With q in [-1, 1] between the soft limits: (abs(q) - threshold) / (1 - threshold), 0 below the threshold.
    """

    def __call__(
        self,
        env: ManagerBasedRLEnv,
        threshold: float,
        gear_ratio: dict[str, float],
        asset_cfg: SceneEntityCfg = ROBOT,
    ) -> torch.Tensor:
        """Return the penalty.

        Args:
            env: The environment.
            threshold: Share of the limits.
            gear_ratio: Gear by regular expression of whole joint names, or one for all.
            asset_cfg: Articulation and joints.
        """
        data, ids = env.scene[asset_cfg.name].data.torch, asset_cfg.joint_ids
        position = math_torch.normalized_position(data.joint_pos, data.soft_joint_pos_lower, data.soft_joint_pos_upper)
        excess = (position[:, ids].abs() - threshold) / (1.0 - threshold)
        return (excess.clamp(min=0.0) * self._take_gears(gear_ratio)).sum(dim=1)


@warp_twin(joint_pos_limits_penalty_ratio, consumes=("gear_ratio",))
def _(
    env: int, asset: ArticulationState, joint_ids: wp.array[int], gear_share: wp.array[float], threshold: float
) -> float:
    total = float(0.0)
    for i in range(joint_ids.shape[0]):
        j = joint_ids[i]
        lower, upper = asset.soft_joint_pos_lower[env, j], asset.soft_joint_pos_upper[env, j]
        position = normalized_position(asset.joint_pos[env, j], lower, upper)
        excess = (wp.abs(position) - threshold) / (1.0 - threshold)
        total += wp.max(excess, 0.0) * gear_share[i]
    return total


class power_consumption(_GearTerm):
    """Sum over joints of abs(action * velocity), weighted by the gear [rad/s or m/s], shape (num_envs,).

    The action is that of the policy, before scaling and clipping.
    """

    def __init__(self, cfg: TermCfg, env: Any):
        super().__init__(cfg, env)
        columns = _action_columns(env, self._asset_cfg)
        self.action_columns = wp.array(columns, dtype=int, device=env.device)
        """Column of each selected joint in the actions, int, shape (num_joints,)."""
        self._columns = torch.tensor(columns, dtype=torch.long, device=env.device)

    def __call__(
        self, env: ManagerBasedRLEnv, gear_ratio: dict[str, float], asset_cfg: SceneEntityCfg = ROBOT
    ) -> torch.Tensor:
        """Return the power.

        Args:
            env: The environment.
            gear_ratio: Gear by regular expression of whole joint names, or one for all.
            asset_cfg: Articulation and joints.
        """
        velocity = env.scene[asset_cfg.name].data.torch.joint_vel[:, asset_cfg.joint_ids]
        actions = env.buffers.torch.actions[:, self._columns]
        return (actions * velocity * self._take_gears(gear_ratio)).abs().sum(dim=1)


@warp_twin(power_consumption, consumes=("gear_ratio",))
def _(
    env: int,
    asset: ArticulationState,
    state: EnvState,
    joint_ids: wp.array[int],
    action_columns: wp.array[int],
    gear_share: wp.array[float],
) -> float:
    total = float(0.0)
    for i in range(joint_ids.shape[0]):
        total += wp.abs(state.actions[env, action_columns[i]] * asset.joint_vel[env, joint_ids[i]] * gear_share[i])
    return total


def _target(env: ManagerBasedRLEnv, target_pos: tuple[float, float, float]) -> torch.Tensor:
    """Return the target in the world frame [m], shape (num_envs, 3)."""
    origins = torch_view(env.scene.env_origins)
    return torch.stack([origins[:, axis] + target_pos[axis] for axis in range(3)], dim=1)


def _to_target(
    env: ManagerBasedRLEnv, target_pos: tuple[float, float, float], asset_cfg: SceneEntityCfg
) -> torch.Tensor:
    """Return the vector from the root to the target, world frame [m], shape (num_envs, 3)."""
    return _target(env, target_pos) - env.scene[asset_cfg.name].data.torch.root_pos_w


def _action_columns(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg) -> list[int]:
    """Return the column of each selected joint in the actions.

    Raises:
        ConfigError: No action term commands a joint.
    """
    columns: dict[str, int] = {}
    for name in env.action_manager.active_terms:
        term: Any = env.action_manager.get_term(name)
        if term.cfg.asset_name == asset_cfg.name:
            first = env.action_manager.columns_of(name).start
            for index, joint in enumerate(getattr(term, "joint_names", ())):
                columns.setdefault(joint, first + index)
    selected = _joint_names(asset_cfg)
    if missing := [name for name in selected if name not in columns]:
        raise ConfigError(
            f"no action commands joint {', '.join(missing)}; allowed: an asset_cfg with joints of "
            f"{', '.join(columns) or 'an action term'}"
        )
    return [columns[name] for name in selected]


def _joint_names(asset_cfg: SceneEntityCfg) -> Sequence[str]:
    """Return the names of the selected joints."""
    resolved: Any = asset_cfg.resolved
    names: Sequence[str] = resolved.joint_names
    return names
