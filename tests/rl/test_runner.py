"""Training runs."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
import torch
from point_mass import TASK, WIDE_TASK, PointMassEnvCfg, PointMassRunnerCfg, WidePointMassEnvCfg
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from treadle.errors import ConfigError
from treadle.rl import ActorModelCfg, CheckpointError
from treadle.rl import checkpoint as ckpt


def files(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.glob("model_*"))


def iterations(directory: Path, tag: str = "Loss/value") -> list[int]:
    events = EventAccumulator(str(directory))
    events.Reload()
    # Files that two runs of one process start within a second are read in any order.
    return sorted(event.step for event in events.Scalars(tag))


def test_checkpoints_carry_rsl_rls_names_and_everything_to_go_on(make_runner, tmp_path):
    runner = make_runner()
    runner.learn(4)
    assert files(tmp_path) == ["model_0.pt", "model_2.pt", "model_3.pt"]
    loaded = ckpt.load(tmp_path, task=TASK)
    assert (loaded.iteration, loaded.total_timesteps, loaded.seed, loaded.frontend) == (3, 4 * 16 * 10, 42, "torch")
    assert loaded.num_observations == {"policy": 4}
    assert set(loaded.algorithm) == {"actor_state_dict", "critic_state_dict", "optimizer_state_dict"}


def test_the_learner_prints_nothing_itself(make_runner, capsys):
    runner = make_runner()
    lines = []
    runner.on_progress = lines.append
    runner.learn(2)
    assert capsys.readouterr().out == ""
    assert [line.iteration for line in lines] == [1, 2]
    assert "iteration 2/2" in str(lines[1])
    assert "\n" not in str(lines[1])


def test_tensorboard_gets_the_learners_and_the_environments_scalars(make_runner, tmp_path):
    make_runner().learn(3)
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    tags = set(events.Tags()["scalars"])
    assert {"Train/mean_reward", "Train/mean_episode_length", "Perf/total_fps", "Loss/learning_rate"} <= tags
    assert {"Episode_Reward/total", "Episode_Termination/time_out"} <= tags


def test_a_resumed_run_goes_on_with_the_next_number_and_the_same_state(make_runner, tmp_path):
    first = make_runner(run_dir=tmp_path / "a")
    first.learn(3)
    second = make_runner(run_dir=tmp_path / "b")
    second.load(str(tmp_path / "a"))
    assert second.alg.learning_rate == first.alg.learning_rate != PointMassRunnerCfg().algorithm.learning_rate
    assert second.logger.tot_timesteps == first.logger.tot_timesteps
    for ours, theirs in zip(second.alg.optimizer.param_groups, first.alg.optimizer.param_groups, strict=True):
        assert ours["lr"] == theirs["lr"]
    for ours, theirs in zip(second.alg.optimizer.state.values(), first.alg.optimizer.state.values(), strict=True):
        assert torch.equal(ours["exp_avg"], theirs["exp_avg"])
        assert ours["step"] == theirs["step"]
    lines = []
    second.on_progress = lines.append
    second.learn(2)
    assert iterations(tmp_path / "a") == [0, 1, 2]
    assert iterations(tmp_path / "b") == [3, 4]
    assert [(line.iteration, line.total_iterations) for line in lines] == [(4, 5), (5, 5)]
    assert ckpt.load(tmp_path / "b").iteration == 4


def test_learning_twice_repeats_no_iteration(make_runner, tmp_path):
    runner = make_runner()
    runner.learn(2)
    runner.learn(2)
    assert iterations(tmp_path) == [0, 1, 2, 3]


def test_a_new_learning_rate_wins_over_the_one_that_the_schedule_had_reached(make_runner, tmp_path):
    make_runner().learn(2)
    cfg = PointMassRunnerCfg()
    cfg.algorithm.learning_rate = 1.25e-4
    runner = make_runner(cfg, run_dir=None)
    runner.load(str(tmp_path))
    assert runner.alg.learning_rate == 1.25e-4
    assert {group["lr"] for group in runner.alg.optimizer.param_groups} == {1.25e-4}


def test_other_networks_dimensions_or_tasks_are_refused(make_runner, tmp_path):
    make_runner().learn(1)
    other = PointMassRunnerCfg(actor=ActorModelCfg(hidden_dims=(8,)))
    with pytest.raises(CheckpointError, match="differ from the configured ones"):
        make_runner(other, run_dir=None).load(str(tmp_path))
    with pytest.raises(CheckpointError, match=r"policy: 4\).*the environment has .*policy: 7\)"):
        make_runner(env_cfg=WidePointMassEnvCfg(), run_dir=None).load(str(tmp_path))
    with pytest.raises(CheckpointError, match=f"belongs to task '{TASK}', not to '{WIDE_TASK}'"):
        make_runner(task=WIDE_TASK, run_dir=None).load(str(tmp_path))


def test_a_configuration_that_does_not_fit_the_environment_is_refused(make_runner):
    cfg = PointMassRunnerCfg(num_steps_per_env=1, actor=ActorModelCfg(obs_groups=("polcy",)))
    env_cfg = PointMassEnvCfg()
    env_cfg.scene.num_envs = 3
    with pytest.raises(
        ConfigError, match=r"obs_groups has 'polcy'; allowed: policy.*3 environments x 1 steps = 3 samples"
    ):
        make_runner(cfg, env_cfg)


def interrupt_after(runner, num_steps: int, number: signal.Signals, count: int = 1) -> None:
    """Send this process a signal in the middle of a rollout."""
    env = runner.env.unwrapped
    step = env.step

    def step_and_interrupt(actions):
        result = step(actions)
        if env.num_steps == num_steps:
            for _ in range(count):
                os.kill(os.getpid(), number)
        return result

    env.step = step_and_interrupt


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_saves_the_last_complete_iteration(make_runner, tmp_path, number):
    handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    runner = make_runner()
    after = {}
    runner.on_progress = lambda line: after.update(
        {line.iteration: runner.alg.save()["actor_state_dict"]["mlp.0.weight"].clone()}
    )
    interrupt_after(runner, 25, number)  # in the third rollout of ten steps
    runner.learn(10)
    assert runner.interrupted
    assert runner.num_completed == 2
    loaded = ckpt.load(tmp_path)
    assert (loaded.iteration, runner.last_checkpoint) == (1, tmp_path / "model_1.pt")
    assert torch.equal(loaded.algorithm["actor_state_dict"]["mlp.0.weight"], after[2])
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == handlers
    assert iterations(tmp_path) == [0, 1]
    runner.learn(1)
    assert iterations(tmp_path) == [0, 1, 2]


def test_an_interruption_in_the_first_iteration_writes_nothing(make_runner, tmp_path):
    runner = make_runner()
    interrupt_after(runner, 5, signal.SIGINT)
    runner.learn(10)
    assert runner.interrupted
    assert runner.last_checkpoint is None
    assert files(tmp_path) == []


def test_a_second_signal_stops_at_once_and_loses_nothing(make_runner, tmp_path):
    runner = make_runner()
    interrupt_after(runner, 25, signal.SIGINT, count=2)
    with pytest.raises(KeyboardInterrupt):
        runner.learn(10)
    assert files(tmp_path) == ["model_0.pt"]
    assert ckpt.load(tmp_path).iteration == 0


def test_a_second_signal_during_the_save_loses_nothing(make_runner, tmp_path, monkeypatch):
    runner = make_runner()
    interrupt_after(runner, 25, signal.SIGINT)
    save, fsync = runner.save, os.fsync

    def save_interrupted(path):
        monkeypatch.setattr(os, "fsync", lambda descriptor: os.kill(os.getpid(), signal.SIGINT))
        save(path)

    runner.on_progress = lambda line: setattr(runner, "save", save_interrupted if line.iteration == 2 else save)
    with pytest.raises(KeyboardInterrupt):
        runner.learn(10)
    monkeypatch.setattr(os, "fsync", fsync)
    assert sorted(p.name for p in tmp_path.glob("*model_*")) == ["model_0.pt"]
    assert ckpt.load(tmp_path).iteration == 0


def test_episode_statistics_are_those_of_rsl_rls_own_logger(make_runner):
    """One read per rollout gives the same numbers in the same order as one per step."""
    from rsl_rl.utils.logger import Logger

    runner = make_runner()
    runner.learn(1)
    ours = runner.logger
    theirs = Logger(None, runner.cfg, None, 16, False, 1, 0, "cpu")
    theirs.writer = ours.writer
    for logger in (ours, theirs):
        logger.rewbuffer.clear()
        logger.lenbuffer.clear()
        logger.cur_reward_sum.zero_()
        logger.cur_episode_length.zero_()
    for _ in range(30):
        rewards, dones = torch.rand(16), (torch.rand(16) < 0.2).long()
        ours.process_env_step(rewards, dones, {})
        theirs.process_env_step(rewards, dones, {})
    ours._collect_episodes()
    assert list(ours.rewbuffer) == list(theirs.rewbuffer)
    assert list(ours.lenbuffer) == list(theirs.lenbuffer)
    assert len(theirs.rewbuffer) > 50


def test_training_improves_the_policy(make_runner):
    env_cfg = PointMassEnvCfg()
    env_cfg.scene.num_envs = 64
    runner = make_runner(PointMassRunnerCfg(save_interval=1000), env_cfg)
    lines = []
    runner.on_progress = lines.append
    runner.learn(40)
    returns = [line.mean_return for line in lines]
    assert returns[-1] > returns[2] + 5.0
    assert returns[-1] > 5.0


def test_a_signal_that_the_process_ignores_stays_ignored():
    from treadle.rl.interrupt import StopRequest

    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with StopRequest():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGINT, previous)
