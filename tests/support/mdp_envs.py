"""Manager-based environments of ants, and snapshots of all that a term may write."""

from __future__ import annotations

import dataclasses

import numpy as np
import support.ant  # noqa: F401  sets up the process
import warp as wp

from treadle import mdp
from treadle.assets import ActuatorCfg
from treadle.envs import ManagerBasedRLEnvCfg, ManagerBasedTorchEnv, ManagerBasedWarpEnv
from treadle.managers import ObservationGroupCfg, ObservationTermCfg
from treadle.registry import task_spec


def ants_cfg(*, num_envs: int = 4, mode: str = "eager", **fields) -> ManagerBasedRLEnvCfg:
    """Return a configuration of ants with position drives at the hips and efforts at the ankles."""
    base = task_spec("Ant-Direct").load_env_cfg()
    actuators = {
        "hips": ActuatorCfg(joint_names_expr=(".*_leg",), mode="position", stiffness=5.0, damping=0.5, armature=0.01),
        "ankles": ActuatorCfg(joint_names_expr=(".*_foot",), damping=0.1, armature=0.01, friction=0.02),
    }
    scene = dataclasses.replace(base.scene, robot=dataclasses.replace(base.scene.robot, actuators=actuators))
    cfg = ManagerBasedRLEnvCfg(sim=base.sim, scene=scene)
    cfg.observations = {"policy": ObservationGroupCfg(terms={"q": ObservationTermCfg(func=mdp.joint_pos_rel)})}
    cfg.actions = {"efforts": mdp.JointEffortActionCfg(joint_names=".*_foot")}
    for name, value in fields.items():
        assert hasattr(cfg, name), name
        setattr(cfg, name, value)
    cfg.scene.num_envs, cfg.sim.device, cfg.launch.mode = num_envs, "cpu", mode
    return cfg


def make_ants(frontend: str = "warp", **fields):
    """Make an environment of :func:`ants_cfg`."""
    cls = ManagerBasedWarpEnv if frontend == "warp" else ManagerBasedTorchEnv
    return cls(ants_cfg(**fields))


def arrays_of(env) -> dict[str, wp.array]:
    """Return the arrays that an event, an action or a command may write, by name; each has a row per environment."""
    owners = {"physics": env.physics, "buffers": env.buffers, "data": env.robot.data}
    arrays = {
        f"{name}.{field}": value
        for name, owner in owners.items()
        for field, value in vars(owner).items()
        if isinstance(value, wp.array) and not field.startswith("_") and value.size
    }
    properties = env.physics.properties
    return arrays | {f"properties.{field}": getattr(properties, field) for field in type_fields(properties)}


def type_fields(struct) -> list[str]:
    """Return the names of a Warp struct's arrays."""
    return [name for name in vars(type(struct)).get("vars", struct._cls.vars)]


def snapshot(env) -> dict[str, np.ndarray]:
    """Return copies of what :func:`arrays_of` names."""
    return {name: array.numpy().copy() for name, array in arrays_of(env).items()}


def restore(env, values: dict[str, np.ndarray]) -> None:
    """Write a snapshot back."""
    for name, array in arrays_of(env).items():
        source = wp.array(values[name], dtype=array.dtype, device=array.device)
        wp.copy(array, source)


def changed_rows(before: dict[str, np.ndarray], after: dict[str, np.ndarray], row: int) -> list[str]:
    """Return which arrays differ in a row, bit by bit."""
    return [
        name
        for name, old in before.items()
        if len(old) > row
        and np.ascontiguousarray(old[row]).tobytes() != np.ascontiguousarray(after[name][row]).tobytes()
    ]
