"""Modifiers of observations, applied before noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from treadle._checks import is_finite

__all__ = ["BiasModifierCfg", "ClipModifierCfg", "DigitalFilterCfg", "IntegratorCfg", "ModifierCfg", "ScaleModifierCfg"]


@dataclass(kw_only=True)
class ModifierCfg:
    """Base of the modifiers."""

    def numbers(self) -> tuple[float, ...]:
        """Return the numbers that the kernel reads."""
        raise NotImplementedError

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        if not is_finite(*self.numbers()):
            yield f"{where} is {self}; allowed: finite numbers"


@dataclass(kw_only=True)
class ScaleModifierCfg(ModifierCfg):
    """Multiplies."""

    multiplier: float = 1.0
    """Factor."""

    def numbers(self) -> tuple[float, ...]:
        """Return the numbers that the kernel reads."""
        return (self.multiplier,)


@dataclass(kw_only=True)
class BiasModifierCfg(ModifierCfg):
    """Adds."""

    value: float = 0.0
    """Summand."""

    def numbers(self) -> tuple[float, ...]:
        """Return the numbers that the kernel reads."""
        return (self.value,)


@dataclass(kw_only=True)
class ClipModifierCfg(ModifierCfg):
    """Clips."""

    bounds: tuple[float, float] = (-1.0, 1.0)
    """Lower and upper bound."""

    def numbers(self) -> tuple[float, ...]:
        """Return the numbers that the kernel reads."""
        return self.bounds

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        yield from super().problems(where)
        if self.bounds[0] > self.bounds[1]:
            yield f"{where}.bounds is {self.bounds}; allowed: the lower end first"


@dataclass(kw_only=True)
class DigitalFilterCfg(ModifierCfg):
    """A linear digital filter: ``y[i] = sum_k B[k] * x[i-k] - sum_k A[k] * y[i-1-k]``."""

    A: tuple[float, ...] = ()
    """Factors of past outputs, the newest first."""
    B: tuple[float, ...] = (1.0,)
    """Factors of inputs, the current one first."""

    def numbers(self) -> tuple[float, ...]:
        """Return the numbers that the kernel reads."""
        return (*self.A, *self.B)

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        yield from super().problems(where)
        if not self.B:
            yield f"{where}.B is empty; allowed: at least one factor"


@dataclass(kw_only=True)
class IntegratorCfg(ModifierCfg):
    """Integrates over time with the trapezoidal rule, from 0 at a reset."""

    dt: float = 1.0
    """Time between two values [s]."""

    def numbers(self) -> tuple[float, ...]:
        """Return the numbers that the kernel reads."""
        return (self.dt,)
