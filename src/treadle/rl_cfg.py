"""Typed configuration of the learner.

It lies below the tasks, which fill it in, and below :mod:`treadle.rl`, which offers it again and trains with it.
Importing it loads no learner.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from treadle._checks import choice_problems, count_problems, range_problems
from treadle.errors import ConfigError

__all__ = ["ActorModelCfg", "MLPModelCfg", "OnPolicyRunnerCfg", "PPOAlgorithmCfg"]

_LARGEST_WIDTH = 65536
_LARGEST_INT = 2**31 - 1


@dataclass(kw_only=True)
class MLPModelCfg:
    """A multi-layer perceptron that reads one or more groups of observations."""

    obs_groups: tuple[str, ...] = ("policy",)
    """Observation groups that the model reads, concatenated in this order."""
    hidden_dims: tuple[int, ...] = (256, 256, 256)
    """Width of each hidden layer."""
    activation: Literal[
        "elu", "selu", "relu", "crelu", "lrelu", "tanh", "sigmoid", "softplus", "gelu", "swish", "mish"
    ] = "elu"
    """Activation function between the layers."""
    obs_normalization: bool = False
    """Whether observations are normalized by their running mean and standard deviation."""

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        if not self.obs_groups:
            yield f"{where}.obs_groups is empty; allowed: one or more observation groups"
        if not self.hidden_dims or not all(_is_width(width) for width in self.hidden_dims):
            yield f"{where}.hidden_dims is {self.hidden_dims}; allowed: one or more widths of 1 to {_LARGEST_WIDTH}"
        yield from choice_problems(self, f"{where}.")

    def to_rsl_rl(self) -> dict[str, Any]:
        """Return rsl_rl's dictionary for a model with a deterministic output."""
        return {
            "class_name": "MLPModel",
            "hidden_dims": list(self.hidden_dims),
            "activation": self.activation,
            "obs_normalization": self.obs_normalization,
        }


@dataclass(kw_only=True)
class ActorModelCfg(MLPModelCfg):
    """A model whose output is the mean of a Gaussian over actions; its standard deviation is learned per action."""

    init_std: float = 1.0
    """Standard deviation of the actions at the start of the training."""
    std_type: Literal["scalar", "log"] = "scalar"
    """Whether the standard deviation is learned as it is or as its logarithm."""

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        yield from super().problems(where)
        # rsl_rl clamps the standard deviation to this range.
        yield from range_problems(self, f"{where}.", ("init_std",), 1e-6, 1e6)

    def to_rsl_rl(self) -> dict[str, Any]:
        """Return rsl_rl's dictionary for a model with a Gaussian output."""
        distribution = {"class_name": "GaussianDistribution", "init_std": self.init_std, "std_type": self.std_type}
        return super().to_rsl_rl() | {"distribution_cfg": distribution}


@dataclass(kw_only=True)
class PPOAlgorithmCfg:
    """Proximal policy optimization."""

    num_learning_epochs: int = 5
    """Passes over the collected data per iteration."""
    num_mini_batches: int = 4
    """Mini-batches per pass."""
    learning_rate: float = 1.0e-3
    """Learning rate at the start."""
    schedule: Literal["adaptive", "fixed"] = "adaptive"
    """``"adaptive"`` moves the learning rate so that the policy changes by about ``desired_kl`` per update."""
    desired_kl: float = 0.01
    """Target of the Kullback-Leibler divergence between the old and the new policy."""
    gamma: float = 0.99
    """Discount factor per environment step."""
    lam: float = 0.95
    """Lambda of the generalized advantage estimate."""
    clip_param: float = 0.2
    """Clipping range of the probability ratio, and of the value when ``use_clipped_value_loss`` is set."""
    use_clipped_value_loss: bool = True
    """Whether the change of the value estimate is clipped."""
    value_loss_coef: float = 1.0
    """Weight of the value loss."""
    entropy_coef: float = 0.0
    """Weight of the entropy bonus."""
    max_grad_norm: float = 1.0
    """The norm of the gradient of each model is clipped to this value."""
    normalize_advantage_per_mini_batch: bool = False
    """Whether advantages are normalized per mini-batch instead of over all data of an iteration."""
    optimizer: Literal["adam", "adamw", "sgd", "rmsprop"] = "adam"
    """Optimizer."""

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        where = f"{where}."
        yield from count_problems(self, where, ("num_learning_epochs", "num_mini_batches"))
        yield from range_problems(self, where, ("learning_rate",), 0.0, 1.0, above=True)
        yield from range_problems(self, where, ("desired_kl", "clip_param", "max_grad_norm"), 0.0, 1e9, above=True)
        yield from range_problems(self, where, ("value_loss_coef", "entropy_coef"), 0.0, 1e9)
        yield from range_problems(self, where, ("gamma", "lam"), 0.0, 1.0)
        yield from choice_problems(self, where)

    def to_rsl_rl(self) -> dict[str, Any]:
        """Return rsl_rl's dictionary: the fields have its names."""
        return {"class_name": "PPO", "rnd_cfg": None, "symmetry_cfg": None} | vars(self)


@dataclass(kw_only=True)
class OnPolicyRunnerCfg:
    """Configuration of a training run. Tasks derive from it and change the defaults."""

    seed: int = 42
    """Seed of the network's first weights and of the sampled actions."""
    num_steps_per_env: int = 24
    """Environment steps per iteration."""
    max_iterations: int = 1000
    """Iterations of a run. A resumed run makes this many *more* iterations."""
    save_interval: int = 50
    """A checkpoint is written every so many iterations, and at the end."""
    init_at_random_ep_len: bool = True
    """Whether the first episodes start at random ages, so that the environments do not end in step."""
    clip_actions: float | None = None
    """Actions are clipped to plus or minus this value before the environment sees them; ``None`` leaves them."""
    check_for_nan: bool = True
    """Whether a run ends with an error that names the cause when a loss is not finite; looked at once per iteration."""
    actor: ActorModelCfg = field(default_factory=ActorModelCfg)
    """The policy."""
    critic: MLPModelCfg = field(default_factory=MLPModelCfg)
    """The value function."""
    algorithm: PPOAlgorithmCfg = field(default_factory=PPOAlgorithmCfg)
    """The learning algorithm."""

    def problems(self, where: str = "agent") -> Iterator[str]:
        """Yield one sentence for each value that is not allowed, over the whole configuration."""
        if not (isinstance(self.seed, numbers.Integral) and 0 <= self.seed <= _LARGEST_INT):
            yield f"{where}.seed is {self.seed}; allowed: 0 to {_LARGEST_INT}"
        yield from count_problems(self, f"{where}.", ("num_steps_per_env",), 1_000_000)
        yield from count_problems(self, f"{where}.", ("max_iterations", "save_interval"))
        if self.clip_actions is not None:
            yield from (
                f"{problem}, or None"
                for problem in range_problems(self, f"{where}.", ("clip_actions",), 0.0, 1e9, above=True)
            )
        yield from self.actor.problems(f"{where}.actor")
        yield from self.critic.problems(f"{where}.critic")
        yield from self.algorithm.problems(f"{where}.algorithm")

    def validate(self) -> None:
        """Check all values.

        Raises:
            ConfigError: One or more values are not allowed; all are reported together.
        """
        if problems := list(self.problems()):
            raise ConfigError.from_problems(problems)

    def to_rsl_rl(self) -> dict[str, Any]:
        """Return the dictionary that rsl_rl 5.5 is built from, the only place that knows its form."""
        return {
            "seed": self.seed,
            "num_steps_per_env": self.num_steps_per_env,
            "save_interval": self.save_interval,
            "logger": "tensorboard",
            # rsl_rl's own check reads from the device at every step. The runner looks at the losses, read anyway.
            "check_for_nan": False,
            "obs_groups": {"actor": list(self.actor.obs_groups), "critic": list(self.critic.obs_groups)},
            "actor": self.actor.to_rsl_rl(),
            "critic": self.critic.to_rsl_rl(),
            "algorithm": self.algorithm.to_rsl_rl(),
        }


def _is_width(value: object) -> bool:
    return isinstance(value, numbers.Integral) and 1 <= int(value) <= _LARGEST_WIDTH
