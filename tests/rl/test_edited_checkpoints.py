"""Checkpoint files of the right format whose contents nobody can use."""

from __future__ import annotations

import shutil

import pytest
import torch

from treadle.rl import CheckpointError, Policy
from treadle.rl import checkpoint as ckpt


def edit(path, **values) -> None:
    torch.save(torch.load(path, weights_only=True) | values, path)


@pytest.fixture
def trained(make_runner, tmp_path):
    make_runner().learn(1)
    return tmp_path / "model_0.pt"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("task", 5),
        ("iteration", "x"),
        ("iteration", True),
        ("algorithm", None),
        ("total_time", float("nan")),
        ("total_timesteps", -1),
        ("env_cfg", 5),
        ("agent_cfg", None),
        ("num_observations", [60]),
        ("num_observations", {"policy": "4"}),
        ("num_actions", 2.0),
        ("seed", None),
        ("rng", {}),
        ("rng", None),
        ("rng", {"cpu": torch.zeros(3, dtype=torch.uint8)}),
        ("rng", {"cpu": torch.get_rng_state(), "env": torch.zeros(2, 2, dtype=torch.int32)}),
        ("rng", {"cpu": torch.get_rng_state(), "env": 3}),
    ],
)
def test_a_field_that_holds_something_else_is_named(trained, name, value):
    edit(trained, **{name: value})
    with pytest.raises(CheckpointError, match=rf"checkpoint .*model_0\.pt is not usable: {name}"):
        ckpt.load(trained)


@pytest.mark.parametrize("algorithm", [{}, {"actor_state_dict": 5}, {"actor_state_dict": {"mlp.0.weight": "x"}}])
def test_a_learner_whose_parts_are_others_is_refused(make_runner, trained, algorithm):
    edit(trained, algorithm=algorithm)
    with pytest.raises(CheckpointError):
        Policy(ckpt.load(trained))
    with pytest.raises(CheckpointError):
        make_runner(run_dir=None).load(str(trained))


def test_weights_that_are_not_finite_are_neither_played_nor_trained_on(make_runner, trained):
    algorithm = ckpt.load(trained).algorithm
    algorithm["actor_state_dict"]["mlp.2.bias"][1] = float("nan")
    edit(trained, algorithm=algorithm)
    with pytest.raises(CheckpointError, match=r"not finite in mlp\.2\.bias"):
        Policy(ckpt.load(trained))
    with pytest.raises(CheckpointError, match=r"not finite in actor\.mlp\.2\.bias"):
        make_runner(run_dir=None).load(str(trained))


def test_another_optimizer_than_that_of_the_checkpoint_is_named(make_runner, trained):
    runner = make_runner(run_dir=None)
    runner.agent_cfg.algorithm.optimizer = "sgd"
    message = r"optimizer 'adam', and agent\.algorithm\.optimizer is 'sgd'; allowed with this checkpoint: 'adam'"
    with pytest.raises(CheckpointError, match=message):
        runner.load(str(trained))


def test_a_run_whose_directory_was_removed_goes_on_and_makes_it_again(make_runner, tmp_path, caplog):
    runner = make_runner(run_dir=tmp_path / "run")

    def remove(progress):
        if progress.iteration == 2:
            runner.logger.writer.flush()
            shutil.rmtree(tmp_path / "run")

    runner.on_progress = remove
    runner.learn(4)
    assert [record.getMessage().partition(",")[0] for record in caplog.records] == ["no more scalars are logged"]
    assert ckpt.load(tmp_path / "run").iteration == 3
