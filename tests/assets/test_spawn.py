"""Loading articulations: what ends up in the model, and the errors of a user's mistakes."""

from __future__ import annotations

import math

import newton
import numpy as np
import pytest
from newton.solvers import SolverMuJoCo
from support.scenes import ant_robot_cfg, apply_state, assign, cartpole_cfg, make_scene

from treadle.assets import ActuatorCfg, ArticulationCfg, InitialStateCfg
from treadle.assets.names import match_names, values_by_name
from treadle.assets.spawn import spawn_articulation
from treadle.errors import ConfigError

BODY = '<body name="b"><joint name="j" type="hinge"/><geom type="sphere" size="0.1"/></body>'


def spawn(cfg: ArticulationCfg):
    builder = newton.ModelBuilder(up_axis=newton.Axis.Z)
    SolverMuJoCo.register_custom_attributes(builder)
    return builder, spawn_articulation(builder, cfg, "scene.robot")


def spawn_xml(tmp_path, body: str):
    path = tmp_path / "robot.xml"
    path.write_text(f"<mujoco><worldbody>{body}</worldbody></mujoco>")
    return spawn(ArticulationCfg(asset_path=str(path)))


def broken(message: str, cfg: ArticulationCfg) -> None:
    with pytest.raises(ConfigError, match=message):
        spawn(cfg)


def test_the_layout_of_the_ant():
    builder, layout = spawn(ant_robot_cfg())
    assert layout.joint_names[:2] == ("front_left_leg", "front_left_foot") and len(layout.joint_names) == 8
    assert layout.body_names[0] == "torso" and len(layout.body_names) == 9
    assert layout.floating_base and (layout.first_coord, layout.first_dof) == (7, 6)
    assert [layout.body_names[body] for body in layout.joint_child_body] == list(layout.joint_names)
    assert layout.effort_limits == (15.0,) * 8
    assert layout.velocity_limits == (1e6,) * 8, "Newton's default"
    assert not any(layout.position_controlled)
    np.testing.assert_allclose(np.rad2deg(layout.position_limits)[:2], [(-40, 40), (30, 100)], rtol=1e-5)
    np.testing.assert_allclose(builder.joint_q, [0, 0, 0.5, 0, 0, 0, 1, *layout.default_joint_pos])
    assert builder.joint_damping[6:] == [0.1] * 8 and builder.joint_armature[6:] == [0.05] * 8
    assert builder.joint_target_ke[6:] == [0.0] * 8


def test_the_layout_of_a_fixed_base():
    _, layout = spawn(cartpole_cfg(joint_pos={"cart_to_pole": 0.3}, joint_vel={"slider.*": 0.4}))
    assert layout.joint_names == ("slider_to_cart", "cart_to_pole")
    assert layout.body_names[-2:] == ("cart", "pole")
    assert not layout.floating_base and (layout.first_coord, layout.first_dof) == (0, 0)
    assert layout.default_joint_pos == (0.0, 0.3) and layout.default_joint_vel == (0.4, 0.0)
    assert layout.position_limits[0] == (-4.0, 4.0)
    assert layout.effort_limits == (400.0, 400.0)


def test_an_effort_limit_of_the_file_stays_where_none_is_configured():
    cfg = ant_robot_cfg()
    cfg.actuators = {"legs": ActuatorCfg(joint_names_expr=(".*_leg",), effort_limit=3.0)}
    _, layout = spawn(cfg)
    assert layout.effort_limits == (3.0, 15.0) * 4


def test_velocity_limits():
    cfg = ant_robot_cfg()
    cfg.actuators = {"legs": ActuatorCfg(joint_names_expr=(".*_leg",), velocity_limit=7.5)}
    builder, layout = spawn(cfg)
    assert layout.velocity_limits == (7.5, 1e6) * 4
    assert builder.joint_velocity_limit[6:] == [7.5, 1e6] * 4


def test_position_drives():
    cfg = ant_robot_cfg()
    cfg.actuators = {
        "legs": ActuatorCfg(joint_names_expr=(".*_leg",), mode="position", stiffness=20.0, damping=0.5, friction=0.01),
        "feet": ActuatorCfg(joint_names_expr=(".*_foot",), damping=0.25),
    }
    builder, layout = spawn(cfg)
    assert layout.position_controlled == (True, False) * 4
    assert builder.joint_target_ke[6:] == [20.0, 0.0] * 4 and builder.joint_target_kd[6:] == [0.5, 0.0] * 4
    assert builder.joint_damping[6:] == [0.0, 0.25] * 4 and builder.joint_friction[6:] == [0.01, 0.0] * 4
    modes = newton.JointTargetMode
    assert builder.joint_target_mode[6:] == [int(modes.POSITION), int(modes.NONE)] * 4


def test_a_drive_beside_an_effort():
    cfg = ant_robot_cfg()
    cfg.actuators = {
        "legs": ActuatorCfg(joint_names_expr=(".*_leg",), stiffness=20.0, damping=0.5),
        "feet": ActuatorCfg(joint_names_expr=(".*_foot",), damping=0.25),
    }
    builder, layout = spawn(cfg)
    assert not any(layout.position_controlled)
    assert builder.joint_target_ke[6:] == [20.0, 0.0] * 4 and builder.joint_target_kd[6:] == [0.5, 0.0] * 4
    assert builder.joint_damping[6:] == [0.0, 0.25] * 4
    modes = newton.JointTargetMode
    assert builder.joint_target_mode[6:] == [int(modes.POSITION), int(modes.NONE)] * 4


PENDULUM = """
<body name="b" gravcomp="1">
  <joint name="j" type="hinge" axis="0 0 1" pos="0 0 0"/>
  <geom type="sphere" size="0.1" mass="2" pos="0.5 0 0"/>
</body>
"""


def pendulum(tmp_path, **actuator) -> ArticulationCfg:
    """Return a pendulum about the vertical, which nothing but its actuator moves, at rest at 0.1 rad."""
    path = tmp_path / "pendulum.xml"
    path.write_text(f"<mujoco><worldbody>{PENDULUM}</worldbody></mujoco>")
    return ArticulationCfg(
        asset_path=str(path),
        init_state=InitialStateCfg(pos=(0.0, 0.0, 1.0), joint_pos={"j": 0.1}),
        actuators={"j": ActuatorCfg(**actuator)},
    )


def test_efforts_and_drives_add_up(tmp_path):
    """Torque = stiffness * (target - position) - damping * velocity + effort, the target being the default position."""
    scene = make_scene(pendulum(tmp_path, stiffness=20.0, damping=0.5, effort_limit=50.0), num_envs=3, dt=1e-4)
    data = scene.robot.data
    assign(data.joint_pos, [[0.1], [0.4], [0.4]])
    assign(data.joint_vel, [[0.0], [0.0], [2.0]])
    apply_state(scene)
    assign(data.joint_effort_target, [[3.0], [3.0], [100.0]])
    before = data.joint_vel.numpy().copy()
    scene.robot.write_targets_to_sim()
    scene.physics.step()
    acceleration = (data.joint_vel.numpy() - before)[:, 0] / 1e-4
    inertia = 2.0 * 0.5**2 + 0.4 * 2.0 * 0.1**2
    torque = np.array([3.0, -20.0 * 0.3 + 3.0, -20.0 * 0.3 - 0.5 * 2.0 + 50.0])
    np.testing.assert_allclose(acceleration, torque / inertia, rtol=1e-2)
    np.testing.assert_allclose(data.applied_effort.numpy()[:, 0], [3.0, 3.0 - 6.0, 50.0 - 7.0], rtol=1e-5)
    np.testing.assert_allclose(data.computed_effort.numpy()[:, 0], [3.0, -3.0, 93.0], rtol=1e-5)


def test_a_drive_beside_an_effort_holds_the_default_position(tmp_path):
    cfg = pendulum(tmp_path, stiffness=20.0, damping=3.0)
    scene = make_scene(cfg, num_envs=1)
    assign(scene.robot.data.joint_pos, 1.0)
    apply_state(scene)
    for _ in range(480):
        scene.robot.write_targets_to_sim()
        scene.physics.step()
    np.testing.assert_allclose(scene.robot.data.joint_pos.numpy(), 0.1, atol=1e-3)


HIP = """
<body name="base">
  <freejoint name="root"/><geom name="g0" type="sphere" size="0.1"/>
  <body name="hip" pos="0.3 0 0">
    <joint name="swing-x" pos="0 0 0.05" axis="1 0 0" range="-10 20" armature="0.1"/>
    <joint name="rail" type="slide" pos="0 0 0.05" axis="0 0 1" range="-0.1 0.2" armature="0.2"/>
    <joint name="swing_z" pos="0 0 0.05" axis="0 0 1" range="-30 40" armature="0.3"/>
    <geom name="g1" type="sphere" size="0.1"/>
    <body name="knee" pos="0.3 0 0">
      <joint name="knee" axis="0 1 0" range="-50 60"/><geom type="sphere" size="0.1"/>
    </body>
  </body>
</body>
"""


def test_joints_that_share_a_body_are_one_each(tmp_path):
    """Newton merges them into one joint, the linear ones first; each keeps its name, limits and anchor."""
    builder, layout = spawn_xml(tmp_path, HIP)
    assert layout.joint_names == ("rail", "swing_x", "swing_z", "knee"), "Newton writes - as _"
    assert layout.first_coord == 7 and layout.first_dof == 6
    assert [layout.body_names[body] for body in layout.joint_child_body] == ["hip", "hip", "hip", "knee"]
    assert layout.joint_child_frame[0] == layout.joint_child_frame[2] != layout.joint_child_frame[3]
    np.testing.assert_allclose(layout.joint_child_frame[0], [0, 0, 0.05, 0, 0, 0, 1])
    limits = np.array(layout.position_limits)
    np.testing.assert_allclose(limits[0], [-0.1, 0.2], rtol=1e-6)
    np.testing.assert_allclose(np.rad2deg(limits[1:]), [(-10, 20), (-30, 40), (-50, 60)], rtol=1e-5)
    np.testing.assert_allclose(builder.joint_armature[6:9], [0.2, 0.1, 0.3])
    assert not [name for name in builder.custom_attributes if "joint_names" in name]


def test_joints_that_share_a_body_need_names(tmp_path):
    with pytest.raises(ConfigError, match=r"scene\.robot: joints of body 'hip' have no name; allowed: a name for each"):
        spawn_xml(tmp_path, HIP.replace('name="swing-x"', ""))
    with pytest.raises(ConfigError, match="joint names must be unique; repeated: swing_z"):
        spawn_xml(tmp_path, HIP.replace("swing-x", "swing-z"))


def test_a_root_keeps_its_configured_pose_and_velocity():
    cfg = ant_robot_cfg()
    half = math.sqrt(0.5)
    cfg.init_state = InitialStateCfg(
        pos=(1.0, 2.0, 3.0),
        rot=(0.0, 0.0, half, half),
        lin_vel=(0.1, 0.2, 0.3),
        ang_vel=(0.4, 0.5, 0.6),
        joint_pos=cfg.init_state.joint_pos,
    )
    builder, _ = spawn(cfg)
    np.testing.assert_allclose(builder.joint_q[:7], [1, 2, 3, 0, 0, half, half])
    np.testing.assert_allclose(builder.joint_qd[:6], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6])


def test_every_asset_of_the_configuration_that_does_not_exist(tmp_path):
    broken(
        r"scene\.robot\.asset_path is '/no/such\.xml': there is no such file",
        ArticulationCfg(asset_path="/no/such.xml"),
    )
    broken(
        r"unknown robot 'antt' \(did you mean 'ant'\?\); allowed: ant, cartpole, humanoid",
        ArticulationCfg(asset_path="antt"),
    )
    (tmp_path / "robot.urdf").write_text("<robot/>")
    urdf = str(tmp_path / "robot.urdf")
    broken(
        r"asset_path is '.*robot\.urdf'; allowed: an MJCF file \(\.xml\) or a shipped", ArticulationCfg(asset_path=urdf)
    )


@pytest.mark.parametrize(
    "text", ["<mujoco><worldbody>", "", "no xml at all", "<mujoco><worldbody><body><geom type='blob'/>"]
)
def test_a_file_that_is_broken(text, tmp_path):
    path = tmp_path / "broken.xml"
    path.write_text(text)
    broken(
        r"scene\.robot\.asset_path is '.*broken\.xml', which Newton can't load: ", ArticulationCfg(asset_path=str(path))
    )


def test_a_model_without_joints(tmp_path):
    with pytest.raises(ConfigError, match=r"scene\.robot: the model has no hinge or slide joint"):
        spawn_xml(tmp_path, '<body name="b"><freejoint/><geom type="sphere" size="0.1"/></body>')
    with pytest.raises(ConfigError, match="has no hinge or slide joint"):
        spawn_xml(tmp_path, "")


def test_a_joint_of_another_type(tmp_path):
    with pytest.raises(ConfigError, match=r"joint 'j' is of type BALL; allowed: hinge, slide, and one free root"):
        spawn_xml(tmp_path, BODY.replace("hinge", "ball"))


def test_a_free_joint_that_is_not_the_root(tmp_path):
    with pytest.raises(ConfigError, match="is of type FREE; allowed: hinge, slide, and one free root"):
        spawn_xml(tmp_path, BODY + '<body name="ball"><freejoint name="f"/><geom type="sphere" size="0.1"/></body>')


def test_two_joints_of_one_name(tmp_path):
    geom = '<geom type="sphere" size="0.1"/>'
    inner = f'<body name="b"><joint name="j"/>{geom}</body>'
    with pytest.raises(ConfigError, match="joint names must be unique; repeated: j"):
        spawn_xml(tmp_path, f'<body name="a"><joint name="j"/>{geom}{inner}</body>')


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"joint_pos": {"knee": 1.0}},
            r"scene\.robot\.init_state\.joint_pos: 'knee' matches no name; allowed: front_left_leg, ",
        ),
        (
            {"joint_vel": {"leg": 1.0}},
            r"scene\.robot\.init_state\.joint_vel: 'leg' matches no name; allowed: front_left_leg, ",
        ),
        ({"joint_pos": {"(": 1.0}}, r"scene\.robot\.init_state\.joint_pos: '\(' is no regular expression: "),
    ],
)
def test_joint_names_of_the_default_state(change, message):
    cfg = ant_robot_cfg()
    cfg.init_state = InitialStateCfg(**change)
    broken(message, cfg)


def test_joint_names_of_actuators():
    cfg = ant_robot_cfg()
    cfg.actuators = {"arms": ActuatorCfg(joint_names_expr=("arm_.*",))}
    broken(
        r"scene\.robot\.actuators\.arms\.joint_names_expr: 'arm_\.\*' matches no name; allowed: front_left_leg, ", cfg
    )
    cfg.actuators = {"all": ActuatorCfg(), "feet": ActuatorCfg(joint_names_expr=(".*_foot",))}
    broken(r"scene\.robot\.actuators: joint 'front_left_foot' is in both 'all' and 'feet'", cfg)
    cfg.actuators = {"bad": ActuatorCfg(joint_names_expr=("[",))}
    broken(r"scene\.robot\.actuators\.bad\.joint_names_expr: '\[' is no regular expression", cfg)


def test_the_first_pattern_that_matches_gives_the_value():
    names = ["left_leg", "right_leg", "tail"]
    assert values_by_name({"left_.*": 1.0, ".*_leg": 2.0}, names, "x") == [1.0, 2.0, 0.0]
    assert values_by_name({".*_leg": 2.0, "left_.*": 1.0}, names, "x", default=9.0) == [2.0, 2.0, 9.0]
    assert match_names(["tail", "left.*"], names, "x") == [0, 2], "in the order of the names"


def test_a_path_and_the_shipped_name_are_the_same_robot():
    from treadle.assets.robots import robot_path

    cfg = ant_robot_cfg()
    named = make_scene(cfg, num_envs=1).robot.layout
    cfg.asset_path = str(robot_path("ant"))
    assert make_scene(cfg, num_envs=1).robot.layout == named
