"""Configuration of the manager-based cartpole task. Source of the constants: Isaac Lab 3.0, task ``Cartpole``."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from treadle import mdp
from treadle.envs import ManagerBasedRLEnvCfg
from treadle.managers import (
    ActionTermCfg,
    EventTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    SceneEntityCfg,
    TerminationTermCfg,
)
from treadle.physics import MJWarpSolverCfg, SimulationCfg
from treadle.scene import SceneCfg
from treadle.tasks.cartpole.mdp import joint_pos_target_l2
from treadle.tasks.cartpole.robot import cartpole_articulation

__all__ = ["CartpoleEnvCfg"]


def _cart() -> SceneEntityCfg:
    return SceneEntityCfg(joint_names="slider_to_cart")


def _pole() -> SceneEntityCfg:
    return SceneEntityCfg(joint_names="cart_to_pole")


def _observations() -> dict[str, ObservationGroupCfg | None]:
    terms: dict[str, ObservationTermCfg | None] = {
        "joint_pos_rel": ObservationTermCfg(func=mdp.joint_pos_rel),
        "joint_vel_rel": ObservationTermCfg(func=mdp.joint_vel_rel),
    }
    return {"policy": ObservationGroupCfg(terms=terms)}


def _actions() -> dict[str, ActionTermCfg]:
    return {"joint_effort": mdp.JointEffortActionCfg(joint_names="slider_to_cart", scale=100.0)}


def _rewards() -> dict[str, RewardTermCfg | None]:
    return {
        "alive": RewardTermCfg(func=mdp.is_alive, weight=1.0),
        "terminating": RewardTermCfg(func=mdp.is_terminated, weight=-2.0),
        "pole_pos": RewardTermCfg(func=joint_pos_target_l2, params={"asset_cfg": _pole(), "target": 0.0}, weight=-1.0),
        "cart_vel": RewardTermCfg(func=mdp.joint_vel_l1, params={"asset_cfg": _cart()}, weight=-0.01),
        "pole_vel": RewardTermCfg(func=mdp.joint_vel_l1, params={"asset_cfg": _pole()}, weight=-0.005),
        "success_rate": RewardTermCfg(func=mdp.survival_success_rate, weight=0.0),
    }


def _terminations() -> dict[str, TerminationTermCfg | None]:
    return {
        "time_out": TerminationTermCfg(func=mdp.time_out, time_out=True),
        "cart_out_of_bounds": TerminationTermCfg(
            func=mdp.joint_pos_out_of_manual_limit, params={"asset_cfg": _cart(), "bounds": (-3.0, 3.0)}
        ),
    }


def _events() -> dict[str, EventTermCfg | None]:
    quarter = math.pi / 4.0
    return {
        "reset_cart_position": EventTermCfg(
            func=mdp.reset_joints_by_offset,
            params={"asset_cfg": _cart(), "position_range": (-1.0, 1.0), "velocity_range": (-0.5, 0.5)},
        ),
        "reset_pole_position": EventTermCfg(
            func=mdp.reset_joints_by_offset,
            params={
                "asset_cfg": _pole(),
                "position_range": (-quarter, quarter),
                "velocity_range": (-quarter, quarter),
            },
        ),
    }


@dataclass(kw_only=True)
class CartpoleEnvCfg(ManagerBasedRLEnvCfg):
    """A cart on a rail balances a pole: 4 observations, 1 action."""

    decimation: int = 2
    """Physics steps per environment step."""
    episode_length_s: float = 5.0
    """Length of an episode [s]."""
    observations: dict[str, ObservationGroupCfg | None] = field(default_factory=_observations)
    """Observation groups by name."""
    actions: dict[str, ActionTermCfg] = field(default_factory=_actions)
    """Action terms by name."""
    rewards: dict[str, RewardTermCfg | None] = field(default_factory=_rewards)
    """Reward terms by name."""
    terminations: dict[str, TerminationTermCfg | None] = field(default_factory=_terminations)
    """Termination terms by name."""
    events: dict[str, EventTermCfg | None] = field(default_factory=_events)
    """Event terms by name."""
    sim: SimulationCfg = field(
        default_factory=lambda: SimulationCfg(dt=1.0 / 120.0, solver=MJWarpSolverCfg(njmax=5, nconmax=3))
    )
    """The simulation."""
    scene: SceneCfg = field(
        default_factory=lambda: SceneCfg(num_envs=4096, env_spacing=4.0, robot=cartpole_articulation())
    )
    """The scene."""
