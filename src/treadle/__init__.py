"""Treadle: vectorized robot-learning environments on NVIDIA Warp with as few kernel launches as is legal.

This module is a thin facade. Importing it loads neither Warp nor torch nor Newton.
"""

from treadle.errors import ConfigError, TreadleError
from treadle.registry import TaskSpec, list_tasks, make, register, task_spec

__all__ = ["ConfigError", "TaskSpec", "TreadleError", "__version__", "list_tasks", "make", "register", "task_spec"]

__version__ = "0.1.0"
