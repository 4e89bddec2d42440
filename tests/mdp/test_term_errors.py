"""What terms say about parameters that do not fit: who, where, and what is allowed."""

from __future__ import annotations

import pytest
import torch
from support.mdp_envs import make_ants
from support.terms import Case, make_env, terms_cfg

from treadle import mdp
from treadle.envs import ManagerBasedWarpEnv
from treadle.errors import ConfigError
from treadle.managers import RewardTermCfg, SceneEntityCfg, TerminationTermCfg
from treadle.managers.params import DeviceParams
from treadle.managers.term import Term
from treadle.tasks.locomotion import mdp as locomotion
from treadle.tasks.reach import mdp as reach
from treadle.tasks.velocity import mdp as velocity

CONTACTS = SceneEntityCfg(name="contacts", body_names=".*_foot")
UNTIMED = SceneEntityCfg(name="untimed")
WALK = {"command_name": "velocity", "sensor_cfg": CONTACTS}
MISTAKES = {
    "joint": (mdp.joint_vel_l1, {"asset_cfg": SceneEntityCfg(joint_names="knee")}, ["'knee'", "front_left_leg"]),
    "entity": (mdp.joint_vel_l1, {"asset_cfg": SceneEntityCfg(name="arm")}, ["'arm'", "robot", "contacts"]),
    "parameter": (mdp.base_height_l2, {"height": 0.4}, ["params['height'] is no parameter", "target_height", "lacks"]),
    "number": (mdp.base_height_l2, {"target_height": (0.4, 0.5)}, ["(0.4, 0.5)", "a number"]),
    "height sensor": (mdp.base_height_l2, {"target_height": 0.4, "sensor_cfg": CONTACTS}, ["sensor_cfg", "None"]),
    "command": (mdp.track_ang_vel_z_exp, {"std": 0.5, "command_name": "speed"}, ["'speed'", "velocity", "pose"]),
    "kind of sensor": (
        mdp.undesired_contacts,
        {"threshold": 1.0, "sensor_cfg": SceneEntityCfg(name="imu")},
        ["ContactSensorState", "ImuState"],
    ),
    "termination": (mdp.is_terminated_term, {"term_keys": "fall"}, ["'fall'", "time_out"]),
    "bodies that a term does not take": (
        mdp.lin_vel_z_l2,
        {"asset_cfg": SceneEntityCfg(body_names="torso")},
        ["body_names", "does not take"],
    ),
    "no gear": (locomotion.power_consumption, {"gear_ratio": {".*_leg": 15.0}}, ["front_left_foot", "gear_ratio"]),
    "gear of nothing": (
        locomotion.joint_pos_limits_penalty_ratio,
        {"gear_ratio": {"knee": 1.0}, "threshold": 0.9},
        ["'knee'", "front_left_leg"],
    ),
    "target": (locomotion.move_to_target_bonus, {"threshold": 0.8, "target_pos": (1.0, 2.0)}, ["(1.0, 2.0)", "3 num"]),
    "times": (velocity.feet_air_time, WALK | {"sensor_cfg": UNTIMED, "threshold": 0.5}, ["track_air_time"]),
    "one foot": (
        velocity.feet_air_time_variance,
        WALK | {"sensor_cfg": SceneEntityCfg(name="contacts", body_names="left_back_foot"), "max_time": 0.5},
        ["left_back_foot", "2 bodies"],
    ),
    "other bodies": (velocity.feet_slide, {"sensor_cfg": CONTACTS}, ["torso", "the same bodies in the same order"]),
    "several bodies": (
        reach.position_command_error,
        {"command_name": "pose", "asset_cfg": SceneEntityCfg(body_names=".*_foot")},
        ["left_back_foot", "one body"],
    ),
    "size of a command": (reach.orientation_command_error, {"command_name": "velocity"}, ["3 columns", "7"]),
}


@pytest.fixture(scope="module")
def env():
    return make_env()


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named(env, mistake):
    func, params, words = MISTAKES[mistake]
    with pytest.raises(ConfigError) as raised:
        Term("walk", RewardTermCfg(func=func, params=params), env, "rewards.walk", DeviceParams("params", "cpu"))
    for word in ("rewards.walk", *words):
        assert word in str(raised.value)


@pytest.mark.parametrize("mistake", ["height sensor", "termination", "times", "one foot", "several bodies"])
def test_the_torch_form_refuses_it_too(env, mistake, monkeypatch):
    func, params, words = MISTAKES[mistake]
    monkeypatch.setattr(env, "task_frontend", "torch", raising=False)
    term = Term("walk", RewardTermCfg(func=func, params=params), env, "rewards.walk", DeviceParams("params", "cpu"))
    with pytest.raises(ConfigError) as raised:
        term.torch()
    for word in ("rewards.walk", *words):
        assert word in str(raised.value)


def test_a_joint_without_an_action():
    cfg = terms_cfg([Case(mdp.base_pos_z)], [Case(locomotion.power_consumption, {"gear_ratio": {".*": 15.0}})], [])
    del cfg.actions["legs"]
    with pytest.raises(ConfigError, match=r"rewards\.power_consumption: no action commands joint front_left_leg, .*"):
        ManagerBasedWarpEnv(cfg)


def test_the_acceleration_of_bodies_is_measured_where_a_term_wants_it(env):
    """And nowhere else, as it costs launches."""
    assert "body_qdd" not in env.physics._measured
    cfg = RewardTermCfg(func=mdp.body_lin_acc_l2)
    term = Term("acceleration", cfg, env, "rewards.acceleration", DeviceParams("params", "cpu"))
    assert "body_qdd" in env.physics._measured
    env.reset()
    assert not term.torch().any()
    env.step(torch.zeros(env.num_envs, env.num_actions))
    assert (term.torch() > 1.0).all(), "the ant falls"


@pytest.mark.parametrize("name", ["terminated", "non_finite", "time_out"])
def test_a_name_of_the_log_is_no_name_of_a_termination(name):
    fall = TerminationTermCfg(func=mdp.root_height_below_minimum, params={"minimum_height": 0.1})
    with pytest.raises(ConfigError, match=rf"terminations\.{name}: the log has an entry of that name"):
        make_ants(terminations={name: fall})


def test_a_time_out_keeps_its_name_only_as_one():
    env = make_ants(terminations={"time_out": TerminationTermCfg(func=mdp.time_out, time_out=True)})
    fall = TerminationTermCfg(func=mdp.root_height_below_minimum, params={"minimum_height": 0.1})
    with pytest.raises(ConfigError, match="another name, or time_out=True"):
        env.termination_manager.set_term_cfg("time_out", fall)
    env.step(torch.zeros(4, 4))
    env.close()


def test_a_term_of_the_episode_length_is_a_time_out():
    over = {"over": TerminationTermCfg(func=mdp.time_out)}
    message = r"terminations\.over\.time_out is False; allowed with time_out: True"
    with pytest.raises(ConfigError, match=message):
        make_ants(terminations=over)
    env = make_ants(terminations={"over": TerminationTermCfg(func=mdp.time_out, time_out=True)})
    with pytest.raises(ConfigError, match=message):
        env.termination_manager.set_term_cfg("over", over["over"])
    env.close()
