"""Playing policies."""

from __future__ import annotations

import pytest
import torch
from point_mass import PointMassEnv, PointMassEnvCfg, PointMassRunnerCfg

from treadle.rl import Policy, evaluate
from treadle.rl import checkpoint as ckpt


def still(obs):
    return torch.zeros(16, 2)


def test_a_number_of_steps_counts_finished_and_unfinished_episodes(env):
    result = evaluate(env, still, num_steps=30)  # episodes have 20 steps
    assert result.summary() == {
        "finished_episodes": 16,
        "unfinished_episodes": 16,
        "mean_return": pytest.approx(sum(result.returns) / 16),
        "std_return": pytest.approx(torch.tensor(result.returns).std(correction=0).item(), rel=1e-4),
        "mean_episode_length": 20,
        "num_steps": 30,
    }


def test_an_episode_that_did_not_finish_gives_no_return(env):
    summary = evaluate(env, still, num_steps=5).summary()
    assert (summary["finished_episodes"], summary["unfinished_episodes"]) == (0, 16)
    assert summary["mean_return"] is None


def test_returns_are_those_of_a_hand_count():
    env, again = (PointMassEnv(PointMassEnvCfg()) for _ in range(2))
    result = evaluate(env, still)
    again.reset()
    rewards = [again.step(still(None))[1] for _ in range(20)]
    assert result.returns == pytest.approx(torch.stack(rewards).sum(0).tolist(), rel=1e-5)


def test_short_episodes_are_not_counted_more_often(env):
    def run_away(obs):
        # The first environment leaves the arena after a few steps, over and over; the others stay 20 steps.
        actions = torch.zeros(16, 2)
        actions[0] = 1.0
        return actions

    result = evaluate(env, run_away, num_episodes=32)
    assert len(result.returns) == 32
    assert result.unfinished == 0
    assert sum(length < 20 for length in result.lengths) == 2


def test_a_policy_has_the_shape_of_its_checkpoint_and_is_deterministic(make_runner, tmp_path):
    cfg = PointMassRunnerCfg()
    cfg.actor.hidden_dims = (24, 8)
    cfg.clip_actions = 0.25
    runner = make_runner(cfg)
    runner.learn(2)
    loaded = ckpt.load(tmp_path)
    policy = Policy(loaded)
    obs = {"policy": torch.randn(16, 4) * 3.0}
    expected = runner.get_inference_policy()(obs).clamp(-0.25, 0.25)
    assert torch.equal(policy(obs), expected)
    assert torch.equal(policy(obs), policy(obs))
    sampling = Policy(loaded, stochastic=True)
    assert not torch.equal(sampling(obs), sampling(obs))
