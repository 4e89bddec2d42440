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


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_an_environment_with_a_term_that_is_not_finite_ends_without_reward(mode):
    env = make_ant(num_envs=3, mode=mode)
    env.reset()
    actions = random_actions(env, 3)
    env.step(actions[0])
    env.step(actions[1])
    env.parts.target_distance.numpy()[1] = math.nan
    _, reward, terminated, truncated, _ = env.step(actions[2])
    assert terminated.tolist() == [False, True, False] and not truncated.any()
    assert reward[1] == 0.0 and reward[0] != 0.0 and torch.isfinite(reward).all()
    assert env.pop_episode_log()["Episode_Termination/non_finite"] == 1.0
    assert env.episode_length_buf.tolist() == [3, 0, 3]


@pytest.mark.parametrize("frontend", ["warp", "torch"])
def test_an_observation_that_is_not_finite_is_replaced_and_ends_the_environment_one_step_later(frontend):
    env = make_ant(num_envs=3, frontend=frontend, mode="graph")
    env.reset()
    actions = random_actions(env, 5)
    for action in actions[:2]:
        env.step(action)
    env.parts.targets_w.numpy()[1, 1] = math.inf  # reaches the angle to the target, and no physics
    env.parts.target_distance.numpy()[1] = 0.0
    observations, _, _, _, _ = env.step(actions[2])
    assert torch.isfinite(observations["policy"]).all() and observations["policy"][0].any()
    env.parts.targets_w.numpy()[1] = (1000.0, 0.0, 0.0)
    observations, reward, terminated, _, _ = env.step(actions[3])
    assert terminated.tolist() == [False, True, False] and torch.isfinite(reward).all()
    _, _, terminated, _, _ = env.step(actions[4])
    assert not terminated.any()


def test_a_state_that_overflows_pays_nothing():
    env = make_ant(num_envs=2, mode="eager")
    env.reset()
    env.step(torch.zeros(2, 8))
    env.physics.joint_qd.numpy()[1, 6:] = 1e38
    _, reward, terminated, _, _ = env.step(torch.ones(2, 8))
    assert terminated[1] and reward[1] == 0.0
