"""What ``treadle train``, ``treadle play`` and ``treadle explain`` share."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from treadle.cli.parsing import peek
from treadle.cli.quiet import start_warp
from treadle.cli.sizes import sizes_as_errors
from treadle.errors import ConfigError

if TYPE_CHECKING:
    from treadle.cli.options import ExplainOptions, PlayOptions, TrainOptions
    from treadle.envs import EnvCfg, VectorEnv
    from treadle.registry import TaskSpec
    from treadle.rl.checkpoint import Checkpoint

__all__ = ["apply_short_options", "open_env", "resolve_frontend", "stored_cfg"]

T = TypeVar("T")


def stored_cfg(path: Path, text: str, default: T) -> T:
    """Return a configuration that a checkpoint stores, over a task's defaults.

    Raises:
        CheckpointError: It has fields or values that this version does not have.
    """
    from treadle.rl.checkpoint import CheckpointError
    from treadle.rl.plain import from_json

    try:
        return from_json(text, default)
    except ConfigError as error:
        raise CheckpointError(
            f"checkpoint {path} stores a configuration that does not fit this version: {error}"
        ) from error


_SHORT = (
    ("num_envs", "env.scene.num_envs"),
    ("device", "env.sim.device"),
    ("seed", "env.seed"),
    ("seed", "agent.seed"),
    ("launch_mode", "env.launch.mode"),
    ("launch_contract", "env.launch.contract"),
    ("max_iterations", "agent.max_iterations"),
    ("allow_torch_terms", "env.allow_torch_terms"),
)
"""Short options and the fields that they stand for."""


def apply_short_options(
    options: TrainOptions | PlayOptions | ExplainOptions, roots: dict[str, Any], argv: list[str]
) -> tuple[dict[str, str], list[str]]:
    """Write the short options into the configurations.

    Args:
        options: The parsed options.
        roots: The configurations by the first part of their fields' paths.
        argv: The options as they were given.

    Returns:
        The short options that were given, by the path of their field; and one sentence for each field that was given
        another value by its long option too, or that the configuration does not have.
    """
    used, conflicts = {}, []
    for option, path in _SHORT:
        root, *inner, name = path.split(".")
        value = getattr(options, option, None)
        if value is None or value is False or root not in roots:
            continue
        short, long = f"--{option.replace('_', '-')}", f"--{path.replace('_', '-')}"
        owner = functools.reduce(getattr, inner, roots[root])
        if not hasattr(owner, name):
            conflicts.append(f"{short} is for tasks that are made of terms; {type(owner).__name__} has no {name}")
            continue
        if peek(argv, long) is not None and (given := getattr(owner, name)) != value:
            conflicts.append(f"{short} is {value} and {long} is {given}; allowed: one of them, or equal values")
        setattr(owner, name, value)
        used[path] = short
    return used, conflicts


def resolve_frontend(options: TrainOptions | PlayOptions | ExplainOptions, checkpoint: Checkpoint | None) -> str:
    """Return the frontend that was asked for, else the checkpoint's, else ``"warp"``."""
    return options.frontend or (checkpoint.frontend if checkpoint is not None else "warp")


@contextlib.contextmanager
def open_env(spec: TaskSpec, cfg: EnvCfg, frontend: str) -> Iterator[VectorEnv]:
    """Make an environment and close it at the end."""
    start_warp()
    env_class = spec.load_env_class(frontend)
    with sizes_as_errors("building the environment"):
        env = env_class(cfg)
    try:
        yield env
    finally:
        env.close()
