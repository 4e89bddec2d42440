"""The direct cartpole task in plain torch."""

from __future__ import annotations

from typing import ClassVar

import torch

from treadle.envs import DirectTorchEnv
from treadle.tasks.cartpole.cfg import CartpoleDirectEnvCfg
from treadle.tasks.cartpole.common import NUM_OBSERVATIONS, REWARD_TERMS, find_joints

__all__ = ["CartpoleTorchEnv"]


class CartpoleTorchEnv(DirectTorchEnv):
    """A cart on a rail balances a pole."""

    cfg: CartpoleDirectEnvCfg
    reward_terms: ClassVar[tuple[str, ...]] = REWARD_TERMS

    def _setup(self) -> tuple[int, dict[str, int]]:
        self._cart, self._pole = find_joints(self.robot, self.cfg)
        return 1, {"policy": NUM_OBSERVATIONS}

    def _process_actions(self) -> None:
        self.robot.set_joint_effort_target(self.cfg.action_scale * self.buffers.torch.actions, [self._cart])

    def _get_terminations(self) -> torch.Tensor:
        return self.robot.data.torch.joint_pos[:, self._cart].abs() > self.cfg.max_cart_pos

    def _get_rewards(self) -> dict[str, torch.Tensor]:
        data = self.robot.data.torch
        terminated = self.buffers.torch.terminated.float()
        angle = data.joint_pos[:, self._pole]
        angle = torch.atan2(angle.sin(), angle.cos())
        raw = {
            "alive": 1.0 - terminated,
            "terminating": terminated,
            "pole_pos": angle.square(),
            "cart_vel": data.joint_vel[:, self._cart].abs(),
            "pole_vel": data.joint_vel[:, self._pole].abs(),
        }
        return {name: value * (getattr(self.cfg.rewards, name) * self.step_dt) for name, value in raw.items()}

    def _reset_task(self) -> None:
        cfg, data = self.cfg, self.robot.data.torch
        joint_pos, joint_vel = data.default_joint_pos.clone(), data.default_joint_vel.clone()
        # The draws come in the order of the Warp form.
        joint_pos[:, self._cart] += self.rand(1, *cfg.reset_cart_pos_range)[:, 0]
        joint_vel[:, self._cart] += self.rand(1, *cfg.reset_cart_vel_range)[:, 0]
        joint_pos[:, self._pole] += self.rand(1, *cfg.reset_pole_pos_range)[:, 0]
        joint_vel[:, self._pole] += self.rand(1, *cfg.reset_pole_vel_range)[:, 0]
        joint_pos = joint_pos.clamp(data.soft_joint_pos_lower, data.soft_joint_pos_upper)
        self.robot.write_joint_state_to_sim(joint_pos, joint_vel, self.reset_mask)

    def _get_observations(self) -> dict[str, torch.Tensor]:
        data = self.robot.data.torch
        joints = [self._cart, self._pole]
        joint_pos = (data.joint_pos - data.default_joint_pos)[:, joints]
        joint_vel = (data.joint_vel - data.default_joint_vel)[:, joints]
        return {"policy": torch.cat((joint_pos, joint_vel), dim=1)}
