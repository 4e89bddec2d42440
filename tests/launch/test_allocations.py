"""Memory that is allocated inside a captured region."""

from __future__ import annotations

import pytest
import warp as wp

from treadle.launch import AllocationError, LaunchScope, Stage

from . import support
from .support import N, zeros


class Lazy:
    """A stage that makes a buffer when it is first captured, or at each run."""

    def __init__(self, device, contract="debug", may_allocate=False):
        self.device, self.allocates = device, True
        self.scope, self.out = support.scope(device, contract, "graph"), zeros(device)
        self.pipeline = self.scope.pipeline([Stage("lazy", self.stage, may_allocate=may_allocate)])

    def stage(self):
        if self.allocates and self.device.is_capturing:
            self.kept = wp.empty(3, dtype=wp.vec3, device=self.device)
        self.scope.launches.launch(support.count, 1, [], [self.out])


def test_debug_raises_with_what_was_allocated(device):
    lazy = Lazy(device)
    lazy.pipeline.run()
    with pytest.raises(AllocationError, match=r"'lazy'.*allocates.*36 B.*vec3.*test_allocations.py:\d+ : stage"):
        lazy.pipeline.run()
    assert lazy.out.numpy()[0] == 1.0
    lazy.allocates = False
    for _ in range(3):
        lazy.pipeline.run()
    assert lazy.out.numpy()[0] == 4.0
    assert lazy.pipeline.graph_count == 1


@pytest.mark.parametrize(("contract", "may_allocate"), [("debug", True), ("checked", False), ("trusted", False)])
def test_it_is_opt_in_and_debug_only(device, contract, may_allocate):
    lazy = Lazy(device, contract, may_allocate)
    for _ in range(3):
        lazy.pipeline.run()
    assert lazy.out.numpy()[0] == 3.0
    assert lazy.scope.graphs.has_graph(("lazy",))


def test_a_tracker_of_the_user_goes_on(device):
    lazy, reports = Lazy(device), []
    lazy.allocates = False
    with wp.ScopedMemoryTracker("mine", print=False, report_func=reports.append) as tracker:
        mine = wp.zeros(1234, dtype=float, device=device)
        for _ in range(3):
            lazy.pipeline.run()
        tracker.report(max_items=100)
    assert "array[float32, 1234]" in reports[0]
    assert mine.shape == (1234,) and lazy.out.shape == (N,)


def test_the_capture_mode_is_handed_on(device, monkeypatch):
    modes, begin = [], wp.capture_begin

    def noting_begin(**options):
        modes.append(options["capture_mode"])
        begin(**options)

    def run(graphs, out):
        for _ in range(2):
            graphs.run("stage", lambda: wp.launch(support.count, 1, [out], device=device))
        assert out.numpy()[0] == 2.0

    monkeypatch.setattr(wp, "capture_begin", noting_begin)
    for mode in (wp.CaptureMode.THREAD_LOCAL, wp.CaptureMode.RELAXED, wp.CaptureMode.GLOBAL):
        child = LaunchScope(device, mode="graph", capture_mode=mode).child("part")
        assert child.graphs.capture_mode is mode
        run(child.graphs, zeros(device))
    assert modes == [wp.CaptureMode.THREAD_LOCAL, wp.CaptureMode.RELAXED, wp.CaptureMode.GLOBAL]
