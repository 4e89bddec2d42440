"""Curriculum terms change numbers in device memory, and recapture only for what is compiled in."""

from __future__ import annotations

import pytest
import torch
from support.mdp_envs import make_ants

from treadle import mdp
from treadle.errors import ConfigError, UnknownNameError
from treadle.managers import CurriculumTermCfg, EventTermCfg, RewardTermCfg, TerminationTermCfg

ZERO = torch.zeros(4, 4)


def captures(env) -> int:
    return env.scope.stats.graph_total("captures")


def invalidations(env) -> int:
    managers = ("reward", "event", "command", "termination", "action", "curriculum")
    return sum(len(list(getattr(env, f"{name}_manager").scope.invalidations)) for name in managers)


def at_step(env, env_mask, old, step, value):
    """Return a value from a step on."""
    return value if env.common_step_counter >= step else mdp.NO_CHANGE


def always(env, env_mask, old, value):
    """Return the same value at each step."""
    return value


def modify(address: str, value, fn=at_step, **params) -> CurriculumTermCfg:
    params = {"value": value} | ({"step": 6} if fn is at_step else {}) | params
    return CurriculumTermCfg(
        func=mdp.modify_term_cfg, params={"address": address, "modify_fn": fn, "modify_params": params}
    )


def stepped(steps: int, **fields):
    env = make_ants(mode="graph", **fields)
    env.reset(seed=1)
    for _ in range(steps):
        env.step(ZERO)
    return env


def test_a_reward_weight_changes_after_some_steps_without_a_capture():
    params = {"term_name": "alive", "weight": 5.0, "num_steps": 5}
    env = stepped(
        5,
        rewards={"alive": RewardTermCfg(func=mdp.is_alive, weight=1.0)},
        curriculum={"alive": CurriculumTermCfg(func=mdp.modify_reward_weight, params=params)},
    )
    before = captures(env)
    reward = [float(env.step(ZERO)[1][0]) / env.step_dt for _ in range(2)]
    assert reward == pytest.approx([5.0, 5.0])
    assert env.curriculum_manager.log() == {"Curriculum/alive": 5.0}
    assert captures(env) == before and invalidations(env) == 0
    env.close()


def test_numbers_of_events_commands_and_rewards_change_without_a_capture():
    push = EventTermCfg(
        func=mdp.push_by_setting_velocity,
        params={"velocity_range": {"x": (0.0, 0.0)}},
        mode="interval",
        interval_range_s=(0.01, 0.01),
    )
    command = mdp.UniformVelocityCommandCfg(resampling_time_range=(0.02, 0.02))
    env = stepped(
        5,
        rewards={"alive": RewardTermCfg(func=mdp.is_alive, weight=1.0)},
        events={"push": push},
        commands={"velocity": command},
        curriculum={
            "push": modify("events.push.params.velocity_range", {"x": (3.0, 3.0)}),
            "velocity": modify("commands.velocity.ranges.lin_vel_x", (7.0, 7.0)),
            "times": modify("commands.velocity.resampling_time_range", (0.01, 0.01)),
            "alive": modify("rewards.alive.weight", 2.0),
        },
    )
    before = captures(env)
    for _ in range(4):
        env.step(ZERO)
    assert float(env.robot.data.torch.root_lin_vel_w[:, 0].min()) > 5.0
    assert (env.command_manager.get_command("velocity")[:, 0] == 7.0).all()
    assert captures(env) == before and invalidations(env) == 0
    env.close()


def test_equal_values_invalidate_nothing_and_another_callable_once():
    same = modify("rewards.alive.weight", 1.0, always)
    callable_ = modify("rewards.alive.func", mdp.is_terminated)
    env = stepped(
        5,
        rewards={"alive": RewardTermCfg(func=mdp.is_alive, weight=1.0)},
        curriculum={"same": same, "callable": callable_},
    )
    before = captures(env)
    assert invalidations(env) == 0
    rewards = [float(env.step(ZERO)[1][0]) for _ in range(5)]
    assert rewards == [0.0] * 5
    assert list(env.reward_manager.scope.invalidations) == ["rewards.alive changed"]
    assert captures(env) == before + 1
    env.close()


def test_compiled_numbers_of_a_command_invalidate_once():
    command = mdp.UniformVelocityCommandCfg(resampling_time_range=(0.01, 0.01))
    env = stepped(
        5,
        commands={"velocity": command},
        curriculum={"standing": modify("commands.velocity.rel_standing_envs", 1.0)},
    )
    for _ in range(4):
        env.step(ZERO)
    assert not env.command_manager.get_command("velocity").any()
    assert list(env.command_manager.scope.invalidations) == ["commands.velocity changed"]
    env.close()


def test_an_array_of_the_environment_is_written_in_place():
    term = CurriculumTermCfg(
        func=mdp.modify_env_param,
        params={
            "address": "scene.robot.data.joint_effort_limits",
            "modify_fn": lambda env, env_mask, old: old * 0.0 + 3.0,
        },
    )
    env = stepped(3, curriculum={"limits": term})
    pointer = env.robot.data.joint_effort_limits.ptr
    before = captures(env)
    env.step(ZERO)
    assert env.robot.data.joint_effort_limits.ptr == pointer
    assert (env.robot.data.joint_effort_limits.numpy() == 3.0).all()
    assert captures(env) == before
    env.close()


def test_the_difficulty_follows_successes_of_the_environments_that_ended():
    params = {"success_term": "time_out", "max_difficulty": 3, "init_difficulty": 1}
    env = stepped(
        0,
        terminations={"time_out": TerminationTermCfg(func=mdp.time_out, time_out=True)},
        curriculum={"difficulty": CurriculumTermCfg(func=mdp.difficulty_scheduler, params=params)},
    )
    term = env.curriculum_manager.terms["difficulty"].instance
    env.episode_length_buf = torch.tensor([0, env.max_episode_length - 1, 0, env.max_episode_length - 1])
    env.step(ZERO)
    assert term.difficulty.numpy().tolist() == [1, 1, 1, 1]
    env.step(ZERO)
    assert term.difficulty.numpy().tolist() == [1, 2, 1, 2]
    env.step(ZERO)
    assert term.difficulty.numpy().tolist() == [1, 2, 1, 2]
    assert env.curriculum_manager.log() == {"Curriculum/difficulty": pytest.approx(0.5)}
    env.close()


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("rewards.alive.wait", "there is no 'wait' in a RewardTermCfg"),
        ("rewards.alife.weight", "alife"),
        ("prizes.alive.weight", "names no value of a term; allowed: <manager>"),
    ],
)
def test_a_wrong_address_says_what_is_allowed(address, message):
    env = make_ants(
        rewards={"alive": RewardTermCfg(func=mdp.is_alive)}, curriculum={"wrong": modify(address, 1.0, always)}
    )
    with pytest.raises((ConfigError, UnknownNameError), match=message):
        env.step(ZERO)
    env.close()
