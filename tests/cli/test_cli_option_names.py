"""Options are suggested by the names that the parser takes."""

from __future__ import annotations

import pytest
from point_mass import PointMassEnvCfg, PointMassRunnerCfg

from treadle.cli.option_names import option_types
from treadle.cli.options import TrainOptions
from treadle.cli.parsing import parse
from treadle.errors import ConfigError
from treadle.tasks.ant.cfg import AntDirectEnvCfg
from treadle.tasks.cartpole.manager_cfg import CartpoleEnvCfg

JOINT = "--env.scene.robot.init-state.joint-pos"


def ant_options() -> TrainOptions:
    return TrainOptions(env=AntDirectEnvCfg(), agent=PointMassRunnerCfg())


def test_a_regular_expression_as_a_key_is_suggested_as_the_parser_takes_it():
    with pytest.raises(ConfigError) as caught:
        parse(ant_options(), [f"{JOINT}..*-leg", "0.1"], "treadle train Ant-Direct")
    assert f"unknown option '{JOINT}..*-leg' (did you mean {JOINT}.*-leg?)" in str(caught.value)
    options = parse(ant_options(), [f"{JOINT}.*-leg", "0.1"], "treadle train Ant-Direct")
    assert options.env.scene.robot.init_state.joint_pos[".*_leg"] == 0.1


@pytest.mark.parametrize("env", [AntDirectEnvCfg, PointMassEnvCfg, CartpoleEnvCfg])
def test_every_name_that_may_be_suggested_is_in_the_help(env, capsys):
    default = TrainOptions(env=env(), agent=PointMassRunnerCfg())
    with pytest.raises(SystemExit):
        parse(default, ["--help"], "treadle train")
    words = set(capsys.readouterr().out.replace(",", " ").split())
    assert [name for name in option_types(default) if name not in words] == []


POLICY = "--env.observations.policy"
NOISE = f"{POLICY}.terms.joint-pos-rel.noise"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--env.rewards.alive", "1"], "option '--env.rewards.alive' (did you mean --env.rewards.alive.weight?)"),
        (["--env.rewards"], "terminating.weight or --env.rewards.pole-pos.weight or others of it?)"),
        (["--env.rewards.pole-poss.weight"], "(did you mean --env.rewards.pole-pos.weight or "),
        ([f"{NOISE}.n-min", "0.1"], f"({NOISE} is None, and options change what is there: set it in Python)"),
        (["--env.commands.x.y"], "(--env.commands is {}, and options change what is there: set it in Python)"),
        (["--env.rewards.alive.func", "f"], "(it can't be given as text: set it in Python)"),
        (["--env.rewards.alive.twin", "torch"], "(it can't be given as text: set it in Python)"),
        (["--seed", "3", "four"], "unexpected argument 'four'; see"),
    ],
)
def test_what_is_said_of_an_option_that_does_not_exist(argv, message):
    with pytest.raises(ConfigError) as caught:
        parse(TrainOptions(env=CartpoleEnvCfg(), agent=PointMassRunnerCfg()), argv, "treadle train")
    assert message in str(caught.value)


@pytest.mark.parametrize("value", ["True", "false"])
@pytest.mark.parametrize("form", ["enable-corruption", "no-enable-corruption", "enable_corruption"])
@pytest.mark.parametrize("separate", [True, False])
def test_a_flag_takes_no_value(form, value, separate):
    argv = [f"{POLICY}.{form}", value] if separate else [f"{POLICY}.{form}={value}"]
    with pytest.raises(ConfigError) as caught:
        parse(TrainOptions(env=CartpoleEnvCfg(), agent=PointMassRunnerCfg()), argv, "treadle train")
    assert str(caught.value).startswith(
        f"{POLICY}.enable-corruption is given the value {value!r}; allowed, without a value: "
        f"{POLICY}.enable-corruption or {POLICY}.no-enable-corruption; see"
    )


def test_a_switch_has_no_form_that_says_no():
    with pytest.raises(ConfigError, match="'1'; allowed, without a value: --allow-torch-terms; see"):
        parse(
            TrainOptions(env=CartpoleEnvCfg(), agent=PointMassRunnerCfg()),
            ["--allow-torch-terms", "1"],
            "treadle train",
        )
