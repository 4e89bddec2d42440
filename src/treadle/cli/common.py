"""What ``treadle train`` and ``treadle play`` share."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from treadle.cli.sizes import sizes_as_errors
from treadle.errors import ConfigError

if TYPE_CHECKING:
    from treadle.cli.options import PlayOptions, TrainOptions
    from treadle.envs import DirectEnv, DirectEnvCfg
    from treadle.registry import TaskSpec
    from treadle.rl.checkpoint import Checkpoint

__all__ = ["apply_common_options", "open_env", "resolve_frontend", "stored_cfg"]

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


def apply_common_options(options: TrainOptions | PlayOptions, cfg: DirectEnvCfg) -> dict[str, str]:
    """Write the short options into the environment's configuration.

    Returns:
        The short options that were given, by the path of their field.
    """
    used = {}
    for option, path, owner, name in (
        ("num_envs", "env.scene.num_envs", cfg.scene, "num_envs"),
        ("device", "env.sim.device", cfg.sim, "device"),
        ("seed", "env.seed", cfg, "seed"),
        ("launch_mode", "env.launch.mode", cfg.launch, "mode"),
        ("launch_contract", "env.launch.contract", cfg.launch, "contract"),
    ):
        if (value := getattr(options, option)) is not None:
            setattr(owner, name, value)
            used[path] = f"--{option.replace('_', '-')}"
    return used


def resolve_frontend(options: TrainOptions | PlayOptions, checkpoint: Checkpoint | None) -> str:
    """Return the frontend that was asked for, else the checkpoint's, else ``"warp"``."""
    return options.frontend or (checkpoint.frontend if checkpoint is not None else "warp")


@contextlib.contextmanager
def open_env(spec: TaskSpec, cfg: DirectEnvCfg, frontend: str) -> Iterator[DirectEnv]:
    """Make an environment and close it at the end."""
    import warp as wp

    wp.config.log_level = wp.LOG_WARNING
    env_class = spec.load_env_class(frontend)
    with sizes_as_errors("building the environment"):
        env = env_class(cfg)
    try:
        yield env
    finally:
        env.close()
