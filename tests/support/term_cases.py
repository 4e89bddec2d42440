"""A case for each term, with the parameters that have no default. Selections of joints and bodies are added later."""

from __future__ import annotations

import importlib
import pkgutil
import re

from support.terms import LEGS, Case

import treadle.mdp
import treadle.tasks
from treadle import mdp
from treadle.managers import SceneEntityCfg
from treadle.managers.twins import registered_twins
from treadle.tasks.cartpole import mdp as cartpole
from treadle.tasks.locomotion import mdp as locomotion
from treadle.tasks.reach import mdp as reach
from treadle.tasks.velocity import mdp as velocity

CONTACTS = SceneEntityCfg(name="contacts", body_names=".*_foot")
FOOT = SceneEntityCfg(body_names="right_back_foot")
TARGET = (1000.0, -20.0, 0.5)
GEARS = {".*_leg": 10.0, ".*_foot": 15.0}
VELOCITY = {"command_name": "velocity"}
POSE = {"command_name": "pose"}

OBSERVATIONS = [
    Case(mdp.base_pos_z),
    Case(mdp.base_lin_vel),
    Case(mdp.base_ang_vel),
    Case(mdp.projected_gravity),
    Case(mdp.root_pos_w),
    Case(mdp.root_quat_w),
    Case(mdp.root_quat_w, {"make_quat_unique": True}),
    Case(mdp.root_lin_vel_w),
    Case(mdp.root_ang_vel_w),
    Case(mdp.body_pose_w),
    Case(mdp.body_projected_gravity_b),
    Case(mdp.joint_pos),
    Case(mdp.joint_pos_rel),
    Case(mdp.joint_pos_limit_normalized),
    Case(mdp.joint_vel),
    Case(mdp.joint_vel_rel),
    Case(mdp.joint_effort),
    Case(mdp.last_action),
    Case(mdp.last_action, {"action_name": "legs"}),
    Case(mdp.generated_commands, POSE),
    Case(mdp.generated_commands, VELOCITY),
    Case(mdp.current_time_s),
    Case(mdp.remaining_time_s),
    Case(mdp.body_incoming_wrench, {"sensor_cfg": SceneEntityCfg(name="wrenches")}),
    Case(mdp.imu_ang_vel),
    Case(mdp.imu_lin_acc),
    Case(mdp.imu_orientation),
    Case(mdp.imu_projected_gravity),
    Case(locomotion.base_yaw_roll),
    Case(locomotion.base_up_proj),
    Case(locomotion.base_heading_proj, {"target_pos": TARGET}),
    Case(locomotion.base_angle_to_target, {"target_pos": TARGET}),
]
REWARDS = [
    Case(mdp.is_alive),
    Case(mdp.is_terminated),
    Case(mdp.is_terminated_term),
    Case(mdp.is_terminated_term, {"term_keys": ["joint_pos.*", "illegal_contact"]}),
    Case(mdp.survival_success_rate),
    Case(mdp.lin_vel_z_l2),
    Case(mdp.ang_vel_xy_l2),
    Case(mdp.flat_orientation_l2),
    Case(mdp.base_height_l2, {"target_height": 0.4}),
    Case(mdp.body_lin_acc_l2),
    Case(mdp.joint_torques_l2),
    Case(mdp.joint_vel_l1),
    Case(mdp.joint_vel_l2),
    Case(mdp.joint_acc_l2),
    Case(mdp.joint_deviation_l1),
    Case(mdp.joint_pos_limits),
    Case(mdp.joint_vel_limits, {"soft_ratio": 0.6}),
    Case(mdp.applied_torque_limits),
    Case(mdp.action_l2),
    Case(mdp.action_rate_l2),
    Case(mdp.undesired_contacts, {"threshold": 1.5, "sensor_cfg": CONTACTS}),
    Case(mdp.desired_contacts, {"sensor_cfg": CONTACTS}),
    Case(mdp.contact_forces, {"threshold": 0.7, "sensor_cfg": CONTACTS}),
    Case(mdp.track_lin_vel_xy_exp, VELOCITY | {"std": 0.9}),
    Case(mdp.track_ang_vel_z_exp, VELOCITY | {"std": 0.8}),
    Case(cartpole.joint_pos_target_l2, {"target": 0.3, "asset_cfg": SceneEntityCfg(joint_names=LEGS)}),
    Case(locomotion.upright_posture_bonus, {"threshold": 0.2}),
    Case(locomotion.move_to_target_bonus, {"threshold": 0.4, "target_pos": TARGET}),
    Case(locomotion.progress_reward, {"target_pos": TARGET}),
    Case(locomotion.progress_reward, {"target_pos": (0.0, 5.0, 0.0)}),
    Case(locomotion.terminated_penalty),
    Case(locomotion.joint_pos_limits_penalty_ratio, {"threshold": 0.8, "gear_ratio": GEARS}),
    Case(locomotion.power_consumption, {"gear_ratio": GEARS}),
    Case(velocity.feet_air_time, VELOCITY | {"sensor_cfg": CONTACTS, "threshold": 0.4}),
    Case(velocity.feet_air_time_positive_biped, VELOCITY | {"sensor_cfg": CONTACTS, "threshold": 0.2}),
    Case(velocity.feet_air_time_variance, VELOCITY | {"sensor_cfg": CONTACTS, "max_time": 0.6}),
    Case(velocity.feet_slide, {"sensor_cfg": CONTACTS, "asset_cfg": SceneEntityCfg(body_names=".*_foot")}),
    Case(velocity.track_lin_vel_xy_yaw_frame_exp, VELOCITY | {"std": 0.9}),
    Case(velocity.track_ang_vel_z_world_exp, VELOCITY | {"std": 0.8}),
    Case(velocity.stand_still_joint_deviation_l1, VELOCITY),
    Case(reach.position_command_error, POSE),
    Case(reach.position_command_error, POSE | {"asset_cfg": FOOT}),
    Case(reach.position_command_error_tanh, POSE | {"std": 2.0}),
    Case(reach.orientation_command_error, POSE | {"asset_cfg": FOOT}),
]
TERMINATIONS = [
    Case(mdp.time_out),
    Case(mdp.command_resample, VELOCITY),
    Case(mdp.bad_orientation, {"limit_angle": 1.2}),
    Case(mdp.root_height_below_minimum, {"minimum_height": 0.3}),
    Case(mdp.joint_pos_out_of_limit),
    Case(mdp.joint_pos_out_of_manual_limit, {"bounds": (-0.9, 0.95)}),
    Case(mdp.joint_vel_out_of_limit),
    Case(mdp.joint_vel_out_of_manual_limit, {"max_velocity": 1.8}),
    Case(mdp.joint_effort_out_of_limit),
    Case(mdp.illegal_contact, {"threshold": 2.5, "sensor_cfg": CONTACTS}),
    Case(mdp.pose_command_success, POSE | {"thresholds": (2.5, 2.2)}),
    Case(mdp.terrain_out_of_bounds),
    Case(mdp.non_finite_state),
]
LIBRARY = re.compile(r"treadle\.(mdp\.(observations|rewards|terminations)\w*|tasks\.\w+\.mdp\w*):(\w+)")


def library() -> set[str]:
    """Return the path of each term of these kinds that Treadle ships."""
    for package in pkgutil.iter_modules(treadle.tasks.__path__, "treadle.tasks."):
        if importlib.util.find_spec(f"{package.name}.mdp") is not None:
            importlib.import_module(f"{package.name}.mdp")
    return {path for path in registered_twins() if LIBRARY.fullmatch(path)}
