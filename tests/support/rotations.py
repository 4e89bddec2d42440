"""Rotations in NumPy."""

from __future__ import annotations

import numpy as np


def rotate(quat: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Rotate vectors, shape (..., 3), by quaternions (x, y, z, w), shape (..., 4): from a body into the world."""
    quat, vector = np.asarray(quat, dtype=float), np.asarray(vector, dtype=float)
    xyz, w = quat[..., :3], quat[..., 3:]
    return vector + 2.0 * np.cross(xyz, np.cross(xyz, vector) + w * vector)


def rotate_inverse(quat: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Rotate vectors from the world into bodies."""
    return rotate(np.asarray(quat) * np.array([-1.0, -1.0, -1.0, 1.0]), vector)
