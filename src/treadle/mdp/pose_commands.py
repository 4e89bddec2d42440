"""How far a body is from where a pose command wants it, in both forms.

The command is a position [m] and a quaternion (x, y, z, w) in the frame of the root.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import warp as wp

from treadle.assets.articulation_state import ArticulationState
from treadle.assets.names import match_names
from treadle.errors import ConfigError
from treadle.managers.scene_entity import SceneEntityCfg
from treadle.mdp import math_torch
from treadle.mdp.math_funcs import quat_error_magnitude

if TYPE_CHECKING:
    import torch

    from treadle.envs import ManagerBasedRLEnv

__all__ = ["body_pose_errors", "orientation_error", "pose_body", "pose_errors", "position_error"]

wp.set_module_options({"enable_backward": False})


def pose_body(env: Any, params: Mapping[str, Any]) -> dict[str, int]:
    """Return the index of the body that a term compares with a pose command, and check the size of the command.

    Args:
        env: The environment.
        params: Parameters of the term: ``command_name`` and ``asset_cfg``, whose one body counts; where it names none,
            the body of the command.

    Raises:
        ConfigError: There is not one such body, or the command has no 7 columns.
    """
    name, asset_cfg = params["command_name"], params["asset_cfg"]
    command = env.command_manager.get_term(name)
    size = command.command_buffer.shape[1]
    if size != 7:
        raise ConfigError(f"command {name!r} has {size} columns; allowed: 7, a position and a quaternion")
    names = env.scene[asset_cfg.name].body_names
    expressions = asset_cfg.body_names
    if expressions is None:
        expressions = getattr(command.cfg, "body_name", ".*")
    expressions = [expressions] if isinstance(expressions, str) else list(expressions)
    bodies = match_names(expressions, names, "body_names")
    if len(bodies) != 1:
        matched = ", ".join(names[body] for body in bodies)
        raise ConfigError(f"asset_cfg selects the bodies {matched} for command {name!r}; allowed: one body")
    return {"body": bodies[0]}


def pose_errors(
    env: ManagerBasedRLEnv, command_name: str, asset_cfg: SceneEntityCfg
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the distance [m] and the angle [rad] of a body to its commanded pose, each of shape (num_envs,)."""
    body = pose_body(env, {"command_name": command_name, "asset_cfg": asset_cfg})["body"]
    return body_pose_errors(env.scene[asset_cfg.name].data.torch, env.command_manager.get_command(command_name), body)


def body_pose_errors(data: Any, command: torch.Tensor, body: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the distance [m] and the angle [rad] of a body to a pose in the frame of the root, each (num_envs,).

    Args:
        data: Torch views of the articulation's data.
        command: The pose, shape (num_envs, 7).
        body: Index of the body.
    """
    target = data.root_pos_w + math_torch.quat_rotate(data.root_quat_w, command[:, :3])
    rotation = math_torch.quat_mul(data.root_quat_w, command[:, 3:])
    pose = data.body_pose_w[:, body]
    return (pose[:, :3] - target).norm(dim=1), math_torch.quat_error_magnitude(pose[:, 3:], rotation)


@wp.func
def position_error(asset: ArticulationState, command: wp.array2d[float], env: int, body: int) -> float:
    """Distance of a body to its commanded position [m]."""
    wanted = wp.vec3(command[env, 0], command[env, 1], command[env, 2])
    target = asset.root_pos_w[env] + wp.quat_rotate(asset.root_quat_w[env], wanted)
    return wp.length(wp.transform_get_translation(asset.body_pose_w[env, body]) - target)


@wp.func
def orientation_error(asset: ArticulationState, command: wp.array2d[float], env: int, body: int) -> float:
    """Angle of a body to its commanded orientation [rad]."""
    wanted = wp.quat(command[env, 3], command[env, 4], command[env, 5], command[env, 6])
    rotation = wp.transform_get_rotation(asset.body_pose_w[env, body])
    return quat_error_magnitude(rotation, asset.root_quat_w[env] * wanted)
