"""What fused kernels read of a sensor: a struct of its arrays, and functions on it."""

import warp as wp

__all__ = [
    "ContactSensorState",
    "FrameTransformerState",
    "ImuState",
    "JointWrenchState",
    "is_first_air",
    "is_first_contact",
]


@wp.struct
class ContactSensorState:
    """Arrays of :class:`treadle.sensors.ContactSensor`. Without air time, those of the times hold NaN."""

    net_forces_w: wp.array2d[wp.vec3]
    net_forces_w_history: wp.array3d[wp.vec3]
    current_air_time: wp.array2d[float]
    last_air_time: wp.array2d[float]
    current_contact_time: wp.array2d[float]
    last_contact_time: wp.array2d[float]
    force_threshold: float
    physics_dt: float


@wp.struct
class ImuState:
    """Arrays of :class:`treadle.sensors.Imu`."""

    quat_w: wp.array[wp.quat]
    ang_vel_b: wp.array[wp.vec3]
    lin_acc_b: wp.array[wp.vec3]
    projected_gravity_b: wp.array[wp.vec3]


@wp.struct
class FrameTransformerState:
    """Arrays of :class:`treadle.sensors.FrameTransformer`."""

    source_pos_w: wp.array[wp.vec3]
    source_quat_w: wp.array[wp.quat]
    target_pos_w: wp.array2d[wp.vec3]
    target_quat_w: wp.array2d[wp.quat]
    target_pos_source: wp.array2d[wp.vec3]
    target_quat_source: wp.array2d[wp.quat]


@wp.struct
class JointWrenchState:
    """Arrays of :class:`treadle.sensors.JointWrenchSensor`."""

    wrench: wp.array3d[float]


@wp.func
def is_first_contact(state: ContactSensorState, env: int, body: int, dt: float):
    """Return whether a body touched down within the last ``dt`` seconds and is still in contact."""
    time = state.current_contact_time[env, body]
    return time > 0.0 and time < dt + 0.25 * state.physics_dt


@wp.func
def is_first_air(state: ContactSensorState, env: int, body: int, dt: float):
    """Return whether a body lifted off within the last ``dt`` seconds and is still in the air."""
    time = state.current_air_time[env, body]
    return time > 0.0 and time < dt + 0.25 * state.physics_dt
