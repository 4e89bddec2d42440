"""What users get wrong: configurations, actions, devices, closed environments, tensors of a torch task."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import warp as wp
from support.ant import ant_cfg, make_ant

import treadle
from treadle.assets.robots import robot_path
from treadle.envs import DirectTorchEnv
from treadle.errors import ConfigError, TreadleError
from treadle.registry import task_spec


@pytest.fixture(scope="module")
def env():
    env = make_ant(num_envs=2)
    yield env
    env.close()


def test_all_problems_are_reported_together():
    cfg = ant_cfg()
    cfg.decimation = 0
    cfg.episode_length_s = math.nan
    cfg.seed = -1
    cfg.sim.dt = -0.01
    cfg.sim.gravity = (0.0, 0.0, math.inf)
    cfg.sim.ground_friction = -1.0
    cfg.sim.solver.njmax = 0
    cfg.sim.solver.iterations = 2.5
    cfg.sim.solver.tolerance = 0.0
    cfg.sim.solver.cone = "conic"
    cfg.scene.num_envs = 0
    cfg.scene.env_spacing = math.nan
    cfg.scene.robot.asset_path = ""
    cfg.scene.robot.soft_joint_pos_limit_factor = 1.5
    cfg.scene.robot.init_state.rot = (0.0, 0.0, 0.0, 0.0)
    cfg.scene.robot.init_state.pos = (0.0, 0.0, math.nan)
    cfg.scene.robot.init_state.joint_vel = {".*": math.inf}
    cfg.scene.robot.actuators["body"].mode = "torque"
    cfg.scene.robot.actuators["body"].damping = -1.0
    cfg.scene.robot.actuators["body"].effort_limit = 0.0
    cfg.launch.mode = "fast"
    cfg.launch.contract = "loose"
    cfg.joint_gears = {".*": 0.0}
    cfg.action_scale = math.nan
    cfg.target_pos = (math.inf, 0.0, 0.0)
    cfg.rewards.energy = math.nan
    cfg.reset_joint_pos_range = (0.2, -0.2)
    cfg.joint_limit_threshold = 1.0
    cfg.heading_threshold = 0.0
    with pytest.raises(ConfigError) as caught:
        treadle.make("Ant-Direct", cfg=cfg)
    sentences = str(caught.value).split("; ")
    expected = [
        "decimation is 0",
        "allowed: at least 1",
        "episode_length_s is nan",
        "seed is -1",
        "allowed: 0 to 2147483647",
        "sim.dt is -0.01",
        "sim.gravity is (0.0, 0.0, inf)",
        "sim.ground_friction is -1.0",
        "sim.solver.njmax is 0",
        "sim.solver.iterations is 2.5",
        "allowed: a whole number of at least 1",
        "sim.solver.tolerance is 0.0",
        "sim.solver.cone is 'conic'",
        "allowed: pyramidal, elliptic",
        "scene.num_envs is 0",
        "scene.env_spacing is nan",
        "scene.robot.asset_path is empty",
        "scene.robot.soft_joint_pos_limit_factor is 1.5",
        "scene.robot.init_state.rot is (0.0, 0.0, 0.0, 0.0)",
        "scene.robot.init_state.pos is (0.0, 0.0, nan)",
        "scene.robot.init_state.joint_vel['.*'] is inf",
        "scene.robot.actuators.body.mode is 'torque'",
        "allowed: effort, position, velocity",
        "scene.robot.actuators.body.damping is -1.0",
        "scene.robot.actuators.body.effort_limit is 0.0",
        "launch.mode is 'fast'",
        "allowed: eager, replay, graph, auto",
        "launch.contract is 'loose'",
        "joint_gears['.*'] is 0.0",
        "action_scale is nan",
        "target_pos is (inf, 0.0, 0.0)",
        "rewards.energy is nan",
        "reset_joint_pos_range is (0.2, -0.2)",
        "joint_limit_threshold is 1.0",
        "heading_threshold is 0.0",
    ]
    assert [text for text in expected if text not in sentences] == []
    assert len(sentences) == 2 * 29, "each problem says what is allowed"


def test_the_defaults_are_allowed():
    cfg = ant_cfg()
    assert list(cfg.problems()) == []
    cfg.launch.mode = cfg.launch.contract = None
    cfg.validate()


def test_a_joint_without_a_gear_is_named():
    with pytest.raises(ConfigError, match=r"joint_gears leaves out front_left_foot, .*right_back_foot; allowed: a "):
        make_ant(num_envs=1, joint_gears={".*_leg": 15.0})


def test_an_unknown_device_lists_those_present():
    for device in ("cuda:7", "tpu", "gpu"):
        with pytest.raises(ConfigError, match=rf"device is '{device}'; allowed here: auto, cpu"):
            treadle.make("Ant-Direct", num_envs=1, device=device)


@pytest.mark.skipif(wp.is_cuda_available(), reason="there is a CUDA device")
def test_auto_takes_the_cpu_where_there_is_no_gpu():
    env = treadle.make("Ant-Direct", num_envs=1, device="auto")
    assert env.device == "cpu"
    env.close()


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        (torch.zeros(2, 7), r"actions have shape \(2, 7\); allowed: \(2, 8\)"),
        (torch.zeros(1, 8), r"actions have shape \(1, 8\); allowed: \(2, 8\)"),
        (torch.zeros(16), r"actions have shape \(16,\); allowed: \(2, 8\)"),
        (np.zeros((2, 8)), r"actions are a ndarray; allowed: a torch tensor of shape \(2, 8\)"),
        (torch.zeros(2, 8, device="meta"), r"actions are on meta; allowed: cpu"),
        (torch.zeros(2, 8, dtype=torch.int64), r"actions have dtype torch.int64; allowed: a floating-point type"),
        (torch.zeros(2, 8, dtype=torch.bool), r"actions have dtype torch.bool; allowed: a floating-point type"),
        (
            torch.zeros(2, 8, dtype=torch.complex64),
            r"actions have dtype torch.complex64; allowed: a floating",
        ),
    ],
)
def test_wrong_actions(env, actions, message):
    env.reset()
    before = env.buffers.actions.numpy().copy()
    with pytest.raises(ConfigError, match=message):
        env.step(actions)
    assert np.array_equal(env.buffers.actions.numpy(), before)
    assert env.episode_length_buf.tolist() == [0, 0]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_other_floats_are_cast(env, dtype):
    env.reset()
    actions = torch.full((2, 8), 0.25, dtype=dtype)
    assert env.step(actions)[0]["policy"][:, -8:].tolist() == [[0.25] * 8] * 2


def test_strided_actions_are_copied(env):
    env.reset()
    actions = torch.arange(16.0).reshape(8, 2).T / 16.0
    assert torch.equal(env.step(actions)[0]["policy"][:, -8:], actions)


@pytest.mark.parametrize("frontend", ["warp", "torch"])
def test_actions_with_a_gradient_leave_none_behind(frontend):
    env = make_ant(frontend=frontend, num_envs=2)
    for _ in range(3):
        observations, reward, *_ = env.step(torch.zeros(2, 8, requires_grad=True) * 0.5)
    assert not observations["policy"].requires_grad and not reward.requires_grad
    assert not env.buffers.torch.actions.requires_grad and env.buffers.torch.actions.grad_fn is None
    env.close()


@pytest.mark.parametrize("frontend", ["warp", "torch"])
def test_inference_mode_may_come_and_go(frontend):
    """A learner collects data in inference mode; who steps the environment afterwards may not."""
    with torch.inference_mode():
        env = make_ant(frontend=frontend, num_envs=2)
        for _ in range(3):
            env.step(torch.zeros(2, 8))
    env.episode_length_buf = torch.tensor([5, 959])
    for _ in range(3):
        env.step(torch.zeros(2, 8))
    env.reset(seed=1)
    with torch.inference_mode():
        env.step(torch.zeros(2, 8))
    env.close()


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_a_closed_environment_says_so(mode):
    env = make_ant(num_envs=2, mode=mode)
    for _ in range(3):
        env.step(torch.zeros(2, 8))
    env.close()
    env.close()
    for use in (lambda: env.step(torch.zeros(2, 8)), env.reset):
        with pytest.raises(TreadleError, match="LocomotionWarpEnv is closed; make a new environment"):
            use()


def test_a_seed_out_of_range(env):
    for seed in (-1, 2**31):
        with pytest.raises(ConfigError, match=rf"seed is {seed}; allowed: 0 to 2147483647"):
            env.reset(seed=seed)
        with pytest.raises(ConfigError, match=rf"seed is {seed}; allowed"):
            treadle.make("Ant-Direct", num_envs=1, seed=seed, device="cpu")


def test_spaces(env):
    assert env.single_action_space.shape == (8,)
    assert env.single_observation_space["policy"].shape == (60,)
    assert env.num_observations == {"policy": 60} and env.num_actions == 8


def test_make_does_not_modify_the_configuration():
    cfg = ant_cfg()
    env = treadle.make("Ant-Direct", cfg=cfg, num_envs=1, device="cpu", seed=5)
    assert (cfg.scene.num_envs, cfg.sim.device, cfg.seed) == (4096, "auto", 42)
    assert (env.cfg.scene.num_envs, env.cfg.sim.device, env.cfg.seed) == (1, "cpu", 5)
    env.close()


class _BrokenEnv(task_spec("Ant-Direct").load_env_class("torch")):
    """The ant with one mistake."""

    mistake = ""

    def _get_terminations(self):
        terminations = super()._get_terminations()
        return terminations[:, None] if self.mistake == "termination shape" else terminations

    def _get_rewards(self):
        rewards = super()._get_rewards()
        if self.mistake == "missing reward":
            del rewards["energy"]
        if self.mistake == "additional reward":
            rewards["bonus"] = rewards["energy"]
        if self.mistake == "reward shape":
            rewards["alive"] = rewards["alive"][:, None]
        return rewards

    def _get_observations(self):
        observations = super()._get_observations()
        if self.mistake == "observation shape":
            observations["policy"] = observations["policy"][:, :1]
        if self.mistake == "observation group":
            observations["critic"] = observations["policy"]
        return observations


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        ("termination shape", r"terminations of _BrokenEnv: shape is \(2, 1\); allowed: \(2,\)"),
        ("missing reward", r"reward terms of _BrokenEnv are progress, .*; allowed: progress, .*energy"),
        ("additional reward", r"reward terms of _BrokenEnv are progress, .*bonus; allowed: progress"),
        ("reward shape", r"reward term 'alive' of _BrokenEnv: shape is \(2, 1\); allowed: \(2,\)"),
        ("observation shape", r"observation group 'policy' of _BrokenEnv: shape is \(2, 1\); allowed: \(2, 60\)"),
        ("observation group", r"observation groups of _BrokenEnv are policy, critic; allowed: policy"),
    ],
)
def test_tensors_of_a_torch_task_are_checked(mistake, message, monkeypatch):
    monkeypatch.setattr(_BrokenEnv, "mistake", mistake)
    cfg = ant_cfg()
    cfg.scene.num_envs, cfg.sim.device = 2, "cpu"
    env = _BrokenEnv(cfg)
    assert isinstance(env, DirectTorchEnv)
    with pytest.raises(ConfigError, match=message):
        env.step(torch.zeros(2, 8))
    env.close()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda cfg: setattr(cfg, "decimation", "2"), "decimation is '2'; allowed: a whole number"),
        (lambda cfg: setattr(cfg, "decimation", True), "decimation is True; allowed: a whole number"),
        (lambda cfg: setattr(cfg, "seed", None), "seed is None; allowed: a whole number"),
        (lambda cfg: setattr(cfg.sim, "gravity", None), "sim.gravity is None; allowed: 3 values, each a number"),
        (lambda cfg: setattr(cfg, "joint_gears", None), "joint_gears is None; allowed: dict"),
        (lambda cfg: setattr(cfg, "rewards", None), "rewards is None; allowed: a LocomotionRewardCfg"),
        (lambda cfg: setattr(cfg, "typo_field", 1), "typo_field is no field of AntDirectEnvCfg; allowed: decimation, "),
        (
            lambda cfg: setattr(cfg.scene.robot.actuators["body"], "effort_limit", "x"),
            r"scene.robot.actuators\['body'\].effort_limit is 'x'; allowed: a number",
        ),
    ],
)
def test_a_value_of_another_type_is_named(change, message):
    cfg = ant_cfg()
    change(cfg)
    with pytest.raises(ConfigError, match=message):
        cfg.validate()


def test_lengths_and_indices_are_whole_numbers_of_the_right_shape():
    env = make_ant(num_envs=2)
    for value in (torch.tensor([1.5, 2.0]), torch.tensor([1]), [1, 2], torch.tensor([True, False])):
        with pytest.raises(ConfigError, match="episode_length_buf is given"):
            env.episode_length_buf = value
    env.episode_length_buf = torch.tensor([-5, 2**40])
    assert env.episode_length_buf.tolist() == [0, env.max_episode_length]
    with pytest.raises(ConfigError, match=r"env_ids are torch\.float32"):
        env.reset(env_ids=torch.tensor([1.5]))
    with pytest.raises(ConfigError, match="seed is 'a'"):
        env.reset(seed="a")
    env.close()


def test_a_robot_that_is_not_one_for_the_task_is_refused():
    cfg = ant_cfg()
    cfg.scene.robot.actuators["body"].mode = "position"
    with pytest.raises(ConfigError, match=r"front_left_leg.*are in mode 'position' or 'velocity'; allowed: 'effort'"):
        treadle.make("Ant-Direct", cfg=cfg, num_envs=1, device="cpu")


def test_actuators_that_push_by_themselves_are_refused(tmp_path):
    text = robot_path("ant").read_text()
    path = tmp_path / "driven.xml"
    section = '<actuator><general joint="front_left_leg" gainprm="500"/></actuator></mujoco>'
    path.write_text(text.replace("</mujoco>", section))
    cfg = ant_cfg()
    cfg.scene.robot.asset_path = str(path)
    with pytest.raises(ConfigError, match="actuators of kind general; allowed: motor, position, velocity"):
        treadle.make("Ant-Direct", cfg=cfg, num_envs=1, device="cpu")
