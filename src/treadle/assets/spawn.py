"""Loading an articulation into a Newton model builder."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import newton
import warp as wp

from treadle.assets.cfg import ActuatorCfg, ArticulationCfg
from treadle.assets.dofs import Dof, find_dofs, keep_joint_names, last_part
from treadle.assets.names import match_names, values_by_name
from treadle.assets.robots import robot_path
from treadle.errors import ConfigError

__all__ = ["ArticulationLayout", "spawn_articulation"]


@dataclass(frozen=True)
class ArticulationLayout:
    """Where the parts of an articulation lie in one environment's arrays, and what is configured of each joint."""

    joint_names: tuple[str, ...]
    """Names of the joints, in model order. Each has one degree of freedom; those that share a body are one each."""
    body_names: tuple[str, ...]
    """Names of the bodies, in model order."""
    floating_base: bool
    """Whether the root moves freely."""
    first_coord: int
    """Index of the first joint in a row of ``joint_q``; the joints follow one another."""
    first_dof: int
    """Index of the first joint in a row of ``joint_qd``."""
    joint_child_body: tuple[int, ...]
    """Body that each joint moves."""
    joint_child_frame: tuple[tuple[float, ...], ...]
    """Pose of each joint's anchor in the frame of the body it moves: position [m], quaternion (x, y, z, w). Joints that
    share a body share its anchor."""
    position_limits: tuple[tuple[float, float], ...]
    """Lower and upper position limit of each joint [rad or m]."""
    effort_limits: tuple[float, ...]
    """Largest absolute effort of each joint [N*m or N]."""
    velocity_limits: tuple[float, ...]
    """Largest absolute velocity of each joint [rad/s or m/s], for terms; the solver does not enforce it."""
    position_controlled: tuple[bool, ...]
    """Whether an action commands the joint's position target rather than its effort."""
    velocity_controlled: tuple[bool, ...]
    """Whether an action commands the joint's velocity target."""
    stiffness: tuple[float, ...]
    """Stiffness of each joint's drive [N*m/rad or N/m], 0 without a drive."""
    damping: tuple[float, ...]
    """Damping of each joint's drive [N*m*s/rad or N*s/m], 0 without a drive."""
    default_joint_pos: tuple[float, ...]
    """Default joint positions [rad or m]."""
    default_joint_vel: tuple[float, ...]
    """Default joint velocities [rad/s or m/s]."""

    @property
    def effort_controlled(self) -> tuple[bool, ...]:
        """Whether an action commands each joint's effort."""
        commanded = zip(self.position_controlled, self.velocity_controlled, strict=True)
        return tuple(not (position or velocity) for position, velocity in commanded)


def spawn_articulation(builder: newton.ModelBuilder, cfg: ArticulationCfg, where: str) -> ArticulationLayout:
    """Add an articulation to the builder of one environment, with its default state and actuators.

    Args:
        builder: An empty builder, with Newton's MuJoCo attributes registered.
        cfg: What to add.
        where: Path of ``cfg`` in the whole configuration, for errors.

    Raises:
        ConfigError: The model can't be loaded, or does not fit the configuration.
    """
    _load_model(builder, cfg, where)
    joints = find_dofs(builder, where)
    names = [joint.name for joint in joints]
    floating = newton.JointType.FREE in builder.joint_type
    default_pos = values_by_name(cfg.init_state.joint_pos, names, f"{where}.init_state.joint_pos")
    default_vel = values_by_name(cfg.init_state.joint_vel, names, f"{where}.init_state.joint_vel")
    _set_default_state(builder, cfg, floating, joints, default_pos, default_vel)
    actuators = _actuator_of_each_joint(cfg, names, where)
    for actuator, joint in zip(actuators, joints, strict=True):
        if actuator is not None:
            _set_actuator(builder, joint.dof, actuator)
    dofs = [joint.dof for joint in joints]
    return ArticulationLayout(
        joint_names=tuple(names),
        body_names=tuple(last_part(label) for label in builder.body_label),
        floating_base=floating,
        first_coord=joints[0].coord,
        first_dof=dofs[0],
        joint_child_body=tuple(builder.joint_child[joint.joint] for joint in joints),
        joint_child_frame=tuple(tuple(float(x) for x in builder.joint_X_c[joint.joint]) for joint in joints),
        position_limits=tuple((float(builder.joint_limit_lower[d]), float(builder.joint_limit_upper[d])) for d in dofs),
        effort_limits=tuple(float(builder.joint_effort_limit[d]) for d in dofs),
        velocity_limits=tuple(float(builder.joint_velocity_limit[d]) for d in dofs),
        position_controlled=tuple(a is not None and a.mode == "position" for a in actuators),
        velocity_controlled=tuple(a is not None and a.mode == "velocity" for a in actuators),
        stiffness=_gains(builder, dofs, builder.joint_target_ke),
        damping=_gains(builder, dofs, builder.joint_target_kd),
        default_joint_pos=tuple(default_pos),
        default_joint_vel=tuple(default_vel),
    )


def _gains(builder: newton.ModelBuilder, dofs: Sequence[int], gains: Sequence[float]) -> tuple[float, ...]:
    driven = builder.joint_target_mode
    return tuple(float(gains[dof]) if driven[dof] != newton.JointTargetMode.NONE else 0.0 for dof in dofs)


def _load_model(builder: newton.ModelBuilder, cfg: ArticulationCfg, where: str) -> None:
    path = Path(cfg.asset_path)
    if path.suffix == "":
        path = robot_path(cfg.asset_path)
    if path.suffix != ".xml":
        raise ConfigError(f"{where}.asset_path is {cfg.asset_path!r}; allowed: an MJCF file (.xml) or a shipped robot")
    if not path.is_file():
        raise ConfigError(f"{where}.asset_path is {cfg.asset_path!r}: there is no such file")
    try:
        _check_actuators(ElementTree.parse(path), f"{where}.asset_path is {cfg.asset_path!r}")
        keep_joint_names(builder)
        builder.add_mjcf(
            str(path),
            xform=wp.transform(cfg.init_state.pos, cfg.init_state.rot),
            enable_self_collisions=cfg.self_collisions,
            ignore_names=["floor", "ground"],
            parse_visuals=False,
            collapse_fixed_joints=True,
        )
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(f"{where}.asset_path is {cfg.asset_path!r}, which Newton can't load: {error}") from error


def _check_actuators(tree: ElementTree.ElementTree[Any], what: str) -> None:
    """Refuse actuators that push without a command. Motors do not, and drives are set by the configuration."""
    kinds = {element.tag for section in tree.iter("actuator") for element in section}
    if refused := sorted(kinds - {"motor", "position", "velocity"}):
        raise ConfigError(
            f"{what}, which has actuators of kind {', '.join(refused)}; allowed: motor, position, velocity"
        )


def _set_default_state(
    builder: newton.ModelBuilder,
    cfg: ArticulationCfg,
    floating: bool,
    joints: Sequence[Dof],
    default_pos: Sequence[float],
    default_vel: Sequence[float],
) -> None:
    """Write the default state into the builder, since the solver sizes its buffers by the pose that it finds there."""
    init = cfg.init_state
    if floating:
        builder.joint_q[0:7] = [*init.pos, *init.rot]
        builder.joint_qd[0:6] = [*init.lin_vel, *init.ang_vel]
    for joint, pos, vel in zip(joints, default_pos, default_vel, strict=True):
        builder.joint_q[joint.coord] = builder.joint_target_q[joint.coord] = pos
        builder.joint_qd[joint.dof] = vel


def _actuator_of_each_joint(cfg: ArticulationCfg, names: Sequence[str], where: str) -> list[ActuatorCfg | None]:
    result: list[ActuatorCfg | None] = [None] * len(names)
    owner: dict[int, str] = {}
    for group, actuator in cfg.actuators.items():
        for index in match_names(actuator.joint_names_expr, names, f"{where}.actuators.{group}.joint_names_expr"):
            if index in owner:
                raise ConfigError(
                    f"{where}.actuators: joint {names[index]!r} is in both {owner[index]!r} and {group!r}"
                )
            owner[index] = group
            result[index] = actuator
    return result


def _set_actuator(builder: newton.ModelBuilder, dof: int, actuator: ActuatorCfg) -> None:
    driven = actuator.mode != "effort" or actuator.stiffness > 0.0
    kinds = newton.JointTargetMode
    kind = kinds.VELOCITY if actuator.mode == "velocity" else kinds.POSITION
    builder.joint_target_mode[dof] = int(kind if driven else kinds.NONE)
    builder.joint_target_ke[dof] = actuator.stiffness
    builder.joint_target_kd[dof] = actuator.damping if driven else 0.0
    builder.joint_damping[dof] = 0.0 if driven else actuator.damping
    builder.joint_armature[dof] = actuator.armature
    builder.joint_friction[dof] = actuator.friction
    if actuator.effort_limit != math.inf:
        builder.joint_effort_limit[dof] = actuator.effort_limit
    if actuator.velocity_limit != math.inf:
        builder.joint_velocity_limit[dof] = actuator.velocity_limit
