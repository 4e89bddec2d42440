"""Typed configuration of the simulation and of the MuJoCo Warp solver."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from treadle._checks import choice_problems, count_problems, is_finite

__all__ = ["MJWarpSolverCfg", "SimulationCfg"]


@dataclass(kw_only=True)
class MJWarpSolverCfg:
    """Options of Newton's MuJoCo Warp solver. A task lists the buffer sizes that it needs."""

    njmax: int = 64
    """Constraint rows per environment."""
    nconmax: int = 32
    """Contacts per environment. The pool is shared: when it overflows, contacts of arbitrary environments are
    dropped."""
    iterations: int = 100
    """Most iterations of the constraint solver."""
    ls_iterations: int = 50
    """Most iterations of its line search."""
    tolerance: float = 1e-6
    """The solver stops when its improvement falls below this value."""
    solver: Literal["newton", "cg"] = "newton"
    """Constraint solver."""
    cone: Literal["pyramidal", "elliptic"] = "pyramidal"
    """Friction cone."""
    impratio: float = 1.0
    """Ratio of frictional to normal constraint impedance."""
    integrator: Literal["euler", "implicitfast"] = "implicitfast"
    """Time integrator."""

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        yield from count_problems(self, f"{where}.", ("njmax", "nconmax", "iterations", "ls_iterations"), 100_000)
        yield from choice_problems(self, f"{where}.")
        for name in ("tolerance", "impratio"):
            value = getattr(self, name)
            if not (is_finite(value) and value > 0.0):
                yield f"{where}.{name} is {value}; allowed: a finite number above 0"


@dataclass(kw_only=True)
class SimulationCfg:
    """The simulation: time step, gravity, ground, device and solver."""

    dt: float = 1.0 / 120.0
    """Physics time step [s]."""
    substeps: int = 1
    """Solver steps within a physics step, each of ``dt / substeps``. Targets and forces hold for all of them."""
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
    """Gravity in the world frame [m/s^2]."""
    ground_friction: float = 1.0
    """Coefficient of sliding friction with the ground plane; the ground's value decides, not the robot's.
    At 0.001 the solver's forces are not finite."""
    device: str = "auto"
    """``"auto"`` (a GPU where there is one), ``"cpu"``, ``"cuda"`` or ``"cuda:N"``."""
    solver: MJWarpSolverCfg = field(default_factory=MJWarpSolverCfg)
    """Solver options."""

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        if not (is_finite(self.dt) and 1e-6 <= self.dt <= 1.0):
            yield f"{where}.dt is {self.dt}; allowed: 1e-6 to 1 s"
        yield from count_problems(self, f"{where}.", ("substeps",), 1000)
        if not (len(self.gravity) == 3 and is_finite(*self.gravity)):
            yield f"{where}.gravity is {self.gravity}; allowed: three finite numbers"
        if not (is_finite(self.ground_friction) and 0.01 <= self.ground_friction <= 1e3):
            yield f"{where}.ground_friction is {self.ground_friction}; allowed: 0.01 to 1000"
        yield from self.solver.problems(f"{where}.solver")
