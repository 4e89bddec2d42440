"""Each action sets the same targets in both forms, also over steps and resets, and refuses what has no effect."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.mdp_envs import ants_cfg

from treadle import mdp
from treadle.assets import ActuatorCfg
from treadle.envs import ManagerBasedTorchEnv, ManagerBasedWarpEnv
from treadle.errors import ConfigError
from treadle.managers.twins import registered_twins

LEGS, FEET, BACK = ".*_leg", ("front_.*_foot",), (".*_back_foot",)
ACTUATORS = {
    "legs": ActuatorCfg(joint_names_expr=(LEGS,), mode="position", stiffness=5.0, damping=0.5, armature=0.01),
    "front": ActuatorCfg(joint_names_expr=FEET, damping=0.1, armature=0.01),
    "back": ActuatorCfg(joint_names_expr=BACK, mode="velocity", damping=0.5, armature=0.01),
}
BINARY = {"open_command_expr": {".*": 0.5}, "close_command_expr": {"left.*": -0.3, "right.*": -0.6}}

EFFORT = mdp.JointEffortActionCfg(joint_names=FEET, scale=7.5, clip=(-5.0, 5.0))
VELOCITY = mdp.JointVelocityActionCfg(joint_names=BACK, scale=2.0, preserve_order=True)
SETS = {
    "position": {
        "position": mdp.JointPositionActionCfg(joint_names=LEGS, scale={"front.*": 0.5, ".*back.*": 0.2}),
        "effort": EFFORT,
        "velocity": VELOCITY,
    },
    "relative": {
        "position": mdp.RelativeJointPositionActionCfg(joint_names=LEGS, scale=0.3, clip={"front.*": (-0.1, 0.1)}),
        "velocity": mdp.BinaryJointVelocityActionCfg(joint_names=BACK, **BINARY),
    },
    "average": {
        "position": mdp.EMAJointPositionToLimitsActionCfg(joint_names=(LEGS,), alpha={"left.*": 0.3, "f.*": 0.9}),
    },
    "limits": {
        "front": mdp.JointPositionToLimitsActionCfg(joint_names=("front_.*_leg",), scale=1.5),
        "back": mdp.BinaryJointPositionActionCfg(joint_names=(".*_back_leg",), **BINARY),
    },
}


def make(frontend: str, actions) -> object:

    cfg = ants_cfg(num_envs=3, actions=actions, mode="graph" if frontend == "warp" else "eager")
    cfg.scene.robot.actuators = ACTUATORS

    return (ManagerBasedWarpEnv if frontend == "warp" else ManagerBasedTorchEnv)(cfg)


def test_every_action_has_a_case():
    known = {path for path in registered_twins() if path.startswith("treadle.mdp.actions")}
    terms = [type(cfg).class_type for actions in SETS.values() for cfg in actions.values()]
    assert {f"{term.__module__}:{term.__qualname__}" for term in terms} == known


@pytest.mark.parametrize("name", SETS)
def test_both_forms_set_the_same_targets(name):
    warp, torch_env = make("warp", SETS[name]), make("torch", SETS[name])
    generator = torch.Generator().manual_seed(1)
    for env in (warp, torch_env):
        env.reset(seed=1)
    for step in range(6):
        actions = torch.rand(3, warp.num_actions, generator=generator) * 4.0 - 2.0
        for env in (warp, torch_env):
            env.step(actions)
            if step == 3:
                env.reset(env_ids=[1])
        for field in ("joint_pos_target", "joint_vel_target", "joint_effort_target", "joint_pos", "joint_vel"):
            expected = getattr(torch_env.robot.data, field).numpy()
            np.testing.assert_allclose(
                getattr(warp.robot.data, field).numpy(), expected, rtol=2e-5, atol=2e-5, err_msg=f"{field}, step {step}"
            )
        for term in SETS[name]:
            expected = torch_env.action_manager.get_term(term).processed_actions
            torch.testing.assert_close(
                warp.action_manager.get_term(term).processed_actions, expected, rtol=2e-5, atol=2e-5
            )
    warp.close(), torch_env.close()


@pytest.mark.parametrize(
    ("cfg", "message"),
    [
        (mdp.JointPositionActionCfg(joint_names=FEET), "commands the position of front_left_foot"),
        (mdp.JointVelocityActionCfg(joint_names=LEGS), "commands the velocity of front_left_leg"),
        (mdp.JointEffortActionCfg(joint_names=BACK), "commands the effort of left_back_foot"),
        (mdp.JointPositionActionCfg(joint_names=LEGS, offset=0.1), "beside use_default_offset"),
        (mdp.JointPositionToLimitsActionCfg(joint_names=LEGS, offset=0.1), "the range of the joint decides"),
        (mdp.EMAJointPositionToLimitsActionCfg(joint_names=LEGS, alpha=1.5), r"alpha is 1.5; allowed: 0 to 1"),
        (
            mdp.BinaryJointPositionActionCfg(
                joint_names=(LEGS,), open_command_expr={"f.*": 0.1}, close_command_expr={".*": 0.0}
            ),
            "open_command_expr has no value for left_back_leg, right_back_leg",
        ),
    ],
)
def test_an_action_without_effect_is_refused(cfg, message):
    with pytest.raises(ConfigError, match=message):
        make("warp", {"action": cfg})


def test_the_average_starts_from_the_joints_and_resets_alone():
    env = make("torch", SETS["average"])
    env.reset(seed=1)
    term = env.action_manager.get_term("position")
    env.step(torch.ones(3, 4))
    before = term.average.numpy().copy()
    env.reset(env_ids=[1])
    joints = env.robot.data.joint_pos.numpy()[1, term.joint_ids.numpy()]
    np.testing.assert_array_equal(term.average.numpy()[1], joints)
    np.testing.assert_array_equal(term.average.numpy()[[0, 2]], before[[0, 2]])
    env.close()
