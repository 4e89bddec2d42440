"""The ant. Source of the constants: Isaac Lab 3.0, the robot of its ant tasks."""

from __future__ import annotations

from treadle.assets import ActuatorCfg, ArticulationCfg, InitialStateCfg

__all__ = ["ant_articulation"]


def ant_articulation() -> ArticulationCfg:
    """Return the ant with its default pose and its eight effort-controlled joints."""
    return ArticulationCfg(
        asset_path="ant",
        init_state=InitialStateCfg(
            pos=(0.0, 0.0, 0.5),
            joint_pos={
                ".*_leg": 0.0,
                "front_left_foot": 0.785398,
                "front_right_foot": -0.785398,
                "left_back_foot": -0.785398,
                "right_back_foot": 0.785398,
            },
        ),
        actuators={"body": ActuatorCfg(damping=0.1, armature=0.05, effort_limit=15.0)},
    )
