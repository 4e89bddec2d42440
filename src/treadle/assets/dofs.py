"""The joints of a loaded model, one for each degree of freedom, with the names that the file gives them.

Newton merges the joints of a file that share a body into one, and joins their names. Here each of them is a joint of
its own again.
"""

from __future__ import annotations

from dataclasses import dataclass

import newton

from treadle.errors import ConfigError

__all__ = ["Dof", "find_dofs", "keep_joint_names", "last_part"]

_SINGLE = (newton.JointType.REVOLUTE, newton.JointType.PRISMATIC)
_MERGED = newton.JointType.D6
_NAMES = "joint_names_by_dof"


@dataclass(frozen=True)
class Dof:
    """A joint with one degree of freedom."""

    name: str
    """Its name in the file, without the bodies above it."""
    joint: int
    """Index of the model's joint that it is, or is a part of."""
    coord: int
    """Its index in ``joint_q``."""
    dof: int
    """Its index in ``joint_qd``."""


def keep_joint_names(builder: newton.ModelBuilder) -> None:
    """Let a builder keep the name of each joint of the MJCF file that is added next, for :func:`find_dofs`."""
    names = newton.ModelBuilder.CustomAttribute(
        name=_NAMES,
        dtype=str,
        default="",
        frequency=newton.Model.AttributeFrequency.JOINT_DOF,
        mjcf_attribute_name="name",
    )
    builder.add_custom_attribute(names)


def find_dofs(builder: newton.ModelBuilder, where: str) -> list[Dof]:
    """Return the joints of a model in the order of its degrees of freedom, a free root left out.

    Args:
        builder: Builder with one model, added after :func:`keep_joint_names`. The names that this kept are dropped.
        where: Path of the model's configuration, for errors.

    Raises:
        ConfigError: A joint is of a type that is not allowed, joints have no name or the same, or there is none.
    """
    kept = builder.custom_attributes.pop(_NAMES).values
    names: dict[int, str] = kept if isinstance(kept, dict) else {}
    joints = [
        Dof(_name(builder, joint, offset, names), joint, builder.joint_q_start[joint] + offset, start + offset)
        for joint, start in enumerate(builder.joint_qd_start)
        if builder.joint_type[joint] in (*_SINGLE, _MERGED)
        for offset in range(sum(builder.joint_dof_dim[joint]))
    ]
    _check(builder, joints, where)
    return joints


def last_part(label: str) -> str:
    """Return the name at the end of a label of Newton, which begins with the names of the bodies above."""
    return label.rsplit("/", 1)[-1]


def _name(builder: newton.ModelBuilder, joint: int, offset: int, names: dict[int, str]) -> str:
    if builder.joint_type[joint] != _MERGED:
        return last_part(builder.joint_label[joint])
    return names.get(builder.joint_qd_start[joint] + offset, "").replace("-", "_")  # as Newton writes other names


def _check(builder: newton.ModelBuilder, joints: list[Dof], where: str) -> None:
    allowed = (*_SINGLE, _MERGED, newton.JointType.FREE, newton.JointType.FIXED)
    problems = [
        f"{where}: joint {last_part(builder.joint_label[j])!r} is of type {newton.JointType(kind).name}; allowed: "
        f"hinge, slide, and one free root"
        for j, kind in enumerate(builder.joint_type)
        if kind not in allowed or (kind == newton.JointType.FREE and j != 0)
    ]
    if not joints:
        problems.append(f"{where}: the model has no hinge or slide joint")
    names = [joint.name for joint in joints]
    bodies = dict.fromkeys(builder.joint_child[joint.joint] for joint in joints if not joint.name)
    problems += [
        f"{where}: joints of body {last_part(builder.body_label[body])!r} have no name; allowed: a name for each "
        f"of several joints in one body"
        for body in bodies
    ]
    if repeated := sorted({name for name in names if name and names.count(name) > 1}):
        problems.append(f"{where}: joint names must be unique; repeated: {', '.join(repeated)}")
    if problems:
        raise ConfigError.from_problems(problems)
