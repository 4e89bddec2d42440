"""Typed configurations of the sensors of a scene."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from treadle._checks import is_finite

if TYPE_CHECKING:
    from treadle.assets import Articulation
    from treadle.launch import LaunchScope
    from treadle.physics import PhysicsBackend
    from treadle.sensors.contact import ContactSensor
    from treadle.sensors.frame_transformer import FrameTransformer
    from treadle.sensors.imu import Imu
    from treadle.sensors.joint_wrench import JointWrenchSensor
    from treadle.sensors.sensor import Sensor

__all__ = ["ContactSensorCfg", "FrameTransformerCfg", "ImuCfg", "JointWrenchSensorCfg", "OffsetCfg", "SensorCfg"]


@dataclass(kw_only=True)
class OffsetCfg:
    """Pose of a frame in the frame of a body."""

    pos: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Position [m]."""
    rot: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 1.0)
    """Orientation, quaternion (x, y, z, w)."""

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        if not (len(self.pos) == 3 and is_finite(*self.pos)):
            yield f"{where}.pos is {self.pos}; allowed: three finite numbers"
        if not (len(self.rot) == 4 and is_finite(*self.rot) and abs(math.hypot(*self.rot) - 1.0) < 1e-3):
            yield f"{where}.rot is {self.rot}; allowed: a quaternion (x, y, z, w) of length 1"


@dataclass(kw_only=True)
class SensorCfg:
    """What all sensors have in common. A sensor of your own derives from it and overrides :meth:`make`."""

    def make(self, robot: Articulation, physics: PhysicsBackend, scope: LaunchScope) -> Sensor:
        """Return a sensor on a robot.

        Args:
            robot: The articulation.
            physics: The backend that simulates it.
            scope: Owner of the launches.

        Raises:
            ConfigError: A body name matches nothing.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say which sensor it makes")

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        yield from ()


@dataclass(kw_only=True)
class ContactSensorCfg(SensorCfg):
    """Net contact forces on bodies, their history, and how long each body has been in the air or in contact."""

    body_names: tuple[str, ...] = (".*",)
    """Regular expressions, each matched against whole body names."""
    history_length: int = 0
    """Number of physics steps of which forces are kept, the last one included; 0 keeps the last one as 1 does."""
    track_air_time: bool = False
    """Whether to measure how long bodies are in the air and in contact."""
    force_threshold: float = 1.0
    """A body is in contact when the net force on it is larger than this [N]."""

    def make(self, robot: Articulation, physics: PhysicsBackend, scope: LaunchScope) -> ContactSensor:
        """Return the sensor; see :meth:`SensorCfg.make`."""
        from treadle.sensors.contact import ContactSensor

        return ContactSensor(self, robot, physics, scope)

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        yield from _names_problems(self.body_names, f"{where}.body_names")
        if not 0 <= self.history_length <= 1000:
            yield f"{where}.history_length is {self.history_length}; allowed: 0 to 1000"
        if not (is_finite(self.force_threshold) and self.force_threshold >= 0.0):
            yield f"{where}.force_threshold is {self.force_threshold}; allowed: a finite number of at least 0"


@dataclass(kw_only=True)
class ImuCfg(SensorCfg):
    """Inertial measurement unit on a body."""

    body_name: str
    """Regular expression that matches the whole name of one body."""
    offset: OffsetCfg = field(default_factory=OffsetCfg)
    """Pose of the sensor in the frame of the body."""
    gravity_bias: tuple[float, float, float] = (0.0, 0.0, 9.81)
    """Added to the linear acceleration, world frame [m/s^2]: what an accelerometer shows at rest. Zero for the
    acceleration itself."""

    def make(self, robot: Articulation, physics: PhysicsBackend, scope: LaunchScope) -> Imu:
        """Return the sensor; see :meth:`SensorCfg.make`."""
        from treadle.sensors.imu import Imu

        return Imu(self, robot, physics, scope)

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        yield from _names_problems((self.body_name,), f"{where}.body_name")
        yield from self.offset.problems(f"{where}.offset")
        if not (len(self.gravity_bias) == 3 and is_finite(*self.gravity_bias)):
            yield f"{where}.gravity_bias is {self.gravity_bias}; allowed: three finite numbers"


@dataclass(kw_only=True)
class FrameTransformerCfg(SensorCfg):
    """Poses of frames on some bodies relative to a frame on another one."""

    source_body: str
    """Regular expression that matches the whole name of one body."""
    source_offset: OffsetCfg = field(default_factory=OffsetCfg)
    """Pose of the source frame in the frame of its body."""
    target_bodies: tuple[str, ...] = (".*",)
    """Regular expressions, each matched against whole body names."""
    target_offsets: dict[str, OffsetCfg] = field(default_factory=dict)
    """Pose of a target frame in the frame of its body, by regular expression; the first that matches counts."""

    def make(self, robot: Articulation, physics: PhysicsBackend, scope: LaunchScope) -> FrameTransformer:
        """Return the sensor; see :meth:`SensorCfg.make`."""
        from treadle.sensors.frame_transformer import FrameTransformer

        return FrameTransformer(self, robot, physics, scope)

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        yield from _names_problems((self.source_body,), f"{where}.source_body")
        yield from _names_problems(self.target_bodies, f"{where}.target_bodies")
        yield from self.source_offset.problems(f"{where}.source_offset")
        for pattern, offset in self.target_offsets.items():
            yield from offset.problems(f"{where}.target_offsets[{pattern!r}]")


@dataclass(kw_only=True)
class JointWrenchSensorCfg(SensorCfg):
    """Wrenches that joints transmit to the bodies they move."""

    body_names: tuple[str, ...] = (".*",)
    """Regular expressions, each matched against whole body names. Each body needs a joint of its own."""

    def make(self, robot: Articulation, physics: PhysicsBackend, scope: LaunchScope) -> JointWrenchSensor:
        """Return the sensor; see :meth:`SensorCfg.make`."""
        from treadle.sensors.joint_wrench import JointWrenchSensor

        return JointWrenchSensor(robot, self.body_names, physics, scope)

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        yield from _names_problems(self.body_names, f"{where}.body_names")


def _names_problems(names: tuple[str, ...], where: str) -> Iterator[str]:
    if not (names and all(names)):
        yield f"{where} is {names[0] if len(names) == 1 else names!r}; allowed: names or regular expressions"
