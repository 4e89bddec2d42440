"""An inertial measurement unit on a body."""

from __future__ import annotations

import warp as wp

from treadle.assets import Articulation
from treadle.launch import LaunchScope
from treadle.physics import PhysicsBackend
from treadle.sensors.cfg import ImuCfg
from treadle.sensors.funcs import ImuState
from treadle.sensors.kernels import measure_imu
from treadle.sensors.sensor import BodySensor, one_body

__all__ = ["Imu"]


class Imu(BodySensor):
    """Orientation, angular velocity and linear acceleration of a frame on a body, in that frame.

    The acceleration is the change of the frame's velocity over the last physics step. The solver's own acceleration
    would not do: it does not know of the damping that is integrated implicitly. So each physics step is measured, and
    there is nothing to do in :meth:`update`. After a reset the sensor shows no acceleration but the gravity bias. A
    push changes orientation and rates at once, and the acceleration stays that of the last physics step.

    Args:
        cfg: Its configuration.
        robot: The articulation.
        physics: The backend that simulates it.
        scope: Owner of the launches.

    Raises:
        ConfigError: The name does not match one body.
    """

    quat_w: wp.array
    """Orientation (x, y, z, w), world frame, quat, shape (num_envs,)."""
    ang_vel_b: wp.array
    """Angular velocity, sensor frame [rad/s], vec3, shape (num_envs,)."""
    lin_acc_b: wp.array
    """Linear acceleration with the gravity bias, sensor frame [m/s^2], vec3, shape (num_envs,)."""
    projected_gravity_b: wp.array
    """Direction of gravity, sensor frame, unit vec3, shape (num_envs,)."""
    state: ImuState
    """The arrays as a struct, for fused kernels."""

    def __init__(self, cfg: ImuCfg, robot: Articulation, physics: PhysicsBackend, scope: LaunchScope):
        self._body = one_body(robot, cfg.body_name)
        super().__init__(robot, cfg.body_name, physics, scope)
        self.cfg = cfg
        self._offset = wp.transform(cfg.offset.pos, cfg.offset.rot)
        self._gravity_bias = wp.vec3(*cfg.gravity_bias)
        self._last_lin_vel_w = wp.zeros(physics.num_envs, dtype=wp.vec3, device=physics.device)
        self.state = ImuState()
        for name in ("quat_w", "ang_vel_b", "lin_acc_b", "projected_gravity_b"):
            dtype = wp.quat if name == "quat_w" else wp.vec3
            array = wp.zeros(physics.num_envs, dtype=dtype, device=physics.device)
            setattr(self, name, array)
            setattr(self.state, name, array)

    def after_physics_step(self) -> None:
        """Measure the physics step that was just taken."""
        self._measure(None, None)

    def update(self) -> None:
        """Do nothing: each physics step has been measured."""

    def reset(self) -> None:
        """Measure the environments of ``physics.moved_mask`` as they are, those of a reset without acceleration."""
        self._measure(self._physics.moved_mask, self._physics.reset_mask)

    def _measure(self, moved_mask: wp.array | None, reset_mask: wp.array | None) -> None:
        physics = self._physics
        self._launches.launch(
            measure_imu,
            physics.num_envs,
            [
                moved_mask,
                reset_mask,
                physics.body_q,
                physics.body_qd,
                physics.body_com,
                physics.gravity,
                self._body,
                self._offset,
                self._gravity_bias,
                physics.dt,
            ],
            [self._last_lin_vel_w, self.state, physics.bad_measurement],
            site="step" if moved_mask is None else "reset",
        )
