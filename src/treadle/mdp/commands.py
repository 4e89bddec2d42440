"""Commands of velocities, each in torch and, for one environment, in Warp. Both draw the same numbers."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

import numpy as np
import torch
import warp as wp

from treadle._checks import is_finite
from treadle.assets.articulation_state import ArticulationState
from treadle.errors import ConfigError
from treadle.managers.cfg import CommandTermCfg
from treadle.managers.command_manager import CommandTerm
from treadle.managers.env_state import EnvState
from treadle.managers.twins import warp_twin
from treadle.mdp.draws import draw_rows
from treadle.mdp.math_funcs import wrap_to_pi, yaw
from treadle.mdp.math_torch import wrap_to_pi as torch_wrap_to_pi
from treadle.mdp.math_torch import yaw as torch_yaw

__all__ = [
    "NormalVelocityCommand",
    "NormalVelocityCommandCfg",
    "NullCommand",
    "NullCommandCfg",
    "UniformVelocityCommand",
    "UniformVelocityCommandCfg",
    "VelocityRanges",
]

wp.set_module_options({"enable_backward": False})

_TWO_PI = wp.constant(6.283185307179586)


def range_problems(ranges: Any, where: str, kind: type[Any]) -> Iterator[str]:
    """Yield one sentence for each field of a dataclass of ranges that is no range; ``None`` is allowed."""
    if not isinstance(ranges, kind):
        yield f"{where} is {ranges!r}; allowed: {kind.__name__}"
        return
    for item in fields(ranges):
        value = getattr(ranges, item.name)
        if value is not None and not (len(value) == 2 and is_finite(*value) and value[0] <= value[1]):
            yield f"{where}.{item.name} is {value}; allowed: two finite numbers, the lower first"


def rows_of_fields(ranges: Any) -> list[tuple[float, float]]:
    """Return the ranges of a dataclass in the order of its fields, (0, 0) for ``None``."""
    return [getattr(ranges, item.name) or (0.0, 0.0) for item in fields(ranges)]


class AssetCommand(CommandTerm):
    """Base of the commands for an articulation. A subclass calls :meth:`_configure` when its arrays are made."""

    def __init__(self, cfg: Any, env: Any, size: int, metrics: tuple[str, ...]):
        super().__init__(cfg, env, size, metrics)
        self.asset = env.scene[cfg.asset_name]
        self.asset_state = self.asset.state

    def _configure(self, cfg: Any) -> None:
        """Take over what may change while the environment runs."""

    def update(self, cfg: Any) -> None:
        """Take another configuration while the environment runs; see :class:`CommandTerm`."""
        super().update(cfg)
        self._configure(cfg)


class RangedCommand(AssetCommand):
    """Base of the commands that are uniform within ranges, which may change while the environment runs."""

    device_fields: ClassVar[tuple[str, ...]] = (*CommandTerm.device_fields, "ranges")

    def __init__(self, cfg: Any, env: Any, size: int, metrics: tuple[str, ...]):
        super().__init__(cfg, env, size, metrics)
        self._rows = rows_of_fields(cfg.ranges)
        self.ranges = wp.zeros((len(self._rows), 2), dtype=float, device=env.device)

    def _configure(self, cfg: Any) -> None:
        self._rows = rows_of_fields(cfg.ranges)
        self.ranges.assign(np.array(self._rows, dtype=np.float32))

    def set_ranges(self, ranges: Any) -> None:
        """Draw from other ranges from now on. No graph is captured again.

        Args:
            ranges: An instance of the class of ``cfg.ranges``.

        Raises:
            ConfigError: A range is not allowed.
        """
        cfg = replace(self.cfg, ranges=copy.deepcopy(ranges))  # type: ignore[call-arg]
        if problems := list(cfg.problems("cfg")):
            raise ConfigError.from_problems(problems)
        self.update(cfg)

    def _draw(self, env_mask: torch.Tensor, rows: Sequence[tuple[float, float]]) -> torch.Tensor:
        return draw_rows(self.env, env_mask, rows)


class VelocityCommand(AssetCommand):
    """Base of the commands of a linear velocity x, y [m/s] and an angular velocity z [rad/s], with their errors."""

    def __init__(self, cfg: Any, env: Any):
        super().__init__(cfg, env, 3, ("error_vel_xy", "error_vel_yaw"))
        self.steps_per_command = wp.zeros(1, dtype=float, device=env.device)

    def _configure(self, cfg: Any) -> None:
        super()._configure(cfg)
        self.rel_standing_envs = float(cfg.rel_standing_envs)
        self.steps_per_command.assign(np.array([cfg.resampling_time_range[1] / self.env.step_dt], dtype=np.float32))

    def _update_metrics(self) -> None:
        data, command, metrics = self.asset.data.torch, self.command, self.torch.metrics
        metrics[:, 0] += (command[:, :2] - data.root_lin_vel_b[:, :2]).norm(dim=1) / self.torch.steps_per_command
        metrics[:, 1] += (command[:, 2] - data.root_ang_vel_b[:, 2]).abs() / self.torch.steps_per_command


class NullCommand(CommandTerm):
    """No command: of size 0."""

    def __init__(self, cfg: NullCommandCfg, env: Any):
        super().__init__(cfg, env, 0)

    def _resample_command(self, env_mask: torch.Tensor) -> None:
        """Draw nothing."""


@dataclass(kw_only=True)
class NullCommandCfg(CommandTermCfg):
    """No command."""

    class_type: ClassVar[type[CommandTerm]] = NullCommand


@wp.func
def _draw_nothing(env: int):
    pass


@warp_twin(NullCommand, methods={"resample": _draw_nothing})
def _(env: int):
    pass


class UniformVelocityCommand(VelocityCommand, RangedCommand):
    """Linear velocity x, y [m/s] and angular velocity z [rad/s] in the frame of the root, uniform within ranges.

    Some environments are to stand still. With ``heading_command``, some are to turn to a heading: their angular
    velocity is proportional to the difference.
    """

    cfg: UniformVelocityCommandCfg
    compiled_fields: ClassVar[tuple[str, ...]] = (
        "heading_command",
        "heading_control_stiffness",
        "rel_heading_envs",
        "rel_standing_envs",
    )

    def __init__(self, cfg: UniformVelocityCommandCfg, env: Any):
        super().__init__(cfg, env)
        self.heading_target = wp.zeros(env.num_envs, dtype=float, device=env.device)
        self.is_heading_env = wp.zeros(env.num_envs, dtype=wp.bool, device=env.device)
        self.is_standing_env = wp.zeros(env.num_envs, dtype=wp.bool, device=env.device)
        self._configure(cfg)

    def _configure(self, cfg: UniformVelocityCommandCfg) -> None:
        super()._configure(cfg)
        self.heading_command = cfg.heading_command
        self.heading_control_stiffness = float(cfg.heading_control_stiffness)
        self.rel_heading_envs = float(cfg.rel_heading_envs)

    def _resample_command(self, env_mask: torch.Tensor) -> None:
        views, mask = self.torch, env_mask[:, None]
        command = self._draw(env_mask, self._rows[:3])
        views.command_buffer.copy_(torch.where(mask, command, views.command_buffer))
        if self.heading_command:
            heading = self._draw(env_mask, self._rows[3:])[:, 0]
            views.heading_target.copy_(torch.where(env_mask, heading, views.heading_target))
            turns = self.env.rand(1, 0.0, 1.0, mask=env_mask)[:, 0] <= self.rel_heading_envs
            views.is_heading_env.copy_(torch.where(env_mask, turns, views.is_heading_env))
        stands = self.env.rand(1, 0.0, 1.0, mask=env_mask)[:, 0] <= self.rel_standing_envs
        views.is_standing_env.copy_(torch.where(env_mask, stands, views.is_standing_env))

    def _update_command(self) -> None:
        views = self.torch
        if self.heading_command:
            error = torch_wrap_to_pi(views.heading_target - torch_yaw(self.asset.data.torch.root_quat_w))
            turn = (self.heading_control_stiffness * error).clamp(*self._rows[2])
            views.command_buffer[:, 2] = torch.where(views.is_heading_env, turn, views.command_buffer[:, 2])
        views.command_buffer.masked_fill_(views.is_standing_env[:, None], 0.0)


@dataclass(kw_only=True)
class VelocityRanges:
    """Ranges of a :class:`UniformVelocityCommand`."""

    lin_vel_x: tuple[float, float] = (-1.0, 1.0)
    """Linear velocity x [m/s]."""
    lin_vel_y: tuple[float, float] = (-1.0, 1.0)
    """Linear velocity y [m/s]."""
    ang_vel_z: tuple[float, float] = (-1.0, 1.0)
    """Angular velocity z [rad/s]; it also bounds that of ``heading_command``."""
    heading: tuple[float, float] | None = None
    """Heading, world frame [rad]; needed for ``heading_command``."""


@dataclass(kw_only=True)
class UniformVelocityCommandCfg(CommandTermCfg):
    """Linear velocity x, y and angular velocity z, uniform within ranges."""

    class_type: ClassVar[type[CommandTerm]] = UniformVelocityCommand
    asset_name: str = "robot"
    """Articulation that the command is for."""
    Ranges: ClassVar[type[VelocityRanges]] = VelocityRanges
    ranges: VelocityRanges = field(default_factory=VelocityRanges)
    """Ranges of the command."""
    heading_command: bool = False
    """Whether environments may be given a heading rather than an angular velocity."""
    heading_control_stiffness: float = 1.0
    """Angular velocity per difference of the heading [1/s]."""
    rel_standing_envs: float = 0.0
    """Probability that an environment is to stand still."""
    rel_heading_envs: float = 1.0
    """Probability that an environment is given a heading, with ``heading_command``."""

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        yield from super().problems(where)
        yield from range_problems(self.ranges, f"{where}.ranges", VelocityRanges)
        yield from _share_problems(self, where, "rel_standing_envs", "rel_heading_envs")
        if self.heading_command and getattr(self.ranges, "heading", ()) is None:
            yield f"{where}.ranges.heading is None; allowed with heading_command: two numbers"
        if not (is_finite(self.heading_control_stiffness) and self.heading_control_stiffness >= 0.0):
            yield f"{where}.heading_control_stiffness is {self.heading_control_stiffness}; allowed: at least 0"


@wp.func
def resample_velocity(
    env: int,
    env_state: EnvState,
    command_buffer: wp.array2d[float],
    ranges: wp.array2d[float],
    heading_command: bool,
    heading_target: wp.array[float],
    is_heading_env: wp.array[wp.bool],
    is_standing_env: wp.array[wp.bool],
    rel_heading_envs: float,
    rel_standing_envs: float,
):
    """Draw velocities, a heading, and who stands."""
    rng = env_state.random_state[env]
    for i in range(3):
        command_buffer[env, i] = ranges[i, 0] + (ranges[i, 1] - ranges[i, 0]) * wp.randf(rng)
    if heading_command:
        heading_target[env] = ranges[3, 0] + (ranges[3, 1] - ranges[3, 0]) * wp.randf(rng)
        is_heading_env[env] = wp.randf(rng) <= rel_heading_envs
    is_standing_env[env] = wp.randf(rng) <= rel_standing_envs
    env_state.random_state[env] = rng


@wp.func
def measure_velocity(
    env: int,
    asset_state: ArticulationState,
    command_buffer: wp.array2d[float],
    metrics: wp.array2d[float],
    steps_per_command: wp.array[float],
):
    """Add the step's errors."""
    lin_vel, ang_vel = asset_state.root_lin_vel_b[env], asset_state.root_ang_vel_b[env]
    error = wp.vec2(command_buffer[env, 0] - lin_vel[0], command_buffer[env, 1] - lin_vel[1])
    metrics[env, 0] = metrics[env, 0] + wp.length(error) / steps_per_command[0]
    metrics[env, 1] = metrics[env, 1] + wp.abs(command_buffer[env, 2] - ang_vel[2]) / steps_per_command[0]


@warp_twin(UniformVelocityCommand, methods={"resample": resample_velocity, "metrics": measure_velocity})
def _(
    env: int,
    asset_state: ArticulationState,
    command_buffer: wp.array2d[float],
    ranges: wp.array2d[float],
    heading_command: bool,
    heading_target: wp.array[float],
    is_heading_env: wp.array[wp.bool],
    is_standing_env: wp.array[wp.bool],
    heading_control_stiffness: float,
):
    if heading_command:
        if is_heading_env[env]:
            error = wrap_to_pi(heading_target[env] - yaw(asset_state.root_quat_w[env]))
            command_buffer[env, 2] = wp.clamp(heading_control_stiffness * error, ranges[2, 0], ranges[2, 1])
    if is_standing_env[env]:
        for i in range(3):
            command_buffer[env, i] = 0.0


class NormalVelocityCommand(VelocityCommand):
    """Linear velocity x, y [m/s] and angular velocity z [rad/s] in the frame of the root, normally distributed.

    Each component has a random sign, and is 0 with some probability.
    """

    cfg: NormalVelocityCommandCfg
    device_fields: ClassVar[tuple[str, ...]] = (*CommandTerm.device_fields, "mean_vel", "std_vel", "zero_prob")
    compiled_fields: ClassVar[tuple[str, ...]] = ("rel_standing_envs",)

    def __init__(self, cfg: NormalVelocityCommandCfg, env: Any):
        super().__init__(cfg, env)
        self.mean_vel, self.std_vel, self.zero_prob = (wp.zeros(3, dtype=float, device=env.device) for _ in range(3))
        self._configure(cfg)

    def _configure(self, cfg: NormalVelocityCommandCfg) -> None:
        super()._configure(cfg)
        for name in ("mean_vel", "std_vel", "zero_prob"):
            getattr(self, name).assign(np.array(getattr(cfg, name), dtype=np.float32))

    def _resample_command(self, env_mask: torch.Tensor) -> None:
        draws = self.env.rand(12, 0.0, 1.0, mask=env_mask).view(-1, 3, 4)
        normal = (-2.0 * (1.0 - draws[:, :, 0]).log()).sqrt() * (_TWO_PI * draws[:, :, 1]).cos()
        command = self.torch.mean_vel + self.torch.std_vel * normal
        command = torch.where(draws[:, :, 2] <= 0.5, command, -command)
        command = torch.where(draws[:, :, 3] <= self.torch.zero_prob, 0.0, command)
        stands = self.env.rand(1, 0.0, 1.0, mask=env_mask) <= self.rel_standing_envs
        command = torch.where(stands, 0.0, command)
        self.command.copy_(torch.where(env_mask[:, None], command, self.command))


@dataclass(kw_only=True)
class NormalVelocityCommandCfg(CommandTermCfg):
    """Linear velocity x, y and angular velocity z, normally distributed."""

    class_type: ClassVar[type[CommandTerm]] = NormalVelocityCommand
    asset_name: str = "robot"
    """Articulation that the command is for."""
    mean_vel: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Mean of each component before it is given a sign [m/s, m/s, rad/s]."""
    std_vel: tuple[float, float, float] = (1.0, 1.0, 1.0)
    """Standard deviation of each component [m/s, m/s, rad/s]."""
    zero_prob: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Probability that a component is 0."""
    rel_standing_envs: float = 0.0
    """Probability that an environment is to stand still."""

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        yield from super().problems(where)
        yield from _share_problems(self, where, "rel_standing_envs")
        for name in ("mean_vel", "std_vel", "zero_prob"):
            value = getattr(self, name)
            if not (len(value) == 3 and is_finite(*value) and (name == "mean_vel" or min(value) >= 0.0)):
                yield f"{where}.{name} is {value}; allowed: three finite numbers{', none below 0' * (name[0] != 'm')}"


@wp.func
def resample_normal_velocity(
    env: int,
    env_state: EnvState,
    command_buffer: wp.array2d[float],
    mean_vel: wp.array[float],
    std_vel: wp.array[float],
    zero_prob: wp.array[float],
    rel_standing_envs: float,
):
    """Draw velocities and who stands."""
    rng = env_state.random_state[env]
    for i in range(3):
        length = wp.sqrt(-2.0 * wp.log(1.0 - wp.randf(rng)))
        value = mean_vel[i] + std_vel[i] * (length * wp.cos(_TWO_PI * wp.randf(rng)))
        if wp.randf(rng) > 0.5:
            value = -value
        if wp.randf(rng) <= zero_prob[i]:
            value = 0.0
        command_buffer[env, i] = value
    if wp.randf(rng) <= rel_standing_envs:
        for i in range(3):
            command_buffer[env, i] = 0.0
    env_state.random_state[env] = rng


@warp_twin(NormalVelocityCommand, methods={"resample": resample_normal_velocity, "metrics": measure_velocity})
def _(env: int):
    pass


def _share_problems(cfg: Any, where: str, *names: str) -> Iterator[str]:
    for name in names:
        if not (is_finite(getattr(cfg, name)) and 0.0 <= getattr(cfg, name) <= 1.0):
            yield f"{where}.{name} is {getattr(cfg, name)}; allowed: 0 to 1"
