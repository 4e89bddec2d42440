"""Runs inside the capture of another graph: what they declare holds for that graph."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import pytest
import warp as wp

from treadle.launch import AllocationError, LaunchError, Stage

from . import support
from .support import N, buffer, same_bits, zeros


class Nest:
    """A graph inside a graph, by keys or by pipelines."""

    def __init__(self, device, contract="checked", mode="auto", pipelines=False):
        self.device, self.x, self.gain = device, buffer(device), 1.0
        self.out, self.expected = zeros(device), zeros(device)
        self.scope = support.scope(device, contract, mode)
        if pipelines:
            inner = self.scope.pipeline([Stage("inner", self.launch, inputs=self.inputs)])
            self.run = self.scope.pipeline([Stage("outer", inner.run)]).run
        else:
            self.run = lambda: self.scope.graphs.run("outer", self.inner)

    def inputs(self):
        return [self.x, self.gain]

    def launch(self):
        self.scope.launches.launch(support.add, N, [self.x, self.gain], [self.out], dynamic=("x", "s"))

    def inner(self):
        self.scope.graphs.run("inner", self.launch, inputs=self.inputs)

    def check(self, calls):
        for _ in range(calls):
            self.run()
            wp.launch(support.add, N, [self.x, self.gain, self.expected], device=self.device)
        assert same_bits(self.out, self.expected)


@pytest.mark.parametrize("pipelines", [False, True])
@pytest.mark.parametrize("contract", ["checked", "trusted", "debug"])
@pytest.mark.parametrize("mode", ["replay", "auto"])
def test_inputs_of_a_run_inside_are_inputs_of_the_graph(device, pipelines, contract, mode):
    nest = Nest(device, contract, mode, pipelines)
    nest.check(3)
    nest.x = buffer(device, 50.0)
    nest.check(3)
    nest.gain = 3.0
    nest.check(3)
    captures = nest.scope.stats.graph_total("captures")
    assert captures == (3 if mode == "auto" else 0)


def test_inputs_of_a_run_inside_that_come_back(device):
    nest = Nest(device)
    states = [buffer(device), buffer(device, 50.0)]
    for _ in range(20):
        nest.check(1)
        states.reverse()
        nest.x = states[0]
    assert nest.scope.stats.graph_total("captures") <= 4


def test_an_input_of_a_run_inside_that_cannot_be_compared(device):
    nest = Nest(device)
    nest.check(1)
    nest.gain = SimpleNamespace()
    nest.launch = lambda: nest.scope.launches.launch(support.add, N, [nest.x, 1.0], [nest.out])
    nest.scope.invalidate("another function")
    nest.run()
    before = nest.out.numpy().copy()
    with pytest.raises(LaunchError, match="can't be compared"):
        nest.run()
    assert (nest.out.numpy() == before).all()


def test_a_run_inside_may_not_allocate_where_it_says_so(device):
    scope, out = support.scope(device, "debug"), zeros(device)

    def inner():
        out.assign(wp.clone(out))
        scope.launches.launch(support.count, 1, [], [out])

    def outer(may_allocate):
        scope.graphs.run(("inner", may_allocate), inner, may_allocate=may_allocate)

    for _ in range(3):
        scope.graphs.run("may", lambda: outer(True))
    fails = partial(outer, False)
    scope.graphs.run("may not", fails)
    with pytest.raises(AllocationError, match=r"\('inner', False\) allocates while it is captured"):
        scope.graphs.run("may not", fails)
