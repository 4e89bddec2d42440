"""The direct locomotion task in plain torch."""

from __future__ import annotations

from typing import ClassVar

import torch

from treadle.assets.articulation_data import torch_view
from treadle.envs import DirectTorchEnv
from treadle.mdp import math_torch
from treadle.tasks.locomotion.cfg import LocomotionEnvCfg
from treadle.tasks.locomotion.common import REWARD_TERMS, LocomotionParts

__all__ = ["LocomotionTorchEnv"]


class LocomotionTorchEnv(DirectTorchEnv):
    """A robot runs towards a target that it never reaches."""

    cfg: LocomotionEnvCfg
    reward_terms: ClassVar[tuple[str, ...]] = REWARD_TERMS

    def _setup(self) -> tuple[int, dict[str, int]]:
        self.parts = LocomotionParts(self, self.cfg)
        self.sensors.append(self.parts.feet)
        self._gears = torch_view(self.parts.joint_gears)
        self._gear_ratio = torch_view(self.parts.gear_ratio)
        self._targets = torch_view(self.parts.targets_w)
        self._distance = torch_view(self.parts.target_distance)
        self._wrench = torch_view(self.parts.feet.wrench)
        self._origins = torch_view(self.scene.env_origins)
        return self.robot.num_joints, {"policy": self.parts.num_observations}

    def _process_actions(self) -> None:
        actions = self.buffers.torch.actions.clamp(-1.0, 1.0)
        self.robot.data.torch.joint_effort_target.copy_(self.cfg.action_scale * self._gears * actions)

    def _get_terminations(self) -> torch.Tensor:
        height = self.robot.data.torch.root_pos_w[:, 2] - self._origins[:, 2]
        return height < self.cfg.termination_height

    def _get_rewards(self) -> dict[str, torch.Tensor]:
        cfg, data = self.cfg, self.robot.data.torch
        actions = self.buffers.torch.actions
        alive = (~self.buffers.torch.terminated).float()
        heading = self._heading_projection()
        excess = (self._normalized_joint_pos().abs() - cfg.joint_limit_threshold) / (1.0 - cfg.joint_limit_threshold)
        raw = {
            "progress": self._progress(),
            "alive": alive,
            "upright": (-data.projected_gravity_b[:, 2] > cfg.upright_threshold).float(),
            "move_to_target": torch.where(heading > cfg.heading_threshold, 1.0, heading / cfg.heading_threshold),
            "action_l2": actions.square().sum(dim=1),
            "energy": (actions * data.joint_vel * self._gear_ratio).abs().sum(dim=1),
            "joint_pos_limits": (excess.clamp(min=0.0) * self._gear_ratio).sum(dim=1),
            "terminating": (1.0 - alive) / self.step_dt,
        }
        return {name: value * (getattr(cfg.rewards, name) * self.step_dt) for name, value in raw.items()}

    def _reset_task(self) -> None:
        cfg, data = self.cfg, self.robot.data.torch
        self.robot.write_default_root_state_to_sim(self.physics.reset_mask)
        joints = self.robot.num_joints
        joint_pos = data.default_joint_pos + self.rand(joints, *cfg.reset_joint_pos_range)
        joint_vel = data.default_joint_vel + self.rand(joints, *cfg.reset_joint_vel_range)
        joint_pos = joint_pos.clamp(data.soft_joint_pos_lower, data.soft_joint_pos_upper)
        self.robot.write_joint_state_to_sim(joint_pos, joint_vel, self.reset_mask)
        start = data.default_root_pose[:, :3] + self._origins
        self._distance.copy_(torch.where(self.reset_mask, self._ground_distance(start), self._distance))

    def _get_observations(self) -> dict[str, torch.Tensor]:
        cfg, data = self.cfg, self.robot.data.torch
        yaw, roll = math_torch.yaw(data.root_quat_w), math_torch.roll(data.root_quat_w)
        to_target = self._targets - data.root_pos_w
        angle = math_torch.wrap_to_pi(torch.atan2(to_target[:, 1], to_target[:, 0]) - yaw)
        columns = [
            data.root_pos_w[:, 2] - self._origins[:, 2],
            data.root_lin_vel_b,
            data.root_ang_vel_b * cfg.ang_vel_scale,
            yaw,
            roll,
            angle,
            -data.projected_gravity_b[:, 2],
            self._heading_projection(),
            self._normalized_joint_pos(),
            (data.joint_vel - data.default_joint_vel) * cfg.joint_vel_scale,
            self._wrench.flatten(1) * cfg.contact_force_scale,
            self.buffers.torch.actions,
        ]
        return {"policy": torch.cat([c.reshape(self.num_envs, -1) for c in columns], dim=1)}

    def _progress(self) -> torch.Tensor:
        """Return the speed towards the target [m/s], and remember the distance for the next step."""
        distance = self._ground_distance(self.robot.data.torch.root_pos_w)
        speed = (self._distance - distance).float() / self.step_dt
        self._distance.copy_(distance)
        return speed

    def _ground_distance(self, root_pos: torch.Tensor) -> torch.Tensor:
        """Return the distance to the target in the ground plane [m], float64; see ``ground_distance`` in ``funcs``."""
        return (self._targets.double() - root_pos.double())[:, :2].norm(dim=1)

    def _heading_projection(self) -> torch.Tensor:
        data = self.robot.data.torch
        direction = torch.nn.functional.normalize((self._targets - data.root_pos_w)[:, :2], dim=1)
        x, y, z, w = data.root_quat_w.unbind(dim=1)
        forward = torch.stack((1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + w * z)), dim=1)
        return (forward * direction).sum(dim=1)

    def _normalized_joint_pos(self) -> torch.Tensor:
        data = self.robot.data.torch
        return math_torch.normalized_position(data.joint_pos, data.soft_joint_pos_lower, data.soft_joint_pos_upper)
