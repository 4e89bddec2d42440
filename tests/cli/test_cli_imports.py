"""Tasks of a user's own on the command line."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from point_mass import TASK

from treadle.cli import main

MODULE = """
import treadle
from point_mass import PointMassEnv, PointMassEnvCfg, PointMassRunnerCfg

treadle.register(
    treadle.TaskSpec(
        task_id="Mine",
        env_cfg=f"{__name__}:PointMassEnvCfg",
        agent_cfg=f"{__name__}:PointMassRunnerCfg",
        frontends={"torch": f"{__name__}:PointMassEnv", "warp": f"{__name__}:PointMassEnv"},
    )
)
"""


@pytest.fixture
def module(monkeypatch):
    """A module in the current directory that registers the task ``Mine``."""
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    Path("own_tasks.py").write_text(MODULE)
    yield "own_tasks"
    sys.modules.pop("own_tasks", None)


@pytest.mark.parametrize("argv", [["--import", "own_tasks"], ["--import=own_tasks", "--json"]])
def test_list_shows_the_tasks_of_a_module_in_the_current_directory(module, capsys, argv):
    assert main(["list", *argv]) == 0
    out = capsys.readouterr().out
    assert "Mine" in out
    assert TASK in out


def test_train_and_play_a_task_of_ones_own(module, capsys):
    assert main(["train", "--import", module, "Mine", "--max-iterations", "1", "--log-dir", "run"]) == 0
    out = capsys.readouterr().out
    assert out.endswith("play: treadle play Mine --import=own_tasks --checkpoint run/model_0.pt\n")
    # Nothing that is run again without being asked for is written down.
    files = [path for path in Path("run").rglob("*") if path.is_file()]
    assert not [path for path in files if b"own_tasks" in path.read_bytes()]
    assert main(["play", "Mine", "--checkpoint", "run", "--num-steps", "2", f"--import={module}", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["task"] == "Mine"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--import"], "--import needs a value: the name of a module that registers tasks"),
        (["--import", "--quiet"], "--import needs a value"),
        (["--import", "own_tasks.py"], "--import is 'own_tasks.py'; allowed: a module's name, such as 'own_tasks'"),
        (["--import", "./own_tasks.py"], "--import is './own_tasks.py'; allowed: a module's name, such as 'own_tasks'"),
        (
            ["--import", "nowhere.tasks"],
            "--import is 'nowhere.tasks'; there is no module 'nowhere', neither installed nor",
        ),
    ],
)
@pytest.mark.parametrize("command", [["list"], ["train", TASK], ["play", TASK]])
def test_a_module_that_is_none_is_one_line(module, fails, command, argv, message):
    assert fails(*command, *argv).startswith(message)


def test_a_bug_in_a_module_keeps_its_traceback(module):
    Path("own_tasks.py").write_text("import no_such_package")
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        main(["list", "--import", module])


def test_help_names_the_option(capsys):
    for argv in (["list", "--help"], ["train", "--help"], ["train", TASK, "--help"], ["play", TASK, "--help"]):
        assert main(argv) == 0
        assert re.search(r"--import MODULE", capsys.readouterr().out)


def test_a_warning_of_the_package_is_one_line(module, capsys):
    Path("own_tasks.py").write_text("import logging; logging.getLogger('treadle.x').warning('two\\nlines')")
    assert main(["list", "--import", module]) == 0
    assert capsys.readouterr().err == "treadle: warning: two lines\n"


@pytest.mark.slow
def test_the_task_of_the_documentation_can_be_trained(module, capsys):
    page = (Path(__file__).parents[2] / "docs" / "environments.md").read_text()
    code = "\n\n".join(re.findall(r"^```python\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL))
    Path("own_tasks.py").write_text(code)
    argv = ["--import", module, "Swing-Up", "--num-envs", "8", "--device", "cpu", "--max-iterations", "2"]
    for frontend in ("warp", "torch"):
        assert main(["train", *argv, "--frontend", frontend, "--log-dir", frontend]) == 0
    assert main(["play", *argv[:3], "--num-envs", "4", "--checkpoint", "torch", "--num-steps", "3"]) == 0
