"""What changes at run time, and what that costs."""

from __future__ import annotations

import pytest
import torch
from support.cartpole_terms import cart, counter, make_cartpole, ramp, run, without_twin

from treadle.errors import ConfigError
from treadle.managers import ObservationTermCfg, RewardTermCfg, UniformNoiseCfg
from treadle.managers.frontend import MissingTwinsError

ZERO = torch.zeros(5, 1)


def rewards(**terms):
    return {name: term for name, term in terms.items()}


def captures(env) -> int:
    return env.scope.stats.graph_total("captures")


def stepped(env, steps: int = 4):
    env.reset()
    for _ in range(steps):
        env.step(ZERO)
    return env


@pytest.mark.parametrize("frontend", ["warp", "torch"])
def test_weights_and_parameters_act_without_a_capture(frontend):
    env = stepped(
        make_cartpole(frontend=frontend, rewards=rewards(cart=RewardTermCfg(func=cart, params={"gain": 2.0})))
    )
    before = captures(env)
    for weight, gain in ((3.0, 2.0), (3.0, -1.0), (0.0, 1.0)):
        cfg = env.reward_manager.get_term_cfg("cart")
        cfg.weight, cfg.params["gain"] = weight, gain
        env.reward_manager.set_term_cfg("cart", cfg)
        reward = env.step(ZERO)[1]
        position = env.robot.data.torch.joint_pos[:, 0]
        torch.testing.assert_close(reward, weight * gain * position * env.step_dt)
    assert captures(env) == before
    assert list(env.reward_manager.scope.invalidations) == []


def test_equal_values_change_nothing():
    env = stepped(make_cartpole())
    before = captures(env)
    for name in env.reward_manager.active_terms:
        env.reward_manager.set_term_cfg(name, env.reward_manager.get_term_cfg(name))
    env.step(ZERO)
    assert captures(env) == before
    assert not list(env.reward_manager.scope.invalidations)


def test_another_function_invalidates_its_owner_once():
    other = RewardTermCfg(func=counter, weight=0.0)
    env = stepped(make_cartpole(rewards=rewards(cart=RewardTermCfg(func=cart), other=other)))
    before = captures(env)
    env.reward_manager.set_term_cfg("cart", RewardTermCfg(func=counter, params={"size": 2.0}))
    assert list(env.reward_manager.scope.invalidations) == ["rewards.cart changed"]
    for manager in (env.termination_manager, env.event_manager, env.action_manager):
        assert not list(manager.scope.invalidations)
    first = env.step(ZERO)[1].clone()
    for _ in range(4):
        last = env.step(ZERO)[1]
    torch.testing.assert_close(first, torch.full((5,), 2.0 * env.step_dt))
    torch.testing.assert_close(last, torch.full((5,), 10.0 * env.step_dt))
    assert captures(env) == before + 1


def test_noise_range_and_scale_of_an_observation():
    terms = {"ramp": ObservationTermCfg(func=ramp, noise=UniformNoiseCfg(n_min=0.0, n_max=0.0), scale=1.0)}
    from support.cartpole_terms import policy

    env = stepped(make_cartpole(observations=policy(**terms)))
    before, group = captures(env), env.observation_manager.groups["policy"]
    cfg = group.get_term_cfg("ramp")
    cfg.noise, cfg.scale = UniformNoiseCfg(n_min=7.0, n_max=7.0), 2.0
    group.set_term_cfg("ramp", cfg)
    obs = env.step(ZERO)[0]["policy"]
    age = env.episode_length_buf[0].item()
    assert obs[0].tolist() == [2.0 * (age + 7.0), 2.0 * (10.0 + age + 7.0), 2.0 * (20.0 + age + 7.0)]
    assert captures(env) == before


def test_a_refused_change_leaves_the_term_as_it_was():
    env = stepped(make_cartpole(rewards=rewards(cart=RewardTermCfg(func=cart))))
    with pytest.raises(MissingTwinsError, match=r"rewards\.cart: .*without_twin has no Warp form"):
        env.reward_manager.set_term_cfg("cart", RewardTermCfg(func=without_twin))
    with pytest.raises(ConfigError, match="weight is nan"):
        env.reward_manager.set_term_cfg("cart", RewardTermCfg(func=cart, weight=float("nan")))
    reward = env.step(ZERO)[1]
    torch.testing.assert_close(reward, env.robot.data.torch.joint_pos[:, 0] * env.step_dt)


def test_two_terms_that_share_a_function_share_nothing():
    terms = {
        "ones": RewardTermCfg(func=counter, params={"size": 1.0}),
        "tens": RewardTermCfg(func=counter, params={"size": 10.0}, weight=2.0),
        "hundreds": RewardTermCfg(func=counter, params={"size": 100.0}),
    }
    for frontend in ("warp", "torch"):
        env = stepped(make_cartpole(frontend=frontend, rewards=terms), 3)
        values = env.buffers.torch.reward_terms / env.step_dt
        torch.testing.assert_close(values, torch.tensor([3.0, 60.0, 300.0]).expand(5, 3))
        env.reset(env_ids=[2])
        env.step(ZERO)
        values = env.buffers.torch.reward_terms[:, 0] / env.step_dt
        torch.testing.assert_close(values, torch.tensor([4.0, 4.0, 1.0, 4.0, 4.0]))
        env.close()


def test_both_frontends_run_alike():
    runs = [run(make_cartpole(frontend=frontend), 40) for frontend in ("warp", "torch")]
    for name in ("observation", "reward"):
        torch.testing.assert_close(runs[0][name], runs[1][name], rtol=1e-5, atol=1e-6)


def test_a_reward_that_is_not_finite_is_named_once(caplog):
    def bad(env):
        return torch.full((env.num_envs,), float("nan"))

    terms = {"good": RewardTermCfg(func=cart), "bad": RewardTermCfg(func=bad)}
    env = make_cartpole(frontend="torch", rewards=terms)
    env.reset()
    reward, terminated = env.step(ZERO)[1:3]
    assert (reward == 0.0).all() and terminated.all()
    for _ in range(2):
        log = env.pop_episode_log()
        env.step(ZERO)
    assert log["Episode_Termination/non_finite"] == 1.0
    [message] = [record.getMessage() for record in caplog.records if "finite" in record.getMessage()]
    assert "reward term 'bad' was not finite in 5 environment steps; allowed: finite numbers" in message
