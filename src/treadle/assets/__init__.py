"""Articulations: their configuration, their persistent data, and the robot models that Treadle ships."""

from typing import TYPE_CHECKING

from treadle._lazy import lazy_names
from treadle.assets.cfg import ActuatorCfg, ArticulationCfg, InitialStateCfg

if TYPE_CHECKING:
    from treadle.assets.articulation import Articulation
    from treadle.assets.articulation_data import ArticulationData
    from treadle.assets.articulation_state import ArticulationState

__all__ = ["ActuatorCfg", "Articulation", "ArticulationCfg", "ArticulationData", "ArticulationState", "InitialStateCfg"]

__getattr__ = lazy_names(
    __name__,
    {
        "Articulation": "treadle.assets.articulation",
        "ArticulationData": "treadle.assets.articulation_data",
        "ArticulationState": "treadle.assets.articulation_state",
    },
)
