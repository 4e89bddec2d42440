"""What a step returns, in buffers that take turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import warp as wp

from treadle.assets.articulation_data import torch_view

__all__ = ["SLOTS", "StepOutputs"]

SLOTS = 3
"""Number of sets of buffers: what a step returns is not written again by the next two steps."""


class StepOutputs:
    """Persistent buffers for the results of a step.

    The kernels write the set whose number is the step count modulo :data:`SLOTS`, so that nothing is allocated or
    copied between graphs, and a learner may keep what it was given for two more steps.

    Args:
        num_envs: Number of environments.
        num_observations: Size of each observation group.
        device: Device of the buffers.
    """

    def __init__(self, num_envs: int, num_observations: Mapping[str, int], device: wp.DeviceLike):
        self._num_envs, self._device = num_envs, device
        self.observations: dict[str, wp.array] = {}
        """Observations by group, float, shape (SLOTS, num_envs, size)."""
        self.observation_sets: list[dict[str, Any]] = [{} for _ in range(SLOTS)]
        """Views of the observations of each set."""
        for group, size in num_observations.items():
            self.set_group(group, size)
        self.reward = wp.zeros((SLOTS, num_envs), dtype=float, device=device)
        """Rewards, float, shape (SLOTS, num_envs)."""
        self.terminated = wp.zeros((SLOTS, num_envs), dtype=wp.bool, device=device)
        """Whether episodes ended in a terminal state, bool, shape (SLOTS, num_envs)."""
        self.truncated = wp.zeros((SLOTS, num_envs), dtype=wp.bool, device=device)
        """Whether episodes were cut short, bool, shape (SLOTS, num_envs)."""
        views = [torch_view(array) for array in (self.reward, self.terminated, self.truncated)]
        self._flag_sets = [tuple(view[slot] for view in views) for slot in range(SLOTS)]

    def set_group(self, group: str, size: int) -> None:
        """Make the buffers of an observation group, in place of those that it has."""
        self.observations[group] = wp.zeros((SLOTS, self._num_envs, size), dtype=float, device=self._device)
        view = torch_view(self.observations[group])
        for slot, views in enumerate(self.observation_sets):
            views[group] = view[slot]

    def arrange(self, group: str, arrange: Callable[[torch.Tensor], Any]) -> None:
        """Set what is returned of a group, from its buffer of shape (num_envs, size)."""
        view = torch_view(self.observations[group])
        for slot, views in enumerate(self.observation_sets):
            views[group] = arrange(view[slot])

    def read(self, step: int) -> tuple[dict[str, Any], torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return observations, reward, terminated and truncated of a step, by its number."""
        slot = step % SLOTS
        reward, terminated, truncated = self._flag_sets[slot]
        return dict(self.observation_sets[slot]), reward, terminated, truncated
