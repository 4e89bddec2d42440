"""Learner configurations of the ant tasks."""

from __future__ import annotations

from dataclasses import dataclass, field

from treadle.rl_cfg import ActorModelCfg, MLPModelCfg, OnPolicyRunnerCfg, PPOAlgorithmCfg

__all__ = ["AntDirectPPORunnerCfg", "AntPPORunnerCfg"]

# The numbers are those that Isaac Lab 3.0.0 publishes for rsl_rl on its ant tasks, so that results can be compared.
_HIDDEN_DIMS = (400, 200, 100)


@dataclass(kw_only=True)
class AntDirectPPORunnerCfg(OnPolicyRunnerCfg):
    """PPO for ``Ant-Direct``."""

    num_steps_per_env: int = 32
    max_iterations: int = 1000
    actor: ActorModelCfg = field(default_factory=lambda: ActorModelCfg(hidden_dims=_HIDDEN_DIMS))
    critic: MLPModelCfg = field(default_factory=lambda: MLPModelCfg(hidden_dims=_HIDDEN_DIMS))
    algorithm: PPOAlgorithmCfg = field(
        default_factory=lambda: PPOAlgorithmCfg(learning_rate=5.0e-4, entropy_coef=0.0, value_loss_coef=1.0)
    )


@dataclass(kw_only=True)
class AntPPORunnerCfg(AntDirectPPORunnerCfg):
    """PPO for ``Ant``, with the numbers of ``Ant-Direct``."""
