"""Generated kernels: how large they may be, and what they leave behind."""

from __future__ import annotations

import gc
import linecache

import pytest
import torch
import warp as wp
from support.cartpole_terms import make_cartpole

from treadle.errors import ConfigError
from treadle.launch import LaunchScope
from treadle.managers import RewardTermCfg, warp_twin
from treadle.managers.kernel_builder import KernelBuilder


@pytest.mark.parametrize("count", [560, 600])
def test_arguments_that_no_gpu_takes_are_refused(count):
    builder = KernelBuilder("wide", "Read many arrays.")
    for index in range(count):
        name = builder.argument("array", wp.zeros(1, dtype=float, device="cpu"))
        builder.line(f"{name}[env] = {index}.0")
    scope = LaunchScope("cpu", name="test")
    if count == 560:
        builder.build(scope, 1)
        return
    with pytest.raises(ConfigError, match=r"kernel wide has 600 arguments of \d+ B; allowed: 32764 B"):
        builder.build(scope, 1)


def steps_of(env, count: int) -> torch.Tensor:
    """A number that is compiled in."""
    return torch.full((env.num_envs,), float(count))


@warp_twin(steps_of)
def _(env: int, count: int) -> float:
    return float(count)


def test_kernels_that_are_replaced_leave_no_text_behind():
    env = make_cartpole(rewards={"a": RewardTermCfg(func=steps_of, params={"count": 0})})
    for count in (1, 2, 3):
        cfg = env.reward_manager.get_term_cfg("a")
        cfg.params["count"] = count
        env.reward_manager.set_term_cfg("a", cfg)
        env.step(torch.zeros(5, 1))
    gc.collect()
    held = env.kernels.by_name["rewards"].source.splitlines(keepends=True)
    texts = [lines for name, (_, _, lines, _) in linecache.cache.items() if name.startswith("<treadle kernel rewards ")]
    assert [lines for lines in texts if any("steps_of(" in line for line in lines)] == [held]
    env.close()
