"""Kernels of the sensors. One thread per environment, or per environment and sensed body."""

import warp as wp

from treadle.physics.funcs import ContactRows, net_contact_force
from treadle.sensors.funcs import ContactSensorState, FrameTransformerState, ImuState

__all__ = [
    "clear_contacts",
    "measure_contacts",
    "measure_frames",
    "measure_imu",
    "measure_joint_wrench",
]

wp.set_module_options({"enable_backward": False})


@wp.kernel
def measure_joint_wrench(
    env_mask: wp.array[wp.bool],
    body_q: wp.array2d[wp.transform],
    body_parent_f: wp.array2d[wp.spatial_vector],
    body_ids: wp.array[int],
    anchor_in_body: wp.array[wp.transform],
    center_of_mass: wp.array2d[wp.vec3],
    wrench_out: wp.array3d[float],
    bad_measurement_out: wp.array[wp.bool],
):
    """Move the wrench from the body's centre of mass to the joint's anchor and express it in the anchor's frame.

    Without a mask it does so in all environments.
    """
    env, sensed = wp.tid()
    if env_mask:
        if not env_mask[env]:
            return
    body = body_ids[sensed]
    rotation = wp.transform_get_rotation(body_q[env, body])
    force_b = wp.quat_rotate_inv(rotation, wp.spatial_top(body_parent_f[env, body]))
    torque_b = wp.quat_rotate_inv(rotation, wp.spatial_bottom(body_parent_f[env, body]))
    anchor = anchor_in_body[sensed]
    lever = center_of_mass[env, body] - wp.transform_get_translation(anchor)
    torque_b = torque_b + wp.cross(lever, force_b)
    force = wp.quat_rotate_inv(wp.transform_get_rotation(anchor), force_b)
    torque = wp.quat_rotate_inv(wp.transform_get_rotation(anchor), torque_b)
    if not (wp.isfinite(force) and wp.isfinite(torque)):
        bad_measurement_out[env] = True
    for axis in range(3):
        wrench_out[env, sensed, axis] = force[axis]
        wrench_out[env, sensed, 3 + axis] = torque[axis]


@wp.kernel
def measure_contacts(
    contacts: ContactRows,
    body_ids: wp.array[int],
    track_air_time: bool,
    state_out: ContactSensorState,
    bad_measurement_out: wp.array[wp.bool],
):
    """Take one physics step into the history of forces and into the times in the air and in contact."""
    env, sensed = wp.tid()
    force = net_contact_force(contacts, env, body_ids[sensed])
    if not wp.isfinite(force):
        bad_measurement_out[env] = True
    for age in range(state_out.net_forces_w_history.shape[1] - 1, 0, -1):
        state_out.net_forces_w_history[env, age, sensed] = state_out.net_forces_w_history[env, age - 1, sensed]
    state_out.net_forces_w_history[env, 0, sensed] = force
    if track_air_time:
        air_time = state_out.current_air_time[env, sensed]
        contact_time = state_out.current_contact_time[env, sensed]
        if wp.length(force) > state_out.force_threshold:
            if air_time > 0.0:
                state_out.last_air_time[env, sensed] = air_time + state_out.physics_dt
            state_out.current_air_time[env, sensed] = 0.0
            state_out.current_contact_time[env, sensed] = contact_time + state_out.physics_dt
        else:
            if contact_time > 0.0:
                state_out.last_contact_time[env, sensed] = contact_time + state_out.physics_dt
            state_out.current_contact_time[env, sensed] = 0.0
            state_out.current_air_time[env, sensed] = air_time + state_out.physics_dt


@wp.kernel
def clear_contacts(
    env_mask: wp.array[wp.bool],
    track_air_time: bool,
    state_out: ContactSensorState,
):
    """Forget forces and times in the masked environments."""
    env, sensed = wp.tid()
    if env_mask[env]:
        for age in range(state_out.net_forces_w_history.shape[1]):
            state_out.net_forces_w_history[env, age, sensed] = wp.vec3()
        if track_air_time:
            state_out.current_air_time[env, sensed] = 0.0
            state_out.last_air_time[env, sensed] = 0.0
            state_out.current_contact_time[env, sensed] = 0.0
            state_out.last_contact_time[env, sensed] = 0.0


@wp.kernel
def measure_imu(
    moved_mask: wp.array[wp.bool],
    reset_mask: wp.array[wp.bool],
    body_q: wp.array2d[wp.transform],
    body_qd: wp.array2d[wp.spatial_vector],
    center_of_mass: wp.array2d[wp.vec3],
    gravity: wp.array[wp.vec3],
    body: int,
    offset: wp.transform,
    gravity_bias: wp.vec3,
    dt: float,
    last_lin_vel_w_out: wp.array[wp.vec3],
    state_out: ImuState,
    bad_measurement_out: wp.array[wp.bool],
):
    """Measure a physics step, or the state that was written into the environments of a mask. Without one it is a step.

    The acceleration is the change of the sensor's velocity over the step. A state that was written leaves it as it is,
    except that it is none after a reset.
    """
    env = wp.tid()
    is_step, is_reset = bool(True), bool(False)
    if moved_mask:
        is_step = False
        is_reset = reset_mask[env]
        if not (moved_mask[env] or is_reset):
            return
    rotation = wp.transform_get_rotation(body_q[env, body])
    ang_vel_w = wp.spatial_bottom(body_qd[env, body])
    lever = wp.quat_rotate(rotation, wp.transform_get_translation(offset) - center_of_mass[env, body])
    lin_vel_w = wp.spatial_top(body_qd[env, body]) + wp.cross(ang_vel_w, lever)
    lin_acc_w = gravity_bias
    if is_step:
        lin_acc_w = lin_acc_w + (lin_vel_w - last_lin_vel_w_out[env]) / dt
    quat = rotation * wp.transform_get_rotation(offset)
    last_lin_vel_w_out[env] = lin_vel_w
    state_out.quat_w[env] = quat
    state_out.ang_vel_b[env] = wp.quat_rotate_inv(quat, ang_vel_w)
    if is_step or is_reset:
        state_out.lin_acc_b[env] = wp.quat_rotate_inv(quat, lin_acc_w)
    state_out.projected_gravity_b[env] = wp.quat_rotate_inv(quat, wp.normalize(gravity[env]))
    finite = wp.isfinite(quat) and wp.isfinite(ang_vel_w) and wp.isfinite(lin_acc_w)
    if not finite:
        bad_measurement_out[env] = True


@wp.kernel
def measure_frames(
    body_q: wp.array2d[wp.transform],
    source_body: int,
    source_offset: wp.transform,
    body_ids: wp.array[int],
    offsets: wp.array[wp.transform],
    state_out: FrameTransformerState,
    bad_measurement_out: wp.array[wp.bool],
):
    """Compute the pose of a target frame in the world and in the source frame."""
    env, index = wp.tid()
    source = wp.transform_multiply(body_q[env, source_body], source_offset)
    target = wp.transform_multiply(body_q[env, body_ids[index]], offsets[index])
    relative = wp.transform_multiply(wp.transform_inverse(source), target)
    if index == 0:
        state_out.source_pos_w[env] = wp.transform_get_translation(source)
        state_out.source_quat_w[env] = wp.transform_get_rotation(source)
    state_out.target_pos_w[env, index] = wp.transform_get_translation(target)
    state_out.target_quat_w[env, index] = wp.transform_get_rotation(target)
    state_out.target_pos_source[env, index] = wp.transform_get_translation(relative)
    state_out.target_quat_source[env, index] = wp.transform_get_rotation(relative)
    position, quat = wp.transform_get_translation(relative), wp.transform_get_rotation(relative)
    if not (wp.isfinite(position) and wp.isfinite(quat)):
        bad_measurement_out[env] = True
