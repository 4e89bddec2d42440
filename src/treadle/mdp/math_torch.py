"""Rotations, angles and ranges in torch. Quaternions are (x, y, z, w) in the last dimension.

The Warp forms are in :mod:`math_funcs`.
"""

from __future__ import annotations

import torch

__all__ = [
    "normalized_position",
    "quat_error_magnitude",
    "quat_inverse",
    "quat_mul",
    "quat_rotate",
    "quat_rotate_inverse",
    "roll",
    "wrap_to_pi",
    "yaw",
    "yaw_quat",
]


def wrap_to_pi(angle: torch.Tensor) -> torch.Tensor:
    """Wrap angles to [-pi, pi] [rad]."""
    return torch.atan2(angle.sin(), angle.cos())


def roll(quat: torch.Tensor) -> torch.Tensor:
    """Roll of quaternions, XYZ Euler angles [rad], shape (...)."""
    x, y, z, w = quat.unbind(dim=-1)
    return torch.atan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))


def yaw(quat: torch.Tensor) -> torch.Tensor:
    """Yaw of quaternions, XYZ Euler angles [rad], shape (...)."""
    x, y, z, w = quat.unbind(dim=-1)
    return torch.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))


def yaw_quat(quat: torch.Tensor) -> torch.Tensor:
    """The rotations about the z axis by the yaw of quaternions, shape (..., 4)."""
    half = 0.5 * yaw(quat)
    zero = torch.zeros_like(half)
    return torch.stack((zero, zero, half.sin(), half.cos()), dim=-1)


def quat_inverse(quat: torch.Tensor) -> torch.Tensor:
    """Inverse of unit quaternions, shape (..., 4)."""
    return torch.cat((-quat[..., :3], quat[..., 3:]), dim=-1)


def quat_mul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Product of quaternions, shape (..., 4): the rotation by ``b``, then by ``a``."""
    u, v, s, t = a[..., :3], b[..., :3], a[..., 3:], b[..., 3:]
    xyz = s * v + t * u + torch.linalg.cross(u, v, dim=-1)
    return torch.cat((xyz, s * t - (u * v).sum(dim=-1, keepdim=True)), dim=-1)


def quat_rotate(quat: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
    """Rotate vectors, shape (..., 3), by unit quaternions: from a body into the world."""
    xyz, w = quat[..., :3], quat[..., 3:]
    xyz, vector = torch.broadcast_tensors(xyz, vector)
    twist = 2.0 * torch.linalg.cross(xyz, vector, dim=-1)
    return vector + w * twist + torch.linalg.cross(xyz, twist, dim=-1)


def quat_rotate_inverse(quat: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
    """Rotate vectors, shape (..., 3), by the inverse of unit quaternions: from the world into a body."""
    return quat_rotate(quat_inverse(quat), vector)


def quat_error_magnitude(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Angle of the rotation between orientations, 0 to pi [rad], shape (...). A negated quaternion is the same."""
    error = quat_mul(a, quat_inverse(b))
    return 2.0 * torch.atan2(error[..., :3].norm(dim=-1), error[..., 3].abs())


def normalized_position(position: torch.Tensor, lower: torch.Tensor, upper: torch.Tensor) -> torch.Tensor:
    """Joint positions scaled so that their limits are -1 and 1."""
    return (2.0 * position - upper - lower) / (upper - lower)
