"""Ctrl-C, closed terminals and lost output in a process of its own."""

from __future__ import annotations

import os
import signal
import time
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


LONG = ["train", TASK, "--log-dir", "run", "--max-iterations", "100000", "--agent.save-interval", "100000"]


def wait_for_iterations(count: int) -> None:
    """Wait until a training of the directory ``run`` has logged something, without reading its output."""
    deadline = time.monotonic() + 120
    while not (Path("run") / "model_0.pt").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(0.05 * count)


def test_a_closed_terminal_saves_a_checkpoint_although_it_sends_two_signals(start):
    process = start(*LONG, "--quiet")
    wait_for_iterations(5)
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGHUP)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, "Traceback" in err) == (130, False)
    assert f"interrupted after {ckpt.load(Path('run')).iteration + 1} iterations" in out


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_an_interruption_saves_a_checkpoint_when_the_readers_of_the_output_are_gone(start, quiet):
    process = start(*LONG, *quiet)
    wait_for_iterations(0)
    process.stdout.close()
    process.stderr.close()
    wait_for_iterations(5)
    assert process.poll() is None, "the training goes on without its output"
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=120) == 130
    assert ckpt.load(Path("run")).iteration > 0


def test_a_training_whose_output_goes_to_head_ends_with_its_checkpoint(start):
    process = start("train", TASK, "--log-dir", "run", "--max-iterations", "30", "--agent.save-interval", "100")
    for line in process.stdout:
        if line.startswith("iteration"):
            break
    process.stdout.close()
    err = process.stderr.read()
    assert process.wait(timeout=120) == 0
    assert ckpt.load(Path("run")).iteration == 29
    assert err == "treadle: warning: the output cannot be written any more: Broken pipe; going on without\n"


def test_closed_streams_are_not_taken_by_files(start, tmp_path):
    """The notice of an interruption would be written into whatever file had got the descriptor of stderr."""
    script = tmp_path / "program.sh"
    script.write_text('exec "$@" >&- 2>&-\n')
    process = start(*LONG, shell=script)
    wait_for_iterations(5)
    targets = [os.readlink(f"/proc/{process.pid}/fd/{number}") for number in (1, 2)]
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=120) == 130
    assert targets == [os.devnull, os.devnull]
    assert ckpt.load(Path("run")).iteration > 0
