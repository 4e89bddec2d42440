"""A resumed run goes on with random numbers that were not drawn before."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import warp as wp
from point_mass import TASK, PointMassEnv, PointMassEnvCfg, PointMassRunnerCfg

from treadle.rl import RslRlVecEnvWrapper, TreadleRunner
from treadle.rl import checkpoint as ckpt


class DrawingEnv(PointMassEnv):
    """Draws from a state per environment, as Treadle's own environments do."""

    def __init__(self, cfg):
        self.buffers = SimpleNamespace(random_state=wp.zeros(cfg.scene.num_envs, dtype=wp.uint32, device="cpu"))
        self.starts = []
        self._seed(cfg.seed)
        super().__init__(cfg)

    def reset(self, seed=None):
        if seed is not None:
            self._seed(seed)
        return super().reset()

    def _seed(self, seed):
        self.buffers.random_state.numpy()[:] = np.arange(self.buffers.random_state.size) * 7919 + seed + 2**31

    def _reset(self, mask):
        super()._reset(mask)
        state = self.buffers.random_state.numpy()
        for column in range(2):
            state[mask.numpy()] = state[mask.numpy()] * np.uint32(1664525) + np.uint32(1013904223)
            self._pos[mask, column] = torch.from_numpy(state.astype(np.float64) / 2**31 - 1.0).float()[mask]
        self.starts.append(self._pos.clone())


def make_runner(run_dir, num_envs=16):
    cfg = PointMassEnvCfg()
    cfg.scene.num_envs = num_envs
    return TreadleRunner(RslRlVecEnvWrapper(DrawingEnv(cfg)), PointMassRunnerCfg(), task=TASK, run_dir=run_dir)


def state(runner):
    return runner.env.unwrapped.buffers.random_state.numpy().copy()


def test_a_resumed_run_goes_on_with_the_draws_of_the_checkpoint(tmp_path, caplog):
    first = make_runner(tmp_path)
    first.learn(2)
    stored = ckpt.load(tmp_path).rng["env"]
    assert (stored.dtype, stored.shape) == (torch.int32, (16,))
    np.testing.assert_array_equal(stored.numpy().view(np.uint32), state(first))
    second = make_runner(None)
    first.env.unwrapped.reset()
    with caplog.at_level(logging.WARNING):
        second.load(str(tmp_path))
    assert caplog.messages == []
    np.testing.assert_array_equal(state(second), state(first))
    begun = second.env.unwrapped.starts[-1]
    assert torch.equal(begun, first.env.unwrapped.starts[-1])
    assert not any(torch.equal(begun, start) for start in first.env.unwrapped.starts[:-1])
    second.learn(1)


@pytest.mark.parametrize(("num_envs", "old"), [(8, False), (16, True)])
def test_a_state_that_does_not_fit_is_replaced_by_fresh_draws_with_a_warning(tmp_path, caplog, num_envs, old):
    first = make_runner(tmp_path)
    first.learn(2)
    if old:
        loaded = ckpt.load(tmp_path)
        del loaded.rng["env"]
        ckpt.save(tmp_path / "model_1.pt", loaded)
    second = make_runner(None, num_envs)
    initial = second.env.unwrapped.starts[0]
    with caplog.at_level(logging.WARNING):
        second.load(str(tmp_path))
    reason = "holds no random state of the env" if old else "random states of 16 environments, and this run has 8"
    (message,) = caplog.messages
    assert reason in message
    assert message.endswith("the environments are seeded with 44")
    assert not torch.equal(second.env.unwrapped.starts[-1], initial)
