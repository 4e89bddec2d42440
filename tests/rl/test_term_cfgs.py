"""Configurations of terms as JSON text and back."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, field

import pytest

from treadle import mdp
from treadle.errors import ConfigError
from treadle.managers import (
    NoiseModelWithAdditiveBiasCfg,
    RewardTermCfg,
    ScaleModifierCfg,
    SceneEntityCfg,
    UniformNoiseCfg,
)
from treadle.registry import list_tasks, task_spec
from treadle.rl.plain import from_json, to_json
from treadle.tasks.cartpole.manager_cfg import CartpoleEnvCfg


def round_trip(cfg, default=None):
    return from_json(to_json(cfg), CartpoleEnvCfg() if default is None else default)


@pytest.mark.parametrize("task", list_tasks())
def test_each_tasks_defaults(task):
    spec = task_spec(task)
    assert round_trip(spec.load_env_cfg(), spec.load_env_cfg()) == spec.load_env_cfg()


def test_changed_weights_parameters_and_terms_that_are_left_out():
    cfg = CartpoleEnvCfg()
    cfg.rewards["pole_pos"].weight = -3.0
    cfg.rewards["pole_pos"].params["target"] = 0.5
    cfg.rewards["alive"] = None
    cfg.terminations["cart_out_of_bounds"].params = {
        "asset_cfg": SceneEntityCfg(joint_names=("slider.*",)),
        "bounds": (-2.0, 2.0),
    }
    term = cfg.observations["policy"].terms["joint_pos_rel"]
    term.clip, term.scale, term.modifiers = (-1.0, 1.0), (2.0, 3.0), (ScaleModifierCfg(multiplier=2.0),)
    term.noise = NoiseModelWithAdditiveBiasCfg(bias_noise_cfg=UniformNoiseCfg(n_min=-0.1, n_max=0.1))
    cfg.actions["joint_effort"].scale = {"slider.*": 50.0}
    read = round_trip(cfg)
    assert read == cfg
    assert read != CartpoleEnvCfg()
    assert read.rewards["alive"] is None
    assert read.rewards["pole_pos"].func is cfg.rewards["pole_pos"].func


def test_terms_that_the_tasks_defaults_do_not_have():
    cfg = CartpoleEnvCfg()
    params = {"asset_cfg": SceneEntityCfg(joint_names="cart_to_pole")}
    cfg.rewards["more"] = RewardTermCfg(func=mdp.joint_vel_l2, params=params, weight=-0.1)
    cfg.actions["second"] = mdp.JointEffortActionCfg(joint_names="cart_to_pole")
    assert round_trip(cfg) == cfg
    without = CartpoleEnvCfg()
    without.rewards["alive"] = None
    assert round_trip(CartpoleEnvCfg(), without) == CartpoleEnvCfg()


def test_terms_in_fields_that_do_not_name_their_type():
    @dataclass(kw_only=True)
    class BareCfg(CartpoleEnvCfg):
        rewards: dict = field(default_factory=lambda: {"alive": RewardTermCfg(func=mdp.is_alive)})

    cfg = BareCfg()
    cfg.rewards["alive"].weight = 2.0
    assert round_trip(cfg, BareCfg()) == cfg
    cfg.rewards["alive"] = None
    assert round_trip(cfg, BareCfg()) == cfg


@pytest.mark.parametrize("path", ["treadle.mdp.rewards:is_alife", "no.module:is_alive", "treadle.mdp.rewards:__doc__"])
def test_a_function_that_does_not_exist_any_more(path):
    data = json.loads(to_json(CartpoleEnvCfg()))
    data["rewards"]["alive"]["func"] = path
    with pytest.raises(ConfigError, match="no such function") as error:
        from_json(json.dumps(data), CartpoleEnvCfg())
    assert str(error.value) == (
        f"CartpoleEnvCfg.rewards.alive.func is '{path}' in the stored configuration, and there is no such function; "
        "allowed: one of a module that the task or --import imports"
    )


@pytest.mark.parametrize("path", ["treadle.mdp.actions:Nothing", "os:system", "treadle.managers.cfg:RewardTermCfg"])
def test_a_class_that_does_not_fit(path):
    data = json.loads(to_json(CartpoleEnvCfg()))
    data["actions"]["joint_effort"]["__class__"] = path
    with pytest.raises(
        ConfigError, match=f"joint_effort is a {path} in the .* allowed: one derived from ActionTermCfg"
    ):
        from_json(json.dumps(data), CartpoleEnvCfg())


def test_a_new_term_without_a_function():
    data = json.loads(to_json(CartpoleEnvCfg()))
    data["rewards"]["more"] = {"weight": 1.0}
    with pytest.raises(ConfigError, match=r"rewards\.more"):
        from_json(json.dumps(data), CartpoleEnvCfg())


def test_a_function_with_bound_arguments_cannot_be_stored():
    cfg = CartpoleEnvCfg()
    cfg.rewards["alive"].func = functools.partial(mdp.is_alive)
    with pytest.raises(ConfigError, match=r"rewards\.alive\.func is a partial, which a configuration file cannot hold"):
        to_json(cfg)
