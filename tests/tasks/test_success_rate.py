"""The success rate of the manager-based tasks: the share of time-outs among whole episodes, and a term for it."""

from __future__ import annotations

import pytest
import torch
from support.ant import make_task

from treadle import mdp
from treadle.registry import task_spec

FALLEN = {"Cartpole": (0, 5.0), "Ant": (2, 0.2), "Humanoid": (2, 0.5)}
"""A coordinate, and a value of it that ends an episode in a terminal state."""


@pytest.mark.parametrize("frontend", ["warp", "torch"])
@pytest.mark.parametrize("task", FALLEN)
def test_the_share_of_time_outs_among_whole_episodes(task, frontend):
    env = make_task(task, frontend=frontend, num_envs=4, episode_length_s=3 / 60)
    term = env.reward_manager.get_term_cfg("success_rate")
    assert term.func is mdp.survival_success_rate and term.weight == 0.0
    zeros = torch.zeros(4, env.num_actions)
    env.reset()
    env.episode_length_buf = torch.tensor([0, 0, 2, 0])
    env.step(zeros)
    log = env.pop_episode_log()
    assert log["Episode_Termination/time_out"] == 1.0 and log["Episode_Reward/success_rate"] == 0.0
    assert "Metrics/success_rate" not in log, "the only episode that ended was given its age"
    env.step(zeros)
    coordinate, value = FALLEN[task]
    env.physics.joint_q.numpy()[3, coordinate] = value
    env.step(zeros)
    log = env.pop_episode_log()
    assert log["Metrics/success_rate"] == pytest.approx(2 / 3)
    assert log["Episode_Reward/success_rate"] == 0.0
    env.close()


@pytest.mark.parametrize("task", FALLEN)
def test_the_term_pays_nothing_whatever_its_weight(task):
    cfg = task_spec(task).load_env_cfg()
    rewards = []
    for weight in (0.0, 5.0):
        cfg.rewards["success_rate"].weight = weight
        env = make_task(task, num_envs=2, rewards=cfg.rewards)
        env.reset(seed=1)
        rewards.append(env.step(torch.zeros(2, env.num_actions))[1])
        env.close()
    assert torch.equal(*rewards)
