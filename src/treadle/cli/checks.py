"""Checks that end a command with one line before anything expensive is built."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

from treadle.cli.quiet import start_warp
from treadle.devices import resolve_device
from treadle.envs import DirectEnvCfg
from treadle.errors import ConfigError
from treadle.registry import TaskSpec

__all__ = [
    "as_options",
    "check_frontend",
    "env_problems",
    "launch_problems",
    "newest_run",
    "prepare_run_dir",
    "runs_dir",
]


def check_frontend(spec: TaskSpec, frontend: str) -> Iterator[str]:
    """Yield one sentence if a task has no such frontend."""
    if frontend not in spec.frontends:
        yield f"frontend is {frontend!r}; allowed for task {spec.task_id}: {', '.join(sorted(spec.frontends))}"


def as_options(problems: Iterable[str], shortcuts: dict[str, str]) -> list[str]:
    """Name options instead of fields at the front of each problem: ``env.sim.dt is 0`` becomes ``--env.sim.dt is 0``.

    Args:
        problems: Sentences that start with a field's path.
        shortcuts: The short option that was used for a field, by the field's path.
    """
    named = []
    for problem in problems:
        path, space, rest = problem.partition(" ")
        named.append(shortcuts.get(path, f"--{path.replace('_', '-')}") + space + rest)
    return named


def env_problems(cfg: DirectEnvCfg) -> Iterator[str]:
    """Yield one sentence for each value of an environment's configuration that is not allowed."""
    yield from (f"env.{problem}" for problem in cfg.problems())
    if cfg.sim.device in ("auto", "cpu"):
        return  # without starting Warp
    start_warp()
    try:
        resolve_device(cfg.sim.device)
    except ConfigError as error:
        yield f"env.sim.{error}"


def launch_problems(cfg: DirectEnvCfg) -> Iterator[str]:
    """Yield one sentence for each unknown name of a launch mode or contract; environment variables can hold one."""
    from treadle.launch import resolve_contract, resolve_mode

    for resolve, value in ((resolve_mode, cfg.launch.mode), (resolve_contract, cfg.launch.contract)):
        try:
            resolve(value)
        except ConfigError as error:
            yield str(error)


def runs_dir(task: str) -> Path:
    """Return the directory that holds a task's runs unless ``--log-dir`` says otherwise."""
    return Path("logs", "rsl_rl", task)


def newest_run(task: str) -> Path | None:
    """Return the task's newest run directory that has a checkpoint. Directory names start with their date."""
    from treadle.rl.checkpoint import list_checkpoints

    runs = sorted((path for path in runs_dir(task).glob("*") if path.is_dir()), reverse=True)
    return next((path for path in runs if list_checkpoints(path)), None)


def prepare_run_dir(task: str, log_dir: str | None, run_name: str | None, resumed_iteration: int | None) -> Path:
    """Create the run directory and make sure that it can be written and that no checkpoint in it would be overwritten.

    Args:
        task: Id of the task.
        log_dir: The directory; a new one below :func:`runs_dir` when ``None``.
        run_name: Appended to the new directory's name.
        resumed_iteration: Iteration that the run goes on from, ``None`` for a new run.

    Raises:
        ConfigError: The directory cannot be used.
    """
    if run_name is not None and not re.fullmatch(r"[\w.+-]+", run_name):
        raise ConfigError(f"--run-name is {run_name!r}; allowed: letters, digits and . + - _")
    path = Path(log_dir) if log_dir is not None else _new_run_dir(runs_dir(task), run_name)
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise ConfigError(
            f"the run directory {path} cannot be written: {error.strerror}; choose one with --log-dir"
        ) from error
    _refuse_overwriting(path, resumed_iteration)
    return path


def _refuse_overwriting(path: Path, resumed_iteration: int | None) -> None:
    from treadle.rl.checkpoint import list_checkpoints

    found = list_checkpoints(path)
    if not found or (resumed_iteration is not None and max(found) <= resumed_iteration):
        return
    if resumed_iteration is None:
        raise ConfigError(
            f"--log-dir {path} holds checkpoints already; go on with --resume, or choose another directory"
        )
    raise ConfigError(
        f"--log-dir {path} holds later checkpoints than iteration {resumed_iteration}, which would be overwritten; "
        "choose another directory"
    )


def _new_run_dir(parent: Path, run_name: str | None) -> Path:
    name = datetime.now().strftime("%Y-%m-%d_%H-%M-%S") + (f"_{run_name}" if run_name else "")
    path, count = parent / name, 1
    while path.exists():
        path, count = parent / f"{name}_{count}", count + 1
    return path
