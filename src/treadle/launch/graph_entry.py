"""What a graph cache knows about one key."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import warp as wp

from treadle.launch.captured import CapturedLaunches
from treadle.launch.identity import function_identity, function_name
from treadle.launch.stats import GraphStats

__all__ = ["GraphEntry"]


@dataclass
class GraphEntry:
    """A key: its function, its graph, and what the graph was captured with."""

    stats: GraphStats
    warm: bool = False
    graph: wp.Graph | None = None
    launches: CapturedLaunches | None = None
    inputs: tuple[object, ...] = ()
    alive: list[Any] = field(default_factory=list)
    restless: int = 0
    launched: int = 0
    may_allocate: bool = True
    seen: weakref.ref[Any] | None = None
    identity: object = None
    name: str = ""

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

    def drop(self) -> tuple[Any, ...]:
        """Destroy the graph; return what must live until the device is idle."""
        used = (self.launches, self.alive)
        self.graph, self.launches, self.inputs, self.alive = None, None, (), []
        return used
