"""Contact forces, their history, and times in the air and in contact."""

from __future__ import annotations

import mujoco_warp
import numpy as np
import pytest
import torch
import warp as wp
from support.ant import snapshot
from support.sensors import FEET, make_sensor_scene, reset, step

from treadle.errors import ConfigError
from treadle.physics import MJWarpSolverCfg
from treadle.sensors import ContactSensorCfg
from treadle.sensors.funcs import ContactSensorState, is_first_air, is_first_contact

LIMIT, FRICTIONLESS, PYRAMIDAL, ELLIPTIC = 3, 5, 6, 7
DT = 1.0 / 120.0


def scene_with(num_envs: int = 3, device: object = "cpu", **cfg):
    scene = make_sensor_scene({"contact": ContactSensorCfg(**cfg)}, num_envs=num_envs, device=device)
    return scene, scene["contact"]


class Script:
    """Contacts written into the solver's arrays by hand, and the net forces that they mean, by NumPy."""

    def __init__(self, scene):
        self.contacts = scene.physics.contacts
        self.geom_of_body = {b: g for g, b in enumerate(self.contacts.body_of_geom.numpy().tolist())}
        names = ("num_rows", "row_kind", "row_contact", "row_force", "dimension", "geoms", "frame", "friction")
        self.values = {name: np.zeros_like(getattr(self.contacts, name).numpy()) for name in names}
        self.force = np.zeros((scene.physics.num_envs, len(scene.robot.body_names), 3))
        self.num_contacts = 0

    def add(self, env: int, bodies: tuple[int, int], kind: int, row_force, frame=None, friction=None) -> None:
        """Add a contact between two bodies, -1 for the ground."""
        frame = np.eye(3)[[2, 0, 1]] if frame is None else frame
        friction = np.zeros(5) if friction is None else friction
        v, contact, first = self.values, self.num_contacts, self.values["num_rows"][env]
        rows = slice(first, first + len(row_force))
        self.num_contacts += 1
        v["num_rows"][env] = rows.stop
        v["row_kind"][env, rows], v["row_contact"][env, rows], v["row_force"][env, rows] = kind, contact, row_force
        v["dimension"][contact] = len(row_force) // 2 + 1 if kind == PYRAMIDAL else len(row_force)
        v["geoms"][contact] = [self.geom_of_body[body] for body in bodies]
        v["frame"][contact], v["friction"][contact] = frame, friction
        local = np.zeros(6)
        if kind == PYRAMIDAL:
            for axis, (plus, minus) in enumerate(np.reshape(row_force, (-1, 2))):
                local[0] += plus + minus
                local[axis + 1] = (plus - minus) * friction[axis]
        else:
            local[: len(row_force)] = row_force
        force = local[:3] @ frame
        for body, sign in zip(bodies, (-1.0, 1.0), strict=True):
            if body >= 0:
                self.force[env, body] += sign * force

    def add_limit(self, env: int) -> None:
        """Add a row that belongs to no contact."""
        row = self.values["num_rows"][env]
        self.values["num_rows"][env] += 1
        self.values["row_kind"][env, row], self.values["row_force"][env, row] = LIMIT, 100.0

    def write(self) -> None:
        for name, values in self.values.items():
            array = getattr(self.contacts, name)
            wp.copy(array, wp.array(values, dtype=array.dtype, device=array.device))


def touch(scene, newtons: dict[tuple[int, int], float]) -> None:
    """Let the ground push bodies of environments up in the next measurement: {(env, body): force}."""
    script = Script(scene)
    for (env, body), force in newtons.items():
        script.add(env, (-1, body), FRICTIONLESS, [force])
    script.write()


def test_any_contacts(device):
    """The kernel against NumPy: all cones, dimensions and pairs of bodies, between rows that are no contacts."""
    scene, sensor = scene_with(num_envs=5, device=device)
    script, rng = Script(scene), np.random.default_rng(0)
    bodies = len(scene.robot.body_names)
    rows = {FRICTIONLESS: (1,), ELLIPTIC: (3, 4, 6), PYRAMIDAL: (4, 6, 10)}
    for env in range(4):  # the fifth touches nothing
        script.add_limit(env)
        for kind in rng.choice(list(rows), 12):
            pair = tuple(rng.choice(np.arange(-1, bodies), 2, replace=False).tolist())
            frame = np.linalg.qr(rng.normal(size=(3, 3)))[0]
            script.add(env, pair, kind, rng.uniform(-1, 5, rng.choice(rows[kind])), frame, rng.uniform(0, 1, 5))
    script.write()
    sensor.net_forces_w_history.fill_(float("nan"))
    sensor.after_physics_step()
    np.testing.assert_allclose(sensor.net_forces_w.numpy(), script.force, atol=1e-4)
    assert np.abs(script.force[:4]).max() > 1.0 and not sensor.net_forces_w.numpy()[4].any()
    assert not scene.physics.bad_measurement.numpy().any()


def test_rows_that_found_no_place_are_not_read():
    scene, sensor = scene_with(num_envs=1, body_names=("torso",))
    touch(scene, {(0, 0): 5.0})
    scene.physics.contacts.num_rows.fill_(10**9)
    sensor.after_physics_step()
    np.testing.assert_allclose(sensor.net_forces_w.numpy()[0, 0], [0.0, 0.0, 5.0])


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_against_the_solvers_own_contact_forces(cone):
    cfg = {"all": ContactSensorCfg()}
    scene = make_sensor_scene(cfg, num_envs=3, mode="graph", solver=MJWarpSolverCfg(njmax=90, nconmax=25, cone=cone))
    efforts = scene.robot.data.torch.joint_effort_target
    efforts.copy_(torch.rand(efforts.shape, generator=torch.Generator().manual_seed(3)) * 4.0 - 2.0)
    step(scene, 40)
    solver = scene.physics.solver
    count = int(solver.mjw_data.nacon.numpy()[0])
    assert count > 3
    ids, wrench = wp.array(np.arange(count), dtype=int), wp.zeros(count, dtype=wp.spatial_vector)
    mujoco_warp.contact_force(solver.mjw_model, solver.mjw_data, ids, True, wrench)
    expected = np.zeros((3, len(scene.robot.body_names), 3))
    contact = solver.mjw_data.contact
    body_of_geom = scene.physics.contacts.body_of_geom.numpy()
    for row in range(count):
        env, force = contact.worldid.numpy()[row], wrench.numpy()[row, :3]
        for geom, sign in zip(contact.geom.numpy()[row], (-1.0, 1.0), strict=True):
            if (body := body_of_geom[geom]) >= 0:
                expected[env, body] += sign * force
    np.testing.assert_allclose(scene["all"].net_forces_w.numpy(), expected, atol=1e-4)
    assert np.abs(expected[..., :2]).max() > 0.1, "some friction"


def test_the_feet_of_a_standing_ant_carry_its_weight():
    scene = make_sensor_scene({"feet": ContactSensorCfg(body_names=FEET, history_length=2)}, num_envs=2, mode="graph")
    step(scene, 600)
    weight = 9.81 * scene.physics.model.body_mass.numpy().reshape(2, -1).sum(axis=1)
    for age in range(2):
        total = scene["feet"].net_forces_w_history.numpy()[:, age].sum(axis=1)
        np.testing.assert_allclose(total[:, 2], weight, rtol=1e-2)
        np.testing.assert_allclose(total[:, :2], 0.0, atol=1e-2 * weight.max())


def test_history_is_newest_first():
    scene, sensor = scene_with(body_names=("torso", "left_back_foot"), history_length=3)
    seen = []
    for number in range(5):
        touch(scene, {(0, 0): 10.0 + number, (2, 6): 20.0 + number})
        sensor.after_physics_step()
        seen.insert(0, snapshot(sensor.net_forces_w))
        history = sensor.net_forces_w_history.numpy()
        assert history.shape == (3, 3, 2, 3)
        assert np.array_equal(history, np.stack([*seen, *[np.zeros_like(seen[0])] * 3][:3], axis=1))
    assert seen[0][0, 0, 2] == 14.0 and seen[0][2, 1, 2] == 24.0 and np.count_nonzero(seen[0]) == 2


def test_without_history_the_last_step_is_kept():
    _, sensor = scene_with(body_names=FEET)
    assert sensor.net_forces_w_history.shape == (3, 1, 4)
    assert sensor.torch.net_forces_w.data_ptr() == sensor.torch.net_forces_w_history.data_ptr()


def test_each_physics_step_within_a_decimation_is_measured():
    cfg = {"feet": ContactSensorCfg(body_names=FEET, history_length=4, track_air_time=True)}
    by_one, by_four = (make_sensor_scene(cfg, num_envs=2, mode="graph") for _ in range(2))
    step(by_one, 64)
    step(by_four, 16, decimation=4)
    assert by_one["feet"].net_forces_w_history.numpy().any(axis=(0, 2, 3)).all(), "all of the last steps had contact"
    for name in ("net_forces_w_history", "current_contact_time", "last_air_time"):
        assert np.array_equal(getattr(by_one["feet"], name).numpy(), getattr(by_four["feet"], name).numpy())


def test_times_by_hand():
    """A body is 3 steps in the air, 2 in contact, 1 in the air, 1 in contact; 1 N is not more than the threshold."""
    scene, sensor = scene_with(num_envs=2, body_names=("torso",), track_air_time=True, force_threshold=1.0)
    script = [0.0, 1.0, 0.5, 3.0, 1.5, 0.0, 2.0]
    air = [1, 2, 3, 0, 0, 1, 0]
    last_air = [0, 0, 0, 4, 4, 4, 2]  # the step that finds the contact counts as well
    contact = [0, 0, 0, 1, 2, 0, 1]
    last_contact = [0, 0, 0, 0, 0, 3, 3]
    for number, force in enumerate(script):
        touch(scene, {(1, 0): force} if force else {})
        sensor.after_physics_step()
        expected = {
            "current_air_time": air,
            "last_air_time": last_air,
            "current_contact_time": contact,
            "last_contact_time": last_contact,
        }
        for name, steps in expected.items():
            actual = getattr(sensor, name).numpy()
            np.testing.assert_allclose(actual[1], steps[number] * DT, rtol=1e-5, err_msg=f"{name} at {number}")
        np.testing.assert_allclose(sensor.current_air_time.numpy()[0], (number + 1) * DT, rtol=1e-5)


@wp.kernel
def ask(state: ContactSensorState, dt: float, contact_out: wp.array2d[wp.bool], air_out: wp.array2d[wp.bool]):
    env, body = wp.tid()
    contact_out[env, body] = is_first_contact(state, env, body, dt)
    air_out[env, body] = is_first_air(state, env, body, dt)


def test_first_contact_and_first_air():
    """True for the steps whose age is at most dt, in torch and in a kernel."""
    scene, sensor = scene_with(num_envs=1, body_names=("torso",), track_air_time=True)
    flags = [wp.zeros((1, 1), dtype=wp.bool) for _ in range(2)]
    for touching in (True, False, True):
        for age in range(1, 12):
            touch(scene, {(0, 0): 5.0} if touching else {})
            sensor.after_physics_step()
            for steps in (1, 4):
                wp.launch(ask, (1, 1), inputs=[sensor.state, steps * DT], outputs=flags)
                expected = [age <= steps and touching, age <= steps and not touching]
                assert [
                    sensor.compute_first_contact(steps * DT).item(),
                    sensor.compute_first_air(steps * DT).item(),
                ] == expected
                assert [flag.numpy().item() for flag in flags] == expected


def test_times_that_are_not_measured():
    _, sensor = scene_with(body_names=FEET)
    for ask_for in (lambda: sensor.current_air_time, lambda: sensor.compute_first_contact(0.1)):
        with pytest.raises(ConfigError, match="is not measured: track_air_time is False; allowed: True"):
            ask_for()
    assert np.isnan(sensor.state.current_air_time.numpy()).all(), "a kernel that reads them all the same is found out"
    with pytest.raises(AttributeError, match="'ContactSensor' object has no attribute 'nothing'"):
        sensor.nothing  # noqa: B018


def test_a_reset_forgets_in_the_masked_environments_only():
    scene, sensor = scene_with(body_names=FEET, history_length=3, track_air_time=True)
    step(scene, 60)
    names = ("net_forces_w_history", "current_contact_time", "last_air_time")
    before = {name: snapshot(getattr(sensor, name)) for name in names}
    assert all(values[1].any() for values in before.values())
    reset(scene, [1])
    for name, values in before.items():
        after = getattr(sensor, name).numpy()
        assert not after[1].any()
        assert np.array_equal(after[[0, 2]], values[[0, 2]])
    assert not sensor.current_air_time.numpy()[1].any() and not sensor.last_contact_time.numpy()[1].any()


def test_a_force_that_is_not_finite_is_reported():
    scene, sensor = scene_with(body_names=FEET)
    foot = sensor.body_ids[2]
    touch(scene, {(1, foot): float("nan"), (2, 0): float("nan"), (0, foot): 1.0})
    sensor.after_physics_step()
    assert scene.physics.bad_measurement.numpy().tolist() == [False, True, False], "the torso is not sensed"


def test_names_that_match_nothing():
    with pytest.raises(
        ConfigError, match=r"scene\.sensors\.contact: body names: 'hand' matches no name; allowed: torso"
    ):
        scene_with(body_names=("hand",))
    _, sensor = scene_with(body_names=FEET)
    assert sensor.find_bodies("left_back_foot") == [2]
    with pytest.raises(ConfigError, match="'torso' matches no name; allowed: front_left_foot"):
        sensor.find_bodies("torso")
