"""The wrench that a joint transmits to the body it moves."""

from __future__ import annotations

from collections.abc import Sequence

import warp as wp

from treadle.assets import Articulation
from treadle.errors import ConfigError
from treadle.launch import LaunchScope
from treadle.physics import PhysicsBackend
from treadle.sensors.kernels import measure_joint_wrench

__all__ = ["JointWrenchSensor"]


class JointWrenchSensor:
    """Incoming joint wrench of some bodies of an articulation.

    The wrench is what the parent applies to the body through the joint in the last physics step: constraint,
    actuation and passive joint forces together. It is expressed in the joint frame on the body's side as it is after
    the step, the torque about the joint's anchor. It is zero in the observation that follows a reset, because no step
    has been taken yet.

    Args:
        robot: The articulation.
        body_names: Regular expressions of whole body names.
        physics: The backend that simulates it.
        scope: Owner of the launches.

    Raises:
        ConfigError: An expression matches no body, or a body has no joint of its own.
    """

    wrench: wp.array
    """Force [N] then torque [N*m], float, shape (num_envs, num_bodies, 6)."""

    def __init__(
        self, robot: Articulation, body_names: str | Sequence[str], physics: PhysicsBackend, scope: LaunchScope
    ):
        self.body_ids = robot.find_bodies(body_names)
        self.body_names = [robot.body_names[body] for body in self.body_ids]
        self._physics = physics
        self._launches = scope.launches
        device = physics.device
        layout = robot.layout
        joint_of_body = {body: joint for joint, body in enumerate(layout.joint_child_body)}
        if jointless := [robot.body_names[body] for body in self.body_ids if body not in joint_of_body]:
            raise ConfigError(f"body names: {', '.join(jointless)} have no joint of one degree of freedom to measure")
        frames = [wp.transform(*layout.joint_child_frame[joint_of_body[body]]) for body in self.body_ids]
        self._body_ids = wp.array(self.body_ids, dtype=int, device=device)
        self._anchor_in_body = wp.array(frames, dtype=wp.transform, device=device)
        self.wrench = wp.zeros((physics.num_envs, len(self.body_ids), 6), dtype=float, device=device)

    def update(self) -> None:
        """Refresh the wrench from the last physics step."""
        self._launches.launch(
            measure_joint_wrench,
            self.wrench.shape[:2],
            [
                self._physics.body_q,
                self._physics.body_parent_f,
                self._body_ids,
                self._anchor_in_body,
                self._physics.body_com,
            ],
            [self.wrench],
        )
