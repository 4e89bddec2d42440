"""Newton physics through its MuJoCo Warp solver."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from typing import Any

import mujoco
import mujoco_warp
import newton
import numpy as np
import warp as wp
from newton.solvers import SolverMuJoCo

from treadle.errors import ConfigError, UnknownNameError
from treadle.launch import LaunchScope
from treadle.physics.cfg import SimulationCfg
from treadle.physics.funcs import ContactRows
from treadle.physics.kernels import clear_forces, count_overflow
from treadle.physics.newton_properties import (
    copy_properties,
    flags_of,
    make_properties,
    prefer_shape_friction,
    shape_bodies,
)
from treadle.physics.properties import ModelChange, ModelProperties

__all__ = ["NewtonBackend"]

_OPTIONAL = ("body_parent_f", "body_qdd")
"""What is measured only where it is asked for: names of arrays, and of Newton's observables."""


class NewtonBackend:
    """The :class:`treadle.physics.PhysicsBackend` on Newton.

    Steps in place (``state_in is state_out``), so any number of steps per graph leaves every pointer as it found it.
    Features that no task uses are off: switchable kinematic roots and MuJoCo sensors, which saves about ten launches
    per step. So does not measuring wrenches and accelerations of bodies, which are off until :meth:`measure` asks.

    Args:
        model: Newton model of ``num_envs`` equal worlds with one articulation each.
        cfg: Simulation configuration.
        scope: Owner of the launches that the backend adds around the solver.

    Raises:
        ConfigError: The model does not have one articulation per world, or MuJoCo refuses it.
    """

    external_wrench: wp.array
    """Wrench on each body, see :class:`treadle.physics.PhysicsBackend`."""

    def __init__(self, model: newton.Model, cfg: SimulationCfg, scope: LaunchScope):
        if model.articulation_count != model.world_count:
            raise ConfigError(
                f"the model has {model.articulation_count} articulations in {model.world_count} worlds; "
                f"allowed: one articulation per world"
            )
        self.model = model
        self.device = model.device
        self.num_envs = model.world_count
        self.dt = cfg.dt
        self._substeps = cfg.substeps
        try:
            self.solver = SolverMuJoCo(model, **_solver_options(cfg))
        except ValueError as error:
            raise ConfigError(f"MuJoCo can't simulate the model: {' '.join(str(error).split())}") from error
        # Overflows are counted per environment; the solver would print a line per step from the device.
        self.solver.mjw_model.opt.warn_overflow = 0
        self._scope = scope
        self._state = model.state()
        self._control = model.control()
        self._measured = {"overflow"}
        self._all_observables = self.solver.observables({*self._measured, *_OPTIONAL})
        self._observables = self._all_observables.select(self._measured)
        self._has_stepped = False
        self._allocate()
        newton.eval_fk(model, model.joint_q, model.joint_qd, self._state)

    def step(self) -> None:
        """Advance all worlds by ``dt``, in place, in ``substeps`` steps of the solver."""
        self._has_stepped = True
        dt = self.dt / self._substeps
        for _ in range(self._substeps):
            self.solver.step(self._state, self._state, self._control, None, dt, observables=self._observables)
            self._scope.launches.launch(
                count_overflow,
                self.num_envs,
                [self._all_observables.overflow, self.external_wrench, self.body_q],
                [self.overflow_steps, self._overflow_bits, self._body_f],
            )

    def reset(self) -> None:
        """Make the worlds in ``reset_mask`` consistent with the joint state that was written into them."""
        self.solver.reset(self._state, world_mask=self._world_mask, flags=newton.StateFlags.NONE)
        newton.eval_fk(self.model, self._state.joint_q, self._state.joint_qd, self._state, mask=self.moved_mask)
        self._scope.launches.launch(
            clear_forces,
            self.num_envs,
            [self.reset_mask, self.external_wrench, self.body_q],
            [self.joint_f, self.body_parent_f, self.body_qdd, self.bad_measurement, self._body_f],
        )

    def measure(self, name: str) -> wp.array:
        """Return an array that is measured from the next step on; a late call drops the graphs of the steps so far.

        Args:
            name: ``"body_parent_f"`` or ``"body_qdd"``.

        Raises:
            UnknownNameError: It is none of these.
        """
        if name not in _OPTIONAL:
            raise UnknownNameError("measurement", name, _OPTIONAL)
        if name not in self._measured:
            self._measured.add(name)
            self._observables = self._all_observables.select(self._measured)
            if self._has_stepped:
                self._scope.invalidate(f"{name} is measured from now on")
        return getattr(self, name)

    @cached_property
    def properties(self) -> ModelProperties:
        """Properties of the model with a row per environment."""
        return make_properties(self.model)

    @cached_property
    def default_properties(self) -> ModelProperties:
        """What the properties were when the first of them was asked for."""
        return copy_properties(self.properties)

    @cached_property
    def shape_bodies(self) -> list[int]:
        """Body of each shape of an environment, -1 for one that is fixed to the world."""
        return shape_bodies(self.model)

    def apply_properties(self, changes: Collection[ModelChange]) -> None:
        """Let the solver use what was written into :attr:`properties`.

        Raises:
            UnknownNameError: There is no such kind of change.
        """
        self.solver.notify_model_changed(flags_of(changes))

    def prefer_shape_friction(self, shapes: Collection[int]) -> None:
        """Let the friction of some shapes decide in their contacts. MuJoCo then takes their stiffness too."""
        prefer_shape_friction(self.solver, shapes)

    def has_contact_margins(self) -> bool:
        """Return whether ``shape_margin`` has an effect: not where MuJoCo's collisions involve boxes or meshes."""
        return not self.solver._zero_margins_for_native_ccd

    def use_external_wrench(self) -> wp.array:
        """Return the wrench on each body, which is applied from now on; a late call drops the graphs so far."""
        if self.external_wrench.shape[1] == 0:
            self.external_wrench = wp.zeros(self.body_q.shape, dtype=wp.spatial_vector, device=self.device)
            if self._has_stepped:
                self._scope.invalidate("wrenches act on bodies from now on")
        return self.external_wrench

    def describe_overflow(self) -> str | None:
        """Return which buffers overflowed so far and how to enlarge them, ``None`` if none did. Synchronizes."""
        counts = self.overflow_steps.numpy()
        if not counts.any():
            return None
        bits = int(np.bitwise_or.reduce(self._overflow_bits.numpy()))
        flags = (*mujoco_warp.OverflowType, *SolverMuJoCo.OverflowBits)
        names = [flag.name for flag in flags if bits & int(flag) and flag.name]
        return (
            f"{(counts > 0).sum()} of {self.num_envs} environments overflowed a solver buffer in {counts.sum()} "
            f"solver steps ({', '.join(names) or hex(bits)}); enlarge sim.solver.njmax for NEFC, "
            f"else sim.solver.nconmax"
        )

    def _allocate(self) -> None:
        worlds = self.num_envs
        state, control, device = self._state, self._control, self.device
        self.joint_q = self._rows(state.joint_q)
        self.joint_qd = self._rows(state.joint_qd)
        self.joint_f = self._rows(control.joint_f)
        self.joint_target_q = self._rows(control.joint_target_q)
        self.joint_target_qd = self._rows(control.joint_target_qd)
        self.body_q = self._rows(state.body_q)
        self.body_qd = self._rows(state.body_qd)
        self.body_com = self._rows(self.model.body_com)
        self.body_parent_f = self._rows(self._all_observables.body_parent_f)
        self.body_qdd = self._rows(self._all_observables.body_qdd)
        self._body_f = self._rows(state.body_f)
        self.external_wrench = wp.zeros((worlds, 0), dtype=wp.spatial_vector, device=device)
        gravity = self.model.gravity
        assert gravity is not None  # every finished model has one
        self.gravity = gravity[:worlds]
        self.contacts = _contact_rows(self.solver)
        self.bad_measurement = wp.zeros(worlds, dtype=wp.bool, device=device)
        # The solver wants one entry more than there are worlds: the last one stands for the global world.
        self._world_mask = wp.zeros(worlds + 1, dtype=wp.bool, device=device)
        self.reset_mask = self._world_mask[:worlds]
        self.moved_mask = self.reset_mask
        self.overflow_steps = wp.zeros(worlds, dtype=wp.int32, device=device)
        self._overflow_bits = wp.zeros(worlds, dtype=wp.int32, device=device)

    def _rows(self, flat: wp.array | None) -> wp.array:
        """Return a view of one of Newton's flat arrays with a row per environment."""
        if flat is None:
            raise ConfigError("the model has no bodies or no joints; allowed: an articulation with both")
        return flat.reshape((self.num_envs, -1))


def _contact_rows(solver: SolverMuJoCo) -> ContactRows:
    """Return where the solver keeps the forces of its contacts. Its arrays never move."""
    data, rows, kinds = solver.mjw_data, ContactRows(), mujoco.mjtConstraint
    rows.num_rows = data.nefc
    rows.row_kind, rows.row_contact, rows.row_force = data.efc.type, data.efc.id, data.efc.force
    rows.dimension = data.contact.dim
    rows.geoms, rows.frame, rows.friction = data.contact.geom, data.contact.frame, data.contact.friction
    bodies = solver.mjc_body_to_newton
    assert bodies is not None  # as long as MuJoCo Warp simulates
    body_of_geom = bodies.numpy()[0][solver.mjw_model.geom_bodyid.numpy()]
    rows.body_of_geom = wp.array(body_of_geom, dtype=int, device=data.nefc.device)
    rows.first_kind = int(kinds.mjCNSTR_CONTACT_FRICTIONLESS)
    rows.pyramidal_kind = int(kinds.mjCNSTR_CONTACT_PYRAMIDAL)
    return rows


def _solver_options(cfg: SimulationCfg) -> dict[str, Any]:
    solver = cfg.solver
    return {
        "solver": solver.solver,
        "integrator": solver.integrator,
        "cone": solver.cone,
        "impratio": solver.impratio,
        "iterations": solver.iterations,
        "ls_iterations": solver.ls_iterations,
        "tolerance": solver.tolerance,
        "njmax": solver.njmax,
        "nconmax": solver.nconmax,
        "kinematic_switchable_roots": False,
        "disable_sensors": True,
    }
