"""Ant environments, actions and recorded rollouts for tests."""

from __future__ import annotations

import gc
from dataclasses import dataclass, field

import numpy as np
import torch
import warp as wp

import treadle
import treadle.scene.scene
from treadle.registry import task_spec

# A capture collects garbage first. Over the objects of all imported libraries that takes 0.7 s, so they are put aside;
# a torch environment captures four graphs.
gc.collect()
gc.freeze()

# The arrays are tiny: threads would only wait for one another, and for those of a second test process.
torch.set_num_threads(1)

FLAGS = ("terminated", "truncated")
RESULTS = ("observation", "reward", *FLAGS)
STATE = ("joint_q", "joint_qd", "body_q", "random_state", "reward_terms")


def task_cfg(task: str, *, mode: str = "graph", **fields):
    """Return the configuration of a task with some fields changed."""
    cfg = task_spec(task).load_env_cfg()
    cfg.launch.mode = mode
    for name, value in fields.items():
        assert hasattr(cfg, name), name
        setattr(cfg, name, value)
    return cfg


def make_task(
    task: str,
    *,
    frontend: str = "warp",
    num_envs: int = 16,
    device: object = "cpu",
    seed: int = 42,
    mode: str = "graph",
    **fields,
):
    """Make a task; further keywords change fields of its configuration."""
    cfg = task_cfg(task, mode=mode, **fields)
    return treadle.make(task, cfg=cfg, frontend=frontend, num_envs=num_envs, device=str(device), seed=seed)


def ant_cfg(**fields):
    """Return the configuration of Ant-Direct with some fields changed."""
    return task_cfg("Ant-Direct", **fields)


def make_ant(**fields):
    """Make Ant-Direct; see :func:`make_task`."""
    return make_task("Ant-Direct", **fields)


def random_actions(env, steps: int, seed: int = 0) -> torch.Tensor:
    """Return actions in [-1, 1], shape (steps, num_envs, num_actions), the same on every device."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand((steps, env.num_envs, env.num_actions), generator=generator) * 2.0 - 1.0).to(env.device)


def random_lengths(env, low: int, seed: int = 1) -> torch.Tensor:
    """Return episode lengths from ``low`` to the end of an episode, shape (num_envs,)."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(low, env.max_episode_length, (env.num_envs,), generator=generator).to(env.device)


def snapshot(array: wp.array) -> np.ndarray:
    """Return a copy of an array; ``.numpy()`` alone is a view on the CPU."""
    return array.numpy().copy()


def state_of(env) -> dict[str, np.ndarray]:
    """Return copies of the state that a run leaves behind."""
    arrays = {
        "joint_q": env.physics.joint_q,
        "joint_qd": env.physics.joint_qd,
        "body_q": env.physics.body_q,
        "body_qd": env.physics.body_qd,
        "body_parent_f": env.physics.body_parent_f,
        "warm_start": env.physics.solver.mjw_data.qacc_warmstart,
        "random_state": env.buffers.random_state,
        "reward_terms": env.buffers.reward_terms,
        "episode_sums": env.buffers.episode_sums,
        "episode_length": env.buffers.episode_length,
    }
    if parts := getattr(env, "parts", None):
        arrays |= {"wrench": parts.feet.wrench, "target_distance": parts.target_distance}
    return {name: snapshot(array) for name, array in arrays.items()}


@dataclass
class Rollout:
    """What a run returned and left behind at each step: arrays of shape (steps, num_envs, ...) by name."""

    values: dict[str, list[np.ndarray]] = field(default_factory=dict)

    def add(self, env, result) -> None:
        """Keep one step."""
        observations, reward, terminated, truncated, _ = result
        returned = {
            "observation": observations["policy"],
            "reward": reward,
            "terminated": terminated,
            "truncated": truncated,
        }
        for name, tensor in returned.items():
            self.values.setdefault(name, []).append(tensor.cpu().numpy().copy())
        for name, array in state_of(env).items():
            self.values.setdefault(name, []).append(array)

    def __getitem__(self, name: str) -> np.ndarray:
        return np.stack(self.values[name])

    @property
    def names(self) -> list[str]:
        """Names of everything that was kept."""
        return list(self.values)


def rollout(env, actions: torch.Tensor, lengths: torch.Tensor | None = None) -> Rollout:
    """Reset an environment, give its episodes some ages, and step it through the actions."""
    env.reset()
    if lengths is not None:
        env.episode_length_buf = lengths
    result = Rollout()
    for action in actions:
        result.add(env, env.step(action))
    return result


def assert_equal(first: Rollout, second: Rollout, rows: np.ndarray | slice = slice(None)) -> None:
    """Check that two runs are equal bit by bit, in the given environments."""
    for name in first.names:
        a, b = first[name][:, rows], second[name][:, rows]
        same = (a == b) | (np.isnan(a) & np.isnan(b)) if a.dtype.kind == "f" else a == b
        if not same.all():
            step, env = np.argwhere(~same)[0][:2]
            raise AssertionError(
                f"{name} differs first at step {step} in environment {env}: {a[step, env]} and {b[step, env]}"
            )
