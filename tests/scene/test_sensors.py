"""Sensors as entities of a scene: configuration, names, launches, modes and resets."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import pytest
import torch
import warp as wp
from support.ant import make_ant, random_actions, snapshot
from support.scenes import assign
from support.sensors import FEET, arrays_of, make_sensor_scene, measurements, reset, step

from treadle._frozen import frozen_copy
from treadle.cli.parsing import parse
from treadle.errors import ConfigError, UnknownNameError
from treadle.registry import task_spec
from treadle.scene import SceneCfg
from treadle.sensors import (
    ContactSensorCfg,
    FrameTransformerCfg,
    ImuCfg,
    JointWrenchSensorCfg,
    OffsetCfg,
    SensorCfg,
    SteppedSensor,
)

ALL = {
    "contact": ContactSensorCfg(body_names=(*FEET, "torso"), history_length=3, track_air_time=True),
    "imu": ImuCfg(body_name="torso", offset=OffsetCfg(pos=(0.1, 0.0, 0.05))),
    "frames": FrameTransformerCfg(source_body="torso", target_bodies=FEET),
    "wrench": JointWrenchSensorCfg(body_names=FEET),
}


def run(mode: str = "eager", resets: dict[int, list[int]] | None = None) -> list[dict[str, np.ndarray]]:
    """Let ants fall over while some are reset; return all measurements after each step."""
    scene = make_sensor_scene(ALL, num_envs=4, mode=mode)
    generator = torch.Generator().manual_seed(0)
    efforts = scene.robot.data.torch.joint_effort_target
    seen = []
    for number in range(24):
        efforts.copy_(torch.rand(efforts.shape, generator=generator) * 10.0 - 5.0)
        step(scene, decimation=3)
        if envs := (resets or {}).get(number):
            reset(scene, envs)
        seen.append(measurements(scene))
    touched = np.any([values["contact.net_forces_w"].any(axis=(1, 2)) for values in seen], axis=0)
    assert touched.all(), "all have fallen on the ground"
    return seen


RESETS = {7: [1], 15: [0, 3], 16: [1]}


@pytest.fixture(scope="module")
def eager() -> list[dict[str, np.ndarray]]:
    return run("eager", RESETS)


@pytest.mark.parametrize("mode", ["replay", "graph", "auto"])
def test_all_modes_measure_the_same(eager, mode):
    for number, (first, second) in enumerate(zip(eager, run(mode, RESETS), strict=True)):
        for name in first:
            assert np.array_equal(first[name], second[name]), f"{name} differs at step {number}"


def test_a_reset_touches_no_other_environment(eager):
    undisturbed = run("graph")
    for number in range(24):
        kept = [0, 1, 2, 3] if number < 7 else [0, 2, 3] if number < 15 else [2]
        for name, values in undisturbed[number].items():
            assert np.array_equal(values[kept], eager[number][name][kept]), f"{name} differs at step {number}"
    assert not np.array_equal(undisturbed[7]["imu.lin_acc_b"][1], eager[7]["imu.lin_acc_b"][1])


def test_after_a_reset_all_is_as_if_new(eager):
    new = measurements(make_sensor_scene(ALL, num_envs=4))
    for name, values in new.items():
        assert np.array_equal(eager[7][name][1], values[1]), name
        assert np.array_equal(eager[15][name][[0, 3]], values[[0, 3]]), name


def test_launches_of_each_sensor():
    """One launch for each physics step or for each environment step, and one for a reset."""
    scene = make_sensor_scene(ALL, num_envs=2)
    for sensor in scene.sensors.values():
        calls = []
        original, sensor._launches = sensor._launches, _Recorder(calls)
        counts = []
        for method in ("after_physics_step", "update", "reset"):
            calls.clear()
            getattr(sensor, method, lambda: None)()
            counts.append(len(calls))
        sensor._launches = original
        assert counts == ([1, 0, 1] if isinstance(sensor, SteppedSensor) else [0, 1, 1])


class _Recorder:
    def __init__(self, calls: list):
        self._calls = calls

    def launch(self, kernel: wp.Kernel, *args, **kwargs) -> None:
        self._calls.append(kernel)


def test_the_struct_of_a_sensor_holds_its_arrays():
    scene = make_sensor_scene(ALL, num_envs=2)
    for sensor in scene.sensors.values():
        names = [name for name in arrays_of(sensor) if not name.startswith("_")]
        assert names and all(getattr(sensor.state, name) is getattr(sensor, name) for name in names)
        assert all(getattr(sensor.torch, name).data_ptr() == getattr(sensor, name).ptr for name in names)


def test_entities_by_name():
    scene = make_sensor_scene({"imu": ALL["imu"], "feet": ALL["wrench"]}, num_envs=1)
    assert scene["robot"] is scene.robot
    assert scene["imu"] is scene.sensors["imu"] and list(scene.sensors) == ["imu", "feet"]
    with pytest.raises(UnknownNameError, match=r"unknown entity of the scene 'foot' .*; allowed: feet, imu, robot"):
        scene["foot"]


@dataclass(kw_only=True)
class HeightCfg(SensorCfg):
    """A sensor that a user adds."""

    def make(self, robot, physics, scope):
        return HeightSensor()


class HeightSensor:
    updates = 0

    def update(self) -> None:
        self.updates += 1

    def reset(self) -> None:
        self.updates = 0


def test_a_sensor_of_your_own():
    scene = make_sensor_scene({"height": HeightCfg()}, num_envs=2)
    step(scene, 3)
    assert scene["height"].updates == 3
    with pytest.raises(NotImplementedError, match="SensorCfg does not say which sensor it makes"):
        make_sensor_scene({"none": SensorCfg()}, num_envs=1)


@pytest.mark.parametrize(
    ("sensor", "message"),
    [
        (ContactSensorCfg(history_length=-1), r"history_length is -1; allowed: 0 to 1000"),
        (
            ContactSensorCfg(force_threshold=float("nan")),
            r"force_threshold is nan; allowed: a finite number of at least",
        ),
        (ContactSensorCfg(body_names=()), r"body_names is \(\); allowed: names or regular expressions"),
        (ImuCfg(body_name=""), r"body_name is ''; allowed: names or regular expressions"),
        (
            ImuCfg(body_name="a", gravity_bias=(0.0, 0.0, np.nan)),
            r"gravity_bias is .*; allowed: three finite numbers",
        ),
        (ImuCfg(body_name="a", offset=OffsetCfg(pos=(0.0, 0.0, np.inf))), r"offset\.pos is .*; allowed: three finite"),
        (
            FrameTransformerCfg(source_body="a", source_offset=OffsetCfg(rot=(0.0, 0.0, 0.0, 2.0))),
            r"source_offset\.rot is .*; allowed: a quaternion \(x, y, z, w\) of length 1",
        ),
        (
            FrameTransformerCfg(source_body="a", target_offsets={"b": OffsetCfg(pos=(np.nan, 0.0, 0.0))}),
            r"target_offsets\['b'\]\.pos is .*; allowed: three finite numbers",
        ),
        (JointWrenchSensorCfg(body_names=("",)), r"body_names is ''; allowed: names or regular expressions"),
    ],
)
def test_values_that_are_not_allowed(sensor, message):
    cfg = task_spec("Ant-Direct").load_env_cfg()
    cfg.scene.sensors = {"some": sensor}
    with pytest.raises(ConfigError, match=rf"^scene\.sensors\.some\.{message}"):
        cfg.validate()


@pytest.mark.parametrize("name", ["", "robot"])
def test_names_that_are_not_allowed(name):
    problems = list(SceneCfg(sensors={name: ContactSensorCfg()}).problems("scene"))
    assert f"scene.sensors has the name {name!r}; allowed: any name but '' and 'robot'" in problems


def test_types_are_checked():
    cfg = task_spec("Ant-Direct").load_env_cfg()
    cfg.scene.sensors = {"some": ContactSensorCfg(history_length="3")}
    with pytest.raises(ConfigError, match=r"scene\.sensors\['some'\]\.history_length is '3'; allowed: a whole number"):
        cfg.validate()
    cfg.scene.sensors = {"some": OffsetCfg()}
    with pytest.raises(ConfigError, match=r"scene\.sensors\['some'\] is OffsetCfg.*; allowed: a SensorCfg"):
        cfg.validate()


def test_options_of_the_command_line():
    cfg = task_spec("Ant-Direct").load_env_cfg()
    cfg.scene.sensors = copy.deepcopy(ALL)
    args = ["--scene.sensors.contact.history-length", "5", "--scene.sensors.imu.offset.pos", "1", "2", "3"]
    parsed = parse(cfg, args, "test")
    assert isinstance(parsed.scene.sensors["contact"], ContactSensorCfg)
    assert parsed.scene.sensors["contact"].history_length == 5
    assert parsed.scene.sensors["imu"].offset.pos == (1.0, 2.0, 3.0)
    assert parsed.scene.sensors["frames"] == ALL["frames"]


def test_a_configuration_in_use_makes_the_same_sensors():
    cfg = frozen_copy(SceneCfg(sensors=copy.deepcopy(ALL)))
    assert isinstance(cfg.sensors["imu"], ImuCfg)
    with pytest.raises(ConfigError, match="in use by an environment"):
        cfg.sensors["imu"].body_name = "other"


def sensing_ant(mode: str = "graph"):
    scene = task_spec("Ant-Direct").load_env_cfg().scene
    scene.sensors = copy.deepcopy(ALL)
    return make_ant(num_envs=4, mode=mode, scene=scene)


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_a_measurement_that_is_not_finite_ends_its_environment(mode):
    env = sensing_ant(mode)
    env.reset()
    actions = random_actions(env, 4) * 0.1
    for action in actions[:2]:
        assert not env.step(action)[2].any()
    speed = snapshot(env.scene["imu"]._last_lin_vel_w)
    speed[1] = np.nan  # the acceleration of the next step can't be finite
    assign(env.scene["imu"]._last_lin_vel_w, speed)
    _, reward, terminated, truncated, _ = env.step(actions[2])
    assert terminated.tolist() == [False, True, False, False] and not truncated.any()
    assert reward.isfinite().all() and reward[1] == 0.0
    assert not env.physics.bad_measurement.numpy().any(), "told once"
    assert np.isfinite(env.scene["imu"].lin_acc_b.numpy()).all(), "measured anew after the reset"
    assert not env.step(actions[3])[2].any()
    assert env.pop_episode_log()["Episode_Termination/non_finite"] == 1.0


def test_an_environment_steps_its_sensors():
    envs = {mode: sensing_ant(mode) for mode in ("eager", "graph")}
    for mode, env in envs.items():
        assert env.sensors[: len(ALL)] == list(env.scene.sensors.values()), mode
        env.reset()
        for action in random_actions(env, 30):
            env.step(action)
        env.reset(env_ids=[2])
    first, second = (measurements(env.scene) for env in envs.values())
    assert first["contact.net_forces_w_history"][[0, 1, 3]].any()
    assert not first["contact.net_forces_w_history"][2].any()
    for name in first:
        assert np.array_equal(first[name], second[name]), name
