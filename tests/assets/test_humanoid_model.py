"""The packaged humanoid: against Newton's reference model, and its merged joints against MuJoCo."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import mujoco
import newton
import numpy as np
import pytest
import warp as wp
from newton.solvers import SolverMuJoCo
from support.ant import snapshot
from support.scenes import apply_state, assign, make_scene

from treadle.assets.robots import robot_path
from treadle.physics import MJWarpSolverCfg
from treadle.sensors import JointWrenchSensor
from treadle.tasks.humanoid.robot import humanoid_articulation

REFERENCE = Path(str(resources.files("newton"))) / "examples" / "assets" / "nv_humanoid.xml"
SOLVER = MJWarpSolverCfg(njmax=80, nconmax=25)
JOINTS = {
    "lower_waist:0": "abdomen_z",
    "lower_waist:1": "abdomen_y",
    "pelvis": "abdomen_x",
    "right_thigh:0": "right_hip_x",
    "right_thigh:2": "right_hip_z",
    "right_thigh:1": "right_hip_y",
    "right_shin": "right_knee",
    "right_foot:0": "right_ankle_y",
    "right_foot:1": "right_ankle_x",
    "left_thigh:0": "left_hip_x",
    "left_thigh:2": "left_hip_z",
    "left_thigh:1": "left_hip_y",
    "left_shin": "left_knee",
    "left_foot:0": "left_ankle_y",
    "left_foot:1": "left_ankle_x",
    "right_upper_arm:0": "right_shoulder1",
    "right_upper_arm:1": "right_shoulder2",
    "right_lower_arm": "right_elbow",
    "left_upper_arm:0": "left_shoulder1",
    "left_upper_arm:1": "left_shoulder2",
    "left_lower_arm": "left_elbow",
}
"""Our joints in model order, with the names of the reference."""
BODIES = [
    *("torso", "lower_waist", "pelvis", "right_thigh", "right_shin", "right_foot", "left_thigh", "left_shin"),
    *("left_foot", "right_upper_arm", "right_lower_arm", "left_upper_arm", "left_lower_arm"),
]


def load(path: Path) -> newton.ModelBuilder:
    builder = newton.ModelBuilder(up_axis=newton.Axis.Z)
    SolverMuJoCo.register_custom_attributes(builder)
    builder.rigid_gap = 0.0
    builder.add_mjcf(str(path), ignore_names=["floor"], parse_visuals=False)
    return builder


@pytest.fixture(scope="module")
def humanoid() -> newton.ModelBuilder:
    return load(robot_path("humanoid"))


@pytest.fixture(scope="module")
def reference() -> newton.ModelBuilder:
    return load(REFERENCE)


@pytest.fixture(scope="module")
def scene():
    return make_scene(humanoid_articulation(), num_envs=6, solver=SOLVER)


def leaves(labels: list[str]) -> list[str]:
    return [label.rsplit("/", 1)[-1] for label in labels]


def test_the_joints_and_bodies_are_those_of_the_reference(humanoid, reference, scene):
    assert leaves(humanoid.body_label) == leaves(reference.body_label) == BODIES
    assert scene.robot.joint_names == tuple(JOINTS) and scene.robot.body_names == tuple(BODIES)
    assert leaves(reference.joint_label)[1] == "abdomen_z_abdomen_y", "Newton merges what shares a body"
    merged = "_".join(leaves(reference.joint_label)[1:])
    assert merged == "_".join(JOINTS.values()), "in the same order"
    np.testing.assert_allclose(humanoid.joint_axis, reference.joint_axis, atol=1e-6)
    assert humanoid.joint_parent == reference.joint_parent


def test_the_limits_equal_the_reference_exactly(humanoid, reference, scene):
    assert humanoid.joint_limit_lower == reference.joint_limit_lower
    assert humanoid.joint_limit_upper == reference.joint_limit_upper
    np.testing.assert_allclose(
        scene.robot.layout.position_limits,
        np.transpose([reference.joint_limit_lower[6:], reference.joint_limit_upper[6:]]),
    )


def test_masses_and_colliders_equal_the_reference(humanoid, reference):
    np.testing.assert_allclose(humanoid.body_mass, reference.body_mass, rtol=1e-5)
    np.testing.assert_allclose(humanoid.body_com, reference.body_com, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(humanoid.body_inertia, reference.body_inertia, rtol=1e-4, atol=1e-6)
    assert sum(humanoid.body_mass) == pytest.approx(40.844, abs=1e-3)
    own, expected = colliders(humanoid), colliders(reference)
    assert [kind for kind, _, _ in own].count(newton.GeoType.CAPSULE) == 16
    assert [kind for kind, _, _ in own].count(newton.GeoType.SPHERE) == 3 and len(own) == 19
    for (kind, body, pose), (kind_there, body_there, pose_there) in zip(own, expected, strict=True):
        assert kind == kind_there and body == body_there
        np.testing.assert_allclose(pose, pose_there, atol=1e-6)


def colliders(builder: newton.ModelBuilder) -> list[tuple[int, int, wp.transform]]:
    """Return type, body and pose of each shape that collides; the reference also has sites."""
    flags = newton.ShapeFlags.COLLIDE_SHAPES
    shapes = [i for i, flag in enumerate(builder.shape_flags) if flag & flags]
    return [(builder.shape_type[i], builder.shape_body[i], builder.shape_transform[i]) for i in shapes]


def test_the_file_alone_carries_the_actuator_figures(humanoid, scene):
    assert humanoid.joint_effort_limit[6:] == [150.0] * 21 and humanoid.joint_armature[6:] == [0.01] * 21
    damping = [a.damping for a in (_actuator_of(scene, name) for name in JOINTS)]
    np.testing.assert_allclose(humanoid.joint_damping[6:], damping)
    assert not any(humanoid.joint_stiffness), "the drives have it"


def _actuator_of(scene, joint: str):
    (group,) = [a for a in scene.robot.cfg.actuators.values() if joint in _joints_of(scene, a)]
    return group


def _joints_of(scene, actuator) -> list[str]:
    return [scene.robot.joint_names[j] for j in scene.robot.find_joints(actuator.joint_names_expr)]


def test_forward_kinematics_of_merged_joints_equal_mujoco(humanoid):
    model, own = mujoco.MjModel.from_xml_path(str(robot_path("humanoid"))), humanoid.finalize(device="cpu")
    assert [model.joint(j).name for j in range(1, model.njnt)] == list(JOINTS)
    rng, data = np.random.default_rng(0), mujoco.MjData(model)
    for _ in range(20):
        quat, position = rng.normal(size=4), rng.uniform(-1.0, 1.0, 3)
        quat /= np.linalg.norm(quat)
        joints = rng.uniform(humanoid.joint_limit_lower[6:], humanoid.joint_limit_upper[6:])
        data.qpos[:] = [*position, quat[3], *quat[:3], *joints]
        mujoco.mj_forward(model, data)
        state = own.state()
        wp.copy(state.joint_q, wp.array([*position, *quat, *joints], dtype=float, device="cpu"))
        newton.eval_fk(own, state.joint_q, state.joint_qd, state)
        poses = state.body_q.numpy()
        np.testing.assert_allclose(poses[:, :3], data.xpos[1:], atol=1e-5)
        same = np.abs((poses[:, [6, 3, 4, 5]] * data.xquat[1:]).sum(axis=1))
        np.testing.assert_allclose(same, 1.0, atol=1e-5)


def test_the_wrenches_of_feet_on_merged_joints_equal_mujoco():
    """MuJoCo's recursive Newton-Euler pass gives the same for the same motion in the air; see the ant's test."""
    robot = humanoid_articulation()
    for actuator in robot.actuators.values():
        actuator.stiffness = 0.0  # damping is that of the joints, as it is in the file
    scene = make_scene(robot, num_envs=6, dt=1e-5, solver=SOLVER)
    sensor = JointWrenchSensor(scene.robot, ".*_foot", scene.physics, scene.scope.child("sensor"))
    rng, data = np.random.default_rng(1), scene.robot.data
    assign(data.joint_pos, rng.uniform(-0.03, 0.03, (6, 21)))
    assign(data.joint_vel, rng.uniform(-2.0, 2.0, (6, 21)))
    joint_q = snapshot(scene.physics.joint_q)
    joint_q[:, 2] += 5.0
    assign(scene.physics.joint_q, joint_q)
    apply_state(scene)
    effort = rng.uniform(-20.0, 20.0, (6, 21))
    assign(data.joint_effort_target, effort)
    joint_qd = snapshot(scene.physics.joint_qd)
    scene.robot.write_targets_to_sim()
    scene.physics.step()
    sensor.update()
    wrench = snapshot(sensor.wrench)
    assert sensor.body_names == ["right_foot", "left_foot"]

    model = mujoco.MjModel.from_xml_path(str(robot_path("humanoid")))
    model.opt.timestep, model.opt.integrator = 1e-5, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    for row in range(6):
        state = mujoco.MjData(model)
        state.qpos = [*joint_q[row, :3], 1.0, 0.0, 0.0, 0.0, *joint_q[row, 7:]]
        state.qvel = [*np.zeros(6), *joint_qd[row, 6:]]
        state.qfrc_applied[6:] = effort[row]
        mujoco.mj_step(model, state)
        mujoco.mj_rnePostConstraint(model, state)
        assert state.ncon == 0
        for index, name in enumerate(sensor.body_names):
            body = model.body(name).id
            torque, force = state.cfrc_int[body, :3].copy(), state.cfrc_int[body, 3:]
            anchor = state.xanchor[model.body_jntadr[body]]
            torque += np.cross(state.subtree_com[model.body_rootid[body]] - anchor, force)
            to_body = state.xmat[body].reshape(3, 3).T
            expected = np.concatenate([to_body @ force, to_body @ torque])
            tolerance = 2e-3 * max(1.0, np.abs(expected).max())
            np.testing.assert_allclose(wrench[row, index], expected, atol=tolerance, err_msg=f"{name} of {row}")


def test_a_humanoid_on_the_ground_stays_finite_and_within_its_buffers():
    """Two seconds without commands: it stands, sinks and falls, onto the ground and itself."""
    scene = make_scene(humanoid_articulation(), num_envs=4, mode="graph", solver=SOLVER, substeps=2)
    assign(scene.robot.data.joint_pos, np.random.default_rng(3).uniform(-0.2, 0.2, (4, 21)))
    apply_state(scene)

    def advance() -> None:
        scene.robot.write_targets_to_sim()
        scene.physics.step()

    for _ in range(240):
        scene.scope.graphs.run("step", advance)
    assert np.isfinite(scene.physics.joint_q.numpy()).all() and np.isfinite(scene.physics.joint_qd.numpy()).all()
    height = scene.physics.body_q.numpy()[:, 0, 2]
    assert ((height > 0.0) & (height < 1.4)).all()
    assert scene.physics.describe_overflow() is None


def test_the_drives_of_the_configuration(scene):
    stiffness = scene.physics.model.joint_target_ke.numpy().reshape(6, -1)[0, 6:]
    expected = {"waist:0": 20, "thigh:0": 10, "thigh:1": 20, "thigh:2": 10, "pelvis": 10, "shin": 5, "foot:1": 2}
    expected |= {"upper_arm:0": 10, "lower_arm": 2}
    for index, joint in enumerate(JOINTS):
        for name, value in expected.items():
            assert not joint.endswith(name) or stiffness[index] == value, joint
    assert not any(scene.robot.layout.position_controlled)
    assert scene.robot.layout.velocity_limits == (100.0,) * 21
