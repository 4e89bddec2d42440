"""The direct tasks compute the same however they are launched, and resets reach the masked environments only."""

from __future__ import annotations

import numpy as np
import pytest
from support.ant import assert_equal, make_task, random_actions, random_lengths, rollout

TASKS = {"Cartpole-Direct": {"max_cart_pos": 0.6}, "Humanoid-Direct": {"termination_height": 1.2}}
"""Tasks, with a field that lets episodes end soon."""
on_tasks = pytest.mark.parametrize("task", TASKS)


@pytest.mark.parametrize("frontend", ["warp", "torch"])
@on_tasks
def test_modes_are_bit_identical(task, frontend):
    runs = []
    for mode in ("eager", "replay", "graph"):
        env = make_task(task, frontend=frontend, mode=mode, num_envs=5, **TASKS[task])
        runs.append(rollout(env, random_actions(env, 40), random_lengths(env, env.max_episode_length - 50)))
        assert env.physics.describe_overflow() is None
        env.close()
    eager = runs[0]
    assert eager["terminated"].any() and eager["truncated"].any()
    ended = (eager["terminated"] | eager["truncated"]).sum(axis=1)
    assert ((ended > 0) & (ended < 5)).any(), "some end while others go on"
    assert np.isfinite(eager["observation"]).all() and np.isfinite(eager["reward"]).all()
    assert_equal(eager, runs[1])
    assert_equal(eager, runs[2])


@on_tasks
def test_a_warp_step_is_one_graph(task):
    env = make_task(task, num_envs=3)
    for action in random_actions(env, 4):
        env.step(action)
    assert env.pipeline.graph_count == len(env.pipeline.islands) == 1
    assert not env.scope.stats.fallback_reasons()
    env.close()


@on_tasks
def test_both_forms_start_alike_and_stay_close(task):
    envs = [make_task(task, frontend=frontend, num_envs=5, **TASKS[task]) for frontend in ("warp", "torch")]
    runs = [rollout(env, random_actions(env, 20)) for env in envs]
    assert np.array_equal(runs[0]["random_state"], runs[1]["random_state"])
    assert np.array_equal(runs[0]["terminated"], runs[1]["terminated"]) and runs[0]["terminated"].any()
    np.testing.assert_allclose(runs[0]["observation"], runs[1]["observation"], rtol=1e-3, atol=2e-3)
    np.testing.assert_allclose(runs[0]["reward"], runs[1]["reward"], rtol=1e-3, atol=1e-3)
    for env in envs:
        env.close()
