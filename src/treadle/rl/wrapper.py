"""Adapter between a Treadle environment and rsl_rl."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from rsl_rl.env import VecEnv
from tensordict import TensorDict

if TYPE_CHECKING:
    from treadle.envs import VectorEnv

__all__ = ["RslRlVecEnvWrapper"]


class RslRlVecEnvWrapper(VecEnv):
    """A Treadle environment as rsl_rl 5.5 wants it.

    The environment is reset once here, since rsl_rl never does it.

    Args:
        env: The environment.
        clip_actions: Actions are clipped to plus or minus this value; ``None`` leaves them.
        num_steps_per_env: Steps of a rollout. The episode log is read at its last step only, so that its means are over
            all episodes that ended in the rollout, and reading it costs one host synchronization per rollout.
    """

    def __init__(self, env: VectorEnv, *, clip_actions: float | None = None, num_steps_per_env: int = 1):
        self.unwrapped = env
        self.cfg = env.cfg
        self.num_envs = env.num_envs
        self.num_actions = env.num_actions
        self.max_episode_length = env.max_episode_length
        self.device = env.device
        self.clip_actions = clip_actions
        self.num_steps_per_env = num_steps_per_env
        self.before_step: Callable[[], None] | None = None
        """Called at the start of each step; what it raises ends the rollout."""
        self._step_of_rollout = 0
        env.reset()

    @property
    def episode_length_buf(self) -> torch.Tensor:
        """Age of each episode in environment steps, int32, shape (num_envs,).

        rsl_rl assigns a new tensor to it. The values are copied: kernels and graphs keep reading the old memory.
        """
        return self.unwrapped.episode_length_buf

    @episode_length_buf.setter
    def episode_length_buf(self, value: torch.Tensor) -> None:
        self.unwrapped.episode_length_buf = value

    def begin_rollout(self) -> None:
        """Start counting the steps of a rollout again, as after one that was cut short."""
        self._step_of_rollout = 0

    def get_observations(self) -> TensorDict:
        """Return the current observations, batch size [num_envs]."""
        return self._tensor_dict(self.unwrapped.observations)

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict[str, Any]]:
        """Step all environments.

        Args:
            actions: Shape (num_envs, num_actions).

        Returns:
            The observations; the rewards, shape (num_envs,); whether each episode ended, int64, shape (num_envs,); and
            the extras: ``"time_outs"``, bool, shape (num_envs,), and at the last step of a rollout ``"log"``.
        """
        if self.before_step is not None:
            self.before_step()
        if self.clip_actions is not None:
            actions = actions.clamp(-self.clip_actions, self.clip_actions)
        obs, reward, terminated, truncated, extras = self.unwrapped.step(actions)
        extras = {key: value for key, value in extras.items() if key not in ("log", "episode")}
        extras["time_outs"] = truncated
        self._step_of_rollout += 1
        if self._step_of_rollout == self.num_steps_per_env:
            self.begin_rollout()
            if log := self.unwrapped.pop_episode_log():
                extras["log"] = log
        return self._tensor_dict(obs), reward, (terminated | truncated).long(), extras

    def close(self) -> None:
        """Close the environment."""
        self.unwrapped.close()

    def _tensor_dict(self, obs: dict[str, torch.Tensor]) -> TensorDict:
        return TensorDict(dict(obs), batch_size=[self.num_envs], device=self.device)
