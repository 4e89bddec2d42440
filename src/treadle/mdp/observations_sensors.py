"""Observation terms of sensors, each in torch and, for one environment, in Warp."""

from __future__ import annotations

from typing import TYPE_CHECKING

import warp as wp

from treadle.managers.scene_entity import SceneEntityCfg
from treadle.managers.twins import warp_twin
from treadle.sensors.funcs import ImuState, JointWrenchState

if TYPE_CHECKING:
    import torch

    from treadle.envs import ManagerBasedRLEnv

__all__ = ["body_incoming_wrench", "imu_ang_vel", "imu_lin_acc", "imu_orientation", "imu_projected_gravity"]

wp.set_module_options({"enable_backward": False})

IMU = SceneEntityCfg(name="imu")


def body_incoming_wrench(env: ManagerBasedRLEnv, sensor_cfg: SceneEntityCfg) -> torch.Tensor:
    """Wrench that joints transmit to bodies: force [N], torque [N*m], shape (num_envs, 6 * num_bodies), body by body.

    Args:
        env: The environment.
        sensor_cfg: Joint wrench sensor and its bodies.
    """
    return env.scene[sensor_cfg.name].torch.wrench[:, sensor_cfg.body_ids].flatten(1)


@warp_twin(body_incoming_wrench)
def _(env: int, sensor: JointWrenchState, sensor_body_ids: wp.array[int], out: wp.array[float]) -> None:
    for i in range(sensor_body_ids.shape[0]):
        for axis in range(6):
            out[6 * i + axis] = sensor.wrench[env, sensor_body_ids[i], axis]


def imu_ang_vel(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = IMU) -> torch.Tensor:
    """Angular velocity of an IMU, sensor frame [rad/s], shape (num_envs, 3)."""
    return env.scene[asset_cfg.name].torch.ang_vel_b


@warp_twin(imu_ang_vel)
def _(env: int, asset: ImuState) -> wp.vec3:
    return asset.ang_vel_b[env]


def imu_lin_acc(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = IMU) -> torch.Tensor:
    """Linear acceleration of an IMU with its gravity bias, sensor frame [m/s^2], shape (num_envs, 3)."""
    return env.scene[asset_cfg.name].torch.lin_acc_b


@warp_twin(imu_lin_acc)
def _(env: int, asset: ImuState) -> wp.vec3:
    return asset.lin_acc_b[env]


def imu_orientation(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = IMU) -> torch.Tensor:
    """Orientation of an IMU (x, y, z, w), world frame, shape (num_envs, 4)."""
    return env.scene[asset_cfg.name].torch.quat_w


@warp_twin(imu_orientation)
def _(env: int, asset: ImuState) -> wp.vec4:
    q = asset.quat_w[env]
    return wp.vec4(q[0], q[1], q[2], q[3])


def imu_projected_gravity(env: ManagerBasedRLEnv, asset_cfg: SceneEntityCfg = IMU) -> torch.Tensor:
    """Direction of gravity, frame of an IMU, shape (num_envs, 3)."""
    return env.scene[asset_cfg.name].torch.projected_gravity_b


@warp_twin(imu_projected_gravity)
def _(env: int, asset: ImuState) -> wp.vec3:
    return asset.projected_gravity_b[env]
