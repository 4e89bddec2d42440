"""Learner configurations of the cartpole tasks."""

from __future__ import annotations

from dataclasses import dataclass, field

from treadle.rl_cfg import ActorModelCfg, MLPModelCfg, OnPolicyRunnerCfg, PPOAlgorithmCfg

__all__ = ["CartpoleDirectPPORunnerCfg", "CartpolePPORunnerCfg"]

# The numbers are those that Isaac Lab 3.0.0 publishes for rsl_rl on its cartpole tasks.
_HIDDEN_DIMS = (32, 32)


@dataclass(kw_only=True)
class CartpoleDirectPPORunnerCfg(OnPolicyRunnerCfg):
    """PPO for ``Cartpole-Direct``."""

    num_steps_per_env: int = 16
    max_iterations: int = 150
    actor: ActorModelCfg = field(default_factory=lambda: ActorModelCfg(hidden_dims=_HIDDEN_DIMS))
    critic: MLPModelCfg = field(default_factory=lambda: MLPModelCfg(hidden_dims=_HIDDEN_DIMS))
    algorithm: PPOAlgorithmCfg = field(
        default_factory=lambda: PPOAlgorithmCfg(learning_rate=1.0e-3, entropy_coef=0.005, value_loss_coef=1.0)
    )


@dataclass(kw_only=True)
class CartpolePPORunnerCfg(CartpoleDirectPPORunnerCfg):
    """PPO for ``Cartpole``, with the numbers of ``Cartpole-Direct``."""
