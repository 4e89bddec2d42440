"""The cartpole. Source of the constants: Isaac Lab 3.0, the robot of its cartpole tasks."""

from __future__ import annotations

from treadle.assets import ActuatorCfg, ArticulationCfg, InitialStateCfg

__all__ = ["cartpole_articulation"]


def cartpole_articulation() -> ArticulationCfg:
    """Return the cartpole 2 m above the ground, its pole upright, with both joints effort-controlled."""
    return ArticulationCfg(
        asset_path="cartpole",
        init_state=InitialStateCfg(pos=(0.0, 0.0, 2.0)),
        actuators={
            "cart": ActuatorCfg(joint_names_expr=("slider_to_cart",), damping=10.0, effort_limit=400.0),
            "pole": ActuatorCfg(joint_names_expr=("cart_to_pole",), effort_limit=400.0),
        },
    )
