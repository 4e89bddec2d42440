"""Kernels of the direct cartpole task. One thread per environment."""

import warp as wp

__all__ = ["RewardWeights", "StartRanges", "drive_cart", "observe", "reset_joints", "reward", "terminate"]

wp.set_module_options({"enable_backward": False})


@wp.struct
class RewardWeights:
    """Weights, already multiplied by the step time."""

    alive: float
    terminating: float
    pole_pos: float
    cart_vel: float
    pole_vel: float


@wp.struct
class StartRanges:
    """Ranges of the offsets from the default state."""

    cart_pos: wp.vec2
    cart_vel: wp.vec2
    pole_pos: wp.vec2
    pole_vel: wp.vec2


@wp.kernel
def drive_cart(actions: wp.array2d[float], action_scale: float, cart: int, joint_effort_target_out: wp.array2d[float]):
    """Turn the action into an effort on the cart."""
    env = wp.tid()
    joint_effort_target_out[env, cart] = action_scale * actions[env, 0]


@wp.kernel
def terminate(joint_pos: wp.array2d[float], cart: int, max_cart_pos: float, terminated_out: wp.array[wp.bool]):
    """Terminate when the cart is too far from the middle of the rail."""
    env = wp.tid()
    terminated_out[env] = wp.abs(joint_pos[env, cart]) > max_cart_pos


@wp.kernel
def reward(
    weights: RewardWeights,
    terminated: wp.array[wp.bool],
    joint_pos: wp.array2d[float],
    joint_vel: wp.array2d[float],
    cart: int,
    pole: int,
    reward_terms_out: wp.array2d[float],
):
    """Compute all reward terms; their order is ``REWARD_TERMS``."""
    env = wp.tid()
    angle = wp.atan2(wp.sin(joint_pos[env, pole]), wp.cos(joint_pos[env, pole]))
    reward_terms_out[env, 0] = wp.where(terminated[env], 0.0, weights.alive)
    reward_terms_out[env, 1] = wp.where(terminated[env], weights.terminating, 0.0)
    reward_terms_out[env, 2] = weights.pole_pos * angle * angle
    reward_terms_out[env, 3] = weights.cart_vel * wp.abs(joint_vel[env, cart])
    reward_terms_out[env, 4] = weights.pole_vel * wp.abs(joint_vel[env, pole])


@wp.kernel
def reset_joints(
    env_mask: wp.array[wp.bool],
    default_joint_pos: wp.array2d[float],
    default_joint_vel: wp.array2d[float],
    joint_pos_lower: wp.array2d[float],
    joint_pos_upper: wp.array2d[float],
    ranges: StartRanges,
    cart: int,
    pole: int,
    random_state_out: wp.array[wp.uint32],
    joint_pos_out: wp.array2d[float],
    joint_vel_out: wp.array2d[float],
):
    """Draw the joint state of the masked environments. Joints other than the two start at their defaults."""
    env = wp.tid()
    if not env_mask[env]:
        return
    for joint in range(joint_pos_out.shape[1]):
        joint_pos_out[env, joint] = default_joint_pos[env, joint]
        joint_vel_out[env, joint] = default_joint_vel[env, joint]
    state = random_state_out[env]
    cart_pos = default_joint_pos[env, cart] + wp.randf(state, ranges.cart_pos[0], ranges.cart_pos[1])
    joint_vel_out[env, cart] += wp.randf(state, ranges.cart_vel[0], ranges.cart_vel[1])
    pole_pos = default_joint_pos[env, pole] + wp.randf(state, ranges.pole_pos[0], ranges.pole_pos[1])
    joint_vel_out[env, pole] += wp.randf(state, ranges.pole_vel[0], ranges.pole_vel[1])
    random_state_out[env] = state
    joint_pos_out[env, cart] = wp.clamp(cart_pos, joint_pos_lower[env, cart], joint_pos_upper[env, cart])
    joint_pos_out[env, pole] = wp.clamp(pole_pos, joint_pos_lower[env, pole], joint_pos_upper[env, pole])


@wp.kernel
def observe(
    joint_pos: wp.array2d[float],
    joint_vel: wp.array2d[float],
    default_joint_pos: wp.array2d[float],
    default_joint_vel: wp.array2d[float],
    cart: int,
    pole: int,
    observation_out: wp.array2d[float],
):
    """Write positions and velocities relative to their defaults."""
    env = wp.tid()
    observation_out[env, 0] = joint_pos[env, cart] - default_joint_pos[env, cart]
    observation_out[env, 1] = joint_pos[env, pole] - default_joint_pos[env, pole]
    observation_out[env, 2] = joint_vel[env, cart] - default_joint_vel[env, cart]
    observation_out[env, 3] = joint_vel[env, pole] - default_joint_vel[env, pole]
