"""rsl_rl's on-policy runner with Treadle's checkpoints, iteration numbers, interruption and output."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from rsl_rl.runners import OnPolicyRunner

import treadle
from treadle.errors import ConfigError, TreadleError
from treadle.rl import checkpoint as ckpt
from treadle.rl.health import bad_losses, bad_parameters, diverged, environment_fault
from treadle.rl.interrupt import StopRequest, StopTraining
from treadle.rl.logger import Progress, TreadleLogger, prints_to_log, writer_threads_fail_silently
from treadle.rl.plain import from_json, to_json
from treadle.rl.random_states import random_states, restore_env_random_state, restore_random_states

if TYPE_CHECKING:
    from treadle.rl.wrapper import RslRlVecEnvWrapper
    from treadle.rl_cfg import OnPolicyRunnerCfg

__all__ = ["TreadleRunner"]

_log = logging.getLogger(__name__)


class TreadleRunner(OnPolicyRunner):
    """Trains a policy.

    Iterations are numbered from 0 and no number is used twice: after ``load``, ``learn`` goes on with the number after
    the loaded one. (rsl_rl makes the loaded iteration again under the same number.)

    Args:
        env: The environment.
        agent_cfg: The learner's configuration.
        task: Id of the task, for checkpoints.
        run_dir: Directory of the logs and checkpoints; ``None`` writes neither.

    Raises:
        ConfigError: The configuration does not fit the environment.
    """

    env: RslRlVecEnvWrapper
    logger: TreadleLogger

    def __init__(
        self, env: RslRlVecEnvWrapper, agent_cfg: OnPolicyRunnerCfg, *, task: str, run_dir: Path | None = None
    ):
        agent_cfg.validate()
        _check_fit(env, agent_cfg)
        self.agent_cfg = agent_cfg
        self.task = task
        self.num_completed = 0
        """Iterations completed, also those before the loaded checkpoint."""
        self.interrupted = False
        """Whether the last ``learn`` was ended by a signal."""
        self.last_checkpoint: Path | None = None
        """The checkpoint written last."""
        self._good_checkpoint: Path | None = None
        self.on_progress: Callable[[Progress], None] | None = None
        """Called after each iteration."""
        env.num_steps_per_env = agent_cfg.num_steps_per_env
        log_dir = None if run_dir is None else str(run_dir)
        with prints_to_log():
            super().__init__(env, agent_cfg.to_rsl_rl(), log_dir, env.device)
        self.logger = TreadleLogger(
            log_dir=log_dir,
            cfg=self.cfg,
            env_cfg=env.cfg,
            num_envs=env.num_envs,
            is_distributed=self.is_distributed,
            gpu_world_size=self.gpu_world_size,
            gpu_global_rank=self.gpu_global_rank,
            device=self.device,
        )
        self.logger.on_iteration = self._on_iteration

    def learn(self, num_learning_iterations: int, init_at_random_ep_len: bool = False) -> None:
        """Make ``num_learning_iterations`` more iterations.

        The first SIGINT, SIGTERM or SIGHUP ends the rollout at the next step, where the networks are those of the last
        complete iteration, writes a checkpoint of it and returns with ``interrupted`` set.

        Raises:
            KeyboardInterrupt: A second signal came. Checkpoints on disk are unharmed.
            DivergedError: A loss or a parameter is not finite.
            NonFiniteError: The environment returned something that is not finite.
        """
        self.interrupted = False
        completed_before = self.current_learning_iteration = self.num_completed
        self.env.begin_rollout()
        try:
            with StopRequest() as stop, writer_threads_fail_silently():
                self.env.before_step = stop.check
                try:
                    super().learn(num_learning_iterations, init_at_random_ep_len)
                except StopTraining:
                    self.interrupted = True
                    self.alg.storage.clear()
                    self.alg.transition.clear()
                    if self.num_completed > completed_before and self.logger.log_dir is not None:
                        self.save(os.path.join(self.logger.log_dir, f"model_{self.num_completed - 1}.pt"))
                except (RuntimeError, ValueError) as error:
                    # Sampling from a policy that is not finite fails in torch, with words about a distribution.
                    if cause := self._find_cause(bad_parameters(self.alg)):
                        raise cause from error
                    raise
        finally:
            self.env.before_step = None
            self.logger.stop_logging_writer()

    def save(self, path: str, infos: dict[str, Any] | None = None) -> None:
        """Write a checkpoint of the iteration that was completed last.

        Args:
            path: File to write.
            infos: Not stored; a checkpoint has its own fields.

        Raises:
            CheckpointError: The file cannot be written.
            DivergedError: A parameter is not finite. Nothing is written.
        """
        if bad := bad_parameters(self.alg):
            raise diverged(bad, self.num_completed, self._good_checkpoint)
        env = self.env.unwrapped
        ckpt.save(
            Path(path),
            ckpt.Checkpoint(
                treadle_version=treadle.__version__,
                task=self.task,
                frontend=env.task_frontend,
                iteration=self.num_completed - 1,
                env_cfg=to_json(env.cfg),
                agent_cfg=to_json(self.agent_cfg),
                num_observations=dict(env.num_observations),
                num_actions=env.num_actions,
                algorithm=self.alg.save(),
                total_timesteps=int(self.logger.tot_timesteps),
                total_time=float(self.logger.tot_time),
                seed=int(env.cfg.seed),
                rng=random_states(env, self.device),
            ),
        )
        self.last_checkpoint = self._good_checkpoint = Path(path)
        self.logger.save_model(path, self.current_learning_iteration)

    def load(
        self, path: str, load_cfg: dict[str, bool] | None = None, strict: bool = True, map_location: str | None = None
    ) -> dict[str, Any]:
        """Load a checkpoint to train on from it.

        A learning rate that differs from the one in the checkpoint's configuration is a new choice and is used;
        otherwise the one that the schedule had reached is. The environment is reset and goes on with the random numbers
        of the checkpoint; where that is not possible, it is seeded anew, with a warning.

        Args:
            path: A checkpoint file or a run directory.
            load_cfg: Which parts to load, as in rsl_rl; all when ``None``.
            strict: Whether the networks must match exactly.
            map_location: Not used; a checkpoint is read on the CPU and copied into the networks.

        Returns:
            An empty dictionary, for rsl_rl's sake.

        Raises:
            CheckpointError: The checkpoint cannot be read or does not fit the task, the environment or the networks.
        """
        file = ckpt.find_checkpoint(Path(path))
        loaded = ckpt.load(file, task=self.task)
        ckpt.check_dimensions(file, loaded, self.env.unwrapped.num_observations, self.env.num_actions)
        stored = self._stored_cfg(file, loaded)
        wanted = self.agent_cfg.algorithm.optimizer
        if (load_cfg is None or load_cfg.get("optimizer")) and stored.algorithm.optimizer != wanted:
            raise ckpt.CheckpointError(
                f"checkpoint {file} holds the state of optimizer {stored.algorithm.optimizer!r}, and "
                f"agent.algorithm.optimizer is {wanted!r}; allowed with this checkpoint: {stored.algorithm.optimizer!r}"
            )
        try:
            load_iteration = self.alg.load(loaded.algorithm, load_cfg, strict)
        except (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError) as error:
            _log.debug("rsl_rl could not load %s", file, exc_info=True)
            raise ckpt.CheckpointError(
                f"the networks in checkpoint {file} differ from the configured ones; configure them as there"
            ) from error
        if bad := bad_parameters(self.alg):
            raise ckpt.CheckpointError(f"checkpoint {file} has values that are not finite in {', '.join(bad[:3])}")
        self._good_checkpoint = file
        if load_iteration:
            self.num_completed = loaded.iteration + 1
            self.current_learning_iteration = loaded.iteration
            self.logger.tot_timesteps = loaded.total_timesteps
            self.logger.tot_time = loaded.total_time
            self._restore_random_states(loaded)
        self._apply_new_learning_rate(stored)
        return {}

    def _stored_cfg(self, file: Path, loaded: ckpt.Checkpoint) -> OnPolicyRunnerCfg:
        try:
            return from_json(loaded.agent_cfg, self.agent_cfg)
        except ConfigError as error:
            raise ckpt.CheckpointError(f"the agent_cfg in checkpoint {file} cannot be read: {error}") from error

    def _restore_random_states(self, loaded: ckpt.Checkpoint) -> None:
        env = self.env.unwrapped
        # Another seed than that of the first run, whose draws it would repeat.
        fresh_seed = (int(env.cfg.seed) + self.num_completed) % 2**31
        reason = restore_env_random_state(env, loaded.rng, fresh_seed)
        restore_random_states(loaded.rng, self.device)
        if reason is not None:
            _log.warning("%s: the environments are seeded with %d", reason, fresh_seed)

    def _apply_new_learning_rate(self, stored: OnPolicyRunnerCfg) -> None:
        wanted = self.agent_cfg.algorithm.learning_rate
        if wanted != stored.algorithm.learning_rate:
            self.alg.learning_rate = wanted
            for group in self.alg.optimizer.param_groups:
                group["lr"] = wanted

    def _find_cause(self, bad: list[str]) -> TreadleError | None:
        """Return the error to raise when numbers of the iteration under way are bad, ``None`` if none are."""
        with torch.inference_mode():
            fault = environment_fault(self.alg, self.env.get_observations())
        if fault is not None:
            return fault
        return diverged(bad, self.num_completed + 1, self._good_checkpoint) if bad else None

    def _on_iteration(self, progress: Progress) -> None:
        if self.agent_cfg.check_for_nan and (bad := bad_losses(progress.losses)) and (cause := self._find_cause(bad)):
            raise cause
        self.num_completed = progress.iteration
        if self.on_progress is not None:
            self.on_progress(progress)


def _check_fit(env: RslRlVecEnvWrapper, cfg: OnPolicyRunnerCfg) -> None:
    """Check what rsl_rl would fail on later, or not at all."""
    groups = env.unwrapped.num_observations
    problems = [
        f"agent.{name}.obs_groups has {group!r}; allowed: {', '.join(sorted(groups))}"
        for name, model in (("actor", cfg.actor), ("critic", cfg.critic))
        for group in model.obs_groups
        if group not in groups
    ]
    batch = env.num_envs * cfg.num_steps_per_env
    least = max(2, cfg.algorithm.num_mini_batches)
    if batch < least:
        problems.append(
            f"an iteration has {env.num_envs} environments x {cfg.num_steps_per_env} steps = {batch} samples; "
            f"allowed: at least {least} (2, and one per mini-batch)"
        )
    if problems:
        raise ConfigError.from_problems(problems)
