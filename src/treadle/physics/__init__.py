"""Physics: the protocol that a backend fulfils, and the Newton backend."""

from typing import TYPE_CHECKING

from treadle._lazy import lazy_names
from treadle.physics.cfg import MJWarpSolverCfg, SimulationCfg

if TYPE_CHECKING:
    from treadle.physics.backend import PhysicsBackend
    from treadle.physics.newton_backend import NewtonBackend

__all__ = ["MJWarpSolverCfg", "NewtonBackend", "PhysicsBackend", "SimulationCfg"]

__getattr__ = lazy_names(
    __name__,
    {
        "NewtonBackend": "treadle.physics.newton_backend",
        "PhysicsBackend": "treadle.physics.backend",
    },
)
