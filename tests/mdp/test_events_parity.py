"""Each event draws the same numbers and writes the same in both forms, in the masked environments only."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.mdp_envs import changed_rows, make_ants, restore, snapshot

from treadle import mdp
from treadle.managers import EventTermCfg, SceneEntityCfg
from treadle.managers.event_manager import call_with_mask
from treadle.managers.kernel_builder import KernelBuilder
from treadle.managers.params import DeviceParams
from treadle.managers.term import Term
from treadle.managers.twins import registered_twins

MASKS = {"alternate": [True, False, True, False], "last": [False, False, False, True]}
POSE = {"x": (-0.5, 0.5), "y": (0.1, 0.2), "roll": (-0.3, 0.2), "pitch": (0.0, 0.4), "yaw": (-3.14, 3.14)}
VELOCITY = {axis: (-0.5, 0.7) for axis in ("x", "y", "z", "roll", "pitch", "yaw")}
HIPS = {"asset_cfg": SceneEntityCfg(joint_names=".*_leg")}
LEGS = {"asset_cfg": SceneEntityCfg(body_names=(".*leg.*|.*foot.*",))}
LOG = {"operation": "scale", "distribution": "log_uniform"}
GAUSS = {"operation": "add", "distribution": "gaussian"}

CASES = {
    "scene": (mdp.reset_scene_to_default, {"reset_joint_targets": True}),
    "root": (mdp.reset_root_state_uniform, {"pose_range": POSE, "velocity_range": VELOCITY}),
    "orientation": (
        mdp.reset_root_state_with_random_orientation,
        {"pose_range": {"z": (0.0, 0.5)}, "velocity_range": VELOCITY},
    ),
    "push": (mdp.push_by_setting_velocity, {"velocity_range": VELOCITY}),
    "offset": (mdp.reset_joints_by_offset, {"position_range": (-0.5, 0.5), "velocity_range": (-2.0, 1.0)} | HIPS),
    "scale": (mdp.reset_joints_by_scale, {"position_range": (0.5, 1.5), "velocity_range": (0.0, 0.0)}),
    "limits": (
        mdp.reset_joints_within_limits_range,
        {"position_range": {".*_leg": (-0.3, None)}, "velocity_range": {".*": (-1.0, 2.0)}, "use_default_offset": True},
    ),
    "wrench": (mdp.apply_external_force_torque, {"force_range": (-5.0, 5.0), "torque_range": (-1.0, 2.0)} | LEGS),
    "material": (
        mdp.randomize_rigid_body_material,
        {"static_friction_range": (0.3, 1.2), "dynamic_friction_range": (0.3, 1.0), "num_buckets": 16},
    ),
    "mass": (mdp.randomize_rigid_body_mass, {"mass_distribution_params": (0.8, 1.25)} | LOG | LEGS),
    "mass alone": (
        mdp.randomize_rigid_body_mass,
        {"mass_distribution_params": (0.0, 0.1), "recompute_inertia": False} | GAUSS,
    ),
    "inertia": (
        mdp.randomize_rigid_body_inertia,
        {"inertia_distribution_params": (0.5, 1.5), "operation": "scale"} | LEGS,
    ),
    "com": (mdp.randomize_rigid_body_com, {"com_range": {"x": (-0.05, 0.05), "z": (-0.01, 0.01)}}),
    "offsets": (
        mdp.randomize_rigid_body_collider_offsets,
        {"rest_offset_distribution_params": (0.0, 0.002), "contact_offset_distribution_params": (0.001, 0.01)},
    ),
    "gravity": (
        mdp.randomize_physics_scene_gravity,
        {"gravity_distribution_params": ((-1.0, -1.0, -10.0), (1.0, 1.0, -5.0)), "operation": "abs"},
    ),
    "gains": (
        mdp.randomize_actuator_gains,
        {"stiffness_distribution_params": (0.5, 2.0), "damping_distribution_params": (0.5, 2.0)} | LOG,
    ),
    "stiffness": (
        mdp.randomize_actuator_gains,
        {"stiffness_distribution_params": (1.0, 2.0)} | HIPS,
    ),
    "joints": (
        mdp.randomize_joint_parameters,
        {
            "friction_distribution_params": (0.0, 0.1),
            "armature_distribution_params": (0.0, 0.05),
            "lower_limit_distribution_params": (-0.1, 0.1),
            "upper_limit_distribution_params": (-0.1, 0.1),
            "operation": "add",
        },
    ),
}


@pytest.fixture(scope="module")
def env():
    made = make_ants()
    made.reset(seed=3)
    made.step(torch.ones(4, 4))
    yield made
    made.close()


def test_every_event_has_a_case():
    known = {path for path in registered_twins() if path.startswith("treadle.mdp.events")}
    covered = {f"{func.__module__}:{func.__qualname__}" for func, _ in CASES.values()}
    assert covered == known


def varied(value):
    """Return other parameters that are allowed too: numbers a tenth smaller, and the opposite of what is switched."""
    if isinstance(value, dict):
        return {key: varied(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(varied(item) for item in value)
    if isinstance(value, bool):
        return not value
    return 0.9 * value if isinstance(value, float) else value


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("which", ["alternate", "last"])
def test_both_forms_draw_and_write_the_same(env, case, which):
    func, params = CASES[case]
    params, flags = (params, MASKS[which]) if which == "alternate" else (varied(params), MASKS[which])
    memory = DeviceParams("numbers", env.device)
    term = Term(
        "term", EventTermCfg(func=func, params=params), env, "events.term", memory, ("env", "env_mask", "env_ids")
    )
    mask = torch.tensor(flags)
    builder = KernelBuilder("run_event", "Run one event in the masked environments.")
    env.buffers.torch.moved_mask.copy_(mask)
    with builder.block(f"if {builder.argument('moved_mask', env.buffers.moved_mask)}[env]:"):
        builder.line(term.call.expression(builder))
    before = snapshot(env)
    call_with_mask(term, mask)
    in_torch = snapshot(env)
    restore(env, before)
    builder.build(env.scope, env.num_envs).launch()
    in_warp = snapshot(env)
    restore(env, before)

    for name, expected in in_torch.items():
        tolerance = 2e-5 if "inv" in name else 2e-6  # some inertias are close to singular
        np.testing.assert_allclose(in_warp[name], expected, rtol=tolerance, atol=1e-6, err_msg=name)
    np.testing.assert_array_equal(in_warp["buffers.random_state"], in_torch["buffers.random_state"])
    for row, masked in enumerate(flags):
        assert bool(changed_rows(before, in_warp, row)) == masked
        assert bool(changed_rows(before, in_torch, row)) == masked
