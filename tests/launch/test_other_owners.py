"""Launches of other owners, other devices and other streams inside a captured function."""

from __future__ import annotations

import pytest
import torch
import warp as wp

from treadle.launch import GraphCache, LaunchCache, LaunchError, LaunchScope, Stage

from . import support
from .support import N, buffer, same_bits, zeros


@pytest.mark.parametrize("contract", ["checked", "trusted", "debug"])
def test_a_bound_launch_of_another_cache(device, contract):
    x, out, expected = buffer(device), zeros(device), zeros(device)
    bound = LaunchCache(device, mode="replay", contract=contract).bind(support.add, N, [x, 1.0], [out])
    graphs = GraphCache(device, mode="graph", contract=contract)
    for s in (1.0, 1.0, 1.0, 100.0, 100.0):
        if s != 1.0:
            bound.set("s", s)
        graphs.run("stage", bound)
        wp.launch(support.add, N, [x, s, expected], device=device)
    assert same_bits(out, expected)
    assert graphs.sites("stage") == ["add"]


def test_a_sibling_scope(device):
    env, solver = (LaunchScope(device, mode="graph", contract="checked", name=name) for name in ("env", "solver"))
    x, y, out, expected = buffer(device), buffer(device, 9.0), zeros(device), zeros(device)
    bound = solver.launches.bind(support.add, N, [x, 1.0], [out])
    pipeline = env.pipeline([Stage("solve", bound)])
    for array in (x, x, x, y, y):
        if array is y:
            solver.rebind([(x, y)] if bound.call.args[0] is x else [])
        pipeline.run()
        wp.launch(support.add, N, [array, 1.0, expected], device=device)
    assert same_bits(out, expected)
    assert pipeline.explain().rows[0].launches == 1


def test_inputs_of_a_run_of_another_owner(device):
    outer, inner = (LaunchScope(device, mode="graph", contract="checked", name=name) for name in ("outer", "inner"))
    arrays, out, expected = [buffer(device), buffer(device, 9.0)], zeros(device), zeros(device)

    def stage():
        inner.graphs.run("part", part, inputs=lambda: arrays[:1])

    def part():
        inner.launches.launch(support.add, N, [arrays[0], 1.0], [out])

    for step in range(6):
        if step == 3:
            arrays.reverse()
        outer.graphs.run("all", stage)
        wp.launch(support.add, N, [arrays[0], 1.0, expected], device=device)
    assert same_bits(out, expected)


@pytest.mark.gpu
@pytest.mark.parametrize("way", ["launch", "bound", "eager"])
def test_a_stream_that_is_not_captured(way):
    if not wp.is_cuda_available():
        pytest.skip("no CUDA device")
    device = wp.get_device("cuda:0")
    scope = support.scope(device, "checked")
    cache = LaunchCache(device, mode="eager") if way == "eager" else scope.launches
    out, other = zeros(device), wp.Stream(device)
    bound = cache.bind(support.count, 1, [], [out])

    def stage():
        if way == "bound":
            bound(stream=other)
        else:
            cache.launch(support.count, 1, [], [out], stream=other)

    for calls in range(1, 6):
        scope.graphs.run("stage", stage)
        wp.synchronize_device(device)
        assert out.numpy()[0] == calls
    assert "stream that does not take part in the capture" in scope.graphs.reason("stage")


@pytest.mark.gpu
def test_a_stream_that_waits_for_the_captured_one_is_part_of_the_graph():
    if not wp.is_cuda_available():
        pytest.skip("no CUDA device")
    device = wp.get_device("cuda:0")
    scope, out, other = support.scope(device, "checked"), zeros(device), wp.Stream(device)

    def stage():
        main = device.stream
        other.wait_stream(main)
        scope.launches.launch(support.count, 1, [], [out], stream=other)
        main.wait_stream(other)

    for calls in range(1, 6):
        scope.graphs.run("stage", stage)
        assert out.numpy()[0] == calls
    assert scope.graphs.has_graph("stage")


@pytest.mark.gpu
@support.needs_cpu_kernels
@pytest.mark.parametrize("captured", ["cpu", "cuda:0"])
def test_a_launch_on_another_device_keeps_a_stage_out_of_graphs(captured):
    if not wp.is_cuda_available():
        pytest.skip("no CUDA device")
    scope = support.scope(wp.get_device(captured), "checked")
    other = support.cache(wp.get_device("cuda:0" if captured == "cpu" else "cpu"), "checked")
    here, there = zeros(scope.device), zeros(other.device)

    def stage():
        scope.launches.launch(support.count, 1, [], [here])
        other.launch(support.count, 1, [], [there])

    for calls in range(1, 6):
        scope.graphs.run("stage", stage)
        assert (here.numpy()[0], there.numpy()[0]) == (calls, calls)
    assert "can't be part of a graph" in scope.graphs.reason("stage")


def test_a_watched_run_is_no_capture(device):
    scope, out = support.scope(device, "checked"), zeros(device)
    tensor = torch.ones(N, device=str(device))
    pipeline = scope.pipeline(
        [Stage("torch", lambda: scope.launches.launch(support.add, N, [tensor, 1.0], [out]), capture=None)]
    )
    pipeline.run()
    assert scope.launches.records[0].args[0] is tensor
    with pytest.raises(LaunchError, match="closed"):
        scope.close()
        pipeline.run()
