"""``treadle explain``."""

from __future__ import annotations

import ast
import json
import re

import pytest
import term_tasks

from treadle.cli import main

SMALL = ["--num-envs", "4", "--device", "cpu", "--steps", "4"]


@pytest.fixture(autouse=True)
def _registered(_test_tasks):
    term_tasks.register()


def explain(capsys, *argv: str) -> str:
    assert main(["explain", *argv, *SMALL]) == 0
    return capsys.readouterr().out


def test_a_task_of_terms(capsys):
    out = explain(capsys, "Cartpole")
    assert out.startswith("task: Cartpole, warp frontend\ndevice: cpu, 4 environments\nlaunch: auto -> graph, ")
    assert re.search(r"^rewards +pole_pos +weight -1 +warp +treadle.tasks.cartpole.mdp:joint_pos_target_l2$", out, re.M)
    assert re.search(r"^observations.policy.terms +joint_vel_rel +columns 2 to 3 +warp ", out, re.M)
    assert re.search(r"^events +reset_pole_position +reset +warp ", out, re.M)
    assert re.search(r"^terminations +time_out +time-out +warp ", out, re.M)
    assert re.search(r"^physics +1 +graph", out, re.M)
    assert re.search(r"^  1 graph: [\d.]+ us$", out, re.M)
    assert "torch stage" not in out
    assert "why no Warp form" not in out
    assert "@wp.kernel" not in out


def test_a_task_alone(capsys):
    """The command without any option, as the README has it."""
    assert main(["explain", "Cartpole"]) == 0
    assert re.search(r"^device: \w+(:0)?, 16 environments$", capsys.readouterr().out, re.M)


def test_terms_in_torch_with_their_price(capsys):
    out = explain(capsys, term_tasks.TASK, "--allow-torch-terms")
    why = "term_tasks:cart_energy has no Warp form"
    assert re.search(rf"^rewards +cart_energy +weight -0.1 +torch +term_tasks:cart_energy +{why}$", out, re.M)
    assert re.search(r"^rewards in torch +2 .* torch code with host control$", out, re.M)
    assert re.search(r"^  3 graphs: [\d.]+ us\n  2 torch stages: [\d.]+ us$", out, re.M)


def test_without_graphs(capsys):
    out = explain(capsys, "Cartpole", "--launch-mode", "replay")
    assert re.search(r"^host time per step\n  9 stages without a graph: [\d.]+ us$", out, re.M)


def test_json(capsys):
    found = json.loads(explain(capsys, "Cartpole", "--json", "--kernels", "rewards"))
    assert (found["task"], found["frontend"], found["num_envs"]) == ("Cartpole", "warp", 4)
    assert {row["form"] for row in found["terms"]} == {"warp"}
    assert found["kernels_by_stage"]["physics"]["apply_actuators"] == 2
    assert found["kernels_by_stage"]["rewards"] == {"rewards": 1}
    outside = {stage: found["kernels_by_stage"][stage] for stage in found["kernels_by_stage"] if "physics" not in stage}
    assert found["kernels_outside_physics"] == sum(sum(kernels.values()) for kernels in outside.values()) <= 8
    assert found["host_us"]["graphs"]["islands"] == 1
    assert found["host_us"]["torch"] == {"islands": 0, "stages": 0, "host_us": None}
    assert list(found["sources"]) == ["rewards"]


def test_the_generated_kernels_are_readable(capsys):
    out = explain(capsys, "Cartpole", "--kernels")
    texts = re.split(r"^# [a-z 0-9]+\n(?=@wp.kernel)", out, flags=re.M)[1:]
    assert [re.search(r"^def (\w+)", text, re.M)[1] for text in texts] == [
        "begin_step",
        "terminations",
        "rewards",
        "reset_0",
        "observe_policy",
    ]
    for text in texts:
        (function,) = ast.parse(text).body
        assert ast.get_docstring(function)
        assert max(map(len, text.splitlines())) <= 120
    assert "target=rewards_params[0]" in texts[2]
    assert "            position_range=wp.vec2f(events_params[0], events_params[1]),\n" in texts[3]


def test_a_direct_task_has_stages(capsys):
    out = explain(capsys, "Cartpole-Direct", "--frontend", "torch")
    assert "why no Warp form" not in out
    assert re.search(r"^task rewards .* torch code with host control$", out, re.M)
    assert re.search(r"^kernels per step outside physics: \d+$", out, re.M)
    assert re.search(r"^  \d torch stages: [\d.]+ us$", out, re.M)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--steps", "0", "--num-envs", "0"], "--num-envs is 0; allowed: at least 1; --steps is 0; allowed: 1 to"),
        (["--kernels", "reward"], "unknown kernel 'reward' (did you mean 'rewards'?); allowed: "),
        (["--num-envs", "4", "--env.scene.num-envs", "5"], "--num-envs is 4 and --env.scene.num-envs is 5; allowed: "),
        (["--kernel"], "unknown option '--kernel' (did you mean --kernels"),
    ],
)
def test_a_wrong_option(fails, argv, message):
    assert fails("explain", "Cartpole", "--device", "cpu", *argv).startswith(message)


def test_kernels_of_a_direct_task_are_its_own(fails):
    assert fails("explain", "Cartpole-Direct", *SMALL, "--kernels").startswith(
        "--kernels is for tasks that are made of"
    )
