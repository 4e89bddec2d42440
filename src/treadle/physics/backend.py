"""What the layers above expect of a physics engine."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

import warp as wp

from treadle.physics.funcs import ContactRows
from treadle.physics.properties import ModelChange, ModelProperties

__all__ = ["PhysicsBackend"]


class PhysicsBackend(Protocol):
    """A batch of equal worlds, one per environment.

    All arrays are persistent: their storage never moves, so kernels and graphs may keep their pointers. The world
    frame is z up, units are SI, quaternions are (x, y, z, w).
    """

    device: wp.Device
    """Device of all arrays."""
    num_envs: int
    """Number of worlds."""
    dt: float
    """Time step [s]."""
    joint_q: wp.array
    """Generalized positions [m or rad], float, shape (num_envs, num_coords). A floating root takes 7: position,
    quaternion."""
    joint_qd: wp.array
    """Generalized velocities [m/s or rad/s], float, shape (num_envs, num_dofs). A floating root takes 6: linear
    velocity of its centre of mass, then angular velocity, world frame."""
    joint_f: wp.array
    """Generalized forces to apply [N or N*m], float, shape (num_envs, num_dofs). They stay until overwritten, or until
    a reset of the world."""
    joint_target_q: wp.array
    """Position targets of the drives [m or rad], float, shape (num_envs, num_coords)."""
    joint_target_qd: wp.array
    """Velocity targets of the drives [m/s or rad/s], float, shape (num_envs, num_dofs)."""
    body_q: wp.array
    """Body poses in the world frame, transform, shape (num_envs, num_bodies)."""
    body_qd: wp.array
    """Body velocities, spatial vector (linear of the centre of mass, angular), world frame, shape (num_envs,
    num_bodies)."""
    body_parent_f: wp.array
    """Wrench that the parent joint applies to each body [N, N*m], spatial vector (force, torque about the body's
    centre of mass), world frame, shape (num_envs, num_bodies); of the last step, zero after a reset, and unless
    :meth:`measure` was called."""
    body_qdd: wp.array
    """Acceleration of each body as the solver found it at the start of the last step [m/s^2, rad/s^2], spatial vector
    (linear of the centre of mass, angular), world frame, shape (num_envs, num_bodies); zero after a reset, and unless
    :meth:`measure` was called. It does not know of damping that is integrated implicitly."""
    body_com: wp.array
    """Centres of mass in the frames of the bodies [m], vec3, shape (num_envs, num_bodies)."""
    reset_mask: wp.array
    """Worlds that :meth:`reset` resets, bool, shape (num_envs,). The owner writes it."""
    moved_mask: wp.array
    """Worlds whose body poses :meth:`reset` recomputes from the joint state, bool, shape (num_envs,): ``reset_mask``
    itself, unless the owner assigns an array of its own before the first step."""
    gravity: wp.array
    """Gravity in the world frame [m/s^2], vec3, shape (num_envs,)."""
    contacts: ContactRows
    """Contact forces of the last step, for :func:`treadle.physics.funcs.net_contact_force`."""
    bad_measurement: wp.array
    """Worlds in which something that was measured is not finite, bool, shape (num_envs,). Sensors set it, the owner
    ends the episode and clears it, and so does :meth:`reset`."""
    overflow_steps: wp.array
    """Solver steps in which a contact or constraint buffer overflowed, int32, shape (num_envs,), since the start."""

    external_wrench: wp.array
    """Wrench on each body beside all others [N, N*m], spatial vector (force, torque about the centre of mass), in the
    frame of the body, shape (num_envs, num_bodies). It acts from the next :meth:`reset` or step on, with the pose that
    the body has at the start of each, until the owner writes zeros. Shape (num_envs, 0) until
    :meth:`use_external_wrench` is called."""

    @property
    def properties(self) -> ModelProperties:
        """Properties of the model, made when they are first asked for."""

    @property
    def default_properties(self) -> ModelProperties:
        """What they were in the beginning, for randomizations that must not compound."""

    @property
    def shape_bodies(self) -> Sequence[int]:
        """Body of each shape of an environment, -1 for one that is fixed to the world."""

    def step(self) -> None:
        """Advance all worlds by :attr:`dt`, in place. Capturable."""

    def reset(self) -> None:
        """Make the worlds in :attr:`reset_mask` consistent with the joint state that was written into them. Capturable.

        Clears what the solver keeps from step to step, the applied forces and what was measured, and recomputes
        body poses and velocities. Nothing of the other worlds changes.
        """

    def measure(self, name: str) -> wp.array:
        """Return ``body_parent_f`` or ``body_qdd``, measured from the next step on; until then it costs nothing.

        Call it while an environment is built: later it drops graphs.
        """

    def describe_overflow(self) -> str | None:
        """Return which buffers overflowed so far and how to enlarge them, ``None`` if none did. Synchronizes."""

    def use_external_wrench(self) -> wp.array:
        """Return :attr:`external_wrench`, with a column per body from now on. Call it while an environment is built."""

    def apply_properties(self, changes: Collection[ModelChange]) -> None:
        """Let the simulation use what was written into :attr:`properties`. Capturable.

        ``inertia`` and ``armature`` cost about 200 launches, in all environments together, the others 1 to 4.
        """

    def prefer_shape_friction(self, shapes: Collection[int]) -> None:
        """Let the friction of some shapes decide in their contacts, rather than that of the ground."""

    def has_contact_margins(self) -> bool:
        """Return whether ``shape_margin`` has an effect, which it has not with some kinds of shapes."""
