"""Noise, modifiers, clip, scale, delay and history of observations."""

from __future__ import annotations

import pytest
import torch
from support.cartpole_terms import make_cartpole, policy, ramp, run

from treadle.errors import ConfigError
from treadle.managers import (
    BiasModifierCfg,
    ClipModifierCfg,
    ConstantNoiseCfg,
    DigitalFilterCfg,
    GaussianNoiseCfg,
    IntegratorCfg,
    NoiseModelWithAdditiveBiasCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    ScaleModifierCfg,
    UniformNoiseCfg,
)

ENVS, STEPS = 5, 7


def expected_ramp(ages) -> torch.Tensor:
    """Return the ramp for the given ages, shape (len(ages), ENVS, 3)."""
    rows = torch.arange(ENVS)[None, :, None] * 100.0
    columns = torch.arange(3)[None, None, :] * 10.0
    return rows + columns + torch.as_tensor(ages, dtype=torch.float32)[:, None, None]


def observe(frontend: str = "warp", mode: str = "graph", steps: int = STEPS, **options) -> torch.Tensor:
    env = make_cartpole(
        frontend=frontend,
        mode=mode,
        num_envs=ENVS,
        observations=policy(ramp=ObservationTermCfg(func=ramp, **options)),
    )
    result = run(env, steps)["observation"]
    env.close()
    return result


@pytest.mark.parametrize("frontend", ["warp", "torch"])
def test_order_of_operations(frontend):
    values = observe(
        frontend,
        modifiers=(
            ScaleModifierCfg(multiplier=2.0),
            BiasModifierCfg(value=-3.0),
            ClipModifierCfg(bounds=(-1.0, 500.0)),
        ),
        noise=ConstantNoiseCfg(bias=0.5),
        clip=(10.0, 400.0),
        scale=(1.0, 0.5, 0.25),
    )
    raw = (expected_ramp(range(STEPS + 1)) * 2.0 - 3.0).clamp(-1.0, 500.0) + 0.5
    torch.testing.assert_close(values, raw.clamp(10.0, 400.0) * torch.tensor([1.0, 0.5, 0.25]), rtol=0, atol=0)


@pytest.mark.parametrize(
    "noise",
    [UniformNoiseCfg(n_min=-2.0, n_max=1.0), GaussianNoiseCfg(mean=-0.5, std=2.0), UniformNoiseCfg(operation="scale")],
    ids=lambda noise: f"{type(noise).__name__}-{noise.operation}",
)
def test_noise_has_its_distribution_and_is_the_same_in_both_frontends_and_all_modes(noise):
    runs = [observe("warp", mode, 40, noise=noise) for mode in ("eager", "replay", "graph")]
    runs.append(observe("torch", "graph", 40, noise=noise))
    for other in runs[1:]:
        assert torch.equal(runs[0], other)
    clean = expected_ramp(range(41))
    draws = (runs[0] / clean)[clean > 0] if noise.operation == "scale" else (runs[0] - clean).flatten()
    assert draws.unique().numel() > 0.9 * draws.numel()
    if isinstance(noise, UniformNoiseCfg):
        assert draws.min() >= noise.n_min - 1e-4 and draws.max() <= noise.n_max + 1e-4
        assert abs(draws.mean() - (noise.n_min + noise.n_max) / 2.0) < 0.15
    else:
        assert abs(draws.mean() - noise.mean) < 0.3 and abs(draws.std() - noise.std) < 0.3


def test_bias_is_drawn_at_a_reset_and_kept():
    noise = NoiseModelWithAdditiveBiasCfg(
        noise_cfg=ConstantNoiseCfg(bias=0.0), bias_noise_cfg=UniformNoiseCfg(n_min=5.0, n_max=6.0)
    )
    bias = observe(noise=noise) - expected_ramp(range(STEPS + 1))
    assert (bias >= 5.0).all() and (bias <= 6.0).all()
    torch.testing.assert_close(bias, bias[:1].expand_as(bias), rtol=0, atol=1e-4)
    assert bias[0].unique().numel() == bias[0].numel()


def test_integrator_and_filter():
    integrated = observe(modifiers=(IntegratorCfg(dt=0.5),))
    x = expected_ramp(range(STEPS + 1))
    before = torch.cat((torch.zeros_like(x[:1]), x[:-1]))
    torch.testing.assert_close(integrated, (0.5 * (x + before) * 0.5).cumsum(0))
    filtered = observe(modifiers=(DigitalFilterCfg(A=(-0.5,), B=(0.25, 0.75)),))
    y, last = [], torch.zeros_like(x[0])
    for now, past in zip(x, before, strict=True):
        last = 0.25 * now + 0.75 * past + 0.5 * last
        y.append(last)
    torch.testing.assert_close(filtered, torch.stack(y))


@pytest.mark.parametrize("frontend", ["warp", "torch"])
def test_history_holds_the_newest_last_and_starts_filled(frontend):
    values = observe(frontend, history_length=3).reshape(STEPS + 1, ENVS, 3, 3)
    for step in range(STEPS + 1):
        ages = [max(step - 2, 0), max(step - 1, 0), step]
        torch.testing.assert_close(values[step], expected_ramp(ages).transpose(0, 1), rtol=0, atol=0)


def test_history_in_a_dimension_of_its_own():
    terms = {"a": ObservationTermCfg(func=ramp), "b": ObservationTermCfg(func=ramp, scale=-1.0)}
    groups = {"policy": ObservationGroupCfg(terms=terms, history_length=2, flatten_history_dim=False)}
    env = make_cartpole(num_envs=ENVS, observations=groups)
    values = run(env, 4)["observation"]
    assert values.shape == (5, ENVS, 2, 6)
    torch.testing.assert_close(values[4, :, :, :3], expected_ramp([3, 4]).transpose(0, 1), rtol=0, atol=0)
    torch.testing.assert_close(values[4, :, :, 3:], -expected_ramp([3, 4]).transpose(0, 1), rtol=0, atol=0)


def test_the_terms_flags_count_where_the_group_sets_no_history():
    unflat = {"history_length": 2, "flatten_history_dim": False}
    terms = {
        "a": ObservationTermCfg(func=ramp, **unflat),
        "b": ObservationTermCfg(func=ramp, scale=-1.0, **unflat),
    }
    env = make_cartpole(num_envs=ENVS, observations={"policy": ObservationGroupCfg(terms=terms)})
    values = run(env, 4)["observation"]
    assert values.shape == (5, ENVS, 2, 6)
    torch.testing.assert_close(values[4, :, :, 3:], -expected_ramp([3, 4]).transpose(0, 1), rtol=0, atol=0)
    terms["b"].flatten_history_dim = True
    with pytest.raises(ConfigError, match=r"observations\.policy: .*is False and True; allowed: one"):
        make_cartpole(observations={"policy": ObservationGroupCfg(terms=terms)})
    with pytest.raises(ConfigError, match=r"observations\.policy\.flatten_history_dim is False; allowed: with"):
        make_cartpole(observations={"policy": ObservationGroupCfg(terms=terms, flatten_history_dim=False)})


def test_terms_apart():
    terms = {"a": ObservationTermCfg(func=ramp, history_length=2), "b": ObservationTermCfg(func=ramp)}
    env = make_cartpole(
        num_envs=ENVS, observations={"policy": ObservationGroupCfg(terms=terms, concatenate_terms=False)}
    )
    env.reset()
    obs = env.step(torch.zeros(ENVS, 1))[0]["policy"]
    assert {name: tuple(value.shape) for name, value in obs.items()} == {"a": (ENVS, 6), "b": (ENVS, 3)}
    torch.testing.assert_close(obs["b"], expected_ramp([1])[0], rtol=0, atol=0)


def test_delay_is_within_its_range_and_never_reaches_over_a_reset():
    env = make_cartpole(
        num_envs=ENVS,
        episode_length_s=0.1,
        observations=policy(ramp=ObservationTermCfg(func=ramp, delay_min_lag=1, delay_max_lag=3)),
    )
    values = run(env, 40)["observation"]
    ages = values[:, :, 0] - torch.arange(ENVS) * 100.0
    now = torch.tensor([step % 6 for step in range(41)], dtype=torch.float32)[:, None]
    lags = now - ages
    assert (lags >= now.clamp(max=1.0)).all() and (lags <= now.clamp(max=3.0)).all()
    assert set(lags[now[:, 0] > 3].flatten().tolist()) == {1.0, 2.0, 3.0}


def test_a_partial_reset_leaves_the_others_alone():
    options = dict(
        noise=NoiseModelWithAdditiveBiasCfg(noise_cfg=UniformNoiseCfg()),
        history_length=3,
        delay_max_lag=2,
        modifiers=(IntegratorCfg(dt=1.0),),
    )
    runs = []
    for resets in ([], [3]):
        env = make_cartpole(num_envs=ENVS, observations=policy(ramp=ObservationTermCfg(func=ramp, **options)))
        env.reset(seed=1)
        actions = torch.zeros(ENVS, 1)
        for _ in range(5):
            env.step(actions)
        if resets:
            env.reset(env_ids=resets)
        runs.append(torch.stack([env.step(actions)[0]["policy"].clone() for _ in range(5)]))
        env.close()
    others = [0, 1, 2, 4]
    assert torch.equal(runs[0][:, others], runs[1][:, others])
    assert not torch.equal(runs[0][:, 3], runs[1][:, 3])


def test_errors_name_the_term():
    with pytest.raises(ConfigError, match=r"observations.policy.terms.ramp.scale has 2 numbers; allowed: 1 or 3"):
        observe(scale=(1.0, 2.0))
    with pytest.raises(ConfigError, match=r"delay_min_lag and delay_max_lag are \(3, 1\)"):
        observe(delay_min_lag=3, delay_max_lag=1)
