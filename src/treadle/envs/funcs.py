"""Accounting of one environment, called by the kernels of direct environments and by generated ones."""

import warp as wp

__all__ = [
    "all_finite",
    "clear_episode",
    "finish_observation",
    "finish_reward",
    "log_episode",
    "publish_flags",
    "publish_observation",
]

wp.set_module_options({"enable_backward": False})


@wp.func
def all_finite(
    env: int,
    actions: wp.array2d[float],
    joint_q: wp.array2d[float],
    joint_qd: wp.array2d[float],
    body_parent_f: wp.array2d[wp.spatial_vector],
) -> bool:
    """Return whether the actions, the physics and the measured wrenches are finite."""
    finite = bool(True)
    for i in range(actions.shape[1]):
        finite = finite and wp.isfinite(actions[env, i])
    for i in range(joint_q.shape[1]):
        finite = finite and wp.isfinite(joint_q[env, i])
    for i in range(joint_qd.shape[1]):
        finite = finite and wp.isfinite(joint_qd[env, i])
    for i in range(body_parent_f.shape[1]):
        finite = finite and wp.isfinite(wp.length(body_parent_f[env, i]))
    return finite


@wp.func
def finish_reward(
    env: int,
    reward_terms_out: wp.array2d[float],
    reward_out: wp.array[float],
    episode_sums_out: wp.array2d[float],
    non_finite_terms_out: wp.array[int],
    non_finite_out: wp.array[wp.bool],
    terminated_out: wp.array[wp.bool],
    truncated_out: wp.array[wp.bool],
    reset_mask_out: wp.array[wp.bool],
):
    """Add up the terms. An environment that is not finite, or one of whose terms is not, gets no reward and ends."""
    finite = not non_finite_out[env]
    for term in range(reward_terms_out.shape[1]):
        if not wp.isfinite(reward_terms_out[env, term]):
            if not non_finite_out[env]:
                wp.atomic_add(non_finite_terms_out, term, 1)
            finite = bool(False)
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


@wp.func
def log_episode(
    env: int,
    truncated: wp.array[wp.bool],
    non_finite: wp.array[wp.bool],
    episode_length: wp.array[int],
    steps_taken: wp.array[int],
    episode_sums: wp.array2d[float],
    log_out: wp.array[wp.float64],
):
    """Add an episode that ended to the log; its entries are listed in :class:`treadle.envs.episode_log.EpisodeLog`.

    An episode whose length was assigned, so that episodes spread over time, is not a whole one.
    """
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


@wp.func
def clear_episode(
    env: int,
    episode_length_out: wp.array[int],
    steps_taken_out: wp.array[int],
    episode_sums_out: wp.array2d[float],
    actions_out: wp.array2d[float],
):
    """Start a new episode."""
    episode_length_out[env] = 0
    steps_taken_out[env] = 0
    for term in range(episode_sums_out.shape[1]):
        episode_sums_out[env, term] = 0.0
    for i in range(actions_out.shape[1]):
        actions_out[env, i] = 0.0


@wp.func
def finish_observation(env: int, observation_out: wp.array2d[float], bad_observation_out: wp.array[wp.bool]):
    """Replace an observation that is not finite by zeros, and mark the environment, which ends at its next step."""
    finite = bool(True)
    for i in range(observation_out.shape[1]):
        finite = finite and wp.isfinite(observation_out[env, i])
    if not finite:
        bad_observation_out[env] = True
        for i in range(observation_out.shape[1]):
            observation_out[env, i] = 0.0


@wp.func
def publish_observation(
    env: int, common_step: wp.array[int], observation: wp.array2d[float], observation_out: wp.array3d[float]
):
    """Copy an observation to the set of outputs whose turn it is."""
    slot = common_step[env] % observation_out.shape[0]
    for i in range(observation.shape[1]):
        observation_out[slot, env, i] = observation[env, i]


@wp.func
def publish_flags(
    env: int,
    common_step: wp.array[int],
    reward: wp.array[float],
    terminated: wp.array[wp.bool],
    truncated: wp.array[wp.bool],
    reward_out: wp.array2d[float],
    terminated_out: wp.array2d[wp.bool],
    truncated_out: wp.array2d[wp.bool],
):
    """Copy reward and flags to the set of outputs whose turn it is."""
    slot = common_step[env] % reward_out.shape[0]
    reward_out[slot, env] = reward[env]
    terminated_out[slot, env] = terminated[env]
    truncated_out[slot, env] = truncated[env]
