"""Eager, replayed and captured steps compute the same."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import warp as wp
from support.ant import RESULTS, STATE, assert_equal, make_ant, random_actions, random_lengths, rollout

from treadle.launch import torch_stream

STEPS = 200
RUNS = [("warp", 1), ("warp", 2), ("warp", 3), ("torch", 2)]


def recorded(frontend: str, mode: str, decimation: int):
    """Return a run in which episodes run out of time and, thanks to a raised threshold, end in terminal states."""
    env = make_ant(frontend=frontend, mode=mode, decimation=decimation, termination_height=0.4)
    low = env.max_episode_length - 5 * STEPS // 4
    run = rollout(env, random_actions(env, STEPS), random_lengths(env, low))
    env.close()
    return run


@pytest.mark.parametrize(("frontend", "decimation"), RUNS)
def test_modes_are_bit_identical(frontend, decimation):
    eager, replay, graph = (recorded(frontend, mode, decimation) for mode in ("eager", "replay", "graph"))
    assert eager["terminated"].sum() >= 3
    assert eager["truncated"].sum() >= 3
    # Resets happen in some environments while others go on.
    ended = (eager["terminated"] | eager["truncated"]).sum(axis=1)
    assert ((ended > 0) & (ended < eager["reward"].shape[1])).sum() >= 3
    assert np.isfinite(eager["observation"]).all() and np.isfinite(eager["reward"]).all()
    assert set(RESULTS) | set(STATE) <= set(eager.names)
    assert_equal(eager, replay)
    assert_equal(eager, graph)


@pytest.mark.parametrize("num_envs", [1, 3, 17])
@pytest.mark.parametrize("frontend", ["warp", "torch"])
def test_modes_are_bit_identical_at_odd_sizes(frontend, num_envs):
    runs = []
    for mode in ("eager", "replay", "graph"):
        env = make_ant(frontend=frontend, mode=mode, num_envs=num_envs, termination_height=0.4)
        runs.append(rollout(env, random_actions(env, 12), random_lengths(env, env.max_episode_length - 12)))
        env.close()
    assert runs[0]["truncated"].any()
    assert_equal(runs[0], runs[1])
    assert_equal(runs[0], runs[2])


def test_a_warp_step_is_one_graph_launch(device, monkeypatch):
    env = make_ant(mode="graph", device=device)
    actions = random_actions(env, 40)
    env.reset()
    for action in actions[:3]:
        env.step(action)
    eager_launches = []
    launch = wp.launch
    monkeypatch.setattr(wp, "launch", lambda *args, **kwargs: eager_launches.append(args) or launch(*args, **kwargs))
    stats = env.scope.stats
    before = {name: stats.total(name) for name in ("eager", "recorded", "replayed", "patched")}
    launches, captures = stats.graph_total("launches"), stats.graph_total("captures")
    env.episode_length_buf = torch.full((env.num_envs,), env.max_episode_length - 20)
    for action in actions[3:]:
        env.step(action)
    stats = env.scope.stats
    assert stats.graph_total("launches") - launches == len(actions) - 3
    assert stats.graph_total("captures") == captures == 1
    assert {name: stats.total(name) for name in before} == before
    assert stats.fallback_reasons() == {}
    assert not eager_launches
    assert len(env.pipeline.islands) == env.pipeline.graph_count == 1
    assert "14 of 14 stages in 1 graph" in env.launch_report()


def test_a_torch_step_runs_its_task_between_graphs():
    env = make_ant(frontend="torch", mode="graph")
    for action in random_actions(env, 4):
        env.step(action)
    islands = [(island.break_reason is None, island.key) for island in env.pipeline.islands]
    assert islands == [
        (False, ("process actions",)),
        (True, ("physics", "derived state", "counters")),
        (False, ("task terminations",)),
        (True, ("terminations",)),
        (False, ("task rewards",)),
        (True, ("rewards", "reset")),
        (False, ("task reset",)),
        (True, ("physics reset", "derived state after reset")),
        (False, ("task observations",)),
        (True, ("observations",)),
    ]
    assert "torch code with host control" in env.pipeline.describe()
    assert not env.scope.stats.fallback_reasons()


@pytest.mark.parametrize("frontend", ["warp", "torch"])
def test_no_torch_view_is_made_in_a_steady_step(frontend, monkeypatch):
    env = make_ant(frontend=frontend, mode="graph")
    actions = random_actions(env, 6)
    for action in actions[:3]:
        env.step(action)
    made = []
    to_torch = wp.to_torch
    monkeypatch.setattr(wp, "to_torch", lambda array: made.append(array) or to_torch(array))
    for action in actions[3:]:
        env.step(action)
    assert len(made) == 0


def _copy_state(source, target) -> None:
    """Make one environment go on from where another one is, warm start of the solver included."""
    arrays = {
        "physics": ("joint_q", "joint_qd", "joint_f", "joint_target_q", "body_q", "body_qd", "body_parent_f"),
        "buffers": ("actions", "episode_length", "episode_sums", "random_state"),
        "parts": ("target_distance",),
    }
    with torch_stream(source.device):
        for part, names in arrays.items():
            for name in names:
                wp.copy(getattr(getattr(target, part), name), getattr(getattr(source, part), name))
        wp.copy(target.physics.solver.mjw_data.qacc_warmstart, source.physics.solver.mjw_data.qacc_warmstart)


@pytest.mark.parametrize("decimation", [1, 2])
def test_a_graph_differs_from_eager_no_more_than_eager_from_itself(device, decimation):
    """On a GPU the solver adds contacts in any order, so two eager runs differ and grow apart exponentially.

    Growth says nothing about graphs. So before each step all environments are put into the state of the first one,
    and only what one step adds is compared: graph against eager, by the spread of two eager ones. Both are sums of
    rounding errors, so the medians over the steps so far may differ by a small factor, and single steps by a large one.
    On the CPU both are zero.
    """
    exact = device.is_cpu
    envs = [make_ant(mode=mode, decimation=decimation, device=device) for mode in ("eager", "eager", "graph")]
    steps = 20 if exact else 100
    actions = random_actions(envs[0], steps)
    lengths = random_lengths(envs[0], envs[0].max_episode_length - steps)
    for env in envs:
        env.reset()
        env.episode_length_buf = lengths
    spreads, differences, flags = [], [], 0
    for step, action in enumerate(actions):
        for env in envs[1:]:
            _copy_state(envs[0], env)
        first, again, graph = (_outcome(env, env.step(action)) for env in envs)
        spreads.append(np.median(np.abs(first[0] - again[0]).max(axis=1)))
        differences.append(np.median(np.abs(first[0] - graph[0]).max(axis=1)))
        flags += int((first[1] != graph[1]).any())
        if step >= 9:
            assert np.median(differences) <= 4.0 * np.median(spreads) + (0.0 if exact else 1e-5)
    assert max(differences) <= 100.0 * max(spreads) + (0.0 if exact else 1e-3)
    assert flags <= (0 if exact else 2)


def _outcome(env, result) -> tuple[np.ndarray, np.ndarray]:
    observations, reward, terminated, truncated, _ = result
    joint_q, joint_qd = env.physics.joint_q.numpy(), env.physics.joint_qd.numpy()
    values = np.concatenate(
        [observations["policy"].cpu().numpy(), reward.cpu().numpy()[:, None], joint_q, joint_qd], axis=1
    )
    return values, torch.stack((terminated, truncated)).cpu().numpy()
