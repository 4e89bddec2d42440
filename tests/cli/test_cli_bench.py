"""``treadle bench``."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from treadle.bench.launch import modes
from treadle.cli import main

QUICK = ["bench", "launch", "--device", "cpu", "--quick", "--rounds", "4"]
PAGE = "# Page\n\n<!-- begin launch table -->\n<!-- end launch table -->\n"


def test_launch_writes_json_table_and_picture(capsys):
    Path("page.md").write_text(PAGE)
    assert main([*QUICK, "--out", "out", "--update-docs", "page.md"]) == 0
    out = capsys.readouterr().out
    assert "Host time per launch [µs], 1 thread" in out
    assert "not available: islands: a gap between two graphs needs at least 3 launches per step" in out
    report = json.loads(Path("out/launch.json").read_text())
    assert report["provenance"]["config"]["kernels"] == ["arrays-1", "arrays-4", "tiled"]
    assert report["provenance"]["command"].startswith("treadle bench launch --device cpu")
    assert len(report["groups"]) == 6
    assert Path("out/launch.svg").read_text().rstrip().endswith("</svg>")
    assert sorted(path.name for path in Path("out").iterdir()) == ["launch.json", "launch.md", "launch.svg"]
    assert "| checked |" in Path("page.md").read_text()

    written = {path: path.read_text() for path in (Path("out/launch.md"), Path("page.md"))}
    for path in written:
        path.write_text(PAGE)
    assert main(["bench", "report", "out/launch.json", "--no-plot", "--update-docs", "page.md"]) == 0
    assert {path: path.read_text() for path in written} == written


def test_options_choose_the_matrix(capsys):
    argv = ["--kernels", "struct", "--threads", "2", "5", "--launches", "3", "--rounds", "3", "--no-plot", "--json"]
    assert main(["bench", "launch", "--device", "cpu", "--seed", "4", *argv]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [(group["kernel"], group["threads"], group["launches"]) for group in report["groups"]] == [
        ("struct", 2, 3),
        ("struct", 5, 3),
    ]
    assert report["groups"][0]["rounds"] == 4
    assert report["provenance"]["seed"] == 4
    assert {cell["status"] for group in report["groups"] for cell in group["modes"].values()} == {"ok"}
    folders = list(Path("logs/bench").glob("launch-cpu-*"))
    assert len(folders) == 1


def test_an_invalid_mode_is_shown_without_numbers_and_fails(monkeypatch, capsys):
    def stale(workload, launches):
        step = modes.bound(workload, launches)
        step.weight_sum = lambda launches, steps: 1
        return step

    monkeypatch.setitem(modes.MODES, "bound", stale)
    argv = ["--kernels", "arrays-1", "--launches", "10", "--out", "out"]
    assert main([*QUICK, *argv]) == 1
    out, err = capsys.readouterr()
    assert "INVALID" in out
    assert "invalid: arrays-1, threads 1, launches 10, bound: its results differ from those of eager launches" in err
    cell = json.loads(Path("out/launch.json").read_text())["groups"][0]["modes"]["bound"]
    assert cell.keys() == {"status", "reason"}


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["launhc"], "unknown benchmark 'launhc' (did you mean 'launch'?); allowed: launch, report, soak"),
        (["launch", "--kernels", "arrays-5"], "unknown kernel 'arrays-5'"),
        (["launch", "--threads", "0"], "threads is 0; allowed: 1 to 2147483647"),
        (["launch", "--launches", "1001"], "launches is 1001; allowed: 1 to 1000"),
        (["launch", "--launches", "2", "2"], "launches is 2 2; allowed: different values, at least one"),
        (["launch", "--rounds", "0"], "rounds is 0; allowed: at least 1"),
        (["launch", "--rounds", "x"], "treadle bench launch: argument --rounds: invalid int value: 'x'"),
        (["launch", "--nonsense"], "unrecognized arguments: --nonsense"),
        (["launch", "--device", "cuda:77", "--no-plot"], "device is 'cuda:77'; allowed here: auto, cpu"),
        (["report", "nowhere.json"], "nowhere.json can't be read"),
        (["soak", "--minutes", "0"], "minutes is 0.0; allowed: above 0"),
        (["soak", "--minutes", "nan"], "minutes is nan; allowed: above 0"),
        (["soak", "--seed", "-1"], "seed is -1; allowed: at least 0"),
    ],
)
def test_mistakes_are_one_line(argv, message, fails):
    assert message in fails("bench", *argv)


def test_what_is_no_report_is_refused(fails):
    Path("other.json").write_text("[]")
    assert "other.json is no report of 'treadle bench launch'" in fails("bench", "report", "other.json")


def test_a_page_without_the_block_is_refused(fails, capsys):
    Path("page.md").write_text("nothing")
    assert main([*QUICK, "--kernels", "arrays-1", "--launches", "1", "--out", "out", "--no-plot"]) == 0
    capsys.readouterr()
    assert main(["bench", "report", "out/launch.json", "--no-plot", "--update-docs", "page.md"]) == 2
    assert "no block between" in capsys.readouterr().err


def test_missing_matplotlib_is_said_before_anything_is_measured(monkeypatch, fails):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "matplotlib" else find(name))
    assert fails(*QUICK) == (
        "launch.svg needs matplotlib; pip install 'treadle[plot]' brings it, --no-plot does without"
    )


@pytest.mark.slow
def test_soak(capsys):
    assert main(["bench", "soak", "--device", "cpu", "--minutes", "0.2", "--out", "out"]) == 0
    assert "all results equal those of eager launches, and nothing grew beyond its bound" in capsys.readouterr().out
    report = json.loads(Path("out/soak.json").read_text())
    assert report["problems"] == []
    assert 11 < report["seconds"] < 60


def test_help(capsys):
    assert main(["bench"]) == 2
    assert main(["bench", "launch", "--help"]) == 0
    assert "--update-docs" in capsys.readouterr().out
