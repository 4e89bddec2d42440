"""An ant with everything that happens between steps: resets, pushes, commands, a curriculum, noise and history."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.ant import assert_equal, make_task, random_actions, random_lengths, rollout

from treadle import mdp
from treadle.managers import (
    CurriculumTermCfg,
    EventTermCfg,
    ObservationTermCfg,
    RewardTermCfg,
    UniformNoiseCfg,
)
from treadle.registry import task_spec

STEPS = 300


def gain_after(env, env_mask, old_value, num_steps: int, std: float):
    """Return another standard deviation after some steps."""
    return std if env.common_step_counter > num_steps else mdp.NO_CHANGE


def busy_fields() -> dict:
    """Return what is changed of the ant's configuration."""
    cfg = task_spec("Ant").load_env_cfg()
    group = cfg.observations["policy"]
    group.enable_corruption = True
    group.terms["base_lin_vel"].noise = UniformNoiseCfg(n_min=-0.1, n_max=0.1)
    group.terms["base_ang_vel"].history_length = 3
    group.terms["joint_vel_rel"].delay_max_lag = 2
    group.terms["command"] = ObservationTermCfg(func=mdp.generated_commands, params={"command_name": "velocity"})
    ranges = mdp.UniformVelocityCommandCfg().ranges
    ranges.heading = (-3.0, 3.0)
    commands = {
        "velocity": mdp.UniformVelocityCommandCfg(
            resampling_time_range=(0.3, 0.6),
            ranges=ranges,
            heading_command=True,
            rel_standing_envs=0.2,
            rel_heading_envs=0.5,
        )
    }
    track = {"std": 0.5, "command_name": "velocity"}
    rewards = cfg.rewards | {"track": RewardTermCfg(func=mdp.track_lin_vel_xy_exp, weight=1.0, params=track)}
    pushes = {"x": (-1.0, 1.0), "y": (-1.0, 1.0)}
    events = cfg.events | {
        "push": EventTermCfg(
            func=mdp.push_by_setting_velocity,
            mode="interval",
            interval_range_s=(0.2, 0.5),
            params={"velocity_range": pushes},
        ),
        "gust": EventTermCfg(
            func=mdp.push_by_setting_velocity,
            mode="interval",
            interval_range_s=(0.4, 0.8),
            is_global_time=True,
            params={"velocity_range": {"z": (0.1, 0.5)}},
        ),
    }
    curriculum = {
        "alive": CurriculumTermCfg(
            func=mdp.modify_reward_weight, params={"term_name": "alive", "weight": 2.0, "num_steps": 100}
        ),
        "std": CurriculumTermCfg(
            func=mdp.modify_term_cfg,
            params={
                "address": "rewards.track.params.std",
                "modify_fn": gain_after,
                "modify_params": {"num_steps": 150, "std": 0.25},
            },
        ),
    }
    return {
        "observations": cfg.observations,
        "commands": commands,
        "rewards": rewards,
        "events": events,
        "curriculum": curriculum,
    }


def recorded(mode: str, frontend: str = "warp", device: str = "cpu"):
    env = make_task("Ant", mode=mode, frontend=frontend, num_envs=6, device=device, **busy_fields())
    run = rollout(env, random_actions(env, STEPS), random_lengths(env, env.max_episode_length - STEPS))
    captures, log = env.scope.stats.graph_total("captures"), env.pop_episode_log()
    env.close()
    return run, captures, log


def test_modes_are_bit_identical_over_everything_that_can_happen():
    (eager, _, eager_log), (replay, _, _), (graph, captures, log) = map(recorded, ("eager", "replay", "graph"))
    assert (eager["terminated"] | eager["truncated"]).sum() >= 6
    assert np.isfinite(eager["observation"]).all()
    assert_equal(eager, replay)
    assert_equal(eager, graph)
    assert captures == 1, "a curriculum of numbers needs no other graph"
    assert log == pytest.approx(eager_log, rel=1e-12)
    assert log["Curriculum/alive"] == 2.0
    assert {name for name in log if name.startswith("Metrics/velocity/")} == {
        "Metrics/velocity/error_vel_xy",
        "Metrics/velocity/error_vel_yaw",
    }


def test_both_frontends_draw_and_act_alike():
    (warp_run, _, _), (torch_run, _, _) = (recorded("graph", frontend) for frontend in ("warp", "torch"))
    np.testing.assert_array_equal(warp_run["random_state"], torch_run["random_state"])
    first = slice(0, 60)  # then the chaos of contacts has grown the last bits
    np.testing.assert_allclose(warp_run["observation"][first], torch_run["observation"][first], rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(warp_run["reward"][first], torch_run["reward"][first], rtol=1e-3, atol=1e-3)


def test_the_curriculum_acts():
    env = make_task("Ant", num_envs=4, **busy_fields())
    column = env.reward_manager.active_terms.index("alive")
    env.reset()
    for action in random_actions(env, 102):
        env.step(action)
        alive = env.buffers.torch.reward_terms[:, column][~env.buffers.torch.terminated]
        weight = 2.0 if env.common_step_counter > 100 else 0.5
        torch.testing.assert_close(alive, torch.full_like(alive, weight * env.step_dt))
