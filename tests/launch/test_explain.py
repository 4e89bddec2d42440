"""A pipeline as a table, and stages that do not say whether they can be captured."""

from __future__ import annotations

import io
from statistics import median
from types import SimpleNamespace

import pytest
import warp as wp

from treadle.launch import PipelineTable, Stage, measure

from . import support
from .support import N, buffer, same_bits, zeros


def make(device, mode="auto"):
    scope, x, out = support.scope(device, mode=mode), buffer(device), zeros(device)
    launch = scope.launches.launch

    def two():
        launch(support.add, N, [x, 1.0], [out], site=1)
        launch(support.add, N, [x, 2.0], [out], site=2)

    return scope.pipeline(
        [
            Stage("first", two),
            Stage("second", lambda: launch(support.count, 1, [], [out])),
            Stage("host", lambda: launch(support.count, 1, [], [out], site=3), capture="renders"),
            Stage("last", lambda: launch(support.count, 1, [], [out], site=4)),
        ]
    ), out


def test_the_table_without_times(device):
    pipeline, out = make(device)
    for _ in range(3):
        pipeline.run()
    before = out.numpy().copy()
    table = pipeline.explain()
    assert (out.numpy() == before).all()
    assert isinstance(table, PipelineTable)
    assert [(row.stage, row.island, row.launches, row.mode, row.reason) for row in table.rows] == [
        ("first", 1, 3, "graph", ""),
        ("second", 1, None, "graph", ""),
        ("host", 2, None, "replay", "renders"),
        ("last", 3, 1, "graph", ""),
    ]
    assert str(table).splitlines() == [
        f"owner on {device}",
        "stage   island  launches  mode    host us  elapsed us  why no graph",
        "first        1         3  graph",
        "second       1            graph",
        "host         2            replay                       renders",
        "last         3         1  graph",
    ]


@pytest.mark.parametrize("mode", ["eager", "replay", "auto"])
def test_times_and_launches(device, mode):
    pipeline, out = make(device, mode)
    table = pipeline.explain(steps=5)
    assert out.numpy()[0] > 0.0
    islands = [row for row in table.rows if row.host_us is not None]
    assert [row.launches for row in islands] == [3, 1, 1]
    assert all(row.host_us > 0.0 for row in islands)
    assert all((row.elapsed_us is not None) == device.is_cuda for row in islands)
    expected = "graph" if mode == "auto" else mode
    assert [row.mode for row in islands] == [expected, "eager" if mode == "eager" else "replay", expected]


def test_each_measured_run_counts(device):
    (pipeline, out), (other, expected) = make(device), make(device)
    pipeline.explain(steps=4)
    for _ in range(4):
        other.run()
    assert same_bits(out, expected)


@pytest.mark.parametrize("mode", ["eager", "replay", "auto"])
def test_times_are_those_of_steady_runs(device, mode, monkeypatch):
    clock = iter(range(1000))
    monkeypatch.setattr(
        measure, "time", SimpleNamespace(perf_counter=lambda: next(clock) ** 2)
    )  # each run takes longer
    pipeline, _ = make(device, mode)
    seen = []
    original = measure._summary
    monkeypatch.setattr(measure, "_summary", lambda taken: seen.append(taken) or original(taken))
    table = pipeline.explain(steps=4)
    warming = {"eager": 0, "replay": 1, "auto": 2}[mode]
    assert [sample.steady for sample in seen[0]] == [False] * warming + [True] * (4 - warming)
    steady = [sample.host_us for sample in seen[0][warming:]]
    assert table.rows[0].host_us == median(steady)
    other, _ = make(device, "auto")
    assert [row.host_us for row in other.explain(steps=1).rows] == [None] * 4
    assert [row.launches for row in other.explain(steps=1).rows] == [3, None, 1, 1]


def test_rich(device):
    console = pytest.importorskip("rich.console")
    recorder = console.Console(record=True, width=120, file=io.StringIO())
    pipeline, _ = make(device)
    recorder.print(pipeline.explain(steps=2))
    text = recorder.export_text()
    assert "renders" in text and "elapsed us" in text


def probed(device, fn, mode="auto", **scopes):
    scope = support.scope(device, mode=mode)
    out, expected = zeros(device), zeros(device)
    first = Stage("sure", lambda: scope.launches.launch(support.count, 1, [], [out], site="sure"))
    pipeline = scope.pipeline([first, Stage("unsure", lambda: fn(scope.launches.launch, out), capture=None)])
    launch = support.eager_launch(device)

    def run(calls):
        for _ in range(calls):
            pipeline.run()
            launch(support.count, 1, [], [expected])
            fn_expected(launch, expected)
        assert same_bits(out, expected)

    fn_expected = scopes.get("expected", fn)
    return pipeline, run


@pytest.mark.parametrize("mode", ["eager", "replay", "graph", "auto"])
def test_a_stage_that_launches_the_same_joins_the_graphs(device, mode):
    x = buffer(device)
    pipeline, run = probed(device, lambda launch, out: launch(support.add, N, [x, 1.0], [out]), mode)
    graphs = mode in ("graph", "auto")
    run(1)
    if graphs:
        assert pipeline.describe() == "sure: graph\nunsure: no graph: not known yet whether it can be captured"
    run(5)
    assert pipeline.describe() == "sure + unsure: " + ("graph" if graphs else mode)
    assert pipeline.scope.graphs.has_graph(("sure", "unsure")) is graphs


class Counter:
    """A stage whose argument changes from run to run; one for each side of a comparison."""

    def __init__(self, device):
        self.x, self.runs = buffer(device), {}

    def __call__(self, launch, out):
        self.runs[id(out)] = self.runs.get(id(out), 0) + 1
        launch(support.add, N, [self.x, float(self.runs[id(out)])], [out])


def test_a_stage_that_changes_stays_alone(device):
    pipeline, run = probed(device, Counter(device))
    run(6)
    assert pipeline.describe() == ("sure: graph\nunsure: no graph: kernel 'add', argument 's': changes from run to run")
    assert pipeline.scope.graphs.has_graph(("sure",))


def test_a_stage_that_can_not_be_captured_stays_alone(device):
    def fn(launch, out):
        launch(support.count, 1, [], [out])
        if device.is_capturing:
            raise RuntimeError("host control")

    pipeline, run = probed(device, fn)
    run(6)
    assert pipeline.describe() == "sure: graph\nunsure: no graph: RuntimeError: host control"


def test_a_stage_that_swaps_buffers_stays_alone(device):
    sides = {}

    def fn(launch, out):
        state = sides.setdefault(id(out), [buffer(device), buffer(device, 5.0)])
        launch(support.add, N, [state[0], 1.0], [state[1]])
        launch(support.add, N, [state[1], 1.0], [out], site="out")
        state.reverse()

    pipeline, run = probed(device, fn)
    run(6)
    assert "changes from run to run" in pipeline.describe()


def test_torch_in_a_stage_that_does_not_say():
    device = wp.get_device("cpu")

    def fn(launch, out):
        launch(support.count, 1, [], [out])
        wp.to_torch(out).mul_(0.5)

    pipeline, run = probed(device, fn)
    run(6)
    assert "torch operation aten.mul_.Tensor" in pipeline.describe()
