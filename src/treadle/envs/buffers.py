"""The persistent buffers of an environment."""

from __future__ import annotations

from collections.abc import Mapping

import torch
import warp as wp

from treadle.assets.articulation_data import TorchViews, torch_view
from treadle.envs.outputs import StepOutputs
from treadle.managers.env_state import STEPPING

__all__ = ["EnvBuffers", "ManagerBuffers"]


class EnvBuffers:
    """What an environment reads and writes at each step.

    Nothing here is ever reallocated; ``buffers.torch`` gives torch views.

    Args:
        num_envs: Number of environments.
        num_actions: Size of an action.
        num_observations: Size of each observation group.
        num_reward_terms: Number of reward terms.
        device: Device of all arrays.
    """

    def __init__(
        self,
        num_envs: int,
        num_actions: int,
        num_observations: Mapping[str, int],
        num_reward_terms: int,
        device: wp.DeviceLike,
    ):
        self.torch = TorchViews(self)
        self.actions = wp.zeros((num_envs, num_actions), dtype=float, device=device)
        """Actions as the learner gave them; zero after a reset. Float, shape (num_envs, num_actions)."""
        self.episode_length = wp.zeros(num_envs, dtype=int, device=device)
        """Age of the current episode in steps, int32, shape (num_envs,); a learner may assign it."""
        self.steps_taken = wp.zeros(num_envs, dtype=int, device=device)
        """Steps really taken in the current episode, int32, shape (num_envs,)."""
        self.phase = wp.full(num_envs, STEPPING, dtype=int, device=device)
        """2 while all environments step; see :class:`treadle.managers.EnvState`. int32, shape (num_envs,)."""
        self.common_step = wp.zeros(num_envs, dtype=int, device=device)
        """Steps since the start, the same number for each environment, int32, shape (num_envs,)."""
        self.non_finite = wp.zeros(num_envs, dtype=wp.bool, device=device)
        """Whether an action, the physics or a measurement is not finite, shape (num_envs,)."""
        self.bad_observation = wp.zeros(num_envs, dtype=wp.bool, device=device)
        """Whether the last observation was not finite and was replaced by zeros, shape (num_envs,)."""
        self.terminated = wp.zeros(num_envs, dtype=wp.bool, device=device)
        """Whether the episode ended in a terminal state, shape (num_envs,)."""
        self.truncated = wp.zeros(num_envs, dtype=wp.bool, device=device)
        """Whether the episode ran out of time without ending in a terminal state, shape (num_envs,)."""
        self.reward_terms = wp.zeros((num_envs, num_reward_terms), dtype=float, device=device)
        """Weighted reward terms of the step, float, shape (num_envs, num_reward_terms)."""
        self.reward = wp.zeros(num_envs, dtype=float, device=device)
        """Reward of the step, float, shape (num_envs,)."""
        self.episode_sums = wp.zeros((num_envs, num_reward_terms), dtype=float, device=device)
        """Sum of each reward term over the current episode, float, shape (num_envs, num_reward_terms)."""
        self.non_finite_terms = wp.zeros(max(num_reward_terms, 1), dtype=int, device=device)
        """How often each reward term was not finite since the last look, int32, shape (num_reward_terms,)."""
        self.random_state = wp.zeros(num_envs, dtype=wp.uint32, device=device)
        """State of each environment's random numbers, uint32, shape (num_envs,)."""
        self.observations: dict[str, wp.array] = {}
        """Observations by group, float, shape (num_envs, size)."""
        self.observation_views: dict[str, torch.Tensor] = {}
        """Torch views of the observations."""
        self.outputs = StepOutputs(num_envs, {}, device)
        """What a step returns."""
        self.add_observations(num_observations)

    def add_observations(self, num_observations: Mapping[str, int]) -> None:
        """Make the buffers of observation groups, in place of those that they have.

        Args:
            num_observations: Size of each group.
        """
        num_envs, device = self.actions.shape[0], self.actions.device
        for group, size in num_observations.items():
            self.observations[group] = wp.zeros((num_envs, size), dtype=float, device=device)
            self.observation_views[group] = torch_view(self.observations[group])
            self.outputs.set_group(group, size)

    def set_reward_terms(self, count: int) -> None:
        """Make the buffers of reward terms, in place of those that there are."""
        num_envs, device = self.actions.shape[0], self.actions.device
        self.reward_terms = wp.zeros((num_envs, count), dtype=float, device=device)
        self.episode_sums = wp.zeros((num_envs, count), dtype=float, device=device)
        self.non_finite_terms = wp.zeros(max(count, 1), dtype=int, device=device)
        for name in ("reward_terms", "episode_sums", "non_finite_terms"):
            vars(self.torch).pop(name, None)


class ManagerBuffers(EnvBuffers):
    """The buffers of a manager-based environment."""

    def __init__(
        self,
        num_envs: int,
        num_actions: int,
        num_observations: Mapping[str, int],
        num_reward_terms: int,
        device: wp.DeviceLike,
    ):
        super().__init__(num_envs, num_actions, num_observations, num_reward_terms, device)
        self.action_input = wp.zeros((num_envs, num_actions), dtype=float, device=device)
        """Where a step's actions arrive, shape (num_envs, num_actions)."""
        self.previous_actions = wp.zeros((num_envs, num_actions), dtype=float, device=device)
        """Actions of the step before; zero after a reset. Float, shape (num_envs, num_actions)."""
        self.moved_mask = wp.zeros(num_envs, dtype=wp.bool, device=device)
        """Environments whose bodies a reset or an event moved in this step, bool, shape (num_envs,)."""
