"""Rotations that are drawn: both forms against rotations about axes, and against the moments of uniform rotations."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
import warp as wp
from support.rotations import rotate

from treadle.mdp.draws import quat_from_euler, random_quat, torch_quat_from_euler, torch_random_quat


@wp.kernel
def _euler(angles: wp.array2d[float], quat_out: wp.array[wp.quat]):
    row = wp.tid()
    quat_out[row] = quat_from_euler(angles[row, 0], angles[row, 1], angles[row, 2])


@wp.kernel
def _uniform(draws: wp.array2d[float], quat_out: wp.array[wp.quat]):
    row = wp.tid()
    quat_out[row] = random_quat(draws[row, 0], draws[row, 1], draws[row, 2])


def in_warp(kernel: wp.Kernel, rows: np.ndarray) -> np.ndarray:
    out = wp.zeros(len(rows), dtype=wp.quat, device="cpu")
    wp.launch(kernel, len(rows), [wp.array(rows, dtype=float, device="cpu")], [out], device="cpu")
    return out.numpy()


def about(axis: int, angle: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Rotate vectors about a fixed axis, by their coordinates."""
    first, second = (axis + 1) % 3, (axis + 2) % 3
    turned = vector.copy()
    turned[:, first] = np.cos(angle) * vector[:, first] - np.sin(angle) * vector[:, second]
    turned[:, second] = np.sin(angle) * vector[:, first] + np.cos(angle) * vector[:, second]
    return turned


@pytest.mark.parametrize("form", ["warp", "torch"])
def test_roll_pitch_and_yaw_turn_about_fixed_axes_in_this_order(form):
    rng = np.random.default_rng(0)
    angles = rng.uniform(-3.1, 3.1, (50, 3)).astype(np.float32)
    vector = rng.normal(size=(50, 3))
    if form == "warp":
        quat = in_warp(_euler, angles)
    else:
        quat = torch_quat_from_euler(*torch.from_numpy(angles).unbind(1)).numpy()
    expected = vector
    for axis in range(3):
        expected = about(axis, angles[:, axis].astype(float), expected)
    np.testing.assert_allclose(rotate(quat, vector), expected, atol=3e-6)


@pytest.mark.parametrize("form", ["warp", "torch"])
def test_random_rotations_are_uniform(form):
    """On a grid of draws, the moments of the components up to the fourth are those of the unit sphere."""
    middle = (np.arange(24) + 0.5) / 24
    draws = np.array(list(itertools.product(middle, repeat=3)), dtype=np.float32)
    quat = in_warp(_uniform, draws) if form == "warp" else torch_random_quat(torch.from_numpy(draws)).numpy()
    quat = quat.astype(float)
    np.testing.assert_allclose(np.linalg.norm(quat, axis=1), 1.0, atol=1e-6)
    np.testing.assert_allclose(quat.mean(axis=0), 0.0, atol=1e-6)
    np.testing.assert_allclose(quat.T @ quat / len(quat), np.eye(4) / 4.0, atol=1e-6)
    squares = quat**2
    fourth = np.full((4, 4), 1.0 / 24.0) + np.eye(4) * (1.0 / 8.0 - 1.0 / 24.0)
    np.testing.assert_allclose(squares.T @ squares / len(quat), fourth, atol=1e-3)
