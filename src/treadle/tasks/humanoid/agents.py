"""Learner configurations of the humanoid tasks."""

from __future__ import annotations

from dataclasses import dataclass, field

from treadle.rl_cfg import ActorModelCfg, MLPModelCfg, OnPolicyRunnerCfg, PPOAlgorithmCfg

__all__ = ["HumanoidDirectPPORunnerCfg", "HumanoidPPORunnerCfg"]

# The numbers are those that Isaac Lab 3.0.0 publishes for rsl_rl on its humanoid tasks.
_HIDDEN_DIMS = (400, 200, 100)


@dataclass(kw_only=True)
class HumanoidDirectPPORunnerCfg(OnPolicyRunnerCfg):
    """PPO for ``Humanoid-Direct``."""

    num_steps_per_env: int = 32
    max_iterations: int = 1000
    actor: ActorModelCfg = field(
        default_factory=lambda: ActorModelCfg(hidden_dims=_HIDDEN_DIMS, obs_normalization=True)
    )
    critic: MLPModelCfg = field(default_factory=lambda: MLPModelCfg(hidden_dims=_HIDDEN_DIMS, obs_normalization=True))
    algorithm: PPOAlgorithmCfg = field(
        default_factory=lambda: PPOAlgorithmCfg(learning_rate=5.0e-4, entropy_coef=0.0, value_loss_coef=2.0)
    )


@dataclass(kw_only=True)
class HumanoidPPORunnerCfg(HumanoidDirectPPORunnerCfg):
    """PPO for ``Humanoid``, with the numbers of ``Humanoid-Direct``."""
