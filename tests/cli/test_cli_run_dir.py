"""Run directories: held by one training, never overwritten, and removed only by who made them."""

from __future__ import annotations

from pathlib import Path

import pytest
from point_mass import TASK

from treadle.cli import main
from treadle.cli import run_dir as module
from treadle.cli.run_dir import open_run_dir
from treadle.errors import ConfigError


@pytest.mark.parametrize("log_dir", ["run", "there"])
def test_a_directory_is_held_by_one_training_at_a_time(log_dir):
    Path("there").mkdir()
    with open_run_dir(TASK, log_dir, None, None) as path:
        (path / "kept").touch()
        message = f"another training writes to {log_dir}; choose another directory with --log-dir"
        with pytest.raises(ConfigError, match=message), open_run_dir(TASK, log_dir, None, None):
            raise AssertionError("two hold it")
    with open_run_dir(TASK, log_dir, None, None):
        pass
    assert [file.name for file in path.iterdir()] == ["kept"]


def test_a_training_refuses_a_directory_that_another_one_holds(fails):
    with open_run_dir(TASK, "run", None, None):
        assert fails("train", TASK, "--log-dir", "run").startswith("another training writes to run; ")
    assert not Path("run").exists()


def test_two_new_directories_of_one_moment_differ(monkeypatch):
    class Clock:
        @staticmethod
        def now():
            return module_datetime(2026, 1, 1)

    module_datetime = module.datetime
    monkeypatch.setattr(module, "datetime", Clock)
    monkeypatch.setattr(Path, "exists", lambda self: False)  # as it is for two processes that ask before either makes
    with open_run_dir(TASK, None, None, None) as first, open_run_dir(TASK, None, None, None) as second:
        assert first.name == "2026-01-01_00-00-00"
        assert second.name == "2026-01-01_00-00-00_1"


def test_only_a_directory_that_the_failed_run_made_is_removed(fails):
    Path("mine").mkdir()
    fails("train", TASK, "--log-dir", "mine", "--agent.actor.obs-groups", "nothing")
    fails("train", TASK, "--log-dir", "new", "--agent.actor.obs-groups", "nothing")
    assert Path("mine").is_dir()
    assert list(Path("mine").iterdir()) == []
    assert not Path("new").exists()


def test_an_empty_name_is_no_directory(fails):
    assert fails("train", TASK, "--log-dir", "") == "--log-dir is ''; allowed: a directory"
    assert fails("train", TASK, "--log-dir=") == "--log-dir is ''; allowed: a directory"
    assert list(Path().iterdir()) == []


def test_the_last_resume_counts_as_the_last_of_other_options_does(capsys):
    for run, iterations in (("a", "1"), ("b", "2")):
        assert main(["train", TASK, "--log-dir", run, "--max-iterations", iterations]) == 0
    capsys.readouterr()
    argv = ["train", TASK, "--log-dir", "c", "--max-iterations", "1"]
    assert main([*argv, "--resume", "a", "--resume", "b"]) == 0
    assert "resuming from b/model_1.pt after 2 iterations" in capsys.readouterr().out


def test_resume_without_a_value_does_not_look_elsewhere_than_in_the_log_dir(fails, capsys):
    assert main(["train", TASK, "--max-iterations", "1"]) == 0
    capsys.readouterr()
    Path("new").mkdir()
    message = "--resume: --log-dir new has no checkpoint; name the file or the run directory to go on from"
    assert fails("train", TASK, "--resume", "--log-dir", "new") == message
    assert Path("new").is_dir()
