"""Direct environments whose task is computed by Warp kernels."""

from __future__ import annotations

from typing import ClassVar

from treadle.envs.direct_env import DirectEnv

__all__ = ["DirectWarpEnv"]


class DirectWarpEnv(DirectEnv):
    """Base of a task in Warp: every stage only launches kernels, so the whole step is one graph.

    A task launches its kernels through ``self.scope.launches.launch`` (or :meth:`_launch_per_env`) on persistent
    arrays. Random numbers come from ``buffers.random_state``: a kernel loads the state of its environment, draws,
    and stores the state back.
    """

    task_frontend: ClassVar[str] = "warp"
