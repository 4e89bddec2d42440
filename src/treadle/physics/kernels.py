"""Kernels of the Newton backend."""

import warp as wp

__all__ = ["clear_forces", "count_overflow"]

wp.set_module_options({"enable_backward": False})


@wp.kernel
def count_overflow(
    overflow: wp.array[wp.int32],
    overflow_steps_out: wp.array[wp.int32],
    overflow_bits_out: wp.array[wp.int32],
):
    """Count the steps with an overflow and keep which buffers it was. One thread per environment."""
    env = wp.tid()
    if overflow[env] != 0:
        overflow_steps_out[env] = overflow_steps_out[env] + 1
        overflow_bits_out[env] = overflow_bits_out[env] | overflow[env]


@wp.kernel
def clear_forces(
    env_mask: wp.array[wp.bool],
    joint_f_out: wp.array2d[float],
    body_parent_f_out: wp.array2d[wp.spatial_vector],
    body_qdd_out: wp.array2d[wp.spatial_vector],
    bad_measurement_out: wp.array[wp.bool],
):
    """Zero what the last step applied and measured in the masked environments. One thread per environment."""
    env = wp.tid()
    if env_mask[env]:
        bad_measurement_out[env] = False
        for dof in range(joint_f_out.shape[1]):
            joint_f_out[env, dof] = 0.0
        for body in range(body_parent_f_out.shape[1]):
            body_parent_f_out[env, body] = wp.spatial_vector()
            body_qdd_out[env, body] = wp.spatial_vector()
