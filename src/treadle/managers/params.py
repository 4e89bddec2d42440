"""Numbers that may change at run time, in one device array per manager."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import warp as wp

from treadle.errors import ConfigError

__all__ = ["DeviceParams"]


class DeviceParams:
    """A growing list of numbers until the kernels are built, a persistent array from then on.

    Args:
        name: Name of the array in generated kernels.
        device: Device of the array.
    """

    def __init__(self, name: str, device: wp.DeviceLike):
        self.name = name
        self._device = device
        self._values: list[float] = []
        self._array: wp.array | None = None

    def add(self, values: Sequence[float]) -> int:
        """Reserve entries and return the index of the first.

        Raises:
            RuntimeError: The array exists already, whose storage must not move.
        """
        if self._array is not None:
            raise RuntimeError(f"{self.name} is in use by kernels and can't grow")
        start = len(self._values)
        self._values += [float(value) for value in values]
        return start

    @property
    def array(self) -> wp.array:
        """The numbers, float, shape (count,). Asking for it ends the growth."""
        if self._array is None:
            self._array = wp.array(np.array(self._values or [0.0], dtype=np.float32), dtype=float, device=self._device)
        return self._array

    def get(self, start: int, count: int) -> tuple[float, ...]:
        """Return some entries, as they were set."""
        return tuple(self._values[start : start + count])

    def set(self, start: int, values: Sequence[float]) -> bool:
        """Change entries in device memory, and return whether any was different. No graph has to be captured again.

        Raises:
            ConfigError: The entries are not reserved.
        """
        new = [float(value) for value in values]
        if start + len(new) > len(self._values):
            raise ConfigError(
                f"{self.name}: entries {start} to {start + len(new)} are set; allowed: {len(self._values)}"
            )
        old = np.array(self._values[start : start + len(new)], dtype=np.float32)
        if old.tobytes() == np.array(new, dtype=np.float32).tobytes():
            return False
        self._values[start : start + len(new)] = new
        if self._array is not None:
            self._array[start : start + len(new)].assign(np.array(new, dtype=np.float32))
        return True
