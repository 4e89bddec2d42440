"""Playing policies."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import point_mass
import pytest
import torch
from point_mass import PointMassEnv, PointMassEnvCfg, PointMassRunnerCfg

from treadle import registry
from treadle.rl import CheckpointError, Policy, evaluate
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
        "overflow": None,
    }


def test_an_episode_that_did_not_finish_gives_no_return(env):
    summary = evaluate(env, still, num_steps=5).summary()
    assert (summary["finished_episodes"], summary["unfinished_episodes"]) == (0, 16)
    assert summary["mean_return"] is None


def test_an_overflow_of_the_solver_is_reported(env):
    env.physics = SimpleNamespace(describe_overflow=lambda: "2 of 16 environments overflowed a solver buffer")
    result = evaluate(env, still, num_steps=1)
    assert result.summary()["overflow"] == result.overflow == "2 of 16 environments overflowed a solver buffer"


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


@dataclass(kw_only=True)
class TanhRunnerCfg(PointMassRunnerCfg):
    """A learner with a field of its own, which decides how the network is built."""

    squash: bool = False

    def to_rsl_rl(self):
        cfg = super().to_rsl_rl()
        if self.squash:
            cfg["actor"]["activation"] = "tanh"
        return cfg


def test_a_policy_is_built_by_its_tasks_own_class(make_runner, tmp_path, monkeypatch):
    runner = make_runner(TanhRunnerCfg(squash=True))
    runner.learn(1)
    loaded = ckpt.load(tmp_path)
    with pytest.raises(CheckpointError, match=r"no field 'squash'.*; task 'Test-PointMass' is not registered here"):
        Policy(loaded)
    obs = {"policy": torch.randn(16, 4)}
    expected = runner.get_inference_policy()(obs)
    assert torch.equal(Policy(loaded, agent_cfg=TanhRunnerCfg())(obs), expected)
    spec = registry.TaskSpec(
        task_id=point_mass.TASK,
        env_cfg="point_mass:PointMassEnvCfg",
        agent_cfg=f"{__name__}:TanhRunnerCfg",
        frontends={"torch": "point_mass:PointMassEnv"},
    )
    monkeypatch.setattr(registry, "_tasks", {**registry._all_tasks(), spec.task_id: spec})
    policy = Policy(loaded)
    assert torch.equal(policy(obs), expected)
    assert isinstance(policy.agent_cfg, TanhRunnerCfg)
