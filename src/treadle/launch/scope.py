"""The launch scope: everything that one owner recorded and captured, and the order in which it may be dropped."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING

import warp as wp

from treadle.launch.cache import LaunchCache
from treadle.launch.captured import CaptureLog
from treadle.launch.graph import GraphCache
from treadle.launch.modes import LaunchContract, LaunchMode, resolve_contract, resolve_mode
from treadle.launch.stats import LaunchStats

if TYPE_CHECKING:
    from treadle.launch.pipeline import Pipeline, Stage

__all__ = ["LaunchScope"]


class LaunchScope:
    """One launch cache and one graph cache that live and die with their owner.

    A graph must be destroyed before the buffers of its launches are freed. The scope knows the order: graphs are dropped, the
    device is drained, then the recorded commands are dropped, children before their parent.

    Args:
        device: Device to launch on.
        mode: Launch mode of both caches.
        contract: Contract of both caches.
        name: Name of the owner, for messages.
    """

    def __init__(
        self,
        device: wp.DeviceLike = None,
        *,
        mode: LaunchMode | str | None = None,
        contract: LaunchContract | str | None = None,
        name: str | None = None,
    ):
        self._set_up(device, resolve_mode(mode), resolve_contract(contract), name or "LaunchScope", CaptureLog())

    def child(self, name: str) -> LaunchScope:
        """Return a scope for a part of the owner, with the same device, mode and contract.

        Its launches may be captured into graphs of this scope. Invalidating this scope invalidates it first.
        """
        scope = LaunchScope.__new__(LaunchScope)
        scope._set_up(self.device, self.mode, self.contract, f"{self.name}/{name}", self._captures)
        self._children.append(scope)
        return scope

    def pipeline(self, stages: Sequence[Stage]) -> Pipeline:
        """Return a pipeline of stages that uses the graphs of this scope."""
        from treadle.launch.pipeline import Pipeline

        return Pipeline(stages, self)

    def invalidate(self, reason: str) -> None:
        """Drop all graphs and recorded launches of this scope and its children. Call it after replacing buffers.

        Args:
            reason: Why; kept in :attr:`invalidations`.
        """
        self._drop_graphs()
        self._drop_launches()
        self.invalidations.append(reason)

    def close(self) -> None:
        """Drop everything, before the owner's buffers go."""
        self.invalidate("closed")

    @property
    def stats(self) -> LaunchStats:
        """Statistics of this scope and its children."""
        return self.launches.stats.merged(child.stats for child in self._children)

    def __enter__(self) -> LaunchScope:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _set_up(
        self, device: wp.DeviceLike, mode: LaunchMode, contract: LaunchContract, name: str, captures: CaptureLog
    ) -> None:
        self.device = wp.get_device(device)
        self.mode = mode
        self.contract = contract
        self.name = name
        self.invalidations: list[str] = []
        self._captures = captures
        self._children: list[LaunchScope] = []
        self.launches = LaunchCache(self.device, mode=mode, contract=contract, name=name, captures=captures)
        self.graphs = GraphCache(
            self.device, mode=mode, contract=contract, name=name, stats=self.launches.stats, captures=captures
        )

    def _drop_graphs(self) -> None:
        """A graph of this scope may hold launches of a child, so the graphs of the whole tree go before any launch."""
        for child in self._children:
            child._drop_graphs()
        self.graphs.invalidate()

    def _drop_launches(self) -> None:
        for child in self._children:
            child._drop_launches()
        self.launches.invalidate()
