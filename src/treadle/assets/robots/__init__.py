"""Treadle's own robot models: MJCF files of primitive shapes, written from published figures.

Each file cites the sources of its figures at its top. A task may point at any other MJCF file instead.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from treadle.errors import UnknownNameError

__all__ = ["list_robots", "robot_path"]


def list_robots() -> list[str]:
    """Return the names of the packaged robot models, sorted."""
    return sorted(path.stem for path in _folder().glob("*.xml"))


def robot_path(name: str) -> Path:
    """Return the path of a packaged robot model.

    Args:
        name: Name of the robot, one of :func:`list_robots`, such as ``"ant"``.

    Returns:
        Path of the MJCF file.

    Raises:
        UnknownNameError: If there is no such robot; the message lists those that exist. It is a ``ConfigError``.
    """
    available = list_robots()
    if name not in available:
        raise UnknownNameError("robot", name, available)
    return _folder() / f"{name}.xml"


def _folder() -> Path:
    """Return the folder of the models; the simulators open files by path, so it has to be a real one."""
    return Path(str(resources.files(__name__)))
