"""The options of ``treadle train``, ``treadle play`` and ``treadle explain``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from treadle.envs import EnvCfg
from treadle.rl_cfg import OnPolicyRunnerCfg

__all__ = ["ExplainOptions", "PlayOptions", "TrainOptions"]


def _never_none() -> Any:
    """Mark an option whose ``None`` only says that it was not given, so that the help shows its type alone."""
    import tyro

    return tyro.conf.DisallowNone


def _switch() -> Any:
    """Mark an option that is given or not, without a form that says no."""
    import tyro

    return tyro.conf.FlagCreatePairsOff


@dataclass(kw_only=True)
class _CommonOptions:
    """Options of every command that makes an environment."""

    frontend: Annotated[Literal["warp", "torch"] | None, _never_none()] = None
    """Frontend that computes the task. Default: warp, or the one that the checkpoint was trained with."""
    device: Annotated[str | None, _never_none()] = None
    """auto, cpu, cuda or cuda:N. Short for --env.sim.device."""
    seed: Annotated[int | None, _never_none()] = None
    """Seed of the environment and of the learner."""
    launch_mode: Annotated[Literal["eager", "replay", "graph", "auto"] | None, _never_none()] = None
    """How kernels are launched. Short for --env.launch.mode."""
    launch_contract: Annotated[Literal["checked", "trusted", "debug"] | None, _never_none()] = None
    """How replayed launches verify their arguments. Short for --env.launch.contract."""
    allow_torch_terms: Annotated[bool, _switch()] = False
    """Warp frontend: terms without a Warp form run in torch, between graphs. Short for --env.allow-torch-terms."""


@dataclass(kw_only=True)
class TrainOptions(_CommonOptions):
    """Train a policy with PPO. Every field of the task's and of the learner's configuration is an option.

    --import MODULE, anywhere, imports a module that registers tasks first.
    """

    num_envs: Annotated[int | None, _never_none()] = None
    """Number of environments. Short for --env.scene.num-envs."""
    max_iterations: Annotated[int | None, _never_none()] = None
    """Iterations to make; with --resume, iterations to make in addition. Short for --agent.max-iterations."""
    log_dir: Annotated[str | None, _never_none()] = None
    """Run directory. Default: logs/rsl_rl/TASK/DATE_TIME[_RUN_NAME]."""
    run_name: Annotated[str | None, _never_none()] = None
    """Appended to the name of the default run directory."""
    resume: Annotated[str | None, _never_none()] = None
    """Go on from a checkpoint file or the newest one of a run directory; without a value, of --log-dir if that is
    given, else of the task's newest run. The configuration stored there is the default of all other options, except the
    device."""
    quiet: bool = False
    """Print no line per iteration."""
    env: EnvCfg = field(default_factory=EnvCfg)
    """Configuration of the environment."""
    agent: OnPolicyRunnerCfg = field(default_factory=OnPolicyRunnerCfg)
    """Configuration of the learner."""


@dataclass(kw_only=True)
class PlayOptions(_CommonOptions):
    """Play a trained policy, with the configuration that its checkpoint stores, and measure it.

    --import MODULE, anywhere, imports a module that registers tasks first.
    """

    checkpoint: Annotated[str | None, _never_none()] = None
    """Checkpoint file, or a run directory, whose newest checkpoint is taken. Required."""
    num_envs: int = 16
    """Number of environments."""
    num_episodes: Annotated[int | None, _never_none()] = None
    """Episodes to finish, shared evenly between the environments. Default: one in each environment."""
    num_steps: Annotated[int | None, _never_none()] = None
    """Environment steps to make, instead of a number of episodes."""
    stochastic: bool = False
    """Sample actions as in training instead of taking their mean."""
    json: bool = False
    """Print the result as JSON."""


@dataclass(kw_only=True)
class ExplainOptions(_CommonOptions):
    """Say how a task's step runs: which terms in which form, which stages from which graph, and what that costs.

    --import MODULE, anywhere, imports a module that registers tasks first.
    """

    num_envs: int = 16
    """Number of environments."""
    steps: int = 20
    """Environment steps to measure, after the first ones, which capture the graphs."""
    kernels: Annotated[str | None, _never_none()] = None
    """Print the generated source of a kernel too; without a value, of all."""
    json: bool = False
    """Print JSON."""
    env: EnvCfg = field(default_factory=EnvCfg)
    """Configuration of the environment."""
