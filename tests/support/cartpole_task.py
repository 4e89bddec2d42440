"""A task that lives outside of Treadle: balance the cartpole. Both forms, as short as a user would write them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import torch
import warp as wp
from support.scenes import cartpole_cfg

from treadle.envs import DirectEnvCfg, DirectTorchEnv, DirectWarpEnv
from treadle.physics import MJWarpSolverCfg, SimulationCfg
from treadle.registry import TaskSpec
from treadle.rl_cfg import OnPolicyRunnerCfg
from treadle.scene import SceneCfg

SPEC = TaskSpec(
    task_id="Test-Cartpole",
    description="Balance a pole",
    env_cfg="support.cartpole_task:CartpoleCfg",
    agent_cfg="support.cartpole_task:CartpoleRunnerCfg",
    frontends={"torch": "support.cartpole_task:CartpoleTorch", "warp": "support.cartpole_task:CartpoleWarp"},
)


@dataclass(kw_only=True)
class CartpoleCfg(DirectEnvCfg):
    """The cartpole."""

    episode_length_s: float = 5.0
    sim: SimulationCfg = field(default_factory=lambda: SimulationCfg(solver=MJWarpSolverCfg(njmax=5, nconmax=3)))
    scene: SceneCfg = field(default_factory=lambda: SceneCfg(num_envs=8, env_spacing=4.0, robot=cartpole_cfg()))
    action_scale: float = 100.0


@dataclass(kw_only=True)
class CartpoleRunnerCfg(OnPolicyRunnerCfg):
    """A learner."""


class CartpoleTorch(DirectTorchEnv):
    """In torch."""

    reward_terms: ClassVar = ("alive", "upright")

    def _setup(self):
        return 1, {"policy": 4}

    def _process_actions(self):
        self.robot.data.torch.joint_effort_target[:, :1] = self.cfg.action_scale * self.buffers.torch.actions

    def _get_terminations(self):
        return self.robot.data.torch.joint_pos[:, 0].abs() > 3.0

    def _get_rewards(self):
        alive = 1.0 - self.buffers.torch.terminated.float()
        angle = self.robot.data.torch.joint_pos[:, 1]
        return {"upright": -angle.square() * self.step_dt, "alive": alive * self.step_dt}

    def _reset_task(self):
        angle = torch.zeros(self.num_envs, 2) + self.rand(2, 0.1, 0.2)
        self.robot.write_joint_state_to_sim(angle, torch.zeros_like(angle), self.reset_mask)

    def _get_observations(self):
        return {"policy": torch.cat((self.robot.data.torch.joint_pos, self.robot.data.torch.joint_vel), dim=1)}


@wp.kernel
def drive(actions: wp.array2d[float], scale: float, effort_out: wp.array2d[float]):
    env = wp.tid()
    effort_out[env, 0] = scale * actions[env, 0]


@wp.kernel
def fail(joint_pos: wp.array2d[float], terminated_out: wp.array[wp.bool]):
    env = wp.tid()
    terminated_out[env] = wp.abs(joint_pos[env, 0]) > 3.0


@wp.kernel
def pay(terminated: wp.array[wp.bool], joint_pos: wp.array2d[float], dt: float, terms_out: wp.array2d[float]):
    env = wp.tid()
    terms_out[env, 0] = wp.where(terminated[env], 0.0, 1.0) * dt
    terms_out[env, 1] = -joint_pos[env, 1] * joint_pos[env, 1] * dt


@wp.kernel
def start(
    env_mask: wp.array[wp.bool],
    random_state_out: wp.array[wp.uint32],
    joint_pos_out: wp.array2d[float],
    joint_vel_out: wp.array2d[float],
):
    env = wp.tid()
    if env_mask[env]:
        state = random_state_out[env]
        for joint in range(2):
            joint_pos_out[env, joint] = wp.randf(state, 0.1, 0.2)
            joint_vel_out[env, joint] = 0.0
        random_state_out[env] = state


@wp.kernel
def look(joint_pos: wp.array2d[float], joint_vel: wp.array2d[float], observation_out: wp.array2d[float]):
    env = wp.tid()
    for joint in range(2):
        observation_out[env, joint] = joint_pos[env, joint]
        observation_out[env, 2 + joint] = joint_vel[env, joint]


class CartpoleWarp(DirectWarpEnv):
    """In Warp."""

    reward_terms: ClassVar = CartpoleTorch.reward_terms

    def _setup(self):
        return 1, {"policy": 4}

    def _process_actions(self):
        target = self.robot.data.joint_effort_target
        self._launch_per_env(drive, [self.buffers.actions, self.cfg.action_scale], [target])

    def _compute_terminations(self):
        self._launch_per_env(fail, [self.robot.data.joint_pos], [self.buffers.terminated])

    def _compute_rewards(self):
        inputs = [self.buffers.terminated, self.robot.data.joint_pos, self.step_dt]
        self._launch_per_env(pay, inputs, [self.buffers.reward_terms])

    def _reset_task(self):
        data = self.robot.data
        outputs = [self.buffers.random_state, data.joint_pos, data.joint_vel]
        self._launch_per_env(start, [self.physics.reset_mask], outputs)

    def _compute_observations(self):
        data = self.robot.data
        self._launch_per_env(look, [data.joint_pos, data.joint_vel], [self.buffers.observations["policy"]])
