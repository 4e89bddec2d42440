"""The adapter between an environment and rsl_rl."""

from __future__ import annotations

import pytest
import torch

from treadle.rl import RslRlVecEnvWrapper


def test_observations_are_a_tensor_dict_over_environments(env):
    obs = RslRlVecEnvWrapper(env).get_observations()
    assert obs.batch_size == torch.Size([16])
    assert obs["policy"].shape == (16, 4)


def test_rebinding_the_episode_lengths_copies_in_place(env):
    wrapper = RslRlVecEnvWrapper(env)
    memory = env.episode_length_buf.data_ptr()
    new = torch.arange(16, dtype=torch.int32)
    wrapper.episode_length_buf = new
    assert env.episode_length_buf.data_ptr() == memory
    assert wrapper.episode_length_buf.tolist() == list(range(16))
    new.zero_()
    assert env.episode_length_buf.tolist() == list(range(16))


def test_returned_tensors_survive_later_steps(env):
    wrapper = RslRlVecEnvWrapper(env)
    first = wrapper.step(torch.ones(16, 2))
    kept = [first[0]["policy"], first[1], first[2], first[3]["time_outs"]]
    before = [tensor.clone() for tensor in kept]
    for _ in range(2):
        wrapper.step(-torch.ones(16, 2))
    assert all(torch.equal(tensor, copy) for tensor, copy in zip(kept, before, strict=True))


def test_dones_join_terminated_and_truncated_and_time_outs_are_the_latter(env):
    wrapper = RslRlVecEnvWrapper(env)
    seen_time_out = seen_failure = False
    for _ in range(25):
        # Half of the environments run out of the arena, the others stand still until their time is over.
        actions = torch.zeros(16, 2)
        actions[:8] = 1.0
        _, _, dones, extras = wrapper.step(actions)
        time_outs = extras["time_outs"]
        assert time_outs.dtype == torch.bool
        assert dones.dtype == torch.long
        assert not (time_outs & (dones == 0)).any()
        seen_time_out |= bool(time_outs[8:].any())
        seen_failure |= bool(((dones > 0) & ~time_outs)[:8].any())
    assert seen_time_out
    assert seen_failure


def test_the_log_comes_once_per_rollout_with_means_over_its_episodes(env):
    wrapper = RslRlVecEnvWrapper(env, num_steps_per_env=25)
    returns, totals = torch.zeros(16), []
    logs = []
    for _ in range(25):
        _, reward, dones, extras = wrapper.step(torch.full((16, 2), 0.2))
        returns += reward
        totals += returns[dones > 0].tolist()
        returns[dones > 0] = 0.0
        logs.append(extras.get("log"))
    assert all(log is None for log in logs[:-1])
    assert logs[-1]["Episode_Reward/total"] == pytest.approx(sum(totals) / len(totals), rel=1e-5)
    assert env.num_log_reads == 1


def test_a_rollout_without_ended_episodes_has_no_log(env):
    wrapper = RslRlVecEnvWrapper(env, num_steps_per_env=2)
    wrapper.step(torch.zeros(16, 2))
    assert "log" not in wrapper.step(torch.zeros(16, 2))[3]


def test_clip_actions_limits_what_the_environment_sees(env):
    seen = []
    step = env.step
    env.step = lambda actions: (seen.append(actions), step(actions))[1]
    RslRlVecEnvWrapper(env, clip_actions=0.5).step(torch.full((16, 2), -7.0))
    assert torch.equal(seen[0], torch.full((16, 2), -0.5))


def test_a_step_adds_no_reduction_of_its_own(env, monkeypatch):
    """Non-finite numbers show in the losses; looking for them at each step would cost kernels."""
    wrapper = RslRlVecEnvWrapper(env, num_steps_per_env=3)

    def refuse(*args):
        raise AssertionError("a reduction per step")

    monkeypatch.setattr(torch, "isfinite", refuse)
    for _ in range(3):
        wrapper.step(torch.zeros(16, 2))
