"""Runs whose numbers are not finite end with what is wrong, and never write it down."""

from __future__ import annotations

import math

import pytest
import torch
from point_mass import PointMassEnvCfg, PointMassRunnerCfg

from treadle.rl import DivergedError, NonFiniteError
from treadle.rl import checkpoint as ckpt


def spoil(runner, after: int, name: str) -> None:
    """Make a parameter not a number in the update of an iteration, after its losses were computed."""
    update = runner.alg.update

    def update_and_spoil():
        losses = update()
        if runner.num_completed == after - 1:
            with torch.no_grad():
                dict(runner.alg.actor.named_parameters())[name].view(-1)[0] = math.nan
        return losses

    runner.alg.update = update_and_spoil


def files(directory):
    return sorted(path.name for path in directory.glob("*model_*"))


@pytest.mark.parametrize("name", ["distribution.std_param", "mlp.0.weight"])
def test_a_diverged_learner_ends_with_the_iteration_and_the_last_good_checkpoint(make_runner, tmp_path, name):
    runner = make_runner(PointMassRunnerCfg(save_interval=5))
    spoil(runner, 3, name)
    with pytest.raises(DivergedError) as caught:
        runner.learn(10)
    assert str(caught.value).startswith("the learner diverged in iteration 4: ")
    assert f"; the last good checkpoint is {tmp_path}/model_0.pt; " in str(caught.value)
    assert files(tmp_path) == ["model_0.pt"]
    assert ckpt.load(tmp_path).iteration == 0


def test_a_checkpoint_with_a_bad_parameter_is_never_written(make_runner, tmp_path):
    runner = make_runner()  # saves each second iteration
    spoil(runner, 3, "mlp.0.weight")
    with pytest.raises(
        DivergedError, match=r"diverged in iteration 3: actor\.mlp\.0\.weight; the last .*model_0\.pt; "
    ):
        runner.learn(10)
    assert files(tmp_path) == ["model_0.pt"]


def test_without_a_checkpoint_it_says_so_and_after_loading_names_that_one(make_runner, tmp_path):
    runner = make_runner(run_dir=None)
    spoil(runner, 1, "distribution.std_param")
    with pytest.raises(DivergedError, match=r"in iteration 2: .*; there is no checkpoint before it; "):
        runner.learn(3)
    make_runner(run_dir=tmp_path / "a").learn(1)
    runner = make_runner(run_dir=None)
    runner.load(str(tmp_path / "a"))
    spoil(runner, 2, "distribution.std_param")
    with pytest.raises(DivergedError, match=r"in iteration 3: .*the last good checkpoint is .*a/model_0\.pt"):
        runner.learn(3)


def test_a_loss_that_is_not_finite_ends_the_run(make_runner, tmp_path):
    runner = make_runner()
    update = runner.alg.update
    runner.alg.update = lambda: update() | ({"value": math.inf} if runner.num_completed == 1 else {})
    with pytest.raises(DivergedError, match="diverged in iteration 2: the value loss is inf; the last good"):
        runner.learn(3)
    assert files(tmp_path) == ["model_0.pt"]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"fail_at_step": 14}, "values that are not finite in observation 'policy'"),
        ({"bad_reward_at_step": 14}, "values that are not finite in the reward"),
        ({"bad_reward_at_step": 20}, "values that are not finite in the reward"),
    ],
)
def test_a_broken_environment_is_named(make_runner, tmp_path, bad, message):
    runner = make_runner(env_cfg=PointMassEnvCfg(**bad))
    with pytest.raises(NonFiniteError, match=message):
        runner.learn(5)
    assert runner.num_completed == 1
    assert files(tmp_path) == ["model_0.pt"]


def test_an_error_of_another_kind_is_passed_on(make_runner):
    runner = make_runner()
    step = runner.env.unwrapped.step

    def fail(actions):
        if runner.num_completed == 1:
            raise RuntimeError("a bug")
        return step(actions)

    runner.env.unwrapped.step = fail
    with pytest.raises(RuntimeError, match="a bug"):
        runner.learn(3)


def test_a_healthy_iteration_reads_nothing_for_it(make_runner, monkeypatch):
    runner = make_runner(run_dir=None)

    def refuse(*args):
        raise AssertionError("the parameters were looked at")

    monkeypatch.setattr(torch, "isfinite", refuse)
    runner.learn(3)
