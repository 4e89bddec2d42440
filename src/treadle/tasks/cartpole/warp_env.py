"""The direct cartpole task in Warp."""

from __future__ import annotations

from typing import ClassVar

import warp as wp

from treadle.envs import DirectWarpEnv
from treadle.tasks.cartpole.cfg import CartpoleDirectEnvCfg
from treadle.tasks.cartpole.common import NUM_OBSERVATIONS, REWARD_TERMS, find_joints
from treadle.tasks.cartpole.kernels import (
    RewardWeights,
    StartRanges,
    drive_cart,
    observe,
    reset_joints,
    reward,
    terminate,
)

__all__ = ["CartpoleWarpEnv"]


class CartpoleWarpEnv(DirectWarpEnv):
    """A cart on a rail balances a pole."""

    cfg: CartpoleDirectEnvCfg
    reward_terms: ClassVar[tuple[str, ...]] = REWARD_TERMS

    def _setup(self) -> tuple[int, dict[str, int]]:
        self._cart, self._pole = find_joints(self.robot, self.cfg)
        self._weights = RewardWeights()
        for name in REWARD_TERMS:
            setattr(self._weights, name, getattr(self.cfg.rewards, name) * self.step_dt)
        self._ranges = StartRanges()
        for name in ("cart_pos", "cart_vel", "pole_pos", "pole_vel"):
            setattr(self._ranges, name, wp.vec2(*getattr(self.cfg, f"reset_{name}_range")))
        return 1, {"policy": NUM_OBSERVATIONS}

    def _process_actions(self) -> None:
        self._launch_per_env(
            drive_cart,
            [self.buffers.actions, self.cfg.action_scale, self._cart],
            [self.robot.data.joint_effort_target],
        )

    def _compute_terminations(self) -> None:
        inputs = [self.robot.data.joint_pos, self._cart, self.cfg.max_cart_pos]
        self._launch_per_env(terminate, inputs, [self.buffers.terminated])

    def _compute_rewards(self) -> None:
        data, buffers = self.robot.data, self.buffers
        self._launch_per_env(
            reward,
            [self._weights, buffers.terminated, data.joint_pos, data.joint_vel, self._cart, self._pole],
            [buffers.reward_terms],
        )

    def _reset_task(self) -> None:
        data = self.robot.data
        self._launch_per_env(
            reset_joints,
            [
                self.physics.reset_mask,
                data.default_joint_pos,
                data.default_joint_vel,
                data.soft_joint_pos_lower,
                data.soft_joint_pos_upper,
                self._ranges,
                self._cart,
                self._pole,
            ],
            [self.buffers.random_state, data.joint_pos, data.joint_vel],
        )

    def _compute_observations(self) -> None:
        data = self.robot.data
        self._launch_per_env(
            observe,
            [
                data.joint_pos,
                data.joint_vel,
                data.default_joint_pos,
                data.default_joint_vel,
                self._cart,
                self._pole,
            ],
            [self.buffers.observations["policy"]],
        )
