"""Reward terms of the task: endings, actions and commands; each in torch and, for one environment, in Warp."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
import warp as wp

from treadle.assets.articulation_state import ArticulationState
from treadle.assets.names import match_names
from treadle.managers.command_manager import CommandState
from treadle.managers.env_state import EnvState
from treadle.managers.scene_entity import SceneEntityCfg
from treadle.managers.twins import warp_twin

if TYPE_CHECKING:
    from treadle.envs import ManagerBasedRLEnv

__all__ = [
    "action_l2",
    "action_rate_l2",
    "is_alive",
    "is_terminated",
    "is_terminated_term",
    "survival_success_rate",
    "track_ang_vel_z_exp",
    "track_lin_vel_xy_exp",
]

wp.set_module_options({"enable_backward": False})

ROBOT = SceneEntityCfg(name="robot")


def is_alive(env: ManagerBasedRLEnv) -> torch.Tensor:
    """1 unless the episode ended in a terminal state, shape (num_envs,)."""
    return (~env.buffers.torch.terminated).float()


@warp_twin(is_alive)
def _(env: int, state: EnvState) -> bool:
    return not state.terminated[env]


def is_terminated(env: ManagerBasedRLEnv) -> torch.Tensor:
    """1 when the episode ended in a terminal state, shape (num_envs,)."""
    return env.buffers.torch.terminated.float()


@warp_twin(is_terminated)
def _(env: int, state: EnvState) -> bool:
    return state.terminated[env]


def is_terminated_term(env: ManagerBasedRLEnv, term_keys: str | Sequence[str] = ".*") -> torch.Tensor:
    """Number of some termination terms that hold, 0 when the episode ran out of time, shape (num_envs,).

    Args:
        env: The environment.
        term_keys: Regular expressions of whole names of termination terms.
    """
    manager = env.termination_manager
    held = [manager.get_term(manager.active_terms[column]) for column in _termination_columns(env, term_keys)]
    return torch.stack(held).sum(dim=0).float().masked_fill(env.buffers.torch.truncated, 0.0)


def _termination_columns(env: Any, term_keys: str | Sequence[str]) -> list[int]:
    keys = [term_keys] if isinstance(term_keys, str) else list(term_keys)
    return match_names(keys, env.termination_manager.active_terms, "is_terminated_term: term_keys")


def _terms(env: Any, params: Mapping[str, Any]) -> dict[str, wp.array]:
    columns = _termination_columns(env, params["term_keys"])
    return {"columns": wp.array(columns, dtype=int, device=env.device)}


@warp_twin(is_terminated_term, extra=_terms, consumes=("term_keys",))
def _(env: int, state: EnvState, columns: wp.array[int]) -> float:
    count = float(0.0)
    for i in range(columns.shape[0]):
        if state.termination_terms[env, columns[i]]:
            count += 1.0
    return wp.where(state.truncated[env], 0.0, count)


def survival_success_rate(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Zero, shape (num_envs,): it names a metric and rewards nothing, whatever its weight.

    The share of time-outs among whole episodes that ended is logged as ``Metrics/success_rate`` in every environment,
    whether this term is there or not.
    """
    return torch.zeros(env.num_envs, device=env.device)


@warp_twin(survival_success_rate)
def _(env: int) -> float:
    return 0.0


def action_l2(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Sum of squared actions as the learner gave them, shape (num_envs,)."""
    return env.action_manager.action.square().sum(dim=1)


@warp_twin(action_l2)
def _(env: int, state: EnvState) -> float:
    total = float(0.0)
    for i in range(state.actions.shape[1]):
        total += state.actions[env, i] * state.actions[env, i]
    return total


def action_rate_l2(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Sum of squared differences to the actions of the step before, shape (num_envs,)."""
    return (env.action_manager.action - env.action_manager.prev_action).square().sum(dim=1)


@warp_twin(action_rate_l2)
def _(env: int, state: EnvState) -> float:
    total = float(0.0)
    for i in range(state.actions.shape[1]):
        difference = state.actions[env, i] - state.previous_actions[env, i]
        total += difference * difference
    return total


def track_lin_vel_xy_exp(
    env: ManagerBasedRLEnv, std: float, command_name: str, asset_cfg: SceneEntityCfg = ROBOT
) -> torch.Tensor:
    """exp(-e / std^2), e the squared error of the horizontal velocity in the body frame, shape (num_envs,).

    Args:
        env: The environment.
        std: Error at which the value is 1 / e [m/s].
        command_name: Command whose first two columns are the velocity [m/s].
        asset_cfg: Articulation.
    """
    command = env.command_manager.get_command(command_name)
    error = (command[:, :2] - env.scene[asset_cfg.name].data.torch.root_lin_vel_b[:, :2]).square().sum(dim=1)
    return torch.exp(-error / (std * std))


@warp_twin(track_lin_vel_xy_exp)
def _(env: int, asset: ArticulationState, command: CommandState, std: float) -> float:
    x = command.command[env, 0] - asset.root_lin_vel_b[env][0]
    y = command.command[env, 1] - asset.root_lin_vel_b[env][1]
    return wp.exp(-(x * x + y * y) / (std * std))


def track_ang_vel_z_exp(
    env: ManagerBasedRLEnv, std: float, command_name: str, asset_cfg: SceneEntityCfg = ROBOT
) -> torch.Tensor:
    """exp(-e / std^2), e the squared error of the angular velocity about the body's z axis, shape (num_envs,).

    Args:
        env: The environment.
        std: Error at which the value is 1 / e [rad/s].
        command_name: Command whose third column is the angular velocity [rad/s].
        asset_cfg: Articulation.
    """
    command = env.command_manager.get_command(command_name)
    error = (command[:, 2] - env.scene[asset_cfg.name].data.torch.root_ang_vel_b[:, 2]).square()
    return torch.exp(-error / (std * std))


@warp_twin(track_ang_vel_z_exp)
def _(env: int, asset: ArticulationState, command: CommandState, std: float) -> float:
    error = command.command[env, 2] - asset.root_ang_vel_b[env][2]
    return wp.exp(-error * error / (std * std))
