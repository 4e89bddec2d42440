"""What a scope's invalidation gives another chance, and what its end refuses."""

from __future__ import annotations

import gc
import weakref

import pytest

from treadle.launch import LaunchError, Stage

from . import support
from .support import N, buffer, zeros


class Flaky:
    """Three stages; one of them can't be captured as long as ``fails`` says so."""

    def __init__(self, device, capture=True):
        self.scope, self.fails = support.scope(device), ""
        self.outs = [zeros(device) for _ in range(3)]
        stages = [Stage(name, lambda i=i, name=name: self.step(i, name), capture) for i, name in enumerate("abc")]
        self.pipeline = self.scope.pipeline(stages)

    def step(self, i, name):
        self.scope.launches.launch(support.count, 1, [], [self.outs[i]], site=i)
        if self.fails == name and self.scope.device.is_capturing:
            raise RuntimeError("only now")

    def run(self, calls):
        for _ in range(calls):
            self.pipeline.run()

    def counts(self):
        return [out.numpy()[0] for out in self.outs]


@pytest.mark.parametrize("capture", [True, None])
@pytest.mark.parametrize("part", ["scope", "graphs"])
def test_a_stage_that_failed_gets_another_chance(device, capture, part):
    flaky = Flaky(device, capture)
    flaky.fails = "b"
    flaky.run(5)
    assert flaky.pipeline.graph_count == 2
    flaky.fails = ""
    flaky.run(2)
    assert flaky.pipeline.graph_count == 2
    if part == "scope":
        flaky.scope.invalidate("the cause is gone")
    else:
        flaky.scope.graphs.invalidate()
    flaky.run(8)
    assert flaky.pipeline.describe() == "a + b + c: graph"
    assert flaky.scope.stats.fallback_reasons() == {}
    assert flaky.scope.graphs.has_graph(("a", "b", "c"))
    assert flaky.counts() == [15.0] * 3


def test_stages_that_made_no_graph_together_get_another_chance(device):
    flaky = Flaky(device)
    flaky.run(1)
    flaky.pipeline._split(flaky.pipeline.islands[0], "not known")  # as where the end of the capture fails
    assert len(flaky.pipeline.islands) == 3
    flaky.scope.invalidate("the cause is gone")
    flaky.run(3)
    assert flaky.pipeline.describe() == "a + b + c: graph"
    assert flaky.counts() == [4.0] * 3


@pytest.mark.parametrize("mode", ["eager", "replay", "auto"])
@pytest.mark.parametrize("runs", [0, 1, 3])
def test_a_closed_scope_refuses_everything(device, mode, runs):
    scope, out = support.scope(device, mode=mode), zeros(device)
    child = scope.child("part")
    launches = [(part, part.launches.bind(support.count, 1, [], [out])) for part in (scope, child)]
    pipelines = [scope.pipeline([Stage("s", bound), Stage("t", bound, False)]) for _, bound in launches]
    outside = scope.pipeline([Stage("elsewhere", lambda: None, False)])
    for _ in range(runs):
        for run in (*(bound for _, bound in launches), *(pipeline.run for pipeline in pipelines), outside.run):
            run()
    before = out.numpy()[0]
    scope.close()
    scope.close()
    refused = [bound for _, bound in launches] + [pipeline.run for pipeline in (*pipelines, outside)]
    for part, _ in launches:
        refused += [
            lambda part=part: part.launches.launch(support.count, 1, [], [out]),
            lambda part=part: part.launches.bind(support.count, 1, [], [out]),
            lambda part=part: part.graphs.run("k", lambda: None),
            lambda part=part: part.pipeline([]),
            lambda part=part: part.child("another"),
        ]
    for call in refused:
        with pytest.raises(LaunchError, match=r"owner.* is closed"):
            call()
    assert out.numpy()[0] == before
    assert scope.launches.records == []


@pytest.mark.parametrize("capture", [True, None, False])
@pytest.mark.parametrize("calls", [0, 1, 2, 3, 6])
def test_a_closed_pipeline_lets_its_owner_go(device, capture, calls):
    """At once, not when the collector comes by: arrays of the owner are memory of the device."""

    class Owner:
        def __init__(self):
            self.scope, self.x, self.out = support.scope(device), buffer(device), zeros(device)
            self.pipeline = self.scope.pipeline([Stage("s", self.step, capture=capture, inputs=self.inputs)])

        def inputs(self):
            return [self.x]

        def step(self):
            self.scope.launches.launch(support.add, N, [self.x, 1.0], [self.out])

    owner = Owner()
    for _ in range(calls):
        owner.pipeline.run()
    described, gone = owner.pipeline.describe(), [weakref.ref(owner), weakref.ref(owner.x)]
    owner.scope.close()
    assert owner.pipeline.describe() == described
    with pytest.raises(LaunchError, match="closed"):
        owner.pipeline.run()
    with pytest.raises(LaunchError, match="closed"):
        owner.pipeline.stages[0].fn()
    gc.disable()
    try:
        del owner
        assert [ref() for ref in gone] == [None, None]
    finally:
        gc.enable()
