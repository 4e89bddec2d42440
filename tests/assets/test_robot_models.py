"""The packaged robot models: against Newton's reference models, published figures and analytic dynamics."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import mujoco
import newton
import numpy as np
import pytest
import warp as wp
from newton.sensors import SensorContact
from newton.solvers import SolverMuJoCo

from treadle.assets.robots import list_robots, robot_path
from treadle.errors import ConfigError

GRAVITY = 9.81
REFERENCE_ANT = Path(str(resources.files("newton"))) / "examples" / "assets" / "nv_ant.xml"
ANT_BODIES = [
    "torso",
    *("front_left_leg", "front_left_foot", "front_right_leg", "front_right_foot"),
    *("left_back_leg", "left_back_foot", "right_back_leg", "right_back_foot"),
]
ANT_ANKLES = {"front_left": (30, 100), "front_right": (-100, -30), "left_back": (-100, -30), "right_back": (30, 100)}


def leaf(labels: list[str]) -> list[str]:
    """Return the last component of each hierarchical label."""
    return [label.rsplit("/", 1)[-1] for label in labels]


def load(path: Path, **kwargs) -> newton.ModelBuilder:
    """Load an MJCF file the way Treadle does."""
    builder = newton.ModelBuilder(up_axis=newton.Axis.Z)
    SolverMuJoCo.register_custom_attributes(builder)
    builder.rigid_gap = 0.0
    builder.add_mjcf(str(path), enable_self_collisions=False, ignore_names=["floor", "ground"], **kwargs)
    return builder


def body_poses(model: newton.Model, joint_q: np.ndarray) -> np.ndarray:
    """Return the body poses (position, quaternion xyzw) at one joint configuration, shape (num_bodies, 7)."""
    state = model.state()
    wp.copy(state.joint_q, wp.array(joint_q, dtype=float, device=model.device))
    newton.eval_fk(model, state.joint_q, state.joint_qd, state)
    return state.body_q.numpy().copy()


def random_ant_coordinates(rng: np.random.Generator, builder: newton.ModelBuilder) -> np.ndarray:
    """Return a random root pose followed by random joint positions within their limits, shape (15,)."""
    quat = rng.normal(size=4)
    lower, upper = np.array(builder.joint_limit_lower[6:]), np.array(builder.joint_limit_upper[6:])
    return np.concatenate([rng.uniform(-2, 2, 3), quat / np.linalg.norm(quat), rng.uniform(lower, upper)])


@pytest.fixture(scope="module")
def ant() -> newton.ModelBuilder:
    return load(robot_path("ant"))


@pytest.fixture(scope="module")
def reference_ant() -> newton.ModelBuilder:
    return load(REFERENCE_ANT)


@pytest.fixture(scope="module")
def cartpole() -> newton.ModelBuilder:
    return load(robot_path("cartpole"))


# -- the files


def test_robot_path_names_an_existing_file_of_each_robot():
    assert list_robots() == sorted(list_robots())
    assert {"ant", "cartpole", "humanoid"} <= set(list_robots())
    for name in list_robots():
        assert robot_path(name).is_file()


@pytest.mark.parametrize("name", ["Ant", "spot", "", "../robots/ant"])
def test_an_unknown_robot_is_an_error_that_lists_the_known_ones(name):
    with pytest.raises(ConfigError) as error:
        robot_path(name)
    assert repr(name) in str(error.value)
    assert all(robot in str(error.value) for robot in list_robots())


@pytest.mark.parametrize("name", ["ant", "cartpole", "humanoid"])
def test_a_model_is_nothing_but_named_bodies_joints_and_primitives(name):
    root = ET.parse(robot_path(name)).getroot()
    assert root.get("model") == name
    assert {child.tag for child in root} <= {"compiler", "default", "worldbody", "contact"}
    assert {element.tag for element in root.find("worldbody").iter()} <= {
        *("worldbody", "body", "joint", "freejoint", "geom"),
    }
    for tag in ("body", "joint", "freejoint", "geom"):
        names = [element.get("name") for element in root.find("worldbody").iter(tag)]
        assert None not in names
        assert len(names) == len(set(names))


# -- ant


def test_ant_has_the_bodies_and_joints_of_the_reference_in_the_same_order(ant, reference_ant):
    assert leaf(ant.body_label) == leaf(reference_ant.body_label) == ANT_BODIES
    assert leaf(ant.joint_label) == ["root", *ANT_BODIES[1:]]
    assert ant.joint_type == reference_ant.joint_type
    assert ant.joint_parent == reference_ant.joint_parent
    assert ant.joint_child == reference_ant.joint_child
    assert leaf(reference_ant.joint_label)[1:5] == ["hip_1", "ankle_1", "hip_2", "ankle_2"]


def test_ant_forward_kinematics_equal_the_reference(ant, reference_ant):
    model, reference = ant.finalize(device="cpu"), reference_ant.finalize(device="cpu")
    rng = np.random.default_rng(0)
    for _ in range(20):
        joint_q = random_ant_coordinates(rng, ant)
        poses, expected = body_poses(model, joint_q), body_poses(reference, joint_q)
        np.testing.assert_allclose(poses[:, :3], expected[:, :3], atol=1e-3)
        # q and -q are the same rotation
        np.testing.assert_allclose(np.abs(np.sum(poses[:, 3:] * expected[:, 3:], axis=1)), 1.0, atol=1e-6)


def test_ant_joint_limits_equal_the_reference_exactly(ant, reference_ant):
    assert ant.joint_limit_lower == reference_ant.joint_limit_lower
    assert ant.joint_limit_upper == reference_ant.joint_limit_upper
    ranges = np.rad2deg([ant.joint_limit_lower[6:], ant.joint_limit_upper[6:]]).T
    limits = dict(zip(leaf(ant.joint_label)[1:], ranges, strict=True))
    for leg, ankle in ANT_ANKLES.items():
        assert limits[f"{leg}_leg"] == pytest.approx((-40, 40))
        assert limits[f"{leg}_foot"] == pytest.approx(ankle)


def test_ant_masses_centres_and_inertias_equal_the_reference(ant, reference_ant):
    np.testing.assert_allclose(ant.body_mass, reference_ant.body_mass, rtol=1e-2)
    np.testing.assert_allclose(ant.body_com, reference_ant.body_com, rtol=1e-2, atol=1e-6)
    inertia, expected = np.array(ant.body_inertia).reshape(-1, 9), np.array(reference_ant.body_inertia).reshape(-1, 9)
    scale = np.abs(expected).max(axis=1, keepdims=True)
    np.testing.assert_allclose(inertia / scale, expected / scale, atol=1e-2)
    assert sum(ant.body_mass) == pytest.approx(0.911, abs=1e-3)


def test_ant_colliders_equal_the_reference(ant, reference_ant):
    assert ant.shape_type == reference_ant.shape_type
    assert ant.shape_body == reference_ant.shape_body
    assert ant.shape_type.count(newton.GeoType.SPHERE) == 1
    assert ant.shape_type.count(newton.GeoType.CAPSULE) == 12
    assert all(flags & newton.ShapeFlags.COLLIDE_SHAPES for flags in ant.shape_flags)
    np.testing.assert_allclose(ant.shape_scale, reference_ant.shape_scale, rtol=1e-6)
    np.testing.assert_allclose(ant.shape_transform, reference_ant.shape_transform, atol=1e-6)
    assert ant.shape_material_mu == [1.0] * 13


def test_ant_file_alone_carries_the_actuator_figures(ant):
    for values, expected in ((ant.joint_damping, 0.1), (ant.joint_armature, 0.05), (ant.joint_effort_limit, 15.0)):
        assert values[6:] == [expected] * 8
    assert ant.joint_damping[:6] == ant.joint_armature[:6] == [0.0] * 6
    assert set(ant.joint_target_mode) == {int(newton.JointTargetMode.NONE)}


def test_ant_mass_matrix_in_mujoco_equals_the_reference():
    """One comparison of kinematics, masses and inertias together, by an engine that is not Newton."""
    models = [mujoco.MjModel.from_xml_path(str(path)) for path in (robot_path("ant"), REFERENCE_ANT)]
    assert models[0].nu == 0
    rng = np.random.default_rng(1)
    for _ in range(20):
        quat = rng.normal(size=4)
        low, high = models[0].jnt_range[1:].T
        qpos = np.concatenate([rng.uniform(-2, 2, 3), quat / np.linalg.norm(quat), rng.uniform(low, high)])
        matrix, expected = (full_mass_matrix(model, qpos) - np.diag(model.dof_armature) for model in models)
        np.testing.assert_allclose(matrix, expected, atol=1e-9)


def full_mass_matrix(model: mujoco.MjModel, qpos: np.ndarray) -> np.ndarray:
    """Return the joint-space mass matrix at a configuration, shape (nv, nv)."""
    data = mujoco.MjData(model)
    data.qpos[:] = qpos
    mujoco.mj_forward(model, data)
    matrix = np.zeros((model.nv, model.nv))
    for column, unit in enumerate(np.eye(model.nv)):
        mujoco.mj_mulM(model, data, matrix[column], unit)
    return matrix


@dataclass
class Settled:
    """Some ants after a fall, with their solver's report of the last step."""

    joint_q: np.ndarray
    joint_qd: np.ndarray
    foot_force: np.ndarray
    overflow: np.ndarray


NUM_ANTS = 4
ANT_START_ANGLES = np.deg2rad([0, 45, 0, -45, 0, -45, 0, 45])


@pytest.fixture(scope="module")
def settled_ants(ant) -> Settled:
    """Drop four ants from 0.6 m, near the tasks' start pose, and let them settle for five seconds.

    With arbitrary leg angles some ants stop on a steeper leg, and creep: MuJoCo's regularized friction holds no feet.
    """
    scene = newton.ModelBuilder(up_axis=newton.Axis.Z)
    scene.rigid_gap = 0.0
    scene.replicate(ant, NUM_ANTS)
    scene.add_ground_plane()
    start = np.tile(ant.joint_q, (NUM_ANTS, 1))
    start[:, 2] = 0.6
    start[:, 7:] = ANT_START_ANGLES + np.random.default_rng(2).uniform(-0.2, 0.2, (NUM_ANTS, 8))
    # The solver raises njmax, with a warning, to what the start pose needs; at zero angles in the ground that is 104.
    scene.joint_q[:] = start.ravel().tolist()
    model = scene.finalize(device="cpu")
    solver = SolverMuJoCo(
        model, cone="pyramidal", integrator="implicitfast", iterations=20, ls_iterations=20, njmax=45, nconmax=25
    )
    sensor = SensorContact(model, sensing_bodies="*_foot", request_contact_attributes=False)
    pipeline = newton.CollisionPipeline(model, rigid_contact_max=solver.get_max_contact_count(), soft_contact_max=0)
    contacts = pipeline.contacts()
    observables = solver.observables(kinds=sensor.solver_observable_kinds, contacts=contacts)
    state, control = model.state(), model.control()
    newton.eval_fk(model, state.joint_q, state.joint_qd, state)
    for _ in range(600):
        solver.step(state, state, control, contacts, 1 / 120, observables=observables)
    sensor.update(state, contacts, observables=observables)
    return Settled(
        joint_q=state.joint_q.numpy().reshape(NUM_ANTS, -1),
        joint_qd=state.joint_qd.numpy().reshape(NUM_ANTS, -1),
        foot_force=sensor.total_force.numpy().reshape(NUM_ANTS, 4, 3),
        overflow=solver.mjw_data.overflow.numpy(),
    )


def test_a_dropped_ant_comes_to_rest_on_the_ground(settled_ants):
    assert np.isfinite(settled_ants.joint_q).all()
    assert not settled_ants.overflow.any()
    assert np.abs(settled_ants.joint_qd).max() < 1e-2
    assert (settled_ants.joint_q[:, 2] > 0.2).all()
    # All ankles at their limits of 30 degrees: the drop of a foot of 0.566 m, and the radius of its tip.
    height = 0.4 * np.sqrt(2) * np.sin(np.deg2rad(30)) + 0.08
    np.testing.assert_allclose(settled_ants.joint_q[:, 2], height, atol=5e-3)


def test_the_feet_of_a_resting_ant_carry_its_weight(settled_ants, ant):
    force = settled_ants.foot_force.sum(axis=1)
    np.testing.assert_allclose(force[:, 2], sum(ant.body_mass) * GRAVITY, rtol=1e-2)
    np.testing.assert_allclose(force[:, :2], 0.0, atol=0.1)


# -- cartpole

# Sizes and rail limits: the cartpole of Isaac Gym (Makoviychuk et al. 2021). Masses and joint figures: Isaac Lab 3.0.0.
CART_MASS, POLE_MASS = 1.0, 1.0  # kg
CART_DAMPING = 10.0  # N s/m
POLE_LENGTH, POLE_WIDTH, POLE_CENTRE = 1.0, 0.06, 0.47  # m; the width is along y, the centre above the hinge
HINGE_OFFSET = (0.12, 0.0, 0.0)  # m, from the centre of the cart


def linear_cartpole() -> np.ndarray:
    """Return A of x' = A x, x = (cart position, pole angle, cart velocity, pole velocity), about the upright rest.

    A positive turn about x leans the pole towards -y. With the cart at y and the pole's centre at y - l sin(angle)::

        (M + m) y'' - m l angle'' = -damping y'
        (I + m l^2) angle'' - m l y'' = m g l angle
    """
    inertia = POLE_MASS * (POLE_LENGTH**2 + POLE_WIDTH**2) / 12
    moment = POLE_MASS * POLE_CENTRE
    mass_matrix = np.array([[CART_MASS + POLE_MASS, -moment], [-moment, inertia + moment * POLE_CENTRE]])
    forces = np.array([[0, 0, -CART_DAMPING, 0], [0, moment * GRAVITY, 0, 0]])
    return np.vstack([np.eye(2, 4, k=2), np.linalg.solve(mass_matrix, forces)])


def small_angle_accelerations(angle: float) -> np.ndarray:
    """Return the accelerations of cart [m/s^2] and pole [rad/s^2] at rest, to first order in the angle [rad]."""
    return linear_cartpole()[2:] @ (0, angle, 0, 0)


def small_angle_motion(angle: float, time: float) -> np.ndarray:
    """Return the linear system's state at a time [s] after a release from rest at an angle [rad], shape (4,)."""
    rates, modes = np.linalg.eig(linear_cartpole())
    return (modes @ (np.exp(rates * time) * np.linalg.solve(modes, (0, angle, 0, 0)))).real


def run_cartpole(builder: newton.ModelBuilder, angle: float, dt: float, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Release the pole at an angle [rad] and return the final joint positions and velocities, each of shape (2,)."""
    scene = newton.ModelBuilder(up_axis=newton.Axis.Z)
    scene.rigid_gap = 0.0
    scene.replicate(builder, 1)
    model = scene.finalize(device="cpu")
    solver = SolverMuJoCo(model, integrator="implicitfast", njmax=5, nconmax=3)
    state, control = model.state(), model.control()
    state.joint_q.assign(np.array([0.0, angle], dtype=np.float32))
    newton.eval_fk(model, state.joint_q, state.joint_qd, state)
    for _ in range(steps):
        solver.step(state, state, control, None, dt)
    return state.joint_q.numpy().copy(), state.joint_qd.numpy().copy()


def test_cartpole_has_the_published_figures(cartpole):
    assert leaf(cartpole.body_label) == ["slider", "cart", "pole"]
    assert leaf(cartpole.joint_label)[1:] == ["slider_to_cart", "cart_to_pole"]
    joint_type = newton.JointType
    assert cartpole.joint_type == [joint_type.FIXED, joint_type.PRISMATIC, joint_type.REVOLUTE]
    np.testing.assert_array_equal(cartpole.joint_axis, [(0, 1, 0), (1, 0, 0)])
    assert (cartpole.joint_limit_lower[0], cartpole.joint_limit_upper[0]) == (-4.0, 4.0)
    assert cartpole.joint_limit_lower[1] < -1e6 and cartpole.joint_limit_upper[1] > 1e6
    assert cartpole.joint_damping == [CART_DAMPING, 0.0]
    assert cartpole.joint_armature == [0.0, 0.0]
    assert cartpole.joint_effort_limit == [400.0, 400.0]
    assert cartpole.body_mass[1:] == [CART_MASS, POLE_MASS]
    np.testing.assert_allclose(cartpole.body_com[1:], [(0, 0, 0), (0, 0, POLE_CENTRE)], rtol=1e-6)
    assert cartpole.shape_type == [newton.GeoType.BOX] * 3
    sizes = [(0.03, 8.0, 0.03), (0.2, 0.25, 0.2), (0.04, POLE_WIDTH, POLE_LENGTH)]
    np.testing.assert_allclose(2 * np.array(cartpole.shape_scale), sizes, rtol=1e-6)


@pytest.mark.parametrize("collapse", [False, True])
def test_cartpole_pose_is_set_by_the_root_transform(collapse):
    root = wp.transform((1.0, 2.0, 2.0), wp.quat_identity())
    builder = load(robot_path("cartpole"), xform=root, collapse_fixed_joints=collapse)
    cart, pole = body_poses(builder.finalize(device="cpu"), np.array([0.5, 0.3]))[-2:]
    np.testing.assert_allclose(cart[:3], (1.0, 2.5, 2.0), atol=1e-6)
    np.testing.assert_allclose(pole[:3], cart[:3] + HINGE_OFFSET, atol=1e-6)
    np.testing.assert_allclose(pole[3:], (np.sin(0.15), 0, 0, np.cos(0.15)), atol=1e-6)


@pytest.mark.parametrize("angle", [1e-3, -1e-2])
def test_cartpole_small_angle_acceleration_in_mujoco(angle):
    model = mujoco.MjModel.from_xml_path(str(robot_path("cartpole")))
    assert model.nu == 0
    data = mujoco.MjData(model)
    data.qpos[:] = (0.0, angle)
    mujoco.mj_forward(model, data)
    assert data.ncon == 0
    np.testing.assert_allclose(data.qacc, small_angle_accelerations(angle), rtol=1e-3)


def test_cartpole_small_angle_acceleration_in_newton(cartpole):
    dt = 1e-4
    _, velocity = run_cartpole(cartpole, angle=1e-2, dt=dt, steps=1)
    np.testing.assert_allclose(velocity / dt, small_angle_accelerations(1e-2), rtol=2e-3)


def test_the_upright_pole_is_in_equilibrium(cartpole):
    position, velocity = run_cartpole(cartpole, angle=0.0, dt=1 / 120, steps=120)
    np.testing.assert_allclose(position, 0.0, atol=1e-6)
    np.testing.assert_allclose(velocity, 0.0, atol=1e-6)


@pytest.mark.parametrize("angle", [1e-3, -1e-3])
def test_the_upright_equilibrium_is_unstable_at_the_analytic_rate(cartpole, angle):
    position, velocity = run_cartpole(cartpole, angle=angle, dt=1e-3, steps=1000)
    assert position[1] / angle > 30
    np.testing.assert_allclose(np.concatenate([position, velocity]), small_angle_motion(angle, 1.0), rtol=2e-2)
