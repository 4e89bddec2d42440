"""What a graph cache knows about one key."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import warp as wp

from treadle.launch.captured import CapturedLaunches
from treadle.launch.identity import function_identity, function_name
from treadle.launch.inputs import KnownInputs
from treadle.launch.stats import GraphStats

__all__ = ["CapturedGraph", "GraphEntry"]

_MAX_KEPT = 3
"""Graphs that are kept beside the current one, for inputs that come back."""
_SETTLED_AFTER = 10
"""Launches after which a capture has paid for itself."""


@dataclass(eq=False)
class CapturedGraph:
    """A graph, and what it was captured with."""

    graph: wp.Graph | None
    launches: CapturedLaunches
    inputs: KnownInputs
    launched: int = 0

    def destroy(self) -> tuple[Any, ...]:
        """Destroy the graph; return what must live until the device is idle."""
        self.graph = None
        return self.launches, self.inputs

    @property
    def outdated(self) -> bool:
        """Whether it can't be launched any more, whatever the inputs."""
        return self.launches.outdated or self.launches.reloaded

    def takes(self, values: Sequence[Any]) -> bool:
        """Return whether it was captured with these inputs."""
        return self.inputs.match(values) and not self.launches.inputs_changed


@dataclass
class GraphEntry:
    """A key: its function, and its graphs.

    There is one graph, until inputs come back that an earlier graph was captured with: states that take turns, say.
    From then on graphs are kept when the inputs change, for as long as that spares captures. They keep their arguments
    alive.
    """

    stats: GraphStats
    warm: bool = False
    current: CapturedGraph | None = None
    others: list[CapturedGraph] = field(default_factory=list)
    restless: int = 0
    may_allocate: bool = True
    seen: weakref.ref[Any] | None = None
    identity: object = None
    name: str = ""
    _launches_before: int = 0
    """Launches before the last capture."""
    _past: list[object] = field(default_factory=list)
    """Signatures of the inputs of graphs that were destroyed for others."""
    _in_vain: int | None = None
    """Captures since a kept graph was launched again; ``None`` while no graphs are kept."""

    @property
    def graph(self) -> wp.Graph | None:
        """The graph that was launched last."""
        return None if self.current is None else self.current.graph

    @property
    def launches(self) -> CapturedLaunches | None:
        """What it holds."""
        return None if self.current is None else self.current.launches

    @property
    def graphs(self) -> list[CapturedGraph]:
        """All graphs, the one that was launched last at the end."""
        return self.others if self.current is None else [*self.others, self.current]

    def stands_for(self, fn: Callable[[], object]) -> bool:
        """Return whether the key stands for this function; the first one that is seen decides."""
        if self.seen is not None and self.seen() is fn:
            return True
        identity = function_identity(fn)
        if self.identity is None:
            self.identity, self.name = identity, function_name(fn)
        elif identity != self.identity:
            return False
        try:
            self.seen = weakref.ref(fn)
        except TypeError:  # of a built-in type
            self.seen = None
        return True

    def recall(self, values: Sequence[Any], *, unmoved: bool) -> CapturedGraph | None:
        """Make the kept graph for some inputs the current one, if there is one.

        Args:
            values: The inputs.
            unmoved: Whether to pass over a graph with an argument that changed behind its identity.
        """
        for graph in self.others:
            if graph.outdated or (unmoved and graph.launches.moved()) or not graph.takes(values):
                continue
            self.others = [other for other in self.graphs if other is not graph]
            self.current, self._in_vain = graph, 0
            self.stats.sites = graph.launches.kernel_names
            return graph
        return None

    def make_room(self, inputs: KnownInputs) -> list[CapturedGraph]:
        """Retire the current graph before a capture with other inputs; return the graphs that are to be destroyed."""
        current, graphs = self.current, self.graphs
        if current is None:
            return []
        settled = self.stats.launches - self._launches_before >= _SETTLED_AFTER
        self.restless = 0 if settled else self.restless + 1
        if self._in_vain is None and (inputs.signature, current.launches.inputs_now) in self._past:
            self._in_vain = 0
        if self._in_vain is None or self._in_vain > _MAX_KEPT:
            self._past = [*self._past, (current.inputs.signature, current.launches.inputs_then)][-_MAX_KEPT:]
            self._in_vain, kept = None, []
        else:
            self._in_vain += 1
            kept = [graph for graph in graphs if not graph.outdated and not graph.launches.moved()][-_MAX_KEPT:]
        self.current, self.others = None, kept
        return [graph for graph in graphs if graph not in kept]

    def take(self, graph: CapturedGraph) -> None:
        """Make a new graph the current one."""
        self.current = graph
        self.stats.sites = graph.launches.kernel_names
        self._launches_before = self.stats.launches

    def forget_graphs(self) -> list[CapturedGraph]:
        """Let go of all graphs, and of what is known of past inputs; return the graphs, to be destroyed."""
        gone, self.current, self.others = self.graphs, None, []
        self._past, self._in_vain = [], None
        return gone

    def forget_outdated(self) -> list[CapturedGraph]:
        """Let go of the graphs that can't be launched any more; return them, to be destroyed."""
        gone = [graph for graph in self.graphs if graph.launches.outdated]
        self.others = [graph for graph in self.others if graph not in gone]
        if self.current in gone:
            self.current = None
        return gone
