"""The wrench that a joint transmits to the body it moves."""

from __future__ import annotations

from collections.abc import Sequence

import warp as wp

from treadle.assets import Articulation
from treadle.errors import ConfigError
from treadle.launch import LaunchScope
from treadle.physics import PhysicsBackend
from treadle.sensors.funcs import JointWrenchState
from treadle.sensors.kernels import measure_joint_wrench
from treadle.sensors.sensor import BodySensor

__all__ = ["JointWrenchSensor"]


class JointWrenchSensor(BodySensor):
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
    state: JointWrenchState
    """The array as a struct, for fused kernels."""

    def __init__(
        self, robot: Articulation, body_names: str | Sequence[str], physics: PhysicsBackend, scope: LaunchScope
    ):
        super().__init__(robot, body_names, physics, scope)
        layout = robot.layout
        joint_of_body = {body: joint for joint, body in enumerate(layout.joint_child_body)}
        if jointless := [robot.body_names[body] for body in self.body_ids if body not in joint_of_body]:
            raise ConfigError(f"body names: {', '.join(jointless)} have no joint of one degree of freedom to measure")
        frames = [wp.transform(*layout.joint_child_frame[joint_of_body[body]]) for body in self.body_ids]
        self._body_parent_f = physics.measure("body_parent_f")
        self._anchor_in_body = wp.array(frames, dtype=wp.transform, device=physics.device)
        self.wrench = wp.zeros((physics.num_envs, self.num_bodies, 6), dtype=float, device=physics.device)
        self.state = JointWrenchState()
        self.state.wrench = self.wrench

    def update(self) -> None:
        """Refresh the wrench from the last physics step."""
        self._measure(None)

    def reset(self) -> None:
        """Measure the environments of ``physics.reset_mask``, where it is zero.

        A body that is moved without a reset keeps the wrench of the last physics step, in the frame it had then.
        """
        self._measure(self._physics.reset_mask)

    def _measure(self, env_mask: wp.array | None) -> None:
        physics = self._physics
        self._launches.launch(
            measure_joint_wrench,
            (physics.num_envs, self.num_bodies),
            [env_mask, physics.body_q, self._body_parent_f, self._body_ids, self._anchor_in_body, physics.body_com],
            [self.wrench, physics.bad_measurement],
            site="step" if env_mask is None else "reset",
        )
