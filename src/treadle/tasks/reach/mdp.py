"""Reward terms of the reach tasks, each in torch and, for one environment, in Warp.

The command is a position [m] and a quaternion (x, y, z, w) in the frame of the root. The body is the one that
``asset_cfg`` names; where it names none, the body of the command.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import warp as wp

from treadle.assets.articulation_state import ArticulationState
from treadle.managers.command_manager import CommandState
from treadle.managers.scene_entity import SceneEntityCfg
from treadle.managers.twins import warp_twin
from treadle.mdp.pose_commands import orientation_error, pose_body, pose_errors, position_error

if TYPE_CHECKING:
    from treadle.envs import ManagerBasedRLEnv

__all__ = ["orientation_command_error", "position_command_error", "position_command_error_tanh"]

wp.set_module_options({"enable_backward": False})

ROBOT = SceneEntityCfg(name="robot")


def position_command_error(
    env: ManagerBasedRLEnv, command_name: str, asset_cfg: SceneEntityCfg = ROBOT
) -> torch.Tensor:
    """Distance of a body to its commanded position [m], shape (num_envs,)."""
    return pose_errors(env, command_name, asset_cfg)[0]


@warp_twin(position_command_error, extra=pose_body, consumes=("asset_cfg",))
def _(env: int, asset: ArticulationState, command: CommandState, body: int) -> float:
    return position_error(asset, command.command, env, body)


def position_command_error_tanh(
    env: ManagerBasedRLEnv, std: float, command_name: str, asset_cfg: SceneEntityCfg = ROBOT
) -> torch.Tensor:
    """1 - tanh(distance / std), with the distance of a body to its commanded position, shape (num_envs,).

    Args:
        env: The environment.
        std: Distance at which the value is 0.24 [m].
        command_name: Command.
        asset_cfg: Articulation and body.
    """
    return 1.0 - torch.tanh(pose_errors(env, command_name, asset_cfg)[0] / std)


@warp_twin(position_command_error_tanh, extra=pose_body, consumes=("asset_cfg",))
def _(env: int, asset: ArticulationState, command: CommandState, body: int, std: float) -> float:
    return 1.0 - wp.tanh(position_error(asset, command.command, env, body) / std)


def orientation_command_error(
    env: ManagerBasedRLEnv, command_name: str, asset_cfg: SceneEntityCfg = ROBOT
) -> torch.Tensor:
    """Angle of a body to its commanded orientation, 0 to pi [rad], shape (num_envs,)."""
    return pose_errors(env, command_name, asset_cfg)[1]


@warp_twin(orientation_command_error, extra=pose_body, consumes=("asset_cfg",))
def _(env: int, asset: ArticulationState, command: CommandState, body: int) -> float:
    return orientation_error(asset, command.command, env, body)
