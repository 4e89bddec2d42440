"""A trained policy for inference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from rsl_rl.utils import resolve_class
from tensordict import TensorDict

from treadle.rl.checkpoint import Checkpoint, CheckpointError
from treadle.rl.plain import from_json
from treadle.rl_cfg import OnPolicyRunnerCfg

if TYPE_CHECKING:
    from rsl_rl.models import MLPModel

__all__ = ["Policy"]


class Policy:
    """Maps observations to actions.

    The network's shape is the one that the checkpoint's stored configuration describes.

    Args:
        checkpoint: A loaded checkpoint.
        device: Device to run on.
        stochastic: Whether actions are sampled, as in training, instead of being the mean.

    Raises:
        CheckpointError: The stored configuration and the stored network disagree.
    """

    def __init__(self, checkpoint: Checkpoint, *, device: str = "cpu", stochastic: bool = False):
        self.stochastic = stochastic
        self.agent_cfg: OnPolicyRunnerCfg = from_json(checkpoint.agent_cfg, OnPolicyRunnerCfg())
        """The learner's configuration as it was in training."""
        self._device = device
        self._model = self._build(checkpoint).to(device).eval()

    def __call__(self, obs: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return the actions, shape (num_envs, num_actions), for observations by group, each (num_envs, width)."""
        with torch.inference_mode():
            num_envs = next(iter(obs.values())).shape[0]
            actions = self._model(TensorDict(dict(obs), batch_size=[num_envs]), stochastic_output=self.stochastic)
            if (limit := self.agent_cfg.clip_actions) is not None:
                actions = actions.clamp(-limit, limit)
            return actions

    def _build(self, checkpoint: Checkpoint) -> MLPModel:
        sample = TensorDict(
            {name: torch.zeros(1, width) for name, width in checkpoint.num_observations.items()}, batch_size=[1]
        )
        cfg = self.agent_cfg.to_rsl_rl()
        model_class, model_cfg = resolve_class(cfg["actor"])
        model: MLPModel = model_class(sample, cfg["obs_groups"], "actor", checkpoint.num_actions, **model_cfg)
        try:
            model.load_state_dict(checkpoint.algorithm["actor_state_dict"])
        except (KeyError, RuntimeError) as error:
            raise CheckpointError(
                f"the policy stored for task {checkpoint.task!r} does not match its stored configuration"
            ) from error
        return model
