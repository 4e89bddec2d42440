"""Means over the episodes that ended, accumulated on the device and read when somebody asks."""

from __future__ import annotations

from collections.abc import Sequence

import warp as wp

__all__ = ["EpisodeLog"]

_HEAD = 6
"""Entries before the reward terms."""


class EpisodeLog:
    """Sums over ended episodes: their number, time-outs, non-finite ones, steps, whole ones and their time-outs, terms.

    A whole episode is one whose length was not assigned in the middle.

    Args:
        reward_terms: Names of the reward terms.
        episode_length_s: Longest episode [s]; episode sums of rewards are divided by it, as the field does.
        device: Device of the sums.
        means: Names of further means over ended episodes, in the order of their sums after those of the reward terms.
    """

    sums: wp.array
    """Sums that :func:`treadle.envs.funcs.log_episode` adds to, float64."""

    def __init__(
        self,
        reward_terms: Sequence[str],
        episode_length_s: float,
        device: wp.DeviceLike,
        means: Sequence[str] = (),
    ):
        self.reward_terms = tuple(reward_terms)
        self._means = tuple(means)
        self._episode_length_s = episode_length_s
        self.sums = wp.zeros(_HEAD + len(self.reward_terms) + len(self._means), dtype=wp.float64, device=device)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the reward terms and of the further means."""
        return (*self.reward_terms, *self._means)

    @property
    def first_mean(self) -> int:
        """Index of the first further mean in :attr:`sums`."""
        return _HEAD + len(self.reward_terms)

    def pop(self) -> dict[str, float]:
        """Return the means over the episodes that ended since the last call, empty where none did. Synchronizes."""
        episodes, time_outs, non_finite, steps, whole, whole_time_outs, *rest = self.sums.numpy().tolist()
        self.sums.zero_()
        terms, means = rest[: len(self.reward_terms)], rest[len(self.reward_terms) :]
        if not episodes:
            return {}
        log = {
            f"Episode_Reward/{name}": total / episodes / self._episode_length_s
            for name, total in zip(self.reward_terms, terms, strict=True)
        }
        log["Episode_Termination/time_out"] = time_outs / episodes
        log["Episode_Termination/terminated"] = (episodes - time_outs) / episodes
        log["Episode_Termination/non_finite"] = non_finite / episodes
        log |= {name: total / episodes for name, total in zip(self._means, means, strict=True)}
        if whole:
            log["Metrics/success_rate"] = whole_time_outs / whole
        log["Metrics/episode_length"] = steps / episodes
        return log
