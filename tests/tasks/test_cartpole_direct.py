"""Cartpole-Direct: both forms against the published formulas, and the constants of the task."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest
import torch
from support.ant import make_task, snapshot
from support.scenes import assign

from treadle.cli import main
from treadle.errors import ConfigError
from treadle.registry import task_spec

NUM_ENVS = 64
DT = 2.0 / 120.0
FRONTENDS = ["warp", "torch"]
on_frontends = pytest.mark.parametrize("frontend", FRONTENDS)
REWARDS = ("alive", "terminating", "pole_pos", "cart_vel", "pole_vel")


def make(frontend: str, **fields):
    return make_task("Cartpole-Direct", frontend=frontend, **fields)


@pytest.fixture(scope="module")
def states() -> dict[str, np.ndarray]:
    """Random states: carts on both sides of the bounds, poles several turns away."""
    rng = np.random.default_rng(0)
    position = np.stack([rng.uniform(-4.0, 4.0, NUM_ENVS), rng.uniform(-12.0, 12.0, NUM_ENVS)], axis=1)
    return {
        "position": position.astype(np.float32),
        "velocity": rng.uniform(-5.0, 5.0, (NUM_ENVS, 2)).astype(np.float32),
        "action": rng.uniform(-6.0, 6.0, (NUM_ENVS, 1)).astype(np.float32),
    }


@pytest.fixture(scope="module")
def evaluated(states):
    """Both environments, with all stages of the task evaluated on the same states."""
    envs = {frontend: make(frontend, num_envs=NUM_ENVS) for frontend in FRONTENDS}
    for env in envs.values():
        env.reset()
        assign(env.robot.data.joint_pos, states["position"])
        assign(env.robot.data.joint_vel, states["velocity"])
        assign(env.buffers.actions, states["action"])
        for output in (env.buffers.reward_terms, env.buffers.observations["policy"]):
            output.fill_(float("nan"))
        env._process_actions()
        env._compute_terminations()
        env._compute_rewards()
        env._compute_observations()
    yield envs
    for env in envs.values():
        env.close()


@on_frontends
def test_the_observation_is_positions_then_velocities(frontend, evaluated, states):
    expected = np.concatenate([states["position"], states["velocity"]], axis=1)
    assert np.array_equal(evaluated[frontend].observations["policy"].numpy(), expected)


@on_frontends
def test_the_reward_terms(frontend, evaluated, states):
    position, velocity = states["position"].astype(float), states["velocity"].astype(float)
    out = np.abs(position[:, 0]) > 3.0
    assert 5 < out.sum() < NUM_ENVS - 5
    angle = (position[:, 1] + np.pi) % (2.0 * np.pi) - np.pi
    expected = np.stack(
        [
            1.0 * ~out,
            -2.0 * out,
            -1.0 * angle**2,
            -0.01 * np.abs(velocity[:, 0]),
            -0.005 * np.abs(velocity[:, 1]),
        ],
        axis=1,
    )
    env = evaluated[frontend]
    assert env.reward_terms == REWARDS
    assert np.array_equal(env.buffers.terminated.numpy(), out)
    np.testing.assert_allclose(env.buffers.reward_terms.numpy(), expected * DT, rtol=2e-5, atol=1e-6)


def test_both_forms_agree(evaluated):
    warp, torch_ = (evaluated[frontend].buffers for frontend in FRONTENDS)
    np.testing.assert_allclose(warp.reward_terms.numpy(), torch_.reward_terms.numpy(), rtol=5e-6, atol=1e-8)
    assert np.array_equal(warp.observations["policy"].numpy(), torch_.observations["policy"].numpy())


@on_frontends
def test_the_action_pushes_the_cart_and_is_not_clamped(frontend, evaluated, states):
    """Only the actuator's limit of 400 N holds it."""
    env = evaluated[frontend]
    effort = env.robot.data.joint_effort_target.numpy()
    np.testing.assert_allclose(effort[:, 0], 100.0 * states["action"][:, 0])
    assert not effort[:, 1].any()
    env.robot.write_targets_to_sim()
    applied = env.robot.data.applied_effort.numpy()
    np.testing.assert_allclose(applied[:, 0], np.clip(100.0 * states["action"][:, 0], -400.0, 400.0))
    assert np.abs(applied).max() == 400.0


@on_frontends
def test_resets_draw_from_the_published_ranges(frontend):
    env = make(frontend, num_envs=1024)
    observation = env.reset(seed=0)[0]["policy"].numpy()
    for column, bound in enumerate((1.0, np.pi / 4.0, 0.5, np.pi / 4.0)):
        values = observation[:, column]
        assert values.min() == pytest.approx(-bound, abs=0.01 * bound)
        assert values.max() == pytest.approx(bound, abs=0.01 * bound)
    assert np.abs(np.corrcoef(observation.T) - np.eye(4)).max() < 0.1, "independent draws"
    env.close()


@on_frontends
def test_resets_are_clamped_to_the_limits_of_the_rail(frontend):
    env = make(frontend, num_envs=256, reset_cart_pos_range=(-6.0, 6.0))
    position = env.reset(seed=0)[0]["policy"].numpy()[:, 0]
    assert position.min() == -4.0 and position.max() == 4.0
    env.close()


def test_both_forms_start_and_stay_alike():
    envs = [make(frontend, num_envs=8) for frontend in FRONTENDS]
    first, second = (env.reset(seed=3)[0]["policy"] for env in envs)
    assert torch.equal(first, second), "the same draws"
    generator = torch.Generator().manual_seed(0)
    ended = 0
    for _ in range(200):
        action = torch.randn((8, 1), generator=generator) * 3.0
        one, two = (env.step(action) for env in envs)
        torch.testing.assert_close(one[0]["policy"], two[0]["policy"], rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(one[1], two[1], rtol=1e-4, atol=1e-6)
        assert torch.equal(one[2], two[2]) and torch.equal(one[3], two[3])
        ended += int(one[2].sum())
    assert ended > 3, "resets within the run are compared too"
    for env in envs:
        assert env.physics.describe_overflow() is None
        env.close()


@on_frontends
def test_an_episode_lasts_300_steps(frontend):
    env = make(frontend, num_envs=1, max_cart_pos=100.0)
    env.reset()
    ends = [step for step in range(1, 400) if env.step(torch.zeros(1, 1))[3].item()]
    assert ends == [300]
    env.close()


@on_frontends
def test_a_reset_of_some_environments_leaves_the_others(frontend):
    env = make(frontend, num_envs=4)
    before = env.reset(seed=0)[0]["policy"]
    state = snapshot(env.buffers.random_state)
    after = env.reset(env_ids=[1, 3])[0]["policy"]
    assert (after == before).all(dim=1).tolist() == [True, False, True, False]
    assert (env.buffers.random_state.numpy() != state).tolist() == [False, True, False, True]
    env.close()


def test_the_constants_of_the_task():
    cfg = task_spec("Cartpole-Direct").load_env_cfg()
    assert cfg.sim.dt == 1.0 / 120.0 and cfg.decimation == 2 and cfg.sim.substeps == 1
    assert cfg.episode_length_s == 5.0 and cfg.max_episode_length == 300
    assert cfg.scene.num_envs == 4096 and cfg.scene.env_spacing == 4.0
    solver = cfg.sim.solver
    assert (solver.njmax, solver.nconmax, solver.cone, solver.integrator) == (5, 3, "pyramidal", "implicitfast")
    assert asdict(cfg.rewards) == dict(zip(REWARDS, (1.0, -2.0, -1.0, -0.01, -0.005), strict=True))
    robot = cfg.scene.robot
    assert robot.init_state.pos == (0.0, 0.0, 2.0) and not robot.self_collisions
    cart, pole = robot.actuators["cart"], robot.actuators["pole"]
    assert (cart.damping, cart.stiffness, cart.effort_limit) == (10.0, 0.0, 400.0)
    assert (pole.damping, pole.stiffness, pole.effort_limit) == (0.0, 0.0, 400.0)
    agent = task_spec("Cartpole-Direct").load_agent_cfg()
    assert (agent.num_steps_per_env, agent.max_iterations, agent.seed) == (16, 150, 42)
    assert agent.actor.hidden_dims == agent.critic.hidden_dims == (32, 32) and not agent.actor.obs_normalization
    ppo = agent.algorithm
    assert (ppo.entropy_coef, ppo.learning_rate, ppo.value_loss_coef, ppo.num_learning_epochs) == (0.005, 1e-3, 1.0, 5)


@on_frontends
def test_a_joint_that_is_not_there(frontend):
    with pytest.raises(ConfigError, match="cart_joint is 'rail'; allowed: slider_to_cart, cart_to_pole"):
        make(frontend, num_envs=1, cart_joint="rail")


@on_frontends
def test_a_cart_that_takes_no_effort(frontend):
    robot = task_spec("Cartpole-Direct").load_env_cfg().scene.robot
    robot.actuators["cart"].mode = "position"
    scene = task_spec("Cartpole-Direct").load_env_cfg().scene
    scene.robot = robot
    with pytest.raises(ConfigError, match="slider_to_cart is in mode 'position' or 'velocity'; allowed: 'effort'"):
        make(frontend, num_envs=1, scene=scene)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"reset_pole_vel_range": (1.0, 0.0)}, r"reset_pole_vel_range is \(1.0, 0.0\); allowed: two finite numbers"),
        ({"max_cart_pos": 0.0}, "max_cart_pos is 0.0; allowed: a finite number above 0"),
        ({"action_scale": float("nan")}, "action_scale is nan; allowed: a finite number"),
    ],
)
def test_values_that_are_not_allowed(fields, message):
    with pytest.raises(ConfigError, match=message):
        make("warp", num_envs=1, **fields)


@pytest.mark.slow
@on_frontends
def test_the_task_is_learnt_within_its_iterations(frontend, tmp_path, capsys):
    """With 64 environments on a CPU, at seed 42. A whole episode upright is worth 5."""
    argv = ["Cartpole-Direct", "--num-envs", "64", "--device", "cpu", "--frontend", frontend]
    assert main(["train", *argv, "--log-dir", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    assert main(["play", *argv, "--checkpoint", str(tmp_path / "run"), "--num-episodes", "64", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["mean_return"] > 4.0 and result["overflow"] is None
