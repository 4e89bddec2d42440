"""What ``treadle bench launch`` measures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from treadle._checks import count_problems
from treadle.errors import ConfigError, did_you_mean

__all__ = ["KERNEL_NAMES", "LaunchBenchCfg"]

KERNEL_NAMES = ("arrays-1", "arrays-4", "arrays-12", "struct", "tiled")
"""Names of the kernels: by their number of array arguments, or by what is special about them."""


@dataclass(kw_only=True)
class LaunchBenchCfg:
    """The matrix, and how long to measure each part of it."""

    device: str = "auto"
    """Warp device, or ``"auto"``."""
    kernels: Sequence[str] = KERNEL_NAMES
    """Kernels to launch."""
    threads: Sequence[int] = (1, 1024, 1048576)
    """Threads per launch."""
    launches: Sequence[int] = (1, 10, 100)
    """Launches per step."""
    rounds: int = 60
    """Rounds, each of which times every mode. Rounded up to an even number."""
    seed: int = 0
    """Seed of the inputs and of the confidence intervals."""
    max_step_s: float = 0.2
    """A step that takes longer [s] on the device says nothing about host time and is not measured."""
    max_group_s: float = 4.0
    """Time [s] for one kernel with one number of threads and launches; fewer rounds are run where it is short."""

    @classmethod
    def quick(cls, device: str = "auto") -> LaunchBenchCfg:
        """Return a small part of the matrix."""
        return cls(
            device=device,
            kernels=("arrays-1", "arrays-4", "tiled"),
            threads=(1,),
            launches=(1, 10),
            rounds=10,
            max_group_s=2.0,
        )

    def validate(self) -> None:
        """Check all values.

        Raises:
            ConfigError: Some are not usable; the message names them all.
        """
        if problems := list(self._problems()):
            raise ConfigError.from_problems(problems)
        self.rounds += self.rounds % 2

    def _problems(self) -> Iterator[str]:
        for name in self.kernels:
            if name not in KERNEL_NAMES:
                hint = did_you_mean(name, KERNEL_NAMES)
                yield f"unknown kernel {name!r}{hint}; allowed: {', '.join(KERNEL_NAMES)}"
        for field, limit in (("threads", 2**31 - 1), ("launches", 1000)):
            values = getattr(self, field)
            if bad := [value for value in values if not 1 <= value <= limit]:
                yield f"{field} is {bad[0]}; allowed: 1 to {limit}"
        for field in ("kernels", "threads", "launches"):
            values = getattr(self, field)
            if len(set(values)) < len(values) or not values:
                yield f"{field} is {' '.join(map(str, values)) or 'empty'}; allowed: different values, at least one"
        yield from count_problems(self, "", ("rounds",))
        if self.seed < 0:
            yield f"seed is {self.seed}; allowed: at least 0"
