"""Kernels of the sensors. One thread per environment and sensed body."""

import warp as wp

__all__ = ["measure_joint_wrench"]

wp.set_module_options({"enable_backward": False})


@wp.kernel
def measure_joint_wrench(
    body_q: wp.array2d[wp.transform],
    body_parent_f: wp.array2d[wp.spatial_vector],
    body_ids: wp.array[int],
    anchor_in_body: wp.array[wp.transform],
    center_of_mass: wp.array2d[wp.vec3],
    wrench_out: wp.array3d[float],
):
    """Move the wrench from the body's centre of mass to the joint's anchor and express it in the anchor's frame."""
    env, sensed = wp.tid()
    body = body_ids[sensed]
    rotation = wp.transform_get_rotation(body_q[env, body])
    force_b = wp.quat_rotate_inv(rotation, wp.spatial_top(body_parent_f[env, body]))
    torque_b = wp.quat_rotate_inv(rotation, wp.spatial_bottom(body_parent_f[env, body]))
    anchor = anchor_in_body[sensed]
    lever = center_of_mass[env, body] - wp.transform_get_translation(anchor)
    torque_b = torque_b + wp.cross(lever, force_b)
    force = wp.quat_rotate_inv(wp.transform_get_rotation(anchor), force_b)
    torque = wp.quat_rotate_inv(wp.transform_get_rotation(anchor), torque_b)
    for axis in range(3):
        wrench_out[env, sensed, axis] = force[axis]
        wrench_out[env, sensed, 3 + axis] = torque[axis]
