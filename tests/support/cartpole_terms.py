"""Cartpole environments with terms of a test's own, in both forms."""

from __future__ import annotations

import torch
import warp as wp

from treadle.assets.articulation_state import ArticulationState
from treadle.managers import (
    EnvState,
    ManagerTermBase,
    ObservationGroupCfg,
    ObservationTermCfg,
    SceneEntityCfg,
    warp_twin,
)
from treadle.registry import make, task_spec

ROBOT = SceneEntityCfg()


def make_cartpole(*, frontend: str = "warp", mode: str = "graph", num_envs: int = 5, device: str = "cpu", **fields):
    """Make the manager-based cartpole with some managers' configurations replaced."""
    cfg = task_spec("Cartpole").load_env_cfg()
    cfg.launch.mode = mode
    for name, value in fields.items():
        assert hasattr(cfg, name), name
        setattr(cfg, name, value)
    return make("Cartpole", cfg=cfg, frontend=frontend, num_envs=num_envs, device=device)


def policy(**terms: ObservationTermCfg) -> dict[str, ObservationGroupCfg]:
    """Return one observation group, with corruption."""
    return {"policy": ObservationGroupCfg(terms=terms, enable_corruption=True)}


def run(env, steps: int, seed: int = 0) -> dict[str, torch.Tensor]:
    """Reset, step with random actions, and return what every step returned, stacked."""
    generator = torch.Generator().manual_seed(seed)
    obs, _ = env.reset(seed=seed)
    rows = {"observation": [obs["policy"]], "reward": [], "terminated": [], "truncated": []}
    for _ in range(steps):
        action = torch.rand(env.num_envs, env.num_actions, generator=generator) * 2.0 - 1.0
        obs, reward, terminated, truncated, _ = env.step(action.to(env.device))
        rows["observation"].append(obs["policy"].clone())
        rows["reward"].append(reward.clone())
        rows["terminated"].append(terminated.clone())
        rows["truncated"].append(truncated.clone())
    return {name: torch.stack(values) for name, values in rows.items()}


def ramp(env) -> torch.Tensor:
    """Three columns that tell environment, column and age: 100 env + 10 column + age."""
    rows = torch.arange(env.num_envs, device=env.device)[:, None] * 100.0
    columns = torch.arange(3, device=env.device)[None, :] * 10.0
    return rows + columns + env.episode_length_buf[:, None]


@warp_twin(ramp)
def _(env: int, state: EnvState, out: wp.array[float]):
    for i in range(3):
        out[i] = float(100 * env + 10 * i + state.episode_length[env])


def cart(env, gain: float = 1.0, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Position of the first joint times a gain."""
    return gain * env.scene[asset_cfg.name].data.torch.joint_pos[:, 0]


@warp_twin(cart)
def _(env: int, asset: ArticulationState, gain: float) -> float:
    return gain * asset.joint_pos[env, 0]


def without_twin(env, scale: float = 1.0) -> torch.Tensor:
    """A term in torch only."""
    return scale * env.scene["robot"].data.torch.joint_vel[:, 0]


class counter(ManagerTermBase):
    """Counts its calls in an episode, in steps of a size."""

    def __init__(self, cfg, env):
        super().__init__(cfg, env)
        self.count = wp.zeros(env.num_envs, dtype=float, device=env.device)
        self._view = wp.to_torch(self.count)

    def reset(self, env_mask):
        """Start again."""
        self._view.masked_fill_(env_mask, 0.0)

    def __call__(self, env, size: float = 1.0):
        """Count."""
        self._view.add_(size)
        return self._view.clone()


@wp.func
def restart_counter(env: int, count: wp.array[float]):
    """Start again."""
    count[env] = 0.0


@warp_twin(counter, reset=restart_counter)
def _(env: int, count: wp.array[float], size: float) -> float:
    count[env] = count[env] + size
    return count[env]
