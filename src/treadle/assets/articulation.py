"""An articulation: reads and writes the state of one robot per environment."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import torch
import warp as wp

from treadle.assets.articulation_data import ArticulationData, TorchViews, torch_view
from treadle.assets.articulation_state import fill_state
from treadle.assets.cfg import ArticulationCfg
from treadle.assets.kernels import apply_actuators, derive_state, write_joint_state, write_root_state
from treadle.assets.names import match_names
from treadle.assets.spawn import ArticulationLayout
from treadle.errors import ConfigError
from treadle.launch import LaunchScope
from treadle.physics import PhysicsBackend

__all__ = ["Articulation"]

JointIds = Sequence[int] | slice | torch.Tensor | None


class Articulation:
    """One robot per environment, with persistent data.

    Args:
        cfg: Its configuration.
        layout: Where its parts lie in the arrays of an environment.
        physics: The backend that simulates it.
        env_origins: Origins of the environments [m], vec3, shape (num_envs,).
        scope: Owner of the launches.
    """

    def __init__(
        self,
        cfg: ArticulationCfg,
        layout: ArticulationLayout,
        physics: PhysicsBackend,
        env_origins: wp.array,
        scope: LaunchScope,
    ):
        self.cfg = cfg
        self.layout = layout
        self.data = ArticulationData(cfg, layout, physics)
        self._physics = physics
        self._env_origins = env_origins
        self._launches = scope.launches
        joints = self.num_joints
        dofs = slice(layout.first_dof, layout.first_dof + joints)
        coords = slice(layout.first_coord, layout.first_coord + joints)
        self._joint_f = physics.joint_f[:, dofs]
        self._joint_target_q = physics.joint_target_q[:, coords]
        self._root_views = torch_view(physics.joint_q)[:, :7], torch_view(physics.joint_qd)[:, :6]
        self._origins_view = torch_view(env_origins)
        self._joint_target_qd = physics.joint_target_qd[:, dofs]
        self._position_controlled = wp.array(layout.position_controlled, dtype=wp.bool, device=physics.device)
        self._velocity_controlled = wp.array(layout.velocity_controlled, dtype=wp.bool, device=physics.device)
        wp.copy(self.data.joint_pos_target, self.data.default_joint_pos)
        root_q, root_qd = (7, 6) if layout.floating_base else (0, 0)
        self.state = fill_state(self.data, env_origins, physics.joint_q[:, :root_q], physics.joint_qd[:, :root_qd])
        """The arrays as one argument of a kernel."""
        self.state_views = TorchViews(self.state)
        """Torch views of the same arrays."""

    @property
    def num_joints(self) -> int:
        """Number of joints with one degree of freedom."""
        return len(self.layout.joint_names)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints, in the order of all joint arrays."""
        return self.layout.joint_names

    @property
    def body_names(self) -> tuple[str, ...]:
        """Names of the bodies, in the order of all body arrays."""
        return self.layout.body_names

    def find_joints(self, names: str | Sequence[str]) -> list[int]:
        """Return the indices of the joints whose whole names match any of the regular expressions.

        Raises:
            ConfigError: An expression matches no joint; the message lists the names.
        """
        return match_names([names] if isinstance(names, str) else names, self.joint_names, "joint names")

    def find_bodies(self, names: str | Sequence[str]) -> list[int]:
        """Return the indices of the bodies whose whole names match any of the regular expressions.

        Raises:
            ConfigError: An expression matches no body; the message lists the names.
        """
        return match_names([names] if isinstance(names, str) else names, self.body_names, "body names")

    def set_joint_effort_target(self, target: torch.Tensor, joint_ids: JointIds = None) -> None:
        """Set the efforts that effort-controlled joints apply from the next physics step on, until they are set again.

        Args:
            target: Efforts [N*m or N], shape (num_envs, num_joints), or one column per joint of ``joint_ids``.
            joint_ids: Joints to set, as indices, a tensor of them or a slice; ``None`` for all.
        """
        self._set_target(self.data.torch.joint_effort_target, target, joint_ids)

    def set_joint_position_target(self, target: torch.Tensor, joint_ids: JointIds = None) -> None:
        """Set the positions that position-controlled joints move to, until they are set again.

        Args:
            target: Positions [rad or m], shape (num_envs, num_joints), or one column per joint of ``joint_ids``.
            joint_ids: Joints to set, as indices, a tensor of them or a slice; ``None`` for all.
        """
        self._set_target(self.data.torch.joint_pos_target, target, joint_ids)

    def set_joint_velocity_target(self, target: torch.Tensor, joint_ids: JointIds = None) -> None:
        """Set the velocities that velocity-controlled joints keep, until they are set again.

        Args:
            target: Velocities [rad/s or m/s], shape (num_envs, num_joints), or one column per joint of ``joint_ids``.
            joint_ids: Joints to set, as indices, a tensor of them or a slice; ``None`` for all.
        """
        self._set_target(self.data.torch.joint_vel_target, target, joint_ids)

    def write_targets_to_sim(self) -> None:
        """Hand the targets to the solver. Called before each physics step."""
        data = self.data
        self._launches.launch(
            apply_actuators,
            data.joint_effort_target.shape,
            [
                data.joint_pos,
                data.joint_vel,
                data.joint_effort_target,
                data.joint_pos_target,
                data.joint_vel_target,
                data.joint_stiffness,
                data.joint_damping,
                data.joint_effort_limits,
                self._position_controlled,
                self._velocity_controlled,
            ],
            [
                self._joint_f,
                self._joint_target_q,
                self._joint_target_qd,
                data.computed_effort,
                data.applied_effort,
                data.previous_joint_vel,
            ],
        )

    def update(self) -> None:
        """Refresh the derived state from the simulation, after a step."""
        self._derive(None)

    def reset(self) -> None:
        """Refresh the derived state once :meth:`PhysicsBackend.reset` is done.

        The joints have no acceleration in the environments of ``physics.reset_mask``.
        """
        self._derive(self._physics.reset_mask)

    def write_joint_state_to_sim(
        self,
        joint_pos: wp.array | torch.Tensor,
        joint_vel: wp.array | torch.Tensor,
        env_mask: wp.array | torch.Tensor,
        *,
        site: Hashable = None,
    ) -> None:
        """Write the joint state of the masked environments. :meth:`PhysicsBackend.reset` makes it take effect.

        Args:
            joint_pos: Positions [rad or m], shape (num_envs, num_joints). Warp arrays should be persistent.
            joint_vel: Velocities [rad/s or m/s], shape (num_envs, num_joints).
            env_mask: bool, shape (num_envs,). A tensor goes with tensors, an array with both; its view is made anew.
            site: Names the set of Warp arrays; see :meth:`treadle.launch.LaunchCache.launch`.
        """
        if isinstance(joint_pos, wp.array):
            self._launches.launch(
                write_joint_state,
                self.data.joint_pos.shape,
                [env_mask, joint_pos, joint_vel],
                [self.data.joint_pos, self.data.joint_vel],
                site=site,
            )
            return
        mask = _torch_mask(env_mask)
        state = self.data.torch
        state.joint_pos.copy_(joint_pos.where(mask, state.joint_pos))
        state.joint_vel.copy_(joint_vel.where(mask, state.joint_vel))

    def write_root_state_to_sim(
        self,
        root_pose: wp.array | torch.Tensor,
        root_vel: wp.array | torch.Tensor,
        env_mask: wp.array | torch.Tensor,
        *,
        site: Hashable = None,
    ) -> None:
        """Write the floating root of the masked environments. :meth:`PhysicsBackend.reset` makes it take effect.

        Args:
            root_pose: Pose relative to the environment's origin: transform of shape (num_envs,), or a tensor of shape
                (num_envs, 7), position [m] then quaternion (x, y, z, w).
            root_vel: Velocity, world frame: spatial vector of shape (num_envs,), or a tensor of shape (num_envs, 6),
                linear of the centre of mass [m/s] then angular [rad/s].
            env_mask: bool, shape (num_envs,). A tensor goes with tensors, an array with both; its view is made anew.
            site: Names the set of Warp arrays; see :meth:`treadle.launch.LaunchCache.launch`.

        Raises:
            ConfigError: The base of the articulation is fixed.
        """
        if not self.layout.floating_base:
            raise ConfigError(
                f"the root of {self.cfg.asset_path!r} is fixed; allowed: an articulation with a free root"
            )
        if isinstance(root_pose, wp.array):
            self._launches.launch(
                write_root_state,
                self._physics.num_envs,
                [env_mask, self._env_origins, root_pose, root_vel],
                [self._physics.joint_q, self._physics.joint_qd],
                site=site,
            )
            return
        mask = _torch_mask(env_mask)
        root_q, root_qd = self._root_views
        position = root_pose[:, :3] + self._origins_view
        root_q.copy_(torch.cat((position, root_pose[:, 3:]), dim=1).where(mask, root_q))
        root_qd.copy_(root_vel.where(mask, root_qd))

    def write_default_root_state_to_sim(self, env_mask: wp.array) -> None:
        """Put the floating root of the masked environments back to its default pose and velocity, if it has one."""
        if self.layout.floating_base:
            data = self.data
            self.write_root_state_to_sim(data.default_root_pose, data.default_root_vel, env_mask, site="default")

    def _derive(self, env_mask: wp.array | None) -> None:
        data, physics = self.data, self._physics
        self._launches.launch(
            derive_state,
            physics.num_envs,
            [
                env_mask,
                physics.body_q,
                physics.body_qd,
                data.joint_vel,
                data.previous_joint_vel,
                physics.gravity,
                0,
                physics.dt,
            ],
            [
                data.root_pos_w,
                data.root_quat_w,
                data.root_lin_vel_w,
                data.root_ang_vel_w,
                data.root_lin_vel_b,
                data.root_ang_vel_b,
                data.projected_gravity_b,
                data.gravity_dir_w,
                data.joint_acc,
            ],
            site="step" if env_mask is None else "reset",
        )

    @staticmethod
    def _set_target(view: torch.Tensor, target: torch.Tensor, joint_ids: JointIds) -> None:
        if joint_ids is None:
            view.copy_(target)
        else:
            columns = joint_ids if isinstance(joint_ids, slice | torch.Tensor) else list(joint_ids)
            view[:, columns] = target.to(view.dtype)


def _torch_mask(env_mask: wp.array | torch.Tensor) -> torch.Tensor:
    """Return a mask as a column."""
    return (wp.to_torch(env_mask) if isinstance(env_mask, wp.array) else env_mask)[:, None]
