"""Physics: the protocol that a backend fulfils, and the Newton backend."""

from typing import TYPE_CHECKING

from treadle._lazy import lazy_names
from treadle.physics.cfg import MJWarpSolverCfg, SimulationCfg

if TYPE_CHECKING:
    from treadle.physics.backend import PhysicsBackend
    from treadle.physics.newton_backend import NewtonBackend
    from treadle.physics.properties import ModelProperties

__all__ = ["MJWarpSolverCfg", "ModelProperties", "NewtonBackend", "PhysicsBackend", "SimulationCfg"]

__getattr__ = lazy_names(
    __name__,
    {
        "ModelProperties": "treadle.physics.properties",
        "NewtonBackend": "treadle.physics.newton_backend",
        "PhysicsBackend": "treadle.physics.backend",
    },
)
