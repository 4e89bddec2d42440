"""The options of ``treadle train`` and ``treadle play``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from treadle.envs import DirectEnvCfg
from treadle.rl_cfg import OnPolicyRunnerCfg

__all__ = ["PlayOptions", "TrainOptions"]


@dataclass(kw_only=True)
class _CommonOptions:
    """Options of every command that makes an environment."""

    frontend: Literal["warp", "torch"] | None = None
    """Frontend that computes the task. Default: warp, or the one that the checkpoint was trained with."""
    device: str | None = None
    """auto, cpu, cuda or cuda:N. Short for --env.sim.device."""
    seed: int | None = None
    """Seed of the environment and of the learner."""
    launch_mode: Literal["eager", "replay", "graph", "auto"] | None = None
    """How kernels are launched. Short for --env.launch.mode."""
    launch_contract: Literal["checked", "trusted", "debug"] | None = None
    """How replayed launches verify their arguments. Short for --env.launch.contract."""


@dataclass(kw_only=True)
class TrainOptions(_CommonOptions):
    """Train a policy with PPO. Every field of the task's and of the learner's configuration is an option.

    --import MODULE, anywhere, imports a module that registers tasks first.
    """

    num_envs: int | None = None
    """Number of environments. Short for --env.scene.num-envs."""
    max_iterations: int | None = None
    """Iterations to make; with --resume, iterations to make in addition. Short for --agent.max-iterations."""
    log_dir: str | None = None
    """Run directory. Default: logs/rsl_rl/TASK/DATE_TIME[_RUN_NAME]."""
    run_name: str | None = None
    """Appended to the name of the default run directory."""
    resume: str | None = None
    """Go on from a checkpoint file or the newest one of a run directory; without a value, of --log-dir if it has one,
    else of the task's newest run. The configuration stored there is the default of all other options, except the
    device."""
    quiet: bool = False
    """Print no line per iteration."""
    env: DirectEnvCfg = field(default_factory=DirectEnvCfg)
    """Configuration of the environment."""
    agent: OnPolicyRunnerCfg = field(default_factory=OnPolicyRunnerCfg)
    """Configuration of the learner."""


@dataclass(kw_only=True)
class PlayOptions(_CommonOptions):
    """Play a trained policy, with the configuration that its checkpoint stores, and measure it.

    --import MODULE, anywhere, imports a module that registers tasks first.
    """

    checkpoint: str | None = None
    """Checkpoint file, or a run directory, whose newest checkpoint is taken. Required."""
    num_envs: int = 16
    """Number of environments."""
    num_episodes: int | None = None
    """Episodes to finish, shared evenly between the environments. Default: one in each environment."""
    num_steps: int | None = None
    """Environment steps to make, instead of a number of episodes."""
    stochastic: bool = False
    """Sample actions as in training instead of taking their mean."""
    json: bool = False
    """Print the result as JSON."""
