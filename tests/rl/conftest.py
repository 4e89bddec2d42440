"""Fixtures of the learner's tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))

import point_mass


@pytest.fixture(autouse=True)
def _one_torch_thread():
    """Tiny networks are slower on many threads, and results do not depend on the machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def env() -> point_mass.PointMassEnv:
    return point_mass.PointMassEnv(point_mass.PointMassEnvCfg())


@pytest.fixture
def make_runner(tmp_path):
    """Return a function that makes a runner over a fresh environment."""
    from treadle.rl import RslRlVecEnvWrapper, TreadleRunner

    def make(cfg=None, env_cfg=None, run_dir=tmp_path, task=point_mass.TASK):
        torch.manual_seed(0)
        wrapper = RslRlVecEnvWrapper(point_mass.PointMassEnv(env_cfg or point_mass.PointMassEnvCfg()))
        return TreadleRunner(wrapper, cfg or point_mass.PointMassRunnerCfg(), task=task, run_dir=run_dir)

    return make
