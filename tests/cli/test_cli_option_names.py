"""Options are suggested by the names that the parser takes."""

from __future__ import annotations

import pytest
from point_mass import PointMassEnvCfg, PointMassRunnerCfg

from treadle.cli.options import TrainOptions
from treadle.cli.parsing import option_types, parse
from treadle.errors import ConfigError
from treadle.tasks.ant.cfg import AntDirectEnvCfg

JOINT = "--env.scene.robot.init-state.joint-pos"


def ant_options() -> TrainOptions:
    return TrainOptions(env=AntDirectEnvCfg(), agent=PointMassRunnerCfg())


def test_a_regular_expression_as_a_key_is_suggested_as_the_parser_takes_it():
    with pytest.raises(ConfigError) as caught:
        parse(ant_options(), [f"{JOINT}..*-leg", "0.1"], "treadle train Ant-Direct")
    assert f"unknown option '{JOINT}..*-leg' (did you mean {JOINT}.*-leg?)" in str(caught.value)
    options = parse(ant_options(), [f"{JOINT}.*-leg", "0.1"], "treadle train Ant-Direct")
    assert options.env.scene.robot.init_state.joint_pos[".*_leg"] == 0.1


@pytest.mark.parametrize("env", [AntDirectEnvCfg, PointMassEnvCfg])
def test_every_name_that_may_be_suggested_is_in_the_help(env, capsys):
    default = TrainOptions(env=env(), agent=PointMassRunnerCfg())
    with pytest.raises(SystemExit):
        parse(default, ["--help"], "treadle train")
    words = set(capsys.readouterr().out.replace(",", " ").split())
    assert [name for name in option_types(default) if name not in words] == []
