"""Counters and reports."""

from __future__ import annotations

from . import support
from .support import N, buffer, zeros


def test_a_site_that_is_patched_each_time_is_unstable(device):
    cache, out = support.cache(device), zeros(device)
    for i in range(8):
        cache.launch(support.add, N, [buffer(device), float(i)], [out], site="many")
        cache.launch(support.count, 1, [], [out])
    assert not cache.stats.unstable_sites()
    cache.launch(support.add, N, [buffer(device), 9.0], [out], site="many")
    (site,) = cache.stats.unstable_sites()
    assert (site.kernel, site.site, site.patched) == ("add", "many", 8)
    assert "add [many]" in str(cache.stats)
    assert "unstable" in str(cache.stats)


def test_a_site_whose_layout_flips_is_unstable(device):
    cache, x, out = support.cache(device), buffer(device), zeros(device)
    for i in range(10):
        cache.launch(support.optional, N, [x if i % 2 else None], [out])
    assert cache.stats.unstable_sites()


def test_invalidations_are_not_instability(device):
    cache, x, out = support.cache(device), buffer(device), zeros(device)
    for _ in range(30):
        cache.launch(support.add, N, [x, 1.0], [out])
        cache.invalidate()
    assert not cache.stats.unstable_sites()


def test_a_tree_of_owners(device):
    scope = support.scope(device)
    out = zeros(device)
    arms = [scope.child("arm") for _ in range(3)]
    parts = [scope, arms[0], arms[1], arms[2].child("hand")]
    for part in parts:
        part.launches.launch(support.count, 1, [], [out])
    stats = scope.stats
    assert stats.total("recorded") == 4
    owners = [site.owner for site in stats.sites.values()]
    assert owners == ["owner", "owner/arm#3/hand", "owner/arm#2", "owner/arm"]
    table = str(stats)
    assert "\ncount " in table
    assert "arm#3/hand: count" in table


def test_graphs_are_reported(device):
    scope, out = support.scope(device), zeros(device)

    def broken():
        scope.launches.launch(support.count, 1, [], [out])
        if device.is_capturing:
            raise RuntimeError("not in a graph")

    for _ in range(3):
        scope.graphs.run("good", lambda: scope.launches.launch(support.add, N, [out, 1.0], [out]))
        scope.graphs.run("bad", broken)
    stats = scope.stats
    assert stats.fallback_reasons() == {("owner", "bad"): "RuntimeError: not in a graph"}
    assert stats.graph_total("captures") == 1
    assert stats.graph_total("launches") == 2
    assert stats.graph_total("warmups") == 2
    assert stats.graph_total("fallbacks") == 2
    assert "no graph: RuntimeError: not in a graph" in str(stats)
    assert scope.graphs.stats.graphs["good"].sites == ["add"]
