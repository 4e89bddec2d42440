"""Memory that is allocated inside a captured region."""

from __future__ import annotations

import pytest
import warp as wp

from treadle.launch import AllocationError, LaunchScope, Stage
from treadle.launch.allocations import noting_allocations

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


def test_what_is_freed_again_is_counted(device):
    wp.zeros(7, dtype=float, device=device)
    with noting_allocations() as nothing:
        pass
    with noting_allocations() as found:
        for _ in range(3):
            wp.zeros(7, dtype=float, device=device)
        kept = wp.zeros(5, dtype=float, device=device)
    assert nothing == []
    assert kept.shape == (5,) and len(found) == 2
    assert found[0].startswith(f"20 B : {device} : array[float32, 5] : test_allocations.py:")
    assert found[1] == f"3 on {device}, freed again inside"


def test_debug_raises_for_a_temporary(device):
    scope, out = support.scope(device, "debug", "graph"), zeros(device)

    def stage():
        wp.copy(out, wp.clone(out))  # on CUDA the memory is free again before the capture ends
        scope.launches.launch(support.count, 1, [], [out])

    scope.graphs.run("stage", stage, may_allocate=False)
    with pytest.raises(AllocationError, match=rf"'stage' allocates while it is captured: .*{device}"):
        scope.graphs.run("stage", stage, may_allocate=False)
    assert out.numpy()[0] == 1.0


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
