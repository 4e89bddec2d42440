"""The soak test finds what it is there for."""

from __future__ import annotations

import json
import random

import pytest
import warp as wp

from treadle.bench.soak import program as programs
from treadle.bench.soak.cfg import SoakCfg
from treadle.bench.soak.program import Program
from treadle.bench.soak.report import docs_block, text
from treadle.bench.soak.run import growth, run_soak
from treadle.cli import main
from treadle.launch.record import LaunchRecord

CFG = SoakCfg(device="cpu", minutes=0.02, samples=8)


@pytest.mark.parametrize("mode", ["eager", "replay", "graph", "auto"])
@pytest.mark.filterwarnings("ignore::treadle.launch.CaptureWarning")
def test_programs_do_everything_and_agree_with_eager(mode, device):
    program = Program(device, mode, random.Random(3))
    program.run(400)
    assert program.difference() is None
    assert program.done.keys() == programs._ACTIONS.keys()
    program.settle()
    assert program.difference() is None
    assert (program.scope.stats.graph_total("launches") > 0) == (mode in ("graph", "auto"))
    program.close()


def test_a_program_is_the_same_for_the_same_seed():
    totals = []
    for _ in range(2):
        program = Program(wp.get_device("cpu"), "auto", random.Random(8))
        program.run(100)
        totals.append(program._total.numpy().tolist())
    assert totals[0] == totals[1]


def test_growth_is_that_of_the_second_half():
    values = [9, 9, 9, 9, 1, 2, 3, 7]
    samples = [{"seconds": float(number), "arrays": value} for number, value in enumerate(values)]
    assert growth(samples) == {"arrays": 3.5}
    assert growth([]) == {}


def test_nothing_grows():
    report = run_soak(CFG, ["bench", "soak"])
    assert report["problems"] == []
    assert report["counts"]["comparisons"] > 0
    assert len(report["samples"]) == 8
    assert "nothing grew" in text(report)
    json.dumps(report, allow_nan=False)


def test_a_report_is_shown_again_and_put_on_a_page(tmp_path, capsys):
    report = run_soak(CFG, ["bench", "soak"])
    saved, page = tmp_path / "soak.json", tmp_path / "page.md"
    saved.write_text(json.dumps(report))
    page.write_text("Before\n<!-- begin soak -->\n<!-- end soak -->\nafter\n")
    assert main(["bench", "report", str(saved), "--update-docs", str(page)]) == 0
    assert capsys.readouterr().out.strip() == text(report)
    assert page.read_text() == f"Before\n<!-- begin soak -->\n{docs_block(report)}\n<!-- end soak -->\nafter\n"
    assert f"comparisons {report['counts']['comparisons']}" in page.read_text()
    page.write_text("nothing")
    assert main(["bench", "report", str(saved), "--update-docs", str(page)]) == 2


def test_a_leak_is_found(monkeypatch):
    leaked = []
    run = Program.run

    def leak(program, count):
        leaked.extend(wp.zeros(1, device="cpu") for _ in range(10))
        run(program, count)

    monkeypatch.setattr(Program, "run", leak)
    report = run_soak(CFG, ["bench", "soak"])
    assert any(problem.startswith("arrays grew by") for problem in report["problems"])
    assert "arrays grew" in text(report)


def test_a_stale_replay_is_found(monkeypatch):
    monkeypatch.setattr(LaunchRecord, "patch", lambda record, index, value: None)
    report = run_soak(CFG, ["bench", "soak"])
    assert len(report["problems"]) == 1
    assert "results differ from eager" in report["problems"][0]
    assert "results differ" in text(report)
