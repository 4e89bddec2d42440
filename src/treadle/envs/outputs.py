"""What a step returns, in buffers that take turns."""

from __future__ import annotations

from collections.abc import Mapping
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
        self.observations = {
            group: wp.zeros((SLOTS, num_envs, size), dtype=float, device=device)
            for group, size in num_observations.items()
        }
        """Observations by group, float, shape (SLOTS, num_envs, size)."""
        self.reward = wp.zeros((SLOTS, num_envs), dtype=float, device=device)
        """Rewards, float, shape (SLOTS, num_envs)."""
        self.terminated = wp.zeros((SLOTS, num_envs), dtype=wp.bool, device=device)
        """Whether episodes ended in a terminal state, bool, shape (SLOTS, num_envs)."""
        self.truncated = wp.zeros((SLOTS, num_envs), dtype=wp.bool, device=device)
        """Whether episodes were cut short, bool, shape (SLOTS, num_envs)."""
        views = [torch_view(array) for array in (self.reward, self.terminated, self.truncated)]
        groups = {group: torch_view(array) for group, array in self.observations.items()}
        self.observation_sets: list[dict[str, Any]] = [
            {group: view[slot] for group, view in groups.items()} for slot in range(SLOTS)
        ]
        """Views of the observations of each set."""
        self._flag_sets = [tuple(view[slot] for view in views) for slot in range(SLOTS)]

    def read(self, step: int) -> tuple[dict[str, Any], torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return observations, reward, terminated and truncated of a step, by its number."""
        slot = step % SLOTS
        reward, terminated, truncated = self._flag_sets[slot]
        return dict(self.observation_sets[slot]), reward, terminated, truncated
