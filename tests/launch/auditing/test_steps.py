"""What is taken as a step."""

from __future__ import annotations

import sys
from types import FrameType

from treadle.launch.auditing.events import Step
from treadle.launch.auditing.functions import FunctionFinder
from treadle.launch.auditing.loops import innermost_loop, loops_of
from treadle.launch.auditing.stack import release_tokens
from treadle.launch.auditing.steps import LineFinder, LoopFinder, StepFinder


class Probe:
    """Stands in for the launches of a program."""

    def __init__(self, finder: StepFinder):
        self.finder, self.count, self.done_at = finder, 0, None

    def launch(self) -> None:
        frames: list[FrameType] = []
        frame = sys._getframe(1)
        while frame.f_code is not Probe.run.__code__:
            frames.append(frame)
            frame = frame.f_back
        self.finder.observe(self.count, frames)
        if self.done_at is None and self.finder.enough(self.count):
            self.done_at = self.count
        self.count += 1

    def run(self, program) -> list[Step]:
        program(self)
        release_tokens()
        return self.finder.steps(self.count)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def set_up(probe: Probe) -> None:
    for _ in range(40):
        probe.launch()


def step(probe: Probe) -> None:
    for _ in range(5):
        probe.launch()
        probe.launch()
    probe.launch()


def one_call(probe: Probe) -> None:
    probe.launch()
    for _ in range(20):
        step(probe)


def substeps_only(probe: Probe) -> None:
    def inner() -> None:
        for _ in range(4):
            probe.launch()

    count = 0
    while count < 20:
        count += 1
        inner()


def in_one_function(probe: Probe) -> None:
    for _ in range(20):
        for _ in range(3):
            probe.launch()
        probe.launch()


def epochs(probe: Probe) -> None:
    for _ in range(2):
        one_call(probe)


def callbacks(probe: Probe) -> None:
    list(map(lambda _: step(probe), range(20)))


def test_calls_of_a_loop():
    steps = Probe(LoopFinder(6)).run(one_call)
    assert {step.stop - step.start for step in steps} == {11}
    assert len(steps) >= 17


def test_inner_loops_in_a_function_of_their_own():
    assert {step.stop - step.start for step in Probe(LoopFinder(6)).run(substeps_only)} == {4}


def test_inner_loops_in_the_same_function():
    assert {step.stop - step.start for step in Probe(LoopFinder(6)).run(in_one_function)} == {4}


def test_a_loop_that_comes_round_too_seldom_is_passed_over():
    finder = LoopFinder(6)
    steps = Probe(finder).run(epochs)
    assert {step.stop - step.start for step in steps} == {11}
    assert "one_call" in finder.describe()


def test_patience_with_an_outer_loop_has_an_end():
    clock = Clock()
    finder = LoopFinder(3, patience=20.0, clock=clock)
    probe = Probe(finder)

    def program(probe: Probe) -> None:
        for _ in range(2):
            for _ in range(50):
                clock.now += 1.0
                step(probe)

    probe.run(program)
    assert probe.done_at is not None and 20 * 11 <= probe.done_at < 30 * 11
    assert "takes too long: see --patience" in finder.describe()
    assert {step.stop - step.start for step in finder.steps(probe.done_at)} == {11}


def test_calls_without_a_loop_in_python():
    finder = LoopFinder(6)
    assert {step.stop - step.start for step in Probe(finder).run(callbacks)} == {11}
    assert finder.describe().startswith("a call made at")


def test_a_loop_of_the_set_up_is_waited_out():
    clock = Clock()
    probe = Probe(LoopFinder(6, clock=clock))

    def program(probe: Probe) -> None:
        set_up(probe)
        for _ in range(20):
            clock.now += 1.0
            step(probe)

    steps = probe.run(program)
    assert probe.done_at > 40 + 6 * 11
    assert {step.stop - step.start for step in steps} == {11}


def test_an_outer_loop_is_waited_for():
    """The first step alone has more iterations of an inner loop than are needed."""
    clock = Clock()
    probe = Probe(LoopFinder(3, clock=clock))

    def program(probe: Probe) -> None:
        for _ in range(10):
            clock.now += 1.0
            step(probe)

    probe.run(program)
    assert probe.done_at >= 3 * 11


def test_function():
    finder = FunctionFinder(6, __name__, "step")
    steps = Probe(finder).run(one_call)
    assert len(steps) == 19  # whether the last one is over is not known
    assert steps[:2] == [Step(1, 12), Step(12, 23)]
    assert Probe(FunctionFinder(6, "other", "step")).run(one_call) == []


def test_line():
    line = one_call.__code__.co_firstlineno + 3
    steps = Probe(LineFinder(6, "test_steps.py", line)).run(one_call)
    assert steps[:2] == [Step(1, 12), Step(12, 23)]
    assert len(steps) == 19


def test_loops_of_a_function():
    outer, inner = loops_of(in_one_function.__code__)
    first = in_one_function.__code__.co_firstlineno
    assert (outer.line, inner.line) == (first + 1, first + 2)
    assert outer.start < inner.start <= inner.stop < outer.stop
    assert innermost_loop(in_one_function.__code__, inner.start, inner.stop) == inner
    assert loops_of(step_without_loop.__code__) == ()


def test_continue_is_no_loop_of_its_own():
    (loop,) = loops_of(with_continue.__code__)
    assert loop.line == with_continue.__code__.co_firstlineno + 2


def step_without_loop(probe: Probe) -> None:
    probe.launch()


def with_continue(probe: Probe) -> None:
    count = 0
    while count < 10:
        count += 1
        if count % 2:
            continue
        probe.launch()
