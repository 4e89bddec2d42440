"""Direct environments whose task is computed by torch code."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

import torch

from treadle.envs.direct_env import DirectEnv
from treadle.errors import ConfigError

__all__ = ["DirectTorchEnv"]


class DirectTorchEnv(DirectEnv):
    """Base of a task in plain torch.

    Physics, resets and accounting are the same kernels as everywhere, in graphs where legal. A task implements the
    methods with ``get`` in their names; they return tensors, which are copied into the persistent buffers. A tensor of
    another shape than it should have is an error: copying would broadcast or resize it silently.
    """

    task_frontend: ClassVar[str] = "torch"
    _task_capture: ClassVar[bool | str] = "torch code with host control"

    def _get_terminations(self) -> torch.Tensor:
        """Return which environments are in a terminal state, bool, shape (num_envs,)."""
        raise NotImplementedError

    def _get_rewards(self) -> dict[str, torch.Tensor]:
        """Return the weighted reward terms by name, each of shape (num_envs,)."""
        raise NotImplementedError

    def _get_observations(self) -> dict[str, torch.Tensor]:
        """Return the observations by group, each of shape (num_envs, size)."""
        raise NotImplementedError

    def _compute_terminations(self) -> None:
        terminated = self._get_terminations()
        self._check_shape("terminations", terminated, self.num_envs)
        self.buffers.torch.terminated.copy_(terminated)

    def _compute_rewards(self) -> None:
        terms = self._get_rewards()
        self._check_names("reward terms", terms, self.reward_terms)
        for name, term in terms.items():
            self._check_shape(f"reward term {name!r}", term, self.num_envs)
        torch.stack([terms[name] for name in self.reward_terms], dim=1, out=self.buffers.torch.reward_terms)

    def _compute_observations(self) -> None:
        observations = self._get_observations()
        self._check_names("observation groups", observations, self.num_observations)
        for group, values in observations.items():
            self._check_shape(f"observation group {group!r}", values, self.num_envs, self.num_observations[group])
            self.buffers.observation_views[group].copy_(values)

    def _check_names(self, what: str, given: Collection[str], expected: Collection[str]) -> None:
        if set(given) != set(expected):
            names = ", ".join(given)
            raise ConfigError(f"{what} of {type(self).__name__} are {names}; allowed: {', '.join(expected)}")

    def _check_shape(self, what: str, values: torch.Tensor, *expected: int) -> None:
        if values.shape != expected:
            shape = tuple(values.shape)
            raise ConfigError(f"{what} of {type(self).__name__}: shape is {shape}; allowed: {expected}")
