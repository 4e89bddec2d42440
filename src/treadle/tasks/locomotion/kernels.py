"""Kernels of the locomotion task. One thread per environment."""

import warp as wp

from treadle.tasks.locomotion.funcs import (
    angle_to_target,
    ground_distance,
    heading_projection,
    normalized_position,
    roll,
    yaw,
)

__all__ = ["RewardParams", "observe", "process_actions", "reset_robot", "reward", "terminate"]

wp.set_module_options({"enable_backward": False})


@wp.struct
class RewardParams:
    """Weights, already multiplied by the step time where they act per second, and thresholds."""

    progress: float
    alive: float
    upright: float
    move_to_target: float
    action_l2: float
    energy: float
    joint_pos_limits: float
    terminating: float
    upright_threshold: float
    heading_threshold: float
    joint_limit_threshold: float
    step_dt: float


@wp.kernel
def process_actions(
    actions: wp.array2d[float],
    joint_gears: wp.array[float],
    action_scale: float,
    joint_effort_target_out: wp.array2d[float],
):
    """Turn actions into joint efforts. One thread per environment and joint."""
    env, joint = wp.tid()
    action = wp.clamp(actions[env, joint], -1.0, 1.0)
    joint_effort_target_out[env, joint] = action_scale * joint_gears[joint] * action


@wp.kernel
def terminate(
    root_pos_w: wp.array[wp.vec3],
    env_origins: wp.array[wp.vec3],
    termination_height: float,
    terminated_out: wp.array[wp.bool],
):
    """Terminate when the root is too low."""
    env = wp.tid()
    terminated_out[env] = root_pos_w[env][2] - env_origins[env][2] < termination_height


@wp.kernel
def reward(
    params: RewardParams,
    terminated: wp.array[wp.bool],
    actions: wp.array2d[float],
    root_pos_w: wp.array[wp.vec3],
    root_quat_w: wp.array[wp.quat],
    projected_gravity_b: wp.array[wp.vec3],
    joint_pos: wp.array2d[float],
    joint_vel: wp.array2d[float],
    joint_pos_lower: wp.array2d[float],
    joint_pos_upper: wp.array2d[float],
    gear_ratio: wp.array[float],
    targets_w: wp.array[wp.vec3],
    target_distance_out: wp.array[wp.float64],
    reward_terms_out: wp.array2d[float],
):
    """Compute all reward terms; their order is ``LocomotionWarpEnv.reward_terms``."""
    env = wp.tid()
    root_pos = root_pos_w[env]
    target = targets_w[env]

    distance = ground_distance(root_pos, target)
    speed = float(target_distance_out[env] - distance) / params.step_dt
    target_distance_out[env] = distance

    heading = heading_projection(root_pos, root_quat_w[env], target)
    moving = wp.where(heading > params.heading_threshold, 1.0, heading / params.heading_threshold)
    upright = wp.where(-projected_gravity_b[env][2] > params.upright_threshold, 1.0, 0.0)
    alive = wp.where(terminated[env], 0.0, 1.0)

    action_l2 = float(0.0)
    energy = float(0.0)
    at_limit = float(0.0)
    for joint in range(joint_pos.shape[1]):
        action = actions[env, joint]
        action_l2 += action * action
        energy += wp.abs(action * joint_vel[env, joint] * gear_ratio[joint])
        position = normalized_position(joint_pos[env, joint], joint_pos_lower[env, joint], joint_pos_upper[env, joint])
        excess = (wp.abs(position) - params.joint_limit_threshold) / (1.0 - params.joint_limit_threshold)
        at_limit += wp.max(excess, 0.0) * gear_ratio[joint]

    reward_terms_out[env, 0] = params.progress * speed
    reward_terms_out[env, 1] = params.alive * alive
    reward_terms_out[env, 2] = params.upright * upright
    reward_terms_out[env, 3] = params.move_to_target * moving
    reward_terms_out[env, 4] = params.action_l2 * action_l2
    reward_terms_out[env, 5] = params.energy * energy
    reward_terms_out[env, 6] = params.joint_pos_limits * at_limit
    reward_terms_out[env, 7] = params.terminating * (1.0 - alive)


@wp.kernel
def reset_robot(
    env_mask: wp.array[wp.bool],
    default_joint_pos: wp.array2d[float],
    default_joint_vel: wp.array2d[float],
    joint_pos_lower: wp.array2d[float],
    joint_pos_upper: wp.array2d[float],
    position_range: wp.vec2,
    velocity_range: wp.vec2,
    default_root_pose: wp.array[wp.transform],
    env_origins: wp.array[wp.vec3],
    targets_w: wp.array[wp.vec3],
    random_state_out: wp.array[wp.uint32],
    joint_pos_out: wp.array2d[float],
    joint_vel_out: wp.array2d[float],
    target_distance_out: wp.array[wp.float64],
):
    """Draw the joint state of the masked environments and start measuring progress from the start position."""
    env = wp.tid()
    if not env_mask[env]:
        return
    state = random_state_out[env]
    for joint in range(joint_pos_out.shape[1]):
        position = default_joint_pos[env, joint] + wp.randf(state, position_range[0], position_range[1])
        joint_pos_out[env, joint] = wp.clamp(position, joint_pos_lower[env, joint], joint_pos_upper[env, joint])
    for joint in range(joint_vel_out.shape[1]):
        joint_vel_out[env, joint] = default_joint_vel[env, joint] + wp.randf(
            state, velocity_range[0], velocity_range[1]
        )
    random_state_out[env] = state
    start = wp.transform_get_translation(default_root_pose[env]) + env_origins[env]
    target_distance_out[env] = ground_distance(start, targets_w[env])


@wp.kernel
def observe(
    root_pos_w: wp.array[wp.vec3],
    root_quat_w: wp.array[wp.quat],
    root_lin_vel_b: wp.array[wp.vec3],
    root_ang_vel_b: wp.array[wp.vec3],
    projected_gravity_b: wp.array[wp.vec3],
    joint_pos: wp.array2d[float],
    joint_vel: wp.array2d[float],
    default_joint_vel: wp.array2d[float],
    joint_pos_lower: wp.array2d[float],
    joint_pos_upper: wp.array2d[float],
    wrench: wp.array3d[float],
    actions: wp.array2d[float],
    env_origins: wp.array[wp.vec3],
    targets_w: wp.array[wp.vec3],
    ang_vel_scale: float,
    joint_vel_scale: float,
    contact_force_scale: float,
    observation_out: wp.array2d[float],
):
    """Write the observation, in the order that the tasks document."""
    env = wp.tid()
    root_pos = root_pos_w[env]
    root_quat = root_quat_w[env]
    target = targets_w[env]
    joints = joint_pos.shape[1]
    feet = wrench.shape[1]

    observation_out[env, 0] = root_pos[2] - env_origins[env][2]
    for axis in range(3):
        observation_out[env, 1 + axis] = root_lin_vel_b[env][axis]
        observation_out[env, 4 + axis] = root_ang_vel_b[env][axis] * ang_vel_scale
    observation_out[env, 7] = yaw(root_quat)
    observation_out[env, 8] = roll(root_quat)
    observation_out[env, 9] = angle_to_target(root_pos, root_quat, target)
    observation_out[env, 10] = -projected_gravity_b[env][2]
    observation_out[env, 11] = heading_projection(root_pos, root_quat, target)

    for joint in range(joints):
        observation_out[env, 12 + joint] = normalized_position(
            joint_pos[env, joint], joint_pos_lower[env, joint], joint_pos_upper[env, joint]
        )
        velocity = joint_vel[env, joint] - default_joint_vel[env, joint]
        observation_out[env, 12 + joints + joint] = velocity * joint_vel_scale
        observation_out[env, 12 + 2 * joints + 6 * feet + joint] = actions[env, joint]
    for foot in range(feet):
        for axis in range(6):
            column = 12 + 2 * joints + 6 * foot + axis
            observation_out[env, column] = wrench[env, foot, axis] * contact_force_scale
