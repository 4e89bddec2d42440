"""Loading an articulation into a Newton model builder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import newton
import warp as wp

from treadle.assets.cfg import ActuatorCfg, ArticulationCfg
from treadle.assets.names import match_names, values_by_name
from treadle.assets.robots import robot_path
from treadle.errors import ConfigError

__all__ = ["ArticulationLayout", "spawn_articulation"]

_JOINT_TYPES = (newton.JointType.REVOLUTE, newton.JointType.PRISMATIC)


@dataclass(frozen=True)
class ArticulationLayout:
    """Where the parts of an articulation lie in one environment's arrays, and what is configured of each joint."""

    joint_names: tuple[str, ...]
    """Names of the joints with one degree of freedom, in model order."""
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
    """Pose of each joint's anchor in the frame of the body it moves: position [m], quaternion (x, y, z, w)."""
    position_limits: tuple[tuple[float, float], ...]
    """Lower and upper position limit of each joint [rad or m]."""
    effort_limits: tuple[float, ...]
    """Largest absolute effort of each joint [N*m or N]."""
    position_controlled: tuple[bool, ...]
    """Whether an action commands the joint's position target rather than its effort."""
    default_joint_pos: tuple[float, ...]
    """Default joint positions [rad or m]."""
    default_joint_vel: tuple[float, ...]
    """Default joint velocities [rad/s or m/s]."""


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
    joints = [j for j, kind in enumerate(builder.joint_type) if kind in _JOINT_TYPES]
    names = [_last(builder.joint_label[j]) for j in joints]
    _check_joints(builder, joints, names, where)
    floating = newton.JointType.FREE in builder.joint_type
    default_pos = values_by_name(cfg.init_state.joint_pos, names, f"{where}.init_state.joint_pos")
    default_vel = values_by_name(cfg.init_state.joint_vel, names, f"{where}.init_state.joint_vel")
    dofs = [builder.joint_qd_start[j] for j in joints]
    coords = [builder.joint_q_start[j] for j in joints]
    _set_default_state(builder, cfg, floating, coords, dofs, default_pos, default_vel)
    actuators = _actuator_of_each_joint(cfg, names, where)
    for actuator, dof in zip(actuators, dofs, strict=True):
        if actuator is not None:
            _set_actuator(builder, dof, actuator)
    return ArticulationLayout(
        joint_names=tuple(names),
        body_names=tuple(_last(label) for label in builder.body_label),
        floating_base=floating,
        first_coord=coords[0],
        first_dof=dofs[0],
        joint_child_body=tuple(builder.joint_child[j] for j in joints),
        joint_child_frame=tuple(tuple(float(x) for x in builder.joint_X_c[j]) for j in joints),
        position_limits=tuple((float(builder.joint_limit_lower[d]), float(builder.joint_limit_upper[d])) for d in dofs),
        effort_limits=tuple(float(builder.joint_effort_limit[d]) for d in dofs),
        position_controlled=tuple(a is not None and a.mode == "position" for a in actuators),
        default_joint_pos=tuple(default_pos),
        default_joint_vel=tuple(default_vel),
    )


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


def _check_joints(builder: newton.ModelBuilder, joints: Sequence[int], names: Sequence[str], where: str) -> None:
    allowed = (*_JOINT_TYPES, newton.JointType.FREE, newton.JointType.FIXED)
    problems = [
        f"{where}: joint {_last(builder.joint_label[j])!r} is of type {newton.JointType(kind).name}; allowed: "
        f"revolute, prismatic, and one free root"
        for j, kind in enumerate(builder.joint_type)
        if kind not in allowed or (kind == newton.JointType.FREE and j != 0)
    ]
    if not joints:
        problems.append(f"{where}: the model has no revolute or prismatic joint")
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        problems.append(f"{where}: joint names must be unique; repeated: {', '.join(repeated)}")
    if problems:
        raise ConfigError.from_problems(problems)


def _set_default_state(
    builder: newton.ModelBuilder,
    cfg: ArticulationCfg,
    floating: bool,
    coords: Sequence[int],
    dofs: Sequence[int],
    default_pos: Sequence[float],
    default_vel: Sequence[float],
) -> None:
    """Write the default state into the builder, since the solver sizes its buffers by the pose that it finds there."""
    init = cfg.init_state
    if floating:
        builder.joint_q[0:7] = [*init.pos, *init.rot]
        builder.joint_qd[0:6] = [*init.lin_vel, *init.ang_vel]
    for coord, dof, pos, vel in zip(coords, dofs, default_pos, default_vel, strict=True):
        builder.joint_q[coord] = builder.joint_target_q[coord] = pos
        builder.joint_qd[dof] = vel


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
    position = actuator.mode == "position"
    builder.joint_target_mode[dof] = int(newton.JointTargetMode.POSITION if position else newton.JointTargetMode.NONE)
    builder.joint_target_ke[dof] = actuator.stiffness if position else 0.0
    builder.joint_target_kd[dof] = actuator.damping if position else 0.0
    builder.joint_damping[dof] = 0.0 if position else actuator.damping
    builder.joint_armature[dof] = actuator.armature
    builder.joint_friction[dof] = actuator.friction
    if actuator.effort_limit != float("inf"):
        builder.joint_effort_limit[dof] = actuator.effort_limit


def _last(label: str) -> str:
    return label.rsplit("/", 1)[-1]
