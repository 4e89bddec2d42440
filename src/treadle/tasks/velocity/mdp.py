"""Reward terms of the velocity tasks, each in torch and, for one environment, in Warp.

The command is a velocity: forwards, to the left [m/s], and about the vertical axis [rad/s]. Terms of times in the air
want a contact sensor with ``track_air_time``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
import warp as wp

from treadle.assets.articulation_state import ArticulationState
from treadle.errors import ConfigError
from treadle.managers.command_manager import CommandState
from treadle.managers.env_state import EnvState
from treadle.managers.scene_entity import SceneEntityCfg
from treadle.managers.twins import warp_twin
from treadle.mdp import math_torch
from treadle.mdp.contact_funcs import largest_force, largest_forces
from treadle.mdp.math_funcs import yaw_quat
from treadle.mdp.rewards import joint_deviation_l1
from treadle.sensors.funcs import ContactSensorState, is_first_contact

if TYPE_CHECKING:
    from treadle.envs import ManagerBasedRLEnv

__all__ = [
    "feet_air_time",
    "feet_air_time_positive_biped",
    "feet_air_time_variance",
    "feet_slide",
    "stand_still_joint_deviation_l1",
    "track_ang_vel_z_world_exp",
    "track_lin_vel_xy_yaw_frame_exp",
]

wp.set_module_options({"enable_backward": False})

ROBOT = SceneEntityCfg(name="robot")
MOVING = wp.constant(0.1)
"""Commanded horizontal speed above which the robot shall step [m/s]."""
CONTACT_FORCE = wp.constant(1.0)
"""Force above which a foot counts as on the ground [N]."""


@wp.func
def _speed(command: CommandState, env: int) -> float:
    return wp.length(wp.vec2(command.command[env, 0], command.command[env, 1]))


def _is_moving(env: ManagerBasedRLEnv, command_name: str) -> torch.Tensor:
    return env.command_manager.get_command(command_name)[:, :2].norm(dim=1) > MOVING


def _times(env: Any, params: Mapping[str, Any]) -> dict[str, Any]:
    """Raise unless the sensor of a term measures how long feet are in the air."""
    name = params["sensor_cfg"].name
    _ = env.scene[name].current_air_time
    return {}


def feet_air_time(
    env: ManagerBasedRLEnv, command_name: str, sensor_cfg: SceneEntityCfg, threshold: float
) -> torch.Tensor:
    """Sum over feet that just touched down of the time in the air beyond a threshold [s], shape (num_envs,).

    0 while no motion is commanded.

    Args:
        env: The environment.
        command_name: Velocity command.
        sensor_cfg: Contact sensor and the feet among its bodies.
        threshold: Time in the air [s]; shorter steps count negative.
    """
    sensor: Any = env.scene[sensor_cfg.name]
    landed = sensor.compute_first_contact(env.step_dt)[:, sensor_cfg.body_ids]
    excess = sensor.torch.last_air_time[:, sensor_cfg.body_ids] - threshold
    return torch.where(landed, excess, 0.0).sum(dim=1) * _is_moving(env, command_name)


@warp_twin(feet_air_time, extra=_times)
def _(
    env: int,
    state: EnvState,
    sensor: ContactSensorState,
    sensor_body_ids: wp.array[int],
    command: CommandState,
    threshold: float,
) -> float:
    total = float(0.0)
    if _speed(command, env) > MOVING:
        for i in range(sensor_body_ids.shape[0]):
            foot = sensor_body_ids[i]
            if is_first_contact(sensor, env, foot, state.step_dt):
                total += sensor.last_air_time[env, foot] - threshold
    return total


def feet_air_time_positive_biped(
    env: ManagerBasedRLEnv, command_name: str, threshold: float, sensor_cfg: SceneEntityCfg
) -> torch.Tensor:
    """While one foot stands: the least time that a foot has been in the air or in contact [s], shape (num_envs,).

    At most the threshold, and 0 while no motion is commanded.

    Args:
        env: The environment.
        command_name: Velocity command.
        threshold: Largest time that counts [s].
        sensor_cfg: Contact sensor and the feet among its bodies.
    """
    times, ids = env.scene[sensor_cfg.name].torch, sensor_cfg.body_ids
    air, contact = times.current_air_time[:, ids], times.current_contact_time[:, ids]
    in_mode = torch.where(contact > 0.0, contact, air).amin(dim=1).clamp(max=threshold)
    single = (contact > 0.0).sum(dim=1) == 1
    return torch.where(single & _is_moving(env, command_name), in_mode, 0.0)


@warp_twin(feet_air_time_positive_biped, extra=_times)
def _(
    env: int, sensor: ContactSensorState, sensor_body_ids: wp.array[int], command: CommandState, threshold: float
) -> float:
    standing = wp.int32(0)
    least = threshold
    for i in range(sensor_body_ids.shape[0]):
        foot = sensor_body_ids[i]
        time = sensor.current_contact_time[env, foot]
        if time > 0.0:
            standing += 1
        else:
            time = sensor.current_air_time[env, foot]
        least = wp.min(least, time)
    return wp.where(standing == 1 and _speed(command, env) > MOVING, least, 0.0)


def feet_air_time_variance(
    env: ManagerBasedRLEnv, command_name: str, sensor_cfg: SceneEntityCfg, max_time: float
) -> torch.Tensor:
    """Variance over feet of the last times in the air, plus that of the last times in contact [s^2].

    The variance is that of a sample: the sum of squares over the number of feet less 1. 0 while no motion is commanded.

    Args:
        env: The environment.
        command_name: Velocity command.
        sensor_cfg: Contact sensor and at least two feet among its bodies.
        max_time: Longer times count as this [s].
    """
    _several(env, {"sensor_cfg": sensor_cfg})
    times, ids = env.scene[sensor_cfg.name].torch, sensor_cfg.body_ids
    air, contact = times.last_air_time[:, ids], times.last_contact_time[:, ids]
    variance = air.clamp(max=max_time).var(dim=1) + contact.clamp(max=max_time).var(dim=1)
    return variance * _is_moving(env, command_name)


@wp.func
def _variance(times: wp.array2d[float], env: int, bodies: wp.array[int], longest: float) -> float:
    count = float(bodies.shape[0])
    mean = float(0.0)
    for i in range(bodies.shape[0]):
        mean += wp.min(times[env, bodies[i]], longest) / count
    total = float(0.0)
    for i in range(bodies.shape[0]):
        difference = wp.min(times[env, bodies[i]], longest) - mean
        total += difference * difference
    return total / (count - 1.0)


def _several(env: Any, params: Mapping[str, Any]) -> dict[str, Any]:
    names = params["sensor_cfg"].resolved.body_names
    if len(names) < 2:
        raise ConfigError(f"sensor_cfg selects {', '.join(names)}, of which there is no variance; allowed: 2 bodies")
    return _times(env, params)


@warp_twin(feet_air_time_variance, extra=_several)
def _(
    env: int, sensor: ContactSensorState, sensor_body_ids: wp.array[int], command: CommandState, max_time: float
) -> float:
    result = float(0.0)
    if _speed(command, env) > MOVING:
        result = _variance(sensor.last_air_time, env, sensor_body_ids, max_time)
        result += _variance(sensor.last_contact_time, env, sensor_body_ids, max_time)
    return result


def feet_slide(env: ManagerBasedRLEnv, sensor_cfg: SceneEntityCfg, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """Sum over feet on the ground of their horizontal speed, of the centre of mass [m/s], shape (num_envs,).

    Args:
        env: The environment.
        sensor_cfg: Contact sensor and the feet among its bodies.
        asset_cfg: Articulation and the same feet in the same order.
    """
    _same_bodies(env, {"sensor_cfg": sensor_cfg, "asset_cfg": asset_cfg})
    velocity = env.scene[asset_cfg.name].data.torch.body_vel_w[:, asset_cfg.body_ids, :2]
    return (velocity.norm(dim=-1) * (largest_forces(env, sensor_cfg) > CONTACT_FORCE)).sum(dim=1)


def _same_bodies(env: Any, params: Mapping[str, Any]) -> dict[str, Any]:
    sensed, moved = (list(params[name].resolved.body_names) for name in ("sensor_cfg", "asset_cfg"))
    if sensed != moved:
        raise ConfigError(
            f"sensor_cfg selects {', '.join(sensed)} and asset_cfg {', '.join(moved)}; allowed: the same bodies in the "
            f"same order"
        )
    return {}


@warp_twin(feet_slide, extra=_same_bodies)
def _(
    env: int,
    asset: ArticulationState,
    body_ids: wp.array[int],
    sensor: ContactSensorState,
    sensor_body_ids: wp.array[int],
) -> float:
    total = float(0.0)
    for i in range(body_ids.shape[0]):
        if largest_force(sensor, env, sensor_body_ids[i]) > CONTACT_FORCE:
            velocity = asset.body_vel_w[env, body_ids[i]]
            total += wp.length(wp.vec2(velocity[0], velocity[1]))
    return total


def track_lin_vel_xy_yaw_frame_exp(
    env: ManagerBasedRLEnv, std: float, command_name: str, asset_cfg: SceneEntityCfg = ROBOT
) -> torch.Tensor:
    """exp(-e / std^2), e the squared error of the horizontal velocity in the frame turned by the yaw, (num_envs,).

    Args:
        env: The environment.
        std: Error at which the value is 1 / e [m/s].
        command_name: Velocity command.
        asset_cfg: Articulation.
    """
    data = env.scene[asset_cfg.name].data.torch
    velocity = math_torch.quat_rotate_inverse(math_torch.yaw_quat(data.root_quat_w), data.root_lin_vel_w)
    error = (env.command_manager.get_command(command_name)[:, :2] - velocity[:, :2]).square().sum(dim=1)
    return torch.exp(-error / (std * std))


@warp_twin(track_lin_vel_xy_yaw_frame_exp)
def _(env: int, asset: ArticulationState, command: CommandState, std: float) -> float:
    velocity = wp.quat_rotate_inv(yaw_quat(asset.root_quat_w[env]), asset.root_lin_vel_w[env])
    x = command.command[env, 0] - velocity[0]
    y = command.command[env, 1] - velocity[1]
    return wp.exp(-(x * x + y * y) / (std * std))


def track_ang_vel_z_world_exp(
    env: ManagerBasedRLEnv, std: float, command_name: str, asset_cfg: SceneEntityCfg = ROBOT
) -> torch.Tensor:
    """exp(-e / std^2), e the squared error of the angular velocity about the world's z axis, shape (num_envs,).

    Args:
        env: The environment.
        std: Error at which the value is 1 / e [rad/s].
        command_name: Velocity command.
        asset_cfg: Articulation.
    """
    command = env.command_manager.get_command(command_name)
    error = (command[:, 2] - env.scene[asset_cfg.name].data.torch.root_ang_vel_w[:, 2]).square()
    return torch.exp(-error / (std * std))


@warp_twin(track_ang_vel_z_world_exp)
def _(env: int, asset: ArticulationState, command: CommandState, std: float) -> float:
    error = command.command[env, 2] - asset.root_ang_vel_w[env][2]
    return wp.exp(-error * error / (std * std))


def stand_still_joint_deviation_l1(
    env: ManagerBasedRLEnv, command_name: str, command_threshold: float = 0.06, asset_cfg: SceneEntityCfg = ROBOT
) -> torch.Tensor:
    """Sum of absolute differences of joint positions to the default ones while standing [rad or m], (num_envs,).

    Args:
        env: The environment.
        command_name: Velocity command.
        command_threshold: Commanded horizontal speed below which the robot shall stand [m/s].
        asset_cfg: Articulation and joints.
    """
    command = env.command_manager.get_command(command_name)
    return joint_deviation_l1(env, asset_cfg) * (command[:, :2].norm(dim=1) < command_threshold)


@warp_twin(stand_still_joint_deviation_l1)
def _(
    env: int, asset: ArticulationState, joint_ids: wp.array[int], command: CommandState, command_threshold: float
) -> float:
    total = float(0.0)
    if _speed(command, env) < command_threshold:
        for i in range(joint_ids.shape[0]):
            j = joint_ids[i]
            total += wp.abs(asset.joint_pos[env, j] - asset.default_joint_pos[env, j])
    return total
