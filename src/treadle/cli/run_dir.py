"""The directory of a training run: made, held against other trainings, and taken away again if it stays empty."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from treadle.cli.checks import runs_dir
from treadle.errors import ConfigError

__all__ = ["open_run_dir"]

_LOCK = ".training"


@contextlib.contextmanager
def open_run_dir(task: str, log_dir: str | None, run_name: str | None, completed: int | None) -> Iterator[Path]:
    """Hold a run directory that can be written and in which no checkpoint would be overwritten.

    A directory that this made and that is empty at the end is removed.

    Args:
        task: Id of the task.
        log_dir: The directory; a new one below :func:`~treadle.cli.checks.runs_dir` when ``None``.
        run_name: Appended to the new directory's name.
        completed: Iterations completed where the run goes on, ``None`` for a new run.

    Raises:
        ConfigError: The directory cannot be used, or another training uses it.
    """
    if run_name is not None and not re.fullmatch(r"[\w.+-]+", run_name):
        raise ConfigError(f"--run-name is {run_name!r}; allowed: letters, digits and . + - _")
    if log_dir is not None and not log_dir.strip():
        raise ConfigError(f"--log-dir is {log_dir!r}; allowed: a directory")
    wanted = runs_dir(task) if log_dir is None else Path(log_dir)
    made = None
    try:
        try:
            path, is_new = _make_new(wanted, run_name) if log_dir is None else _make(wanted)
            made = path if is_new else None
            with tempfile.TemporaryFile(dir=path):
                pass
        except OSError as error:
            raise ConfigError(
                f"the run directory {wanted} cannot be written: {error.strerror}; choose one with --log-dir"
            ) from error
        with _held(path):
            _refuse_overwriting(path, completed)
            yield path
    finally:
        if made is not None:
            with contextlib.suppress(OSError):  # it holds something, or is gone
                made.rmdir()


def _make(path: Path) -> tuple[Path, bool]:
    """Make a directory unless it is there; return it, and whether it was made."""
    try:
        path.mkdir(parents=True)
    except FileExistsError:
        path.mkdir(exist_ok=True)  # an error again if it is no directory
        return path, False
    return path, True


def _make_new(parent: Path, run_name: str | None) -> tuple[Path, bool]:
    """Make a directory that nobody else made."""
    parent.mkdir(parents=True, exist_ok=True)
    name = datetime.now().strftime("%Y-%m-%d_%H-%M-%S") + (f"_{run_name}" if run_name else "")
    path, count = parent / name, 1
    while True:
        try:
            path.mkdir()
            return path, True
        except FileExistsError:
            path, count = parent / f"{name}_{count}", count + 1


@contextlib.contextmanager
def _held(path: Path) -> Iterator[None]:
    """Hold a directory's lock file, which goes away at the end; the system releases the lock of a killed process."""
    file = path / _LOCK
    with _opened_lock(file) as descriptor:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            busy = os.fstat(descriptor).st_nlink == 0  # the other one ended, and took the file away, just now
        except BlockingIOError:
            busy = True
        except OSError:  # a file system without locks
            busy = False
        if busy:
            raise ConfigError(f"another training writes to {path}; choose another directory with --log-dir")
        try:
            yield
        finally:
            file.unlink(missing_ok=True)


@contextlib.contextmanager
def _opened_lock(file: Path) -> Iterator[int]:
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _refuse_overwriting(path: Path, completed: int | None) -> None:
    from treadle.rl.checkpoint import list_checkpoints

    found = list_checkpoints(path)
    if not found or (completed is not None and max(found) < completed):
        return
    if completed is None:
        raise ConfigError(
            f"--log-dir {path} holds checkpoints already; go on with --resume, or choose another directory"
        )
    raise ConfigError(
        f"--log-dir {path} holds checkpoints of more than {completed} iterations, which would be overwritten; "
        "choose another directory"
    )
