"""What a program reads of an environment, of either kind."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import treadle


@pytest.fixture(scope="module", params=["Cartpole", "Cartpole-Direct"])
def env(request):
    env = treadle.make(request.param, num_envs=3, device="cpu", seed=1)
    yield env
    env.close()


def test_reward_terms_name_the_columns_of_their_buffer(env):
    env.step(torch.zeros(3, 1))
    metrics = ("success_rate",) if hasattr(env, "reward_manager") else ()
    assert env.reward_terms == ("alive", "terminating", "pole_pos", "cart_vel", "pole_vel", *metrics)
    assert env.buffers.torch.reward_terms.shape == (3, len(env.reward_terms))


def test_spaces_of_one_environment_and_of_all(env):
    (n,) = env.num_observations.values()
    assert env.single_observation_space["policy"].shape == (n,) and env.single_action_space.shape == (1,)
    assert env.observation_space["policy"].shape == (3, n) and env.action_space.shape == (3, 1)
    assert env.action_space.contains(np.zeros((3, 1), dtype=np.float32))
