"""A user's mistakes: one line that says what is allowed, status 2, nothing built."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from point_mass import TASK, PointMassEnv

from treadle.cli import main

SOURCES = Path(__file__).parents[2] / "src"

pytestmark = pytest.mark.usefixtures("_nothing_is_built")


@pytest.fixture
def _nothing_is_built(monkeypatch):
    def refuse(self, cfg):
        raise AssertionError("an environment was built")

    monkeypatch.setattr(PointMassEnv, "__init__", refuse)


def test_an_unknown_command_or_task_suggests_the_nearest(fails):
    assert fails("tain").startswith("unknown command 'tain' (did you mean 'train' or 'explain'?); allowed: ")
    assert "unknown task 'Test-PointMas' (did you mean 'Test-PointMass'" in fails("train", "Test-PointMas")
    assert "unknown task 'Test-PointMas'" in fails("play", "Test-PointMas", "--checkpoint", "x")


def test_a_missing_task_is_said_with_the_tasks_that_there_are(fails):
    for argv in (["train"], ["train", "--num-envs", "3"], ["play"]):
        message = fails(*argv)
        assert "needs a task as its first argument" in message
        assert TASK in message


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--num-envs", "-3"], "--num-envs is -3; allowed: at least 1"),
        (["--num-envs", "0"], "--num-envs is 0; allowed: at least 1"),
        (["--env.scene.num-envs", "0"], "--env.scene.num-envs is 0; allowed: at least 1"),
        (["--max-iterations", "0"], "--max-iterations is 0; allowed: at least 1"),
        (["--seed", "-1"], "--seed is -1; allowed: 0 to 2147483647"),
        (["--device", "foo"], "--device is 'foo'; allowed here: auto, cpu"),
        (["--device", "cuda:99"], "--device is 'cuda:99'; allowed here: auto, cpu"),
        (["--env.sim.device", "tpu"], "--env.sim.device is 'tpu'; allowed here: auto, cpu"),
        (["--launch-mode", "fast"], "--launch-mode is 'fast'; allowed: eager, replay, graph, auto"),
        (["--launch-contract", "x"], "--launch-contract is 'x'; allowed: checked, trusted, debug"),
        (["--frontend", "jax"], "--frontend is 'jax'; allowed: warp, torch"),
        (["--num-envs", "abc"], "--num-envs is 'abc'; allowed: an integer"),
        (["--num-envs", "1.5"], "--num-envs is '1.5'; allowed: an integer"),
        (["--num-envs"], "--num-envs needs a value: an integer"),
        (["--env.sim.dt", "fast"], "--env.sim.dt is 'fast'; allowed: a number"),
        (["--env.sim.gravity", "1", "2"], "--env.sim.gravity is '1 2'; allowed: 3 values, each a number"),
        (["--env.sim.gravity", "1", "2", "x"], "--env.sim.gravity is '1 2 x'; allowed: 3 values, each a number"),
        (["--agent.actor.activation", "foo"], "--agent.actor.activation is 'foo'; allowed: elu, selu, relu"),
        (["--agent.actor.hidden-dims", "8", "x"], "--agent.actor.hidden-dims is '8 x'; allowed: any number of values"),
        (["--agent.actor.hidden-dims"], "--agent.actor.hidden-dims is (); allowed: one or more widths"),
        (["--num-env", "3"], "unknown option '--num-env' (did you mean --num-envs or"),
        (["--learning-rate", "1"], "unknown option '--learning-rate' (did you mean --agent.algorithm.learning-rate?)"),
        (["--env.sim.dtt", "1"], "unknown option '--env.sim.dtt' (did you mean --env.sim.dt"),
        (
            ["--env.sim.dtt", "-1"],
            "unknown option '--env.sim.dtt' (did you mean --env.sim.dt or --env.sim.device?); see '",
        ),
        (["3"], "unexpected argument '3'"),
        (["--run-name", "a/b"], "--run-name is 'a/b'; allowed: letters, digits and . + - _"),
        (["--resume"], "--resume: no run in logs/rsl_rl/Test-PointMass has a checkpoint"),
        (["--resume", "nowhere"], "no checkpoint nowhere: no such file or directory"),
    ],
)
def test_a_wrong_option_of_train(fails, argv, message):
    assert message in fails("train", TASK, *argv)


def test_several_problems_are_reported_together(fails):
    message = fails(
        "train", TASK, "--env.sim.dt", "0", "--num-envs", "0", "--agent.algorithm.gamma", "2", "--device", "cuda:99"
    )
    for part in ("--env.sim.dt is 0.0", "--num-envs is 0", "--agent.algorithm.gamma is 2.0", "--device is 'cuda:99'"):
        assert part in message


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (
            ["--num-envs", "4", "--env.scene.num-envs", "8"],
            "--num-envs is 4 and --env.scene.num-envs is 8; allowed: one o",
        ),
        (
            ["--env.scene.num_envs=8", "--num_envs=4"],
            "--num-envs is 4 and --env.scene.num-envs is 8; allowed: one of them",
        ),
        (["--seed", "1", "--env.seed", "2"], "--seed is 1 and --env.seed is 2; allowed: "),
        (["--seed", "1", "--agent.seed", "2"], "--seed is 1 and --agent.seed is 2; allowed: "),
        (
            ["--max-iterations", "1", "--agent.max-iterations", "2"],
            "--max-iterations is 1 and --agent.max-iterations is 2",
        ),
        (["--device", "cpu", "--env.sim.device", "auto"], "--device is cpu and --env.sim.device is auto"),
        (
            ["--launch-mode", "eager", "--env.launch.mode", "graph"],
            "--launch-mode is eager and --env.launch.mode is graph",
        ),
    ],
)
def test_a_short_option_and_its_long_form_may_not_differ(fails, argv, message):
    assert fails("train", TASK, *argv).startswith(message)


def test_a_short_option_and_its_long_form_may_agree(fails):
    argv = ["--num-envs", "4", "--env.scene.num-envs", "4", "--seed", "3", "--agent.seed", "3", "--env.sim.dt", "0"]
    assert fails("train", TASK, *argv).startswith("--env.sim.dt is 0.0; allowed: ")


def test_a_wrong_environment_variable_is_said_before_anything_is_built(fails, monkeypatch):
    monkeypatch.setenv("TREADLE_LAUNCH_MODE", "fast")
    message = fails("train", TASK, "--num-envs", "0")
    assert message.startswith("--num-envs is 0; allowed: at least 1; unknown launch mode in TREADLE_LAUNCH_MODE 'fast'")
    assert message.endswith("allowed: auto, eager, graph, replay")


def test_a_run_directory_that_cannot_be_written_is_said_before_anything_is_built(fails, tmp_path):
    (tmp_path / "file").touch()
    message = fails("train", TASK, "--log-dir", str(tmp_path / "file" / "run"))
    assert "file/run cannot be written: Not a directory; choose one with --log-dir" in message


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "needs --checkpoint PATH"),
        (["--checkpoint", "nowhere"], "no checkpoint nowhere"),
        (["--checkpoint", "."], "no checkpoint in directory ."),
        (["--checkpoint"], "--checkpoint needs a value"),
        (["--checkpont", "x"], "unknown option '--checkpont' (did you mean --checkpoint?)"),
    ],
)
def test_a_wrong_option_of_play(fails, argv, message):
    assert message in fails("play", TASK, *argv)


def test_list_takes_no_other_option(fails):
    assert fails("list", "--jsn") == "unknown option '--jsn' of 'treadle list'; allowed: --import, --frontends, --json"


def test_a_missing_library_is_one_line(fails, monkeypatch):
    monkeypatch.setitem(sys.modules, "tyro", None)
    message = "this command needs tyro, which is not installed; the extra 'rl' brings it: pip install 'treadle[sim,rl]'"
    assert fails("train", TASK) == message


def test_other_errors_are_not_hidden(monkeypatch):
    import treadle.cli.list_tasks

    def fail(argv):
        raise RuntimeError("a bug")

    monkeypatch.setattr(treadle.cli.list_tasks, "run", fail)
    with pytest.raises(RuntimeError, match="a bug"):
        main(["list"])


def test_a_process_ends_with_status_2_and_one_line(start):
    process = start("train", TASK, "--num-envs", "-3")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 2
    assert out == ""
    assert err == "treadle: error: --num-envs is -3; allowed: at least 1\n"


def test_no_word_of_warp_precedes_an_error_about_a_device(start):
    process = start("train", TASK, "--device", "cuda:99")
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("treadle: error: --device is 'cuda:99'; allowed here: auto, cpu")


@pytest.mark.parametrize("argv", [["list"], ["--help"], ["--version"], ["train", "--help"], ["train", "Ant-Dirct"]])
def test_what_needs_no_simulation_loads_none(argv):
    program = (
        f"import sys; sys.path.insert(0, {str(SOURCES)!r}); from treadle.cli import main; main({argv!r}); "
        "heavy = {'torch', 'newton', 'warp', 'rsl_rl', 'tyro', 'numpy'} & set(sys.modules); assert not heavy, heavy"
    )
    started = time.monotonic()
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, timeout=60)
    # It takes 0.05 s on an idle machine.
    assert time.monotonic() - started < 2.0


@pytest.mark.parametrize("command", ["train", "play", "explain"])
def test_a_task_of_ones_own_is_known_once_its_module_is_imported(fails, command):
    hint = "; one of your own needs --import MODULE, the module that registers it"
    assert fails(command, "My-Cart").endswith(hint)
    assert "--import" not in fails(command, "My-Cart", "--import", "json")
