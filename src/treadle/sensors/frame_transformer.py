"""Poses of frames relative to another one."""

from __future__ import annotations

import warp as wp

from treadle.assets import Articulation
from treadle.assets.names import match_names
from treadle.launch import LaunchScope
from treadle.physics import PhysicsBackend
from treadle.sensors.cfg import FrameTransformerCfg, OffsetCfg
from treadle.sensors.funcs import FrameTransformerState
from treadle.sensors.kernels import measure_frames
from treadle.sensors.sensor import BodySensor, one_body

__all__ = ["FrameTransformer"]


class FrameTransformer(BodySensor):
    """Poses of target frames in the world and in a source frame.

    Args:
        cfg: Its configuration.
        robot: The articulation.
        physics: The backend that simulates it.
        scope: Owner of the launches.

    Raises:
        ConfigError: A name of a target matches nothing, or that of the source does not match one body.
    """

    source_pos_w: wp.array
    """Position of the source frame, world frame [m], vec3, shape (num_envs,)."""
    source_quat_w: wp.array
    """Orientation of the source frame (x, y, z, w), world frame, quat, shape (num_envs,)."""
    target_pos_w: wp.array
    """Positions of the target frames, world frame [m], vec3, shape (num_envs, num_bodies)."""
    target_quat_w: wp.array
    """Orientations of the target frames (x, y, z, w), world frame, quat, shape (num_envs, num_bodies)."""
    target_pos_source: wp.array
    """Positions of the target frames, source frame [m], vec3, shape (num_envs, num_bodies)."""
    target_quat_source: wp.array
    """Orientations of the target frames (x, y, z, w), source frame, quat, shape (num_envs, num_bodies)."""
    state: FrameTransformerState
    """The arrays as a struct, for fused kernels."""

    def __init__(self, cfg: FrameTransformerCfg, robot: Articulation, physics: PhysicsBackend, scope: LaunchScope):
        super().__init__(robot, cfg.target_bodies, physics, scope)
        self.cfg = cfg
        self._source_body = one_body(robot, cfg.source_body)
        self._source_offset = _transform(cfg.source_offset)
        offsets = [wp.transform_identity()] * self.num_bodies
        for pattern, offset in reversed(cfg.target_offsets.items()):
            for index in match_names([pattern], self.body_names, f"target_offsets[{pattern!r}]"):
                offsets[index] = _transform(offset)
        self._offsets = wp.array(offsets, dtype=wp.transform, device=physics.device)
        self.state = FrameTransformerState()
        for frame in ("source", "target"):
            shape = (physics.num_envs,) if frame == "source" else (physics.num_envs, self.num_bodies)
            for name, dtype in ((f"{frame}_pos_w", wp.vec3), (f"{frame}_quat_w", wp.quat)):
                self._add(name, shape, dtype)
        self._add("target_pos_source", shape, wp.vec3)
        self._add("target_quat_source", shape, wp.quat)

    def update(self) -> None:
        """Refresh the poses from the simulation."""
        physics = self._physics
        self._launches.launch(
            measure_frames,
            (physics.num_envs, self.num_bodies),
            [physics.body_q, self._source_body, self._source_offset, self._body_ids, self._offsets],
            [self.state, physics.bad_measurement],
        )

    def _add(self, name: str, shape: tuple[int, ...], dtype: type) -> None:
        array = wp.zeros(shape, dtype=dtype, device=self._physics.device)
        setattr(self, name, array)
        setattr(self.state, name, array)


def _transform(offset: OffsetCfg) -> wp.transform:
    return wp.transform(offset.pos, offset.rot)
