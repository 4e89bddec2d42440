"""The model properties of Newton's arrays, and how its solver learns of changes."""

from __future__ import annotations

from collections.abc import Collection
from typing import get_args

import newton
import numpy as np
import warp as wp
from newton.solvers import SolverMuJoCo

from treadle.errors import ConfigError, UnknownNameError
from treadle.physics.properties import ModelChange, ModelProperties

__all__ = ["copy_properties", "flags_of", "make_properties", "prefer_shape_friction", "shape_bodies"]

_FIELDS = {
    "body_mass": "body_mass",
    "body_inv_mass": "body_inv_mass",
    "body_inertia": "body_inertia",
    "body_inv_inertia": "body_inv_inertia",
    "body_com": "body_com",
    "shape_friction": "shape_material_mu",
    "shape_margin": "shape_margin",
    "shape_gap": "shape_gap",
    "drive_stiffness": "joint_target_ke",
    "drive_damping": "joint_target_kd",
    "joint_damping": "joint_damping",
    "joint_friction": "joint_friction",
    "joint_lower": "joint_limit_lower",
    "joint_upper": "joint_limit_upper",
    "joint_armature": "joint_armature",
}
"""Newton's name of each property with one entry per part of an environment."""

_ABOVE_GROUND = 2
"""Contact priority of shapes whose friction is randomized; that of the ground is 1."""

_FLAGS = {
    "inertia": newton.ModelFlags.BODY_INERTIAL_PROPERTIES,
    "shapes": newton.ModelFlags.SHAPE_PROPERTIES,
    "drives": newton.ModelFlags.JOINT_DOF_FORCE_PROPERTIES,
    "armature": newton.ModelFlags.JOINT_DOF_INERTIAL_PROPERTIES,
    "gravity": newton.ModelFlags.MODEL_PROPERTIES,
}


def make_properties(model: newton.Model) -> ModelProperties:
    """Return views of a model's arrays with a row per environment. The shapes of the ground are left out."""
    worlds, properties = model.world_count, ModelProperties()
    for name, source in _FIELDS.items():
        array = getattr(model, source)
        if array is None:
            raise ConfigError(f"the model has no {source}; allowed: an articulation with bodies and joints")
        used = _shapes_per_world(model) * worlds if name.startswith("shape") else array.shape[0]
        setattr(properties, name, array[:used].reshape((worlds, -1)))
    assert model.gravity is not None  # every finished model has one
    properties.gravity = model.gravity[:worlds]
    return properties


def copy_properties(properties: ModelProperties) -> ModelProperties:
    """Return a copy with arrays of its own."""
    copied = ModelProperties()
    for name in (*_FIELDS, "gravity"):
        setattr(copied, name, wp.clone(getattr(properties, name)))
    return copied


def shape_bodies(model: newton.Model) -> list[int]:
    """Return the body of each shape of an environment, -1 for one that is fixed to the world."""
    count = _shapes_per_world(model)
    assert model.shape_body is not None
    return [int(body) for body in model.shape_body.numpy()[:count]]


def prefer_shape_friction(solver: SolverMuJoCo, shapes: Collection[int]) -> None:
    """Let the friction of some shapes of an environment decide in their contacts, not that of the ground."""
    geoms = solver.mjc_geom_to_newton_shape
    assert geoms is not None  # as long as MuJoCo Warp simulates
    priority = solver.mjw_model.geom_priority.numpy().copy()
    priority[np.isin(geoms.numpy()[0], list(shapes))] = _ABOVE_GROUND
    solver.mjw_model.geom_priority.assign(priority)


def flags_of(changes: Collection[ModelChange]) -> int:
    """Return Newton's flags for some kinds of changes.

    Raises:
        UnknownNameError: There is no such kind.
    """
    flags = 0
    for change in changes:
        if change not in _FLAGS:
            raise UnknownNameError("change of the model", change, get_args(ModelChange))
        flags |= int(_FLAGS[change])
    return flags


def _shapes_per_world(model: newton.Model) -> int:
    """Return how many shapes an environment has. Those of the ground come last."""
    assert model.shape_world is not None  # every finished model has one
    world = model.shape_world.numpy()
    local, worlds = int((world >= 0).sum()), model.world_count
    expected = np.repeat(np.arange(worlds), local // worlds)
    if local % worlds or not np.array_equal(world[:local], expected):
        raise ConfigError("the shapes of the environments differ; allowed: equal environments")
    return local // worlds
