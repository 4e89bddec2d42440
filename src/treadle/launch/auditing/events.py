"""What an audit notes while a program runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from treadle.launch.stats import SiteStats

__all__ = ["Birth", "CachedCall", "Event", "Place", "Recording", "Step"]


@dataclass(frozen=True)
class Place:
    """A line of a program, and what happens there."""

    file: str
    line: int
    function: str
    owner: str
    """Package that the line belongs to; ``user`` for the program itself."""
    kernel: str = ""
    """Kernel that is launched there, or what else is done."""
    kind: Literal["launch", "replay", "graph", "sync", "array", "caller"] = "launch"

    @property
    def where(self) -> str:
        """``file:line``."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Birth:
    """Where and when an array object was made."""

    when: int
    """Number of events before it."""
    owns: bool
    """Whether it allocated memory; else it is a view, or wraps memory of another library."""
    place: Place


@dataclass(frozen=True, eq=False)
class CachedCall:
    """What a launch cache was asked for."""

    stats: SiteStats
    """Counts of its site."""
    dynamic: tuple[str, ...]
    """Names of the arguments that are meant to change."""


@dataclass(slots=True)
class Event:
    """A launch, a launch of a recorded command or of a graph, or a host synchronization."""

    place: Place
    start_ns: int
    """When it began."""
    hook_ns: int = 0
    """What the audit itself had cost before it, since the audit began."""
    cost_ns: int = 0
    """Host time of the original call."""
    packing_ns: int = 0
    """On the CPU, for some calls: host time of recording the same launch, which packs arguments and runs nothing. Of a
    launch cache, for all calls: what it does around the recorded command."""
    via: Place | None = None
    """For a launch of a library: the line of the program that called the library."""
    kernel: int = 0
    """Number of the kernel object."""
    names: tuple[str, ...] = ()
    """Argument names."""
    signatures: tuple[Any, ...] = ()
    """Signatures of the arguments."""
    births: dict[int, tuple[Birth | None, Birth | None]] = field(default_factory=dict)
    """By argument: the birth of the array object, and of the array that owns its memory, where either was seen."""
    dim: Any = None
    block_dim: int | None = None
    device: str = ""
    stream: int | None = None
    captured: bool = False
    """Whether the launch became part of a graph instead of running."""
    taped: bool = False
    adjoint: bool = False
    size: int = 0
    """Launches in the graph that was launched."""
    cached: CachedCall | None = None
    """For a launch through a launch cache."""


@dataclass(frozen=True)
class Step:
    """Events of one step: ``events[start:stop]``."""

    start: int
    stop: int


@dataclass
class Recording:
    """All that was noted."""

    events: list[Event]
    other_threads: int = 0
    """Launches from other threads, which are not among the events."""
    drain_ns: int = 0
    """How long the device went on after the last event."""
    hook_ns: int = 0
    """What the audit itself had cost at the end."""
    end_ns: int = 0
    """When the last step was over, before the device was drained."""
