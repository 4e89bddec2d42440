"""Checkpoint files."""

from __future__ import annotations

import os
import pickle

import pytest
import torch

from treadle.rl import checkpoint as ckpt
from treadle.rl.checkpoint import Checkpoint, CheckpointError


def make(iteration: int = 3, task: str = "Task-A") -> Checkpoint:
    return Checkpoint(
        treadle_version="0.1.0",
        task=task,
        frontend="warp",
        iteration=iteration,
        env_cfg="{}",
        agent_cfg="{}",
        num_observations={"policy": 4},
        num_actions=2,
        algorithm={"actor_state_dict": {"w": torch.arange(4.0)}},
        total_timesteps=640,
        total_time=1.5,
        seed=7,
        rng={"cpu": torch.get_rng_state()},
    )


def test_a_checkpoint_comes_back_as_it_was_and_holds_no_code(tmp_path):
    path = tmp_path / "model_3.pt"
    saved = make()
    ckpt.save(path, saved)
    loaded = ckpt.load(path, task="Task-A")
    assert torch.equal(loaded.algorithm["actor_state_dict"]["w"], torch.arange(4.0))
    assert torch.equal(loaded.rng["cpu"], saved.rng["cpu"])
    names = set(vars(saved)) - {"algorithm", "rng"}
    assert {n: getattr(loaded, n) for n in names} == {n: getattr(saved, n) for n in names}
    assert torch.load(path, weights_only=True)["format_version"] == ckpt.FORMAT_VERSION


@pytest.mark.parametrize("failing_call", ["fsync", "replace"])
def test_a_failed_save_keeps_the_older_file_and_leaves_nothing(tmp_path, monkeypatch, failing_call):
    path = tmp_path / "model_3.pt"
    ckpt.save(path, make())
    before = path.read_bytes()

    def fail(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, failing_call, fail)
    with pytest.raises(CheckpointError, match=r"cannot write checkpoint .*No space left"):
        ckpt.save(path, make(iteration=4))
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model_3.pt"]


def test_an_interrupted_save_keeps_the_older_file_and_leaves_nothing(tmp_path, monkeypatch):
    path = tmp_path / "model_3.pt"
    ckpt.save(path, make())
    before = path.read_bytes()

    def interrupt(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        ckpt.save(path, make(iteration=4))
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model_3.pt"]


def test_what_a_killed_process_leaves_is_not_taken_for_a_checkpoint(tmp_path):
    ckpt.save(tmp_path / "model_3.pt", make())
    (tmp_path / ".model_9.pt.123.tmp").write_bytes(b"half")
    (tmp_path / "model_8.pt.tmp").write_bytes(b"half")
    (tmp_path / "model_best.pt").write_bytes(b"other")
    assert ckpt.find_checkpoint(tmp_path).name == "model_3.pt"


def test_a_run_directory_means_its_newest_checkpoint_by_number(tmp_path):
    for iteration in (2, 100, 50):
        ckpt.save(tmp_path / f"model_{iteration}.pt", make(iteration))
    assert ckpt.load(tmp_path).iteration == 100


def test_a_missing_file_says_what_was_looked_for_and_what_there_is(tmp_path):
    run = tmp_path / "2026-01-01_00-00-00"
    run.mkdir()
    ckpt.save(run / "model_3.pt", make())
    with pytest.raises(CheckpointError, match=r"no checkpoint .*model_4\.pt: no such file.*near by: .*model_3\.pt"):
        ckpt.load(run / "model_4.pt")
    with pytest.raises(
        CheckpointError, match=r"no checkpoint in directory .*looked for model_.*near by: .*model_3\.pt"
    ):
        ckpt.load(tmp_path)
    with pytest.raises(CheckpointError, match="no checkpoint"):
        ckpt.load(tmp_path / "nowhere" / "model_1.pt")


class Evil:
    def __reduce__(self):
        return (os.system, ("false",))


def broken_files(tmp_path):
    whole = tmp_path / "whole.pt"
    ckpt.save(whole, make())
    torch.save({"format": "something else"}, tmp_path / "other.pt")
    torch.save({"policy": Evil()}, tmp_path / "unsafe.pt")
    (tmp_path / "text.pt").write_text("not a checkpoint")
    (tmp_path / "empty.pt").write_bytes(b"")
    (tmp_path / "pickle.pt").write_bytes(pickle.dumps({"a": 1}))
    (tmp_path / "cut.pt").write_bytes(whole.read_bytes()[:-200])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("other", "not a treadle checkpoint"),
        ("unsafe", "holds Python objects, and loading those could run code"),
        ("text", "damaged"),
        ("empty", "damaged"),
        ("pickle", "not a"),
        ("cut", "damaged"),
    ],
)
def test_a_file_that_is_no_whole_checkpoint_is_refused_in_one_line(tmp_path, name, message):
    broken_files(tmp_path)
    with pytest.raises(CheckpointError, match=message) as caught:
        ckpt.load(tmp_path / f"{name}.pt")
    assert "\n" not in str(caught.value)


def test_another_format_version_or_an_incomplete_file_is_refused(tmp_path):
    path = tmp_path / "model_3.pt"
    ckpt.save(path, make())
    data = torch.load(path, weights_only=True)
    torch.save(data | {"format_version": 99}, path)
    with pytest.raises(
        CheckpointError, match=r"format version 99, written by treadle 0\.1\.0; this version reads format 1"
    ):
        ckpt.load(path)
    del data["num_actions"]
    torch.save(data, path)
    with pytest.raises(CheckpointError, match="num_actions missing"):
        ckpt.load(path)


def test_another_tasks_checkpoint_is_refused_with_both_names(tmp_path):
    path = tmp_path / "model_3.pt"
    ckpt.save(path, make(task="Task-B"))
    with pytest.raises(CheckpointError, match="belongs to task 'Task-B', not to 'Task-A'"):
        ckpt.load(path, task="Task-A")


def test_other_dimensions_are_refused_with_both(tmp_path):
    with pytest.raises(
        CheckpointError, match=r"policy: 4\) and 2 actions, the environment has .*policy: 60\) and 8 act"
    ):
        ckpt.check_dimensions(tmp_path, make(), {"policy": 60}, 8)
