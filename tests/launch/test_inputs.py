"""Inputs of a graph that are containers or objects."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from types import SimpleNamespace

import pytest
import warp as wp

from treadle.launch import LaunchError, Stage

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
