"""Warp says nothing that a user has to read, and everything else is passed on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import warp as wp

from treadle.cli.quiet import start_warp

SOURCES = Path(__file__).parents[2] / "src"


def test_starting_warp_writes_nothing():
    program = (
        f"import sys; sys.path.insert(0, {str(SOURCES)!r}); from treadle.cli.quiet import start_warp; start_warp()"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert (result.stdout, result.stderr) == ("", "")


def test_only_the_missing_driver_is_left_out(monkeypatch, capfd):
    def init():
        os.write(2, b"Warp CUDA warning: Could not find or load the NVIDIA CUDA driver. GPU execution will not be.\n")
        os.write(2, b"Warp CUDA error: Warp requires CUDA driver 12.0 or higher\n")

    monkeypatch.setattr(wp, "init", init)
    start_warp()
    assert capfd.readouterr().err == "Warp CUDA error: Warp requires CUDA driver 12.0 or higher\n"


def test_an_error_of_warp_keeps_what_was_written(monkeypatch, capfd):
    def init():
        os.write(2, b"one word\n")
        raise RuntimeError("Warp initialization failed")

    monkeypatch.setattr(wp, "init", init)
    with pytest.raises(RuntimeError, match="initialization failed"):
        start_warp()
    os.write(2, b"later\n")
    assert capfd.readouterr().err == "one word\nlater\n"


def test_a_place_for_kernels_that_cannot_be_made_is_one_line_with_the_variable_that_helps():
    program = f"import sys; sys.path.insert(0, {str(SOURCES)!r}); from treadle.cli import main; "
    program += "sys.exit(main(['train', 'Ant-Direct', '--num-envs', '2', '--log-dir', 'run']))"
    env = {name: value for name, value in os.environ.items() if name not in ("WARP_CACHE_PATH", "XDG_CACHE_HOME")}
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, env=env | {"HOME": "/proc/nohome"})
    assert (result.returncode, result.stderr.count("\n")) == (2, 1), result.stderr
    assert "set WARP_CACHE_PATH to a directory that can be written" in result.stderr
