"""Inputs of a graph that are containers or objects."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from types import SimpleNamespace

import numpy as np
import pytest
import warp as wp

from treadle.launch import LaunchError, Stage
from treadle.launch import inputs as inputs_module

from . import support
from .support import N, buffer, zeros


@dataclass
class Config:
    v: float = 1.0
    more: list[float] = field(default_factory=list)


class Color(Enum):
    RED = 1
    BLUE = 2


def set_item(box):
    box["v"] = 7.0


INPUTS = {
    "dict": ({"v": 1.0}, set_item),
    "list in dict": ({"v": [1.0]}, lambda box: box["v"].append(2.0)),
    "dict in list": ([{"v": 1.0}], lambda box: set_item(box[0])),
    "set": ({1, 2}, lambda box: box.add(3)),
    "dataclass": (Config(), lambda box: setattr(box, "v", 7.0)),
    "list in dataclass": (Config(), lambda box: box.more.append(7.0)),
    "string": ({"v": "one"}, set_item),
    "enum": ({"v": Color.RED}, lambda box: box.update(v=Color.BLUE)),
    "numpy": ({"v": np.array([1.0, 2.0])}, lambda box: box["v"].__setitem__(1, 7.0)),
    "numpy in place": ([np.zeros((2, 2))], lambda box: box[0].fill(7.0)),
    "class": ({"v": int}, lambda box: box.update(v=float)),
}


@pytest.mark.parametrize("contract", ["checked", "debug"])
@pytest.mark.parametrize("name", INPUTS)
def test_a_change_inside_an_input_is_captured_again(device, contract, name):
    import copy

    (box, change), gain = INPUTS[name], SimpleNamespace(value=1.0)
    box = copy.deepcopy(box)
    scope, x, out = support.scope(device, contract), buffer(device), zeros(device)

    def stage():
        scope.launches.launch(support.add, N, [x, gain.value], [out], dynamic=("s",))

    pipeline = scope.pipeline([Stage("s", stage, inputs=lambda: [box])])
    expected = zeros(device)
    for value in (1.0, 1.0, 1.0, 7.0, 7.0):
        if value != gain.value:
            change(box)
            gain.value = value
        pipeline.run()
        wp.launch(support.add, N, [x, value, expected], device=device)
    assert support.same_bits(out, expected)
    assert scope.stats.graph_total("captures") == 2


@pytest.mark.parametrize("wrap", [lambda a, b: [[a, b]], lambda a, b: [(a, {"b": b})], lambda a, b: {"a": a, "b": b}])
def test_nested_arrays_are_compared_by_storage(device, wrap):
    scope, out = support.scope(device), zeros(device)
    state = SimpleNamespace(a=buffer(device), b=buffer(device))

    def stage():
        scope.launches.launch(support.add, N, [state.a, 1.0], [out])

    def run():
        scope.graphs.run("s", stage, inputs=lambda: wrap(state.a, state.b))

    for _ in range(3):
        run()
    state.a, state.b = state.b, state.a  # equal content
    state.a.fill_(50.0)
    out.zero_()
    run()
    assert out.numpy()[0] == 50.0
    state.a.fill_(60.0)  # content behind the same pointer is none of the graph's business
    run()
    assert scope.stats.graph_total("captures") == 2


def test_equal_strings_are_equal(device):
    scope, x, out = support.scope(device), buffer(device), zeros(device)
    for i in range(8):
        names = ["".join(("na", "me")), {"k": f"v{i * 0}"}, frozenset({"a"})]
        scope.graphs.run("s", lambda: scope.launches.launch(support.add, N, [x, 1.0], [out]), inputs=names)
    assert scope.stats.graph_total("captures") == 1


def test_an_input_that_cannot_be_compared_is_refused(device):
    scope, x, out = support.scope(device), buffer(device), zeros(device)

    def run(inputs):
        scope.graphs.run("s", lambda: scope.launches.launch(support.add, N, [x, 1.0], [out]), inputs=inputs)

    looped = []
    looped.append(looped)
    run([1.0])
    for bad in (SimpleNamespace(v=1.0), [object()], {"k": lambda: None}, Config(v=iter(()))):
        with pytest.raises(LaunchError, match=r"can.t be compared: pass what of it .*Allowed are arrays"):
            run([bad])
    with pytest.raises(LaunchError, match="contains itself"):
        run([looped])
    run([1.0])
    assert scope.stats.graph_total("captures") == 1


def test_arrays_of_numpy_are_inputs_by_content(device):
    """On the host there is nothing that a graph reads: what is declared is what Python makes of it."""
    scope, x, out, gain = support.scope(device), buffer(device), zeros(device), np.array([1.0])

    def stage():
        scope.launches.launch(support.add, N, [x, float(gain[0])], [out])

    for value in (1.0, 1.0, 1.0, 100.0, 100.0):
        gain[0] = value
        scope.graphs.run("s", stage, inputs=lambda: [gain.copy()])
    scope.graphs.run("s", stage, inputs=[gain])
    expected = zeros(device)
    for value in (1.0, 1.0, 1.0, 100.0, 100.0, 100.0):
        wp.launch(support.add, N, [x, value, expected], device=device)
    assert support.same_bits(out, expected)
    assert scope.stats.graph_total("captures") == 2


@pytest.fixture
def signatures(monkeypatch):
    """Count the signatures that are computed."""
    taken = []
    original = inputs_module.input_signature
    monkeypatch.setattr(
        inputs_module, "input_signature", lambda value, depth=0: taken.append(value) or original(value, depth)
    )
    return taken


def test_the_same_arrays_are_told_without_a_signature(device, signatures):
    scope, out = support.scope(device), zeros(device)
    inputs = [buffer(device) for _ in range(10)] + ["name", 1.0, None, support.add, (1, 2)]

    def run():
        scope.graphs.run("s", stage, inputs=lambda: inputs)

    def stage():
        scope.launches.launch(support.add, N, [inputs[0], 1.0], [out])

    for _ in range(2):
        run()
    signatures.clear()
    for _ in range(5):
        run()
    assert signatures == []
    inputs[1:2] = [buffer(device)]
    run()
    assert scope.stats.graph_total("captures") == 2
    inputs[0].requires_grad = True  # another pointer in the same object
    run()
    assert scope.stats.graph_total("captures") == 3
    signatures.clear()
    inputs[11] = float("1.0")
    run()
    assert len(signatures) <= 1
    assert scope.stats.graph_total("captures") == 3


def test_inputs_that_take_turns_are_captured_once_each(device):
    scope, out, expected = support.scope(device, mode="graph"), zeros(device), zeros(device)
    states = [buffer(device, 10.0 * i) for i in range(3)]

    def stage():
        scope.launches.launch(support.add, N, [states[0], 1.0], [out], dynamic="x")

    for _ in range(30):
        scope.graphs.run("s", stage, inputs=lambda: [states[0]])
        wp.launch(support.add, N, [states[0], 1.0, expected], device=device)
        states.append(states.pop(0))
    assert support.same_bits(out, expected)
    assert scope.graphs.reason("s") is None
    assert scope.stats.graph_total("captures") <= 6
    assert {pointer.address for pointer in scope.pointers()} >= {state.ptr for state in states}


def test_graphs_are_kept_only_where_inputs_come_back(device):
    scope, out = support.scope(device), zeros(device)
    gain = SimpleNamespace(value=0.0)

    def run(value, calls):
        gain.value = value
        for _ in range(calls):
            scope.graphs.run("s", stage, inputs=lambda: [value])

    def stage():
        scope.launches.launch(support.add, N, [buffers[gain.value], 1.0], [out], dynamic="x")

    def alive():
        return len({pointer.address for pointer in scope.graphs.pointers()} - {out.ptr})

    buffers = {float(i): buffer(device) for i in range(20)}
    for value in (0.0, 1.0, 2.0):
        run(value, 12)
        assert alive() == 1
    run(0.0, 12)  # back again
    assert alive() == 2
    for value in range(3, 12):
        run(float(value), 12)
        assert alive() <= 4
    assert alive() == 1
    scope.invalidate("done")
    assert alive() == 0
