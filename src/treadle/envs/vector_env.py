"""The runtime that all environments share: stepping, resets, seeds, observations and accounting."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import torch
import warp as wp

from treadle._frozen import frozen_copy
from treadle.assets.articulation_data import torch_view
from treadle.devices import resolve_device
from treadle.envs.buffers import EnvBuffers
from treadle.envs.cfg import EnvCfg
from treadle.envs.episode_log import EpisodeLog
from treadle.envs.kernels import draw_uniform, seed_random_state
from treadle.errors import ConfigError, TreadleError
from treadle.launch import LaunchMode, LaunchScope, Pipeline, PipelineTable, Stage, torch_stream
from treadle.managers.env_state import BYSTANDING, OBSERVED, STEPPING
from treadle.scene import Scene
from treadle.sensors import Sensor

if TYPE_CHECKING:
    import gymnasium

__all__ = ["VectorEnv"]

_logger = logging.getLogger(__name__)


class VectorEnv:
    """A batch of environments that step together: the base of direct and of manager-based environments.

    A subclass makes its buffers in :meth:`_build` and lists the stages of a step in :meth:`_stages`.

    What :meth:`step` returns lies in buffers that take turns: the next two steps do not write into it, the one after
    does. Clone what has to live longer. :meth:`reset` and :attr:`observations` return copies.

    Args:
        cfg: Configuration of the environment. ``env.cfg`` is a copy that can't be changed, because its values are part
            of captured graphs.

    Raises:
        ConfigError: The configuration has values that are not allowed; all are reported together.
    """

    task_frontend: ClassVar[str]
    """``"warp"`` or ``"torch"``."""
    num_actions: int
    """Size of an action."""
    num_observations: dict[str, int]
    """Size of each observation group."""
    buffers: EnvBuffers
    """Persistent buffers."""
    episode_log: EpisodeLog
    """Means over ended episodes."""

    def __init__(self, cfg: EnvCfg):
        cfg.validate()
        self.cfg = cfg = frozen_copy(self._adapt(cfg))
        self.device = resolve_device(cfg.sim.device)
        self.num_envs = cfg.scene.num_envs
        self.max_episode_length = cfg.max_episode_length
        self.step_dt = cfg.step_dt
        self._draws: dict[int, tuple[wp.array, torch.Tensor]] = {}
        name = type(self).__name__
        self.scope = LaunchScope(self.device, mode=cfg.launch.mode, contract=cfg.launch.contract, name=name)
        with torch_stream(self.device), torch.inference_mode(False):
            self.scene = Scene(cfg.scene, cfg.sim, self.scope)
            self.physics = self.scene.physics
            self.robot = self.scene.robot
            self._reset_mask = torch_view(self.physics.reset_mask)
            self._draw_mask = wp.zeros(self.num_envs, dtype=wp.bool, device=self.device)
            self._draw_mask_view = torch_view(self._draw_mask)
            self.sensors: list[Sensor] = list(self.scene.sensors.values())
            self._build()
        self.pipeline: Pipeline = self.scope.pipeline(self._stages())
        self.common_step_counter = 0
        """Steps since the start."""
        self._overflow_logged = 0
        self._overflow_warned = False
        self._warned_terms: set[str] = set()
        self._is_reset = self._is_closed = False
        self.seed(cfg.seed)

    def _adapt(self, cfg: Any) -> Any:
        """Return the configuration, or a copy that fits the frontend."""
        return cfg

    def _build(self) -> None:
        """Make what the task needs: :attr:`buffers`, :attr:`episode_log` and the sizes of actions and observations."""
        raise NotImplementedError

    def _stages(self) -> list[Stage]:
        """Return the steps of one environment step, in order."""
        raise NotImplementedError

    def _reset_stages(self) -> list[Stage]:
        """Return the steps that restart the environments in ``physics.reset_mask``, in order."""
        raise NotImplementedError

    def _observation_stages(self) -> list[Stage]:
        """Return the steps that compute the observations, in order."""
        raise NotImplementedError

    def step(
        self, actions: torch.Tensor
    ) -> tuple[dict[str, torch.Tensor], torch.Tensor, torch.Tensor, torch.Tensor, dict[str, Any]]:
        """Take one step in all environments. Those that end are reset within the step.

        Args:
            actions: float, shape (num_envs, num_actions), on the environment's device.

        Returns:
            Observations by group, shape (num_envs, size), of the new episode where one ended; reward, shape
            (num_envs,); terminated and truncated, bool, shape (num_envs,), never both; and an empty dictionary of
            extras.

        Raises:
            ConfigError: The actions have another shape, device or type.
            TreadleError: The environment is closed.
        """
        self._check_open()
        self._check_actions(actions)
        if not self._is_reset:
            self.reset()
        self.common_step_counter += 1
        try:
            with self.scope.exclusive(), torch_stream(self.device), torch.no_grad():
                self._before_step(actions)
                self.pipeline.run()
        except BaseException:  # the kernels may have counted the step, or not
            self.common_step_counter = int(self.buffers.common_step.numpy()[0])
            self._abort_step()
            raise
        return (*self.buffers.outputs.read(self.common_step_counter), {})

    def _abort_step(self) -> None:
        """Forget what was noted of a step that failed."""

    def _before_step(self, actions: torch.Tensor) -> None:
        """Take the actions over, before the stages run."""
        self.buffers.torch.actions.copy_(actions)

    def reset(
        self, seed: int | None = None, env_ids: Sequence[int] | torch.Tensor | None = None
    ) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
        """Reset all environments, or some. Episodes that this cuts short are not logged.

        Args:
            seed: Seeds the environments' random numbers first, of all environments.
            env_ids: Indices of the environments to reset; ``None`` for all.

        Returns:
            Observations by group, shape (num_envs, size), and an empty dictionary of extras.

        Raises:
            ConfigError: An index is not one of an environment.
            TreadleError: The environment is closed.
        """
        self._check_open()
        mask = self._mask_of(env_ids)
        if seed is not None:
            self.seed(seed)
        if not self._is_reset:
            mask.fill_(True)
        buffers = self.buffers
        with self.scope.exclusive(), torch_stream(self.device):
            for name in ("terminated", "truncated", "non_finite", "bad_observation"):
                getattr(buffers.torch, name).masked_fill_(mask, False)
            self._before_reset()
            self._reset_mask.copy_(mask)
            self._run_reset()
            self._reset_mask.zero_()
        self._is_reset = True
        return self.observations, {}

    def _before_reset(self) -> None:
        """Keep what :attr:`reset_mask` says of the last step, before it is overwritten."""

    def _run_reset(self) -> None:
        """Reset the environments in :attr:`reset_mask`, and observe them."""
        phase = self.buffers.torch.phase
        phase.copy_(torch.where(self._reset_mask, OBSERVED, BYSTANDING))
        try:
            for stage in (*self._reset_stages(), *self._observation_stages()):
                stage.fn()
        finally:
            phase.fill_(STEPPING)

    def seed(self, seed: int) -> None:
        """Seed the environments' random numbers. Each environment draws from a state of its own."""
        if not isinstance(seed, int) or not 0 <= seed < 2**31:
            raise ConfigError(f"seed is {seed!r}; allowed: 0 to 2147483647")
        self._check_open()
        with self.scope.exclusive(), torch_stream(self.device):
            wp.launch(
                seed_random_state, self.num_envs, inputs=[seed], outputs=[self.buffers.random_state], device=self.device
            )

    # -- what torch code of a task uses -----------------------------------------------------------------------------

    @property
    def reset_mask(self) -> torch.Tensor:
        """Environments that are being reset, bool, shape (num_envs,)."""
        return self._reset_mask

    def rand(self, columns: int, lower: float, upper: float, *, mask: torch.Tensor | None = None) -> torch.Tensor:
        """Return uniform random numbers for some environments, shape (num_envs, columns).

        Each of them draws from its own state in ``buffers.random_state``, as a Warp task does, so that both forms of a
        task draw alike. The rows of the other environments are not random: use them with the mask only.

        Args:
            columns: Numbers per environment.
            lower: Lower end.
            upper: Upper end.
            mask: Environments that draw, bool, shape (num_envs,); ``None`` for :attr:`reset_mask`.
        """
        if columns not in self._draws:
            array = wp.zeros((self.num_envs, columns), dtype=float, device=self.device)
            self._draws[columns] = array, torch_view(array)
        draws, view = self._draws[columns]
        env_mask = self.physics.reset_mask
        if mask is not None:
            self._draw_mask_view.copy_(mask)
            env_mask = self._draw_mask
        self.scope.launches.launch(
            draw_uniform,
            self.num_envs,
            [env_mask, lower, upper],
            [self.buffers.random_state, draws],
            site=("rand", columns, mask is None),
            dynamic=("lower", "upper"),
        )
        return view.clone()

    # -- what a learner reads ---------------------------------------------------------------------------------------

    @property
    def observations(self) -> dict[str, torch.Tensor]:
        """Copies of the current observations by group, float, shape (num_envs, size)."""
        return {group: view.clone() for group, view in self.buffers.observation_views.items()}

    @property
    def episode_length_buf(self) -> torch.Tensor:
        """Steps taken in the current episodes, int32, shape (num_envs,).

        Assigning copies the values in place, clamped to 0 and the longest episode. It makes the first reset where that
        has not happened, which would undo it.
        """
        return self.buffers.torch.episode_length

    @episode_length_buf.setter
    def episode_length_buf(self, value: torch.Tensor) -> None:
        if not isinstance(value, torch.Tensor) or value.is_floating_point() or value.dtype is torch.bool:
            kind = value.dtype if isinstance(value, torch.Tensor) else type(value).__name__
            raise ConfigError(f"episode_length_buf is given a {kind}; allowed: a tensor of whole numbers")
        if tuple(value.shape) != (self.num_envs,):
            raise ConfigError(f"episode_length_buf is given shape {tuple(value.shape)}; allowed: ({self.num_envs},)")
        if not self._is_reset:
            self.reset()
        self.buffers.torch.episode_length.copy_(value.clamp(0, self.max_episode_length))

    @property
    def single_observation_space(self) -> gymnasium.spaces.Dict:
        """Observation space of one environment."""
        from gymnasium import spaces

        boxes: dict[str, spaces.Space[Any]] = {
            group: spaces.Box(-float("inf"), float("inf"), (n,)) for group, n in self.num_observations.items()
        }
        return spaces.Dict(boxes)

    @property
    def single_action_space(self) -> gymnasium.spaces.Box:
        """Action space of one environment."""
        from gymnasium import spaces

        return spaces.Box(-float("inf"), float("inf"), (self.num_actions,))

    @property
    def observation_space(self) -> gymnasium.spaces.Space[Any]:
        """Observation space of all environments together."""
        from gymnasium.vector.utils import batch_space

        return batch_space(self.single_observation_space, self.num_envs)

    @property
    def action_space(self) -> gymnasium.spaces.Space[Any]:
        """Action space of all environments together."""
        from gymnasium.vector.utils import batch_space

        return batch_space(self.single_action_space, self.num_envs)

    def pop_episode_log(self) -> dict[str, float]:
        """Return means over the episodes that ended since the last call, empty if none did.

        Synchronizes with the device. ``Physics/overflow_steps`` counts the solver steps in which an environment
        overflowed a buffer of the solver; it is there whenever there were any, and the first time there is a warning.
        There is one as well the first time that a reward term was not finite.
        """
        with torch_stream(self.device):
            log = self.episode_log.pop()
            self._warn_of_terms(self.buffers.non_finite_terms.numpy().tolist())
            overflowed = int(self.physics.overflow_steps.numpy().sum())
        if log or overflowed > self._overflow_logged:
            log["Physics/overflow_steps"] = float(overflowed - self._overflow_logged)
        if overflowed > self._overflow_logged and not self._overflow_warned:
            _logger.warning("%s: %s", type(self).__name__, self.physics.describe_overflow())
            self._overflow_warned = True
        self._overflow_logged = overflowed
        return log

    def _warn_of_terms(self, counts: list[int]) -> None:
        """Warn, once for each, of reward terms that were not finite."""
        for name, count in zip(self.episode_log.reward_terms, counts, strict=False):
            if count and name not in self._warned_terms:
                self._warned_terms.add(name)
                _logger.warning(
                    "%s: reward term %r was not finite in %d environment steps; allowed: finite numbers. These "
                    "environments got no reward in that step, and were reset",
                    type(self).__name__,
                    name,
                    count,
                )

    def explain(self, steps: int = 0) -> PipelineTable:
        """Return a table of the stages of a step: how they run, and what they cost; see :meth:`Pipeline.explain`.

        Args:
            steps: Steps to take for the times, with the actions of the last step. What :meth:`step` returned before is
                overwritten.

        Raises:
            TreadleError: The environment is closed.
        """
        self._check_open()
        if not self._is_reset:
            self.reset()
        with torch_stream(self.device):
            table = self.pipeline.explain(steps)
        self.common_step_counter = int(self.buffers.common_step.numpy()[0])
        return table

    def launch_report(self) -> str:
        """Return one line about how the step runs; before the second step captures graphs, of what is planned."""
        stats, mode = self.scope.stats, self.scope.mode
        graphs, stages = self.pipeline.graph_count, len(self.pipeline.stages)
        captured = sum(len(island.stages) for island in self.pipeline.islands if island.break_reason is None)
        runs = f" -> {'graph' if graphs else 'replay'}" if mode is LaunchMode.AUTO else ""
        parts = [f"launch: {mode.value}{runs}"]
        if mode is not LaunchMode.EAGER:
            parts.append(f"contract {self.scope.contract.value}")
        if graphs:
            parts.append(f"{captured} of {stages} stages in {graphs} graph{'s' * (graphs != 1)}")
        else:
            parts.append(f"{stages} stages")
        if reasons := stats.fallback_reasons():
            parts.append("without a graph: " + "; ".join(sorted(set(reasons.values()))))
        return ", ".join(parts)

    def close(self) -> None:
        """Drop graphs and recorded launches. The environment can't step afterwards; closing it again does nothing."""
        if not self._is_closed:
            self._is_closed = True
            self.scope.close()

    # -- stages that all tasks share --------------------------------------------------------------------------------

    def _simulate(self) -> None:
        for _ in range(self.cfg.decimation):
            self.robot.write_targets_to_sim()
            self.physics.step()
            self.scene.after_physics_step()

    def _update_derived_state(self) -> None:
        self.robot.update()
        for sensor in self.sensors:
            sensor.update()

    def _update_after_reset(self) -> None:
        self.robot.reset()
        for sensor in self.sensors:
            sensor.reset()

    def _launch_per_env(
        self, kernel: wp.Kernel, inputs: list[Any], outputs: list[Any], *, site: Hashable = None
    ) -> None:
        """Launch a kernel with one thread per environment; see :meth:`treadle.launch.LaunchCache.launch` for sites."""
        self.scope.launches.launch(kernel, self.num_envs, inputs, outputs, site=site)

    def _mask_of(self, env_ids: Sequence[int] | torch.Tensor | None) -> torch.Tensor:
        """Return a mask of shape (num_envs,) with the given environments set."""
        if env_ids is None:
            return torch.ones(self.num_envs, dtype=torch.bool, device=self.device)
        ids = torch.as_tensor(env_ids, device=self.device)
        if ids.numel() and (ids.is_floating_point() or ids.dtype is torch.bool or ids.dim() != 1):
            raise ConfigError(f"env_ids are {ids.dtype}, shape {tuple(ids.shape)}; allowed: a row of whole numbers")
        ids = ids.long()
        if ids.numel() and not (0 <= int(ids.min()) and int(ids.max()) < self.num_envs):
            raise ConfigError(
                f"env_ids run from {int(ids.min())} to {int(ids.max())}; allowed: 0 to {self.num_envs - 1}"
            )
        mask = torch.zeros(self.num_envs, dtype=torch.bool, device=self.device)
        mask[ids] = True
        return mask

    def _check_open(self) -> None:
        if self._is_closed:
            raise TreadleError(f"{type(self).__name__} is closed; make a new environment to go on")

    def _check_actions(self, actions: torch.Tensor) -> None:
        expected = (self.num_envs, self.num_actions)
        if not isinstance(actions, torch.Tensor):
            raise ConfigError(f"actions are a {type(actions).__name__}; allowed: a torch tensor of shape {expected}")
        if tuple(actions.shape) != expected:
            raise ConfigError(f"actions have shape {tuple(actions.shape)}; allowed: {expected}")
        if str(actions.device) != self.device:
            raise ConfigError(f"actions are on {actions.device}; allowed: {self.device}")
        if not actions.is_floating_point():
            raise ConfigError(f"actions have dtype {actions.dtype}; allowed: a floating-point type")
