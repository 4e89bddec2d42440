"""Direct environments, whose task is code rather than a set of terms."""

from __future__ import annotations

from typing import ClassVar

from treadle.envs.buffers import EnvBuffers
from treadle.envs.cfg import DirectEnvCfg
from treadle.envs.episode_log import EpisodeLog
from treadle.envs.kernels import (
    advance_counters,
    clear_episodes,
    finish_observations,
    finish_rewards,
    finish_terminations,
)
from treadle.envs.vector_env import VectorEnv
from treadle.launch import Stage

__all__ = ["DirectEnv"]


class DirectEnv(VectorEnv):
    """A batch of environments whose task is code rather than a set of terms.

    Use :class:`treadle.envs.DirectWarpEnv` or :class:`treadle.envs.DirectTorchEnv` as the base of a task. Both run
    the same steps in the same order, listed in :meth:`_stages`; they differ in how the stages of the task are computed.
    """

    cfg: DirectEnvCfg
    reward_terms: ClassVar[tuple[str, ...]]
    """Names of the reward terms, in the order of ``buffers.reward_terms``."""

    def _build(self) -> None:
        self.num_actions, self.num_observations = self._setup()
        self.buffers = EnvBuffers(
            self.num_envs, self.num_actions, self.num_observations, len(self.reward_terms), self.device
        )
        self.episode_log = EpisodeLog(self.reward_terms, self.cfg.episode_length_s, self.device)

    # -- what a task provides ---------------------------------------------------------------------------------------

    def _setup(self) -> tuple[int, dict[str, int]]:
        """Make buffers and :attr:`sensors` of the task; return the number of actions and of observations by group."""
        raise NotImplementedError

    def _process_actions(self) -> None:
        """Turn ``buffers.actions`` into targets of the robot, which hold for the whole environment step."""
        raise NotImplementedError

    def _compute_terminations(self) -> None:
        """Write ``buffers.terminated``. Time-outs and non-finite states are not the task's business."""
        raise NotImplementedError

    def _compute_rewards(self) -> None:
        """Write ``buffers.reward_terms``, weights included."""
        raise NotImplementedError

    def _reset_task(self) -> None:
        """Write the start state of the environments in ``physics.reset_mask``."""
        raise NotImplementedError

    def _compute_observations(self) -> None:
        """Write ``buffers.observations``."""
        raise NotImplementedError

    # -- the step ---------------------------------------------------------------------------------------------------

    def _stages(self) -> list[Stage]:
        """Return the steps of one environment step, in order. This list is the algorithm, for both frontends."""
        task = self._task_capture
        return [
            Stage("process actions", self._process_actions, task),
            Stage("physics", self._simulate),
            Stage("derived state", self._update_derived_state),
            Stage("counters", self._advance_counters),
            Stage("task terminations", self._compute_terminations, task),
            Stage("terminations", self._finish_terminations),
            Stage("task rewards", self._compute_rewards, task),
            Stage("rewards", self._finish_rewards),
            *self._reset_stages(),
            *self._observation_stages(),
        ]

    def _reset_stages(self) -> list[Stage]:
        """Return the steps that restart the environments in ``physics.reset_mask``, in order."""
        return [
            Stage("reset", self._clear_episodes),
            Stage("task reset", self._reset_task, self._task_capture),
            Stage("physics reset", self.physics.reset),
            Stage("derived state after reset", self._update_after_reset),
        ]

    def _observation_stages(self) -> list[Stage]:
        """Return the steps that compute the observations, in order."""
        return [
            Stage("task observations", self._compute_observations, self._task_capture),
            Stage("observations", self._finish_observations),
        ]

    _task_capture: ClassVar[bool | str] = True
    """Whether the stages that a task provides can be captured, else the reason why not."""

    def _advance_counters(self) -> None:
        physics, buffers = self.physics, self.buffers
        self._launch_per_env(
            advance_counters,
            [buffers.actions, physics.joint_q, physics.joint_qd, physics.body_parent_f],
            [
                buffers.episode_length,
                buffers.steps_taken,
                buffers.common_step,
                buffers.bad_observation,
                physics.bad_measurement,
                buffers.non_finite,
            ],
        )

    def _finish_terminations(self) -> None:
        buffers = self.buffers
        self._launch_per_env(
            finish_terminations,
            [buffers.non_finite, buffers.episode_length, self.max_episode_length],
            [buffers.terminated, buffers.truncated, self.physics.reset_mask],
        )

    def _finish_rewards(self) -> None:
        buffers, outputs = self.buffers, self.buffers.outputs
        self._launch_per_env(
            finish_rewards,
            [buffers.common_step, buffers.episode_length, buffers.steps_taken],
            [
                buffers.reward_terms,
                buffers.reward,
                buffers.episode_sums,
                buffers.non_finite_terms,
                buffers.non_finite,
                buffers.terminated,
                buffers.truncated,
                self.physics.reset_mask,
                outputs.reward,
                outputs.terminated,
                outputs.truncated,
                self.episode_log.sums,
            ],
        )

    def _clear_episodes(self) -> None:
        buffers = self.buffers
        self._launch_per_env(
            clear_episodes,
            [self.physics.reset_mask],
            [buffers.episode_length, buffers.steps_taken, buffers.episode_sums, buffers.actions],
        )

    def _finish_observations(self) -> None:
        buffers = self.buffers
        for group, array in buffers.observations.items():
            published = buffers.outputs.observations[group]
            self._launch_per_env(
                finish_observations,
                [buffers.phase, buffers.common_step],
                [array, buffers.bad_observation, published],
                site=group,
            )
