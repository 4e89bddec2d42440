"""The documentation shows what was measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from treadle.bench import provenance
from treadle.bench.launch import report as views
from treadle.bench.launch.run import invalid_cells
from treadle.bench.launch.targets import TARGETS, judge
from treadle.bench.soak import report as soak_views
from treadle.bench.soak.cfg import SoakCfg

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "launch-cpu"
ON_CUDA = ROOT / "benchmarks" / "results" / "launch-h200"
PAGE = (ROOT / "docs" / "benchmarks.md").read_text()
TEACHING = (ROOT / "docs" / "launch.md").read_text()


@pytest.mark.parametrize("results", [RESULTS, ON_CUDA], ids=["cpu", "cuda"])
def test_the_tables_of_the_documentation_are_those_of_the_report(results):
    report = json.loads((results / "launch.json").read_text())
    assert views.update_page(PAGE, report) == PAGE
    assert views.update_page(TEACHING, report) == TEACHING
    assert report["targets"] == judge(report["groups"])
    assert invalid_cells(report) == []
    assert (results / "launch.md").read_text() == views.markdown(report)
    assert (results / "launch.svg").exists()


def test_the_report_is_valid_and_says_where_it_comes_from():
    report = json.loads((RESULTS / "launch.json").read_text())
    source = report["provenance"]
    assert source["config_sha256"] == provenance.config_digest(source["config"])
    assert source["git"]["dirty"] is False
    assert "/" not in source["command"].replace("docs/benchmarks.md", "").replace("benchmarks/results/launch-cpu", "")


def test_the_bounds_of_the_soak_test_are_those_of_the_documentation():
    bounds = SoakCfg().bounds
    assert "16 MiB of either memory, 500 objects, or 8 arrays, records, graphs or entries" in PAGE
    assert bounds["rss_mib"] == bounds["device_mib"] == 16.0
    assert bounds["gc_objects"] == 500.0
    others = bounds.keys() - {"rss_mib", "device_mib", "gc_objects"}
    assert {bounds[name] for name in others} == {8.0}


def test_the_soak_test_of_the_documentation_ran_for_half_an_hour_and_passed():
    report = json.loads((RESULTS.parent / "soak-cpu" / "soak.json").read_text())
    source = report["provenance"]
    assert soak_views.update_page(PAGE, report) == PAGE
    assert report["problems"] == [] and report["seconds"] >= 1800.0
    assert report["bounds"] == SoakCfg().bounds
    assert all(grown <= report["bounds"][name] for name, grown in report["growth"].items())
    assert source["config_sha256"] == provenance.config_digest(source["config"])
    assert source["git"]["dirty"] is False and "/" not in source["command"]


def test_the_targets_of_the_documentation_are_those_of_the_harness():
    for target in TARGETS:
        assert f"| {target} | {', '.join(target.kernels)} |" in PAGE
