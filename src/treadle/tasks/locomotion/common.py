"""What both forms of the locomotion task share: the sensor, the gears and the targets."""

from __future__ import annotations

import numpy as np
import warp as wp

from treadle.assets import Articulation
from treadle.assets.names import values_by_name
from treadle.envs import DirectEnv
from treadle.errors import ConfigError
from treadle.sensors import JointWrenchSensor
from treadle.tasks.locomotion.cfg import LocomotionEnvCfg

__all__ = ["REWARD_TERMS", "LocomotionParts"]

REWARD_TERMS = (
    "progress",
    "alive",
    "upright",
    "move_to_target",
    "action_l2",
    "energy",
    "joint_pos_limits",
    "terminating",
)


class LocomotionParts:
    """Sensor and constant arrays of the task, made from its configuration.

    Args:
        env: The environment, with its scene built.
        cfg: Its configuration.

    Raises:
        ConfigError: ``feet_names`` matches nothing, or ``joint_gears`` leaves a joint out.
    """

    def __init__(self, env: DirectEnv, cfg: LocomotionEnvCfg):
        robot, physics = env.robot, env.physics
        _check_robot(robot)
        device = physics.device
        gears = np.array(values_by_name(cfg.joint_gears, robot.joint_names, "joint_gears"), dtype=np.float32)
        if gearless := [name for name, gear in zip(robot.joint_names, gears, strict=True) if gear == 0.0]:
            raise ConfigError(f"joint_gears leaves out {', '.join(gearless)}; allowed: a gear above 0 for every joint")
        targets = env.scene.env_origins.numpy() + np.array(cfg.target_pos, dtype=np.float32)
        self.feet = JointWrenchSensor(robot, cfg.feet_names, physics, env.scope.child("feet"))
        self.joint_gears = wp.array(gears, dtype=float, device=device)
        """Gear of each joint [N*m], shape (num_joints,)."""
        self.gear_ratio = wp.array(gears / gears.max(), dtype=float, device=device)
        """Gear of each joint as a share of the largest, shape (num_joints,)."""
        self.targets_w = wp.array(targets, dtype=wp.vec3, device=device)
        """Target of each environment, world frame [m], shape (num_envs,)."""
        self.target_distance = wp.zeros(env.num_envs, dtype=wp.float64, device=device)
        """Distance to the target in the ground plane at the last step [m], float64, shape (num_envs,)."""
        self.num_observations = 12 + 3 * robot.num_joints + 6 * len(self.feet.body_ids)


def _check_robot(robot: Articulation) -> None:
    """Raise unless efforts move the joints, and their positions can be observed as shares of their limits."""
    layout = robot.layout
    problems = []
    if held := [n for n, free in zip(robot.joint_names, layout.effort_controlled, strict=True) if not free]:
        problems.append(
            f"scene.robot.actuators: {', '.join(held)} are in mode 'position' or 'velocity'; allowed: 'effort'"
        )
    if free := [n for n, (low, up) in zip(robot.joint_names, layout.position_limits, strict=True) if up - low > 1e6]:
        problems.append(f"scene.robot: {', '.join(free)} have no position limits; allowed: joints with limits")
    if problems:
        raise ConfigError.from_problems(problems)
