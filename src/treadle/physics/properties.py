"""Properties of the model that may differ between environments, as kernels read and write them."""

from __future__ import annotations

from typing import Literal

import warp as wp

__all__ = ["ModelChange", "ModelProperties"]

ModelChange = Literal["inertia", "shapes", "drives", "armature", "gravity"]
"""What was written, for :meth:`treadle.physics.PhysicsBackend.apply_properties`."""


@wp.struct
class ModelProperties:
    """Masses, materials, drives and gravity with a row per environment.

    What is written acts from ``PhysicsBackend.apply_properties`` on, called with the kind that each field names.
    """

    body_mass: wp.array2d[float]
    """Kind ``inertia``: masses [kg], shape (num_envs, num_bodies)."""
    body_inv_mass: wp.array2d[float]
    """Kind ``inertia``: inverse masses [1/kg]; write them along with the masses."""
    body_inertia: wp.array2d[wp.mat33]
    """Kind ``inertia``: inertia about the centre of mass, in the frame of the body [kg*m^2]."""
    body_inv_inertia: wp.array2d[wp.mat33]
    """Kind ``inertia``: its inverse; write it along with the inertia."""
    body_com: wp.array2d[wp.vec3]
    """Kind ``inertia``: centre of mass in the frame of the body [m]."""
    shape_friction: wp.array2d[float]
    """Kind ``shapes``: coefficient of sliding friction, shape (num_envs, num_shapes)."""
    shape_margin: wp.array2d[float]
    """Kind ``shapes``: distance from the surface at which a contact begins to push [m]."""
    shape_gap: wp.array2d[float]
    """Kind ``shapes``: distance beyond the margin within which contacts are detected [m]."""
    drive_stiffness: wp.array2d[float]
    """Kind ``drives``: stiffness of the drives [N*m/rad or N/m], shape (num_envs, num_dofs)."""
    drive_damping: wp.array2d[float]
    """Kind ``drives``: damping of the drives [N*m*s/rad or N*s/m]."""
    joint_damping: wp.array2d[float]
    """Kind ``drives``: damping of the joints themselves [N*m*s/rad or N*s/m]."""
    joint_friction: wp.array2d[float]
    """Kind ``drives``: dry friction of the joints [N*m or N]."""
    joint_lower: wp.array2d[float]
    """Kind ``drives``: lower position limits [rad or m]."""
    joint_upper: wp.array2d[float]
    """Kind ``drives``: upper position limits [rad or m]."""
    joint_armature: wp.array2d[float]
    """Kind ``armature``: inertia added to the joints [kg*m^2 or kg]."""
    gravity: wp.array[wp.vec3]
    """Kind ``gravity``: gravity, world frame [m/s^2], shape (num_envs,)."""
