"""Checkpoints: one file with everything that a policy needs to be trained on or played.

A file holds tensors and plain types only and is read with ``torch.load(weights_only=True)``, so loading one runs no
code. It is written beside its final name and moved there when it is complete, so a crash never damages an older one.
"""

from __future__ import annotations

import io
import math
import os
import pickle
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import torch

from treadle.errors import TreadleError

__all__ = [
    "FORMAT_VERSION",
    "Checkpoint",
    "CheckpointError",
    "check_dimensions",
    "find_checkpoint",
    "list_checkpoints",
    "load",
    "save",
]

FORMAT_VERSION = 1
_FORMAT = "treadle-checkpoint"
_FILE_NAME = re.compile(r"model_(\d+)\.pt")


class CheckpointError(TreadleError):
    """A checkpoint cannot be found, read, written or used here."""


@dataclass(kw_only=True)
class Checkpoint:
    """The contents of a checkpoint file."""

    treadle_version: str
    """Version that wrote the file."""
    task: str
    """Id of the task that the policy was trained on."""
    frontend: str
    """Frontend that it was trained with."""
    iteration: int
    """Number of the iteration that was completed last; the first is 0, and before it this is -1."""
    env_cfg: str
    """Configuration of the environment, JSON text."""
    agent_cfg: str
    """Configuration of the learner, JSON text."""
    num_observations: dict[str, int]
    """Width of each group of observations."""
    num_actions: int
    """Number of actions."""
    algorithm: dict[str, Any]
    """State of the learner: networks, observation statistics, optimizer."""
    total_timesteps: int
    """Environment steps so far, over all environments."""
    total_time: float
    """Training time so far [s]."""
    seed: int
    """Seed of the environment."""
    rng: dict[str, torch.Tensor] = field(default_factory=dict)
    """States of torch's random number generators, ``"cpu"`` and, of a run on a GPU, ``"cuda"``; and ``"env"``, that of
    each environment, int32, shape (num_envs,), which older files do not have."""


def save(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint. The file appears under its name when it is complete, and an older one is kept until then.

    Raises:
        CheckpointError: The file cannot be written.
    """
    data = {f.name: getattr(checkpoint, f.name) for f in fields(checkpoint)}
    buffer = io.BytesIO()
    torch.save({"format": _FORMAT, "format_version": FORMAT_VERSION} | data, buffer)
    # The name does not match a checkpoint's, so a file left by a killed process is never taken for one.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)  # someone may have removed it while the run went on
        try:
            with open(temporary, "wb") as file:
                file.write(buffer.getbuffer())
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        _sync_directory(path.parent)
    except OSError as error:
        raise CheckpointError(f"cannot write checkpoint {path}: {error.strerror or error}") from error


def load(path: Path, *, task: str | None = None) -> Checkpoint:
    """Read a checkpoint onto the CPU.

    Args:
        path: A checkpoint file, or a run directory, whose newest checkpoint is taken.
        task: The task that it must belong to; any when ``None``.

    Raises:
        CheckpointError: There is no such file, or it is not a complete checkpoint of this version and task.
    """
    path = find_checkpoint(path)
    data = _read(path)
    version = data.pop("format_version", None)
    if version != FORMAT_VERSION:
        raise CheckpointError(
            f"checkpoint {path} has format version {version}, written by treadle {data.get('treadle_version', '?')}; "
            f"this version reads format {FORMAT_VERSION}"
        )
    names = {f.name for f in fields(Checkpoint)}
    if missing := names - data.keys():
        raise CheckpointError(f"{path} is an incomplete checkpoint: {', '.join(sorted(missing))} missing")
    checkpoint = Checkpoint(**{name: data[name] for name in names})
    if problems := list(_field_problems(checkpoint)):
        raise CheckpointError(f"checkpoint {path} is not usable: {'; '.join(problems)}")
    if task is not None and checkpoint.task != task:
        raise CheckpointError(f"checkpoint {path} belongs to task {checkpoint.task!r}, not to {task!r}")
    return checkpoint


def check_dimensions(path: Path, checkpoint: Checkpoint, num_observations: dict[str, int], num_actions: int) -> None:
    """Check that a checkpoint's policy can act in an environment.

    Args:
        path: The checkpoint's file, for the message.
        checkpoint: Its contents.
        num_observations: Width of each group of observations of the environment.
        num_actions: Number of actions of the environment.

    Raises:
        CheckpointError: The widths differ.
    """
    if (checkpoint.num_observations, checkpoint.num_actions) != (num_observations, num_actions):
        raise CheckpointError(
            f"checkpoint {path} has {_dimensions(checkpoint.num_observations, checkpoint.num_actions)}, "
            f"the environment has {_dimensions(num_observations, num_actions)}"
        )


def list_checkpoints(run_dir: Path) -> dict[int, Path]:
    """Return the checkpoints in a directory by iteration, in ascending order."""
    matches = ((_FILE_NAME.fullmatch(path.name), path) for path in run_dir.glob("model_*.pt"))
    return dict(sorted((int(match[1]), path) for match, path in matches if match))


def find_checkpoint(path: Path) -> Path:
    """Return the checkpoint file that a path means: itself, or the newest one, by iteration, of a run directory.

    Raises:
        CheckpointError: There is none. The message lists those near by.
    """
    if path.is_file():
        return path
    if path.is_dir():
        if found := list_checkpoints(path):
            return found[max(found)]
        raise CheckpointError(f"no checkpoint in directory {path}: looked for model_<iteration>.pt{_near(path)}")
    raise CheckpointError(f"no checkpoint {path}: no such file or directory{_near(path.parent)}")


def _field_problems(checkpoint: Checkpoint) -> Iterator[str]:
    """Yield one sentence for each field that holds something that Treadle never writes."""
    for name in ("treadle_version", "task", "frontend", "env_cfg", "agent_cfg"):
        if not isinstance(value := getattr(checkpoint, name), str):
            yield f"{name} is {value!r:.40}; allowed: text"
    for name, least in (("iteration", -1), ("num_actions", 1), ("total_timesteps", 0), ("seed", 0)):
        if not _is_count(value := getattr(checkpoint, name), least):
            yield f"{name} is {value!r:.40}; allowed: a whole number from {least} on"
    seconds = checkpoint.total_time
    if type(seconds) not in (int, float) or not math.isfinite(seconds) or seconds < 0:
        yield f"total_time is {seconds!r:.40}; allowed: a number of seconds"
    widths = checkpoint.num_observations
    if not isinstance(widths, dict) or not all(isinstance(k, str) and _is_count(n, 0) for k, n in widths.items()):
        yield f"num_observations is {widths!r:.40}; allowed: the width of each group"
    if not isinstance(checkpoint.algorithm, dict):
        yield f"algorithm is {checkpoint.algorithm!r:.40}; allowed: the state of the learner"
    yield from _rng_problems(checkpoint.rng)


def _rng_problems(states: Any) -> Iterator[str]:
    if not isinstance(states, dict) or "cpu" not in states:
        yield "rng is without the state of torch's generator 'cpu'"
        return
    like = {"cpu": torch.get_rng_state(), "cuda": torch.zeros(16, dtype=torch.uint8), "env": None}
    for name, state in states.items():
        usual = like.get(name)
        fits = isinstance(state, torch.Tensor) and (
            (state.dtype, state.ndim) == (torch.int32, 1)
            if usual is None
            else (state.dtype, state.shape) == (usual.dtype, usual.shape)
        )
        if not fits:
            yield f"rng[{name!r}] is not the state of a generator"


def _is_count(value: Any, least: int) -> bool:
    return type(value) is int and value >= least


def _dimensions(num_observations: dict[str, int], num_actions: int) -> str:
    groups = ", ".join(f"{name}: {width}" for name, width in sorted(num_observations.items()))
    return f"observations ({groups}) and {num_actions} actions"


def _near(directory: Path) -> str:
    """Name up to five of the checkpoints in a directory, or else of the newest run below it."""
    if not (found := list_checkpoints(directory)):
        runs = sorted((p.parent for p in directory.glob("*/model_*.pt") if _FILE_NAME.fullmatch(p.name)), reverse=True)
        found = list_checkpoints(runs[0]) if runs else {}
    if not found:
        return ""
    newest = [str(path) for path in found.values()][-5:]
    return f"; near by: {', '.join(newest)}"


def _read(path: Path) -> dict[str, Any]:
    try:
        content = io.BytesIO(path.read_bytes())
    except OSError as error:
        raise CheckpointError(f"cannot read checkpoint {path}: {error.strerror or error}") from error
    try:
        data = torch.load(content, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises errors of many kinds for files that it did not write
        if isinstance(error, pickle.UnpicklingError) and zipfile.is_zipfile(path):
            raise CheckpointError(
                f"{path} is not a treadle checkpoint: it holds Python objects, and loading those could run code"
            ) from error
        raise CheckpointError(f"{path} is not a checkpoint, or it is damaged") from error
    if not isinstance(data, dict) or data.get("format") != _FORMAT:
        raise CheckpointError(f"{path} is not a treadle checkpoint, although torch can read it")
    return data


def _sync_directory(directory: Path) -> None:
    """Make a rename in a directory durable, where the system can do that."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
