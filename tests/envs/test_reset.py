"""Resets, masked and whole, and where the random numbers come from."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import warp as wp
from support.ant import Rollout, assert_equal, make_ant, random_actions, rollout, snapshot, state_of

FRONTENDS = ["warp", "torch"]
WRENCH = slice(28, 52)


@pytest.fixture(scope="module", params=FRONTENDS)
def env(request):
    """An environment that may be left in any state."""
    env = make_ant(frontend=request.param, num_envs=8)
    yield env
    env.close()


def _end_episodes(env, rows) -> None:
    lengths = env.episode_length_buf.clone()
    lengths[rows] = env.max_episode_length
    env.episode_length_buf = lengths


@pytest.mark.parametrize("mode", ["eager", "graph"])
@pytest.mark.parametrize("frontend", FRONTENDS)
def test_a_partial_reset_changes_nothing_of_the_others(frontend, mode):
    """The warm start of the solver shows in the steps that follow, so those are compared too."""
    rows = [2, 5]
    others = np.isin(np.arange(8), rows, invert=True)
    runs = []
    for reset in (False, True):
        env = make_ant(frontend=frontend, mode=mode, num_envs=8)
        env.reset()
        run = Rollout()
        for step, action in enumerate(random_actions(env, 30)):
            if reset and step == 12:
                _end_episodes(env, rows)
            run.add(env, env.step(action))
        runs.append(run)
        env.close()
    assert runs[1]["truncated"].sum() == len(rows) and runs[1]["truncated"][12, rows].all()
    assert not runs[1]["warm_start"][12, rows].any() and runs[1]["warm_start"][12, others].any()
    assert_equal(*runs, rows=others)
    for row in rows:
        assert (runs[0]["joint_q"][12:, row] != runs[1]["joint_q"][12:, row]).any()


def test_the_observation_of_a_reset_is_that_of_a_fresh_environment_in_that_state(env):
    env.reset()
    for action in random_actions(env, 10):
        env.step(action)
    rows = [1, 6]
    _end_episodes(env, rows)
    observations, *_ = env.step(random_actions(env, 1)[0])
    fresh = make_ant(frontend=env.task_frontend, num_envs=env.num_envs)
    fresh.reset(seed=5)
    wp.copy(fresh.physics.joint_q, env.physics.joint_q)
    wp.copy(fresh.physics.joint_qd, env.physics.joint_qd)
    fresh.physics.reset_mask.fill_(True)
    fresh.physics.reset()
    fresh._update_derived_state()
    fresh._compute_observations()
    assert torch.equal(fresh.observations["policy"][rows], observations["policy"][rows])
    assert not observations["policy"][rows, 28:].any(), "wrenches and last actions are zero"
    assert env.episode_length_buf[rows].tolist() == [0, 0]
    fresh.close()


@pytest.mark.parametrize("frontend", FRONTENDS)
def test_foot_wrenches_are_fresh_in_every_replayed_step(frontend):
    """An ant is dropped: the feet carry nothing in the air, and load when they touch the ground."""
    runs = {}
    for mode in ("eager", "graph"):
        env = make_ant(frontend=frontend, mode=mode, num_envs=2)
        env.reset()
        runs[mode] = rollout(env, torch.zeros(60, 2, 8))
        contacts = np.array([np.abs(step[:, WRENCH]).max(axis=1) for step in runs[mode]["observation"]])
        env.close()
    assert_equal(runs["eager"], runs["graph"])
    graph = runs["graph"]
    assert np.array_equal(graph["observation"][..., WRENCH], (graph["wrench"] * np.float32(0.1)).reshape(60, 2, 24))
    moving = graph["wrench"][:40]
    assert (np.abs(np.diff(moving, axis=0)).reshape(39, -1) > 0.0).any(axis=1).all(), "a step kept the old wrench"
    assert contacts[0].max() < 0.1 * contacts.max()


def test_draws_differ_between_environments_and_between_resets(env):
    env.reset()
    drawn = []
    for _ in range(4):
        _end_episodes(env, slice(None))
        *_, truncated, _ = env.step(torch.zeros(8, 8))
        assert truncated.all()
        drawn.append(np.concatenate([env.robot.data.joint_pos.numpy(), env.robot.data.joint_vel.numpy()], axis=1))
    if env.task_frontend == "warp":
        assert env.scope.stats.graph_total("launches") >= 2
    rows = np.concatenate(drawn)
    velocities = rows[:, 8:]
    assert len(np.unique(velocities)) == velocities.size


def test_draws_cover_their_ranges_and_are_clamped():
    env = make_ant(num_envs=512)
    env.reset()
    data = env.robot.data
    offset = snapshot(data.joint_pos) - data.default_joint_pos.numpy()
    assert np.abs(offset).max() <= 0.2 + 1e-6
    assert np.abs(offset[:, 0]).max() > 0.195
    assert (snapshot(data.joint_pos) >= data.soft_joint_pos_lower.numpy()).all()
    assert (snapshot(data.joint_pos) <= data.soft_joint_pos_upper.numpy()).all()
    velocity = snapshot(data.joint_vel)
    assert 0.0975 < np.abs(velocity).max() <= 0.1
    assert abs(velocity.mean()) < 0.005 and abs(velocity.std() - 0.2 / 12**0.5) < 0.003
    correlation = np.corrcoef(np.concatenate([offset, velocity], axis=1).T) - np.eye(16)
    assert np.abs(correlation).max() < 0.25
    root = snapshot(env.physics.joint_q)[:, :7] - np.pad(env.scene.env_origins.numpy(), ((0, 0), (0, 4)))
    assert np.array_equal(root, np.tile(np.float32([0, 0, 0.5, 0, 0, 0, 1]), (512, 1)))
    assert not env.physics.joint_qd.numpy()[:, :6].any()
    env.close()


def test_a_start_outside_of_the_limits_is_clamped():
    for frontend in FRONTENDS:
        env = make_ant(frontend=frontend, num_envs=32, reset_joint_pos_range=(0.5, 1.5))
        env.reset()
        data = env.robot.data
        assert (data.joint_pos.numpy() <= data.soft_joint_pos_upper.numpy()).all()
        assert (data.joint_pos.numpy() == data.soft_joint_pos_upper.numpy()).any()
        env.close()


@pytest.mark.parametrize("frontend", FRONTENDS)
def test_a_seed_is_a_run(frontend):
    def run(seed):
        env = make_ant(frontend=frontend, num_envs=4, seed=seed)
        result = rollout(env, random_actions(env, 15), torch.tensor([950, 955, 0, 0]))
        env.close()
        return result

    first = run(3)
    assert first["truncated"].sum() == 2
    assert_equal(first, run(3))
    assert not np.array_equal(first["joint_q"], run(4)["joint_q"])


def test_reset_with_a_seed_reproduces(env):
    actions = random_actions(env, 12)

    def run(seed):
        observations, extras = env.reset(seed=seed)
        assert extras == {}
        _end_episodes(env, [3])
        result = Rollout()
        for action in actions:
            result.add(env, env.step(action))
        return observations["policy"], result

    first, again, other = run(11), run(11), run(12)
    assert torch.equal(first[0], again[0])
    assert_equal(first[1], again[1])
    assert not torch.equal(first[0], other[0])
    free = env.reset()[0]["policy"]
    assert not torch.equal(free, first[0]), "a reset without a seed goes on drawing"


def test_two_resets_give_equal_accounting(env):
    for action in random_actions(env, 5):
        env.step(action)
    env.pop_episode_log()
    states = []
    for _ in range(2):
        env.reset()
        assert not env.buffers.torch.terminated.any() and not env.buffers.torch.truncated.any()
        assert not env.physics.reset_mask.numpy().any()
        state = state_of(env)
        states.append(
            {name: state[name] for name in ("episode_length", "episode_sums", "wrench", "warm_start", "body_parent_f")}
        )
        assert env.pop_episode_log() == {}, "episodes that a reset cuts short are not logged"
    for name, array in states[0].items():
        assert not array.any(), name
        assert np.array_equal(array, states[1][name]), name


def test_the_first_step_resets_by_itself():
    env, other = make_ant(num_envs=2, seed=9), make_ant(num_envs=2, seed=9)
    other.reset()
    action = random_actions(env, 1)[0]
    assert torch.equal(env.step(action)[0]["policy"], other.step(action)[0]["policy"])
