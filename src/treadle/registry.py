"""The task registry: a stable id, one configuration, and one environment class per frontend.

Nothing here imports a task. A registration holds import paths (``"package.module:Name"``), which are resolved when a
task is made, so listing tasks costs nothing.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from treadle.errors import ConfigError, UnknownNameError

if TYPE_CHECKING:
    from treadle.envs import DirectEnv, DirectEnvCfg
    from treadle.rl import OnPolicyRunnerCfg

__all__ = ["Frontend", "TaskSpec", "list_tasks", "make", "register", "task_spec"]

Frontend = Literal["warp", "torch"]

_BUILTIN_TASKS = "treadle.tasks"


@dataclass(frozen=True, kw_only=True)
class TaskSpec:
    """What is registered for one task id. The paths have the form ``"package.module:Name"``."""

    task_id: str
    """Stable id, without a frontend in it."""
    env_cfg: str
    """Path of the :class:`treadle.envs.DirectEnvCfg` class."""
    agent_cfg: str
    """Path of the :class:`treadle.rl.OnPolicyRunnerCfg` class."""
    frontends: dict[str, str] = field(default_factory=dict)
    """Path of the environment class of each frontend, ``"warp"`` and ``"torch"``."""
    description: str = ""
    """One line for ``treadle list``."""

    def load_env_cfg(self) -> DirectEnvCfg:
        """Return a new configuration of the environment with the task's defaults."""
        return _resolve(self.env_cfg)()

    def load_agent_cfg(self) -> OnPolicyRunnerCfg:
        """Return a new configuration of the learner with the task's defaults."""
        return _resolve(self.agent_cfg)()

    def load_env_class(self, frontend: str) -> type[DirectEnv]:
        """Return the environment class of a frontend.

        Raises:
            UnknownNameError: The task has no such frontend.
        """
        if frontend not in self.frontends:
            raise UnknownNameError(f"frontend of task {self.task_id}", frontend, self.frontends)
        return _resolve(self.frontends[frontend])


_tasks: dict[str, TaskSpec] = {}


def register(spec: TaskSpec) -> None:
    """Add a task. Registering the same specification twice is allowed; another one under the same id is not.

    Raises:
        ConfigError: The id is taken, or the specification names no frontend.
    """
    # Treadle's own tasks come first, whoever registers first. They pass here themselves while that module is imported.
    importlib.import_module(_BUILTIN_TASKS)
    if not spec.frontends:
        raise ConfigError(f"task {spec.task_id!r}: frontends is empty; allowed: 'warp', 'torch' or both")
    if _tasks.get(spec.task_id, spec) != spec:
        raise ConfigError(f"task {spec.task_id!r} is registered already, by {_tasks[spec.task_id].env_cfg}")
    _tasks[spec.task_id] = spec


def list_tasks() -> list[str]:
    """Return the ids of all registered tasks, sorted."""
    return sorted(_all_tasks())


def task_spec(task_id: str) -> TaskSpec:
    """Return what is registered under an id.

    Raises:
        UnknownNameError: There is no such task; the message suggests the nearest ids.
    """
    tasks = _all_tasks()
    if task_id not in tasks:
        raise UnknownNameError("task", task_id, tasks)
    return tasks[task_id]


def make(
    task_id: str,
    *,
    cfg: DirectEnvCfg | None = None,
    frontend: Frontend = "warp",
    num_envs: int | None = None,
    device: str | None = None,
    seed: int | None = None,
) -> DirectEnv:
    """Make the environment of a task.

    Args:
        task_id: One of :func:`list_tasks`.
        cfg: Configuration to use instead of the task's own. It is not modified.
        frontend: ``"warp"`` computes the task in fused Warp kernels, ``"torch"`` in plain torch code.
        num_envs: Overrides ``cfg.scene.num_envs``.
        device: Overrides ``cfg.sim.device``: ``"cpu"``, ``"cuda"`` or ``"cuda:N"``.
        seed: Overrides ``cfg.seed``.

    Raises:
        ConfigError: The task, the frontend or a configuration value is not allowed.
    """
    import copy

    spec = task_spec(task_id)
    env_class = spec.load_env_class(frontend)
    cfg = spec.load_env_cfg() if cfg is None else copy.deepcopy(cfg)
    if num_envs is not None:
        cfg.scene.num_envs = num_envs
    if device is not None:
        cfg.sim.device = device
    if seed is not None:
        cfg.seed = seed
    return env_class(cfg)


def _all_tasks() -> dict[str, TaskSpec]:
    importlib.import_module(_BUILTIN_TASKS)
    return _tasks


def _resolve(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)
