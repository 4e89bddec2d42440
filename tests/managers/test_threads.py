"""Terms with several threads per environment."""

from __future__ import annotations

import pytest
import torch
import warp as wp
from support.cartpole_terms import ROBOT, make_cartpole, policy

from treadle.assets import ArticulationState
from treadle.managers import ObservationTermCfg, RewardTermCfg, SceneEntityCfg, TerminationTermCfg, warp_twin


def _num_joints(env, params) -> int:
    return len(params["asset_cfg"].resolved.joint_names)


def speeds(env, gain: float, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Squared joint velocities times a gain."""
    return gain * env.scene["robot"].data.torch.joint_vel[:, asset_cfg.joint_ids].square()


@warp_twin(speeds, threads=_num_joints)
def _(env: int, thread: int, asset: ArticulationState, joint_ids: wp.array[int], gain: float) -> float:
    velocity = asset.joint_vel[env, joint_ids[thread]]
    return gain * velocity * velocity


def total_speed(env, gain: float, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Their sum."""
    return speeds(env, gain, asset_cfg).sum(dim=1)


@warp_twin(total_speed, threads=_num_joints)
def _(env: int, thread: int, asset: ArticulationState, joint_ids: wp.array[int], gain: float) -> float:
    velocity = asset.joint_vel[env, joint_ids[thread]]
    return gain * velocity * velocity


def too_fast(env, limit: float, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Whether a joint is faster than a limit."""
    return (env.scene["robot"].data.torch.joint_vel[:, asset_cfg.joint_ids].abs() > limit).any(dim=1)


@warp_twin(too_fast, threads=_num_joints)
def _(env: int, thread: int, asset: ArticulationState, joint_ids: wp.array[int], limit: float) -> bool:
    return wp.abs(asset.joint_vel[env, joint_ids[thread]]) > limit


def run(frontend: str, mode: str):
    env = make_cartpole(
        frontend=frontend,
        mode=mode,
        observations=policy(speeds=ObservationTermCfg(func=speeds, params={"gain": 2.0}, scale=0.5)),
        rewards={"speed": RewardTermCfg(func=total_speed, params={"gain": 3.0})},
        terminations={"fast": TerminationTermCfg(func=too_fast, params={"limit": 2.5})},
    )
    env.reset(seed=4)
    generator = torch.Generator().manual_seed(0)
    rows = []
    for step in range(40):
        if step == 20:
            cfg = env.reward_manager.get_term_cfg("speed")
            cfg.params["gain"] = -1.0
            env.reward_manager.set_term_cfg("speed", cfg)
        obs, reward, terminated, *_ = env.step(torch.rand(5, 1, generator=generator) * 2.0 - 1.0)
        rows.append(torch.cat((obs["policy"], reward[:, None], terminated[:, None].float()), dim=1))
    captures = env.scope.stats.graph_total("captures")
    names = list(env.kernels.by_name)
    env.close()
    return torch.stack(rows), captures, names


def test_threads_agree_with_torch_in_all_modes():
    graph, captures, names = run("warp", "graph")
    assert {"observations.policy.terms.speeds", "rewards.speed", "terminations.fast"} <= set(names)
    assert captures == 1
    assert graph[..., -1].any() and not graph[..., -1].all()
    for mode in ("eager", "replay"):
        assert torch.equal(graph, run("warp", mode)[0])
    expected, _, names = run("torch", "graph")
    assert not {name for name in names if name.startswith(("rewards.", "terminations."))}
    torch.testing.assert_close(graph, expected, rtol=1e-5, atol=1e-5)


def test_a_thread_returns_a_number():
    def vector(env) -> torch.Tensor:
        return torch.zeros(env.num_envs, 3)

    @warp_twin(vector, threads=2)
    def _(env: int, thread: int) -> wp.vec3:
        return wp.vec3(0.0, 0.0, 0.0)

    with pytest.raises(ValueError, match=r"returns .*vec3.*; allowed: float"):
        make_cartpole(rewards={"a": RewardTermCfg(func=vector)})
