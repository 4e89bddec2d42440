"""The launch scope: everything that one owner recorded and captured, and the order in which it may be dropped."""

from __future__ import annotations

import itertools
import weakref
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
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
from treadle.launch.recorder import LaunchRecorder
from treadle.launch.stats import LaunchStats

if TYPE_CHECKING:
    from treadle.launch.pipeline import Pipeline, Stage

__all__ = ["LaunchScope"]

_KEPT_REASONS = 100


class _Part:
    """What one scope recorded and captured, in the tree of owners. Held weakly: a part that is gone leaves nothing.

    The scope itself does not count: ``scope.child("part").launches.bind(...)`` may be all that somebody keeps.
    """

    def __init__(self, name: str, recorder: LaunchRecorder, graphs: GraphCache, parent: _Part | None):
        self.name = name
        self.parent = parent
        self.children: list[_Part] = []
        self.pipelines: weakref.WeakSet[Pipeline] = weakref.WeakSet()
        self._recorder, self._graphs = weakref.ref(recorder), weakref.ref(graphs)

    @property
    def recorder(self) -> LaunchRecorder | None:
        return self._recorder()

    @property
    def graphs(self) -> GraphCache | None:
        return self._graphs()

    def living(self) -> list[_Part]:
        """Return the children that are alive, or have such children."""
        self.children = [child for child in self.children if child.recorder or child.graphs or child.living()]
        return self.children

    def with_children(self) -> Iterator[_Part]:
        """Yield all parts below this one, then this one."""
        for child in self.living():
            yield from child.with_children()
        yield self

    def root(self) -> _Part:
        """Return the part that all belong to."""
        return self if self.parent is None else self.parent.root()


def _recorders(parts: Iterable[_Part]) -> list[LaunchRecorder]:
    return [recorder for part in parts if (recorder := part.recorder) is not None]


def _graph_caches(parts: Iterable[_Part]) -> list[GraphCache]:
    return [graphs for part in parts if (graphs := part.graphs) is not None]


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

        Returns:
            The scope. The parent does not keep it alive: what it recorded goes when nobody uses it any more.
        """
        self.graphs.recorder.check_open()
        path, number = f"{self.name}/{name}", 1
        taken = {child.name for child in self._part.living()}
        while path in taken:
            number += 1
            path = f"{self.name}/{name}#{number}"
        scope = LaunchScope.__new__(LaunchScope)
        scope.capture_mode = self.capture_mode
        scope._set_up(self.device, self.mode, self.contract, path, self._captures, self._part)
        self._part.children.append(scope._part)
        return scope

    def pipeline(self, stages: Sequence[Stage]) -> Pipeline:
        """Return a pipeline of stages that uses the graphs of this scope.

        They go some time after it: when a pipeline of this scope runs, or anything of the scope is called.
        """
        from treadle.launch.pipeline import Pipeline

        self.graphs.recorder.check_open()
        self._forget_gone()
        self._pipelines += 1
        key = None if self._pipelines == 1 else f"pipeline {self._pipelines}"
        pipeline = Pipeline(stages, self, key=key)
        # A destructor may run at any time, inside of a capture or in another thread: it only leaves word.
        names = tuple(stage.name for stage in pipeline.stages)
        weakref.finalize(pipeline, self._gone.append, (key, names)).atexit = False
        self._part.pipelines.add(pipeline)
        return pipeline

    def exclusive(self) -> AbstractContextManager[Any]:
        """Return a context in which no other thread captures or launches a graph.

        While one thread captures, the others would meddle with it: on the CPU each is told that the device is
        capturing, on CUDA they share its current stream. Pipelines and graphs hold this lock while they run, and
        launches through a launch cache wait while another thread captures. What an owner does beside them
        (``wp.launch``, ``wp.copy``, ``fill_``) belongs in this context where other threads use graphs. It is
        re-entrant; in a mode without graphs it does nothing.
        """
        if self._gone:
            self._forget_gone()
        return self.graphs.recorder.exclusive

    def invalidate(self, reason: str) -> None:
        """Drop all graphs and recorded launches of this scope and its children. Call it after replacing buffers.

        Args:
            reason: Why; kept in :attr:`invalidations`.

        Raises:
            LaunchError: A graph is being captured, so that nothing may be dropped.
        """
        with self.exclusive():
            for recorder in self._drop_graphs(reason):
                recorder.invalidate()
            self._note_invalidation(reason)

    def pointers(self) -> list[CachedPointer]:
        """Return every pointer that a record, a bound launch or a graph of this scope or its children uses."""
        self._forget_gone()
        parts = list(self._part.with_children())
        caches = [cache for part in parts for cache in (part.recorder, part.graphs) if cache is not None]
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
        self.graphs.recorder.check_open()
        with self.exclusive():
            self._refuse_while_capturing(reason)
            bound = [launch for recorder in _recorders(self._part.with_children()) for launch in recorder.bound]
            plan = plan_rebinding(self.name, bound, replaced)
            for recorder in self._drop_graphs(reason):
                recorder.drop()
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

    def _drop_graphs(self, reason: str) -> list[LaunchRecorder]:
        """Drop all graphs that depend on this scope and its children, and drain the device; return what is recorded."""
        self._refuse_while_capturing(reason)
        parts = list(self._part.with_children())
        recorders = _recorders(parts)
        for recorder in recorders:
            recorder.outdate_graphs()
        for graphs in _graph_caches(parts):
            graphs.invalidate()
        # A graph of a parent may hold launches of this scope.
        for graphs in _graph_caches(self._part.root().with_children()):
            graphs.recorder.drop_outdated()
        wp.synchronize_device(self.device)
        return recorders

    def _forget_gone(self) -> None:
        """Drop the graphs of pipelines that nobody has any more."""
        if self.device.is_capturing:
            return
        while self._gone:
            key, names = self._gone.popleft()
            for first, last in itertools.combinations(range(len(names) + 1), 2):
                island = names[first:last]
                self.graphs.forget(island if key is None else (key, *island))

    def close(self) -> None:
        """Drop everything, before the owner's buffers go. The parent forgets this scope.

        What was bound, pipelines and children raise :class:`LaunchError` from then on. They let go of their arguments
        and functions.
        """
        self.invalidate("closed")
        parts = list(self._part.with_children())
        for recorder in _recorders(parts):
            recorder.close()
        for graphs in _graph_caches(parts):
            graphs.recorder.closed = True
        for part in parts:
            for pipeline in list(part.pipelines):
                pipeline.close()
        parent = self._part.parent
        if parent is not None and self._part in parent.children:
            parent.children.remove(self._part)

    @property
    def stats(self) -> LaunchStats:
        """Statistics of this scope and its children."""
        self._forget_gone()
        parts = reversed(list(self._part.with_children()))
        return LaunchStats.merged(recorder.stats for recorder in _recorders(parts))

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
        parent: _Part | None,
    ) -> None:
        self.device = wp.get_device(device)
        self.name = name
        self.invalidations: list[str] = []
        """Why this scope was invalidated, the last hundred times."""
        self._captures = captures
        self._pipelines = 0
        self._gone: deque[tuple[Hashable, tuple[str, ...]]] = deque()
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
        self._part = _Part(name, self.launches.recorder, self.graphs, parent)

    @property
    def mode(self) -> LaunchMode:
        """Launch mode of both caches. Fixed: another mode is another scope."""
        return self.launches.mode

    @property
    def contract(self) -> LaunchContract:
        """Contract of both caches. Fixed, too."""
        return self.launches.contract
