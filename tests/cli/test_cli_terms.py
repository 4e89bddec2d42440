"""Tasks that are made of terms on the command line: which terms have a Warp form, and what happens without."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import term_tasks
from term_tasks import TASK

from treadle.cli import main
from treadle.rl import checkpoint as ckpt

SMALL = ["--num-envs", "4", "--device", "cpu"]
TRAIN = ["train", "--import", "term_tasks", TASK, *SMALL, "--max-iterations", "1", "--log-dir", "run"]
REWARD = "rewards.cart_energy: term_tasks:cart_energy has no Warp form"
OBSERVATION = "observations.policy.terms.pole_sine: term_tasks:sine_of_pole has no Warp form"


@pytest.fixture(autouse=True)
def _registered(_test_tasks):
    term_tasks.register()


@pytest.mark.parametrize("command", [TRAIN, ["explain", TASK, *SMALL]])
def test_all_terms_without_a_warp_form_are_named_together_before_anything_is_built(fails, command):
    message = fails(*command)
    assert message.startswith(f"{REWARD}; {OBSERVATION}; ")
    assert "--allow-torch-terms" in message
    assert not Path("run").exists()


def test_with_the_option_such_a_task_trains_and_plays(capsys):
    assert main([*TRAIN, "--allow-torch-terms"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^launch: auto -> graph, .* 9 of 11 stages in 3 graphs$", out, re.MULTILINE), out
    # The checkpoint keeps the option, as all of the configuration.
    assert json.loads(ckpt.load(Path("run")).env_cfg)["allow_torch_terms"] is True
    assert main(["play", TASK, "--checkpoint", "run", "--num-envs", "2", "--num-steps", "2"]) == 0


def test_play_allows_torch_terms_too(fails, capsys):
    assert main([*TRAIN, "--frontend", "torch"]) == 0
    play = ["play", TASK, "--checkpoint", "run", "--num-envs", "2", "--num-steps", "2", "--frontend", "warp"]
    capsys.readouterr()
    assert fails(*play).startswith(f"{REWARD}; {OBSERVATION}; ")
    assert main([*play, "--allow-torch-terms"]) == 0


@pytest.mark.parametrize("command", [["train"], ["explain"]])
def test_the_option_is_for_tasks_that_are_made_of_terms(fails, command):
    message = fails(*command, "Cartpole-Direct", "--allow-torch-terms", "--num-envs", "0")
    assert message == (
        "--num-envs is 0; allowed: at least 1; "
        "--allow-torch-terms is for tasks that are made of terms; CartpoleDirectEnvCfg has no allow_torch_terms"
    )


def test_list_shows_what_each_frontend_supports(capsys):
    assert main(["list", "--frontends"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^task +torch +warp$", out, re.MULTILINE)
    assert re.search(r"^Cartpole +all 13 terms +all 13 terms$", out, re.MULTILINE)
    assert re.search(r"^Cartpole-Direct +yes +yes$", out, re.MULTILINE)
    assert re.search(rf"^{TASK} +all 15 terms +13 of 15 terms$", out, re.MULTILINE)
    assert f"{TASK}, warp: {REWARD}\n{TASK}, warp: {OBSERVATION}\n" in out


def test_list_gives_the_same_as_json(capsys):
    assert main(["list", "--frontends", "--json"]) == 0
    support = {task["id"]: task["support"] for task in json.loads(capsys.readouterr().out)}
    assert support[TASK]["warp"]["missing"] == {
        "rewards.cart_energy": REWARD,
        "observations.policy.terms.pole_sine": OBSERVATION,
    }
    assert support[TASK]["torch"]["num_terms"] == 15
    assert support["Cartpole-Direct"]["warp"]["num_terms"] is None


def test_a_task_that_cannot_be_loaded_harms_no_other_in_the_list(capsys):
    import treadle

    paths = {"env_cfg": "term_tasks:Nothing", "agent_cfg": "term_tasks:RunnerCfg"}
    treadle.register(treadle.TaskSpec(task_id="Broken", **paths, frontends={"warp": "no_module:Env"}))
    assert main(["list", "--frontends"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^Broken +no +unusable: .*no module 'no_module'$", out, re.MULTILINE)
    assert "all 13 terms" in out


def test_a_checkpoint_keeps_changed_terms_and_names_a_function_that_is_gone(fails, capsys):
    argv = ["train", "Cartpole", *SMALL, "--max-iterations", "1", "--log-dir", "run", "--agent.num-steps-per-env", "4"]
    assert main([*argv, "--env.rewards.pole-pos.weight", "-3", "--env.rewards.pole-pos.params.target", "0.5"]) == 0
    play = ["play", "Cartpole", "--checkpoint", "run", "--num-envs", "2", "--num-steps", "2"]
    assert main(play) == 0
    capsys.readouterr()
    loaded = ckpt.load(Path("run"))
    stored = json.loads(loaded.env_cfg)
    assert stored["rewards"]["pole_pos"]["weight"] == -3.0
    assert stored["rewards"]["pole_pos"]["params"]["target"] == 0.5
    stored["rewards"]["alive"]["func"] = "treadle.mdp.rewards:was_alive"
    loaded.env_cfg = json.dumps(stored)
    ckpt.save(Path("run/model_0.pt"), loaded)
    message = fails(*play)
    assert (
        "rewards.alive.func is 'treadle.mdp.rewards:was_alive' in the stored configuration, and there is no" in message
    )
