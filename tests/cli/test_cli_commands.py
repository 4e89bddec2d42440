"""``treadle list``, ``train`` and ``play``."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from point_mass import TASK, WIDE_TASK, PointMassEnv

from treadle import __version__
from treadle.cli import main
from treadle.rl import checkpoint as ckpt


def train(*argv: str, log_dir: str | None = "run") -> int:
    return main(["train", TASK, *(["--log-dir", log_dir] if log_dir else []), *argv])


def test_version_and_help(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"treadle {__version__}\n"
    assert main(["--help"]) == 0
    assert "train" in capsys.readouterr().out
    assert main([]) == 2


def test_list_shows_every_task_with_its_frontends(capsys):
    assert main(["list"]) == 0
    assert re.search(rf"^{TASK} +torch, warp +A point mass", capsys.readouterr().out, re.MULTILINE)
    assert main(["list", "--json"]) == 0
    tasks = json.loads(capsys.readouterr().out)
    assert {"id": TASK, "frontends": ["torch", "warp"], "description": "A point mass, for tests"} in tasks


def test_the_help_of_train_shows_the_fields_with_the_tasks_defaults(capsys):
    assert main(["train", TASK, "--help"]) == 0
    out = capsys.readouterr().out
    for option in ("--num-envs", "--env.sim.dt", "--env.scene.num-envs", "--agent.algorithm.learning-rate", "--resume"):
        assert option in out
    assert re.search(r"--agent\.num-steps-per-env INT.*?\(default: 10\)", out, re.DOTALL)
    assert "--num-envs INT " in out, "None only says that a short option was not given"
    assert "--agent.clip-actions {None}|FLOAT" in out
    assert main(["train", "--help"]) == 0
    assert TASK in capsys.readouterr().out


def test_train_writes_a_run_and_says_where_it_is_and_how_to_play_it(capsys):
    assert train("--max-iterations", "2", "--frontend", "torch", "--seed", "3") == 0
    out = capsys.readouterr().out
    assert out.startswith(f"task: {TASK}, torch frontend\nrun directory: run\n")
    assert "device: cpu, 16 environments, seed 3\n" in out
    assert re.findall(r"^(?:planned launch|launch|iteration \d)", out, re.MULTILINE) == [
        "planned launch",
        "launch",
        "iteration 1",
        "iteration 2",
    ]
    assert "\nplanned launch: eager (no kernels)\n" in out
    assert "\nlaunch: eager (still no kernels)\niteration 1/2" in out
    assert len(re.findall(r"^iteration \d/2 \| return .* steps/s .*$", out, re.MULTILINE)) == 2
    assert "finished 2 iterations: mean return" in out
    assert "checkpoint: run/model_1.pt\n" in out
    assert out.endswith(f"play: treadle play {TASK} --checkpoint run/model_1.pt\n")
    assert json.loads(Path("run/params/env.json").read_text())["seed"] == 3
    assert json.loads(Path("run/params/agent.json").read_text())["max_iterations"] == 2
    assert list(Path("run").glob("events.out.tfevents*"))


def test_what_runs_is_printed_even_if_it_is_what_was_planned(capsys, monkeypatch):
    monkeypatch.setattr(PointMassEnv, "launch_report", lambda self: "launch: graph")
    assert train("--max-iterations", "2") == 0
    assert re.findall(r"^.*launch: graph$", capsys.readouterr().out, re.MULTILINE) == [
        "planned launch: graph",
        "launch: graph",
    ]


def test_options_reach_the_configurations(capsys):
    argv = ["--num-envs", "8", "--launch-mode", "eager", "--env.push", "0.5", "--agent.actor.hidden-dims", "8", "4"]
    assert train(*argv, "--max-iterations", "1", "--quiet") == 0
    assert "iteration 1/1" not in capsys.readouterr().out
    env = json.loads(Path("run/params/env.json").read_text())
    agent = json.loads(Path("run/params/agent.json").read_text())
    assert (env["scene"]["num_envs"], env["launch"]["mode"], env["push"]) == (8, "eager", 0.5)
    assert agent["actor"]["hidden_dims"] == [8, 4]


def test_runs_get_directories_of_their_own(capsys):
    for _ in range(2):
        assert train("--max-iterations", "1", "--run-name", "mine", log_dir=None) == 0
    runs = list(Path("logs/rsl_rl", TASK).iterdir())
    assert len(runs) == 2
    assert all(re.match(r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_mine", run.name) for run in runs)


def test_a_new_run_never_overwrites_checkpoints(fails, capsys):
    assert train("--max-iterations", "3") == 0
    capsys.readouterr()
    assert "run holds checkpoints already" in fails("train", TASK, "--log-dir", "run")
    assert "checkpoints of more than 1 iterations" in fails(
        "train", TASK, "--log-dir", "run", "--resume", "run/model_0.pt"
    )


def test_resume_continues_numbers_and_configuration(capsys):
    assert (
        train("--max-iterations", "2", "--agent.actor.hidden-dims", "8", "--num-envs", "4", "--frontend", "torch") == 0
    )
    capsys.readouterr()
    # The widths, the number of environments and the frontend are those of the first run; the push is new.
    assert train("--resume", "--max-iterations", "3", "--env.push", "0.1") == 0
    out = capsys.readouterr().out
    assert "torch frontend" in out
    assert "resuming from run/model_1.pt after 2 iterations" in out
    assert "iteration 3/5" in out
    assert "iteration 5/5" in out
    loaded = ckpt.load(Path("run"))
    assert loaded.iteration == 4
    env, agent = json.loads(loaded.env_cfg), json.loads(loaded.agent_cfg)
    assert (env["scene"]["num_envs"], env["push"], agent["actor"]["hidden_dims"]) == (4, 0.1, [8])


def test_resume_without_a_value_takes_the_tasks_newest_run(capsys):
    assert train("--max-iterations", "1", log_dir=None) == 0
    capsys.readouterr()
    assert train("--resume", "--max-iterations", "1", log_dir=None) == 0
    out = capsys.readouterr().out
    assert re.search(rf"resuming from logs/rsl_rl/{TASK}/.*/model_0.pt after 1 iterations", out)
    assert "model_1.pt" in out


def test_play_measures_a_checkpoint_or_a_run(capsys):
    assert train("--max-iterations", "1") == 0
    for path in ("run/model_0.pt", "run"):
        capsys.readouterr()
        assert main(["play", TASK, "--checkpoint", path, "--num-envs", "5", "--num-steps", "30"]) == 0
        out = capsys.readouterr().out
        assert "deterministic policy" in out
        assert "\ncheckpoint: run/model_0.pt, after 1 iterations\n" in out
        assert re.search(r"^return: -?\d+\.\d\d ± \d+\.\d\d", out, re.MULTILINE)
        assert re.search(r"^episodes: \d+ finished, \d unfinished after 30 steps$", out, re.MULTILINE)


def test_play_says_when_no_episode_finished(capsys):
    assert train("--max-iterations", "1") == 0
    capsys.readouterr()
    assert main(["play", TASK, "--checkpoint", "run", "--num-steps", "1"]) == 0
    out = capsys.readouterr().out
    assert "return: unknown, no episode finished in 1 steps" in out
    assert "episodes: 0 finished, 16 unfinished" in out


def test_play_says_when_the_solver_overflowed(capsys, monkeypatch):
    assert train("--max-iterations", "1") == 0
    physics = SimpleNamespace(describe_overflow=lambda: "2 of 16 environments overflowed a solver buffer")
    monkeypatch.setattr(PointMassEnv, "physics", physics, raising=False)
    capsys.readouterr()
    assert main(["play", TASK, "--checkpoint", "run", "--num-steps", "1"]) == 0
    line = "warning: contacts were dropped: 2 of 16 environments overflowed a solver buffer\n"
    assert capsys.readouterr().out.endswith(line)
    assert main(["play", TASK, "--checkpoint", "run", "--num-steps", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["overflow"] == physics.describe_overflow()


def test_play_prints_json_alone_and_is_reproducible(capsys):
    assert train("--max-iterations", "1") == 0
    results = []
    for _ in range(2):
        capsys.readouterr()
        argv = ["play", TASK, "--checkpoint", "run", "--json", "--stochastic", "--seed", "5", "--num-episodes", "20"]
        assert main(argv) == 0
        results.append(json.loads(capsys.readouterr().out))
    assert results[0] == results[1]
    assert results[0]["finished_episodes"] == 20
    assert (results[0]["seed"], results[0]["iterations"]) == (5, 1)
    assert results[0]["stochastic"] is True


def test_play_refuses_what_does_not_fit(fails, capsys):
    assert train("--max-iterations", "1") == 0
    capsys.readouterr()
    message = fails("play", WIDE_TASK, "--checkpoint", "run")
    assert message == f"checkpoint run/model_0.pt belongs to task '{TASK}', not to '{WIDE_TASK}'"
    for argv, part in (
        (["--num-envs", "0"], "--num-envs is 0"),
        (["--num-steps", "0"], "--num-steps is 0; allowed: at least 1"),
        (["--num-steps", "1", "--num-episodes", "1"], "--num-steps cannot be combined with --num-episodes"),
        (["--device", "cuda:99"], "--device is 'cuda:99'"),
    ):
        assert part in fails("play", TASK, "--checkpoint", "run", *argv)
    message = fails("play", TASK, "--checkpoint", "run/model_7.pt")
    assert "no checkpoint run/model_7.pt" in message
    assert "near by: run/model_0.pt" in message


def test_play_without_a_checkpoint_names_the_newest_run(fails, capsys):
    assert "'treadle train Test-PointMass' makes one in logs/rsl_rl/Test-PointMass" in fails("play", TASK)
    assert train("--max-iterations", "1", log_dir=None) == 0
    capsys.readouterr()
    assert f"the newest run here is logs/rsl_rl/{TASK}/2" in fails("play", TASK)


def test_a_stored_configuration_that_no_longer_fits_is_one_line(fails, capsys):
    assert train("--max-iterations", "1") == 0
    capsys.readouterr()
    loaded = ckpt.load(Path("run"))
    loaded.env_cfg = json.dumps(json.loads(loaded.env_cfg) | {"pusch": 1.0})
    ckpt.save(Path("run/model_0.pt"), loaded)
    message = fails("play", TASK, "--checkpoint", "run")
    assert "stores a configuration that does not fit this version" in message
    assert "no field 'pusch' (did you mean 'push'" in message


def test_an_encoding_without_the_sign_of_deviation_is_no_reason_to_lose_a_result(start, capsys):
    assert train("--max-iterations", "1") == 0
    argv = ["play", TASK, "--checkpoint", "run", "--num-steps", "30"]
    out, err = start(*argv, PYTHONIOENCODING="ascii").communicate(timeout=120)
    assert err == ""
    assert re.search(r"^return: -?[\d.]+ \+/- [\d.]+ \(mean \+/- standard deviation\)$", out, re.MULTILINE)


def test_parameters_that_cannot_be_written_are_one_line(fails, monkeypatch):
    def fail(self, *args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", fail)
    assert fails("train", TASK, "--log-dir", "run") == (
        "run/params cannot be written: No space left on device; choose another --log-dir"
    )


def test_play_refuses_weights_that_are_not_finite(fails, capsys):
    assert train("--max-iterations", "1") == 0
    capsys.readouterr()
    loaded = ckpt.load(Path("run"))
    loaded.algorithm["actor_state_dict"]["mlp.0.weight"][0] = float("nan")
    ckpt.save(Path("run/model_0.pt"), loaded)
    assert "not finite in mlp.0.weight" in fails("play", TASK, "--checkpoint", "run", "--json")


def test_a_full_disk_below_the_output_is_one_line(start, tmp_path):
    script = tmp_path / "program.sh"
    script.write_text('exec "$@" > /dev/full\n')
    process = start("list", shell=script)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 2
    assert err == "treadle: error: the output cannot be written: No space left on device\n"


@pytest.mark.parametrize("failure", ["--env.fail-at-step=5"])
def test_a_run_that_fails_keeps_its_message(fails, failure):
    assert "observation 'policy'" in fails("train", TASK, "--log-dir", "run", failure)


def test_the_package_runs_as_a_module():
    command = [sys.executable, "-W", "error", "-m", "treadle", "--version"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == f"treadle {__version__}\n"
