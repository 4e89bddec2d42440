"""Commands of poses, each in torch and, for one environment, in Warp. Both draw the same numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
import warp as wp

from treadle.assets.articulation_data import torch_view
from treadle.assets.articulation_state import ArticulationState
from treadle.errors import ConfigError
from treadle.managers.cfg import CommandTermCfg
from treadle.managers.command_manager import CommandTerm
from treadle.managers.env_state import EnvState
from treadle.managers.twins import warp_twin
from treadle.mdp import math_torch
from treadle.mdp.commands import RangedCommand, range_problems
from treadle.mdp.draws import quat_from_euler, torch_quat_from_euler
from treadle.mdp.math_funcs import wrap_to_pi, yaw, yaw_quat
from treadle.mdp.pose_commands import body_pose_errors, orientation_error, position_error

__all__ = [
    "PlanarPoseRanges",
    "PoseRanges",
    "UniformPose2dCommand",
    "UniformPose2dCommandCfg",
    "UniformPoseCommand",
    "UniformPoseCommandCfg",
]

wp.set_module_options({"enable_backward": False})

_PI = wp.constant(3.141592653589793)


class UniformPoseCommand(RangedCommand):
    """Pose of a body in the frame of the root: position [m], then quaternion (x, y, z, w). Uniform within ranges."""

    cfg: UniformPoseCommandCfg
    compiled_fields: ClassVar[tuple[str, ...]] = ("make_quat_unique",)

    def __init__(self, cfg: UniformPoseCommandCfg, env: Any):
        super().__init__(cfg, env, 7, ("position_error", "orientation_error"))
        bodies = self.asset.find_bodies(cfg.body_name)
        if len(bodies) != 1:
            matched = ", ".join(self.asset.body_names[body] for body in bodies)
            raise ConfigError(f"body_name {cfg.body_name!r} matches {matched}; allowed: one body")
        self.body = bodies[0]
        self._configure(cfg)

    def _configure(self, cfg: UniformPoseCommandCfg) -> None:
        super()._configure(cfg)
        self.make_quat_unique = cfg.make_quat_unique

    def _resample_command(self, env_mask: torch.Tensor) -> None:
        drawn = self._draw(env_mask, self._rows)
        quat = torch_quat_from_euler(*drawn[:, 3:].unbind(1))
        if self.make_quat_unique:
            quat = torch.where(quat[:, 3:] < 0.0, -quat, quat)
        command = torch.cat((drawn[:, :3], quat), dim=1)
        self.command.copy_(torch.where(env_mask[:, None], command, self.command))

    def _update_metrics(self) -> None:
        position, orientation = body_pose_errors(self.asset.data.torch, self.command, self.body)
        self.torch.metrics[:, 0] = position
        self.torch.metrics[:, 1] = orientation


@dataclass(kw_only=True)
class PoseRanges:
    """Ranges of a :class:`UniformPoseCommand`, in the frame of the root."""

    pos_x: tuple[float, float] = (0.0, 0.0)
    """Position x [m]."""
    pos_y: tuple[float, float] = (0.0, 0.0)
    """Position y [m]."""
    pos_z: tuple[float, float] = (0.0, 0.0)
    """Position z [m]."""
    roll: tuple[float, float] = (0.0, 0.0)
    """Rotation about x, the first [rad]."""
    pitch: tuple[float, float] = (0.0, 0.0)
    """Rotation about y, the second [rad]."""
    yaw: tuple[float, float] = (0.0, 0.0)
    """Rotation about z, the third [rad]."""


@dataclass(kw_only=True)
class UniformPoseCommandCfg(CommandTermCfg):
    """Pose of a body in the frame of the root, uniform within ranges."""

    class_type: ClassVar[type[CommandTerm]] = UniformPoseCommand
    asset_name: str = "robot"
    """Articulation that the command is for."""
    body_name: str = ""
    """Regular expression of the body's whole name."""
    make_quat_unique: bool = False
    """Whether the quaternion's w is never negative."""
    Ranges: ClassVar[type[PoseRanges]] = PoseRanges
    ranges: PoseRanges = field(default_factory=PoseRanges)
    """Ranges of the command."""

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        yield from super().problems(where)
        yield from range_problems(self.ranges, f"{where}.ranges", PoseRanges)
        if not self.body_name:
            yield f"{where}.body_name is empty; allowed: a regular expression"


@wp.func
def resample_pose(
    env: int, env_state: EnvState, command_buffer: wp.array2d[float], ranges: wp.array2d[float], make_quat_unique: bool
):
    """Draw a pose."""
    rng = env_state.random_state[env]
    drawn = wp.spatial_vector()
    for i in range(6):
        drawn[i] = ranges[i, 0] + (ranges[i, 1] - ranges[i, 0]) * wp.randf(rng)
    env_state.random_state[env] = rng
    quat = quat_from_euler(drawn[3], drawn[4], drawn[5])
    sign = float(1.0)
    if make_quat_unique and quat[3] < 0.0:
        sign = -1.0
    for i in range(3):
        command_buffer[env, i] = drawn[i]
    for i in range(4):
        command_buffer[env, 3 + i] = sign * quat[i]


@wp.func
def measure_pose(
    env: int, asset_state: ArticulationState, command_buffer: wp.array2d[float], metrics: wp.array2d[float], body: int
):
    """Set the errors of the step."""
    metrics[env, 0] = position_error(asset_state, command_buffer, env, body)
    metrics[env, 1] = orientation_error(asset_state, command_buffer, env, body)


@warp_twin(UniformPoseCommand, methods={"resample": resample_pose, "metrics": measure_pose})
def _(env: int):
    pass


class UniformPose2dCommand(RangedCommand):
    """Position on the ground and heading, uniform within ranges about the origin of the environment.

    The command is in the frame of the root without roll and pitch: position x, y, z [m] and heading [rad]. The height
    is that of the default pose.
    """

    cfg: UniformPose2dCommandCfg
    compiled_fields: ClassVar[tuple[str, ...]] = ("simple_heading",)

    def __init__(self, cfg: UniformPose2dCommandCfg, env: Any):
        super().__init__(cfg, env, 4, ("error_pos_2d", "error_heading"))
        self.pos_command_w = wp.zeros(env.num_envs, dtype=wp.vec3, device=env.device)
        self.heading_command_w = wp.zeros(env.num_envs, dtype=float, device=env.device)
        self._origins = torch_view(env.scene.env_origins)
        self._configure(cfg)

    def _configure(self, cfg: UniformPose2dCommandCfg) -> None:
        super()._configure(cfg)
        self.simple_heading = cfg.simple_heading

    def _resample_command(self, env_mask: torch.Tensor) -> None:
        data, views = self.asset.data.torch, self.torch
        offset = self._draw(env_mask, self._rows[:2])
        height = data.default_root_pose[:, 2:3]
        position = torch.cat((self._origins[:, :2] + offset, self._origins[:, 2:] + height), dim=1)
        views.pos_command_w.copy_(torch.where(env_mask[:, None], position, views.pos_command_w))
        if self.simple_heading:
            difference = position - data.root_pos_w
            ahead = torch.atan2(difference[:, 1], difference[:, 0])
            behind, now = math_torch.wrap_to_pi(ahead + _PI), math_torch.yaw(data.root_quat_w)
            turn = math_torch.wrap_to_pi(ahead - now).abs() < math_torch.wrap_to_pi(behind - now).abs()
            heading = torch.where(turn, ahead, behind)
        else:
            heading = self._draw(env_mask, self._rows[2:])[:, 0]
        views.heading_command_w.copy_(torch.where(env_mask, heading, views.heading_command_w))

    def _update_command(self) -> None:
        data, views = self.asset.data.torch, self.torch
        quat = math_torch.yaw_quat(data.root_quat_w)
        self.command[:, :3] = math_torch.quat_rotate_inverse(quat, views.pos_command_w - data.root_pos_w)
        self.command[:, 3] = math_torch.wrap_to_pi(views.heading_command_w - math_torch.yaw(data.root_quat_w))

    def _update_metrics(self) -> None:
        data, views, metrics = self.asset.data.torch, self.torch, self.torch.metrics
        metrics[:, 0] = (views.pos_command_w - data.root_pos_w)[:, :2].norm(dim=1)
        heading = math_torch.yaw(data.root_quat_w)
        metrics[:, 1] = math_torch.wrap_to_pi(views.heading_command_w - heading).abs()


@dataclass(kw_only=True)
class PlanarPoseRanges:
    """Ranges of a :class:`UniformPose2dCommand`."""

    pos_x: tuple[float, float] = (0.0, 0.0)
    """Position x relative to the origin of the environment [m]."""
    pos_y: tuple[float, float] = (0.0, 0.0)
    """Position y relative to the origin of the environment [m]."""
    heading: tuple[float, float] = (0.0, 0.0)
    """Heading, world frame [rad]; not used with ``simple_heading``."""


@dataclass(kw_only=True)
class UniformPose2dCommandCfg(CommandTermCfg):
    """Position on the ground and heading, uniform within ranges."""

    class_type: ClassVar[type[CommandTerm]] = UniformPose2dCommand
    asset_name: str = "robot"
    """Articulation that the command is for."""
    simple_heading: bool = False
    """Whether the heading points to the position or away from it, whichever is nearer, rather than being drawn."""
    Ranges: ClassVar[type[PlanarPoseRanges]] = PlanarPoseRanges
    ranges: PlanarPoseRanges = field(default_factory=PlanarPoseRanges)
    """Ranges of the command."""

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        yield from super().problems(where)
        yield from range_problems(self.ranges, f"{where}.ranges", PlanarPoseRanges)


@wp.func
def resample_planar_pose(
    env: int,
    env_state: EnvState,
    asset_state: ArticulationState,
    ranges: wp.array2d[float],
    simple_heading: bool,
    pos_command_w: wp.array[wp.vec3],
    heading_command_w: wp.array[float],
):
    """Draw a position and a heading."""
    rng = env_state.random_state[env]
    position = env_state.env_origins[env]
    for i in range(2):
        position[i] += ranges[i, 0] + (ranges[i, 1] - ranges[i, 0]) * wp.randf(rng)
    position[2] += wp.transform_get_translation(asset_state.default_root_pose[env])[2]
    pos_command_w[env] = position
    if simple_heading:
        difference = position - asset_state.root_pos_w[env]
        ahead = wp.atan2(difference[1], difference[0])
        behind = wrap_to_pi(ahead + _PI)
        now = yaw(asset_state.root_quat_w[env])
        heading = behind
        if wp.abs(wrap_to_pi(ahead - now)) < wp.abs(wrap_to_pi(behind - now)):
            heading = ahead
        heading_command_w[env] = heading
    else:
        heading_command_w[env] = ranges[2, 0] + (ranges[2, 1] - ranges[2, 0]) * wp.randf(rng)
    env_state.random_state[env] = rng


@wp.func
def measure_planar_pose(
    env: int,
    asset_state: ArticulationState,
    metrics: wp.array2d[float],
    pos_command_w: wp.array[wp.vec3],
    heading_command_w: wp.array[float],
):
    """Set the errors of the step."""
    difference = pos_command_w[env] - asset_state.root_pos_w[env]
    metrics[env, 0] = wp.length(wp.vec2(difference[0], difference[1]))
    metrics[env, 1] = wp.abs(wrap_to_pi(heading_command_w[env] - yaw(asset_state.root_quat_w[env])))


@warp_twin(UniformPose2dCommand, methods={"resample": resample_planar_pose, "metrics": measure_planar_pose})
def _(
    env: int,
    asset_state: ArticulationState,
    command_buffer: wp.array2d[float],
    pos_command_w: wp.array[wp.vec3],
    heading_command_w: wp.array[float],
):
    quat = asset_state.root_quat_w[env]
    position = wp.quat_rotate_inv(yaw_quat(quat), pos_command_w[env] - asset_state.root_pos_w[env])
    for i in range(3):
        command_buffer[env, i] = position[i]
    command_buffer[env, 3] = wrap_to_pi(heading_command_w[env] - yaw(quat))
