"""Arguments that are declared dynamic."""

from __future__ import annotations

import pytest

from treadle.launch import LaunchError, StaleArgumentError

from . import support
from .support import N, buffer, same_bits, zeros


@pytest.mark.parametrize("contract", ["checked", "trusted", "debug"])
def test_they_may_change(device, contract):
    cache, x, out, expected = support.cache(device, contract), buffer(device), zeros(device), zeros(device)
    launch = support.eager_launch(device)
    for i in range(20):
        cache.launch(support.add, N, [x, float(i // 2)], [out], dynamic=("s",))
        launch(support.add, N, [x, float(i // 2)], [expected])
    assert same_bits(out, expected)
    (site,) = cache.stats.sites.values()
    assert (site.recorded, site.replayed, site.patched, site.dynamic) == (1, 19, 0, 9)
    assert not site.unstable


def test_arrays_too_and_the_others_are_verified(device):
    cache, out, expected = support.cache(device, "debug"), zeros(device), zeros(device)
    launch = support.eager_launch(device)
    for i in range(4):
        x = buffer(device, float(i))
        cache.launch(support.add, N, [x, 1.0], [out], dynamic=("x",))
        launch(support.add, N, [x, 1.0], [expected])
    assert same_bits(out, expected)
    with pytest.raises(StaleArgumentError, match=r"argument 's'.*dynamic="):
        cache.launch(support.add, N, [x, 2.0], [out], dynamic=("x",))
    cache.launch(support.add, N, [x, 2.0], [out], dynamic=("x", "s"))
    with pytest.raises(StaleArgumentError, match="argument 'x'"):
        cache.launch(support.add, N, [buffer(device), 2.0], [out])


def test_a_name_that_the_kernel_does_not_have(device):
    cache, x, out = support.cache(device), buffer(device), zeros(device)
    for _ in range(2):
        with pytest.raises(LaunchError, match="kernel 'add' has no argument 'dt'; allowed: x, s, out"):
            cache.launch(support.add, N, [x, 1.0], [out], dynamic=("dt",))
    with pytest.raises(LaunchError, match="no argument 'dt'"):
        cache.bind(support.add, N, [x, 1.0], [out], dynamic=("dt",))


def test_bound_ones_are_set_by_name(device):
    cache, x, out, expected = support.cache(device, "debug"), buffer(device), zeros(device), zeros(device)
    params = support.Params()
    params.inner.values = x
    bound = cache.bind(support.structured, N, [params], [out], dynamic=("params",))
    scaled = cache.bind(support.add, N, [x, 1.0], [out], dynamic=("s",))
    launch = support.eager_launch(device)
    for i in range(4):
        params.gain = float(i)
        scaled.set("s", float(i))
        bound()
        scaled()
        launch(support.structured, N, [params], [expected])
        launch(support.add, N, [x, float(i)], [expected])
    assert same_bits(out, expected)
    assert cache.stats.total("patched") == 0


def test_in_a_graph_they_are_inputs(device):
    scope, x, out, expected = support.scope(device, "debug"), buffer(device), zeros(device), zeros(device)
    launch = support.eager_launch(device)
    gain = 1.0

    def stage():
        scope.launches.launch(support.add, N, [x, gain], [out], dynamic=("s",))

    for gain in (1.0, 1.0, 1.0, 2.0, 2.0, 2.0):
        scope.graphs.run("stage", stage, inputs=[gain])
        launch(support.add, N, [x, gain], [expected])
    assert same_bits(out, expected)
    assert scope.stats.graph_total("captures") == 2
    scope.graphs.run("forgotten", stage)
    scope.graphs.run("forgotten", stage)
    gain = 4.0
    with pytest.raises(StaleArgumentError, match=r"argument 's'.*Stage\(inputs=...\)"):
        scope.graphs.run("forgotten", stage)
