"""An HDF5 file of episodes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from treadle.errors import ConfigError

if TYPE_CHECKING:
    import h5py

__all__ = ["EpisodeFile"]


class EpisodeFile:
    """Writes each episode to a group ``data/demo_<n>``, and flushes it to the disk at once.

    A file that exists is continued. ``data.attrs["total"]`` counts the recorded steps.

    Args:
        path: Path of the file; folders are made.

    Raises:
        ConfigError: h5py is not installed, or the file is of another kind or open elsewhere.
    """

    def __init__(self, path: Path):
        try:
            import h5py
        except ImportError:
            raise ConfigError("recorders write HDF5 files and h5py is missing: pip install 'treadle[record]'") from None
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._file: h5py.File = h5py.File(path, "a")
        except OSError as error:
            raise ConfigError(f"recording.path is {str(path)!r}, which can't be written: {error}") from None
        self._data = self._file.require_group("data")
        self._count = len(self._data)

    def write(self, arrays: Mapping[str, np.ndarray], attributes: Mapping[str, Any]) -> None:
        """Write an episode.

        Args:
            arrays: Arrays by name; ``/`` in a name makes groups.
            attributes: Attributes of the episode, ``num_samples`` among them.
        """
        group = self._data.create_group(f"demo_{self._count}")
        for name, array in arrays.items():
            group.create_dataset(name, data=array)
        for name, value in attributes.items():
            group.attrs[name] = value
        self._data.attrs["total"] = int(self._data.attrs.get("total", 0)) + attributes["num_samples"]
        self._count += 1
        self.flush()

    def flush(self) -> None:
        """Hand everything to the disk."""
        self._file.flush()
        os.fsync(self._file.id.get_vfd_handle())

    def close(self) -> None:
        """Close the file."""
        self._file.close()
