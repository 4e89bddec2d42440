"""An environment that holds many terms, random states for it, and both forms of each term on these."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import support.ant  # noqa: F401  sets up the process
import torch
import warp as wp

from treadle import mdp
from treadle.assets.articulation_data import torch_view
from treadle.assets.articulation_state import ArticulationState
from treadle.envs import ManagerBasedRLEnvCfg, ManagerBasedWarpEnv
from treadle.managers import (
    CommandTerm,
    CommandTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    SceneEntityCfg,
    TerminationTermCfg,
)
from treadle.managers.twins import arguments_of, find_twin, warp_twin
from treadle.registry import task_spec
from treadle.sensors import ContactSensorCfg, ImuCfg, JointWrenchSensorCfg

NUM_ENVS = 7
LEGS = (".*_leg",)
PARTS = ("right_back_.*", "front_left_foot")
"""Joints and bodies in another order than that of the ant."""


class GivenCommand(CommandTerm):
    """A command that a test writes."""

    cfg: GivenCommandCfg

    def __init__(self, cfg, env):
        super().__init__(cfg, env, cfg.size)

    def _resample_command(self, env_mask):
        """Keep the command."""


@wp.func
def keep(env: int) -> None:
    """Keep the command."""


warp_twin(GivenCommand, methods={"resample": keep})(keep)


@dataclass(kw_only=True)
class GivenCommandCfg(CommandTermCfg):
    """A command that a test writes."""

    class_type: ClassVar[type[CommandTerm]] = GivenCommand
    resampling_time_range: tuple[float, float] = (5.0, 5.0)
    size: int = 3
    body_name: str = "left_back_foot"


@dataclass
class Case:
    """A term with parameters."""

    func: Any
    params: dict[str, Any] = field(default_factory=dict)

    def variants(self) -> dict[str, Case]:
        """Return the case, and one with a selection in another order for each selection that the term takes."""
        name = self.func.__name__
        found = {name: self}
        arguments = arguments_of(find_twin(self.func).func)
        selections = {}
        for key, selected in (("asset_cfg", ("joint_names", "body_names")), ("sensor_cfg", ("body_names",))):
            prefix = "" if key == "asset_cfg" else "sensor_"
            for names in selected:
                if f"{prefix}{names.removesuffix('_names')}_ids" in arguments:
                    entity = self.params.get(key, SceneEntityCfg(name="robot"))
                    selections[key] = replace(entity, **{names: PARTS, "preserve_order": True})
        if selections:
            found[f"{name}_selected"] = Case(self.func, self.params | selections)
        return found


def terms_cfg(observations: list[Case], rewards: list[Case], terminations: list[Case]) -> ManagerBasedRLEnvCfg:
    """Return the configuration of ants with all sensors, two commands, and some terms."""
    direct = task_spec("Ant-Direct").load_env_cfg()
    cfg = ManagerBasedRLEnvCfg(
        decimation=2,
        episode_length_s=1.0,
        sim=direct.sim,
        scene=direct.scene,
        actions={
            "feet": mdp.JointEffortActionCfg(joint_names=".*_foot", scale=15.0),
            "legs": mdp.JointEffortActionCfg(joint_names=".*_leg", scale=15.0),
        },
        commands={"velocity": GivenCommandCfg(), "pose": GivenCommandCfg(size=7)},
        observations={"policy": ObservationGroupCfg(terms=_named(observations, ObservationTermCfg))},
        rewards=_named(rewards, RewardTermCfg),
        terminations=_named(terminations, TerminationTermCfg),
    )
    cfg.scene.num_envs = NUM_ENVS
    cfg.scene.sensors = {
        "contacts": ContactSensorCfg(history_length=3, track_air_time=True),
        "untimed": ContactSensorCfg(body_names=(".*_foot",)),
        "imu": ImuCfg(body_name="torso"),
        "wrenches": JointWrenchSensorCfg(body_names=(".*_foot", ".*_leg")),
    }
    cfg.sim.device = "cpu"
    cfg.launch.mode = "eager"
    return cfg


def make_env(observations=(), rewards=(), terminations=()) -> ManagerBasedWarpEnv:
    """Make an environment that holds the variants of some cases, with a termination and an observation at least."""
    terminations = [Case(mdp.time_out), *(case for case in terminations if case.func is not mdp.time_out)]
    observations = [Case(mdp.base_pos_z), *(case for case in observations if case.func is not mdp.base_pos_z)]
    return ManagerBasedWarpEnv(terms_cfg(observations, list(rewards), terminations))


def _named(cases: list[Case], term_cfg: type) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for case in cases:
        for name, variant in case.variants().items():
            while name in named:
                name += "_again"
            named[name] = term_cfg(func=variant.func, params=variant.params)
            if variant.func is mdp.time_out:
                named[name].time_out = True
    return named


def randomize(env: ManagerBasedWarpEnv, seed: int) -> None:
    """Write random valid values into everything that terms read."""
    rng = np.random.default_rng(seed)
    data = env.robot.data
    for name in ArticulationState.vars:
        if isinstance(array := getattr(data, name, None), wp.array):
            write(array, _random(rng, array))
    joints = data.joint_pos.shape
    write(data.joint_pos_lower, -rng.uniform(0.4, 1.2, joints))
    write(data.joint_pos_upper, rng.uniform(0.4, 1.2, joints))
    write(data.soft_joint_pos_lower, 0.9 * data.joint_pos_lower.numpy())
    write(data.soft_joint_pos_upper, 0.9 * data.joint_pos_upper.numpy())
    write(data.joint_pos, rng.uniform(-1.3, 1.3, joints) * rng.choice((0.2, 1.0), (NUM_ENVS, 1)))
    write(data.joint_vel_limits, rng.uniform(1.0, 3.0, joints))
    write(data.applied_effort, np.where(rng.random(joints) < 0.9, data.computed_effort.numpy(), 0.5))
    for name in ("gravity_dir_w", "projected_gravity_b"):
        vectors = rng.normal(size=(NUM_ENVS, 3))
        write(getattr(data, name), vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    _randomize_sensors(env, rng)
    _randomize_episodes(env, rng)
    for term in env.command_manager.terms.values():
        command = rng.normal(size=term.command_buffer.shape) * rng.choice((0.01, 1.0), (NUM_ENVS, 1))
        if command.shape[1] == 7:
            command[:, 3:] /= np.linalg.norm(command[:, 3:], axis=1, keepdims=True)
        write(term.command_buffer, command)
        write(term.time_left, rng.choice((0.5 * env.step_dt, 2.0), NUM_ENVS))
        write(term.counter, rng.integers(1, 3, NUM_ENVS))


def _random(rng: np.random.Generator, array: wp.array) -> np.ndarray:
    """Return normal numbers; of unit length where they are rotations."""
    values = rng.normal(size=array.numpy().shape)
    first = {wp.quat: 0, wp.transform: 3}.get(array.dtype)
    if first is not None:
        values[..., first:] /= np.linalg.norm(values[..., first:], axis=-1, keepdims=True)
    return values


def _randomize_sensors(env: ManagerBasedWarpEnv, rng: np.random.Generator) -> None:
    contacts = env.scene["contacts"]
    shape = contacts.net_forces_w.shape
    standing = rng.random(shape) < 0.5
    scale = rng.choice((0.1, 1.0), (NUM_ENVS, 1, 1, 1))
    write(contacts.net_forces_w_history, scale * rng.normal(size=(*contacts.net_forces_w_history.shape, 3)))
    write(contacts.current_contact_time, np.where(standing, rng.choice((0.01, 0.3), shape), 0.0))
    write(contacts.current_air_time, np.where(standing, 0.0, rng.choice((0.01, 0.3), shape)))
    write(contacts.last_contact_time, rng.uniform(0.0, 1.0, shape))
    write(contacts.last_air_time, rng.uniform(0.0, 1.0, shape))
    imu = env.scene["imu"]
    for array in (imu.quat_w, imu.ang_vel_b, imu.lin_acc_b, imu.projected_gravity_b):
        write(array, _random(rng, array))
    write(env.scene["wrenches"].wrench, rng.normal(size=env.scene["wrenches"].wrench.shape))


def _randomize_episodes(env: ManagerBasedWarpEnv, rng: np.random.Generator) -> None:
    buffers = env.buffers
    write(buffers.actions, rng.normal(size=buffers.actions.shape))
    write(buffers.previous_actions, rng.normal(size=buffers.actions.shape))
    write(buffers.episode_length, rng.choice((3, 17, env.max_episode_length), NUM_ENVS))
    endings = rng.integers(0, 3, NUM_ENVS)
    write(buffers.terminated, endings == 1)
    write(buffers.truncated, endings == 2)
    write(env.termination_manager.values, rng.random(env.termination_manager.values.shape) < 0.4)
    for name in ("non_finite", "bad_observation"):
        write(getattr(buffers, name), np.zeros(NUM_ENVS, dtype=bool))
    for term in env.reward_manager.terms.values():
        for array in buffers_of(term).values():
            if array.dtype is wp.float64:
                write(array, rng.uniform(999.0, 1001.0, array.shape))


def write(array: wp.array, values: Any) -> None:
    """Write values into an array, which may be a strided view."""
    view = torch_view(array)
    view.copy_(torch.as_tensor(np.asarray(values)).to(view.dtype))


def buffers_of(term: Any) -> dict[str, wp.array]:
    """Return the arrays of a term that has a state."""
    state = {} if term.instance is None else vars(term.instance)
    return {name: value for name, value in state.items() if isinstance(value, wp.array)}


def compute_torch(term: Any) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """Return what the torch form computes and leaves in the term's buffers, which keep their values."""
    buffers = {name: torch_view(array) for name, array in buffers_of(term).items()}
    saved = {name: view.clone() for name, view in buffers.items()}
    value = term.torch().clone()
    after = {name: view.clone() for name, view in buffers.items()}
    for name, view in buffers.items():
        view.copy_(saved[name])
    return value, after
