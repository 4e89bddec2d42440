"""The Newton backend against Newton itself, and its resets and overflow counts."""

from __future__ import annotations

import logging

import newton
import numpy as np
import pytest
import torch
import warp as wp
from support.ant import make_ant, random_actions, snapshot
from support.scenes import ant_robot_cfg, apply_state, assign, cartpole_cfg, make_scene, random_joint_state

from treadle.errors import ConfigError, UnknownNameError
from treadle.launch import LaunchScope
from treadle.physics import MJWarpSolverCfg, NewtonBackend, SimulationCfg

SOLVER = MJWarpSolverCfg(njmax=45, nconmax=25)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_stepping_in_place_equals_double_buffering(steps, device):
    """Newton's usual loop swaps two states; the backend has one, so that graphs of odd step counts are right."""
    scene, reference = (make_scene(solver=SOLVER, device=device) for _ in range(2))
    for one in (scene, reference):
        rng = np.random.default_rng(3)
        drop = one.robot.data.default_joint_pos.numpy() + rng.uniform(-0.1, 0.1, (4, 8))
        assign(one.robot.data.joint_pos, drop)
        apply_state(one)
    physics = reference.physics
    states = [physics._state, physics.model.state()]
    most_contacts = 0
    for _ in range(15):
        efforts = np.random.default_rng(4).uniform(-5.0, 5.0, scene.physics.joint_f.shape)
        efforts[:, :6] = 0.0
        for one in (scene, reference):
            assign(one.physics.joint_f, efforts)
        for _ in range(steps):
            scene.physics.step()
            physics.solver.step(states[0], states[1], physics._control, None, physics.dt)
            states.reverse()
        for name in ("joint_q", "joint_qd", "body_q", "body_qd"):
            expected = getattr(states[0], name).numpy().reshape(4, -1)
            actual = getattr(scene.physics, name).numpy().reshape(4, -1)
            if device.is_cpu:
                assert np.array_equal(actual, expected), name
            else:
                np.testing.assert_allclose(actual, expected, atol=1e-2)
        most_contacts = max(most_contacts, int(scene.physics.solver.mjw_data.nacon.numpy()[0]))
    assert most_contacts >= 4, "feet on the ground"


def test_gravity_reaches_the_solver():
    scene = make_scene(gravity=(1.0, 2.0, -3.0), dt=0.01, solver=SOLVER)
    scene.physics.joint_q.numpy()[:, 2] += 5.0
    apply_state(scene)
    for _ in range(10):
        scene.physics.step()
    np.testing.assert_allclose(scene.physics.joint_qd.numpy()[:, :3], np.tile([0.1, 0.2, -0.3], (4, 1)), atol=2e-4)
    direction = np.array([1.0, 2.0, -3.0]) / 14.0**0.5
    np.testing.assert_allclose(scene.robot.data.projected_gravity_b.numpy(), np.tile(direction, (4, 1)), atol=1e-6)


def test_the_time_step_reaches_the_solver():
    scene = make_scene(dt=0.02, solver=SOLVER)
    scene.physics.joint_q.numpy()[:, 2] += 5.0
    apply_state(scene)
    scene.physics.step()
    np.testing.assert_allclose(scene.physics.joint_qd.numpy()[:, 2], -0.02 * 9.81, atol=1e-4)


def test_ground_friction_reaches_the_solver():
    for friction in (0.25, 1.0):
        model = make_scene(num_envs=2, ground_friction=friction, solver=SOLVER).physics.model
        ground = model.shape_body.numpy() < 0
        assert model.shape_material_mu.numpy()[ground].tolist() == [friction], "one plane for all environments"


def test_solver_options_reach_the_solver():
    cfg = MJWarpSolverCfg(
        njmax=50, nconmax=30, iterations=7, ls_iterations=5, tolerance=1e-5, solver="cg", cone="elliptic", impratio=2.0
    )
    solver = make_scene(num_envs=2, solver=cfg).physics.solver
    model, data = solver.mjw_model, solver.mjw_data
    assert (model.opt.iterations, model.opt.ls_iterations) == (7, 5)
    assert model.opt.tolerance.numpy()[0] == pytest.approx(1e-5)
    assert model.opt.impratio_invsqrt.numpy()[0] == pytest.approx(0.5**0.5)
    assert (int(model.opt.cone), int(model.opt.solver)) == (1, 1)
    assert data.naconmax == 60 and data.njmax >= 50


def test_one_articulation_per_world():
    builder = newton.ModelBuilder()
    world = newton.ModelBuilder()
    for _ in range(2):
        world.add_shape_sphere(world.add_body(), radius=0.1)
    builder.replicate(world, 3)
    with pytest.raises(ConfigError, match=r"the model has 6 articulations in 3 worlds; allowed: one articulation"):
        NewtonBackend(builder.finalize(device="cpu"), SimulationCfg(), LaunchScope("cpu"))


@pytest.mark.parametrize("substeps", [1, 2, 3])
@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_substeps_divide_a_physics_step(substeps, mode):
    """A step of several solver steps is those steps, also where a graph holds an odd number of them."""
    coarse = make_scene(num_envs=2, mode=mode, solver=SOLVER, dt=0.01, substeps=substeps)
    fine = make_scene(num_envs=2, solver=SOLVER, dt=0.01 / substeps)
    assert coarse.physics.dt == 0.01
    for scene in (coarse, fine):
        scene.physics.measure("body_parent_f")
    for _ in range(60):
        coarse.scope.graphs.run("step", coarse.physics.step)
        for _ in range(substeps):
            fine.physics.step()
    for name in ("joint_q", "joint_qd", "body_parent_f"):
        first, second = (snapshot(getattr(scene.physics, name)) for scene in (coarse, fine))
        assert np.array_equal(first, second), name
    assert coarse.physics.body_parent_f.numpy().any()


def test_overflow_is_counted_in_each_substep():
    solver = MJWarpSolverCfg(njmax=45, nconmax=2)
    counts = []
    for substeps in (1, 2):
        scene = make_scene(num_envs=3, solver=solver, dt=0.005 * substeps, substeps=substeps)
        for _ in range(40 // substeps):
            scene.physics.step()
        counts.append(scene.physics.overflow_steps.numpy().sum())
    assert counts[0] == counts[1] > 0


def test_a_masked_reset_leaves_the_other_worlds_alone(device):
    scene = make_scene(num_envs=5, solver=SOLVER, device=device)
    physics = scene.physics
    physics.measure("body_parent_f")
    physics.measure("body_qdd")
    for _ in range(40):
        physics.step()
    data = physics.solver.mjw_data
    watched = {
        "joint_q": physics.joint_q,
        "joint_qd": physics.joint_qd,
        "joint_f": physics.joint_f,
        "body_q": physics.body_q,
        "body_qd": physics.body_qd,
        "body_parent_f": physics.body_parent_f,
        "body_qdd": physics.body_qdd,
        "bad_measurement": physics.bad_measurement,
        "qacc_warmstart": data.qacc_warmstart,
        "qfrc_applied": data.qfrc_applied,
        "xfrc_applied": data.xfrc_applied,
    }
    assign(physics.joint_f, 0.5)
    physics.bad_measurement.fill_(True)
    before = {name: snapshot(array) for name, array in watched.items()}
    mask = np.array([False, True, False, False, True])
    wp.copy(physics.reset_mask, wp.array(mask, dtype=wp.bool, device=device))
    joint_q = snapshot(physics.joint_q)
    joint_q[mask, 2] += 1.0
    assign(physics.joint_q, joint_q)
    physics.reset()
    for name, array in watched.items():
        assert np.array_equal(snapshot(array)[~mask], before[name][~mask]), name
    for name in ("qacc_warmstart", "body_parent_f", "body_qdd", "bad_measurement", "joint_f"):
        assert before[name][mask].any() and not snapshot(watched[name])[mask].any(), name
    assert snapshot(physics.joint_q)[mask, 2] == pytest.approx(before["joint_q"][mask, 2] + 1.0)
    assert snapshot(physics.body_q)[mask, 0, 2] == pytest.approx(before["body_q"][mask, 0, 2] + 1.0), "poses follow"
    assert physics.reset_mask.numpy().tolist() == mask.tolist()


def test_wrenches_and_accelerations_are_measured_where_they_are_asked_for():
    scene = make_scene(num_envs=2, solver=SOLVER, mode="graph")
    physics = scene.physics

    def steps() -> None:
        for _ in range(3):
            scene.scope.graphs.run("step", physics.step)

    steps()
    assert not physics.body_qdd.numpy().any() and not physics.body_parent_f.numpy().any()
    assert physics.measure("body_qdd") is physics.body_qdd, "the array never moves, but the graph has to be made anew"
    steps()
    np.testing.assert_allclose(physics.body_qdd.numpy()[:, 0, 2], -9.81, atol=1e-3)
    assert not physics.body_parent_f.numpy().any()
    assert scene.scope.stats.graphs
    with pytest.raises(UnknownNameError, match=r"unknown measurement 'body_q' .*; allowed: body_parent_f, body_qdd"):
        physics.measure("body_q")


def test_a_reset_of_nobody_is_no_reset():
    scene = make_scene(num_envs=3, solver=SOLVER)
    scene.physics.measure("body_parent_f")
    for _ in range(30):
        scene.physics.step()
    before = [snapshot(a) for a in (scene.physics.joint_q, scene.physics.body_q, scene.physics.body_parent_f)]
    scene.physics.reset()
    after = [snapshot(a) for a in (scene.physics.joint_q, scene.physics.body_q, scene.physics.body_parent_f)]
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


def test_rows_are_views_of_newtons_arrays():
    scene = make_scene(num_envs=3, solver=SOLVER)
    physics = scene.physics
    assert physics.joint_q.shape == (3, 15) and physics.joint_qd.shape == physics.joint_f.shape == (3, 14)
    assert physics.body_q.shape == physics.body_parent_f.shape == physics.body_com.shape == (3, 9)
    assert physics.joint_q.ptr == physics._state.joint_q.ptr
    physics.joint_q.numpy()[2, 0] = 7.0
    assert physics._state.joint_q.numpy()[30] == 7.0


def test_overflow_is_counted_described_and_logged(caplog):
    """Ants that start in the air need no contact; when they land, two contacts are too few."""
    robot = ant_robot_cfg()
    robot.init_state.pos = (0.0, 0.0, 1.2)
    env = make_ant(num_envs=3, termination_height=-9.0)
    assert env.physics.describe_overflow() is None
    env.close()
    cfg_solver = MJWarpSolverCfg(njmax=45, nconmax=2)
    scene = make_scene(robot, num_envs=3, solver=cfg_solver)
    assert scene.physics.overflow_steps.numpy().tolist() == [0, 0, 0]
    for _ in range(20):
        scene.physics.step()
    assert scene.physics.describe_overflow() is None
    for _ in range(80):
        scene.physics.step()
    counts = scene.physics.overflow_steps.numpy()
    assert 0 < counts.max() <= 80
    text = scene.physics.describe_overflow()
    assert f"{(counts > 0).sum()} of 3 environments overflowed a solver buffer in {counts.sum()} solver steps" in text
    assert "enlarge sim.solver.njmax for NEFC, else sim.solver.nconmax" in text


@pytest.mark.parametrize(("field", "value", "name"), [("nconmax", 2, "BROADPHASE"), ("njmax", 6, "NEFC")])
@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_an_environment_reports_overflow(field, value, name, mode, caplog):
    robot = ant_robot_cfg()
    robot.init_state.pos = (0.0, 0.0, 1.2)
    from support.ant import ant_cfg

    from treadle.registry import task_spec

    cfg = ant_cfg(mode=mode, termination_height=-9.0)
    setattr(cfg.sim.solver, field, value)
    cfg.scene.robot, cfg.scene.num_envs, cfg.sim.device = robot, 3, "cpu"
    env = task_spec("Ant-Direct").load_env_class("warp")(cfg)
    env.reset()
    for _ in range(50):
        env.step(torch.zeros(3, 8))
    counted = int(env.physics.overflow_steps.numpy().sum())
    assert counted > 0
    with caplog.at_level(logging.WARNING, "treadle"):
        assert env.pop_episode_log() == {"Physics/overflow_steps": counted}
    (record,) = caplog.records
    assert "LocomotionWarpEnv" in record.getMessage() and name in record.getMessage()
    assert f"{counted} solver steps" in record.getMessage() and f"sim.solver.{field}" in record.getMessage()
    env.episode_length_buf = torch.tensor([959, 0, 0])
    env.step(torch.zeros(3, 8))
    log = env.pop_episode_log()
    total = int(env.physics.overflow_steps.numpy().sum())
    assert log["Physics/overflow_steps"] == total - counted, "each is counted once"
    caplog.clear()
    env.episode_length_buf = torch.tensor([959, 0, 0])
    robots_up = env.physics.joint_q.numpy()
    robots_up[:, 2] += 5.0
    env.step(torch.zeros(3, 8))
    assert env.pop_episode_log()["Physics/overflow_steps"] == 0.0
    assert not caplog.records
    env.close()


def test_the_ants_buffers_are_large_enough():
    env = make_ant(num_envs=64)
    for action in random_actions(env, 200):
        env.step(action)
    assert env.physics.overflow_steps.numpy().sum() == 0
    assert env.physics.describe_overflow() is None
    env.close()


def test_a_fixed_base_has_no_free_coordinates():
    physics = make_scene(cartpole_cfg(), num_envs=3).physics
    assert physics.joint_q.shape == physics.joint_qd.shape == (3, 2)
    for _ in range(20):
        physics.step()
    assert np.isfinite(physics.joint_q.numpy()).all()


def test_random_states_stay_finite():
    scene = make_scene(num_envs=8, solver=SOLVER)
    random_joint_state(scene)
    for _ in range(60):
        scene.physics.step()
    assert np.isfinite(scene.physics.joint_q.numpy()).all()
