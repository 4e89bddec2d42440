"""``treadle audit``: programs that Treadle did not write."""

from __future__ import annotations

import builtins
import importlib.util
import json
import subprocess
import sys
import textwrap
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import warp as wp

from treadle.cli import main

HEAD = """
import sys
import warp as wp

@wp.kernel
def add(x: wp.array[float], s: float, out: wp.array[float]):
    i = wp.tid()
    out[i] = out[i] + x[i] * s

x, out = wp.full(8, 1.0, dtype=float), wp.zeros(8, dtype=float)

def step(scale):
    for _ in range(3):
        wp.launch(add, 8, inputs=[x, scale], outputs=[out])

"""
FOREVER = HEAD + "while True:\n    step(0.5)\n"


@pytest.fixture
def script(tmp_path):
    """Return a function that writes a script and returns its path."""

    def write(text: str, name: str = "sim.py") -> str:
        path = tmp_path / name
        path.write_text(textwrap.dedent(text))
        return str(path)

    return write


def test_a_program_that_runs_for_ever_is_stopped(script, capsys):
    assert main(["audit", "--steps", "4", script(FOREVER)]) == 0
    out = capsys.readouterr().out
    assert "audit of" in out and "sim.py: 4 steps on cpu" in out
    assert "all 4 steps have the same 3 launches" in out
    assert "stable" in out
    assert "replay, sites that are ready" in out and "after the edits" not in out, "all of them are ready"
    assert "-> launches.launch(add, 8, [x, scale], [out])" in out
    assert max(map(len, out.splitlines())) <= 120


def test_the_program_sees_what_it_would_see_alone(script, capsys):
    text = HEAD + "print(__name__, sys.argv[1:], __file__ == sys.argv[0], sys.path[0])\nimport helper\n"
    text += "for _ in range(8):\n    step(helper.SCALE)\nprint('sum', float(out.numpy()[0]))\nsys.exit()\n"
    script("SCALE = 0.5", "helper.py")
    path, old_argv, old_path, old_main = script(text), list(sys.argv), list(sys.path), sys.modules["__main__"]
    assert main(["audit", "--steps", "3", path, "--steps", "7", "-m", "x"]) == 0
    out = capsys.readouterr().out
    assert f"__main__ ['--steps', '7', '-m', 'x'] True {Path(path).parent}" in out
    assert "sum 12.0" in out
    assert (sys.argv, sys.path, sys.modules["__main__"]) == (old_argv, old_path, old_main)
    sys.modules.pop("helper")


def test_handlers_of_the_program_let_the_audit_stop_it(script, capsys):
    loop = "while True:\n    try:\n        step(0.5)\n    except Exception:\n        pass\n"
    loop += "    finally:\n        step(0.25)\n"
    assert main(["audit", "--steps", "4", script(HEAD + loop)]) == 0
    assert "4 steps on cpu" in capsys.readouterr().out


def test_a_program_that_catches_everything_is_ended(script):
    loop = "while True:\n    try:\n        step(0.5)\n    except BaseException:\n        pass\n"
    code = "import sys; from treadle.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "audit", "--steps", "4", "--json", "report.json", script(HEAD + loop)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    assert "4 steps on cpu" in result.stdout
    assert json.loads(Path("report.json").read_text())["steps"] == 4


def test_hooks_are_gone_after_the_program(script, capsys):
    code = wp.launch.__code__
    main(["audit", "--steps", "2", script(FOREVER)])
    assert wp.launch.__code__ is code


def test_modules(script, capsys, monkeypatch, tmp_path):
    script(FOREVER, "simulation.py")
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["audit", "--steps", "2", "-m", "simulation"]) == 0
    assert "audit of simulation: 2 steps" in capsys.readouterr().out


def test_step_function(script, capsys):
    text = HEAD + "def frame():\n    step(0.5)\n    step(0.25)\nwhile True:\n    frame()\n"
    path = script(text)
    assert main(["audit", "--steps", "2", "--step-function", "__main__:frame", path]) == 0
    assert "have the same 6 launches" in capsys.readouterr().out
    assert main(["audit", "--steps", "2", "--step-function", "step", path]) == 0
    assert "have the same 3 launches" in capsys.readouterr().out


CLASS = (
    HEAD
    + """
class Sim:
    def step(self):
        step(0.5)
        self.substep()
    def substep(self):
        step(0.25)
    def reset(self):
        pass

def run():
    sim = Sim()
    while True:
        sim.step()

"""
)


@pytest.mark.parametrize("name", ["Sim.step", "__main__:Sim.step", "sim:Sim.step", "sim.py:Sim.step"])
def test_the_script_goes_by_several_names(script, capsys, name):
    assert main(["audit", "--steps", "2", "--step-function", name, script(CLASS + "run()\n")]) == 0
    assert "have the same 6 launches" in capsys.readouterr().out


def test_a_module_that_is_run_goes_by_its_name(script, capsys, monkeypatch, tmp_path):
    script(CLASS + "run()\n", "simulation.py")
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["audit", "--steps", "2", "--step-function", "simulation:Sim.step", "-m", "simulation"]) == 0


def test_a_function_that_the_script_does_not_define_is_told_before_it_runs(script, fails):
    path = script(CLASS + "raise SystemExit(7)\n")
    message = fails("audit", "--step-function", "__main__:stpe", path)
    assert message.startswith("--step-function __main__:stpe: sim.py defines no function 'stpe'; did you mean step")
    assert "did you mean Sim.reset?" in fails("audit", "--step-function", "sim:reset", path)
    assert "it defines step, Sim.step, Sim.substep" in fails("audit", "--step-function", "sim:xyz", path)


def test_a_function_that_is_never_called_is_not_waited_for(script, fails):
    seen = "functions that launch, with calls per iteration of the loop at "
    path = script(CLASS + "run()\n")
    options = ["audit", "--steps", "4", "--patience", "0.1", "--step-function"]
    message = fails(*options, "Sym.stepp", path)
    assert (
        "--step-function Sym.stepp: nothing was launched in a call of it, in any module within 0.1 s (--patience"
        in message
    )
    assert "did you mean __main__:step or __main__:Sim.step" in message or "did you mean __main__:Sim.step" in message
    assert f"{seen}sim.py:" in message, "a path below the working directory is shown without that"
    assert "__main__:Sim.step (1 call), __main__:step (2 calls), __main__:Sim.substep (1 call)" in message
    assert "nothing was launched in a call of it within 0.1 s" in fails(*options, "__main__:Sim.reset", path)
    assert "no module 'envs' was imported, and the script itself is __main__" in fails(*options, "envs:step", path)
    assert "json has none such" in fails(*options, "json:step", path)
    assert "json has it, but it was not called or launches nothing" in fails(*options, "json:dumps", path)
    message = fails(*options, "run", path)
    assert (
        "there was one call of it, which went on within 0.1 s (--patience waits longer): a step is one of many"
        in message
    )
    assert "__main__:Sim.step (1 call)" in message


def test_a_function_that_is_called_too_late_or_once(script, fails, capsys):
    once = CLASS + "def warm_up():\n    step(1.0)\n\nwarm_up()\n"
    message = fails("audit", "--step-function", "warm_up", script(once))
    assert "there was one call of it, which went on: a step is one of many calls" in message
    assert "functions that launch, with calls: __main__:warm_up (1 call), __main__:step (1 call)" in message
    message = fails("audit", "--patience", "0.1", "--step-function", "warm_up", script(once + "run()\n"))
    assert "it was called once only within 0.1 s (--patience waits longer), to be captured perhaps" in message
    assert "did you mean" not in message
    assert "no function of the program launches anything" in fails(
        "audit", "--step-function", "f", script(HEAD + "wp.launch(add, 8, inputs=[x, 1.0], outputs=[out])\n")
    )


def test_step_at(script, capsys):
    line = HEAD.splitlines().index("    for _ in range(3):") + 2
    assert main(["audit", "--steps", "2", "--step-at", f"sim.py:{line}", script(FOREVER)]) == 0
    assert "have the same 1 launch\n" in capsys.readouterr().out


def test_json_and_plot(script, capsys):
    pytest.importorskip("matplotlib")
    assert main(["audit", "--steps", "4", "--json", "a.json", "--plot", "a.svg", script(FOREVER)]) == 0
    report = json.loads(Path("a.json").read_text())
    assert (report["steps"], report["steps_needed"], report["conclusive"]) == (4, 4, True)
    (site,) = report["sites"]
    assert (site["kernel"], site["verdict"], site["calls_per_step"], site["replayable"]) == ("add", "stable", 3.0, True)
    root = ElementTree.parse("a.svg").getroot()
    assert root.tag.endswith("svg")


def test_too_few_steps_for_a_verdict_are_said_to_be(script, capsys):
    assert main(["audit", "--steps", "2", "--json", "a.json", script(FOREVER)]) == 0
    out = capsys.readouterr().out
    assert "too few steps to tell what changes from what recurs: a verdict needs at least 4\n" in out
    assert "stable" not in out and "suggested edits" not in out
    assert "too few steps to tell whether anything is in the way of a graph" in out
    report = json.loads(Path("a.json").read_text())
    (site,) = report["sites"]
    assert (report["steps"], report["steps_needed"], report["conclusive"]) == (2, 4, False)
    assert (site["verdict"], site["replayable"]) == ("too few steps to tell", False)


def test_the_report_ends_with_what_it_can_not_know(script, capsys):
    assert main(["audit", "--steps", "4", script(FOREVER)]) == 0
    last = capsys.readouterr().out.strip().splitlines()[-1]
    assert last.startswith("note: what changes only outside of the 4 watched steps, as at a reset, is not seen")


def test_a_missing_matplotlib_is_told_before_the_program_runs(script, fails, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    message = fails("audit", "--plot", "a.svg", script("raise SystemExit(7)"))
    assert message == "--plot needs matplotlib, which is not installed; pip install 'treadle[plot]' brings it"


def test_the_report_needs_no_other_library(script, capsys, monkeypatch):
    real = builtins.__import__

    def guarded(name, *args, **kwargs):
        assert name.partition(".")[0] not in ("rich", "matplotlib", "tyro")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", guarded)
    assert main(["audit", "--steps", "2", script(FOREVER)]) == 0


def test_mistakes(script, fails):
    assert fails("audit", "nothing.py") == "there is no script 'nothing.py'; name a Python file, or a module with -m"
    assert "needs a script" in fails("audit")
    assert "--steps is 0" in fails("audit", "--steps", "0", script(FOREVER))
    assert "invalid int value: 'x'" in fails("audit", "--steps", "x", script(FOREVER))
    assert "unrecognized arguments: --stesp" in fails("audit", "--stesp", "3", script(FOREVER))
    assert "one of them" in fails("audit", "--step-function", "f", "--step-at", "a:1", script(FOREVER))
    assert "allowed: file:line" in fails("audit", "--step-at", "12", script(FOREVER))
    assert "allowed: module:qualname" in fails("audit", "--step-function", "a b", script(FOREVER))
    assert "ends in .svg" in fails("audit", "--plot", "a.gif", script(FOREVER))
    assert "no directory" in fails("audit", "--json", "no/a.json", script(FOREVER))
    assert "no module 'nothing_at_all'" in fails("audit", "-m", "nothing_at_all")


def test_too_little_to_report(script, fails):
    assert "ended without a launch" in fails("audit", script("print('hello')"))
    assert "ended after 3 launches and 0 complete steps" in fails("audit", script(HEAD + "step(0.5)\n"))


def test_what_was_seen_is_reported_when_the_program_ends_early(script, capsys):
    assert main(["audit", script(HEAD + "for _ in range(9):\n    step(0.5)\n")]) == 0
    out = capsys.readouterr().out
    assert "note: the program ended after 7 steps, of which 5 are reported" in out


def test_the_exit_status_of_the_program_is_kept(script, capsys):
    assert main(["audit", script("raise SystemExit(7)")]) == 7
    assert main(["audit", script("import sys; sys.exit('no model')")]) == 1
    assert "no model" in capsys.readouterr().err


def test_an_error_of_the_program_is_its_own(script, capsys):
    text = HEAD + "def fail():\n    raise ValueError('unstable')\n\nfor _ in range(9):\n    step(0.5)\nfail()\n"
    path = script(text)
    assert main(["audit", path]) == 1
    captured = capsys.readouterr()
    lines = captured.err.strip().splitlines()
    start = lines.index("Traceback (most recent call last):")
    assert lines[start + 1].startswith(f'  File "{path}", line')
    assert lines[-1] == "ValueError: unstable"
    assert "treadle" not in "\n".join(lines[start:]).replace(path, "")
    assert "5 are reported" in captured.out


def test_help(capsys):
    assert main(["audit", "--help"]) == 0
    out = capsys.readouterr().out
    assert "--step-function [MODULE:]NAME" in out
    assert '"Env.step" a method' in out and "module __main__" in out
    assert "a verdict needs at least" in out
