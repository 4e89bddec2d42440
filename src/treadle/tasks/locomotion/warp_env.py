"""The direct locomotion task in Warp."""

from __future__ import annotations

from typing import ClassVar

import warp as wp

from treadle.envs import DirectWarpEnv
from treadle.tasks.locomotion.cfg import LocomotionEnvCfg
from treadle.tasks.locomotion.common import REWARD_TERMS, LocomotionParts
from treadle.tasks.locomotion.kernels import RewardParams, observe, process_actions, reset_robot, reward, terminate

__all__ = ["LocomotionWarpEnv"]


class LocomotionWarpEnv(DirectWarpEnv):
    """A robot runs towards a target that it never reaches."""

    cfg: LocomotionEnvCfg
    reward_terms: ClassVar[tuple[str, ...]] = REWARD_TERMS

    def _setup(self) -> tuple[int, dict[str, int]]:
        self.parts = LocomotionParts(self, self.cfg)
        self.sensors.append(self.parts.feet)
        self._reward_params = _reward_params(self.cfg)
        self._position_range = wp.vec2(*self.cfg.reset_joint_pos_range)
        self._velocity_range = wp.vec2(*self.cfg.reset_joint_vel_range)
        return self.robot.num_joints, {"policy": self.parts.num_observations}

    def _process_actions(self) -> None:
        self.scope.launches.launch(
            process_actions,
            self.buffers.actions.shape,
            [self.buffers.actions, self.parts.joint_gears, self.cfg.action_scale],
            [self.robot.data.joint_effort_target],
        )

    def _compute_terminations(self) -> None:
        self._launch_per_env(
            terminate,
            [self.robot.data.root_pos_w, self.scene.env_origins, self.cfg.termination_height],
            [self.buffers.terminated],
        )

    def _compute_rewards(self) -> None:
        data, parts, buffers = self.robot.data, self.parts, self.buffers
        self._launch_per_env(
            reward,
            [
                self._reward_params,
                buffers.terminated,
                buffers.actions,
                data.root_pos_w,
                data.root_quat_w,
                data.projected_gravity_b,
                data.joint_pos,
                data.joint_vel,
                data.soft_joint_pos_lower,
                data.soft_joint_pos_upper,
                parts.gear_ratio,
                parts.targets_w,
            ],
            [parts.target_distance, buffers.reward_terms],
        )

    def _reset_task(self) -> None:
        data, parts = self.robot.data, self.parts
        env_mask = self.physics.reset_mask
        self.robot.write_default_root_state_to_sim(env_mask)
        self._launch_per_env(
            reset_robot,
            [
                env_mask,
                data.default_joint_pos,
                data.default_joint_vel,
                data.soft_joint_pos_lower,
                data.soft_joint_pos_upper,
                self._position_range,
                self._velocity_range,
                data.default_root_pose,
                self.scene.env_origins,
                parts.targets_w,
            ],
            [self.buffers.random_state, data.joint_pos, data.joint_vel, parts.target_distance],
        )

    def _compute_observations(self) -> None:
        data, parts = self.robot.data, self.parts
        self._launch_per_env(
            observe,
            [
                data.root_pos_w,
                data.root_quat_w,
                data.root_lin_vel_b,
                data.root_ang_vel_b,
                data.projected_gravity_b,
                data.joint_pos,
                data.joint_vel,
                data.default_joint_vel,
                data.soft_joint_pos_lower,
                data.soft_joint_pos_upper,
                parts.feet.wrench,
                self.buffers.actions,
                self.scene.env_origins,
                parts.targets_w,
                self.cfg.ang_vel_scale,
                self.cfg.joint_vel_scale,
                self.cfg.contact_force_scale,
            ],
            [self.buffers.observations["policy"]],
        )


def _reward_params(cfg: LocomotionEnvCfg) -> RewardParams:
    params = RewardParams()
    for name in REWARD_TERMS:
        weight = getattr(cfg.rewards, name)
        setattr(params, name, weight if name == "terminating" else weight * cfg.step_dt)
    params.upright_threshold = cfg.upright_threshold
    params.heading_threshold = cfg.heading_threshold
    params.joint_limit_threshold = cfg.joint_limit_threshold
    params.step_dt = cfg.step_dt
    return params
