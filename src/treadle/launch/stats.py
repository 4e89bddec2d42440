"""Counters of what the launch layer did. They are plain integers, cheap enough to be always on."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

__all__ = ["GraphStats", "LaunchStats", "SiteStats"]

_UNSTABLE_AFTER = 8
"""Calls before a site that changed each time is called unstable."""
_UNSTABLE_SHARE = 0.9


@dataclass(slots=True)
class SiteStats:
    """Counts of one site: one kernel with one argument set."""

    kernel: str
    """Name of the kernel."""
    site: Hashable
    """The site, ``None`` for the kernel's default one."""
    owner: str = ""
    """Name of the launch cache."""
    eager: int = 0
    """Launches through ``wp.launch``."""
    recorded: int = 0
    """Launches that were recorded (and executed)."""
    rerecorded: int = 0
    """Those of them that replaced a record, because the layout of the arguments changed."""
    replayed: int = 0
    """Launches of a recorded command."""
    patched: int = 0
    """Replays before which an argument or the number of threads was patched."""

    dynamic: int = 0
    """Replays before which an argument that is declared dynamic was patched."""

    @property
    def unstable(self) -> bool:
        """Whether (nearly) every call had to patch or to record again: the site serves several argument sets."""
        changes, calls = self.patched + self.rerecorded, self.replayed + self.rerecorded
        return calls >= _UNSTABLE_AFTER and changes >= _UNSTABLE_SHARE * calls


@dataclass
class GraphStats:
    """Counts of one graph."""

    key: Hashable
    """Key under which the graph is cached."""
    owner: str = ""
    """Name of the graph cache."""
    warmups: int = 0
    """Runs without a graph before a first capture, one after each invalidation."""
    captures: int = 0
    """Captures, recaptures included."""
    launches: int = 0
    """Launches of the graph."""
    fallbacks: int = 0
    """Runs without a graph after a capture failed or was given up."""
    reason: str | None = None
    """Why there is no graph; ``None`` while all is well."""
    sites: list[str] = field(default_factory=list)
    """Kernels that the owner's launch caches put into the graph, in order."""


class LaunchStats:
    """What happened at each site and with each graph of one owner.

    Args:
        owner: Name of the owner.
    """

    def __init__(self, owner: str = "") -> None:
        self.owner = owner
        self.sites: dict[Hashable, SiteStats] = {}
        """By ``(kernel, site)``; by ``(owner, (kernel, site))`` in the statistics of several owners."""
        self.graphs: dict[Hashable, GraphStats] = {}
        """By graph key; by ``(owner, key)`` in the statistics of several owners."""

    @classmethod
    def merged(cls, parts: Iterable[LaunchStats]) -> LaunchStats:
        """Return the statistics of several owners together. The counters are shared, not copied."""
        result = cls()
        for part in parts:
            result.owner = result.owner or part.owner
            result.sites.update({(part.owner, key): site for key, site in part.sites.items()})
            result.graphs.update({(part.owner, key): graph for key, graph in part.graphs.items()})
        return result

    def total(self, counter: str) -> int:
        """Return the sum of one of the counters of :class:`SiteStats` over all sites."""
        return sum(getattr(site, counter) for site in self.sites.values())

    def graph_total(self, counter: str) -> int:
        """Return the sum of one of the counters of :class:`GraphStats` over all graphs."""
        return sum(getattr(graph, counter) for graph in self.graphs.values())

    def unstable_sites(self) -> list[SiteStats]:
        """Return the sites that changed on (nearly) every call."""
        return [site for site in self.sites.values() if site.unstable]

    def fallback_reasons(self) -> dict[Hashable, str]:
        """Return, by graph key, why a graph could not be used."""
        return {key: graph.reason for key, graph in self.graphs.items() if graph.reason is not None}

    def __str__(self) -> str:
        """Return a table, a line per site and per graph."""
        lines = [f"{'site':40} {'eager':>9} {'recorded':>9} {'replayed':>9} {'patched':>9}"]
        for site in self.sites.values():
            name = self._local(site.owner) + (site.kernel if site.site is None else f"{site.kernel} [{site.site}]")
            note = "  unstable" if site.unstable else ""
            lines.append(f"{name:40} {site.eager:9} {site.recorded:9} {site.replayed:9} {site.patched:9}{note}")
        for graph in self.graphs.values():
            note = f"  no graph: {graph.reason}" if graph.reason else ""
            counts = f"{graph.warmups} warm-up, {graph.captures} captured, {graph.launches} launched"
            name = self._local(graph.owner) + str(graph.key)
            lines.append(f"graph {name:34} {counts}, {graph.fallbacks} without{note}")
        return "\n".join(lines)

    def _local(self, owner: str) -> str:
        """Return the name of a part of this owner as a prefix, nothing for the owner itself."""
        return "" if owner == self.owner else owner.removeprefix(f"{self.owner}/") + ": "
