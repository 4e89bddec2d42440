"""Configuration of the cartpole tasks. Source of the constants: Isaac Lab 3.0, task ``Cartpole-Direct``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, fields

from treadle._checks import is_finite
from treadle.envs import DirectEnvCfg
from treadle.physics import MJWarpSolverCfg, SimulationCfg
from treadle.scene import SceneCfg
from treadle.tasks.cartpole.robot import cartpole_articulation

__all__ = ["CartpoleDirectEnvCfg", "CartpoleRewardCfg"]


@dataclass(kw_only=True)
class CartpoleRewardCfg:
    """Weights of the reward terms. Each term is multiplied by the step time."""

    alive: float = 1.0
    """1 unless the episode ended in a terminal state."""
    terminating: float = -2.0
    """1 when the episode ended in a terminal state."""
    pole_pos: float = -1.0
    """Square of the pole's angle from upright, wrapped to [-pi, pi]."""
    cart_vel: float = -0.01
    """Absolute velocity of the cart [m/s]."""
    pole_vel: float = -0.005
    """Absolute velocity of the pole [rad/s]."""


@dataclass(kw_only=True)
class CartpoleDirectEnvCfg(DirectEnvCfg):
    """A cart on a rail balances a pole: 4 observations, 1 action."""

    decimation: int = 2
    """Physics steps per environment step."""
    episode_length_s: float = 5.0
    """Length of an episode [s]."""
    cart_joint: str = "slider_to_cart"
    """Name of the joint that the action drives."""
    pole_joint: str = "cart_to_pole"
    """Name of the joint that is to stay upright, at angle 0."""
    action_scale: float = 100.0
    """Effort on the cart = ``action_scale`` * action [N], the action not clamped."""
    max_cart_pos: float = 3.0
    """The episode terminates when the cart is farther than this from the middle of the rail [m]."""
    reset_cart_pos_range: tuple[float, float] = (-1.0, 1.0)
    """Uniform offset of the cart's position at a reset [m], then clamped to the soft limits."""
    reset_cart_vel_range: tuple[float, float] = (-0.5, 0.5)
    """Uniform offset of the cart's velocity at a reset [m/s]."""
    reset_pole_pos_range: tuple[float, float] = (-math.pi / 4.0, math.pi / 4.0)
    """Uniform offset of the pole's angle at a reset [rad]."""
    reset_pole_vel_range: tuple[float, float] = (-math.pi / 4.0, math.pi / 4.0)
    """Uniform offset of the pole's velocity at a reset [rad/s]."""
    rewards: CartpoleRewardCfg = field(default_factory=CartpoleRewardCfg)
    """Weights of the reward terms."""
    sim: SimulationCfg = field(
        default_factory=lambda: SimulationCfg(dt=1.0 / 120.0, solver=MJWarpSolverCfg(njmax=5, nconmax=3))
    )
    """The simulation."""
    scene: SceneCfg = field(
        default_factory=lambda: SceneCfg(num_envs=4096, env_spacing=4.0, robot=cartpole_articulation())
    )
    """The scene."""

    def problems(self) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed, over the whole configuration."""
        yield from super().problems()
        if not is_finite(self.action_scale):
            yield f"action_scale is {self.action_scale}; allowed: a finite number"
        if not (is_finite(self.max_cart_pos) and self.max_cart_pos > 0.0):
            yield f"max_cart_pos is {self.max_cart_pos}; allowed: a finite number above 0"
        for joint, quantity in (("cart", "pos"), ("cart", "vel"), ("pole", "pos"), ("pole", "vel")):
            name = f"reset_{joint}_{quantity}_range"
            lower, upper = getattr(self, name)
            if not (is_finite(lower, upper) and lower <= upper):
                yield f"{name} is {(lower, upper)}; allowed: two finite numbers, the lower end first"
        for weight in fields(self.rewards):
            value = getattr(self.rewards, weight.name)
            if not is_finite(value):
                yield f"rewards.{weight.name} is {value}; allowed: a finite number"
