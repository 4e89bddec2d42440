"""Fixtures of the command line's tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from treadle.cli import main

HELPERS = Path(__file__).parents[1] / "rl"
SOURCES = Path(__file__).parents[2] / "src"
sys.path.insert(0, str(HELPERS))

import point_mass  # noqa: E402

_PROGRAM = f"""
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background of a script inherits SIG_IGN
signal.signal(signal.SIGHUP, signal.SIG_DFL)
sys.path[:0] = [{str(SOURCES)!r}, {str(HELPERS)!r}]
import point_mass
point_mass.register_tasks()
from treadle.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(autouse=True)
def _in_empty_directory(tmp_path, monkeypatch):
    """Runs are written below the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TREADLE_LAUNCH_MODE", raising=False)
    monkeypatch.delenv("TREADLE_LAUNCH_CONTRACT", raising=False)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(autouse=True)
def _test_tasks(monkeypatch):
    """Register the tests' tasks for the time of a test."""
    from treadle import registry

    monkeypatch.setattr(registry, "_tasks", dict(registry._all_tasks()))
    point_mass.register_tasks()


@pytest.fixture
def fails(capsys):
    """Return a function that runs a command, expects status 2 and one line on stderr, and returns its message."""

    def run(*argv: str) -> str:
        assert main(list(argv)) == 2
        err = capsys.readouterr().err
        prefix = "treadle: error: "
        assert err.startswith(prefix)
        assert err.endswith("\n")
        assert err.count("\n") == 1
        return err[len(prefix) : -1]

    return run


@pytest.fixture
def start():
    """Return a function that starts a command in a process of its own."""
    processes = []

    def run(*argv: str, shell: Path | None = None, **env: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-u", "-W", "error", "-c", _PROGRAM, *argv]
        if shell is not None:
            command = ["sh", str(shell), *command]
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"} | env,
        )
        processes.append(process)
        return process

    yield run
    for process in processes:
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            stream.close()
