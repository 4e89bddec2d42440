"""Events, actions, commands and a curriculum give the same numbers, bit by bit, in all launch modes."""

from __future__ import annotations

import numpy as np
import torch
from support.mdp_envs import make_ants, snapshot

from treadle import mdp
from treadle.managers import CurriculumTermCfg, EventTermCfg, RewardTermCfg, SceneEntityCfg, TerminationTermCfg

XY = {"x": (-0.5, 0.5), "y": (-0.5, 0.5)}
SCALE = {"operation": "scale"}
EVENTS = {
    "mass": EventTermCfg(func=mdp.randomize_rigid_body_mass, params={"mass_distribution_params": (0.8, 1.2)} | SCALE),
    "material": EventTermCfg(
        func=mdp.randomize_rigid_body_material,
        params={"static_friction_range": (0.5, 1.0), "dynamic_friction_range": (0.5, 1.0)},
    ),
    "gains": EventTermCfg(
        func=mdp.randomize_actuator_gains, params={"stiffness_distribution_params": (0.8, 1.2)} | SCALE
    ),
    "wrench": EventTermCfg(
        func=mdp.apply_external_force_torque,
        params={
            "force_range": (-1.0, 1.0),
            "torque_range": (-0.1, 0.1),
            "asset_cfg": SceneEntityCfg(body_names="torso"),
        },
        min_step_count_between_reset=8,
    ),
    "root": EventTermCfg(func=mdp.reset_root_state_uniform, params={"pose_range": XY, "velocity_range": XY}),
    "joints": EventTermCfg(
        func=mdp.reset_joints_by_offset, params={"position_range": (-0.2, 0.2), "velocity_range": (-0.1, 0.1)}
    ),
    "push": EventTermCfg(
        func=mdp.push_by_setting_velocity,
        params={"velocity_range": XY},
        mode="interval",
        interval_range_s=(0.05, 0.1),
    ),
}


def run(mode: str) -> list[dict[str, np.ndarray]]:
    weight = {"term_name": "alive", "weight": 0.5, "num_steps": 30}
    env = make_ants(
        mode=mode,
        num_envs=3,
        episode_length_s=0.4,
        events=EVENTS,
        actions={
            "legs": mdp.EMAJointPositionToLimitsActionCfg(joint_names=".*_leg", alpha=0.5),
            "feet": mdp.JointEffortActionCfg(joint_names=".*_foot", scale=5.0),
        },
        commands={
            "velocity": mdp.UniformVelocityCommandCfg(
                ranges=mdp.VelocityRanges(heading=(-3.0, 3.0)), heading_command=True, resampling_time_range=(0.1, 0.2)
            )
        },
        rewards={"alive": RewardTermCfg(func=mdp.is_alive)},
        terminations={"time_out": TerminationTermCfg(func=mdp.time_out, time_out=True)},
        curriculum={"alive": CurriculumTermCfg(func=mdp.modify_reward_weight, params=weight)},
    )
    env.reset(seed=5)
    env.episode_length_buf = torch.tensor([0, 7, 15])
    generator = torch.Generator().manual_seed(2)
    states = []
    for _ in range(60):
        env.step(torch.rand(3, 8, generator=generator) * 2.0 - 1.0)
        states.append(snapshot(env) | {"command": env.command_manager.get_command("velocity").numpy().copy()})
    if mode == "graph":
        assert env.pipeline.graph_count == 1
    env.close()
    return states


def test_all_modes_are_equal_bit_by_bit():
    eager = run("eager")
    for mode in ("replay", "graph"):
        for step, (expected, got) in enumerate(zip(eager, run(mode), strict=True)):
            for name, values in expected.items():
                assert values.tobytes() == got[name].tobytes(), f"{name}, step {step}, {mode}"
