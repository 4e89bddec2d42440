"""A trained policy for inference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from rsl_rl.utils import resolve_class
from tensordict import TensorDict

from treadle.errors import ConfigError, UnknownNameError
from treadle.registry import task_spec
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
        agent_cfg: A configuration of the class that the stored one has; the task's own when ``None``.

    Raises:
        CheckpointError: The stored configuration does not fit that class, or the stored network, whose numbers may also
            not be finite.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        *,
        device: str = "cpu",
        stochastic: bool = False,
        agent_cfg: OnPolicyRunnerCfg | None = None,
    ):
        self.stochastic = stochastic
        self.agent_cfg: OnPolicyRunnerCfg = _stored_cfg(checkpoint, agent_cfg)
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
        except (AttributeError, KeyError, RuntimeError, TypeError) as error:
            raise CheckpointError(
                f"the policy stored for task {checkpoint.task!r} does not match its stored configuration"
            ) from error
        if bad := [name for name, value in model.state_dict().items() if not torch.isfinite(value).all()]:
            raise CheckpointError(
                f"the policy stored for task {checkpoint.task!r} has values that are not finite in {', '.join(bad[:3])}"
            )
        return model


def _stored_cfg(checkpoint: Checkpoint, default: OnPolicyRunnerCfg | None) -> OnPolicyRunnerCfg:
    """Read the stored configuration as the class of ``default``, else of the task, else of this package."""
    hint = ""
    if default is None:
        try:
            default = task_spec(checkpoint.task).load_agent_cfg()
        except UnknownNameError:
            default = OnPolicyRunnerCfg()
            hint = f"; task {checkpoint.task!r} is not registered here, import the module that does it"
    try:
        return from_json(checkpoint.agent_cfg, default)
    except ConfigError as error:
        raise CheckpointError(f"the stored configuration of the learner cannot be read: {error}{hint}") from error
