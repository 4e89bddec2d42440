"""Kernels of an articulation. One thread per environment, or per environment and joint."""

import warp as wp

__all__ = ["apply_actuators", "derive_root_state", "write_joint_state", "write_root_state"]

wp.set_module_options({"enable_backward": False})


@wp.kernel
def apply_actuators(
    joint_effort_target: wp.array2d[float],
    joint_pos_target: wp.array2d[float],
    effort_limits: wp.array2d[float],
    position_controlled: wp.array[wp.bool],
    joint_f_out: wp.array2d[float],
    joint_target_q_out: wp.array2d[float],
    applied_effort_out: wp.array2d[float],
):
    """Clamp efforts and hand both kinds of targets to the solver, which does not clamp efforts itself.

    The position target counts where the joint has a drive, also beside an effort.
    """
    env, joint = wp.tid()
    joint_target_q_out[env, joint] = joint_pos_target[env, joint]
    effort = float(0.0)
    if not position_controlled[joint]:
        limit = effort_limits[env, joint]
        effort = wp.clamp(joint_effort_target[env, joint], -limit, limit)
    joint_f_out[env, joint] = effort
    applied_effort_out[env, joint] = effort


@wp.kernel
def derive_root_state(
    body_q: wp.array2d[wp.transform],
    body_qd: wp.array2d[wp.spatial_vector],
    root_body: int,
    gravity_dir_w: wp.vec3,
    root_pos_w_out: wp.array[wp.vec3],
    root_quat_w_out: wp.array[wp.quat],
    root_lin_vel_w_out: wp.array[wp.vec3],
    root_ang_vel_w_out: wp.array[wp.vec3],
    root_lin_vel_b_out: wp.array[wp.vec3],
    root_ang_vel_b_out: wp.array[wp.vec3],
    projected_gravity_b_out: wp.array[wp.vec3],
):
    """Compute everything that readers need of the root, once per step."""
    env = wp.tid()
    pose = body_q[env, root_body]
    velocity = body_qd[env, root_body]
    quat = wp.transform_get_rotation(pose)
    lin_vel = wp.spatial_top(velocity)
    ang_vel = wp.spatial_bottom(velocity)
    root_pos_w_out[env] = wp.transform_get_translation(pose)
    root_quat_w_out[env] = quat
    root_lin_vel_w_out[env] = lin_vel
    root_ang_vel_w_out[env] = ang_vel
    root_lin_vel_b_out[env] = wp.quat_rotate_inv(quat, lin_vel)
    root_ang_vel_b_out[env] = wp.quat_rotate_inv(quat, ang_vel)
    projected_gravity_b_out[env] = wp.quat_rotate_inv(quat, gravity_dir_w)


@wp.kernel
def write_joint_state(
    env_mask: wp.array[wp.bool],
    joint_pos: wp.array2d[float],
    joint_vel: wp.array2d[float],
    joint_pos_out: wp.array2d[float],
    joint_vel_out: wp.array2d[float],
):
    """Write the joint state of the masked environments."""
    env, joint = wp.tid()
    if env_mask[env]:
        joint_pos_out[env, joint] = joint_pos[env, joint]
        joint_vel_out[env, joint] = joint_vel[env, joint]


@wp.kernel
def write_root_state(
    env_mask: wp.array[wp.bool],
    env_origins: wp.array[wp.vec3],
    root_pose: wp.array[wp.transform],
    root_vel: wp.array[wp.spatial_vector],
    joint_q_out: wp.array2d[float],
    joint_qd_out: wp.array2d[float],
):
    """Write the floating root of the masked environments; the pose is relative to the environment's origin."""
    env = wp.tid()
    if env_mask[env]:
        position = wp.transform_get_translation(root_pose[env]) + env_origins[env]
        quat = wp.transform_get_rotation(root_pose[env])
        for axis in range(3):
            joint_q_out[env, axis] = position[axis]
        for axis in range(4):
            joint_q_out[env, 3 + axis] = quat[axis]
        for axis in range(6):
            joint_qd_out[env, axis] = root_vel[env][axis]
