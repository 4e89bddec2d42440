"""Randomizations reach the solver, start from the defaults, and touch the masked environments only."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.mdp_envs import changed_rows, make_ants, snapshot

from treadle import mdp
from treadle.errors import ConfigError
from treadle.managers import EventTermCfg, SceneEntityCfg, TerminationTermCfg

ZERO = torch.zeros(4, 4)
TORSO = SceneEntityCfg(body_names="torso")
DEFAULT = EventTermCfg(func=mdp.reset_scene_to_default)


def event(func, mode="startup", **params) -> EventTermCfg:
    return EventTermCfg(func=func, params=params, mode=mode)


def high(env, height: float = 5.0) -> None:
    """Put the robots into the air."""
    env.robot.state_views.root_q[:, 2] = height
    env.physics.reset_mask.fill_(True)
    env.physics.reset()
    env.physics.reset_mask.zero_()


def fall(env, steps: int = 10) -> np.ndarray:
    """Let the robots fall and return their vertical velocities."""
    env.reset(seed=1)
    high(env)
    for _ in range(steps):
        env.step(torch.zeros(env.num_envs, 4))
    return env.robot.data.root_lin_vel_w.numpy()[:, 2]


def test_a_heavier_body_falls_alike_and_resists_a_force():
    mass = event(mdp.randomize_rigid_body_mass, mass_distribution_params=(1.0, 9.0), operation="scale")
    mass.params["asset_cfg"] = TORSO
    push = event(mdp.apply_external_force_torque, "reset", force_range=(0.0, 0.0), torque_range=(0.0, 0.0))
    push.params["asset_cfg"] = TORSO
    env = make_ants(events={"mass": mass, "default": DEFAULT, "push": push})
    falling = fall(env)
    np.testing.assert_allclose(falling, -9.81 * 10 * env.step_dt, rtol=2e-3)
    masses = env.physics.properties.body_mass.numpy().sum(axis=1)
    assert masses.max() > 1.3 * masses.min()
    np.testing.assert_allclose(
        env.physics.solver.mjw_model.body_subtreemass.numpy()[:, 1], masses, rtol=1e-5, err_msg="derived constants"
    )
    wrench = env.physics.external_wrench.numpy().copy()
    wrench[:, 0, 0] = 20.0
    env.reset(seed=1)
    env.physics.external_wrench.assign(wrench)
    high(env)
    for _ in range(6):
        env.step(ZERO)
    pushed = env.robot.data.root_lin_vel_w.numpy()[:, 0]
    np.testing.assert_array_equal(np.argsort(pushed), np.argsort(-masses))
    np.testing.assert_allclose(pushed, 20.0 * 6 * env.step_dt / masses, rtol=0.5)
    env.close()


def test_a_wrench_turns_with_the_body_and_ends_at_the_next_reset_of_its_environment():
    push = event(mdp.apply_external_force_torque, "startup", force_range=(0.0, 0.0), torque_range=(0.0, 0.0))
    env = make_ants(events={"push": push, "default": DEFAULT}, mode="graph")
    env.reset(seed=1)
    high(env)
    quat = np.array([0.0, 0.0, np.sin(np.pi / 4), np.cos(np.pi / 4)])  # a quarter turn about z: x becomes y
    env.robot.state_views.root_q[:, 3:7] = torch.tensor(quat)
    wrench = env.physics.external_wrench.numpy().copy()
    wrench[:, 0, 0] = 5.0
    env.physics.external_wrench.assign(wrench)
    env.physics.reset_mask.fill_(True)
    env.physics.reset()
    env.physics.reset_mask.zero_()
    for _ in range(6):
        env.step(ZERO)
    velocity = env.robot.data.root_lin_vel_w.numpy()
    assert (velocity[:, 1] > 0.1).all() and (np.abs(velocity[:, 0]) < 0.3 * velocity[:, 1]).all()
    env.reset(env_ids=[1])
    left = env.physics.external_wrench.numpy()
    assert not left[1].any() and (left[[0, 2, 3], 0, 0] == 5.0).all()
    assert not env.physics._body_f.numpy()[1].any()
    env.close()


def test_a_wrench_costs_no_launch_more():
    push = event(mdp.apply_external_force_torque, "reset", force_range=(-1.0, 1.0), torque_range=(0.0, 0.0))
    launches, columns = [], []
    for events in ({"default": DEFAULT}, {"default": DEFAULT, "push": push}):
        env = make_ants(events=events)
        env.reset(seed=1)
        before = env.scope.stats.total("eager")
        env.step(ZERO)
        launches.append(env.scope.stats.total("eager") - before)
        columns.append(env.physics.external_wrench.shape[1])
        env.close()
    assert launches[0] == launches[1] > 0
    assert columns == [0, 9]


def test_gravity_differs_between_environments():
    term = event(
        mdp.randomize_physics_scene_gravity,
        gravity_distribution_params=((0.0, 0.0, -12.0), (0.0, 0.0, -3.0)),
        operation="abs",
    )
    env = make_ants(events={"gravity": term, "default": DEFAULT})
    falling = fall(env)
    gravity = env.physics.gravity.numpy()[:, 2]
    assert np.ptp(gravity) > 0.5
    np.testing.assert_allclose(falling, gravity * 10 * env.step_dt, rtol=2e-3)
    np.testing.assert_allclose(env.robot.data.projected_gravity_b.numpy()[:, 2], -1.0, atol=1e-2)
    env.close()


def test_friction_decides_how_far_a_robot_slips():
    friction = event(
        mdp.randomize_rigid_body_material,
        static_friction_range=(0.05, 1.0),
        dynamic_friction_range=(0.05, 1.0),
        num_buckets=2,
    )
    env = make_ants(events={"friction": friction, "default": DEFAULT}, num_envs=4)
    env.reset(seed=1)
    mu = np.repeat(np.array([[0.05], [1.0], [0.3], [0.05]], dtype=np.float32), 13, axis=1)
    env.physics.properties.shape_friction.assign(mu)
    env.physics.apply_properties(("shapes",))
    for _ in range(40):
        env.step(ZERO)
    start = env.robot.data.root_pos_w.numpy()[:, 0].copy()
    env.robot.state_views.root_qd[:, 0] = 2.0
    env.physics.reset_mask.fill_(True)
    env.physics.reset()
    env.physics.reset_mask.zero_()
    for _ in range(40):
        env.step(ZERO)
    slip = env.robot.data.root_pos_w.numpy()[:, 0] - start
    assert slip[0] > 1.2 * slip[2] > 1.2 * slip[1]
    np.testing.assert_allclose(slip[3], slip[0], rtol=1e-2)
    env.close()


def test_stiffness_reaches_the_drives_and_the_reported_efforts():
    gains = event(
        mdp.randomize_actuator_gains,
        stiffness_distribution_params=(2.0, 9.0),
        operation="scale",
        asset_cfg=SceneEntityCfg(joint_names=".*_leg"),
    )
    env = make_ants(events={"gains": gains, "default": DEFAULT})
    env.reset(seed=1)
    high(env)
    legs = env.robot.find_joints(".*_leg")
    env.robot.data.torch.joint_pos_target[:, legs] = 0.2
    env.step(ZERO)
    moved = env.robot.data.joint_pos.numpy()[:, legs]
    stiffness = env.robot.data.joint_stiffness.numpy()[:, legs]
    np.testing.assert_allclose(stiffness, env.physics.properties.drive_stiffness.numpy()[:, 6:][:, legs])
    assert (stiffness >= 10.0).all()
    assert np.corrcoef(moved.ravel(), stiffness.ravel())[0, 1] > 0.6
    env.close()


def test_limits_bound_the_joints():
    limits = event(
        mdp.randomize_joint_parameters,
        upper_limit_distribution_params=(0.05, 0.3),
        asset_cfg=SceneEntityCfg(joint_names=".*_leg"),
    )
    env = make_ants(events={"limits": limits, "default": DEFAULT})
    env.reset(seed=1)
    high(env)
    legs = env.robot.find_joints(".*_leg")
    env.robot.data.torch.joint_pos_target[:, legs] = 2.0
    for _ in range(20):
        env.step(ZERO)
    upper = env.robot.data.joint_pos_upper.numpy()[:, legs]
    np.testing.assert_allclose(env.robot.data.joint_pos.numpy()[:, legs], upper, atol=0.05)
    assert np.ptp(upper) > 0.05
    env.close()


@pytest.mark.parametrize("frontend", ["warp", "torch"])
def test_scaling_at_each_reset_starts_from_the_default(frontend):
    scale = {"operation": "scale"}
    events = {
        "mass": event(mdp.randomize_rigid_body_mass, "reset", mass_distribution_params=(2.0, 2.0), **scale),
        "gains": event(mdp.randomize_actuator_gains, "reset", stiffness_distribution_params=(3.0, 3.0), **scale),
        "joints": event(mdp.randomize_joint_parameters, "reset", armature_distribution_params=(2.0, 2.0), **scale),
        "default": DEFAULT,
    }
    time_out = {"time_out": TerminationTermCfg(func=mdp.time_out, time_out=True)}
    env = make_ants(frontend, events=events, terminations=time_out, episode_length_s=0.05, mode="graph")
    default = env.physics.default_properties
    expected = {"body_mass": 2.0, "body_inertia": 2.0, "drive_stiffness": 3.0, "joint_armature": 2.0}
    env.reset(seed=1)
    for _ in range(7):
        env.step(ZERO)
    for name, factor in expected.items():
        values = getattr(env.physics.properties, name).numpy()
        np.testing.assert_allclose(values, factor * getattr(default, name).numpy(), rtol=1e-6, err_msg=name)
    solver = env.physics.solver.mjw_model
    np.testing.assert_allclose(solver.body_mass.numpy()[:, 1:], 2.0 * default.body_mass.numpy(), rtol=1e-6)
    np.testing.assert_allclose(solver.dof_armature.numpy()[:, 6:], 2.0 * default.joint_armature.numpy()[:, 6:])
    assert env.robot.data.joint_pos.numpy().any() and np.isfinite(env.robot.data.joint_pos.numpy()).all()
    if frontend == "warp":
        assert env.pipeline.graph_count == 1
    env.close()


def test_a_reset_of_one_environment_leaves_the_others_bit_by_bit():
    def run(with_reset: bool) -> tuple[dict, dict]:
        mass = event(mdp.randomize_rigid_body_mass, "reset", mass_distribution_params=(0.5, 3.0), operation="scale")
        joints = event(mdp.randomize_joint_parameters, "reset", armature_distribution_params=(0.0, 0.1))
        material = event(
            mdp.randomize_rigid_body_material,
            "reset",
            static_friction_range=(0.2, 1.0),
            dynamic_friction_range=(0.2, 1.0),
        )
        env = make_ants(events={"mass": mass, "joints": joints, "material": material, "default": DEFAULT})
        env.reset(seed=1)
        for step in range(30):
            env.step(torch.full((4, 4), 0.5))
            if with_reset and step == 20:
                env.reset(env_ids=[2])
        state = snapshot(env)
        env.close()
        return state

    before, after = run(False), run(True)
    shared = {name for name in before if not name.startswith(("buffers.common", "buffers.phase"))}
    before, after = ({name: state[name] for name in shared} for state in (before, after))
    for row in (0, 1, 3):
        assert changed_rows(before, after, row) == []
    assert "properties.body_mass" in changed_rows(before, after, 2)


def test_both_frontends_start_alike_and_no_episode_draws_the_same_again():
    mass = event(mdp.randomize_rigid_body_mass, mass_distribution_params=(0.0, 1.0), operation="abs")
    offset = event(mdp.reset_joints_by_offset, "reset", position_range=(0.0, 1.0), velocity_range=(0.0, 0.0))
    masses = []
    for frontend in ("warp", "torch"):
        env = make_ants(frontend, events={"mass": mass, "offset": offset})
        masses.append(env.physics.properties.body_mass.numpy().copy())
        env.reset()
        env.close()
    np.testing.assert_array_equal(*masses)
    assert len(np.unique(masses[0])) == masses[0].size  # no two environments alike


@pytest.mark.parametrize(
    ("func", "params", "message"),
    [
        (mdp.randomize_rigid_body_mass, {"operation": "mul"}, "operation is 'mul'; allowed: abs, scale, add"),
        (
            mdp.randomize_rigid_body_mass,
            {"operation": "abs", "mass_distribution_params": (2.0, 1.0)},
            "mass_distribution_params is .* allowed: two numbers, the lower first",
        ),
        (
            mdp.randomize_rigid_body_material,
            {"static_friction_range": (0.0, 1.0), "dynamic_friction_range": (0.5, 1.0)},
            "static_friction_range is .* at least 0.01",
        ),
        (
            mdp.randomize_rigid_body_material,
            {
                "static_friction_range": (0.5, 1.0),
                "dynamic_friction_range": (0.5, 1.0),
                "restitution_range": (0.0, 0.5),
            },
            "restitution_range is .* allowed: \\(0, 0\\) with MuJoCo",
        ),
        (mdp.reset_root_state_uniform, {"pose_range": {"w": (0, 0)}, "velocity_range": {}}, "range is given for 'w'"),
    ],
)
def test_what_can_not_be_honoured_is_refused(func, params, message):
    if func is mdp.randomize_rigid_body_mass:
        params = {"mass_distribution_params": (1.0, 1.0)} | params
    with pytest.raises(ConfigError, match=message):
        make_ants(events={"event": event(func, "reset", **params)})


CHANGES = {
    "log_uniform from 0": (
        event(
            mdp.randomize_rigid_body_mass,
            "reset",
            mass_distribution_params=(1.0, 2.0),
            operation="abs",
            distribution="log_uniform",
        ),
        {"mass_distribution_params": (0.0, 2.0)},
        r"events\.event: mass_distribution_params is \(0\.0, 2\.0\); allowed: two numbers above 0, the lower first",
    ),
    "ends": (
        event(
            mdp.randomize_physics_scene_gravity,
            "reset",
            gravity_distribution_params=((0.0, 0.0, -9.0), (0.0, 0.0, -8.0)),
            operation="abs",
        ),
        {"gravity_distribution_params": ((0.0, 0.0, -9.0), (0.0, 0.0, -10.0))},
        "gravity_distribution_params is .*; allowed: two numbers, the lower first",
    ),
    "deviation": (
        event(mdp.randomize_joint_parameters, "reset", friction_distribution_params=(0.1, 0.1)),
        {"distribution": "gaussian", "friction_distribution_params": (0.1, -0.1)},
        "friction_distribution_params is .*; allowed: mean and deviation",
    ),
    "operation": (
        event(mdp.randomize_actuator_gains, "reset", stiffness_distribution_params=(1.0, 2.0)),
        {"operation": "divide"},
        "operation is 'divide'; allowed: abs, scale, add",
    ),
    "surface": (
        event(
            mdp.randomize_rigid_body_material,
            "reset",
            static_friction_range=(0.5, 1.0),
            dynamic_friction_range=(0.5, 1.0),
        ),
        {"num_buckets": 0, "static_friction_range": (0.0, 1.0)},
        r"static_friction_range is \(0\.0, 1\.0\)(.|\n)*num_buckets is 0; allowed: 1 to 65536",
    ),
}


@pytest.mark.parametrize("frontend", ["warp", "torch"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_can_not_be_honoured_is_refused_too(change, frontend):
    cfg, params, message = CHANGES[change]
    env = make_ants(frontend, events={"event": cfg})
    env.reset(seed=1)
    new = env.event_manager.get_term_cfg("event")
    new.params |= params
    with pytest.raises(ConfigError, match=message):
        env.event_manager.set_term_cfg("event", new)
    assert env.event_manager.get_term_cfg("event").params == cfg.params
    masses = env.physics.properties.body_mass.numpy()
    env.reset(seed=1)
    np.testing.assert_array_equal(env.physics.properties.body_mass.numpy(), masses)
    env.close()
