"""What a graph keeps alive, and what goes with it."""

from __future__ import annotations

import gc
import weakref

import pytest
import warp as wp

from treadle.launch import GraphCache
from treadle.launch.captured import CapturedLaunches

from . import support
from .support import N, buffer, same_bits, zeros


def test_a_graph_keeps_its_arguments_alive(device):
    scope, out, expected = support.scope(device), zeros(device), zeros(device)
    x, params = buffer(device), support.Params()
    params.inner.values = buffer(device, 3.0)
    alive = [weakref.ref(x), weakref.ref(params.inner.values)]

    def stage(x):
        scope.launches.launch(support.add, N, [x, 1.0], [out])
        scope.launches.launch(support.structured, N, [params], [out])

    def eagerly(x, values):
        wp.launch(support.add, N, [x, 1.0, expected], device=device)
        params.inner.values = values
        wp.launch(support.structured, N, [params, expected], device=device)

    for _ in range(2):
        scope.graphs.run("stage", lambda: stage(x))
        eagerly(x, params.inner.values)
    old_x, old_values = x.numpy().copy(), params.inner.values.numpy().copy()
    # The same sites go on with other arrays; the graph is not asked for meanwhile.
    x, params.inner.values = buffer(device, 50.0), buffer(device, 60.0)
    stage(x)
    eagerly(x, params.inner.values)
    gc.collect()
    assert all(ref() is not None for ref in alive)
    assert (alive[0]().numpy() == old_x).all()
    assert (alive[1]().numpy() == old_values).all()
    assert same_bits(out, expected)
    scope.invalidate("done")
    gc.collect()
    assert all(ref() is None for ref in alive)


def test_a_graph_keeps_its_inputs_alive(device):
    graphs, out, x = GraphCache(device, mode="auto", contract="checked"), zeros(device), buffer(device)
    alive = weakref.ref(x)

    def stage():
        wp.launch(support.count, 1, [out], device=device)

    for _ in range(2):
        graphs.run("stage", stage, inputs=[x])
    del x
    assert alive() is not None
    graphs.run("stage", stage, inputs=[])
    assert alive() is None


def test_captured_launches_hold_what_arguments_referred_to(device):
    params = support.Params()
    params.inner.values = buffer(device)
    alive = weakref.ref(params.inner.values)
    captured = CapturedLaunches()
    captured.note("owner", support.structured, None, [params, None], [None, None], "cache")
    captured.seal()
    params.inner.values = buffer(device)
    assert captured.moved()
    assert alive() is not None
    del captured
    assert alive() is None


def test_capture_and_destroy_does_not_grow(device):
    def cycle():
        scope = support.scope(device)
        x, out = buffer(device), zeros(device)
        for _ in range(3):
            scope.graphs.run("stage", lambda: scope.launches.launch(support.add, N, [x, 1.0], [out]), inputs=[x])
        kept.append(weakref.ref(x))
        scope.close()

    kept: list[weakref.ref] = []
    for _ in range(5):
        cycle()
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(50):
        cycle()
    gc.collect()
    grown = len(gc.get_objects()) - before
    assert not [ref for ref in kept if ref() is not None]
    assert grown < 200, f"{grown} objects more after 50 cycles"  # 50 of them are the weak references


@pytest.mark.gpu
def test_capture_and_destroy_keeps_device_memory_constant():
    device = wp.get_device("cuda:0")
    n = 1 << 20

    def cycle():
        scope = support.scope(device)
        x, out = zeros(device, n), zeros(device, n)

        def stage():
            temporary = wp.empty(n, dtype=float, device=device)
            wp.copy(temporary, x)
            scope.launches.launch(support.add, n, [x, 1.0], [out])

        for _ in range(3):
            scope.graphs.run("stage", stage)
        scope.close()

    for _ in range(5):
        cycle()
    gc.collect()
    wp.synchronize_device(device)
    used = wp.get_mempool_used_mem_current(device)
    for _ in range(50):
        cycle()
    gc.collect()
    wp.synchronize_device(device)
    assert wp.get_mempool_used_mem_current(device) <= used
