"""Sensors: persistent measurements that are refreshed inside the graph and reset by mask."""

from typing import TYPE_CHECKING

from treadle._lazy import lazy_names
from treadle.sensors.cfg import (
    ContactSensorCfg,
    FrameTransformerCfg,
    ImuCfg,
    JointWrenchSensorCfg,
    OffsetCfg,
    SensorCfg,
)

if TYPE_CHECKING:
    from treadle.sensors.contact import ContactSensor
    from treadle.sensors.frame_transformer import FrameTransformer
    from treadle.sensors.imu import Imu
    from treadle.sensors.joint_wrench import JointWrenchSensor
    from treadle.sensors.sensor import Sensor, SteppedSensor

__all__ = [
    "ContactSensor",
    "ContactSensorCfg",
    "FrameTransformer",
    "FrameTransformerCfg",
    "Imu",
    "ImuCfg",
    "JointWrenchSensor",
    "JointWrenchSensorCfg",
    "OffsetCfg",
    "Sensor",
    "SensorCfg",
    "SteppedSensor",
]

__getattr__ = lazy_names(
    __name__,
    {
        "ContactSensor": "treadle.sensors.contact",
        "FrameTransformer": "treadle.sensors.frame_transformer",
        "Imu": "treadle.sensors.imu",
        "JointWrenchSensor": "treadle.sensors.joint_wrench",
        "Sensor": "treadle.sensors.sensor",
        "SteppedSensor": "treadle.sensors.sensor",
    },
)
