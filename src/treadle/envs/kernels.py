"""Kernels that every environment runs, whatever its task. One thread per environment."""

import warp as wp

__all__ = [
    "advance_counters",
    "clear_episodes",
    "draw_uniform",
    "finish_observations",
    "finish_rewards",
    "finish_terminations",
    "log_ended_episodes",
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
    bad_observation_out: wp.array[wp.bool],
    bad_measurement_out: wp.array[wp.bool],
    non_finite_out: wp.array[wp.bool],
):
    """Count the step, and find environments in which an action, the physics or a measurement is not finite."""
    env = wp.tid()
    episode_length_out[env] = episode_length_out[env] + 1
    steps_taken_out[env] = steps_taken_out[env] + 1
    finite = not (bad_observation_out[env] or bad_measurement_out[env])
    bad_observation_out[env] = False
    bad_measurement_out[env] = False
    for i in range(actions.shape[1]):
        finite = finite and wp.isfinite(actions[env, i])
    for i in range(joint_q.shape[1]):
        finite = finite and wp.isfinite(joint_q[env, i])
    for i in range(joint_qd.shape[1]):
        finite = finite and wp.isfinite(joint_qd[env, i])
    for i in range(body_parent_f.shape[1]):
        finite = finite and wp.isfinite(wp.length(body_parent_f[env, i]))
    non_finite_out[env] = not finite


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
    reward_terms_out: wp.array2d[float],
    reward_out: wp.array[float],
    episode_sums_out: wp.array2d[float],
    non_finite_out: wp.array[wp.bool],
    terminated_out: wp.array[wp.bool],
    truncated_out: wp.array[wp.bool],
    reset_mask_out: wp.array[wp.bool],
):
    """Add up the terms. An environment that is not finite, or one of whose terms is not, gets no reward and ends."""
    env = wp.tid()
    finite = not non_finite_out[env]
    for term in range(reward_terms_out.shape[1]):
        finite = finite and wp.isfinite(reward_terms_out[env, term])
    if not finite:
        non_finite_out[env] = True
        terminated_out[env] = True
        truncated_out[env] = False
        reset_mask_out[env] = True
    total = float(0.0)
    for term in range(reward_terms_out.shape[1]):
        if not finite:
            reward_terms_out[env, term] = 0.0
        value = reward_terms_out[env, term]
        episode_sums_out[env, term] = episode_sums_out[env, term] + value
        total = total + value
    reward_out[env] = total


@wp.kernel
def log_ended_episodes(
    terminated: wp.array[wp.bool],
    truncated: wp.array[wp.bool],
    non_finite: wp.array[wp.bool],
    episode_length: wp.array[int],
    steps_taken: wp.array[int],
    episode_sums: wp.array2d[float],
    log_out: wp.array[wp.float64],
):
    """Add the episodes that ended to the log; its entries are listed in :class:`treadle.envs.episode_log.EpisodeLog`.

    An episode whose length was assigned, so that episodes spread over time, is not a whole one.
    """
    env = wp.tid()
    if terminated[env] or truncated[env]:
        wp.atomic_add(log_out, 0, wp.float64(1.0))
        if truncated[env]:
            wp.atomic_add(log_out, 1, wp.float64(1.0))
        if non_finite[env]:
            wp.atomic_add(log_out, 2, wp.float64(1.0))
        wp.atomic_add(log_out, 3, wp.float64(steps_taken[env]))
        if steps_taken[env] == episode_length[env]:
            wp.atomic_add(log_out, 4, wp.float64(1.0))
            if truncated[env]:
                wp.atomic_add(log_out, 5, wp.float64(1.0))
        for term in range(episode_sums.shape[1]):
            wp.atomic_add(log_out, 6 + term, wp.float64(episode_sums[env, term]))


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
        episode_length_out[env] = 0
        steps_taken_out[env] = 0
        for term in range(episode_sums_out.shape[1]):
            episode_sums_out[env, term] = 0.0
        for i in range(actions_out.shape[1]):
            actions_out[env, i] = 0.0


@wp.kernel
def finish_observations(
    observation_out: wp.array2d[float],
    bad_observation_out: wp.array[wp.bool],
):
    """Replace an observation that is not finite by zeros, and mark the environment, which ends at its next step."""
    env = wp.tid()
    finite = bool(True)
    for i in range(observation_out.shape[1]):
        finite = finite and wp.isfinite(observation_out[env, i])
    if not finite:
        bad_observation_out[env] = True
        for i in range(observation_out.shape[1]):
            observation_out[env, i] = 0.0
