"""Bound launches."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
import warp as wp

from treadle.launch import LaunchError, StaleArgumentError

from . import support
from .support import N, buffer, same_bits, zeros


def launch_eagerly(kernel, dim, args, calls, device):
    for _ in range(calls):
        wp.launch(kernel, dim, args, device=device)


@pytest.mark.parametrize("calls", [1, 2, 3, 5])
@pytest.mark.parametrize("contract", ["checked", "trusted", "debug"])
@pytest.mark.parametrize("mode", ["eager", "replay", "graph"])
def test_equals_eager(device, mode, contract, calls):
    x, out, expected = buffer(device), zeros(device), zeros(device)
    cache = support.cache(device, contract, mode)
    bound = cache.bind(support.add, N, [x, 2.0], [out])
    assert out.numpy().sum() == 0.0
    for _ in range(calls):
        bound()
    launch_eagerly(support.add, N, [x, 2.0, expected], calls, device)
    assert same_bits(out, expected)
    assert cache.stats.total("recorded") == (mode != "eager")


def test_set_and_set_dim(device):
    x, y, out, expected = buffer(device), buffer(device, 5.0), zeros(device), zeros(device)
    bound = support.cache(device, "debug").bind(support.add, N, [x, 2.0], [out])
    bound()
    launch_eagerly(support.add, N, [x, 2.0, expected], 1, device)
    bound.set("x", y)
    bound.set("s", 3.0)
    bound()
    launch_eagerly(support.add, N, [y, 3.0, expected], 1, device)
    bound.set_dim(4)
    bound()
    bound.set_dim(0)
    bound()
    bound.set("s", 7.0)
    bound.set_dim([4])
    bound()
    launch_eagerly(support.add, 4, [y, 3.0, expected], 1, device)
    launch_eagerly(support.add, 4, [y, 7.0, expected], 1, device)
    assert same_bits(out, expected)


def test_a_smaller_array_needs_a_dim(device):
    out = zeros(device)
    bound = support.cache(device).bind(support.add, N, [buffer(device), 2.0], [out])
    bound()
    small = buffer(device, 1.0, 4)
    with pytest.raises(LaunchError, match=r"'x' has shape \(8,\).*\(4,\); pass dim="):
        bound.set("x", small)
    bound.set("x", small, dim=4)
    bound()
    assert out.numpy()[7] == 1.0 * 2.75 * 2.0 + 7.0  # not written again


def test_an_unknown_name_lists_the_names(device):
    bound = support.cache(device).bind(support.add, N, [buffer(device), 2.0], [zeros(device)])
    with pytest.raises(LaunchError, match="no argument 'y'; allowed: x, s, out"):
        bound.set("y", 1.0)


def test_a_refused_value_changes_nothing(device):
    x, out, expected = buffer(device), zeros(device), zeros(device)
    bound = support.cache(device).bind(support.add, N, [x, 2.0], [out])
    bound()
    with pytest.raises(RuntimeError):
        bound.set("s", "2")
    with pytest.raises(RuntimeError):
        bound.set("x", zeros(device, dtype=int))
    bound()
    bound.release()
    bound()
    launch_eagerly(support.add, N, [x, 2.0, expected], 3, device)
    assert same_bits(out, expected)


def test_set_to_another_layout_records_again(device):
    x, out, expected = buffer(device), zeros(device), zeros(device)
    cache = support.cache(device)
    bound = cache.bind(support.optional, N, [x], [out])
    generic = cache.bind(support.generic, N, [x, 3.0], [out])
    for value, s in ((x, 3.0), (None, 3)):
        bound.set("x", value)
        generic.set("s", s)
        bound()
        generic()
        launch_eagerly(support.optional, N, [value, expected], 1, device)
        launch_eagerly(support.generic, N, [x, s, expected], 1, device)
    assert same_bits(out, expected)


def test_moved_tensors_are_followed(device):
    x, out, expected = torch.ones(N, device=str(device)), zeros(device), zeros(device)
    cache = support.cache(device)
    bound = cache.bind(support.add, N, [x, 2.0], [out])
    for value in (1.0, 3.0):
        x.data = torch.full((N,), value, device=str(device))
        bound()
        launch_eagerly(support.add, N, [x, 2.0, expected], 1, device)
    assert same_bits(out, expected)
    assert cache.stats.total("patched") == 1


def test_debug_sees_moved_tensors(device):
    x = torch.ones(N, device=str(device))
    bound = support.cache(device, "debug").bind(support.add, N, [x, 2.0], [zeros(device)])
    bound()
    x.data = torch.ones(N, device=str(device))
    with pytest.raises(StaleArgumentError, match="'x'"):
        bound()


def test_structs_are_read_in_place(device):
    params, out, expected = support.Params(), zeros(device), zeros(device)
    params.inner.values = buffer(device)
    bound = support.cache(device).bind(support.structured, N, [params], [out])
    for gain in (1.0, 5.0):
        params.gain = gain
        bound()
        launch_eagerly(support.structured, N, [params, expected], 1, device)
    assert same_bits(out, expected)


def test_its_arguments_live_as_long_as_it_does(device):
    cache = support.cache(device)
    x = buffer(device)
    alive = weakref.ref(x)
    bound = cache.bind(support.add, N, [x, 2.0], [zeros(device)])
    bound()
    del x
    cache.invalidate()
    gc.collect()
    assert alive() is not None
    bound()
    del bound
    gc.collect()
    assert alive() is None
    assert cache.records == []


def test_statistics_by_site(device):
    cache = support.cache(device)
    bound = [cache.bind(support.count, 1, [], [zeros(device)]) for _ in range(2)]
    named = cache.bind(support.count, 1, [], [zeros(device)], site="mine")
    for launch in (*bound, named, named):
        launch()
    assert len(cache.stats.sites) == 2
    assert cache.stats.sites[(support.count, "bound")].recorded == 2
    assert cache.stats.sites[(support.count, "mine")].replayed == 1


@pytest.mark.parametrize("change", ["set", "set_dim", "release"])
def test_each_graph_that_holds_it_follows_each_change(device, change):
    """Also the one that is captured anew after the first change."""
    scope, x, y = support.scope(device), buffer(device), buffer(device, 5.0)
    out, expected = zeros(device), zeros(device)
    bound = scope.launches.bind(support.add, N, [x, 1.0], [out])
    now, dim = x, N
    for number in range(3):
        for _ in range(3):
            scope.graphs.run("one", bound)
            scope.graphs.run("other", lambda: bound())
            launch_eagerly(support.add, dim, [now, 1.0, expected], 2, device)
        if change == "set":
            now = y if now is x else x
            bound.set("x", now)
        elif change == "set_dim":
            dim = 4 + number
            bound.set_dim(dim)
        else:
            bound.release()
    assert same_bits(out, expected)
    assert scope.stats.graph_total("captures") == 6


def test_a_change_inside_a_captured_function_outdates_its_graph_later_too(device):
    scope, x, y, out = support.scope(device), buffer(device), buffer(device, 5.0), zeros(device)
    bound = scope.launches.bind(support.add, N, [x, 1.0], [out])

    def stage():
        bound()
        bound.set("s", 2.0)
        bound()
        bound.set("s", 1.0)

    for _ in range(3):
        scope.graphs.run("stage", stage)
    bound.set("x", y)
    scope.graphs.run("stage", stage)
    expected = zeros(device)
    for value in (x, x, x, y):
        launch_eagerly(support.add, N, [value, 1.0, expected], 1, device)
        launch_eagerly(support.add, N, [value, 2.0, expected], 1, device)
    assert same_bits(out, expected)


def test_a_struct_with_a_smaller_array_needs_a_dim(device):
    out = zeros(device)
    large, small = support.Params(), support.Params()
    large.inner.values, small.inner.values = buffer(device), buffer(device, 1.0, 2)
    cache = support.cache(device, "checked")
    bound = cache.bind(support.structured, N, [large], [out])
    bound()
    with pytest.raises(LaunchError, match=r"'params\.inner\.values' has shape \(8,\) and the new one has \(2,\)"):
        bound.set("params", small)
    bound()
    bound.set("params", small, dim=2)
    bound()
    assert out.numpy().tolist() == [0.0] * N
