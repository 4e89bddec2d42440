"""Kernels that every environment runs, whatever its task. One thread per environment."""

import warp as wp

from treadle.envs.funcs import (
    all_finite,
    clear_episode,
    finish_observation,
    finish_reward,
    log_episode,
    publish_flags,
    publish_observation,
)
from treadle.managers.env_state import STEPPING

__all__ = [
    "advance_counters",
    "clear_episodes",
    "draw_uniform",
    "finish_observations",
    "finish_rewards",
    "finish_terminations",
    "seed_random_state",
]

wp.set_module_options({"enable_backward": False})


@wp.kernel
def seed_random_state(seed: int, random_state_out: wp.array[wp.uint32]):
    """Give each environment a random state of its own."""
    env = wp.tid()
    random_state_out[env] = wp.rand_init(seed, env)


@wp.kernel
def draw_uniform(
    env_mask: wp.array[wp.bool],
    lower: float,
    upper: float,
    random_state_out: wp.array[wp.uint32],
    draws_out: wp.array2d[float],
):
    """Draw a row of numbers in the masked environments, each from its own random state."""
    env = wp.tid()
    if env_mask[env]:
        state = random_state_out[env]
        for column in range(draws_out.shape[1]):
            draws_out[env, column] = wp.randf(state, lower, upper)
        random_state_out[env] = state


@wp.kernel
def advance_counters(
    actions: wp.array2d[float],
    joint_q: wp.array2d[float],
    joint_qd: wp.array2d[float],
    body_parent_f: wp.array2d[wp.spatial_vector],
    episode_length_out: wp.array[int],
    steps_taken_out: wp.array[int],
    common_step_out: wp.array[int],
    bad_observation_out: wp.array[wp.bool],
    bad_measurement_out: wp.array[wp.bool],
    non_finite_out: wp.array[wp.bool],
):
    """Count the step, and find environments in which an action, the physics or a measurement is not finite."""
    env = wp.tid()
    episode_length_out[env] = episode_length_out[env] + 1
    steps_taken_out[env] = steps_taken_out[env] + 1
    common_step_out[env] = common_step_out[env] + 1
    non_finite_out[env] = (
        bad_observation_out[env]
        or bad_measurement_out[env]
        or not all_finite(env, actions, joint_q, joint_qd, body_parent_f)
    )
    bad_observation_out[env] = False
    bad_measurement_out[env] = False


@wp.kernel
def finish_terminations(
    non_finite: wp.array[wp.bool],
    episode_length: wp.array[int],
    max_episode_length: int,
    terminated_out: wp.array[wp.bool],
    truncated_out: wp.array[wp.bool],
    reset_mask_out: wp.array[wp.bool],
):
    """Terminate what is not finite, time out the rest, and mark both for a reset. The two flags exclude each other."""
    env = wp.tid()
    terminated = terminated_out[env] or non_finite[env]
    truncated = not terminated and episode_length[env] >= max_episode_length
    terminated_out[env] = terminated
    truncated_out[env] = truncated
    reset_mask_out[env] = terminated or truncated


@wp.kernel
def finish_rewards(
    common_step: wp.array[int],
    episode_length: wp.array[int],
    steps_taken: wp.array[int],
    reward_terms_out: wp.array2d[float],
    reward_out: wp.array[float],
    episode_sums_out: wp.array2d[float],
    non_finite_terms_out: wp.array[int],
    non_finite_out: wp.array[wp.bool],
    terminated_out: wp.array[wp.bool],
    truncated_out: wp.array[wp.bool],
    reset_mask_out: wp.array[wp.bool],
    published_reward_out: wp.array2d[float],
    published_terminated_out: wp.array2d[wp.bool],
    published_truncated_out: wp.array2d[wp.bool],
    log_out: wp.array[wp.float64],
):
    """Add up the terms, publish the results, and log the episode if it ended.

    An environment that is not finite, or one of whose terms is not, gets no reward and ends.
    """
    env = wp.tid()
    finish_reward(
        env,
        reward_terms_out,
        reward_out,
        episode_sums_out,
        non_finite_terms_out,
        non_finite_out,
        terminated_out,
        truncated_out,
        reset_mask_out,
    )
    publish_flags(
        env,
        common_step,
        reward_out,
        terminated_out,
        truncated_out,
        published_reward_out,
        published_terminated_out,
        published_truncated_out,
    )
    if reset_mask_out[env]:
        log_episode(env, truncated_out, non_finite_out, episode_length, steps_taken, episode_sums_out, log_out)


@wp.kernel
def clear_episodes(
    env_mask: wp.array[wp.bool],
    episode_length_out: wp.array[int],
    steps_taken_out: wp.array[int],
    episode_sums_out: wp.array2d[float],
    actions_out: wp.array2d[float],
):
    """Start new episodes in the masked environments."""
    env = wp.tid()
    if env_mask[env]:
        clear_episode(env, episode_length_out, steps_taken_out, episode_sums_out, actions_out)


@wp.kernel
def finish_observations(
    phase: wp.array[int],
    common_step: wp.array[int],
    observation_inout: wp.array2d[float],
    bad_observation_out: wp.array[wp.bool],
    published_out: wp.array3d[float],
):
    """Replace an observation that is not finite by zeros, mark its environment, and publish what a step observed."""
    env = wp.tid()
    finish_observation(env, observation_inout, bad_observation_out)
    if phase[env] == STEPPING:
        publish_observation(env, common_step, observation_inout, published_out)
