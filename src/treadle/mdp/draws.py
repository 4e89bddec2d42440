"""Random rotations and offsets that events and commands draw, each in torch and in Warp. Both draw the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
import warp as wp

from treadle.errors import ConfigError
from treadle.managers.env_state import EnvState

__all__ = [
    "AXES",
    "Ranges",
    "axis_ranges",
    "draw_axes",
    "draw_rows",
    "quat_from_euler",
    "random_quat",
    "rows_of",
    "torch_quat_from_euler",
    "torch_random_quat",
]

wp.set_module_options({"enable_backward": False})

_TWO_PI = wp.constant(6.283185307179586)

Ranges = Mapping[str, tuple[float, float]]

AXES = ("x", "y", "z", "roll", "pitch", "yaw")

axis_ranges = wp.types.matrix(shape=(6, 2), dtype=float)
"""Lower and upper end for each of :data:`AXES`."""


def rows_of(ranges: Ranges) -> list[tuple[float, float]]:
    """Return the range of each axis; those that are not given are (0, 0).

    Raises:
        ConfigError: There is no such axis.
    """
    if unknown := [axis for axis in ranges if axis not in AXES]:
        raise ConfigError(f"a range is given for {', '.join(map(repr, unknown))}; allowed: {', '.join(AXES)}")
    return [(float(ranges.get(axis, (0.0, 0.0))[0]), float(ranges.get(axis, (0.0, 0.0))[1])) for axis in AXES]


def draw_rows(env: Any, mask: torch.Tensor, rows: Sequence[Any] | np.ndarray) -> torch.Tensor:
    """Return uniform numbers, one column for each range, shape (num_envs, num_ranges)."""
    unit = env.rand(len(rows), 0.0, 1.0, mask=mask)
    lower = np.array([row[0] for row in rows], dtype=np.float32)
    span = np.array([row[1] for row in rows], dtype=np.float32) - lower
    return unit * torch.from_numpy(span).to(unit.device) + torch.from_numpy(lower).to(unit.device)


@wp.func
def draw_axes(state: EnvState, env: int, ranges: axis_ranges):  # type: ignore[valid-type]
    """Draw a uniform number for each axis; the random state is kept."""
    rng = state.random_state[env]
    drawn = wp.spatial_vector()
    for i in range(6):
        drawn[i] = ranges[i, 0] + (ranges[i, 1] - ranges[i, 0]) * wp.randf(rng)  # type: ignore[index]
    state.random_state[env] = rng
    return drawn


@wp.func
def quat_from_euler(roll: float, pitch: float, yaw: float) -> wp.quat:
    """Return the rotation by roll about x, then pitch about y, then yaw about z, all of the fixed frame."""
    cr, sr = wp.cos(0.5 * roll), wp.sin(0.5 * roll)
    cp, sp = wp.cos(0.5 * pitch), wp.sin(0.5 * pitch)
    cy, sy = wp.cos(0.5 * yaw), wp.sin(0.5 * yaw)
    return wp.quat(
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
        cr * cp * cy + sr * sp * sy,
    )


def torch_quat_from_euler(roll: torch.Tensor, pitch: torch.Tensor, yaw: torch.Tensor) -> torch.Tensor:
    """Return the rotation by roll, then pitch, then yaw about the fixed axes x, y, z, shape (n, 4)."""
    cr, sr = (0.5 * roll).cos(), (0.5 * roll).sin()
    cp, sp = (0.5 * pitch).cos(), (0.5 * pitch).sin()
    cy, sy = (0.5 * yaw).cos(), (0.5 * yaw).sin()
    x, y = sr * cp * cy - cr * sp * sy, cr * sp * cy + sr * cp * sy
    z, w = cr * cp * sy - sr * sp * cy, cr * cp * cy + sr * sp * sy
    return torch.stack((x, y, z, w), dim=-1)


@wp.func
def random_quat(a: float, b: float, c: float) -> wp.quat:
    """Return a rotation that is uniform over all rotations, from three uniform numbers in [0, 1)."""
    inner, outer = wp.sqrt(1.0 - a), wp.sqrt(a)
    return wp.quat(
        inner * wp.sin(_TWO_PI * b),
        inner * wp.cos(_TWO_PI * b),
        outer * wp.sin(_TWO_PI * c),
        outer * wp.cos(_TWO_PI * c),
    )


def torch_random_quat(draws: torch.Tensor) -> torch.Tensor:
    """Return rotations that are uniform over all rotations, from uniform numbers in [0, 1), shape (n, 3)."""
    a, b, c = draws.unbind(-1)
    inner, outer, b, c = (1.0 - a).sqrt(), a.sqrt(), _TWO_PI * b, _TWO_PI * c
    return torch.stack((inner * b.sin(), inner * b.cos(), outer * c.sin(), outer * c.cos()), dim=-1)
