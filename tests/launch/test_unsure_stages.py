"""``Stage(capture=None)``: what is not seen to be always the same gets no graph."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import warp as wp

from treadle.launch import Stage

from . import support
from .support import N, buffer, same_bits, zeros


class Program:
    """A stage that joins a sure one; ``t`` counts the calls, outside of the stage."""

    def __init__(self, device, stage, mode="auto"):
        self.device, self.t, self.x = device, 0, buffer(device)
        self.scope = support.scope(device, mode=mode)
        self.cached = SimpleNamespace(launch=self.scope.launches.launch, out=zeros(device), buffer=zeros(device))
        self.eager = SimpleNamespace(launch=support.eager_launch(device), out=zeros(device), buffer=zeros(device))
        self.stage = stage
        self.pipeline = self.scope.pipeline(
            [
                Stage("sure", lambda: self.cached.launch(support.count, 1, [], [self.cached.out], site="sure")),
                Stage("unsure", lambda: stage(self, self.cached), capture=None),
            ]
        )

    def check(self, calls):
        for _ in range(calls):
            self.t += 1
            self.pipeline.run()
            self.eager.launch(support.count, 1, [], [self.eager.out])
            self.stage(self, self.eager)
            assert same_bits(self.cached.out, self.eager.out)
            assert same_bits(self.cached.buffer, self.eager.buffer)


def direct(program, side):
    wp.launch(support.add, N, [program.x, float(program.t)], [side.out], device=program.device)


def beside(program, side):
    side.launch(support.add, N, [program.x, 1.0], [side.out])
    side.buffer.fill_(float(program.t))


def copied(program, side):
    side.launch(support.add, N, [program.x, 1.0], [side.out])
    wp.copy(side.buffer, program.x, count=min(program.t, N))


@pytest.mark.parametrize("stage", [direct, beside, copied])
def test_what_no_launch_cache_sees_is_not_taken_for_constant(device, stage):
    program = Program(device, stage)
    program.check(10)
    sure, unsure = program.pipeline.describe().splitlines()
    assert sure == "sure: graph"
    assert unsure.startswith("unsure: no graph: does more than its launch caches see (wp.launch, ")


@pytest.mark.parametrize("at", [1, 2, 4])
def test_a_launch_that_is_there_now_and_then_is_not_captured(device, at):
    """The fourth call captures the graph that the stage joins: it must hold what was seen."""

    def stage(program, side):
        side.launch(support.add, N, [program.x, 1.0], [side.out])
        if program.t % at == 0 and program.t >= 1 and at > 1:
            side.launch(support.count, 1, [], [side.out], site="rare")

    program = Program(device, stage)
    program.check(12)
    together = program.pipeline.describe() == "sure + unsure: graph"
    assert together is (at == 1)
    if at > 1:
        assert "changes from run to run" in program.pipeline.describe()


def test_what_was_seen_does_not_bind_after_the_first_graph(device):
    def stage(program, side):
        side.launch(support.add, N, [program.x, 1.0], [side.out])

    program = Program(device, stage)
    program.check(5)
    program.x = buffer(device, 50.0)
    program.scope.invalidate("another array")
    program.check(5)
    assert program.pipeline.describe() == "sure + unsure: graph"


@pytest.mark.parametrize("calls", [1, 2, 3, 4])
def test_arrays_replaced_while_it_is_not_decided(device, calls):
    def stage(program, side):
        side.launch(support.add, N, [program.x, 1.0], [side.out])

    program = Program(device, stage)
    program.check(calls)
    program.x = buffer(device, 50.0)
    program.scope.invalidate("another array")
    program.check(6)
    assert program.pipeline.describe() == "sure + unsure: graph"


def test_a_stage_that_runs_graphs_of_its_own_joins(device):
    def stage(program, side):
        def inner():
            side.launch(support.add, N, [program.x, 1.0], [side.out])

        if side is program.eager:
            inner()
        else:
            program.scope.graphs.run("inner", inner)

    program = Program(device, stage)
    program.check(6)
    assert program.pipeline.describe() == "sure + unsure: graph"
