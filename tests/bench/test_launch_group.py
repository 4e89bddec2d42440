"""The launch modes are checked before their times are believed."""

from __future__ import annotations

import gc
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import warp as wp

from treadle.bench.launch import group as measuring
from treadle.bench.launch import modes
from treadle.bench.launch.cfg import KERNEL_NAMES, LaunchBenchCfg
from treadle.bench.launch.group import measure_group
from treadle.bench.launch.modes import MODES, all_modes
from treadle.bench.launch.workload import Workload

CFG = LaunchBenchCfg(device="cpu", rounds=4)


def measure(kernel: str = "arrays-4", launches: int = 3, threads: int = 3, builders=None, cfg=CFG, device="cpu"):
    workload = Workload(kernel, wp.get_device(device), threads)
    return measure_group(workload, launches, cfg, builders or all_modes(workload.device))


@pytest.mark.parametrize("kernel", KERNEL_NAMES)
@pytest.mark.parametrize("launches", [1, 3])
def test_every_mode_gives_numbers_or_says_why_not(kernel, launches, device):
    result = measure(kernel, launches, device=str(device))
    reasons = {mode: cell["reason"] for mode, cell in result["modes"].items() if cell["status"] == "not available"}
    assert all(cell["status"] != "invalid" for cell in result["modes"].values()), result["modes"]
    reasons.pop("driver", None)
    assert reasons.keys() == ({"islands"} if launches == 1 else set())
    for mode in result["modes"].keys() - reasons.keys() - {"driver"}:
        cell = result["modes"][mode]
        assert 0 < cell["host_us_per_step"]["low"] <= cell["host_us_per_step"]["median"]
        assert cell["host_us_per_launch"]["median"] * launches == pytest.approx(
            cell["host_us_per_step"]["median"], rel=1e-3
        )
        assert ("completed_us_per_step" in cell) == device.is_cuda
    assert result["modes"]["raw"]["host_over_raw"]["max"] == 1.0
    assert result["modes"]["eager"]["eager_over_host"]["min"] == 1.0


@pytest.mark.parametrize("kernel", KERNEL_NAMES)
def test_what_launches_add_up_to_is_known_in_advance(kernel):
    workload = Workload(kernel, wp.get_device("cpu"), 70)
    total = workload.new_total()
    step = modes.eager(workload, 4)
    for _ in range(2):
        step.run()
    np.testing.assert_array_equal(step.total.numpy(), workload.expected(8, 20))
    assert workload.size == (128 if kernel == "tiled" else 70)
    np.testing.assert_array_equal(total.numpy(), 0)


def test_sums_wrap_around():
    workload = Workload("arrays-4", wp.get_device("cpu"), 2)
    total = workload.new_total()
    wp.launch(workload.kernel, workload.dim, *workload.arguments(2**32 - 1, total), device="cpu")
    np.testing.assert_array_equal(total.numpy(), workload.expected(1, 2**32 - 1))


def stale_replay(workload, launches):
    """Replay the first command of the step again and again."""
    step = modes.raw(workload, launches)
    command = workload.record(*workload.arguments(1, step.total))

    def run() -> None:
        for _ in range(launches):
            command.launch()

    step.run = run
    return step


def lost_launch(workload, launches):
    """Issue one launch too few."""
    step = modes.eager(workload, launches)
    shorter = modes.eager(workload, launches - 1)
    step.run, step.total = shorter.run, shorter.total
    return step


def stale_setter(workload, launches):
    """Set the scalar once only."""
    step = modes.bound(workload, launches)
    step.weight_sum = modes._growing_weights
    return step


def hidden_eager(workload, launches):
    """Say to replay, but launch eagerly."""
    step = modes.checked(workload, launches)
    eager = modes.eager(workload, launches)
    step.run, step.total = eager.run, eager.total
    return step


def unstable_site(workload, launches):
    """Serve all launches from one site, so that each call patches."""
    scope, total = modes._scope(workload, modes.LaunchMode.REPLAY, modes.LaunchContract.CHECKED), workload.new_total()
    calls = modes._calls(workload, total, launches)

    def run() -> None:
        for call in calls:
            scope.launches.launch(workload.kernel, workload.dim, *call)

    return modes._replays(scope, run, total, launches)


def graph_that_was_not(workload, launches):
    """Promise a graph, but replay."""
    step = modes.checked(workload, launches)
    step.per_step = modes._growth(graphs=1)
    return step


def late_error(workload, launches):
    """Fail at the first call."""
    step = modes.raw(workload, launches)

    def run() -> None:
        raise RuntimeError("does not work")

    step.run = run
    return step


@pytest.mark.parametrize(
    ("sabotage", "reason"),
    [
        (stale_replay, "results differ from those of eager launches in 3 of 3 elements, first at 0"),
        (lost_launch, "results differ"),
        (stale_setter, "results differ"),
        (hidden_eager, "replayed: 0 in"),
        (unstable_site, "patched: "),
        (graph_that_was_not, "replayed: "),
        (late_error, "RuntimeError: does not work"),
    ],
)
def test_a_mode_that_is_not_what_it_says_reports_no_numbers(sabotage, reason):
    builders = {name: MODES[name] for name in ("eager", "raw", "checked")}
    result = measure(builders={**builders, "graph": sabotage})
    bad = result["modes"]["graph"]
    assert bad["status"] == "invalid"
    assert reason in bad["reason"]
    assert bad.keys() == {"status", "reason"}
    assert all(result["modes"][name]["status"] == "ok" for name in builders)


def test_without_a_right_reference_nothing_is_believed():
    result = measure(builders={"eager": lost_launch, "raw": modes.raw})
    assert [cell["status"] for cell in result["modes"].values()] == ["invalid", "invalid"]
    assert "nothing to compare with" in result["modes"]["raw"]["reason"]


def test_ratios_to_raw_go_with_raw():
    result = measure(builders={"eager": modes.eager, "raw": stale_replay, "checked": modes.checked})
    assert "host_over_raw" not in result["modes"]["checked"]
    assert "eager_over_host" in result["modes"]["checked"]


def test_long_steps_are_not_measured():
    result = measure(cfg=replace(CFG, max_step_s=1e-9))
    assert {cell["status"] for cell in result["modes"].values()} == {"not available"}
    assert "says nothing about host time" in result["modes"]["graph"]["reason"]


def test_little_time_means_few_rounds():
    assert measure(cfg=replace(CFG, rounds=1000, max_group_s=1e-6))["rounds"] == 4
    assert measure(cfg=replace(CFG, rounds=6))["rounds"] == 6


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_is_off_while_times_are_taken(enabled, monkeypatch):
    seen = []
    host_us = measuring._host_us
    monkeypatch.setattr(measuring, "_host_us", lambda *args: (seen.append(gc.isenabled()), host_us(*args))[1])
    before = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        measure()
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()
    assert seen
    assert not any(seen)


def test_what_a_mode_holds_is_freed(monkeypatch):
    closed = []

    def closing(workload, launches):
        step = modes.raw(workload, launches)
        step.close = lambda: closed.append(workload.name)
        return step

    measure(builders={"eager": modes.eager, "driver": closing})
    assert closed == ["arrays-4"]


def test_interrupted_samples_are_taken_again(monkeypatch):
    """The fourth try counts, whatever happens to it."""
    switches = iter(range(10**6))
    usage = SimpleNamespace(getrusage=lambda who: SimpleNamespace(ru_nivcsw=next(switches)), RUSAGE_SELF=0)
    monkeypatch.setattr(measuring, "resource", usage)
    taken = []
    host_us = measuring._host_us
    monkeypatch.setattr(measuring, "_host_us", lambda *args: (taken.append(1), host_us(*args))[1])
    result = measure(builders={"eager": modes.eager})
    assert result["modes"]["eager"]["host_interrupted"] == 1.0
    assert len(taken) == 4 * (result["rounds"] + 2)


def test_undisturbed_samples_are_taken_once(monkeypatch):
    usage = SimpleNamespace(getrusage=lambda who: SimpleNamespace(ru_nivcsw=7), RUSAGE_SELF=0)
    monkeypatch.setattr(measuring, "resource", usage)
    assert measure(builders={"eager": modes.eager})["modes"]["eager"]["host_interrupted"] == 0.0
