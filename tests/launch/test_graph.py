"""The graph cache: once per call, atomic failures, recaptures, lifetimes."""

from __future__ import annotations

import gc
import warnings

import pytest
import torch
import warp as wp

from treadle.launch import CaptureWarning, GraphCache, StaleArgumentError

from . import support
from .support import N, buffer, same_bits, zeros


def can_capture(device) -> bool:
    """Whether Warp captures and launches a graph of its own: what a failure may not break."""
    out = zeros(device)
    with wp.ScopedCapture(device) as capture:
        wp.launch(support.count, 1, [out], device=device)
    wp.capture_launch(capture.graph)
    return out.numpy()[0] == 1.0


@pytest.mark.parametrize("calls", [1, 2, 3, 5])
@pytest.mark.parametrize("contract", ["checked", "trusted", "debug"])
@pytest.mark.parametrize("mode", ["eager", "replay", "graph", "auto"])
def test_runs_exactly_once_per_call(device, mode, contract, calls):
    scope = support.scope(device, contract, mode)
    x, out, expected = buffer(device), zeros(device), zeros(device)
    bound = scope.launches.bind(support.add, N, [x, 5.0], [out])

    def stage():
        scope.launches.launch(support.add, N, [x, 2.0], [out])
        bound()
        wp.launch(support.add, N, [x, 3.0, out], device=device)

    for _ in range(calls):
        scope.graphs.run("stage", stage)
        for s in (2.0, 5.0, 3.0):
            wp.launch(support.add, N, [x, s, expected], device=device)
    assert same_bits(out, expected)
    stats = scope.graphs.stats.graphs["stage"]
    graphs = mode in ("graph", "auto")
    assert (stats.warmups, stats.captures) == (int(graphs), int(graphs and calls > 1))
    assert stats.launches == (calls - 1 if graphs else 0)


@pytest.mark.parametrize("mode", ["graph", "auto"])
def test_an_illegal_capture_falls_back_once_and_for_all(device, mode):
    scope, out = support.scope(device, mode=mode), zeros(device)

    def stage():
        scope.launches.launch(support.count, 1, [], [out])
        if device.is_capturing:
            raise RuntimeError("host\n  control")
        scope.launches.launch(support.count, 1, [], [out], site=2)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(4):
            scope.graphs.run("stage", stage)
    assert out.numpy()[0] == 8.0
    messages = [str(warning.message) for warning in caught if warning.category is CaptureWarning]
    text = "owner: 'stage' runs without a graph: RuntimeError: host control"
    assert messages == ([text] if mode == "graph" else [])
    stats = scope.graphs.stats.graphs["stage"]
    assert stats.reason == scope.graphs.reason("stage") == "RuntimeError: host control"
    assert (stats.warmups, stats.captures, stats.fallbacks) == (1, 0, 3)
    assert not scope.graphs.has_graph("stage")
    assert can_capture(device)
    for _ in range(3):
        scope.graphs.run("next", lambda: scope.launches.launch(support.count, 1, [], [out], site=3))
    assert out.numpy()[0] == 11.0
    assert scope.graphs.has_graph("next")


def test_the_warning_as_an_error_comes_after_the_run(device):
    scope, out = support.scope(device, mode="graph"), zeros(device)

    def stage():
        if device.is_capturing:
            raise RuntimeError("no")
        scope.launches.launch(support.count, 1, [], [out])

    scope.graphs.run("stage", stage)
    with pytest.raises(CaptureWarning):
        scope.graphs.run("stage", stage)
    scope.graphs.run("stage", stage)
    assert out.numpy()[0] == 3.0


@pytest.mark.parametrize("failing_call", [1, 2, 3])
def test_an_error_of_the_function_is_the_callers(device, failing_call):
    scope, out = support.scope(device, mode="graph"), zeros(device)
    failing = False

    def stage():
        scope.launches.launch(support.count, 1, [], [out])
        if failing:
            raise KeyError("the user's own")

    for call in range(1, 6):
        failing = call == failing_call
        if failing and call != 3:  # at the third call a graph is launched, and the function does not run
            with pytest.raises(KeyError, match="the user's own") as raised:
                scope.graphs.run("stage", stage)
            assert raised.value.__context__ is None
        else:
            scope.graphs.run("stage", stage)
    assert out.numpy()[0] == 5.0
    assert scope.graphs.reason("stage") is None
    assert scope.graphs.has_graph("stage")


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_interrupt_of_a_capture_passes(device, error):
    scope, out = support.scope(device), zeros(device)
    interrupted = False

    def stage():
        scope.launches.launch(support.count, 1, [], [out])
        if interrupted:
            raise error

    scope.graphs.run("stage", stage)
    interrupted = True
    with pytest.raises(error):
        scope.graphs.run("stage", stage)
    assert out.numpy()[0] == 1.0
    assert gc.isenabled()
    assert can_capture(device)
    interrupted = False
    for _ in range(2):
        scope.graphs.run("stage", stage)
    assert out.numpy()[0] == 3.0
    assert scope.graphs.has_graph("stage")


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("fails", [True, False])
def test_the_garbage_collector(device, monkeypatch, enabled, fails):
    collections = []
    monkeypatch.setattr(gc, "collect", lambda *args: collections.append(gc.isenabled()))
    seen = []

    def stage():
        seen.append(gc.isenabled())
        wp.launch(support.count, 1, [out], device=device)
        if fails and device.is_capturing:
            raise RuntimeError

    graphs, out = GraphCache(device, mode="auto"), zeros(device)
    try:
        (gc.enable if enabled else gc.disable)()
        for _ in range(2):
            graphs.run("stage", stage)
        assert gc.isenabled() is enabled
    finally:
        gc.enable()
    assert collections == [enabled]
    assert seen == [enabled, False, enabled][: 2 + fails]


def test_an_empty_graph_is_a_reason(device):
    scope, out = support.scope(device), zeros(device)
    dim = 0

    def stage():
        scope.launches.launch(support.count, dim, [], [out])

    for _ in range(3):
        scope.graphs.run("stage", stage)
    assert "empty" in scope.graphs.reason("stage")
    dim = 1
    for _ in range(2):
        scope.graphs.run("stage", stage)
    assert out.numpy()[0] == 2.0
    assert scope.graphs.topology("stage") is None


def test_inputs_that_move_capture_again_once(device):
    scope, out, expected = support.scope(device), zeros(device), zeros(device)
    buffers = [buffer(device, float(i)) for i in range(3)]
    calls = captures = 0
    for x in (*[buffers[0]] * 4, *[buffers[1]] * 3, *[buffers[0]] * 2):
        scope.graphs.run("stage", lambda x=x: scope.launches.launch(support.add, N, [x, 1.0], [out]), inputs=[x])
        wp.launch(support.add, N, [x, 1.0, expected], device=device)
        calls += 1
    captures = scope.graphs.stats.graphs["stage"].captures
    assert captures == 3
    assert scope.graphs.stats.graphs["stage"].launches == calls - 1
    assert same_bits(out, expected)


def test_inputs_that_change_capture_again(device):
    scope, out, expected = support.scope(device, "trusted"), zeros(device), zeros(device)
    x, params, gain = buffer(device), support.Params(), 1.0
    params.inner.values = x
    tensor = torch.ones(N, device=str(device))

    def run():
        scope.graphs.run("stage", stage, inputs=lambda: [gain, params, tensor])
        wp.launch(support.structured, N, [params, expected], device=device)
        wp.launch(support.add, N, [x, gain, expected], device=device)

    def stage():
        wp.launch(support.structured, N, [params, out], device=device)
        wp.launch(support.add, N, [x, gain, out], device=device)

    for _ in range(3):
        run()
    gain = 2.0
    for _ in range(2):
        run()
    params.gain = 4.0
    for _ in range(2):
        run()
    params.inner.values = buffer(device, 9.0)
    for _ in range(2):
        run()
    tensor.data = torch.zeros(N, device=str(device))
    for _ in range(2):
        run()
    assert scope.graphs.stats.graphs["stage"].captures == 5
    assert same_bits(out, expected)


def test_inputs_are_not_read_without_graphs(device):
    scope = support.scope(device, mode="replay")
    scope.graphs.run("stage", lambda: None, inputs=lambda: 1 / 0)


def test_inputs_that_never_settle_are_given_up(device):
    scope, out = support.scope(device, mode="graph"), zeros(device)

    def run(i):
        x = buffer(device, float(i))
        scope.graphs.run("stage", lambda: scope.launches.launch(support.add, N, [x, 1.0], [out]), inputs=[x])

    with pytest.warns(CaptureWarning, match="never settle"):
        for i in range(20):
            run(i)
    stats = scope.graphs.stats.graphs["stage"]
    assert stats.captures == 8
    assert stats.fallbacks == 20 - 8 - 1


def test_inputs_that_change_now_and_then_are_never_given_up(device):
    scope, out = support.scope(device), zeros(device)
    for i in range(240):
        gain = float(i // 12)
        scope.graphs.run("stage", lambda g=gain: scope.launches.launch(support.count, 1, [], [out]), inputs=[gain])
    assert scope.graphs.stats.graphs["stage"].captures == 20
    assert out.numpy()[0] == 240.0


@pytest.mark.parametrize("contract", ["checked", "trusted", "debug"])
def test_what_changes_behind_its_identity(device, contract):
    """A struct that a graph has frozen: ``checked`` captures again, ``debug`` raises, ``trusted`` does not look."""
    scope, out, expected = support.scope(device, contract), zeros(device), zeros(device)
    params = support.Params()
    params.inner.values = buffer(device)

    def run():
        scope.graphs.run("stage", lambda: scope.launches.launch(support.structured, N, [params], [out]))

    for _ in range(3):
        run()
        wp.launch(support.structured, N, [params, expected], device=device)
    params.gain = 3.0
    if contract == "debug":
        with pytest.raises(StaleArgumentError, match=r"'structured'.*'params'.*in a captured graph.*gain: 3\.0"):
            run()
        assert same_bits(out, expected)
        return
    run()
    wp.launch(support.structured, N, [params, expected], device=device)
    assert same_bits(out, expected) is (contract == "checked")
    assert scope.graphs.stats.graphs["stage"].captures == (2 if contract == "checked" else 1)


def test_debug_accepts_a_struct_that_the_function_itself_writes(device):
    scope, out = support.scope(device, "debug"), zeros(device)
    params, expected = support.Params(), zeros(device)
    params.inner.values = buffer(device)

    def stage(launch, target):
        for gain in (1.0, 2.0):
            params.gain = gain
            launch(support.structured, N, [params], [target], site=gain)

    for _ in range(4):
        scope.graphs.run("stage", lambda: stage(support.eager_launch(device), out))
        stage(support.eager_launch(device), expected)
    assert same_bits(out, expected)
    scope.graphs.run("noted", lambda: stage(scope.launches.launch, out))


def test_debug_passes_a_stale_argument_of_a_capture_on(device):
    scope, out = support.scope(device, "debug", "graph"), zeros(device)
    gain, runs = 1.0, []

    def stage():
        runs.append(gain)
        scope.launches.launch(support.add, N, [out, gain], [out])

    scope.graphs.run("stage", stage, inputs=lambda: [gain])
    gain = 2.0
    with pytest.raises(StaleArgumentError, match="'s'"):
        scope.graphs.run("stage", stage, inputs=lambda: [gain])
    assert runs == [1.0, 2.0]
    assert scope.graphs.reason("stage") is None
    scope.invalidate("another gain")
    for _ in range(2):
        scope.graphs.run("stage", stage, inputs=lambda: [gain])
    assert scope.graphs.has_graph("stage")


def test_setting_a_bound_argument_captures_again(device):
    scope, out, expected = support.scope(device, "debug"), zeros(device), zeros(device)
    x = buffer(device)
    bound = scope.launches.bind(support.add, N, [x, 1.0], [out])
    empty = scope.launches.bind(support.add, 0, [x, 7.0], [out])

    def run(calls, launches):
        for _ in range(calls):
            scope.graphs.run("stage", lambda: (bound(), empty()))
            for dim, s in launches:
                wp.launch(support.add, dim, [x, s, expected], device=device)

    run(3, [(N, 1.0)])
    bound.set("s", 2.0)
    run(2, [(N, 2.0)])
    bound.set_dim(4)
    run(2, [(4, 2.0)])
    empty.set_dim(N)
    run(2, [(4, 2.0), (N, 7.0)])
    bound.set_dim(0)
    run(2, [(N, 7.0)])
    assert same_bits(out, expected)
    assert scope.graphs.stats.graphs["stage"].captures == 5


def test_inside_another_capture_the_function_just_runs(device):
    scope, out = support.scope(device), zeros(device)
    child = scope.child("part")

    def inner():
        child.launches.launch(support.count, 1, [], [out])

    def outer():
        scope.launches.launch(support.count, 1, [], [out])
        child.graphs.run("inner", inner)

    for calls in range(1, 5):
        scope.graphs.run("outer", outer)
        assert out.numpy()[0] == 2.0 * calls
    assert child.graphs.reason("inner") is None
    assert scope.graphs.stats.graphs["outer"].sites == ["count", "count"]
    with wp.ScopedCapture(device) as capture:
        child.graphs.run("inner", inner)
    assert out.numpy()[0] == 8.0
    wp.capture_launch(capture.graph)
    assert out.numpy()[0] == 9.0
    for _ in range(2):
        child.graphs.run("inner", inner)
    assert out.numpy()[0] == 11.0
    assert child.graphs.has_graph("inner")


def test_a_capture_inside_the_function_is_illegal(device):
    scope, out = support.scope(device), zeros(device)

    def stage():
        with wp.ScopedCapture(device) as capture:
            scope.launches.launch(support.count, 1, [], [out])
        wp.capture_launch(capture.graph)

    for _ in range(3):
        scope.graphs.run("stage", stage)
    assert out.numpy()[0] == 3.0
    assert "capture" in scope.graphs.reason("stage").lower()
    assert can_capture(device)


def test_a_tape_sees_the_function(device):
    scope = support.scope(device)
    x = wp.array([1.0] * N, dtype=float, device=device, requires_grad=True)
    out = wp.zeros(N, dtype=float, device=device, requires_grad=True)

    def stage():
        scope.launches.launch(support.add, N, [x, 3.0], [out])

    for _ in range(3):
        scope.graphs.run("stage", stage)
    with wp.Tape() as tape:
        scope.graphs.run("stage", stage)
    tape.backward(grads={out: wp.full(N, 1.0, dtype=float, device=device)})
    assert (x.grad.numpy() == 3.0).all()


def test_topology(device):
    scope, out = support.scope(device), zeros(device)

    def stage():
        scope.launches.launch(support.count, 1, [], [out])
        scope.launches.launch(support.add, N, [out, 1.0], [out])

    assert scope.graphs.topology("stage") is None
    for _ in range(2):
        scope.graphs.run("stage", stage)
    topology = scope.graphs.topology("stage")
    assert topology.node_count == 2
    assert topology.exact is device.is_cuda
    assert [name.split("_")[0] for name in topology.kernels] == ["count", "add"]
