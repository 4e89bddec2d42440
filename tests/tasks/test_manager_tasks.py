"""The manager-based tasks: the same numbers as their direct forms, in both frontends and in all launch modes."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch
import warp as wp
from support.ant import assert_equal, make_task, random_actions, random_lengths, rollout
from torch.utils._python_dispatch import TorchDispatchMode

from treadle.managers import missing_twins
from treadle.registry import task_spec

TASKS = {"Cartpole": (4, 1), "Ant": (60, 8), "Humanoid": (87, 21)}
"""Size of the observation and of the action."""
MOST_KERNELS = {
    "Cartpole": 8,
    "Ant": 10,
    "Humanoid": 10,
    "Cartpole-Direct": 12,
    "Ant-Direct": 15,
    "Humanoid-Direct": 15,
}
PHYSICS = {"apply_actuators", "count_overflow", "clear_forces"}
"""Kernels of the stages ``physics`` and ``physics reset``."""
STEPS = 300


@functools.cache
def recorded(task: str, frontend: str = "warp", mode: str = "graph", num_envs: int = 6, steps: int = STEPS, **fields):
    """Return a run whose episodes end at different times."""
    env = make_task(task, frontend=frontend, mode=mode, num_envs=num_envs, **fields)
    low = env.max_episode_length - min(steps, env.max_episode_length) + 1
    run = rollout(env, random_actions(env, steps), random_lengths(env, low))
    env.close()
    return run


@pytest.mark.parametrize("task", TASKS)
def test_sizes_and_twins(task):
    env = make_task(task, num_envs=2)
    assert (env.num_observations["policy"], env.num_actions) == TASKS[task]
    assert missing_twins(task_spec(task).load_env_cfg()) == {}
    env.close()


@pytest.mark.parametrize("task", TASKS)
def test_direct_and_manager_forms_agree(task):
    """Both draw the same starts and step the same physics, so that observations and episodes are equal bit by bit."""
    manager, direct = recorded(task), recorded(f"{task}-Direct")
    assert (manager["terminated"] | manager["truncated"]).sum() >= 5
    np.testing.assert_array_equal(manager["observation"], direct["observation"])
    np.testing.assert_allclose(manager["reward"], direct["reward"], rtol=1e-5, atol=1e-6)
    for flag in ("terminated", "truncated"):
        np.testing.assert_array_equal(manager[flag], direct[flag])


@pytest.mark.parametrize("task", TASKS)
def test_both_frontends_agree(task):
    warp_form, torch_form = recorded(task), recorded(task, "torch")
    np.testing.assert_allclose(warp_form["observation"], torch_form["observation"], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(warp_form["reward"], torch_form["reward"], rtol=1e-4, atol=1e-5)
    for name in ("terminated", "truncated", "random_state"):
        np.testing.assert_array_equal(warp_form[name], torch_form[name])


@pytest.mark.parametrize("task", TASKS)
def test_modes_are_bit_identical(task):
    eager, replay, graph = recorded(task, mode="eager"), recorded(task, mode="replay"), recorded(task)
    assert (eager["terminated"] | eager["truncated"]).sum() >= 3
    assert_equal(eager, replay)
    assert_equal(eager, graph)


class _Operations(TorchDispatchMode):
    """Notes the torch operations within its context."""

    def __init__(self):
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        """Note and run an operation."""
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("task", MOST_KERNELS)
def test_a_steady_step_is_one_graph_launch_and_nothing_else(task, device, monkeypatch):
    env = make_task(task, num_envs=4, device=device)
    actions = list(random_actions(env, 30))
    env.reset()
    for action in actions[:3]:
        env.step(action)
    before = env.scope.stats
    launches, captures = before.graph_total("launches"), before.graph_total("captures")
    kinds = {name: before.total(name) for name in ("eager", "recorded", "replayed", "patched")}
    made: list[str] = []
    _note_calls(monkeypatch, made)
    env.episode_length_buf = torch.full((env.num_envs,), env.max_episode_length - 10, device=env.device)
    made.clear()
    with _Operations() as operations:
        for action in actions[3:]:
            env.step(action)
    assert set(operations.names) == {"aten.copy_.default"} and len(operations.names) == 27
    assert made == []
    stats = env.scope.stats
    assert stats.graph_total("launches") - launches == 27
    assert stats.graph_total("captures") == captures == 1
    assert {name: stats.total(name) for name in kinds} == kinds
    [graph] = [graph for graph in stats.graphs.values() if graph.launches]
    outside = [site for site in graph.sites if site not in PHYSICS]
    assert len(outside) <= MOST_KERNELS[task], outside
    env.close()


def _note_calls(monkeypatch, made: list[str]) -> None:
    """Note what allocates arrays, makes views, launches one kernel or waits for the device."""
    for name in ("launch", "to_torch", "from_torch", "zeros", "empty", "full", "copy", "synchronize_device"):
        original = getattr(wp, name)

        def noted(*args, _name=name, _original=original, **kwargs):
            made.append(_name)
            return _original(*args, **kwargs)

        monkeypatch.setattr(wp, name, noted)
    for name in ("numpy", "__getitem__", "assign", "fill_"):
        original = getattr(wp.array, name)

        def noted_method(self, *args, _name=name, _original=original, **kwargs):
            made.append(f"array.{_name}")
            return _original(self, *args, **kwargs)

        monkeypatch.setattr(wp.array, name, noted_method)
    if torch.cuda.is_available():
        monkeypatch.setattr(torch.cuda, "synchronize", lambda *args: made.append("torch.cuda.synchronize"))


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("frontend", ["warp", "torch"])
def test_a_partial_reset_changes_no_other_environment(task, frontend):
    runs = []
    for reset in (False, True):
        env = make_task(task, frontend=frontend, num_envs=5)
        actions = random_actions(env, 16)
        env.reset(seed=2)
        for action in actions[:8]:
            env.step(action)
        if reset:
            env.reset(env_ids=[1, 4])
        runs.append(_follow(env, actions[8:]))
        env.close()
    others = [0, 2, 3]
    for name, values in runs[0].items():
        np.testing.assert_array_equal(values[:, others], runs[1][name][:, others], err_msg=name)
    assert not np.array_equal(runs[0]["observation"][:, [1, 4]], runs[1]["observation"][:, [1, 4]])


def _follow(env, actions) -> dict[str, np.ndarray]:
    rows: dict[str, list[np.ndarray]] = {}
    for action in actions:
        observations, reward, *_ = env.step(action)
        now = {"observation": observations["policy"], "reward": reward, **_state(env)}
        for name, value in now.items():
            rows.setdefault(name, []).append(value.cpu().numpy().copy())
    return {name: np.stack(values) for name, values in rows.items()}


def _state(env) -> dict[str, torch.Tensor]:
    buffers, data = env.buffers.torch, env.robot.data.torch
    state = {"joint_pos": data.joint_pos, "joint_vel": data.joint_vel, "random_state": buffers.random_state.int()}
    state |= {"effort": data.joint_effort_target, "sums": buffers.episode_sums, "length": buffers.episode_length}
    for name, sensor in env.scene.sensors.items():
        state[name] = sensor.torch.wrench
    return state
