"""Kernels of an articulation. One thread per environment, or per environment and joint."""

import warp as wp

__all__ = ["apply_actuators", "derive_state", "write_joint_state", "write_root_state"]

wp.set_module_options({"enable_backward": False})


@wp.kernel
def apply_actuators(
    joint_pos: wp.array2d[float],
    joint_vel: wp.array2d[float],
    joint_effort_target: wp.array2d[float],
    joint_pos_target: wp.array2d[float],
    joint_vel_target: wp.array2d[float],
    joint_stiffness: wp.array2d[float],
    joint_damping: wp.array2d[float],
    effort_limits: wp.array2d[float],
    position_controlled: wp.array[wp.bool],
    velocity_controlled: wp.array[wp.bool],
    joint_f_out: wp.array2d[float],
    joint_target_q_out: wp.array2d[float],
    joint_target_qd_out: wp.array2d[float],
    computed_effort_out: wp.array2d[float],
    applied_effort_out: wp.array2d[float],
    previous_joint_vel_out: wp.array2d[float],
):
    """Clamp efforts and hand all kinds of targets to the solver, which does not clamp efforts itself.

    The position target counts where the joint has a drive, also beside an effort. What the drive will do is computed
    from the state before the step; the solver integrates it implicitly.
    """
    env, joint = wp.tid()
    limit = effort_limits[env, joint]
    target, velocity = joint_pos_target[env, joint], joint_vel[env, joint]
    vel_target = float(0.0)
    if velocity_controlled[joint]:
        vel_target = joint_vel_target[env, joint]
    drive = joint_stiffness[env, joint] * (target - joint_pos[env, joint])
    drive += joint_damping[env, joint] * (vel_target - velocity)
    computed = float(0.0)
    effort = float(0.0)
    if not (position_controlled[joint] or velocity_controlled[joint]):
        computed = joint_effort_target[env, joint]
        effort = wp.clamp(computed, -limit, limit)
    joint_target_q_out[env, joint] = target
    joint_target_qd_out[env, joint] = vel_target
    joint_f_out[env, joint] = effort
    computed_effort_out[env, joint] = computed + drive
    applied_effort_out[env, joint] = effort + wp.clamp(drive, -limit, limit)
    previous_joint_vel_out[env, joint] = velocity


@wp.kernel
def derive_state(
    env_mask: wp.array[wp.bool],
    body_q: wp.array2d[wp.transform],
    body_qd: wp.array2d[wp.spatial_vector],
    joint_vel: wp.array2d[float],
    previous_joint_vel: wp.array2d[float],
    gravity: wp.array[wp.vec3],
    root_body: int,
    dt: float,
    root_pos_w_out: wp.array[wp.vec3],
    root_quat_w_out: wp.array[wp.quat],
    root_lin_vel_w_out: wp.array[wp.vec3],
    root_ang_vel_w_out: wp.array[wp.vec3],
    root_lin_vel_b_out: wp.array[wp.vec3],
    root_ang_vel_b_out: wp.array[wp.vec3],
    projected_gravity_b_out: wp.array[wp.vec3],
    gravity_dir_w_out: wp.array[wp.vec3],
    joint_acc_out: wp.array2d[float],
):
    """Compute everything that readers need of the root and the joints, once per step. One thread per environment.

    With a mask, which follows a reset, the masked environments have no acceleration and the others keep theirs.
    """
    env = wp.tid()
    pose = body_q[env, root_body]
    velocity = body_qd[env, root_body]
    quat = wp.transform_get_rotation(pose)
    lin_vel = wp.spatial_top(velocity)
    ang_vel = wp.spatial_bottom(velocity)
    gravity_dir = wp.normalize(gravity[env])
    root_pos_w_out[env] = wp.transform_get_translation(pose)
    root_quat_w_out[env] = quat
    root_lin_vel_w_out[env] = lin_vel
    root_ang_vel_w_out[env] = ang_vel
    root_lin_vel_b_out[env] = wp.quat_rotate_inv(quat, lin_vel)
    root_ang_vel_b_out[env] = wp.quat_rotate_inv(quat, ang_vel)
    projected_gravity_b_out[env] = wp.quat_rotate_inv(quat, gravity_dir)
    gravity_dir_w_out[env] = gravity_dir
    is_step = bool(True)
    is_reset = bool(False)
    if env_mask:
        is_step = False
        is_reset = env_mask[env]
    for joint in range(joint_vel.shape[1]):
        if is_step:
            joint_acc_out[env, joint] = (joint_vel[env, joint] - previous_joint_vel[env, joint]) / dt
        elif is_reset:
            joint_acc_out[env, joint] = 0.0


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
