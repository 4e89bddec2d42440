"""What a scene expects of a sensor, and what the sensors on bodies of a robot have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import warp as wp

from treadle.assets import Articulation
from treadle.assets.articulation_data import TorchViews
from treadle.assets.names import match_names
from treadle.errors import ConfigError
from treadle.launch import LaunchScope
from treadle.physics import PhysicsBackend

__all__ = ["BodySensor", "Sensor", "SteppedSensor", "one_body"]


class Sensor(Protocol):
    """A measurement in persistent arrays.

    Both methods launch at most one kernel and can be captured. A kernel that finds a value that is not finite sets
    ``physics.bad_measurement`` of the environment, which ends its episode.
    """

    def update(self) -> None:
        """Refresh the arrays from the simulation, once per environment step."""

    def reset(self) -> None:
        """Start anew in the environments of ``physics.reset_mask``, once :meth:`PhysicsBackend.reset` is done.

        Those of ``physics.moved_mask`` were moved without a reset, by a push for instance: what depends on pose and
        velocity is measured there again. Nothing of the other environments changes.
        """


@runtime_checkable
class SteppedSensor(Sensor, Protocol):
    """A sensor that measures each physics step, also those between two environment steps."""

    def after_physics_step(self) -> None:
        """Measure the physics step that was just taken. One launch, capturable."""


class BodySensor:
    """A sensor on some bodies of a robot; ``sensor.torch`` gives torch views of its arrays.

    Args:
        robot: The articulation.
        body_names: Regular expressions of whole body names.
        physics: The backend that simulates it.
        scope: Owner of the launches.

    Raises:
        ConfigError: An expression matches no body; the message lists the names.
    """

    body_ids: list[int]
    """Indices of the sensed bodies among those of the robot, in the order of the sensor's arrays."""
    body_names: list[str]
    """Names of the sensed bodies, in the order of the sensor's arrays."""

    def __init__(
        self, robot: Articulation, body_names: str | Sequence[str], physics: PhysicsBackend, scope: LaunchScope
    ):
        self.torch = TorchViews(self)
        self.body_ids = robot.find_bodies(body_names)
        self.body_names = [robot.body_names[body] for body in self.body_ids]
        self._physics = physics
        self._launches = scope.launches
        self._body_ids = wp.array(self.body_ids, dtype=int, device=physics.device)

    @property
    def num_bodies(self) -> int:
        """Number of sensed bodies."""
        return len(self.body_ids)

    def find_bodies(self, names: str | Sequence[str]) -> list[int]:
        """Return the indices, in the sensor's arrays, of the bodies whose whole names match any of the expressions.

        Raises:
            ConfigError: An expression matches none of the sensed bodies; the message lists their names.
        """
        return match_names([names] if isinstance(names, str) else names, self.body_names, "body names")

    def update(self) -> None:
        """Refresh the arrays from the simulation."""
        raise NotImplementedError

    def reset(self) -> None:
        """Measure again: all that is kept from step to step is physics', which has changed where it was to."""
        self.update()


def one_body(robot: Articulation, name: str) -> int:
    """Return the index of the one body that a regular expression matches.

    Raises:
        ConfigError: It matches none or several.
    """
    bodies = robot.find_bodies(name)
    if len(bodies) != 1:
        matched = ", ".join(robot.body_names[body] for body in bodies)
        raise ConfigError(f"body names: {name!r} matches {matched}; allowed: an expression that matches one body")
    return bodies[0]
