"""Playing a policy and measuring it."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from treadle.envs import VectorEnv
    from treadle.rl.policy import Policy

__all__ = ["Evaluation", "evaluate"]


@dataclass(kw_only=True)
class Evaluation:
    """What an evaluation saw."""

    returns: list[float] = field(default_factory=list)
    """Undiscounted return of each finished episode."""
    lengths: list[int] = field(default_factory=list)
    """Length of each finished episode in environment steps."""
    unfinished: int = 0
    """Episodes that had begun, were to be counted, and had not finished at the end."""
    num_steps: int = 0
    """Environment steps made, in each environment."""
    overflow: str | None = None
    """Which buffers of the solver overflowed and how to enlarge them. Contacts were dropped then, and the returns are
    those of another simulation; ``None`` if none did."""

    def summary(self) -> dict[str, Any]:
        """Return the numbers as plain data. Means are ``None`` when no episode finished."""
        finished = len(self.returns)
        return {
            "finished_episodes": finished,
            "unfinished_episodes": self.unfinished,
            "mean_return": statistics.mean(self.returns) if finished else None,
            "std_return": statistics.pstdev(self.returns) if finished else None,
            "mean_episode_length": statistics.mean(self.lengths) if finished else None,
            "num_steps": self.num_steps,
            "overflow": self.overflow,
        }


def evaluate(
    env: VectorEnv, policy: Policy, *, num_episodes: int | None = None, num_steps: int | None = None
) -> Evaluation:
    """Reset an environment and play a policy in it.

    Counting the first episodes to finish would favour short ones, so with ``num_episodes`` each environment contributes
    its first ``num_episodes / num_envs`` episodes (some one more), however long they take.

    Args:
        env: The environment.
        policy: The policy.
        num_episodes: Episodes to finish; one per environment when neither number is given.
        num_steps: Environment steps to make instead. Every episode that finishes is counted.
    """
    if num_steps is None:
        num_episodes = env.num_envs if num_episodes is None else num_episodes
        shares = [num_episodes // env.num_envs + (i < num_episodes % env.num_envs) for i in range(env.num_envs)]
    else:
        shares = [num_steps] * env.num_envs
    to_count = torch.tensor(shares)
    result = Evaluation()
    obs, _ = env.reset()
    returns, lengths = torch.zeros(env.num_envs), torch.zeros(env.num_envs, dtype=torch.long)
    while (num_steps is None or result.num_steps < num_steps) and bool((to_count > 0).any()):
        obs, reward, terminated, truncated, _ = env.step(policy(obs))
        result.num_steps += 1
        returns += reward.cpu()
        lengths += 1
        done = (terminated | truncated).cpu()
        counted = done & (to_count > 0)
        result.returns += returns[counted].tolist()
        result.lengths += lengths[counted].tolist()
        to_count -= counted.long()
        returns[done], lengths[done] = 0.0, 0
    result.unfinished = int(((lengths > 0) & (to_count > 0)).sum())
    physics = getattr(env, "physics", None)  # an environment from elsewhere may have none
    result.overflow = None if physics is None else physics.describe_overflow()
    return result
