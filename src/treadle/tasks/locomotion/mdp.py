"""Terms of the locomotion tasks, each in torch and, for one environment, in Warp.

The target is given relative to the origin of each environment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import warp as wp

from treadle.assets.articulation_data import torch_view
from treadle.assets.articulation_state import ArticulationState
from treadle.managers.cfg import TermCfg
from treadle.managers.env_state import EnvState
from treadle.managers.scene_entity import SceneEntityCfg
from treadle.managers.term_base import ManagerTermBase
from treadle.managers.twins import warp_twin
from treadle.mdp import math_torch
from treadle.mdp.math_funcs import roll, yaw
from treadle.tasks.locomotion.funcs import angle_to_target, ground_distance, heading_projection
from treadle.tasks.locomotion.mdp_gears import joint_pos_limits_penalty_ratio, power_consumption

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


def _target(env: ManagerBasedRLEnv, target_pos: tuple[float, float, float]) -> torch.Tensor:
    """Return the target in the world frame [m], shape (num_envs, 3)."""
    origins = torch_view(env.scene.env_origins)
    return torch.stack([origins[:, axis] + target_pos[axis] for axis in range(3)], dim=1)


def _to_target(
    env: ManagerBasedRLEnv, target_pos: tuple[float, float, float], asset_cfg: SceneEntityCfg
) -> torch.Tensor:
    """Return the vector from the root to the target, world frame [m], shape (num_envs, 3)."""
    return _target(env, target_pos) - env.scene[asset_cfg.name].data.torch.root_pos_w
