"""Direct environments whose task is computed by torch code."""

from __future__ import annotations

from typing import ClassVar

import torch
import warp as wp

from treadle.envs.cfg import DirectEnvCfg
from treadle.envs.direct_env import DirectEnv

__all__ = ["DirectTorchEnv"]


class DirectTorchEnv(DirectEnv):
    """Base of a task in plain torch.

    Physics, resets and accounting are the same kernels as everywhere, in graphs where legal. A task implements the
    methods with ``get`` in their names; they return tensors, which are copied into the persistent buffers.
    """

    task_frontend: ClassVar[str] = "torch"
    _task_capture: ClassVar[bool | str] = "torch code with host control"

    def __init__(self, cfg: DirectEnvCfg):
        self._generator: torch.Generator | None = None
        super().__init__(cfg)

    def _get_terminations(self) -> torch.Tensor:
        """Return which environments are in a terminal state, bool, shape (num_envs,)."""
        raise NotImplementedError

    def _get_rewards(self) -> dict[str, torch.Tensor]:
        """Return the weighted reward terms by name, each of shape (num_envs,)."""
        raise NotImplementedError

    def _get_observations(self) -> dict[str, torch.Tensor]:
        """Return the observations by group, each of shape (num_envs, size)."""
        raise NotImplementedError

    @property
    def reset_mask(self) -> torch.Tensor:
        """Environments that are being reset, bool, shape (num_envs,)."""
        return self._reset_mask

    def rand(self, columns: int, lower: float, upper: float) -> torch.Tensor:
        """Return uniform random numbers, shape (num_envs, columns).

        All environments draw at each call, whether they need the numbers or not, so that a reset of one environment
        never shifts the draws of another.
        """
        draws = torch.rand((self.num_envs, columns), generator=self._generator, device=self.device)
        return draws * (upper - lower) + lower

    def _seed_task(self, seed: int) -> None:
        self._generator = torch.Generator(device=self.device).manual_seed(seed)
        self._reset_mask = wp.to_torch(self.physics.reset_mask)

    def _compute_terminations(self) -> None:
        self.buffers.torch.terminated.copy_(self._get_terminations())

    def _compute_rewards(self) -> None:
        terms = self._get_rewards()
        torch.stack([terms[name] for name in self.reward_terms], dim=1, out=self.buffers.torch.reward_terms)

    def _compute_observations(self) -> None:
        for group, values in self._get_observations().items():
            self.buffers.observation_views[group].copy_(values)
