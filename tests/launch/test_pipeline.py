"""Stages and islands."""

from __future__ import annotations

import gc
import warnings
import weakref

import pytest
import warp as wp

from treadle.launch import CaptureWarning, LaunchError, Pipeline, Stage

from . import support
from .support import N, buffer, same_bits, zeros


class Program:
    """Four stages that do not commute, as a pipeline and by ``wp.launch``."""

    def __init__(self, device, contract="checked", mode="auto", **capture):
        self.device = device
        self.scope = support.scope(device, contract, mode)
        self.x, self.out, self.expected = buffer(device), zeros(device), zeros(device)
        self.refuse: set[str] = set()  # stages that raise while a graph is being captured
        self.broken: set[str] = set()  # stages that always raise
        self.python_runs = dict.fromkeys("abcd", 0)
        self.pipeline = self.scope.pipeline(
            [Stage(name, lambda name=name: self.stage(name), capture=capture.get(name, True)) for name in "abcd"]
        )

    def stage(self, name):
        self.python_runs[name] += 1
        self.scope.launches.launch(support.add, N, [self.x, float(ord(name))], [self.out], site=name)
        if name in self.broken:
            raise ValueError(f"{name} is broken")
        if name in self.refuse and self.device.is_capturing:
            raise RuntimeError(f"{name} can't be captured")

    def eagerly(self, names="abcd"):
        for name in names:
            wp.launch(support.add, N, [self.x, float(ord(name)), self.expected], device=self.device)

    def run(self, calls):
        for _ in range(calls):
            self.pipeline.run()
            self.eagerly()
            assert same_bits(self.out, self.expected)

    @property
    def islands(self):
        return ["".join(island.key) + ("" if island.break_reason is None else "!") for island in self.pipeline.islands]


@pytest.mark.parametrize("calls", [1, 2, 3, 5])
@pytest.mark.parametrize("contract", ["checked", "trusted", "debug"])
@pytest.mark.parametrize("mode", ["eager", "replay", "graph", "auto"])
def test_each_stage_runs_exactly_once(device, mode, contract, calls):
    program = Program(device, contract, mode, c="renders")
    program.run(calls)
    assert program.islands == ["ab", "c!", "d"]
    assert program.pipeline.graph_count == (2 if mode in ("graph", "auto") else 0)


def test_islands_and_their_description(device):
    program = Program(device, b=False, c="calls torch")
    assert program.pipeline.describe().splitlines() == [
        "a: graph",
        "b: no graph: declared capture=False",
        "c: no graph: calls torch",
        "d: graph",
    ]
    assert Program(device).pipeline.describe() == "a + b + c + d: graph"
    assert Program(device, mode="eager").pipeline.describe() == "a + b + c + d: eager"
    assert Program(device, mode="replay").pipeline.describe() == "a + b + c + d: replay"


def test_python_does_not_run_once_a_graph_is_there(device):
    program = Program(device)
    program.run(5)
    assert program.python_runs == dict.fromkeys("abcd", 2)
    assert program.scope.stats.graph_total("launches") == 4


@pytest.mark.parametrize("culprit", ["a", "b", "d"])
@pytest.mark.parametrize("mode", ["graph", "auto"])
def test_a_failing_stage_alone_leaves_its_island(device, mode, culprit):
    program = Program(device, mode=mode)
    program.refuse = {culprit}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        program.run(6)
    assert program.islands == {"a": ["a!", "bcd"], "b": ["a", "b!", "cd"], "d": ["abc", "d!"]}[culprit]
    assert f"{culprit}: no graph: RuntimeError: {culprit} can't be captured" in program.pipeline.describe().splitlines()
    texts = [str(warning.message) for warning in caught]
    wanted = f"owner: stage {culprit!r} runs without a graph: RuntimeError: {culprit} can't be captured"
    assert texts == ([wanted] if mode == "graph" else [])
    assert program.scope.stats.fallback_reasons() == {
        ("owner", (culprit,)): f"RuntimeError: {culprit} can't be captured"
    }
    for island in program.pipeline.islands:
        assert program.scope.graphs.has_graph(island.key) is (island.break_reason is None)


def test_two_failing_stages(device):
    program = Program(device)
    program.refuse = {"b", "d"}
    program.run(8)
    assert program.islands == ["a", "b!", "c", "d!"]


def test_a_failure_without_a_culprit_is_found_by_trying_alone(device, monkeypatch):
    """As on CUDA, where an illegal operation may show at the end of the capture only."""
    program = Program(device)
    original, ran = program.stage, []

    def stage(name):
        ran.append(name)
        original(name)

    capture_end = wp.capture_end

    def failing_end(*args, **kwargs):
        graph = capture_end(*args, **kwargs)
        if "b" in ran:
            raise RuntimeError("something illegal happened")
        return graph

    program.stage = stage
    run = program.scope.graphs.recorder._capture

    def capture(entry, fn, inputs):
        ran.clear()
        return run(entry, fn, inputs)

    monkeypatch.setattr(wp, "capture_end", failing_end)
    monkeypatch.setattr(program.scope.graphs.recorder, "_capture", capture)
    program.broken = {"c"}  # its own fault once, which says nothing about the capture
    with pytest.raises(ValueError, match="c is broken"):
        program.pipeline.run()
    program.eagerly("abc")
    program.broken = set()
    program.run(8)
    assert program.islands == ["a", "b!", "cd"]
    assert list(program.scope.stats.fallback_reasons()) == [("owner", ("b",))]


def test_stages_that_make_no_graph_together_stay_alone(device, monkeypatch):
    program = Program(device)
    capture_end, sizes = wp.capture_end, []

    def failing_end(*args, **kwargs):
        graph = capture_end(*args, **kwargs)
        if len(program.scope.graphs.recorder.captures.open.kernel_names) > 1:
            sizes.append(1)
            raise RuntimeError("too large")
        return graph

    monkeypatch.setattr(wp, "capture_end", failing_end)
    program.run(8)
    assert program.islands == ["a", "b", "c", "d"]
    assert program.pipeline.graph_count == 4
    assert len(sizes) == 1
    assert list(program.scope.stats.fallback_reasons()) == [("owner", ("a", "b", "c", "d"))]


@pytest.mark.parametrize("failing_call", [1, 2])
def test_an_error_of_a_stage_reaches_the_user_and_leaves_the_pipeline_usable(device, failing_call):
    program = Program(device, mode="graph")
    for call in range(1, 6):
        if call == failing_call:
            program.broken = {"c"}
            with pytest.raises(ValueError, match="c is broken") as raised:
                program.pipeline.run()
            assert raised.value.__notes__ == ["in stage 'c' of owner"]
            program.eagerly("abc")
            program.broken = set()
        else:
            program.run(1)
    assert program.islands == ["abcd"]
    assert program.scope.graphs.has_graph(("a", "b", "c", "d"))
    assert program.scope.stats.fallback_reasons() == {}


def test_an_interrupt_passes(device):
    program = Program(device)
    program.run(1)
    original = program.stage

    def interrupted(name):
        original(name)
        if name == "b":
            raise KeyboardInterrupt

    program.stage = interrupted
    with pytest.raises(KeyboardInterrupt):
        program.pipeline.run()
    program.stage = original
    program.run(3)
    assert program.islands == ["abcd"]


def test_an_empty_stage_takes_no_graph_and_still_runs(device):
    scope, out = support.scope(device), zeros(device)
    dims = {"a": 0}
    pipeline = scope.pipeline(
        [
            Stage("a", lambda: scope.launches.launch(support.count, dims["a"], [], [out])),
            Stage("torch", lambda: None, capture="host code"),
            Stage("b", lambda: scope.launches.launch(support.count, 1, [], [out], site="b")),
        ]
    )
    for _ in range(3):
        pipeline.run()
    assert out.numpy()[0] == 3.0
    assert "a: no graph: the graph is empty" in pipeline.describe()
    dims["a"] = 1
    pipeline.run()
    assert out.numpy()[0] == 5.0


def test_inputs_of_stages(device):
    scope, out, expected = support.scope(device), zeros(device), zeros(device)
    gains = {"a": 1.0, "b": 2.0}
    x = buffer(device)
    pipeline = scope.pipeline(
        [
            Stage(n, lambda n=n: scope.launches.launch(support.add, N, [x, gains[n]], [out], site=n), inputs=read)
            for n, read in (("a", lambda: [gains["a"]]), ("b", lambda: [gains["b"]]))
        ]
    )
    for call in range(8):
        if call in (4, 6):
            gains["a" if call == 4 else "b"] += 1.0
        pipeline.run()
        for gain in gains.values():
            wp.launch(support.add, N, [x, gain, expected], device=device)
    assert same_bits(out, expected)
    assert scope.stats.graph_total("captures") == 3


def test_two_pipelines_of_one_scope_do_not_share_graphs(device):
    scope, out = support.scope(device), zeros(device)
    first = scope.pipeline([Stage("step", lambda: scope.launches.launch(support.count, 1, [], [out]))])
    second = scope.pipeline(
        [Stage("step", lambda: [scope.launches.launch(support.count, 1, [], [out], site=i) for i in (1, 2)])]
    )
    for calls in range(1, 5):
        first.run()
        second.run()
        assert out.numpy()[0] == 3.0 * calls


def test_names_are_unique(device):
    with pytest.raises(LaunchError, match="repeated: a"):
        support.scope(device).pipeline([Stage("a", print), Stage("b", print), Stage("a", print)])


def test_inside_a_capture_a_pipeline_becomes_part_of_it(device):
    program = Program(device)
    program.run(3)
    outer = support.scope(device)
    for _ in range(3):
        outer.graphs.run("outer", program.pipeline.run)
        program.eagerly()
    assert same_bits(program.out, program.expected)
    assert program.islands == ["abcd"]


def test_invalidate_and_another_buffer(device):
    program = Program(device, "debug")
    program.run(3)
    program.x = buffer(device, 30.0)
    program.scope.invalidate("another x")
    program.run(3)


def test_the_warning_names_the_owner_where_graphs_are_asked_for(device, monkeypatch):
    monkeypatch.setattr(type(support.scope(device).graphs), "capturing_allowed", False)
    with pytest.warns(CaptureWarning, match="owner: no graphs on .*memory pool"):
        scope = support.scope(device, mode="graph")
    assert scope.pipeline([Stage("a", print)]).describe() == "a: replay"


def test_a_steady_run_computes_nothing_anew(device):
    """On the CPU, working out keys and undeclared inputs took longer than the launch of a small graph."""
    scope, out, box, read = support.scope(device), zeros(device), [1.0], []

    def inputs():
        read.append(box[0])
        return box

    stages = [
        Stage("one", lambda: scope.launches.launch(support.count, 1, [], [out])),
        Stage("two", lambda: scope.launches.launch(support.count, 1, [], [out]), inputs=inputs),
        Stage("three", lambda: scope.launches.launch(support.count, 1, [], [out]), inputs=[]),
    ]
    pipeline = scope.pipeline(stages)
    for _ in range(3):
        pipeline.run()
    (island,) = pipeline.islands
    assert island.key is island.key
    assert island.read_inputs() == [1.0]
    read.clear()
    pipeline.run()
    assert read == [1.0]
    box[0] = 2.0
    pipeline.run()
    assert scope.stats.graph_total("captures") == 2
    assert out.numpy()[0] == 15.0


def test_a_pipeline_goes_with_its_last_reference(device):
    scope, out = support.scope(device), zeros(device)
    pipeline = scope.pipeline([Stage("s", lambda: scope.launches.launch(support.count, 1, [], [out]))])
    for _ in range(3):
        pipeline.run()
    gone = weakref.ref(pipeline)
    gc.disable()
    try:
        del pipeline
        assert gone() is None
    finally:
        gc.enable()


def test_a_second_pipeline_of_the_same_key_is_refused(device):
    scope, out = support.scope(device), zeros(device)

    def stages(add):
        return [Stage("s", lambda: scope.launches.launch(support.add, N, [add, 1.0], [out]))]

    Pipeline(stages(zeros(device)), scope, key="own").run()
    with pytest.raises(LaunchError, match="stands for the pipeline of s and can't run the pipeline of s of another"):
        Pipeline(stages(zeros(device)), scope, key="own").run()


@pytest.mark.parametrize("how", ["run", "explain", "child", "key"])
def test_a_warning_points_at_the_line_that_ran_it(how):
    device = wp.get_device("cpu")
    scope, out = support.scope(device, mode="graph"), zeros(device)

    def stage():
        scope.launches.launch(support.count, 1, [], [out])
        if device.is_capturing:
            raise RuntimeError("host control")

    pipeline = scope.pipeline([Stage("s", stage), Stage("no graph", lambda: None, capture=False)])
    parent = support.scope(device, mode="graph").pipeline([Stage("inner", pipeline.run, capture=False)])
    runs = {
        "run": pipeline.run,
        "explain": lambda: pipeline.explain(1),
        "child": parent.run,
        "key": lambda: scope.graphs.run("k", stage),
    }
    with pytest.warns(CaptureWarning, match="host control") as caught:
        for _ in range(3):
            runs[how]()
    assert [warning.filename for warning in caught] == [__file__]
