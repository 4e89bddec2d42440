"""The task registry: a stable id, one configuration, and one environment class per frontend.

Nothing here imports a task but what others register: modules under the entry point ``treadle.tasks`` are imported when
somebody asks for tasks. A registration holds import paths (``"package.module:Name"``), which are resolved when a
task is made, so listing tasks costs nothing.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from treadle.errors import ConfigError, TreadleError, UnknownNameError, missing_extra

if TYPE_CHECKING:
    from treadle.envs import EnvCfg, VectorEnv
    from treadle.rl import OnPolicyRunnerCfg

__all__ = ["Frontend", "TaskSpec", "list_tasks", "make", "register", "task_spec"]

Frontend = Literal["warp", "torch"]

_BUILTIN_TASKS = "treadle.tasks"
_PLUGINS = "treadle.tasks"
"""Entry-point group of modules that register tasks when they are imported."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class TaskSpec:
    """What is registered for one task id. The paths have the form ``"package.module:Name"``."""

    task_id: str
    """Stable id, without a frontend in it."""
    env_cfg: str
    """Path of the :class:`treadle.envs.EnvCfg` class."""
    agent_cfg: str
    """Path of the :class:`treadle.rl.OnPolicyRunnerCfg` class."""
    frontends: dict[str, str] = field(default_factory=dict)
    """Path of the environment class of each frontend, ``"warp"`` and ``"torch"``."""
    description: str = ""
    """One line for ``treadle list``."""

    def load_env_cfg(self) -> EnvCfg:
        """Return a new configuration of the environment with the task's defaults."""
        return _resolve(self.env_cfg)()

    def load_agent_cfg(self) -> OnPolicyRunnerCfg:
        """Return a new configuration of the learner with the task's defaults."""
        return _resolve(self.agent_cfg)()

    def load_env_class(self, frontend: str) -> type[VectorEnv]:
        """Return the environment class of a frontend.

        Raises:
            UnknownNameError: The task has no such frontend.
        """
        if frontend not in self.frontends:
            raise UnknownNameError(f"frontend of task {self.task_id}", frontend, self.frontends)
        return _resolve(self.frontends[frontend])


_tasks: dict[str, TaskSpec] = {}
_plugins_loaded = False


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
    cfg: EnvCfg | None = None,
    frontend: Frontend = "warp",
    num_envs: int | None = None,
    device: str | None = None,
    seed: int | None = None,
) -> VectorEnv:
    """Make the environment of a task.

    Args:
        task_id: One of :func:`list_tasks`.
        cfg: Configuration to use instead of the task's own, of the same class or one derived from it. It is not
            modified.
        frontend: ``"warp"`` computes the task in fused Warp kernels, ``"torch"`` in plain torch code.
        num_envs: Overrides ``cfg.scene.num_envs``.
        device: Overrides ``cfg.sim.device``: ``"cpu"``, ``"cuda"`` or ``"cuda:N"``.
        seed: Overrides ``cfg.seed``.

    Raises:
        ConfigError: The task, the frontend or a configuration value is not allowed, or a package that the environment
            needs is not installed.
    """
    spec = task_spec(task_id)
    with _extras_named():
        env_class = spec.load_env_class(frontend)
        return env_class(_make_cfg(spec, cfg, num_envs, device, seed))


def _make_cfg(spec: TaskSpec, cfg: EnvCfg | None, num_envs: int | None, device: str | None, seed: int | None) -> EnvCfg:
    import copy

    default = spec.load_env_cfg()
    if cfg is not None and not isinstance(cfg, type(default)):
        allowed = f"{type(default).__name__}, or a class derived from it"
        raise ConfigError(f"cfg is a {type(cfg).__name__}; allowed for task {spec.task_id}: {allowed}")
    cfg = default if cfg is None else copy.deepcopy(cfg)
    if num_envs is not None:
        cfg.scene.num_envs = num_envs
    if device is not None:
        cfg.sim.device = device
    if seed is not None:
        cfg.seed = seed
    return cfg


def _all_tasks() -> dict[str, TaskSpec]:
    importlib.import_module(_BUILTIN_TASKS)
    _load_plugins()
    return _tasks


def _load_plugins() -> None:
    """Import the modules of other distributions, once. A broken one is said, and the others work."""
    global _plugins_loaded
    if _plugins_loaded:
        return
    _plugins_loaded = True  # before the imports, which may ask for tasks themselves
    from importlib.metadata import entry_points

    for point in entry_points(group=_PLUGINS):
        try:
            point.load()
        except (Exception, SystemExit) as error:
            source = f" of {point.dist.name}" if point.dist is not None else ""
            reason = str(error) if isinstance(error, TreadleError) else f"{type(error).__name__}: {error}"
            _log.warning("plug-in %r%s (%s) cannot be loaded: %s", point.name, source, point.value, reason)
            _log.debug("plug-in %r", point.name, exc_info=True)


@contextlib.contextmanager
def _extras_named() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if (missing := missing_extra(error, "the environment")) is None:
            raise
        raise missing from error


def _resolve(path: str) -> Any:
    """Return what a path ``"package.module:Name"`` means.

    Raises:
        ConfigError: There is no such module or name. A module that is missing inside of it is another error.
    """
    module, _, name = path.partition(":")
    if not (module and name):
        raise ConfigError(f"a registered path is {path!r}; allowed: 'package.module:Name'")
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise ConfigError(f"a registered path is {path!r}, and there is no module {error.name!r}") from error
    try:
        return getattr(found, name)
    except AttributeError:
        raise ConfigError(f"a registered path is {path!r}, and module {module!r} has no {name!r}") from None
