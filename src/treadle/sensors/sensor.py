"""What an environment expects of a sensor."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Sensor"]


class Sensor(Protocol):
    """A measurement in persistent arrays."""

    def update(self) -> None:
        """Refresh the arrays from the simulation, after each environment step and after each reset. Capturable."""
