"""Observation terms of the task: actions, commands and time; each in torch and, for one environment, in Warp."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import warp as wp

from treadle.managers.command_manager import CommandState
from treadle.managers.env_state import EnvState
from treadle.managers.twins import warp_twin

if TYPE_CHECKING:
    import torch

    from treadle.envs import ManagerBasedRLEnv

__all__ = ["current_time_s", "generated_commands", "last_action", "remaining_time_s"]

wp.set_module_options({"enable_backward": False})


def last_action(env: ManagerBasedRLEnv, action_name: str | None = None) -> torch.Tensor:
    """Actions of the last step as the learner gave them, zero after a reset, shape (num_envs, num_actions).

    Args:
        env: The environment.
        action_name: Action term whose columns are observed; ``None`` for all.
    """
    actions = env.action_manager.action
    return actions if action_name is None else actions[:, env.action_manager.columns_of(action_name)]


def _first_action(env: Any, params: Mapping[str, Any]) -> dict[str, int]:
    name = params["action_name"]
    return {"first_action": 0 if name is None else env.action_manager.columns_of(name).start}


@warp_twin(last_action, extra=_first_action, consumes=("action_name",))
def _(env: int, state: EnvState, first_action: int, out: wp.array[float]) -> None:
    for i in range(out.shape[0]):
        out[i] = state.actions[env, first_action + i]


def generated_commands(env: ManagerBasedRLEnv, command_name: str) -> torch.Tensor:
    """The command of a term, shape (num_envs, size of the command)."""
    return env.command_manager.get_command(command_name)


@warp_twin(generated_commands)
def _(env: int, command: CommandState, out: wp.array[float]) -> None:
    for i in range(out.shape[0]):
        out[i] = command.command[env, i]


def current_time_s(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Age of the episode [s], shape (num_envs, 1)."""
    return env.episode_length_buf[:, None] * env.step_dt


@warp_twin(current_time_s)
def _(env: int, state: EnvState) -> float:
    return float(state.episode_length[env]) * state.step_dt


def remaining_time_s(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Time until the episode is as long as it may be [s], shape (num_envs, 1)."""
    return (env.max_episode_length - env.episode_length_buf)[:, None] * env.step_dt


@warp_twin(remaining_time_s)
def _(env: int, state: EnvState) -> float:
    return float(state.max_episode_length - state.episode_length[env]) * state.step_dt
