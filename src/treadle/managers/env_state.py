"""The state of the environments as one argument of a kernel."""

import warp as wp

__all__ = ["BYSTANDING", "OBSERVED", "STEPPING", "EnvState"]

STEPPING = wp.constant(2)
"""Phase of an environment that takes a step."""
OBSERVED = wp.constant(1)
"""Phase of an environment that is reset from outside, between two steps."""
BYSTANDING = wp.constant(0)
"""Phase of the others meanwhile, for which nothing is computed."""


@wp.struct
class EnvState:
    """What every term may read of the environments, each array with a row per environment."""

    phase: wp.array[int]
    """``STEPPING``; while :meth:`reset` runs, ``OBSERVED`` for the environments that are reset, else ``BYSTANDING``."""
    episode_length: wp.array[int]
    """Age of the episode in steps."""
    steps_taken: wp.array[int]
    """Steps really taken in the episode."""
    common_step: wp.array[int]
    """Steps since the start, the same for all environments."""
    terminated: wp.array[wp.bool]
    """Whether the episode ended in a terminal state."""
    truncated: wp.array[wp.bool]
    """Whether the episode ran out of time."""
    non_finite: wp.array[wp.bool]
    """Whether an action, the physics or a measurement is not finite."""
    termination_terms: wp.array2d[wp.bool]
    """Which termination terms hold, shape (num_envs, num_terms)."""
    reset_mask: wp.array[wp.bool]
    """Which environments are reset in this step."""
    moved_mask: wp.array[wp.bool]
    """Which environments' bodies have to be computed anew, because a reset or an event moved them."""
    random_state: wp.array[wp.uint32]
    """State of the random numbers: a term loads it, draws, and stores it back."""
    actions: wp.array2d[float]
    """Actions as the learner gave them, shape (num_envs, num_actions)."""
    previous_actions: wp.array2d[float]
    """Actions of the step before."""
    env_origins: wp.array[wp.vec3]
    """Origins, world frame [m]."""
    step_dt: float
    """Time between two actions [s]."""
    max_episode_length: int
    """Length of an episode in steps."""
