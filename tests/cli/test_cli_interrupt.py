"""Ctrl-C in a process of its own."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from point_mass import TASK

from treadle.rl import checkpoint as ckpt


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_saves_a_checkpoint_and_says_how_to_go_on(start, number):
    process = start("train", TASK, "--log-dir", "run", "--max-iterations", "100000", "--agent.save-interval", "100000")
    for line in process.stdout:
        if line.startswith("iteration"):
            break
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "stopping after this step" in err
    loaded = ckpt.load(Path("run"))
    assert loaded.iteration > 0 or (Path("run") / "model_0.pt").exists()
    done = loaded.iteration + 1
    assert f"interrupted after {done} iterations" in out
    assert f"checkpoint: run/model_{loaded.iteration}.pt\n" in out
    left = 100000 - done
    assert f"resume: treadle train {TASK} --resume run/model_{loaded.iteration}.pt --max-iterations {left}\n" in out


def test_an_interruption_before_training_is_one_line(start):
    process = start("train", TASK, "--log-dir", "run", "--max-iterations", "100000")
    for line in process.stdout:
        if line.startswith("building"):
            break
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Traceback" not in err
