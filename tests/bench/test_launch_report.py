"""What the report shows."""

from __future__ import annotations

import copy

import pytest

from treadle.bench.launch import report as views
from treadle.bench.launch.cfg import LaunchBenchCfg
from treadle.bench.launch.plot import draw
from treadle.bench.launch.run import run_launch_bench
from treadle.bench.launch.targets import judge


@pytest.fixture(scope="module")
def measured():
    cfg = LaunchBenchCfg(device="cpu", kernels=("arrays-1", "tiled"), threads=(1, 2), launches=(1, 3), rounds=4)
    return run_launch_bench(cfg, ["bench", "launch"])


@pytest.fixture
def report(measured):
    """A report whose numbers are known."""
    report = copy.deepcopy(measured)
    for group in report["groups"]:
        for cell in group["modes"].values():
            if cell["status"] == "ok":
                cell["host_interrupted"] = 0.0
    return report


def raw(report, **values):
    (group,) = views.select(report, kernel="arrays-1", **values)
    return group["modes"]["raw"]


def test_the_case_that_is_shown_first(report):
    assert views.headline(report) == (1, 3)


def test_medians_and_intervals(report):
    number = {"median": 1.234, "low": 1.1, "high": 123.4, "min": 1.0, "max": 200.0}
    raw(report, threads=1, launches=3)["host_us_per_launch"] = number
    assert "| raw | 1.23 (1.10 to 123) |" in views.markdown(report)
    assert "| raw | 1.23 (1.10 to 123) |" in views.docs_block(report)
    assert "1.10 to" not in views.text(report)


def test_interrupted_numbers_are_marked_and_explained(report):
    assert "~" not in views.markdown(report) + views.text(report) + views.docs_block(report)
    raw(report, threads=1, launches=3)["host_interrupted"] = 0.3
    for shown in (views.markdown(report), views.text(report), views.docs_block(report)):
        assert "~: other processes interrupted" in shown


def test_invalid_cells_have_no_number_anywhere(report):
    group = views.select(report, kernel="arrays-1", threads=1, launches=3)[0]
    group["modes"]["raw"] = {"status": "invalid", "reason": "it is wrong"}
    assert "| raw | INVALID |" in views.markdown(report)
    assert "invalid: raw (arrays-1): it is wrong" in views.text(report)
    bars = draw(report).subfigs[0].axes[0]
    assert "invalid" in [text.get_text() for text in bars.texts]


def test_missing_numbers_have_their_reason_once(report):
    shown = views.text(report)
    reason = "not available: islands: a gap between two graphs needs at least 3 launches per step"
    assert shown.count(reason) == 1
    views.select(report, kernel="tiled", threads=1, launches=3)[0]["modes"]["raw"] = {
        "status": "not available",
        "reason": "it has no tiles",
    }
    assert "not available: raw (tiled): it has no tiles" in views.text(report)


def test_completed_times_are_shown_for_cuda(report):
    assert "Completed" not in views.markdown(report)
    report["provenance"]["cuda"] = {"driver": "13.0", "toolkit": "12.9", "arch": 90}
    assert "Completed time per step [µs], 2 threads" in views.markdown(report)


def test_the_picture_names_modes_kernels_and_units(report):
    figure = draw(report)
    upper, lower = figure.subfigs
    assert [axes.get_title() for axes in upper.axes] == ["1 array", "tiles, 3 arrays"]
    assert {label.get_text() for label in upper.axes[0].get_yticklabels()} == set(report["modes"])
    assert upper.axes[0].get_xlabel() == "µs per launch"
    assert {text.get_text() for text in lower.axes[0].texts} == set(report["modes"])


def ratio(median):
    return {"median": median, "low": median, "high": median, "min": median, "max": median}


def group(kernel, threads=1, **ratios):
    modes = {mode: {"status": "ok", **quantities} for mode, quantities in ratios.items()}
    return {"kernel": kernel, "threads": threads, "launches": 10, "modes": modes}


def test_each_target_has_a_verdict():
    checked = {"host_over_raw": ratio(1.61), "eager_over_host": ratio(3.5)}
    four = group(
        "arrays-4", bound={"host_over_raw": ratio(1.10)}, trusted={"host_over_raw": ratio(1.26)}, checked=checked
    )
    twelve = group("arrays-12", bound={}, checked=checked)
    entries = judge([four, twelve, group("arrays-4", threads=1024), group("struct")])
    assert [(entry["target"], entry["kernel"], entry["verdict"]) for entry in entries] == [
        ("bound / raw ≤ 1.10", "arrays-4", "met"),
        ("bound / raw ≤ 1.10", "arrays-12", "not measured"),
        ("trusted / raw ≤ 1.25", "arrays-4", "missed"),
        ("trusted / raw ≤ 1.25", "arrays-12", "not measured"),
        ("checked / raw ≤ 1.60", "arrays-4", "missed"),
        ("checked / raw ≤ 1.60", "arrays-12", "missed"),
        ("eager / checked ≥ 3", "arrays-4", "met"),
        ("eager / checked ≥ 4", "arrays-12", "missed"),
    ]


def test_the_targets_are_shown_with_what_was_measured(report):
    assert report["targets"] == []
    assert "Targets" not in views.markdown(report)
    report["targets"] = judge([group("arrays-4", bound={"host_over_raw": ratio(1.234)})])
    for shown in (views.markdown(report), views.docs_block(report)):
        assert "| bound / raw ≤ 1.10 | arrays-4 | 1.23 missed |" in shown
    assert "1.23 missed" in views.text(report)


def test_a_target_that_is_missed_by_little_shows_it(report):
    report["targets"] = judge([group("arrays-4", checked={"eager_over_host": ratio(2.9968)})])
    assert "| eager / checked ≥ 3 | arrays-4 | 2.997 missed |" in views.markdown(report)


def test_a_page_has_the_blocks_of_its_device(report):
    page = "<!-- begin launch targets on CUDA -->\n<!-- end launch targets on CUDA -->"
    with pytest.raises(ValueError, match="launch table"):
        views.update_page(page, report)
    report["provenance"]["cuda"] = {"driver": "13.0", "toolkit": "13.4", "arch": 90}
    report["targets"] = judge([group("arrays-4", bound={"host_over_raw": ratio(1.234)})])
    page = views.update_page(page, report)
    assert "driver 13.0" in page and "| bound / raw ≤ 1.10 | arrays-4 | 1.23 missed |" in page


def test_a_page_has_the_blocks_that_it_names(report):
    page = "<!-- begin launch summary -->\n<!-- end launch summary -->"
    assert "| kernel | before (`eager`) |" in views.update_page(page, report)
    both = views.update_page(page + "<!-- begin launch table --><!-- end launch table -->", report)
    assert "Host time over that of raw" in both and "| kernel | before (`eager`) |" in both
    with pytest.raises(ValueError, match="launch table"):
        views.update_page("nothing", report)
