"""How long ``treadle bench soak`` runs, and what it lets pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from treadle._checks import is_finite
from treadle.errors import ConfigError

__all__ = ["SoakCfg"]

# How stages share graphs settles step by step, so a short run may still gain a few objects; a leak makes thousands.
_BOUNDS = {
    "rss_mib": 16.0,
    "device_mib": 16.0,
    "gc_objects": 500.0,
    "arrays": 8.0,
    "records": 8.0,
    "graphs": 8.0,
    "site_entries": 8.0,
    "graph_entries": 8.0,
}


@dataclass(kw_only=True)
class SoakCfg:
    """Duration, seed and bounds."""

    device: str = "auto"
    """Warp device, or ``"auto"``."""
    minutes: float = 30.0
    """Duration [min]."""
    seed: int = 0
    """Seed of the programs."""
    samples: int = 24
    """How often to look, evenly over the run. At least 8."""
    bounds: Mapping[str, float] = field(default_factory=lambda: dict(_BOUNDS))
    """Most that each quantity may grow in the second half: the median of the last quarter less that of the third."""

    def validate(self) -> None:
        """Check all values.

        Raises:
            ConfigError: Some are not usable; the message names them all.
        """
        if problems := list(self._problems()):
            raise ConfigError.from_problems(problems)

    def _problems(self) -> Iterator[str]:
        if not is_finite(self.minutes) or not 0 < self.minutes <= 10_000:
            yield f"minutes is {self.minutes}; allowed: above 0, at most 10000"
        if self.seed < 0:
            yield f"seed is {self.seed}; allowed: at least 0"
        if self.samples < 8:
            yield f"samples is {self.samples}; allowed: at least 8"
