"""Medians with intervals, and orders that favour nobody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

__all__ = ["Estimate", "counterbalanced", "estimate"]

_RESAMPLES = 1000


@dataclass(frozen=True)
class Estimate:
    """The median over rounds. The unit is that of the values."""

    median: float
    low: float
    """Lower end of the 95 % confidence interval of the median."""
    high: float
    """Upper end."""
    min: float
    """Least value of a round."""
    max: float
    """Greatest value of a round."""

    def as_dict(self, digits: int = 4) -> dict[str, float]:
        """Return the numbers, rounded to significant digits."""
        return {name: float(f"{value:.{digits}g}") for name, value in asdict(self).items()}


def estimate(values: Sequence[float] | np.ndarray, seed: int = 0) -> Estimate:
    """Return the median with a bootstrap interval.

    Args:
        values: One value per round, at least one.
        seed: Seed of the resampling.
    """
    array = np.asarray(values, dtype=float)
    rng = np.random.default_rng(seed)
    medians = np.median(rng.choice(array, (_RESAMPLES, array.size)), axis=1)
    low, high = np.percentile(medians, (2.5, 97.5))
    return Estimate(float(np.median(array)), float(low), float(high), float(array.min()), float(array.max()))


def counterbalanced(names: Sequence[str], round_number: int) -> list[str]:
    """Return the order of a round.

    Each odd round reverses the one before it, and each pair of rounds starts with another name: after an even number of
    rounds, each name stood as often before as after each other.
    """
    shift = (round_number // 2) % len(names)
    order = [*names[shift:], *names[:shift]]
    return order[::-1] if round_number % 2 else order
