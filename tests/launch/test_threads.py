"""Several threads, each with a scope of its own. On the CPU they share the state of a capture."""

from __future__ import annotations

import gc
import sys
import threading

import pytest
import warp as wp

from treadle.launch import LaunchScope, Stage
from treadle.launch.capture import _COLLECTOR_OFF

from . import support
from .support import N, buffer, same_bits, zeros

STEPS = 200
TIMEOUT = 60.0


@pytest.fixture
def quick_switches():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


def cpu_scope(name, mode="graph", device="cpu"):
    return LaunchScope(device, mode=mode, contract="checked", name=name)


class Walker:
    """Accumulates in two stages, and drops its graphs now and then, so that captures meet the other's steps."""

    def __init__(self, scope, start):
        self.scope = scope
        self.x, self.out, self.total = buffer(scope.device, start), zeros(scope.device), zeros(scope.device)
        self.bound = scope.launches.bind(support.add, N, [self.out, 0.5], [self.total])
        self.pipeline = scope.pipeline([Stage("first", self.first), Stage("bound", self.bound)])

    def first(self):
        for i in range(3):
            self.scope.launches.launch(support.add, N, [self.x, 1.0 + i], [self.out], site=i)

    def walk(self, steps=STEPS):
        for step in range(steps):
            self.pipeline.run()
            if step % 10 == 5:
                self.scope.invalidate("now and then")


def in_threads(*functions):
    errors = []

    def guarded(function):
        try:
            function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(function,), daemon=True) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    assert not any(thread.is_alive() for thread in threads)
    if errors:
        raise errors[0]


def test_two_threads_with_graphs(quick_switches, device):
    walkers = [Walker(cpu_scope(f"w{start}", device=device), start) for start in (1.0, 20.0)]
    in_threads(*(walker.walk for walker in walkers))
    for walker in walkers:
        expected = Walker(cpu_scope("eager", "eager", device), walker.x.numpy()[0])
        expected.walk()
        assert same_bits(walker.out, expected.out) and same_bits(walker.total, expected.total)
        assert walker.scope.stats.graph_total("launches") > STEPS / 2
        assert walker.scope.stats.fallback_reasons() == {}


@pytest.mark.parametrize("mode", ["eager", "replay"])
@pytest.mark.parametrize("way", ["launch", "bound", "exclusive"])
def test_what_another_thread_launches_waits_for_a_capture(mode, way):
    other, out, mine = cpu_scope("other", mode), zeros("cpu"), zeros("cpu")
    scope = cpu_scope("capturing")
    bound = other.launches.bind(support.count, 1, [], [out])
    inside, asked, order = threading.Event(), threading.Event(), []

    def step():
        if way == "launch":
            other.launches.launch(support.count, 1, [], [out])
        elif way == "bound":
            bound()
        else:
            with scope.exclusive():
                wp.launch(support.count, 1, outputs=[out], device="cpu")

    def launch():
        assert inside.wait(TIMEOUT)
        asked.set()
        step()
        order.append("launched")

    def stage():
        scope.launches.launch(support.count, 1, [], [mine])
        if scope.device.is_capturing:
            inside.set()
            assert asked.wait(TIMEOUT)
            threading.Event().wait(0.05)
            order.append("captured")

    def capture():
        for _ in range(5):
            scope.graphs.run("k", stage)

    step()
    step()
    in_threads(capture, launch)
    assert order == ["captured", "launched"]
    assert (out.numpy()[0], mine.numpy()[0]) == (3.0, 5.0)


def test_exclusive_does_nothing_without_graphs_and_is_reentrant():
    for mode, free in (("replay", True), ("eager", True), ("graph", False), ("auto", False)):
        scope, entered = cpu_scope("owner", mode), threading.Event()

        def enter(scope=scope, entered=entered):
            with scope.exclusive():
                entered.set()

        with scope.exclusive(), scope.exclusive():
            thread = threading.Thread(target=enter, daemon=True)
            thread.start()
            assert entered.wait(TIMEOUT if free else 0.05) is free
        thread.join(TIMEOUT)
        assert entered.is_set()


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_stays_off_until_the_last_capture_ends(enabled):
    """Threads may capture at once on CUDA; the first to end must not let the collector into the other's capture."""
    entered, may_leave = threading.Event(), threading.Event()
    seen = []

    def first():
        with _COLLECTOR_OFF:
            entered.set()
            may_leave.wait(TIMEOUT)

    def second():
        entered.wait(TIMEOUT)
        with _COLLECTOR_OFF:
            may_leave.set()
            other.join(TIMEOUT)
            seen.append(gc.isenabled())

    other = threading.Thread(target=first)
    if not enabled:
        gc.disable()
    try:
        other.start()
        second()
        assert seen == [False]
        assert gc.isenabled() is enabled
    finally:
        gc.enable()
