"""What terms ask of a contact sensor, in both forms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import warp as wp

from treadle.sensors.funcs import ContactSensorState

if TYPE_CHECKING:
    from treadle.envs import ManagerBasedRLEnv
    from treadle.managers.scene_entity import SceneEntityCfg

__all__ = ["largest_force", "largest_forces"]

wp.set_module_options({"enable_backward": False})


def largest_forces(env: ManagerBasedRLEnv, sensor_cfg: SceneEntityCfg) -> torch.Tensor:
    """Largest contact force on each body over the history of its sensor [N], shape (num_envs, num_bodies)."""
    history = env.scene[sensor_cfg.name].torch.net_forces_w_history[:, :, sensor_cfg.body_ids]
    return history.norm(dim=-1).amax(dim=1)


@wp.func
def largest_force(sensor: ContactSensorState, env: int, body: int) -> float:
    """Largest contact force on a body over the history of its sensor [N]."""
    largest = float(0.0)
    for age in range(sensor.net_forces_w_history.shape[1]):
        largest = wp.max(largest, wp.length(sensor.net_forces_w_history[env, age, body]))
    return largest
