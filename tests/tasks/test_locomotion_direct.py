"""Ant-Direct and Humanoid-Direct: both forms against an independent reference, term by term, and their constants."""

from __future__ import annotations

from dataclasses import asdict

import locomotion_reference as reference
import numpy as np
import pytest
import torch
import warp as wp
from support.ant import make_task, snapshot

from treadle.registry import task_spec

NUM_ENVS = 64
FRONTENDS = ["warp", "torch"]

on_tasks = pytest.mark.parametrize("task", reference.TASKS.values(), ids=list(reference.TASKS), scope="module")


def make(task: reference.Task, **fields):
    return make_task(task.task_id, **fields)


class RandomStates:
    """Random states, the same for both frontends, put into an environment of each."""

    def __init__(self, task: reference.Task, seed: int = 0):
        self.task, joints, low = task, len(task.joints), task.termination_height
        rng = np.random.default_rng(seed)
        quat = rng.normal(size=(NUM_ENVS, 4))
        quat[: NUM_ENVS // 2, :2] *= 0.1  # half of them nearly upright
        quat /= np.linalg.norm(quat, axis=1, keepdims=True)
        self.joint_q = np.concatenate(
            [
                rng.uniform(-3.0, 3.0, (NUM_ENVS, 2)),
                rng.uniform(0.2 * low, 1.8 * low, (NUM_ENVS, 1)),
                quat,
                rng.uniform(-2.5, 2.5, (NUM_ENVS, joints)),  # beyond the limits of nearly all joints
            ],
            axis=1,
        ).astype(np.float32)
        self.joint_qd = rng.uniform(-5.0, 5.0, (NUM_ENVS, 6 + joints)).astype(np.float32)
        self.body_parent_f = rng.uniform(-50.0, 50.0, (NUM_ENVS, task.num_bodies, 6)).astype(np.float32)
        self.actions = rng.uniform(-3.0, 3.0, (NUM_ENVS, joints)).astype(np.float32)
        self.moved = rng.uniform(-0.2, 0.2, NUM_ENVS)

    def put_into(self, env) -> None:
        """Write the states and evaluate all stages of a step but the physics and the reset."""
        origins = env.scene.env_origins.numpy()
        joint_q = self.joint_q.copy()
        joint_q[:, :3] += origins
        self._assign(env.physics.joint_q, joint_q)
        self._assign(env.physics.joint_qd, self.joint_qd)
        env.physics.reset_mask.fill_(True)
        env.physics.reset()
        self._assign(env.physics.body_parent_f, self.body_parent_f)
        self._assign(env.buffers.actions, self.actions)
        distance = np.linalg.norm((origins + reference.TARGET - joint_q[:, :3].astype(float))[:, :2], axis=1)
        self._assign(env.parts.target_distance, distance + self.moved)
        for output in (env.buffers.reward_terms, env.buffers.reward, env.buffers.observations["policy"]):
            output.fill_(float("nan"))
        env._process_actions()
        env._update_derived_state()
        env._compute_terminations()
        env._compute_rewards()
        env._compute_observations()

    @staticmethod
    def _assign(array: wp.array, values: np.ndarray) -> None:
        wp.copy(array, wp.array(values, dtype=array.dtype, device=array.device))

    def seen_by(self, env) -> reference.RobotState:
        """Return the states as the reference takes them; only the foot wrenches come from the environment's sensor."""
        body_q = env.physics.body_q.numpy()[:, 0].astype(float)
        body_qd = env.physics.body_qd.numpy()[:, 0].astype(float)
        state = reference.RobotState(
            origin=env.scene.env_origins.numpy().astype(float),
            root_pos=body_q[:, :3],
            root_quat=body_q[:, 3:],
            root_lin_vel=body_qd[:, :3],
            root_ang_vel=body_qd[:, 3:],
            joint_pos=self.joint_q[:, 7:].astype(float),
            joint_vel=self.joint_qd[:, 6:].astype(float),
            foot_wrench=env.parts.feet.wrench.numpy().astype(float),
            actions=self.actions.astype(float),
            last_distance=np.zeros(NUM_ENVS),
        )
        state.last_distance = reference.target_distance(state) + self.moved
        assert np.allclose(state.root_quat, self.joint_q[:, 3:7], atol=1e-5)
        return state


@pytest.fixture(scope="module")
def states(task) -> RandomStates:
    return RandomStates(task)


@pytest.fixture(scope="module")
def evaluated(task, states):
    """Both environments, with all stages evaluated on the same states."""
    envs = {frontend: make(task, frontend=frontend, num_envs=NUM_ENVS) for frontend in FRONTENDS}
    for env in envs.values():
        env.reset()
        states.put_into(env)
    yield envs
    for env in envs.values():
        env.close()


def _check_columns(task: reference.Task, actual: np.ndarray, expected: np.ndarray) -> None:
    assert actual.shape == expected.shape == (NUM_ENVS, len(task.columns))
    for column, name in enumerate(task.columns):
        difference = np.abs(actual[:, column] - expected[:, column])
        if name.startswith(("yaw", "angle")):
            difference = np.minimum(difference, 2.0 * np.pi - difference)
        tolerance = 2e-5 * np.maximum(1.0, np.abs(expected[:, column]))
        worst = int(np.argmax(difference / tolerance))
        assert difference[worst] <= tolerance[worst], (
            f"column {column}, {name}, row {worst}: {actual[worst, column]} instead of {expected[worst, column]}"
        )


@pytest.mark.parametrize("frontend", FRONTENDS)
@on_tasks
def test_the_observation_is_that_of_the_reference(task, frontend, evaluated, states):
    env = evaluated[frontend]
    _check_columns(task, env.observations["policy"].numpy(), reference.observation(task, states.seen_by(env)))


@on_tasks
def test_the_observations_of_both_forms_agree(task, evaluated):
    warp, torch_ = (evaluated[frontend].observations["policy"].numpy() for frontend in FRONTENDS)
    _check_columns(task, warp, torch_)


@pytest.mark.parametrize("frontend", FRONTENDS)
@pytest.mark.parametrize("term", reference.REWARDS)
@on_tasks
def test_each_reward_term_is_that_of_the_reference(task, frontend, term, evaluated, states):
    env = evaluated[frontend]
    expected = reference.rewards(task, states.seen_by(env))
    assert tuple(expected) == env.reward_terms == reference.REWARDS
    actual = env.buffers.reward_terms.numpy()[:, env.reward_terms.index(term)]
    assert len(np.unique(expected[term])) > 1, "the states tell nothing about this term"
    np.testing.assert_allclose(actual, expected[term], rtol=2e-5, atol=2e-6, err_msg=term)


@pytest.mark.parametrize("term", reference.REWARDS)
@on_tasks
def test_each_reward_term_of_both_forms_agrees(task, term, evaluated):
    index = reference.REWARDS.index(term)
    warp, torch_ = (evaluated[frontend].buffers.reward_terms.numpy()[:, index] for frontend in FRONTENDS)
    np.testing.assert_allclose(warp, torch_, rtol=5e-6, atol=5e-7, err_msg=term)


@pytest.mark.parametrize("frontend", FRONTENDS)
@on_tasks
def test_terminations_and_efforts_are_those_of_the_reference(task, frontend, evaluated, states):
    env = evaluated[frontend]
    fell = reference.terminated(task, states.seen_by(env))
    assert 5 < fell.sum() < NUM_ENVS - 5
    assert np.array_equal(env.buffers.terminated.numpy(), fell)
    effort = env.robot.data.joint_effort_target.numpy()
    np.testing.assert_allclose(effort, reference.efforts(task, states.actions), rtol=1e-6)
    assert np.abs(effort).max() == task.action_scale * task.gears.max()


@pytest.mark.parametrize("frontend", FRONTENDS)
@on_tasks
def test_the_total_reward_is_the_sum_of_the_terms(task, frontend, evaluated, states):
    env = evaluated[frontend]
    env._finish_rewards()
    expected = sum(reference.rewards(task, states.seen_by(env)).values())
    np.testing.assert_allclose(env.buffers.reward.numpy(), expected, rtol=2e-5, atol=5e-6)


@on_tasks
def test_the_constants_of_the_task(task):
    cfg = task_spec(task.task_id).load_env_cfg()
    assert cfg.sim.dt == 1.0 / 120.0 and cfg.decimation == 2 and cfg.step_dt == pytest.approx(1.0 / 60.0)
    assert cfg.episode_length_s == 16.0 and cfg.max_episode_length == reference.STEPS_PER_EPISODE
    assert cfg.scene.num_envs == 4096 and cfg.scene.env_spacing == 5.0
    solver = cfg.sim.solver
    assert (solver.njmax, solver.nconmax, solver.cone, solver.impratio) == (task.njmax, 25, "pyramidal", 1.0)
    assert (solver.iterations, solver.ls_iterations, solver.tolerance) == (100, 50, 1e-6)
    assert (solver.solver, solver.integrator, cfg.sim.substeps) == ("newton", "implicitfast", task.substeps)
    assert cfg.sim.ground_friction == 1.0 and cfg.sim.gravity == (0.0, 0.0, -9.81)
    robot = cfg.scene.robot
    assert robot.init_state.pos == (0.0, 0.0, task.root_height) and robot.soft_joint_pos_limit_factor == 1.0
    assert robot.self_collisions == task.self_collisions
    for actuator in robot.actuators.values():
        assert (actuator.mode, actuator.friction) == ("effort", 0.0)
        assert (actuator.armature, actuator.effort_limit) == (task.armature, task.effort_limit)
    assert asdict(cfg.rewards) == task.weights


def test_the_learners():
    for task, normalized, value_loss_coef in ((reference.ANT, False, 1.0), (reference.HUMANOID, True, 2.0)):
        cfg = task_spec(task.task_id).load_agent_cfg()
        assert (cfg.num_steps_per_env, cfg.max_iterations, cfg.seed, cfg.clip_actions) == (32, 1000, 42, None)
        assert cfg.actor.hidden_dims == cfg.critic.hidden_dims == (400, 200, 100)
        assert cfg.actor.obs_normalization == cfg.critic.obs_normalization == normalized
        ppo = cfg.algorithm
        assert (ppo.entropy_coef, ppo.learning_rate, ppo.value_loss_coef) == (0.0, 5e-4, value_loss_coef)
        assert (ppo.num_learning_epochs, ppo.num_mini_batches, ppo.desired_kl) == (5, 4, 0.01)


@pytest.mark.parametrize("frontend", FRONTENDS)
@on_tasks
def test_the_robot_is_that_of_the_reference(task, frontend, evaluated):
    env = evaluated[frontend]
    robot, data = env.robot, env.robot.data
    assert robot.joint_names == task.joints
    assert tuple(env.parts.feet.body_names) == task.feet
    np.testing.assert_allclose(data.soft_joint_pos_lower.numpy()[3], task.limits[:, 0], rtol=1e-6)
    np.testing.assert_allclose(data.soft_joint_pos_upper.numpy()[3], task.limits[:, 1], rtol=1e-6)
    np.testing.assert_allclose(data.default_joint_pos.numpy()[3], task.default_joint_pos, rtol=1e-6)
    np.testing.assert_allclose(data.joint_effort_limits.numpy(), task.effort_limit)
    np.testing.assert_allclose(env.parts.joint_gears.numpy(), task.gears)
    model = env.physics.model
    rows = {
        name: getattr(model, name).numpy().reshape(NUM_ENVS, -1)[3, 6:]
        for name in ("joint_armature", "joint_damping", "joint_stiffness", "joint_target_ke", "joint_target_kd")
    }
    np.testing.assert_allclose(rows["joint_armature"], task.armature)
    np.testing.assert_allclose(rows["joint_target_ke"], task.stiffness)
    # A joint with stiffness is damped by its drive, one without by itself.
    np.testing.assert_allclose(rows["joint_damping"] + rows["joint_target_kd"], task.damping)
    assert not rows["joint_stiffness"].any()
    target = env.parts.targets_w.numpy() - env.scene.env_origins.numpy()
    np.testing.assert_allclose(target, np.tile(reference.TARGET, (NUM_ENVS, 1)), atol=1e-4)


@pytest.mark.parametrize("frontend", FRONTENDS)
@on_tasks
def test_the_target_is_relative_to_each_environment(task, frontend):
    """Environments in the same state see and earn the same, wherever they stand."""
    env = make(task, frontend=frontend, num_envs=9)
    assert np.ptp(env.scene.env_origins.numpy(), axis=0).tolist() == [10.0, 10.0, 0.0]
    env.reset()
    for array in (env.robot.data.joint_pos, env.robot.data.joint_vel):
        array.numpy()[:] = array.numpy()[:1]
    for _ in range(10):
        actions = torch.full((9, len(task.joints)), 0.7)
        actions[:, 1::2] *= -1.0
        observations, reward, *_ = env.step(actions)
        policy = observations["policy"].numpy()
        # The physics rounds differently 5 m away; a target that is not relative shows as 5e-3 rad.
        np.testing.assert_allclose(policy[:, 9:12], policy[:1, 9:12].repeat(9, axis=0), atol=2e-4)
        np.testing.assert_allclose(reward.numpy(), reward.numpy()[:1].repeat(9), atol=2e-4)
    env.close()


@pytest.mark.parametrize("frontend", FRONTENDS)
@on_tasks
def test_progress_starts_from_the_start_of_the_new_episode(task, frontend):
    """The first reward after a reset pays for the movement since the reset, not for the way back."""
    env = make(task, frontend=frontend, num_envs=4)
    zeros = torch.zeros(4, len(task.joints))
    env.reset()
    env.physics.joint_q.numpy()[1, 0] += 30.0
    env.step(zeros)
    assert abs(env.buffers.reward_terms.numpy()[1, 0] - 30.0) < 0.1, "weight * speed * step time"
    env.episode_length_buf = torch.tensor([0, 959, 0, 0])
    *_, truncated, _ = env.step(zeros)
    assert truncated.tolist() == [False, True, False, False]
    env.step(zeros)
    assert np.abs(env.buffers.reward_terms.numpy()[:, 0]).max() < 0.05
    env.close()


@pytest.mark.parametrize("frontend", FRONTENDS)
@on_tasks
def test_an_episode_lasts_960_steps(task, frontend):
    env = make(task, frontend=frontend, num_envs=1, termination_height=-9.0)
    zeros = torch.zeros(1, len(task.joints))
    env.reset()
    ends = [step for step in range(1, 1000) if env.step(zeros)[3].item()]
    assert ends == [960]
    env.close()


@pytest.mark.parametrize("frontend", FRONTENDS)
@on_tasks
def test_resets_draw_from_the_published_ranges(task, frontend):
    env = make(task, frontend=frontend, num_envs=512)
    env.reset()
    offset = snapshot(env.robot.data.joint_pos) - task.default_joint_pos
    velocity = snapshot(env.robot.data.joint_vel)
    assert offset.min() == pytest.approx(-0.2, abs=2e-3) and offset.max() == pytest.approx(0.2, abs=2e-3)
    assert velocity.min() == pytest.approx(-0.1, abs=1e-3) and velocity.max() == pytest.approx(0.1, abs=1e-3)
    root = snapshot(env.physics.joint_q)[:, :7]
    root[:, :3] -= env.scene.env_origins.numpy()
    assert np.array_equal(root, np.tile(np.float32([0.0, 0.0, task.root_height, 0.0, 0.0, 0.0, 1.0]), (512, 1)))
    assert not env.physics.joint_qd.numpy()[:, :6].any()
    env.close()


@pytest.mark.parametrize("frontend", FRONTENDS)
@on_tasks
def test_the_success_rate_is_the_share_of_time_outs_among_whole_episodes(task, frontend):
    env = make(task, frontend=frontend, num_envs=4, episode_length_s=3 / 60)
    zeros = torch.zeros(4, len(task.joints))
    env.reset()
    env.episode_length_buf = torch.tensor([0, 0, 2, 0])
    env.step(zeros)
    log = env.pop_episode_log()
    assert log["Episode_Termination/time_out"] == 1.0 and log["Metrics/episode_length"] == 1.0
    assert "Metrics/success_rate" not in log, "the only episode that ended was given its age"
    env.step(zeros)
    env.physics.joint_q.numpy()[3, 2] = 0.2
    env.step(zeros)
    assert env.pop_episode_log()["Metrics/success_rate"] == pytest.approx(2 / 3)
    env.close()
