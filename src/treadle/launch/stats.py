"""Counters of what the launch layer did. They are plain integers, cheap enough to be always on."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

__all__ = ["GraphStats", "LaunchStats", "SiteStats"]

_UNSTABLE_AFTER = 8
"""Replays before a site that was patched each time is called unstable."""


@dataclass
class SiteStats:
    """Counts of one site: one kernel with one argument set."""

    kernel: str
    """Name of the kernel."""
    site: Hashable
    """The site, ``None`` for the kernel's default one."""
    eager: int = 0
    """Launches through ``wp.launch``."""
    recorded: int = 0
    """Launches that were recorded (and executed)."""
    replayed: int = 0
    """Launches of a recorded command."""
    patched: int = 0
    """Replays before which at least one argument was patched."""

    @property
    def unstable(self) -> bool:
        """Whether (nearly) every replay had to be patched: the site serves several argument sets."""
        return self.replayed >= _UNSTABLE_AFTER and self.patched >= 0.9 * self.replayed


@dataclass
class GraphStats:
    """Counts of one graph."""

    key: Hashable
    """Key under which the graph is cached."""
    warmups: int = 0
    """Runs without a graph before the first capture."""
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
    """What happened at each site and with each graph of one owner."""

    def __init__(self) -> None:
        self.sites: dict[Hashable, SiteStats] = {}
        self.graphs: dict[Hashable, GraphStats] = {}

    def total(self, counter: str) -> int:
        """Return the sum of one of the counters of :class:`SiteStats` over all sites."""
        return sum(getattr(site, counter) for site in self.sites.values())

    def graph_total(self, counter: str) -> int:
        """Return the sum of one of the counters of :class:`GraphStats` over all graphs."""
        return sum(getattr(graph, counter) for graph in self.graphs.values())

    def unstable_sites(self) -> list[SiteStats]:
        """Return the sites that were patched on (nearly) every replay."""
        return [site for site in self.sites.values() if site.unstable]

    def fallback_reasons(self) -> dict[Hashable, str]:
        """Return, by graph key, why a graph could not be used."""
        return {key: graph.reason for key, graph in self.graphs.items() if graph.reason is not None}

    def merged(self, others: Iterable[LaunchStats]) -> LaunchStats:
        """Return the statistics of this owner together with those of others. The counters are shared, not copied."""
        result = LaunchStats()
        for number, stats in enumerate((self, *others)):
            result.sites.update({(number, key): site for key, site in stats.sites.items()})
            result.graphs.update({(number, key): graph for key, graph in stats.graphs.items()})
        return result

    def __str__(self) -> str:
        """Return a table, a line per site and per graph."""
        lines = [f"{'site':40} {'eager':>9} {'recorded':>9} {'replayed':>9} {'patched':>9}"]
        for site in self.sites.values():
            name = site.kernel if site.site is None else f"{site.kernel} [{site.site}]"
            note = "  unstable" if site.unstable else ""
            lines.append(f"{name:40} {site.eager:9} {site.recorded:9} {site.replayed:9} {site.patched:9}{note}")
        for graph in self.graphs.values():
            note = f"  no graph: {graph.reason}" if graph.reason else ""
            counts = f"{graph.warmups} warm-up, {graph.captures} captured, {graph.launches} launched"
            lines.append(f"graph {graph.key!s:34} {counts}, {graph.fallbacks} without{note}")
        return "\n".join(lines)
