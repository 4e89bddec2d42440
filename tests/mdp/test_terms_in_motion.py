"""The whole library in a real simulation, with commands that are drawn, sensors that measure, and episodes that end."""

from __future__ import annotations

import numpy as np
import torch
from support.term_cases import OBSERVATIONS, REWARDS
from support.terms import Case, terms_cfg

from treadle import mdp
from treadle.envs import ManagerBasedTorchEnv, ManagerBasedWarpEnv
from treadle.managers import EventTermCfg

STEPS = 12
RANGES = mdp.PoseRanges(pos_x=(-0.5, 0.5), pos_y=(-0.5, 0.5), pos_z=(-0.3, 0.3), yaw=(-3.0, 3.0))


def run(env_class, mode: str) -> dict[str, np.ndarray]:
    """Step the terms of the library through two episodes of 6 steps, and return what they gave."""
    rewards = [case for case in REWARDS if "term_keys" not in case.params]
    cfg = terms_cfg(OBSERVATIONS, rewards, [Case(mdp.time_out)])
    cfg.episode_length_s = 0.1
    cfg.launch.mode = mode
    cfg.terminations["time_out"].time_out = True
    cfg.commands = {
        "velocity": mdp.UniformVelocityCommandCfg(resampling_time_range=(0.05, 0.05)),
        "pose": mdp.UniformPoseCommandCfg(body_name="left_back_foot", ranges=RANGES, resampling_time_range=(5.0, 5.0)),
    }
    cfg.events = {
        "scene": EventTermCfg(func=mdp.reset_scene_to_default, mode="reset"),
        "joints": EventTermCfg(
            func=mdp.reset_joints_by_offset,
            mode="reset",
            params={"position_range": (-0.2, 0.2), "velocity_range": (-0.5, 0.5)},
        ),
    }
    env = env_class(cfg)
    env.reset(seed=3)
    generator = torch.Generator().manual_seed(0)
    found: dict[str, list[np.ndarray]] = {"observations": [], "rewards": [], "truncated": []}
    for _ in range(STEPS):
        observations, _, _, truncated, _ = env.step(torch.rand((env.num_envs, 8), generator=generator) * 2.0 - 1.0)
        found["observations"].append(observations["policy"].numpy().copy())
        found["rewards"].append(env.buffers.torch.reward_terms.numpy().copy())
        found["truncated"].append(truncated.numpy().copy())
    names = list(env.reward_manager.terms)
    env.close()
    return {name: np.stack(values) for name, values in found.items()} | {"names": names}


def test_both_frontends_and_a_graph_see_the_same():
    eager = run(ManagerBasedWarpEnv, "eager")
    assert eager["truncated"].any(axis=0).all() and np.isfinite(eager["observations"]).all()
    graph = run(ManagerBasedWarpEnv, "graph")
    for name in ("observations", "rewards", "truncated"):
        np.testing.assert_array_equal(eager[name], graph[name], err_msg=name)
    by_torch = run(ManagerBasedTorchEnv, "eager")
    np.testing.assert_array_equal(eager["truncated"], by_torch["truncated"])
    np.testing.assert_allclose(eager["observations"], by_torch["observations"], rtol=1e-3, atol=1e-3)
    scale = np.maximum(1.0, np.abs(eager["rewards"]).max(axis=(0, 1)))
    for index, name in enumerate(eager["names"]):
        a, b = eager["rewards"][..., index] / scale[index], by_torch["rewards"][..., index] / scale[index]
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4, err_msg=name)
