"""The launch scope: everything that one owner recorded and captured, and the order in which it may be dropped."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any

import warp as wp

from treadle.launch.cache import LaunchCache
from treadle.launch.captured import CaptureLog
from treadle.launch.errors import LaunchError
from treadle.launch.graph import GraphCache
from treadle.launch.modes import LaunchContract, LaunchMode, resolve_contract, resolve_mode
from treadle.launch.pointers import CachedPointer
from treadle.launch.rebinding import plan_rebinding
from treadle.launch.stats import LaunchStats

if TYPE_CHECKING:
    from treadle.launch.pipeline import Pipeline, Stage

__all__ = ["LaunchScope"]

_KEPT_REASONS = 100


class LaunchScope:
    """One launch cache and one graph cache that live and die with their owner.

    A graph must be destroyed before the buffers of its launches are freed. The scope knows the order: graphs are
    dropped, the device is drained, then the recorded commands are dropped, children before their parent.

    Args:
        device: Device to launch on.
        mode: Launch mode of both caches.
        contract: Contract of both caches.
        name: Name of the owner, for messages.
        capture_mode: What the CUDA driver refuses during a capture; see :class:`GraphCache`.
    """

    def __init__(
        self,
        device: wp.DeviceLike = None,
        *,
        mode: LaunchMode | str | None = None,
        contract: LaunchContract | str | None = None,
        name: str | None = None,
        capture_mode: wp.CaptureMode = wp.CaptureMode.THREAD_LOCAL,
    ):
        self.capture_mode = capture_mode
        self._set_up(device, resolve_mode(mode), resolve_contract(contract), name or "LaunchScope", CaptureLog(), None)

    def child(self, name: str) -> LaunchScope:
        """Return a scope for a part of the owner, with the same device, mode and contract.

        Its launches may be captured into graphs of this scope. Invalidating this scope invalidates the child first;
        invalidating the child drops those graphs of this scope that hold launches of it.

        Args:
            name: Name of the part. A second child of that name is called ``name#2``.
        """
        self.graphs.check_open()
        path, number = f"{self.name}/{name}", 1
        while any(child.name == path for child in self._children):
            number += 1
            path = f"{self.name}/{name}#{number}"
        scope = LaunchScope.__new__(LaunchScope)
        scope.capture_mode = self.capture_mode
        scope._set_up(self.device, self.mode, self.contract, path, self._captures, self)
        self._children.append(scope)
        return scope

    def pipeline(self, stages: Sequence[Stage]) -> Pipeline:
        """Return a pipeline of stages that uses the graphs of this scope."""
        from treadle.launch.pipeline import Pipeline

        self.graphs.check_open()
        self._pipelines += 1
        return Pipeline(stages, self, key=None if self._pipelines == 1 else f"pipeline {self._pipelines}")

    def exclusive(self) -> AbstractContextManager[Any]:
        """Return a context in which no other thread captures or launches a graph on the CPU.

        On the CPU every thread is told that the device is capturing while one of them does, and meddles with that
        capture. Pipelines and graphs hold this lock while they run, and launches through a launch cache wait while
        another thread captures. What an owner does beside them (``wp.launch``, ``wp.copy``, ``fill_``) belongs in this
        context where other threads use graphs. It is re-entrant; on CUDA, or in a mode without graphs, it does nothing.
        """
        return self.graphs.exclusive

    def invalidate(self, reason: str) -> None:
        """Drop all graphs and recorded launches of this scope and its children. Call it after replacing buffers.

        Args:
            reason: Why; kept in :attr:`invalidations`.

        Raises:
            LaunchError: A graph is being captured, so that nothing may be dropped.
        """
        with self.exclusive():
            parts = self._drop_graphs(reason)
            for part in parts:
                part.launches.invalidate()
            self._note_invalidation(reason)

    def pointers(self) -> list[CachedPointer]:
        """Return every pointer that a record, a bound launch or a graph of this scope or its children uses."""
        caches = [cache for part in self._parts() for cache in (part.launches, part.graphs)]
        return [pointer for cache in caches for pointer in cache.pointers()]

    def rebind(self, replaced: Iterable[tuple[Any, Any]] = (), reason: str = "rebound") -> list[CachedPointer]:
        """Follow the owner's arguments to where they are now: after a hard reset, with a new model, with new storage.

        Graphs and records are dropped as by :meth:`invalidate`; the next calls record what they are given then. Bound
        launches, which are given nothing, are bound to the new arguments: all of them, or none where a pair is wrong.
        What a function passes to ``launch`` is not changed; the function itself has to pass the new one.

        Args:
            replaced: Old and new arguments of bound launches, by identity; arrays of the same shape and type. For a
                number, or another size, there is :meth:`BoundLaunch.set`.
            reason: Why; kept in :attr:`invalidations`.

        Returns:
            The pointers that are cached now, all of bound launches.

        Raises:
            LaunchError: A graph is being captured, the scope is closed, or a pair can't be followed: no bound launch
                has the old argument, or the new one does not fit. The message lists all such pairs.
        """
        self.graphs.check_open()
        with self.exclusive():
            self._refuse_while_capturing(reason)
            bound = [launch for part in self._parts() for launch in part.launches.bound]
            plan = plan_rebinding(self.name, bound, replaced)
            for part in self._drop_graphs(reason):
                part.launches.drop_records()
            for launch, call in plan:
                launch.rebind(call)
            self._note_invalidation(reason)
        return self.pointers()

    def _note_invalidation(self, reason: str) -> None:
        self.invalidations.append(reason)
        del self.invalidations[:-_KEPT_REASONS]

    def _refuse_while_capturing(self, reason: str) -> None:
        if self.device.is_capturing:
            raise LaunchError(f"{self.name} can't be invalidated while a graph is being captured ({reason})")

    def _drop_graphs(self, reason: str) -> list[LaunchScope]:
        """Drop all graphs that depend on this scope and its children, and drain the device; return those scopes."""
        self._refuse_while_capturing(reason)
        parts = list(self._parts())
        for part in parts:
            part.launches.outdate_graphs()
        for part in parts:
            part.graphs.invalidate()
        # A graph of a parent may hold launches of this scope.
        for scope in self._root()._parts():
            scope.graphs.drop_outdated()
        wp.synchronize_device(self.device)
        return parts

    def close(self) -> None:
        """Drop everything, before the owner's buffers go. The parent forgets this scope.

        What was bound, pipelines and children raise :class:`LaunchError` from then on.
        """
        self.invalidate("closed")
        for part in self._parts():
            part.launches.closed = part.graphs.closed = True
        parent = self._parent()
        if parent is not None and self in parent._children:
            parent._children.remove(self)

    @property
    def stats(self) -> LaunchStats:
        """Statistics of this scope and its children."""
        return LaunchStats.merged(part.launches.stats for part in reversed(list(self._parts())))

    def __enter__(self) -> LaunchScope:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _set_up(
        self,
        device: wp.DeviceLike,
        mode: LaunchMode,
        contract: LaunchContract,
        name: str,
        captures: CaptureLog,
        parent: LaunchScope | None,
    ) -> None:
        self.device = wp.get_device(device)
        self.name = name
        self.invalidations: list[str] = []
        """Why this scope was invalidated, the last hundred times."""
        self._captures = captures
        self._parent: Callable[[], LaunchScope | None] = (lambda: None) if parent is None else weakref.ref(parent)
        self._children: list[LaunchScope] = []
        self._pipelines = 0
        self.launches = LaunchCache(self.device, mode=mode, contract=contract, name=name, captures=captures)
        self.graphs = GraphCache(
            self.device,
            mode=mode,
            contract=contract,
            name=name,
            stats=self.launches.stats,
            captures=captures,
            capture_mode=self.capture_mode,
        )

    @property
    def mode(self) -> LaunchMode:
        """Launch mode of both caches. Fixed: another mode is another scope."""
        return self.launches.mode

    @property
    def contract(self) -> LaunchContract:
        """Contract of both caches. Fixed, too."""
        return self.launches.contract

    def _parts(self) -> Iterator[LaunchScope]:
        """Yield the children, then this scope."""
        for child in self._children:
            yield from child._parts()
        yield self

    def _root(self) -> LaunchScope:
        parent = self._parent()
        return self if parent is None else parent._root()
