"""Contact forces on bodies, and how long they have been in the air or in contact."""

from __future__ import annotations

from typing import NoReturn

import torch
import warp as wp

from treadle.assets import Articulation
from treadle.errors import ConfigError
from treadle.launch import LaunchScope
from treadle.physics import PhysicsBackend
from treadle.sensors.cfg import ContactSensorCfg
from treadle.sensors.funcs import ContactSensorState
from treadle.sensors.kernels import clear_contacts, measure_contacts
from treadle.sensors.sensor import BodySensor

__all__ = ["ContactSensor"]

_TIMES = ("current_air_time", "last_air_time", "current_contact_time", "last_contact_time")


class ContactSensor(BodySensor):
    """Net contact forces on some bodies, of the ground and of other bodies.

    It measures each physics step, those between two environment steps included, so it needs :meth:`after_physics_step`
    and has nothing to do in :meth:`update`. All arrays are zero after a reset, because no step has been taken yet.
    Times count physics steps: a contact counts from the end of the step that found it.

    Args:
        cfg: Its configuration.
        robot: The articulation.
        physics: The backend that simulates it.
        scope: Owner of the launches.

    Raises:
        ConfigError: An expression matches no body.
    """

    net_forces_w: wp.array
    """Forces of the last physics step, world frame [N], vec3, shape (num_envs, num_bodies)."""
    net_forces_w_history: wp.array
    """Forces of the last physics steps, the newest first, world frame [N], vec3, shape (num_envs, history_length,
    num_bodies); :attr:`net_forces_w` is its first entry."""
    current_air_time: wp.array
    """Time since the body was last in contact, 0 in contact [s], float, shape (num_envs, num_bodies)."""
    last_air_time: wp.array
    """Time that the body spent in the air before the last contact [s], float, shape (num_envs, num_bodies)."""
    current_contact_time: wp.array
    """Time that the body has been in contact, 0 in the air [s], float, shape (num_envs, num_bodies)."""
    last_contact_time: wp.array
    """Time that the body spent in contact before it last lifted off [s], float, shape (num_envs, num_bodies)."""
    state: ContactSensorState
    """The arrays as a struct, for fused kernels."""

    def __init__(self, cfg: ContactSensorCfg, robot: Articulation, physics: PhysicsBackend, scope: LaunchScope):
        super().__init__(robot, cfg.body_names, physics, scope)
        self.cfg = cfg
        shape = physics.num_envs, self.num_bodies
        history = (physics.num_envs, max(1, cfg.history_length), self.num_bodies)
        self.net_forces_w_history = wp.zeros(history, dtype=wp.vec3, device=physics.device)
        self.net_forces_w = self.net_forces_w_history[:, 0]
        self.state = ContactSensorState()
        self.state.net_forces_w = self.net_forces_w
        self.state.net_forces_w_history = self.net_forces_w_history
        for name in _TIMES:
            times = wp.full(shape, 0.0 if cfg.track_air_time else float("nan"), dtype=float, device=physics.device)
            setattr(self.state, name, times)
            if cfg.track_air_time:
                setattr(self, name, times)
        self.state.force_threshold = cfg.force_threshold
        self.state.physics_dt = self._dt = physics.dt

    def __getattr__(self, name: str) -> NoReturn:
        """Explain why a time is missing."""
        if name in _TIMES:
            raise ConfigError(f"{name} is not measured: track_air_time is False; allowed: True")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def compute_first_contact(self, dt: float) -> torch.Tensor:
        """Return which bodies touched down within the last ``dt`` seconds and are still in contact.

        Returns:
            bool, shape (num_envs, num_bodies).

        Raises:
            ConfigError: Times are not measured.
        """
        time = self.torch.current_contact_time
        return (time > 0.0) & (time < dt + 0.25 * self._dt)

    def compute_first_air(self, dt: float) -> torch.Tensor:
        """Return which bodies lifted off within the last ``dt`` seconds and are still in the air.

        Returns:
            bool, shape (num_envs, num_bodies).

        Raises:
            ConfigError: Times are not measured.
        """
        time = self.torch.current_air_time
        return (time > 0.0) & (time < dt + 0.25 * self._dt)

    def after_physics_step(self) -> None:
        """Measure the physics step that was just taken."""
        self._launches.launch(
            measure_contacts,
            (self._physics.num_envs, self.num_bodies),
            [self._physics.contacts, self._body_ids, self.cfg.track_air_time],
            [self.state, self._physics.bad_measurement],
        )

    def update(self) -> None:
        """Do nothing: each physics step has been measured."""

    def reset(self) -> None:
        """Forget forces and times in the environments of ``physics.reset_mask``."""
        self._launches.launch(
            clear_contacts,
            (self._physics.num_envs, self.num_bodies),
            [self._physics.reset_mask, self.cfg.track_air_time],
            [self.state],
        )
