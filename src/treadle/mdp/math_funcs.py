"""Rotations, angles and ranges in Warp, each for one environment. The torch forms are in :mod:`math_torch`."""

import warp as wp

__all__ = ["normalized_position", "quat_error_magnitude", "roll", "wrap_to_pi", "yaw", "yaw_quat"]

wp.set_module_options({"enable_backward": False})


@wp.func
def wrap_to_pi(angle: float) -> float:
    """Wrap an angle to [-pi, pi] [rad]."""
    return wp.atan2(wp.sin(angle), wp.cos(angle))


@wp.func
def roll(q: wp.quat) -> float:
    """Roll of a quaternion, XYZ Euler angles [rad]."""
    return wp.atan2(2.0 * (q[3] * q[0] + q[1] * q[2]), 1.0 - 2.0 * (q[0] * q[0] + q[1] * q[1]))


@wp.func
def yaw(q: wp.quat) -> float:
    """Yaw of a quaternion, XYZ Euler angles [rad]."""
    return wp.atan2(2.0 * (q[3] * q[2] + q[0] * q[1]), 1.0 - 2.0 * (q[1] * q[1] + q[2] * q[2]))


@wp.func
def yaw_quat(q: wp.quat) -> wp.quat:
    """The rotation about the z axis by the yaw of a quaternion."""
    half = 0.5 * yaw(q)
    return wp.quat(0.0, 0.0, wp.sin(half), wp.cos(half))


@wp.func
def quat_error_magnitude(a: wp.quat, b: wp.quat) -> float:
    """Angle of the rotation between two orientations, 0 to pi [rad]. A quaternion and its negative are the same."""
    error = a * wp.quat_inverse(b)
    return 2.0 * wp.atan2(wp.length(wp.vec3(error[0], error[1], error[2])), wp.abs(error[3]))


@wp.func
def normalized_position(position: float, lower: float, upper: float) -> float:
    """Joint position scaled so that its limits are -1 and 1."""
    return (2.0 * position - upper - lower) / (upper - lower)
