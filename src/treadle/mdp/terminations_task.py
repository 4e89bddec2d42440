"""Termination terms of the task: time, commands, contacts; each in torch and, for one environment, in Warp."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import warp as wp

from treadle.assets.articulation_state import ArticulationState
from treadle.managers.command_manager import CommandState
from treadle.managers.env_state import EnvState
from treadle.managers.scene_entity import SceneEntityCfg
from treadle.managers.twins import warp_twin
from treadle.mdp.contact_funcs import largest_force, largest_forces
from treadle.mdp.pose_commands import orientation_error, pose_body, pose_errors, position_error
from treadle.sensors.funcs import ContactSensorState

if TYPE_CHECKING:
    from treadle.envs import ManagerBasedRLEnv

__all__ = ["command_resample", "illegal_contact", "pose_command_success", "terrain_out_of_bounds", "time_out"]

wp.set_module_options({"enable_backward": False})

ROBOT = SceneEntityCfg(name="robot")


def time_out(env: ManagerBasedRLEnv) -> torch.Tensor:
    """Whether the episode is as long as it may be, shape (num_envs,). Set ``time_out=True`` for it."""
    return env.episode_length_buf >= env.max_episode_length


time_out.needs_time_out = True  # type: ignore[attr-defined]


@warp_twin(time_out)
def _(env: int, state: EnvState) -> bool:
    return state.episode_length[env] >= state.max_episode_length


def command_resample(env: ManagerBasedRLEnv, command_name: str, num_resamples: int = 1) -> torch.Tensor:
    """Whether a command was drawn so often in the episode and is due to be drawn again, shape (num_envs,).

    Args:
        env: The environment.
        command_name: Command.
        num_resamples: Number of draws, the one at the start included.
    """
    command = env.command_manager.get_term(command_name).torch
    return (command.time_left <= env.step_dt) & (command.counter == num_resamples)


@warp_twin(command_resample)
def _(env: int, state: EnvState, command: CommandState, num_resamples: int) -> bool:
    return command.time_left[env] <= state.step_dt and command.counter[env] == num_resamples


def illegal_contact(env: ManagerBasedRLEnv, threshold: float, sensor_cfg: SceneEntityCfg) -> torch.Tensor:
    """Whether the contact force on a body exceeds a threshold, shape (num_envs,).

    Args:
        env: The environment.
        threshold: Largest force over the history of the sensor [N].
        sensor_cfg: Contact sensor and its bodies.
    """
    return (largest_forces(env, sensor_cfg) > threshold).any(dim=1)


@warp_twin(illegal_contact)
def _(env: int, sensor: ContactSensorState, sensor_body_ids: wp.array[int], threshold: float) -> bool:
    holds = bool(False)
    for i in range(sensor_body_ids.shape[0]):
        holds = holds or largest_force(sensor, env, sensor_body_ids[i]) > threshold
    return holds


def pose_command_success(
    env: ManagerBasedRLEnv,
    command_name: str,
    thresholds: tuple[float, float],
    asset_cfg: SceneEntityCfg = ROBOT,
) -> torch.Tensor:
    """Whether a body is where a pose command wants it, shape (num_envs,).

    Args:
        env: The environment.
        command_name: Command: position [m] and quaternion (x, y, z, w) in the frame of the root.
        thresholds: Errors below which it is there: position [m], rotation [rad].
        asset_cfg: Articulation and one body; the body of the command where it names none.
    """
    position, rotation = pose_errors(env, command_name, asset_cfg)
    return (position < thresholds[0]) & (rotation < thresholds[1])


@warp_twin(pose_command_success, extra=pose_body, consumes=("asset_cfg",))
def _(env: int, asset: ArticulationState, command: CommandState, body: int, thresholds: wp.vec2) -> bool:
    position = position_error(asset, command.command, env, body)
    return position < thresholds[0] and orientation_error(asset, command.command, env, body) < thresholds[1]


def terrain_out_of_bounds(
    env: ManagerBasedRLEnv, distance_buffer: float = 3.0, asset_cfg: SceneEntityCfg = ROBOT
) -> torch.Tensor:
    """Whether the robot is near the edge of the terrain: never, on the ground plane; shape (num_envs,).

    Args:
        env: The environment.
        distance_buffer: Distance to the edge of a terrain that has one [m].
        asset_cfg: Articulation.
    """
    return torch.zeros(env.num_envs, dtype=torch.bool, device=env.device)


@warp_twin(terrain_out_of_bounds, consumes=("distance_buffer", "asset_cfg"))
def _(env: int) -> bool:
    return False
