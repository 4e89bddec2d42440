"""Noise on observations. Each entry draws from the random state of its environment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from treadle._checks import is_finite

__all__ = [
    "ConstantNoiseCfg",
    "GaussianNoiseCfg",
    "NoiseCfg",
    "NoiseModelCfg",
    "NoiseModelWithAdditiveBiasCfg",
    "UniformNoiseCfg",
]

_OPERATIONS = ("add", "scale", "abs")


@dataclass(kw_only=True)
class NoiseCfg:
    """Base of the noises."""

    operation: Literal["add", "scale", "abs"] = "add"
    """Whether the noise is added, is a factor, or replaces the value."""

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        if self.operation not in _OPERATIONS:
            yield f"{where}.operation is {self.operation!r}; allowed: {', '.join(_OPERATIONS)}"
        for name, value in self.parameters.items():
            if not is_finite(value):
                yield f"{where}.{name} is {value}; allowed: a finite number"

    @property
    def parameters(self) -> dict[str, float]:
        """The two numbers of the distribution by name."""
        raise NotImplementedError


@dataclass(kw_only=True)
class ConstantNoiseCfg(NoiseCfg):
    """The same number always."""

    bias: float = 0.0
    """The number."""

    @property
    def parameters(self) -> dict[str, float]:
        """The numbers of the distribution by name."""
        return {"bias": self.bias}


@dataclass(kw_only=True)
class UniformNoiseCfg(NoiseCfg):
    """Uniform noise."""

    n_min: float = -1.0
    """Least value."""
    n_max: float = 1.0
    """Largest value."""

    @property
    def parameters(self) -> dict[str, float]:
        """The numbers of the distribution by name."""
        return {"n_min": self.n_min, "n_max": self.n_max}


@dataclass(kw_only=True)
class GaussianNoiseCfg(NoiseCfg):
    """Gaussian noise."""

    mean: float = 0.0
    """Mean."""
    std: float = 1.0
    """Standard deviation."""

    @property
    def parameters(self) -> dict[str, float]:
        """The numbers of the distribution by name."""
        return {"mean": self.mean, "std": self.std}


@dataclass(kw_only=True)
class NoiseModelCfg:
    """Base of noises with a state."""

    noise_cfg: NoiseCfg = field(default_factory=UniformNoiseCfg)
    """Noise of each step."""

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        yield from self.noise_cfg.problems(f"{where}.noise_cfg")


@dataclass(kw_only=True)
class NoiseModelWithAdditiveBiasCfg(NoiseModelCfg):
    """Noise plus a bias that each environment draws at a reset."""

    bias_noise_cfg: NoiseCfg = field(default_factory=UniformNoiseCfg)
    """Distribution of the bias, which starts from 0."""
    sample_bias_per_component: bool = True
    """Whether each column has a bias of its own."""

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        yield from super().problems(where)
        yield from self.bias_noise_cfg.problems(f"{where}.bias_noise_cfg")
