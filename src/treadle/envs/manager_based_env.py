"""Environments that are sets of terms."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import torch
import warp as wp

from treadle.assets.articulation_data import torch_view
from treadle.envs.buffers import ManagerBuffers
from treadle.envs.episode_log import EpisodeLog
from treadle.envs.kernels import seed_random_state
from treadle.envs.manager_based_cfg import ManagerBasedRLEnvCfg
from treadle.envs.manager_kernels import ManagerKernels
from treadle.envs.vector_env import VectorEnv
from treadle.launch import Stage, torch_stream
from treadle.managers.action_manager import ActionManager
from treadle.managers.command_manager import CommandManager
from treadle.managers.curriculum_manager import CurriculumManager
from treadle.managers.env_state import EnvState
from treadle.managers.event_manager import EventManager
from treadle.managers.frontend import adapt_to_warp
from treadle.managers.manager import TORCH_CODE
from treadle.managers.observation_manager import ObservationManager
from treadle.managers.recorder_manager import RecorderManager
from treadle.managers.reward_manager import RewardManager
from treadle.managers.termination_manager import TerminationManager

__all__ = ["ManagerBasedRLEnv", "ManagerBasedTorchEnv", "ManagerBasedWarpEnv"]


_DURING_STEPS = ("reset", "interval")
"""Modes of the events that happen within a step."""

_STARTUP_STREAM = 0x2545F491
"""What the seed is combined with for the numbers that events draw at the start, which no episode draws again."""


class ManagerBasedRLEnv(VectorEnv):
    """A batch of environments whose task is a configuration of terms.

    Use :class:`ManagerBasedWarpEnv`, which fuses the terms of a manager into one kernel, or
    :class:`ManagerBasedTorchEnv`, which calls their torch forms. Accounting, noise, history, weights and sums are the
    same kernels in both.
    """

    cfg: ManagerBasedRLEnvCfg
    buffers: ManagerBuffers
    state_struct: ClassVar[Any] = EnvState
    """Type of :attr:`state`."""
    _is_resetting = False

    def _build(self) -> None:
        cfg = self.cfg
        self.event_manager = EventManager(cfg.events, self)
        self.command_manager = CommandManager(cfg.commands, self)
        self.action_manager = ActionManager(cfg.actions, self)
        self.termination_manager = TerminationManager(cfg.terminations, self)
        self.reward_manager = RewardManager(cfg.rewards, self)
        self.observation_manager = ObservationManager(cfg.observations, self)
        self.curriculum_manager = CurriculumManager(cfg.curriculum, self)
        self.num_actions = self.action_manager.total_action_dim
        self.buffers = ManagerBuffers(
            self.num_envs, self.num_actions, {}, len(self.reward_manager.active_terms), self.device
        )
        self.physics.moved_mask = self.buffers.moved_mask
        self._ended = torch.zeros(self.num_envs, dtype=torch.bool, device=self.device)
        """Environments that ended in the last step and were reset from outside since, bool, shape (num_envs,)."""
        self.state = self._make_state()
        """The environments' state as one argument of a kernel."""
        self._make_terms()
        self._follow_sizes()
        self.kernels = ManagerKernels(self)
        """The generated kernels."""
        self.event_manager.run_once("startup")
        self.recorder_manager = RecorderManager(cfg.recorders, self)

    def _make_terms(self) -> None:
        self.scene.update()
        seed_launch = [self.cfg.seed ^ _STARTUP_STREAM], [self.buffers.random_state]
        wp.launch(seed_random_state, self.num_envs, *seed_launch, device=self.device)
        self.command_manager.make()
        self.action_manager.make()
        self.event_manager.make()
        self.event_manager.run_once("prestartup")
        self.termination_manager.make()
        self.reward_manager.make()
        self.observation_manager.make()
        self.curriculum_manager.make()

    def _make_state(self) -> EnvState:
        state = EnvState()
        for name in vars(EnvState)["vars"]:
            if isinstance(array := getattr(self.buffers, name, None), wp.array):
                setattr(state, name, array)
        state.reset_mask = self.physics.reset_mask
        state.termination_terms = self.termination_manager.values
        state.env_origins = self.scene.env_origins
        state.step_dt = self.step_dt
        state.max_episode_length = self.max_episode_length
        return state

    def _logged_means(self) -> list[str]:
        terms = [f"Episode_Termination/{name}" for name in self.termination_manager.active_terms]
        return [*terms, *self.command_manager.metrics]

    # -- the step ---------------------------------------------------------------------------------------------------

    def _stages(self) -> list[Stage]:
        """Return the steps of one environment step, in order. This list is the algorithm, for both frontends."""
        return [
            self._kernel_stage("begin step"),
            *self.action_manager.stages(),
            Stage("physics", self._simulate, TORCH_CODE if self.action_manager.torch_apply_terms else True),
            Stage("derived state", self._update_derived_state),
            *self._term_stages(self.termination_manager),
            self._kernel_stage("terminations"),
            *self._term_stages(self.reward_manager),
            self._kernel_stage("rewards"),
            *self._reset_stages(),
            *self._observation_stages(),
        ]

    def _reset_stages(self) -> list[Stage]:
        """Return the steps that restart the environments in ``physics.reset_mask``, in order."""
        stages = self.recorder_manager.stages_before_reset()
        for index, (uses_warp, names) in enumerate(self.event_manager.segments()):
            stages.append(self._kernel_stage(f"reset {index}") if uses_warp else self.event_manager.torch_stage(names))
        if self.event_manager.model_changes(*_DURING_STEPS):
            stages.append(Stage("model changes", self._apply_model_changes))
        stages += [
            Stage("physics reset", self.physics.reset),
            Stage("derived state after reset", self._update_after_reset),
        ]
        if any(manager.has_torch_state for manager in self._resettable):
            stages.append(Stage("resets in torch", self._reset_torch, TORCH_CODE))
        if "after reset" in self.kernels.by_name:
            stages.append(self._kernel_stage("after reset"))
        return [*stages, *self.command_manager.stages(), *self.recorder_manager.stages_after_reset()]

    def _observation_stages(self) -> list[Stage]:
        """Return the steps that compute the observations, in order."""
        stages = []
        for name, group in self.observation_manager.groups.items():
            stages += [*self._term_stages(group), self._kernel_stage(f"observations {name}")]
        return stages

    def _apply_model_changes(self) -> None:
        self.physics.apply_properties(self.event_manager.model_changes(*_DURING_STEPS))

    def _term_stages(self, manager: Any) -> list[Stage]:
        """Return the stages of the terms that are computed before the manager's kernel: in torch, with more threads."""
        threaded = [self._kernel_stage(f"{manager.kind}.{name}") for name in manager.threaded_terms]
        return [*manager.stages(), *threaded]

    def _kernel_stage(self, name: str) -> Stage:
        return Stage(name, lambda: self.kernels.launch(name))

    def _before_step(self, actions: torch.Tensor) -> None:
        if self.curriculum_manager.active_terms:
            self.curriculum_manager.compute(self.reset_mask | self._ended)
            self._ended.zero_()
        self.buffers.torch.action_input.copy_(actions)
        self.recorder_manager.begin_step()

    def _simulate(self) -> None:
        for _ in range(self.cfg.decimation):
            if "apply actions" in self.kernels.by_name:
                self.kernels.launch("apply actions")
            for term in self.action_manager.torch_apply_terms:
                term.apply_actions()
            self.robot.write_targets_to_sim()
            self.physics.step()
            self.scene.after_physics_step()

    @property
    def _resettable(self) -> list[Any]:
        groups = self.observation_manager.groups.values()
        return [self.action_manager, self.reward_manager, self.termination_manager, *groups]

    def _reset_torch(self) -> None:
        for manager in self._resettable:
            manager.reset_torch(self.reset_mask)

    # -- changes at run time ----------------------------------------------------------------------------------------

    def rebuild(self, manager: Any, reason: str) -> None:
        """Make a manager's terms and the kernels that hold them anew, and capture its graphs again.

        Buffers whose sizes change are made anew too: the history of an observation is zero then until the next reset.
        Where something is not allowed, the environment stays as it is; the manager puts itself back.

        Args:
            manager: The manager.
            reason: Why; kept in the invalidations of the scopes.
        """
        with self.scope.exclusive(), torch_stream(self.device), torch.inference_mode(False):
            restore = self._save_buffers()
            try:
                manager.make()
                self._follow_sizes()
                replaced = self.kernels.build()
            except Exception:
                restore()
                raise
            for scope in dict.fromkeys((manager.scope, *replaced)):
                scope.invalidate(reason)
            stages = self._stages()
            if [stage.name for stage in stages] != [stage.name for stage in self.pipeline.stages]:
                self.pipeline = self.scope.pipeline(stages)

    def _follow_sizes(self) -> None:
        """Make the buffers that have another size than the managers' terms, and the log where its names differ."""
        sizes, before = self.observation_manager.group_obs_dim, getattr(self, "num_observations", {})
        self.buffers.add_observations({name: n for name, n in sizes.items() if before.get(name) != n})
        self.num_observations = sizes
        for name, group in self.observation_manager.groups.items():
            self.buffers.outputs.arrange(name, group.arrange)
        rewards = self.reward_manager.active_terms
        if len(rewards) != self.buffers.reward_terms.shape[1]:
            self.buffers.set_reward_terms(len(rewards))
        log = EpisodeLog(rewards, self.cfg.episode_length_s, self.device, self._logged_means())
        if not hasattr(self, "episode_log") or self.episode_log.names != log.names:
            self.episode_log = log

    def _save_buffers(self) -> Callable[[], None]:
        """Return a function that puts buffers, sizes and the log back to those of now."""
        owners = (self.buffers, self.buffers.torch, self.buffers.outputs)
        before = [
            (owner, {k: copy.copy(v) if isinstance(v, dict) else v for k, v in vars(owner).items()}) for owner in owners
        ]
        sets = [dict(views) for views in self.buffers.outputs.observation_sets]
        sizes, log = self.num_observations, self.episode_log

        def restore() -> None:
            for owner, values in before:
                vars(owner).clear()
                vars(owner).update(values)
            self.buffers.outputs.observation_sets = sets
            self.num_observations, self.episode_log = sizes, log

        return restore

    def _before_reset(self) -> None:
        self._ended.logical_or_(self.reset_mask)

    def _abort_step(self) -> None:
        self.recorder_manager.abort_step()

    @contextlib.contextmanager
    def only_observed(self, instance: Any) -> Iterator[None]:
        """While :meth:`reset` runs, put the state of a class term in the environments that are not reset back.

        Args:
            instance: The term, ``None`` for one without a state.
        """
        if instance is None or not self._is_resetting:
            yield
            return
        saved = [(view, view.clone()) for view in self._rows_of(instance)]
        yield
        for view, before in saved:
            mask = self.reset_mask.reshape(-1, *[1] * (view.dim() - 1))
            view.copy_(torch.where(mask, view, before))

    @contextlib.contextmanager
    def unchanged(self, instance: Any) -> Iterator[None]:
        """Put the state of a class term, ``None`` for one without, and all random numbers back afterwards."""
        views = [] if instance is None else self._rows_of(instance)
        saved = [(view, view.clone()) for view in (*views, self.buffers.torch.random_state)]
        yield
        for view, before in saved:
            view.copy_(before)

    def _rows_of(self, instance: Any) -> list[torch.Tensor]:
        """Return the attributes of a term that have a row per environment."""
        views = [torch_view(value) if isinstance(value, wp.array) else value for value in vars(instance).values()]
        return [v for v in views if isinstance(v, torch.Tensor) and v.dim() and v.shape[0] == self.num_envs]

    def _run_reset(self) -> None:
        self._is_resetting = True
        self.termination_manager.clear(self.reset_mask)
        try:
            super()._run_reset()
        finally:
            self._is_resetting = False

    def seed(self, seed: int) -> None:
        """Seed the environments' random numbers, and those of timers that they share."""
        super().seed(seed)
        with self.scope.exclusive(), torch_stream(self.device):
            self.event_manager.seed(seed)

    # -- what a learner reads ---------------------------------------------------------------------------------------

    @property
    def reward_terms(self) -> tuple[str, ...]:
        """Names of the reward terms, in the order of ``buffers.reward_terms``."""
        return tuple(self.reward_manager.active_terms)

    @property
    def observations(self) -> dict[str, Any]:
        """Copies of the current observations by group; see :class:`ObservationGroupCfg` for their shapes."""
        result: dict[str, Any] = {}
        for name, group in self.observation_manager.groups.items():
            values = self.buffers.observation_views[name].clone()
            result[name] = group.arrange(values)
        return result

    def close(self) -> None:
        """Write what is recorded, and drop graphs and recorded launches; closing it again does nothing."""
        self.recorder_manager.close()
        super().close()

    def pop_episode_log(self) -> dict[str, float]:
        """Return means over the episodes that ended since the last call, and what the curriculum terms returned."""
        log = super().pop_episode_log()
        return log | self.curriculum_manager.log() if log else log


class ManagerBasedWarpEnv(ManagerBasedRLEnv):
    """A manager-based environment whose terms are fused into Warp kernels."""

    task_frontend: ClassVar[str] = "warp"

    def _adapt(self, cfg: ManagerBasedRLEnvCfg) -> ManagerBasedRLEnvCfg:
        adapted = copy.deepcopy(cfg)
        adapt_to_warp(adapted)
        return adapted


class ManagerBasedTorchEnv(ManagerBasedRLEnv):
    """A manager-based environment whose terms are computed by their torch forms."""

    task_frontend: ClassVar[str] = "torch"
