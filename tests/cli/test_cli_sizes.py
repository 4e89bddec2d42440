"""A configuration that asks for too much: one line and status 2, while a bug keeps its traceback."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import warp as wp
from point_mass import TASK, PointMassEnv

from treadle.cli import main
from treadle.rl import TreadleRunner


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (
            ["--agent.algorithm.learning-rate", "1e30"],
            "--agent.algorithm.learning-rate is 1e+30; allowed: above 0, at m",
        ),
        (
            ["--agent.num-steps-per-env", "100000000000"],
            "--agent.num-steps-per-env is 100000000000; allowed: 1 to 1000",
        ),
        (["--agent.critic.hidden-dims", "9" * 30], "; allowed: one or more widths of 1 to 65536"),
        (["--max-iterations", "9" * 30], f"--max-iterations is {'9' * 30}; allowed: 1 to 2147483647"),
        (
            ["--agent.clip-actions", "1e99"],
            "--agent.clip-actions is 1e+99; allowed: above 0, at most 1e+09, or None",
        ),
    ],
)
def test_a_number_that_is_too_large_is_said_with_its_range(fails, argv, message):
    assert message in fails("train", TASK, *argv)


def test_the_learner_that_does_not_fit_is_one_line(fails):
    # Terabytes of observations.
    argv = ["--num-envs", "100000", "--agent.num-steps-per-env", "1000000"]
    message = fails("train", TASK, *argv)
    assert message.startswith("building the learner needs more than there is: ")
    assert "you tried to allocate" in message
    assert "allowed: fewer environments (--num-envs)" in message


TOO_MUCH = [
    lambda: torch.zeros(2**62, 4),
    lambda: torch.zeros(10**13),
    lambda: torch.zeros(10**19),
    lambda: wp.zeros(2**40, dtype=float, device="cpu"),
    lambda: wp.zeros((2**31 - 1, 2**14), dtype=float, device="cpu"),
    lambda: np.zeros(10**13),
    lambda: np.zeros((2**40, 2**40)),
    lambda: (10).to_bytes(0, "big"),
]


@pytest.mark.parametrize("fail", TOO_MUCH)
def test_an_environment_that_does_not_fit_is_one_line(fails, monkeypatch, fail):
    monkeypatch.setattr(PointMassEnv, "__init__", lambda self, cfg: fail())
    message = fails("train", TASK)
    assert message.startswith("building the environment needs more than there is: ")


def test_memory_that_runs_out_while_training_is_one_line(fails, monkeypatch):
    def learn(self, *args, **kwargs):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.\nSee the documentation")

    monkeypatch.setattr(TreadleRunner, "learn", learn)
    assert "training needs more than there is: CUDA out of memory. Tried" in fails("train", TASK)


@pytest.mark.parametrize("error", [RuntimeError("a bug"), ValueError("a bug"), TypeError("a bug")])
def test_a_bug_keeps_its_traceback(monkeypatch, error):
    def fail(self, cfg):
        raise error

    monkeypatch.setattr(PointMassEnv, "__init__", fail)
    with pytest.raises(type(error), match="a bug"):
        main(["train", TASK])


def test_an_overflow_while_training_is_a_bug(monkeypatch):
    def learn(self, *args, **kwargs):
        raise OverflowError("a bug")

    monkeypatch.setattr(TreadleRunner, "learn", learn)
    with pytest.raises(OverflowError, match="a bug"):
        main(["train", TASK])
