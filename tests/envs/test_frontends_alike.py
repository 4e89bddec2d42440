"""What both frontends share: draws, partial resets, and a configuration that can't be changed behind a graph's back."""

from __future__ import annotations

import copy

import pytest
import torch
from support.ant import make_ant, random_actions

from treadle.errors import ConfigError


def test_both_frontends_start_alike_and_stay_close():
    warp, torch_env = make_ant(num_envs=5), make_ant(num_envs=5, frontend="torch")
    first, second = (env.reset(seed=3)[0]["policy"] for env in (warp, torch_env))
    assert torch.equal(first[:, 12:28], second[:, 12:28]), "the same draws"
    for action in random_actions(warp, 30):
        one, two = (env.step(action)[0]["policy"] for env in (warp, torch_env))
        torch.testing.assert_close(one, two, rtol=1e-3, atol=1e-3)


def test_draws_do_not_depend_on_the_number_of_environments():
    few, many = (make_ant(num_envs=n, frontend="torch").reset(seed=3)[0]["policy"] for n in (2, 7))
    assert torch.equal(few[:, 12:28], many[:2, 12:28])


@pytest.mark.parametrize("frontend", ["warp", "torch"])
def test_a_reset_of_some_environments(frontend):
    env = make_ant(num_envs=4, frontend=frontend)
    env.reset(seed=0)
    for action in random_actions(env, 5):
        before = env.step(action)[0]["policy"]
    state, random_state = env.physics.joint_q.numpy().copy(), env.buffers.random_state.numpy().copy()
    after, _ = env.reset(env_ids=torch.tensor([1, 3]))
    assert env.episode_length_buf.tolist() == [5, 0, 5, 0]
    assert torch.equal(after["policy"][[0, 2]], before[[0, 2]])
    assert not torch.equal(after["policy"][1], before[1])
    assert (env.physics.joint_q.numpy()[[0, 2]] == state[[0, 2]]).all()
    assert (env.buffers.random_state.numpy() != random_state).tolist() == [False, True, False, True]
    with pytest.raises(ConfigError, match="env_ids run from 4 to 4; allowed: 0 to 3"):
        env.reset(env_ids=[4])


def test_the_configuration_in_use_can_not_be_changed():
    env = make_ant(num_envs=1)
    for change in (
        lambda cfg: setattr(cfg, "termination_height", 5.0),
        lambda cfg: setattr(cfg.rewards, "alive", 100.0),
        lambda cfg: setattr(cfg.scene.robot.actuators["body"], "damping", 1.0),
        lambda cfg: cfg.joint_gears.update({".*": 1.0}),
    ):
        with pytest.raises(ConfigError, match="in use by an environment"):
            change(env.cfg)
    changed = copy.deepcopy(env.cfg)
    changed.rewards.alive, changed.joint_gears[".*"] = 7.0, 3.0
    assert type(changed).__name__ == "AntDirectEnvCfg" and env.cfg.rewards.alive == 0.5
    changed.validate()


def test_targets_and_root_states_are_written_where_asked():
    env = make_ant(num_envs=3)
    env.reset()
    robot = env.robot
    robot.set_joint_effort_target(torch.full((3, 2), 4.0), joint_ids=[1, 5])
    assert robot.data.torch.joint_effort_target[0].tolist() == [0.0, 4.0, 0.0, 0.0, 0.0, 4.0, 0.0, 0.0]
    robot.set_joint_position_target(torch.full((3, 8), 0.5))
    assert (robot.data.joint_pos_target.numpy() == 0.5).all()
    pose = torch.tensor([[1.0, 2.0, 3.0, 0.0, 0.0, 1.0, 0.0]]).repeat(3, 1)
    velocity = torch.arange(6.0).repeat(3, 1)
    before = env.physics.joint_q.numpy().copy()
    robot.write_root_state_to_sim(pose, velocity, torch.tensor([False, True, False]))
    origins = env.scene.env_origins.numpy()
    assert env.physics.joint_q.numpy()[1, :7] == pytest.approx([*(origins[1] + (1.0, 2.0, 3.0)), 0.0, 0.0, 1.0, 0.0])
    assert env.physics.joint_qd.numpy()[1, :6].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert (env.physics.joint_q.numpy()[[0, 2]] == before[[0, 2]]).all()


def test_the_friction_of_the_ground_decides():
    def slide(friction: float) -> float:
        env = make_ant(num_envs=1, mode="graph", termination_height=-1.0)
        cfg = copy.deepcopy(env.cfg)
        cfg.sim.ground_friction = friction
        env = type(env)(cfg)
        env.reset(seed=0)
        env.physics.joint_qd.fill_(0.0)
        env.physics.joint_q.numpy()[0, 2] = 0.36
        env.physics.joint_qd.numpy()[0, 0] = 2.0
        for _ in range(60):
            env.step(torch.zeros(1, 8))
        return float(env.robot.data.root_pos_w.numpy()[0, 0])

    assert slide(0.01) > 1.2 > 0.8 > slide(1.0)
