"""Reward terms of contact forces, each in torch and, for one environment, in Warp.

The force on a body is the largest one over the history of its sensor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import warp as wp

from treadle.managers.scene_entity import SceneEntityCfg
from treadle.managers.twins import warp_twin
from treadle.mdp.contact_funcs import largest_force, largest_forces
from treadle.sensors.funcs import ContactSensorState

if TYPE_CHECKING:
    import torch

    from treadle.envs import ManagerBasedRLEnv

__all__ = ["contact_forces", "desired_contacts", "undesired_contacts"]

wp.set_module_options({"enable_backward": False})


def undesired_contacts(env: ManagerBasedRLEnv, threshold: float, sensor_cfg: SceneEntityCfg) -> torch.Tensor:
    """Number of bodies on which the contact force exceeds a threshold, shape (num_envs,).

    Args:
        env: The environment.
        threshold: Force [N].
        sensor_cfg: Contact sensor and its bodies.
    """
    return (largest_forces(env, sensor_cfg) > threshold).sum(dim=1).float()


@warp_twin(undesired_contacts)
def _(env: int, sensor: ContactSensorState, sensor_body_ids: wp.array[int], threshold: float) -> float:
    count = float(0.0)
    for i in range(sensor_body_ids.shape[0]):
        if largest_force(sensor, env, sensor_body_ids[i]) > threshold:
            count += 1.0
    return count


def desired_contacts(env: ManagerBasedRLEnv, sensor_cfg: SceneEntityCfg, threshold: float = 1.0) -> torch.Tensor:
    """1 while no body has a contact force above a threshold, for a negative weight, shape (num_envs,).

    Args:
        env: The environment.
        sensor_cfg: Contact sensor and its bodies.
        threshold: Force [N].
    """
    return (largest_forces(env, sensor_cfg) <= threshold).all(dim=1).float()


@warp_twin(desired_contacts)
def _(env: int, sensor: ContactSensorState, sensor_body_ids: wp.array[int], threshold: float) -> bool:
    is_free = bool(True)
    for i in range(sensor_body_ids.shape[0]):
        is_free = is_free and largest_force(sensor, env, sensor_body_ids[i]) <= threshold
    return is_free


def contact_forces(env: ManagerBasedRLEnv, threshold: float, sensor_cfg: SceneEntityCfg) -> torch.Tensor:
    """Sum over bodies of how far the contact force exceeds a threshold [N], shape (num_envs,).

    Args:
        env: The environment.
        threshold: Force [N].
        sensor_cfg: Contact sensor and its bodies.
    """
    return (largest_forces(env, sensor_cfg) - threshold).clamp(min=0.0).sum(dim=1)


@warp_twin(contact_forces)
def _(env: int, sensor: ContactSensorState, sensor_body_ids: wp.array[int], threshold: float) -> float:
    total = float(0.0)
    for i in range(sensor_body_ids.shape[0]):
        total += wp.max(largest_force(sensor, env, sensor_body_ids[i]) - threshold, 0.0)
    return total
