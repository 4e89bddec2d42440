"""A small environment in plain torch for tests of the learner: a point mass that is pushed towards a target.

It has the interface of ``treadle.envs.DirectEnv`` and needs neither Warp nor a physics engine. Its episodes end early
when the point leaves the arena.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from treadle.envs import DirectEnvCfg
from treadle.registry import TaskSpec, register
from treadle.rl_cfg import ActorModelCfg, MLPModelCfg, OnPolicyRunnerCfg, PPOAlgorithmCfg

ARENA = 2.0
TASK = "Test-PointMass"
WIDE_TASK = "Test-PointMass-Wide"


@dataclass(kw_only=True)
class PointMassEnvCfg(DirectEnvCfg):
    """The point mass."""

    decimation: int = 1
    episode_length_s: float = 20.0 / 120.0
    push: float = 0.3
    """Distance that a full action moves the point per step [m]."""
    extra_observations: int = 0
    """Useless observations, to make another width."""
    fail_at_step: int = -1
    """Step whose observation is not a number."""
    bad_reward_at_step: int = -1
    """Step whose reward is infinite."""

    def __post_init__(self) -> None:
        self.scene.robot.asset_path = "none"
        if self.scene.num_envs == 4096:
            self.scene.num_envs = 16


@dataclass(kw_only=True)
class WidePointMassEnvCfg(PointMassEnvCfg):
    """The point mass with more observations."""

    extra_observations: int = 3


@dataclass(kw_only=True)
class PointMassRunnerCfg(OnPolicyRunnerCfg):
    """A learner that is done in seconds."""

    num_steps_per_env: int = 10
    max_iterations: int = 3
    save_interval: int = 2
    actor: ActorModelCfg = field(default_factory=lambda: ActorModelCfg(hidden_dims=(16, 16), obs_normalization=True))
    critic: MLPModelCfg = field(default_factory=lambda: MLPModelCfg(hidden_dims=(16, 16)))
    algorithm: PPOAlgorithmCfg = field(default_factory=lambda: PPOAlgorithmCfg(num_learning_epochs=4))


class PointMassEnv:
    """Observations: position, target, both shape (num_envs, 2). Actions: velocity, shape (num_envs, 2)."""

    task_frontend = "torch"

    def __init__(self, cfg: PointMassEnvCfg):
        cfg.validate()
        self.cfg = cfg
        self.num_envs = cfg.scene.num_envs
        self.device = "cpu"
        self.num_actions = 2
        self.num_observations = {"policy": 4 + cfg.extra_observations}
        self.max_episode_length = cfg.max_episode_length
        self.step_dt = cfg.step_dt
        self.closed = False
        self.num_steps = 0
        self.num_log_reads = 0
        self._generator = torch.Generator()
        self._pos = torch.zeros(self.num_envs, 2)
        self._target = torch.zeros(self.num_envs, 2)
        self._episode_length = torch.zeros(self.num_envs, dtype=torch.int32)
        self._episode_return = torch.zeros(self.num_envs)
        self._log: dict[str, list[float]] = {}
        self._generator.manual_seed(cfg.seed)
        self.reset()

    @property
    def episode_length_buf(self) -> torch.Tensor:
        return self._episode_length

    @episode_length_buf.setter
    def episode_length_buf(self, value: torch.Tensor) -> None:
        self._episode_length.copy_(value)

    @property
    def observations(self) -> dict[str, torch.Tensor]:
        extra = torch.zeros(self.num_envs, self.cfg.extra_observations)
        obs = torch.cat((self._pos, self._target, extra), dim=-1)
        if self.num_steps == self.cfg.fail_at_step:
            obs[0, 0] = float("nan")
        return {"policy": obs}

    def reset(self, seed: int | None = None) -> tuple[dict[str, torch.Tensor], dict]:
        if seed is not None:
            self._generator.manual_seed(seed)
        self._reset(torch.ones(self.num_envs, dtype=torch.bool))
        return self.observations, {}

    def step(self, actions: torch.Tensor):
        self.num_steps += 1
        self._pos += self.cfg.push * actions.clamp(-1.0, 1.0)
        self._episode_length += 1
        terminated = self._pos.abs().amax(dim=-1) > ARENA
        truncated = (self._episode_length >= self.max_episode_length) & ~terminated
        reward = 1.0 - torch.linalg.vector_norm(self._pos - self._target, dim=-1) - 5.0 * terminated
        if self.num_steps == self.cfg.bad_reward_at_step:
            reward[0] = float("inf")
        self._episode_return += reward
        done = terminated | truncated
        for key, values in (
            ("Episode_Reward/total", self._episode_return[done]),
            ("Episode_Termination/time_out", truncated[done].float()),
        ):
            self._log.setdefault(key, []).extend(values.tolist())
        self._reset(done)
        return self.observations, reward, terminated, truncated, {}

    def pop_episode_log(self) -> dict[str, float]:
        self.num_log_reads += 1
        log = {key: sum(values) / len(values) for key, values in self._log.items() if values}
        self._log.clear()
        return log

    def launch_report(self) -> str:
        return "launch: eager (no kernels)" if self.num_steps == 0 else "launch: eager (still no kernels)"

    def close(self) -> None:
        self.closed = True

    def _reset(self, mask: torch.Tensor) -> None:
        fresh = torch.rand(self.num_envs, 4, generator=self._generator) * 2.0 - 1.0
        self._pos[mask], self._target[mask] = fresh[mask, :2], fresh[mask, 2:]
        self._episode_length[mask] = 0
        self._episode_return[mask] = 0.0


def register_tasks() -> None:
    """Register the tasks of this module, which has to be importable as ``point_mass``."""
    for task, cfg in ((TASK, "PointMassEnvCfg"), (WIDE_TASK, "WidePointMassEnvCfg")):
        register(
            TaskSpec(
                task_id=task,
                description="A point mass, for tests",
                env_cfg=f"point_mass:{cfg}",
                agent_cfg="point_mass:PointMassRunnerCfg",
                frontends={"torch": "point_mass:PointMassEnv", "warp": "point_mass:PointMassEnv"},
            )
        )
