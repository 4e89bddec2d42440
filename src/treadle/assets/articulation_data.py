"""The persistent data of an articulation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from treadle.assets.cfg import ArticulationCfg
from treadle.assets.spawn import ArticulationLayout
from treadle.physics import PhysicsBackend

if TYPE_CHECKING:
    import torch

__all__ = ["ArticulationData", "TorchViews", "torch_view"]


def torch_view(array: wp.array) -> torch.Tensor:
    """Return a zero-copy torch view of an array that may be written whatever the mode of the code that asks first.

    A view that is made within ``torch.inference_mode()`` could never be written outside of it.
    """
    import torch

    with torch.inference_mode(False):
        return wp.to_torch(array)


class TorchViews:
    """Torch views of the Warp arrays of another object: zero copy, made once per array, and kept.

    ``data.torch.joint_pos`` is the tensor of ``data.joint_pos``. Writing into it writes into the array.
    """

    def __init__(self, owner: object):
        self._owner = owner

    def __getattr__(self, name: str) -> torch.Tensor:
        array = getattr(self._owner, name)
        if not isinstance(array, wp.array):
            raise AttributeError(f"{type(self._owner).__name__}.{name} is no Warp array")
        self.__dict__[name] = view = torch_view(array)
        return view


_TARGETS = ("joint_effort_target", "joint_pos_target", "joint_vel_target", "computed_effort", "applied_effort")


class ArticulationData:
    """Arrays of an articulation. None of them is ever reallocated; ``data.torch`` gives torch views of them.

    State: what the simulation computes. Derived: refreshed once per step by :meth:`Articulation.update`. Targets: what
    actions write. Constants: the defaults and limits, per environment so that they can be randomized.
    """

    joint_pos: wp.array
    """State: joint positions [rad or m], float, shape (num_envs, num_joints)."""
    joint_vel: wp.array
    """State: joint velocities [rad/s or m/s], float, shape (num_envs, num_joints)."""
    body_pose_w: wp.array
    """State: body poses, world frame, transform, shape (num_envs, num_bodies)."""
    body_vel_w: wp.array
    """State: body velocities (linear of the centre of mass, angular), world frame, spatial vector, shape (num_envs,
    num_bodies)."""
    body_acc_w: wp.array
    """State: body accelerations, as ``PhysicsBackend.body_qdd`` explains; zero unless it is measured. Spatial vector,
    shape (num_envs, num_bodies)."""
    joint_acc: wp.array
    """Derived: joint accelerations over the last physics step [rad/s^2 or m/s^2], float, shape (num_envs,
    num_joints); zero after a reset."""
    gravity_dir_w: wp.array
    """Derived: direction of gravity, world frame, unit vec3, shape (num_envs,)."""
    root_pos_w: wp.array
    """Derived: root position, world frame [m], vec3, shape (num_envs,)."""
    root_quat_w: wp.array
    """Derived: root orientation (x, y, z, w), world frame, quat, shape (num_envs,)."""
    root_lin_vel_w: wp.array
    """Derived: velocity of the root's centre of mass, world frame [m/s], vec3, shape (num_envs,)."""
    root_ang_vel_w: wp.array
    """Derived: angular velocity of the root, world frame [rad/s], vec3, shape (num_envs,)."""
    root_lin_vel_b: wp.array
    """Derived: velocity of the root's centre of mass, body frame [m/s], vec3, shape (num_envs,)."""
    root_ang_vel_b: wp.array
    """Derived: angular velocity of the root, body frame [rad/s], vec3, shape (num_envs,)."""
    projected_gravity_b: wp.array
    """Derived: direction of gravity, body frame, unit vec3, shape (num_envs,)."""
    joint_effort_target: wp.array
    """Target: joint efforts [N*m or N], float, shape (num_envs, num_joints)."""
    joint_pos_target: wp.array
    """Target: joint positions [rad or m], float, shape (num_envs, num_joints)."""
    joint_vel_target: wp.array
    """Target: joint velocities [rad/s or m/s], float, shape (num_envs, num_joints)."""
    computed_effort: wp.array
    """Commanded effort plus that of the drive before clamping, of the state before the last physics step [N*m or N],
    float, shape (num_envs, num_joints)."""
    applied_effort: wp.array
    """The same after clamping, each by itself, as the solver does."""
    previous_joint_vel: wp.array
    """State: joint velocities before the last physics step [rad/s or m/s], float, shape (num_envs, num_joints)."""
    default_root_pose: wp.array
    """Constant: root pose relative to the environment's origin, transform, shape (num_envs,)."""
    default_root_vel: wp.array
    """Constant: root velocity (linear, angular), world frame, spatial vector, shape (num_envs,)."""
    default_joint_pos: wp.array
    """Constant: joint positions [rad or m], float, shape (num_envs, num_joints)."""
    default_joint_vel: wp.array
    """Constant: joint velocities [rad/s or m/s], float, shape (num_envs, num_joints)."""
    joint_pos_lower: wp.array
    """Constant: lower position limits [rad or m], float, shape (num_envs, num_joints)."""
    joint_pos_upper: wp.array
    """Constant: upper position limits [rad or m], float, shape (num_envs, num_joints)."""
    soft_joint_pos_lower: wp.array
    """Constant: soft lower position limits [rad or m], float, shape (num_envs, num_joints)."""
    soft_joint_pos_upper: wp.array
    """Constant: soft upper position limits [rad or m], float, shape (num_envs, num_joints)."""
    joint_vel_limits: wp.array
    """Constant: largest absolute velocities [rad/s or m/s], float, shape (num_envs, num_joints)."""
    soft_joint_vel_limits: wp.array
    """Constant: the array of :attr:`joint_vel_limits`, to which terms apply a ratio of their own."""
    joint_effort_limits: wp.array
    """Constant: largest absolute efforts [N*m or N], float, shape (num_envs, num_joints)."""
    joint_stiffness: wp.array
    """Constant: stiffness of the drives [N*m/rad or N/m], float, shape (num_envs, num_joints); 0 without a drive. The
    solver has its own copy."""
    joint_damping: wp.array
    """Constant: damping of the drives [N*m*s/rad or N*s/m], float, shape (num_envs, num_joints); 0 without a drive."""

    def __init__(self, cfg: ArticulationCfg, layout: ArticulationLayout, physics: PhysicsBackend):
        self.torch = TorchViews(self)
        self._num_envs = physics.num_envs
        self._device = physics.device
        joints = len(layout.joint_names)
        coords = slice(layout.first_coord, layout.first_coord + joints)
        dofs = slice(layout.first_dof, layout.first_dof + joints)
        self.joint_pos = physics.joint_q[:, coords]
        self.joint_vel = physics.joint_qd[:, dofs]
        self.body_pose_w = physics.body_q
        self.body_vel_w = physics.body_qd
        self.body_acc_w = physics.body_qdd
        self.joint_acc = wp.zeros((self._num_envs, joints), dtype=float, device=self._device)
        self.previous_joint_vel = wp.zeros((self._num_envs, joints), dtype=float, device=self._device)
        self._allocate_derived()
        self._allocate_targets(joints)
        self._allocate_constants(cfg, layout)

    def _allocate_derived(self) -> None:
        for name in ("root_pos_w", "root_lin_vel_w", "root_ang_vel_w", "root_lin_vel_b", "root_ang_vel_b"):
            setattr(self, name, self._zeros(wp.vec3))
        self.root_quat_w = self._zeros(wp.quat)
        self.projected_gravity_b = self._zeros(wp.vec3)
        self.gravity_dir_w = self._zeros(wp.vec3)

    def _allocate_targets(self, joints: int) -> None:
        for name in _TARGETS:
            setattr(self, name, wp.zeros((self._num_envs, joints), dtype=float, device=self._device))

    def _allocate_constants(self, cfg: ArticulationCfg, layout: ArticulationLayout) -> None:
        init = cfg.init_state
        lower, upper = np.array(layout.position_limits, dtype=np.float64).T
        middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower) * cfg.soft_joint_pos_limit_factor
        self.default_root_pose = self._repeat([*init.pos, *init.rot], wp.transform)
        self.default_root_vel = self._repeat([*init.lin_vel, *init.ang_vel], wp.spatial_vector)
        self.default_joint_pos = self._repeat(layout.default_joint_pos, float)
        self.default_joint_vel = self._repeat(layout.default_joint_vel, float)
        self.joint_pos_lower = self._repeat(lower, float)
        self.joint_pos_upper = self._repeat(upper, float)
        self.soft_joint_pos_lower = self._repeat(middle - half, float)
        self.soft_joint_pos_upper = self._repeat(middle + half, float)
        self.joint_vel_limits = self._repeat(layout.velocity_limits, float)
        self.soft_joint_vel_limits = self.joint_vel_limits
        self.joint_effort_limits = self._repeat(layout.effort_limits, float)
        self.joint_stiffness = self._repeat(layout.stiffness, float)
        self.joint_damping = self._repeat(layout.damping, float)

    def _zeros(self, dtype: Any) -> wp.array:
        return wp.zeros(self._num_envs, dtype=dtype, device=self._device)

    def _repeat(self, row: Any, dtype: Any) -> wp.array:
        rows = np.repeat(np.asarray(row, dtype=np.float32)[None, :], self._num_envs, axis=0)
        return wp.array(rows, dtype=dtype, device=self._device)
