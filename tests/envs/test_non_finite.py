"""An environment that is not finite ends, starts anew, and touches nobody else."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
import torch
from support.ant import Rollout, assert_equal, make_ant, random_actions

STEPS, AT, BAD = 18, 4, 3
OTHERS = np.arange(6) != BAD


def _poison_joint_q(env, action):
    env.robot.data.torch.joint_pos[BAD, 2] = math.nan


def _poison_joint_qd(env, action):
    env.robot.data.torch.joint_vel[BAD, 5] = math.nan


def _poison_velocity(env, action):
    env.robot.data.torch.joint_vel[BAD, 0] = math.inf


def _poison_root(env, action):
    env.physics.joint_q.numpy()[BAD, 4] = -math.inf


def _poison_huge(env, action):
    env.robot.data.torch.joint_vel[BAD] = 1e30


def _poison_push(env, action):
    """A wrench on the root, which no actuator overwrites."""
    env.physics.joint_f.numpy()[BAD, 2] = math.nan


def _poison_action(env, action):
    action[BAD, 1] = math.nan


def _poison_infinite_action(env, action):
    action[BAD, 1] = math.inf


POISONS = {name[8:]: fn for name, fn in list(globals().items()) if name.startswith("_poison_")}


@functools.cache
def _run(frontend: str, mode: str, poison: str | None):
    env = make_ant(frontend=frontend, mode=mode, num_envs=6, seed=7)
    env.reset()
    run = Rollout()
    for step, action in enumerate(random_actions(env, STEPS)):
        if step == AT and poison is not None:
            POISONS[poison](env, action)
        run.add(env, env.step(action))
    log = env.pop_episode_log()
    env.close()
    return run, log


@pytest.mark.parametrize("poison", POISONS)
@pytest.mark.parametrize(("frontend", "mode"), [("warp", "eager"), ("warp", "graph"), ("torch", "graph")])
def test_one_poisoned_environment(frontend, mode, poison):
    clean, _ = _run(frontend, mode, None)
    run, log = _run(frontend, mode, poison)
    assert run["terminated"][:, BAD].tolist() == [step == AT for step in range(STEPS)]
    assert not run["truncated"].any()
    for name in run.names:
        assert np.isfinite(run[name][AT:, BAD]).all(), name
    assert run["episode_length"][AT:, BAD].tolist() == list(range(STEPS - AT))
    assert log["Episode_Termination/non_finite"] == log["Episode_Termination/terminated"] == 1.0
    assert log["Metrics/episode_length"] == AT + 1
    assert all(math.isfinite(value) for value in log.values())
    assert_equal(run, clean, OTHERS)


def test_the_new_episode_starts_like_any_other():
    run, _ = _run("warp", "graph", "joint_qd")
    observation = run["observation"][AT, BAD]
    assert observation[0] == np.float32(0.5)
    assert not observation[28:60].any()
    assert np.abs(run["joint_qd"][AT, BAD]).max() <= 0.1
    assert run["joint_qd"][AT + 1 :, BAD].any()


def test_a_term_that_is_not_finite_counts_as_zero():
    env = make_ant(num_envs=3)
    env.reset()
    actions = random_actions(env, 3)
    env.step(actions[0])
    env.step(actions[1])
    env.parts.target_distance.numpy()[1] = math.nan
    _, reward, terminated, _, _ = env.step(actions[2])
    terms = env.buffers.torch.reward_terms
    assert terms[1, 0] == 0.0 and terms[0, 0] != 0.0
    assert torch.isfinite(reward).all() and not terminated.any()
    assert reward[1] == pytest.approx(terms[1].sum().item())
