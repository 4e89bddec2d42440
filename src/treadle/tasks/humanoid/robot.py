"""The humanoid. Source of the constants: Isaac Lab 3.0, the robot of its humanoid tasks."""

from __future__ import annotations

from treadle.assets import ActuatorCfg, ArticulationCfg, InitialStateCfg

__all__ = ["JOINT_GEARS", "humanoid_articulation"]

JOINT_GEARS = {
    ".*_waist:.*": 67.5,
    ".*_upper_arm:.*": 67.5,
    "pelvis": 67.5,
    ".*_lower_arm": 45.0,
    ".*_thigh:0": 45.0,
    ".*_thigh:1": 135.0,
    ".*_thigh:2": 45.0,
    ".*_shin": 90.0,
    ".*_foot:.*": 22.5,
}
"""Effort of each joint [N*m] at an action of 1, by regular expression of whole joint names."""

_DRIVES = {
    ".*_waist:.*": (20.0, 5.0),
    ".*_upper_arm:.*": (10.0, 5.0),
    "pelvis": (10.0, 5.0),
    ".*_lower_arm": (2.0, 1.0),
    ".*_thigh:0": (10.0, 5.0),
    ".*_thigh:1": (20.0, 5.0),
    ".*_thigh:2": (10.0, 5.0),
    ".*_shin": (5.0, 0.1),
    ".*_foot:.*": (2.0, 1.0),
}
"""Stiffness [N*m/rad] and damping [N*m*s/rad] by regular expression."""


def humanoid_articulation() -> ArticulationCfg:
    """Return the humanoid, upright, with its 21 effort-controlled joints, which drives pull back to zero."""
    return ArticulationCfg(
        asset_path="humanoid",
        init_state=InitialStateCfg(pos=(0.0, 0.0, 1.34)),
        actuators={
            pattern.strip(".*_:").replace(":", "_"): ActuatorCfg(
                joint_names_expr=(pattern,),
                stiffness=stiffness,
                damping=damping,
                armature=0.01,
                effort_limit=150.0,
                velocity_limit=100.0,
            )
            for pattern, (stiffness, damping) in _DRIVES.items()
        },
        self_collisions=True,
    )
