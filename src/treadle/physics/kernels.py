"""Kernels of the Newton backend."""

import warp as wp

__all__ = ["clear_forces", "count_overflow"]

wp.set_module_options({"enable_backward": False})


@wp.func
def _write_external_wrench(
    env: int,
    external_wrench: wp.array2d[wp.spatial_vector],
    body_q: wp.array2d[wp.transform],
    body_f_out: wp.array2d[wp.spatial_vector],
):
    """Turn the wrenches from the frames of the bodies into the world. There are none where nothing uses them."""
    for body in range(external_wrench.shape[1]):
        wrench = external_wrench[env, body]
        quat = wp.transform_get_rotation(body_q[env, body])
        force = wp.quat_rotate(quat, wp.spatial_top(wrench))
        body_f_out[env, body] = wp.spatial_vector(force, wp.quat_rotate(quat, wp.spatial_bottom(wrench)))


@wp.kernel
def count_overflow(
    overflow: wp.array[wp.int32],
    external_wrench: wp.array2d[wp.spatial_vector],
    body_q: wp.array2d[wp.transform],
    overflow_steps_out: wp.array[wp.int32],
    overflow_bits_out: wp.array[wp.int32],
    body_f_out: wp.array2d[wp.spatial_vector],
):
    """Count the steps with an overflow and keep which buffers it was; turn the wrenches on bodies for the next step.

    One thread per environment.
    """
    env = wp.tid()
    _write_external_wrench(env, external_wrench, body_q, body_f_out)
    if overflow[env] != 0:
        overflow_steps_out[env] = overflow_steps_out[env] + 1
        overflow_bits_out[env] = overflow_bits_out[env] | overflow[env]


@wp.kernel
def clear_forces(
    env_mask: wp.array[wp.bool],
    external_wrench: wp.array2d[wp.spatial_vector],
    body_q: wp.array2d[wp.transform],
    joint_f_out: wp.array2d[float],
    body_parent_f_out: wp.array2d[wp.spatial_vector],
    body_qdd_out: wp.array2d[wp.spatial_vector],
    bad_measurement_out: wp.array[wp.bool],
    body_f_out: wp.array2d[wp.spatial_vector],
):
    """Zero what the last step applied and measured in the masked environments; turn the wrenches on bodies in all.

    One thread per environment.
    """
    env = wp.tid()
    _write_external_wrench(env, external_wrench, body_q, body_f_out)
    if env_mask[env]:
        bad_measurement_out[env] = False
        for dof in range(joint_f_out.shape[1]):
            joint_f_out[env, dof] = 0.0
        for body in range(body_parent_f_out.shape[1]):
            body_parent_f_out[env, body] = wp.spatial_vector()
            body_qdd_out[env, body] = wp.spatial_vector()
