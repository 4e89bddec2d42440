"""Lifetimes, and the order in which things go."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref

import pytest
import warp as wp

from treadle.launch import LaunchError, LaunchScope, Stage, StaleArgumentError

from . import support
from .support import N, buffer, same_bits, zeros


def test_child_scopes_inherit(device):
    scope = LaunchScope(device, mode="graph", contract="trusted", name="env")
    child = scope.child("robot").child("sensor")
    assert (child.device, child.mode, child.contract) == (scope.device, scope.mode, scope.contract)
    assert child.name == "env/robot/sensor"
    assert [arm.name for arm in [scope.child("arm") for _ in range(2)]] == ["env/arm", "env/arm#2"]


def test_invalidate_drops_graphs_then_drains_then_drops_commands(device, monkeypatch):
    events = []
    scope = support.scope(device)
    child = scope.child("part")
    x, out = buffer(device), zeros(device)
    for _ in range(2):
        scope.graphs.run("all", lambda: child.launches.launch(support.add, N, [x, 1.0], [out]))
        child.graphs.run("part", lambda: child.launches.launch(support.count, 1, [], [out]))
    scope.launches.launch(support.count, 1, [], [out])
    for name, part in (("scope", scope), ("child", child)):
        for entry in part.graphs.recorder.entries.values():
            weakref.finalize(entry.graph, events.append, f"{name}: graph")
            weakref.finalize(entry.launches, events.append, f"{name}: arguments of the graph")
        for record in part.launches.records:
            weakref.finalize(record.command, events.append, f"{name}: command")
    del entry, record
    synchronize = wp.synchronize_device

    def drain(*args):
        events.append("drain")
        synchronize(*args)

    monkeypatch.setattr(wp, "synchronize_device", drain)
    scope.invalidate("new buffers")
    assert events == [
        "child: graph",
        "drain",
        "child: arguments of the graph",
        "scope: graph",
        "drain",
        "scope: arguments of the graph",
        "drain",
        "child: command",
        "child: command",
        "scope: command",
    ]
    assert scope.invalidations == ["new buffers"]


def test_invalidating_a_child_drops_the_graphs_that_hold_its_launches(device):
    scope = support.scope(device, "debug")
    child, other = scope.child("part"), scope.child("other")
    x, out, expected = buffer(device), zeros(device), zeros(device)

    def run():
        scope.graphs.run("with", lambda: child.launches.launch(support.add, N, [x, 1.0], [out]))
        scope.graphs.run("without", lambda: scope.launches.launch(support.count, 1, [], [out]))
        other.graphs.run("elsewhere", lambda: child.launches.launch(support.add, N, [x, 2.0], [out], site=2))
        wp.launch(support.add, N, [x, 1.0, expected], device=device)
        wp.launch(support.count, 1, [expected], device=device)
        wp.launch(support.add, N, [x, 2.0, expected], device=device)

    for _ in range(3):
        run()
    old = weakref.ref(x)
    x = buffer(device, 7.0)
    child.invalidate("another x")
    gc.collect()
    assert old() is None
    assert scope.graphs.has_graph("without")
    assert not scope.graphs.has_graph("with")
    assert not other.graphs.has_graph("elsewhere")
    for _ in range(3):
        run()
    assert same_bits(out, expected)
    assert scope.graphs.stats.graphs["with"].captures == 2


def test_a_cache_that_is_invalidated_by_itself_is_safe_too(device):
    scope = support.scope(device, "trusted")
    x, out, expected = buffer(device), zeros(device), zeros(device)

    def run():
        scope.graphs.run("stage", lambda: scope.launches.launch(support.add, N, [x, 1.0], [out]))
        wp.launch(support.add, N, [x, 1.0, expected], device=device)

    for _ in range(3):
        run()
    x = buffer(device, 7.0)
    scope.launches.invalidate()
    for _ in range(2):
        run()
    assert same_bits(out, expected)


def test_invalidate_gives_failed_keys_another_chance(device):
    scope, out = support.scope(device), zeros(device)
    fails = True

    def stage():
        scope.launches.launch(support.count, 1, [], [out])
        if fails and device.is_capturing:
            raise RuntimeError("not now")

    for _ in range(3):
        scope.graphs.run("stage", stage)
    fails = False
    scope.invalidate("repaired")
    assert scope.graphs.reason("stage") is None
    for _ in range(3):
        scope.graphs.run("stage", stage)
    assert scope.graphs.has_graph("stage")
    assert out.numpy()[0] == 6.0


def test_many_invalidations_do_not_cost_the_graph(device):
    scope, out = support.scope(device), zeros(device)
    for _ in range(20):
        for _ in range(2):
            scope.graphs.run("stage", lambda: scope.launches.launch(support.count, 1, [], [out]))
        scope.invalidate("again")
    assert scope.graphs.stats.graphs["stage"].captures == 20
    assert scope.graphs.reason("stage") is None


def test_the_reasons_of_invalidations_do_not_pile_up(device):
    scope = support.scope(device)
    for number in range(250):
        scope.invalidate(str(number))
        scope.rebind(reason=f"rebound {number}")
    assert len(scope.invalidations) == 100
    assert scope.invalidations[-2:] == ["249", "rebound 249"]


def test_invalidate_inside_a_capture_is_refused(device):
    scope, out = support.scope(device), zeros(device)
    with wp.ScopedCapture(device):
        with pytest.raises(LaunchError, match=r"owner/part can't be invalidated while .*captured \(why\)"):
            scope.child("part").invalidate("why")
        with pytest.raises(LaunchError, match="owner can't"):
            scope.invalidate("why")
        scope.launches.launch(support.count, 1, [], [out])


def test_everything_goes_with_its_owner(device):
    scope = support.scope(device)
    child = scope.child("part")
    x, out = buffer(device), zeros(device)
    bound = child.launches.bind(support.add, N, [x, 1.0], [out])
    for _ in range(3):
        scope.graphs.run("stage", bound, inputs=[x])
        child.launches.launch(support.add, N, [x, 1.0], [out])
    refs = [weakref.ref(thing) for thing in (scope, child, x, bound, scope.launches, scope.graphs)]
    del x, bound, child, scope
    gc.collect()
    assert [ref() for ref in refs] == [None] * len(refs)


def test_close(device):
    with support.scope(device) as scope:
        child = scope.child("part")
        child.launches.launch(support.count, 1, [], [zeros(device)])
        child.close()
        assert child.invalidations == ["closed"]
        assert not child.launches.records
        assert len(scope.stats.sites) == 0
        child.close()
        assert scope.child("part").name == child.name
    assert scope.invalidations == ["closed"]


def test_a_part_that_nobody_has_leaves_nothing(device):
    scope, out = support.scope(device), zeros(device)
    for _ in range(3):
        part, x = scope.child("part"), buffer(device)
        refs = [weakref.ref(thing) for thing in (x, part.launches.recorder, part.graphs)]
        for _ in range(3):
            part.graphs.run("all", lambda part=part, x=x: part.launches.launch(support.add, N, [x, 1.0], [out]))
        del part, x
        gc.collect()
        assert [ref() for ref in refs] == [None] * 3
        assert not scope.stats.sites and not scope.stats.graphs
    assert scope.child("part").name == "owner/part"


@pytest.mark.parametrize("kept", ["launches", "bound", "graphs"])
def test_a_part_lives_as_long_as_anything_of_it(device, kept):
    scope, x, y, out = support.scope(device, "checked"), buffer(device), buffer(device, 9.0), zeros(device)
    part = scope.child("part")
    bound = part.launches.bind(support.add, N, [x, 1.0], [out])
    bound()
    part.graphs.run("stage", lambda: None)
    held = {"launches": part.launches, "bound": bound, "graphs": part.graphs}[kept]
    del part, bound
    gc.collect()
    scope.rebind([(x, y)] if kept == "bound" else [])
    scope.close()
    with pytest.raises(LaunchError, match="owner/part is closed"):
        if kept == "launches":
            held.launch(support.add, N, [x, 1.0], [out])
        elif kept == "graphs":
            held.run("stage", lambda: None)
        else:
            held()


@pytest.mark.parametrize("mode", ["graph", "replay"])
def test_pipelines_that_nobody_has_leave_nothing(device, mode):
    scope, out = support.scope(device, mode=mode), zeros(device)
    lasting = scope.pipeline([Stage("lasting", lambda: scope.launches.launch(support.count, 1, [], [out], site="l"))])
    refs = []
    for _ in range(5):
        x = buffer(device)
        stages = [
            Stage(name, lambda x=x: scope.launches.launch(support.add, N, [x, 1.0], [out]))
            for name in ("first", "then")
        ]
        pipeline = scope.pipeline(stages)
        for _ in range(3):
            pipeline.run()
        refs.append(weakref.ref(pipeline))
        del pipeline, stages
    assert [ref() for ref in refs] == [None] * 5
    lasting.run()
    assert len(scope.graphs.stats.graphs) == 1
    for _ in range(2):
        lasting.run()
    assert scope.graphs.has_graph(("lasting",)) == (mode == "graph")


def test_the_graphs_of_a_pipeline_that_goes_inside_a_capture_go_later(device):
    scope, out = support.scope(device), zeros(device)
    held = [scope.pipeline([Stage("part", lambda: scope.launches.launch(support.count, 1, [], [out], site="p"))])]
    for _ in range(3):
        held[0].run()

    def stage():
        scope.launches.launch(support.count, 1, [], [out])
        if device.is_capturing:
            held.clear()
            with scope.exclusive():
                assert ("part",) in scope.graphs.stats.graphs

    for _ in range(3):
        scope.graphs.run("stage", stage)
    assert set(scope.stats.graphs) == {("owner", "stage")}
    assert out.numpy()[0] == 6.0


class Owner:
    """In a cycle of references with its pipeline, as owners are."""

    def __init__(self, device):
        self.scope, self.x, self.out = support.scope(device), buffer(device), zeros(device)
        self.bound = self.scope.launches.bind(support.add, N, [self.x, 1.0], [self.out])
        self.pipeline = self.scope.pipeline([Stage("step", self.step), Stage("bound", self.bound)])

    def step(self):
        self.scope.launches.launch(support.add, N, [self.x, 1.0], [self.out])


def test_a_closed_owner_goes_without_the_garbage_collector(device):
    owner = Owner(device)
    for _ in range(3):
        owner.pipeline.run()
    bound, pipeline, x = owner.bound, owner.pipeline, weakref.ref(owner.x)
    owner.scope.close()
    gc.collect()
    gc.disable()
    try:
        del owner
        assert x() is None
    finally:
        gc.enable()
    for call in (bound, pipeline.run, lambda: bound.set("s", 2.0), lambda: bound.set_dim(1)):
        with pytest.raises(LaunchError, match="closed"):
            call()


def test_the_debug_contract_of_the_suite_applies(device):
    scope, x, out = LaunchScope(device, mode="auto"), buffer(device), zeros(device)
    scope.launches.launch(support.add, N, [x, 1.0], [out])
    with pytest.raises(StaleArgumentError):
        scope.launches.launch(support.add, N, [buffer(device), 1.0], [out])
    scope.invalidate("another x")
    scope.launches.launch(support.add, N, [buffer(device), 1.0], [out])


def test_the_launch_layer_needs_warp_only():
    code = (
        "import sys, treadle.launch as launch\n"
        "launch.LaunchScope('cpu').pipeline([launch.Stage('none', lambda: None)]).run()\n"
        "heavy = {'torch', 'newton', 'mujoco', 'mujoco_warp', 'rsl_rl', 'matplotlib', 'tyro'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
