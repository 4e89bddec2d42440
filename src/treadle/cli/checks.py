"""Checks that end a command with one line before anything expensive is built."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from treadle.cli.quiet import start_warp
from treadle.devices import resolve_device
from treadle.envs import EnvCfg, ManagerBasedRLEnvCfg
from treadle.errors import ConfigError
from treadle.registry import TaskSpec

__all__ = [
    "as_options",
    "check_frontend",
    "check_terms",
    "env_problems",
    "launch_problems",
    "newest_run",
    "runs_dir",
]


def check_frontend(spec: TaskSpec, frontend: str) -> Iterator[str]:
    """Yield one sentence if a task has no such frontend."""
    if frontend not in spec.frontends:
        yield f"frontend is {frontend!r}; allowed for task {spec.task_id}: {', '.join(sorted(spec.frontends))}"


def check_terms(cfg: EnvCfg, frontend: str) -> None:
    """Refuse terms that the Warp frontend can't compute, before anything is built.

    Raises:
        MissingTwinsError: There are such terms, and torch terms are not allowed.
    """
    if frontend != "warp" or not isinstance(cfg, ManagerBasedRLEnvCfg) or cfg.allow_torch_terms:
        return
    from treadle.managers import MissingTwinsError, missing_twins

    if missing := missing_twins(cfg):
        raise MissingTwinsError.from_problems(missing.values())


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


def env_problems(cfg: EnvCfg) -> Iterator[str]:
    """Yield one sentence for each value of an environment's configuration that is not allowed."""
    yield from (f"env.{problem}" for problem in cfg.problems())
    if cfg.sim.device in ("auto", "cpu"):
        return  # without starting Warp
    start_warp()
    try:
        resolve_device(cfg.sim.device)
    except ConfigError as error:
        yield f"env.sim.{error}"


def launch_problems(cfg: EnvCfg) -> Iterator[str]:
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
