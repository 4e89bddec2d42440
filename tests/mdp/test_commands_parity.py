"""Each command draws, updates and measures the same in both forms, over resets and resampling."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.mdp_envs import make_ants
from support.terms import GivenCommandCfg

from treadle import mdp
from treadle.errors import ConfigError
from treadle.managers import EventTermCfg
from treadle.managers.twins import registered_twins

TIMES = {"resampling_time_range": (0.02, 0.06)}
COMMANDS = {
    "null": mdp.NullCommandCfg(**TIMES),
    "uniform": mdp.UniformVelocityCommandCfg(rel_standing_envs=0.3, **TIMES),
    "heading": mdp.UniformVelocityCommandCfg(
        ranges=mdp.VelocityRanges(ang_vel_z=(-0.4, 0.3), heading=(-3.14, 3.14)),
        heading_command=True,
        heading_control_stiffness=0.5,
        rel_heading_envs=0.6,
        **TIMES,
    ),
    "normal": mdp.NormalVelocityCommandCfg(
        mean_vel=(0.5, 0.0, 0.2), std_vel=(0.1, 0.3, 0.0), zero_prob=(0.0, 0.5, 0.2), rel_standing_envs=0.2, **TIMES
    ),
    "pose": mdp.UniformPoseCommandCfg(
        body_name="front_left_foot",
        make_quat_unique=True,
        ranges=mdp.PoseRanges(pos_x=(0.2, 0.5), pos_z=(-0.1, 0.1), roll=(-3.0, 3.0), pitch=(1.5, 1.5), yaw=(-3.1, 3.1)),
        **TIMES,
    ),
    "planar": mdp.UniformPose2dCommandCfg(
        ranges=mdp.PlanarPoseRanges(pos_x=(-2.0, 2.0), pos_y=(1.0, 2.0), heading=(-3.0, 3.0)), **TIMES
    ),
    "simple": mdp.UniformPose2dCommandCfg(
        ranges=mdp.PlanarPoseRanges(pos_x=(-2.0, 2.0), pos_y=(-1.0, 2.0)), simple_heading=True, **TIMES
    ),
}
EVENTS = {
    "root": EventTermCfg(
        func=mdp.reset_root_state_uniform,
        params={"pose_range": {"yaw": (-3.0, 3.0)}, "velocity_range": {"x": (-1.0, 1.0), "yaw": (-1.0, 1.0)}},
    )
}


@pytest.fixture(scope="module")
def envs():
    made = [make_ants(frontend, commands=COMMANDS, events=EVENTS) for frontend in ("warp", "torch")]
    yield made
    for env in made:
        env.close()


def test_every_command_has_a_case():
    known = {path for path in registered_twins() if path.startswith("treadle.mdp.commands")}
    terms = [type(cfg).class_type for cfg in COMMANDS.values()]
    assert {f"{term.__module__}:{term.__qualname__}" for term in terms} == known


def state_of(env, name: str) -> dict[str, np.ndarray]:
    term = env.command_manager.get_term(name)
    fields = ("command_buffer", "time_left", "counter", "metrics")
    return {field: getattr(term, field).numpy().copy() for field in fields}


def test_both_forms_command_the_same(envs):
    for env in envs:
        env.reset(seed=7)
    counts = np.zeros(4)
    for step in range(12):
        for env in envs:
            env.step(torch.zeros(4, 4))
            if step == 5:
                others = {name: state_of(env, name) for name in COMMANDS}
                env.reset(env_ids=[2])
                for name, before in others.items():
                    for field, values in state_of(env, name).items():
                        np.testing.assert_array_equal(values[[0, 1, 3]], before[field][[0, 1, 3]], err_msg=name)
        for name in COMMANDS:
            got, expected = state_of(envs[0], name), state_of(envs[1], name)
            for field, values in expected.items():
                np.testing.assert_allclose(
                    got[field], values, rtol=1e-4, atol=2e-5, err_msg=f"{name}.{field}, step {step}"
                )
        counts = np.maximum(counts, state_of(envs[0], "uniform")["counter"])
    np.testing.assert_array_equal(*(env.buffers.random_state.numpy() for env in envs))
    assert (counts >= 3).all()


def test_the_ranges_change_without_a_new_graph(envs):
    env = make_ants(commands={"velocity": COMMANDS["uniform"]}, mode="graph")
    env.reset(seed=1)
    for _ in range(3):
        env.step(torch.zeros(4, 4))
    captured = env.scope.stats.graph_total("captures")
    env.command_manager.get_term("velocity").set_ranges(
        mdp.VelocityRanges(lin_vel_x=(5.0, 6.0), lin_vel_y=(5.0, 6.0), ang_vel_z=(5.0, 6.0))
    )
    for _ in range(10):
        env.step(torch.zeros(4, 4))
    command = env.command_manager.get_command("velocity").numpy()
    assert ((command >= 5.0) | (command == 0.0)).all() and (command >= 5.0).any()
    assert env.scope.stats.graph_total("captures") == captured
    env.close()


def test_metrics_of_velocities_are_means_over_the_longest_command(envs):
    env = envs[1]
    env.reset(seed=3)
    term = env.command_manager.get_term("uniform")
    expected = np.zeros(4)
    for _ in range(3):
        command = term.command.clone()
        env.step(torch.zeros(4, 4))
        error = (command[:, :2] - env.robot.data.torch.root_lin_vel_b[:, :2]).norm(dim=1)
        expected += (error / (0.06 / env.step_dt)).numpy()
    np.testing.assert_allclose(term.metrics.numpy()[:, 0], expected, rtol=1e-4)


@pytest.mark.parametrize(
    ("cfg", "message"),
    [
        (mdp.UniformVelocityCommandCfg(heading_command=True), "ranges.heading is None"),
        (mdp.UniformVelocityCommandCfg(rel_standing_envs=2.0), "rel_standing_envs is 2.0; allowed: 0 to 1"),
        (mdp.NormalVelocityCommandCfg(std_vel=(1.0, -1.0, 0.0)), "std_vel is .* none below 0"),
        (mdp.UniformPoseCommandCfg(body_name=".*foot"), "matches front_left_foot, .*; allowed: one body"),
        (mdp.UniformPoseCommandCfg(body_name="foot", ranges=mdp.PoseRanges(pos_x=(1.0, 0.0))), "pos_x is .* lower"),
    ],
)
def test_a_wrong_command_is_refused(cfg, message):
    with pytest.raises(ConfigError, match=message):
        make_ants(commands={"command": cfg})


def run_time_change(name: str, **changes):
    """Return an environment with one command, and the command's configuration with some fields changed."""
    env = make_ants(commands={name: COMMANDS[name]})
    env.reset(seed=1)
    cfg = env.command_manager.get_term_cfg(name)
    for field, value in changes.items():
        setattr(cfg, field, value)
    return env, cfg


@pytest.mark.parametrize(
    ("name", "changes"),
    [("pose", {"body_name": "right_back_foot"}), ("pose", {"asset_name": "other"}), ("uniform", {"asset_name": "x"})],
)
def test_what_other_terms_may_have_taken_over_does_not_change(name, changes):
    env, cfg = run_time_change(name, resampling_time_range=(1.0, 2.0), **changes)
    [(field, value)] = changes.items()
    with pytest.raises(ConfigError, match=rf"commands\.{name}\.{field} is '{value}'; allowed while the environment"):
        env.command_manager.set_term_cfg(name, cfg)
    assert env.command_manager.get_term_cfg(name) == COMMANDS[name]
    env.step(torch.zeros(4, 4))
    env.close()


def test_a_field_that_a_command_does_not_declare_does_not_change():
    env = make_ants("torch", commands={"given": GivenCommandCfg()})
    with pytest.raises(ConfigError, match=r"commands\.given\.size is 4; allowed while the environment runs: 3"):
        env.command_manager.set_term_cfg("given", GivenCommandCfg(size=4))
    env.close()


def test_another_class_of_configuration_is_refused():
    env, _ = run_time_change("pose")
    with pytest.raises(ConfigError, match=r"commands\.pose is a UniformVel.*; allowed now: a UniformPoseCommandCfg"):
        env.command_manager.set_term_cfg("pose", COMMANDS["uniform"])
    assert env.command_manager.get_term_cfg("pose") == COMMANDS["pose"]
    env, cfg = run_time_change("pose", ranges=mdp.VelocityRanges())
    with pytest.raises(ConfigError, match=r"commands\.pose\.ranges is VelocityRanges\(.*\); allowed: PoseRanges"):
        env.command_manager.set_term_cfg("pose", cfg)
    env.close()


def test_a_change_whose_kernels_can_not_be_made_leaves_all_as_it_was(monkeypatch):
    env, cfg = run_time_change("pose", make_quat_unique=False, resampling_time_range=(1.0, 2.0))
    term, old = env.command_manager.get_term("pose"), env.command_manager.params

    def fail(manager, reason):
        manager.make()
        raise ConfigError("no")

    monkeypatch.setattr(env, "rebuild", fail)
    with pytest.raises(ConfigError, match="no"):
        env.command_manager.set_term_cfg("pose", cfg)
    assert env.command_manager.get_term_cfg("pose") == COMMANDS["pose"]
    assert term.make_quat_unique and env.command_manager.params is old
    np.testing.assert_allclose(old.array.numpy(), TIMES["resampling_time_range"])
    env.close()


def test_ranges_that_are_set_are_checked_and_kept():
    env, _ = run_time_change("uniform")
    term = env.command_manager.get_term("uniform")
    with pytest.raises(ConfigError, match=r"ranges\.lin_vel_x is .* the lower first"):
        term.set_ranges(mdp.VelocityRanges(lin_vel_x=(2.0, 1.0)))
    term.set_ranges(mdp.VelocityRanges(lin_vel_x=(2.0, 3.0)))
    assert env.command_manager.get_term_cfg("uniform").ranges.lin_vel_x == (2.0, 3.0)
    env.command_manager.set_term_cfg("uniform", COMMANDS["uniform"])
    np.testing.assert_array_equal(term.ranges.numpy()[0], [-1.0, 1.0])
    env.close()
