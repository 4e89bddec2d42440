"""Sensors: persistent measurements that are refreshed inside the graph and reset by mask."""

from typing import TYPE_CHECKING

from treadle._lazy import lazy_names

if TYPE_CHECKING:
    from treadle.sensors.joint_wrench import JointWrenchSensor
    from treadle.sensors.sensor import Sensor

__all__ = ["JointWrenchSensor", "Sensor"]

__getattr__ = lazy_names(
    __name__,
    {
        "JointWrenchSensor": "treadle.sensors.joint_wrench",
        "Sensor": "treadle.sensors.sensor",
    },
)
