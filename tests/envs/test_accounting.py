"""Episode lengths, flags, logs, and who owns the buffers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import warp as wp
from support.ant import make_ant, random_actions

FRONTENDS = ["warp", "torch"]
TERMS = ("progress", "alive", "upright", "move_to_target", "action_l2", "energy", "joint_pos_limits", "terminating")


@pytest.fixture(scope="module", params=FRONTENDS)
def env(request):
    """An environment whose episodes end in both ways; it may be left in any state."""
    env = make_ant(frontend=request.param, num_envs=12, termination_height=0.42)
    yield env
    env.close()


def test_assigning_episode_lengths_copies_in_place(env):
    env.reset()
    pointer, view = env.buffers.episode_length.ptr, env.episode_length_buf
    for _ in range(4):
        env.step(torch.zeros(12, 8))
    ages = torch.arange(12) * 80 + 76
    env.episode_length_buf = ages
    assert env.buffers.episode_length.ptr == pointer == view.data_ptr() == env.episode_length_buf.data_ptr()
    ages.zero_()
    assert env.buffers.episode_length.numpy().tolist() == [80 * i + 76 for i in range(12)]
    assert env.episode_length_buf.dtype == torch.int32


def test_random_ages_shift_time_outs():
    env = make_ant(num_envs=4)
    env.reset()
    env.episode_length_buf = torch.tensor([959, 957, 958, 0])
    ended = [env.step(torch.zeros(4, 8))[3].tolist() for _ in range(4)]
    assert ended == [[True, False, False, False], [False, False, True, False], [False, True, False, False], [False] * 4]
    assert env.episode_length_buf.tolist() == [3, 1, 2, 4]
    env.close()


def test_ages_that_are_given_before_the_first_reset_stay():
    env = make_ant(num_envs=2)
    env.episode_length_buf = torch.tensor([959, 5])
    assert env.step(torch.zeros(2, 8))[3].tolist() == [True, False]
    assert env.episode_length_buf.tolist() == [0, 6]
    env.close()


def test_an_environment_that_fails_at_its_time_limit_is_terminated_only():
    env = make_ant(num_envs=2, termination_height=0.9)
    env.reset()
    env.episode_length_buf = torch.tensor([959, 3])
    _, _, terminated, truncated, _ = env.step(torch.zeros(2, 8))
    assert terminated.tolist() == [True, True] and truncated.tolist() == [False, False]
    env.close()


def test_the_log_equals_a_hand_count(env):
    env.reset(seed=1)
    env.pop_episode_log()
    assert env.pop_episode_log() == {}
    generator = torch.Generator().manual_seed(2)
    env.episode_length_buf = torch.randint(860, 960, (12,), generator=generator)
    sums, ages = np.zeros((12, len(TERMS))), env.episode_length_buf.numpy().copy()
    returns, ended_returns = np.zeros(12), []
    ended_sums, lengths, flags, whole = [], [], [], []
    born = -ages
    for action in random_actions(env, 100):
        _, reward, terminated, truncated, _ = env.step(action)
        terms = env.buffers.reward_terms.numpy()
        assert terms.sum(axis=1) == pytest.approx(reward.numpy(), abs=1e-6)
        assert not (terminated & truncated).any()
        sums, ages, returns = sums + terms, ages + 1, returns + reward.numpy()
        for row in np.flatnonzero((terminated | truncated).numpy()):
            ended_sums.append(sums[row].copy())
            ended_returns.append(returns[row])
            lengths.append(ages[row] + born[row])
            flags.append(bool(truncated[row]))
            whole += [bool(truncated[row])] if born[row] == 0 else []
            sums[row], ages[row], returns[row], born[row] = 0.0, 0, 0.0, 0
        assert env.episode_length_buf.tolist() == ages.tolist()
    assert 2 <= sum(flags) <= len(flags) - 2, "both kinds of ends"
    log = env.pop_episode_log()
    expected = dict(zip((f"Episode_Reward/{term}" for term in TERMS), np.mean(ended_sums, axis=0) / 16.0, strict=True))
    expected |= {
        "Episode_Termination/time_out": np.mean(flags),
        "Episode_Termination/terminated": 1.0 - np.mean(flags),
        "Episode_Termination/non_finite": 0.0,
        **({"Metrics/success_rate": np.mean(whole)} if whole else {}),
        "Metrics/episode_length": np.mean(lengths),
        "Physics/overflow_steps": 0.0,
    }
    assert log == pytest.approx(expected, rel=1e-4, abs=1e-7)
    assert env.pop_episode_log() == {}


@pytest.mark.parametrize("mode", ["eager", "graph"])
@pytest.mark.parametrize("frontend", FRONTENDS)
def test_what_a_step_returns_survives_the_next_ones(frontend, mode):
    env = make_ant(frontend=frontend, mode=mode, num_envs=3)
    kept, first = [], env.reset()[0]
    kept.append(((first["policy"],), (first["policy"].clone(),)))
    actions = random_actions(env, 7)
    given = actions.clone()
    for action in actions:
        observations, *rest, _ = env.step(action)
        tensors = (observations["policy"], *rest)
        kept.append((tensors, tuple(tensor.clone() for tensor in tensors)))
        for tensors, copies in kept[:1] + kept[-3:]:
            assert all(torch.equal(tensor, copy) for tensor, copy in zip(tensors, copies, strict=True))
    env.reset()
    for tensors, copies in kept[:1] + kept[-3:]:
        assert all(torch.equal(tensor, copy) for tensor, copy in zip(tensors, copies, strict=True))
    assert torch.equal(actions, given), "actions belong to the caller"
    storages = {tensor.data_ptr() for tensors, _ in kept for tensor in tensors}
    assert not storages & set(_pointers(env).values())
    env.close()


def _pointers(env) -> dict[str, int]:
    owners = {
        "physics": env.physics,
        "buffers": env.buffers,
        "data": env.robot.data,
        "parts": env.parts,
        "feet": env.parts.feet,
        "log": env.episode_log,
        "state": env.physics._state,
        "control": env.physics._control,
        "scene": env.scene,
        "mjw_data": env.physics.solver.mjw_data,
    }
    found = {}
    for owner, value in owners.items():
        for name, array in vars(value).items():
            if isinstance(array, wp.array) and array.ptr:
                found[f"{owner}.{name}"] = array.ptr
    found |= {f"observations.{group}": array.ptr for group, array in env.buffers.observations.items()}
    return found


def test_no_buffer_moves(env):
    env.reset()
    before = _pointers(env)
    assert len(before) > 60
    env.episode_length_buf = torch.arange(12) + 930
    for step, action in enumerate(random_actions(env, 50)):
        env.step(action)
        if step == 25:
            env.reset(seed=3)
    assert _pointers(env) == before
    for owner in (env.buffers, env.robot.data):
        for name, view in vars(owner.torch).items():
            if isinstance(view, torch.Tensor):
                assert view.data_ptr() == getattr(owner, name).ptr, name
