"""Both forms of each observation, reward and termination term, on random states with random parameters.

All terms of a kind are in one kernel, which also tests that they do not get in each other's way.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.term_cases import OBSERVATIONS, REWARDS, TERMINATIONS, library
from support.terms import buffers_of, compute_torch, make_env, randomize, write

from treadle.assets.articulation_data import torch_view
from treadle.managers.twins import path_of

SEEDS = (0, 1, 2, 3)
CONSTANT = {"survival_success_rate", "terrain_out_of_bounds", "non_finite_state"}
"""Terms whose value is the same in all environments of a valid state."""
REFERENCE = {"torch": 1e-5, "angle": 1e-4}
"""Relative tolerances; angles near 0 and pi are badly conditioned in single precision."""


@pytest.fixture(scope="module")
def env():
    return make_env(OBSERVATIONS, REWARDS, TERMINATIONS)


def test_each_term_of_the_library_has_a_case():
    covered = {path_of(case.func) for case in (*OBSERVATIONS, *REWARDS, *TERMINATIONS)}
    missing = sorted(library() - covered)
    assert not missing, f"terms without a case in tests/support/term_cases.py: {', '.join(missing)}"


def vary(manager, rng: np.random.Generator) -> None:
    """Change the numbers that are parameters of the terms, by up to a fifth."""
    for name, term in manager.terms.items():
        cfg = manager.get_term_cfg(name)
        for key, value in term.params.items():
            if isinstance(value, float) or (isinstance(value, tuple) and key != "names"):
                numbers = np.multiply(value, rng.uniform(0.8, 1.2)).tolist()
                cfg.params[key] = tuple(numbers) if isinstance(value, tuple) else numbers
        manager.set_term_cfg(name, cfg)


def assert_alike(name: str, warp: torch.Tensor, expected: torch.Tensor) -> None:
    """Check that two forms agree to a few units in the last place of the largest value of each environment."""
    tolerance = REFERENCE["angle" if "orientation" in name else "torch"]
    rows = expected.reshape(len(expected), -1)
    scale = rows.abs().amax(dim=1, keepdim=True).clamp(min=1.0)
    difference = (warp.reshape(rows.shape) - rows).abs()
    wrong = ~(difference <= tolerance * (rows.abs() + 0.2 * scale))
    assert not wrong.any(), f"{name}: {warp.reshape(rows.shape)[wrong]} and {rows[wrong]} differ"


@pytest.mark.parametrize("seed", SEEDS)
def test_observations(env, seed):
    group = env.observation_manager.groups["policy"]
    kernels = dict(env.kernels.by_name)
    vary(group, np.random.default_rng(100 + seed))
    randomize(env, seed)
    columns = env.buffers.observation_views["policy"]
    columns.fill_(float("nan"))
    env.kernels.launch("observations policy")
    for name, term in group.terms.items():
        value, _ = compute_torch(term)
        value = value[:, None] if value.dim() == 1 else value
        pipeline = group.pipelines[name]
        assert value.shape[1] == pipeline.width > 0
        assert_alike(name, columns[:, pipeline.first : pipeline.first + pipeline.width], value)
        assert len(value.unique(dim=0)) > 1, f"{name} is the same in all environments"
    assert env.kernels.by_name == kernels, "numbers changed, and kernels were made anew"


@pytest.mark.parametrize("seed", SEEDS)
def test_rewards(env, seed):
    manager = env.reward_manager
    kernels = dict(env.kernels.by_name)
    vary(manager, np.random.default_rng(100 + seed))
    randomize(env, seed)
    expected = {name: compute_torch(term) for name, term in manager.terms.items()}
    columns = env.buffers.torch.reward_terms
    columns.fill_(float("nan"))
    env.kernels.launch("rewards")
    for index, (name, (value, buffers)) in enumerate(expected.items()):
        assert value.shape == (env.num_envs,) and value.dtype == torch.float32, name
        assert_alike(name, columns[:, index], value * env.step_dt)
        for key, array in buffers_of(manager.terms[name]).items():
            torch.testing.assert_close(torch_view(array), buffers[key], rtol=1e-12, atol=0.0)
    assert env.kernels.by_name == kernels, "numbers changed, and kernels were made anew"


@pytest.mark.parametrize("seed", SEEDS)
def test_terminations(env, seed):
    manager = env.termination_manager
    vary(manager, np.random.default_rng(100 + seed))
    randomize(env, seed)
    expected = {name: compute_torch(term)[0] for name, term in manager.terms.items()}
    torch_view(manager.values).fill_(True)
    env.kernels.launch("terminations")
    for name, value in expected.items():
        assert value.shape == (env.num_envs,) and value.dtype == torch.bool, name
        assert torch.equal(manager.get_term(name), value), name


def test_the_states_tell_terms_apart(env):
    """Over the seeds each reward differs between environments, and each termination happens and does not."""
    rewards: dict[str, list[torch.Tensor]] = {name: [] for name in env.reward_manager.terms}
    endings: dict[str, list[torch.Tensor]] = {name: [] for name in env.termination_manager.terms}
    for seed in SEEDS:
        randomize(env, seed)
        for found, manager in ((rewards, env.reward_manager), (endings, env.termination_manager)):
            for name, term in manager.terms.items():
                found[name].append(compute_torch(term)[0])
    for name, values in (rewards | endings).items():
        if name.removesuffix("_selected").removesuffix("_again") not in CONSTANT:
            assert len(torch.cat(values).unique()) > 1, f"{name} is always the same"


@pytest.mark.parametrize("where", ["joint_vel", "joint_pos", "root_pos_w", "root_quat_w", "root_ang_vel_w"])
def test_a_state_that_is_not_finite(env, where):
    randomize(env, 5)
    values = getattr(env.robot.data, where).numpy().copy()
    values[2, -1] = np.nan
    values[4, -1] = np.inf
    write(getattr(env.robot.data, where), values)
    expected = env.termination_manager.terms["non_finite_state"].torch()
    env.kernels.launch("terminations")
    assert expected.nonzero()[:, 0].tolist() == [2, 4]
    assert torch.equal(env.termination_manager.get_term("non_finite_state"), expected)


def test_progress_starts_anew_in_the_masked_environments_alone(env):
    terms = [term for name, term in env.reward_manager.terms.items() if name.startswith("progress_reward")]
    assert len(terms) == 2
    first, second = (torch_view(term.instance.distance) for term in terms)
    randomize(env, 6)
    before = first.clone(), second.clone()
    mask = torch.tensor([True, False, True, False, False, False, True])
    env.reset_mask.copy_(mask)
    for term in terms:
        term.instance.reset(mask)
    expected = first.clone(), second.clone()
    first.copy_(before[0]), second.copy_(before[1])
    env.kernels.launch("after reset")
    env.reset_mask.zero_()
    for now, then, wanted in zip((first, second), before, expected, strict=True):
        assert torch.equal(now[~mask], then[~mask])
        assert (now[mask] != then[mask]).all()
        torch.testing.assert_close(now, wanted, rtol=1e-12, atol=0.0)
    assert not torch.equal(first[mask], second[mask]), "two terms of a class have a target each"
