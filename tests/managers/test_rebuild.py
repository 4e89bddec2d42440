"""What stays, what follows and what is put back when something compiled in changes at run time."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import warp as wp
from support.cartpole_terms import ROBOT, cart, counter, make_cartpole, policy, ramp, without_twin

from treadle.assets import ArticulationState
from treadle.errors import ConfigError
from treadle.managers import (
    EventTermCfg,
    IntegratorCfg,
    ManagerTermBase,
    NoiseModelWithAdditiveBiasCfg,
    ObservationTermCfg,
    RewardTermCfg,
    SceneEntityCfg,
    TerminationTermCfg,
    UniformNoiseCfg,
    warp_twin,
)

ZERO = torch.zeros(5, 1)
FRONTENDS = ("warp", "torch")


def step(env, times: int = 1):
    for _ in range(times):
        result = env.step(ZERO)
    return result


class push_by(ManagerTermBase):
    """Adds a number that it reads when it is made."""

    def __init__(self, cfg, env):
        super().__init__(cfg, env)
        self.amount = wp.full(env.num_envs, cfg.params["amount"], dtype=float, device=env.device)
        self._view = wp.to_torch(self.amount)

    def __call__(self, env, env_mask, amount: float):
        """Set the cart's position."""
        view = env.scene["robot"].data.torch.joint_pos[:, 0]
        view.copy_(torch.where(env_mask, self._view, view))


@warp_twin(push_by, consumes=("amount",), extra=lambda env, params: {"joint_pos": env.robot.data.joint_pos})
def _(env: int, amount: wp.array[float], joint_pos: wp.array2d[float]):
    joint_pos[env, 0] = amount[env]


def uncompilable(env, asset_cfg: SceneEntityCfg = ROBOT) -> torch.Tensor:
    """A term whose Warp form does not compile."""
    return torch.zeros(env.num_envs)


@warp_twin(uncompilable)
def _(env: int, asset: ArticulationState) -> float:
    return asset.nothing[env]


@pytest.mark.parametrize("mode", ["eager", "graph"])
@pytest.mark.parametrize("frontend", FRONTENDS)
def test_an_observation_of_another_size(frontend, mode):
    terms = {"ramp": ObservationTermCfg(func=ramp), "cart": ObservationTermCfg(func=cart)}
    env = make_cartpole(frontend=frontend, mode=mode, observations=policy(**terms))
    env.reset()
    step(env, 3)
    cfg = env.observation_manager.get_term_cfg("policy", "ramp")
    cfg.history_length = 3
    env.observation_manager.set_term_cfg("policy", "ramp", cfg)
    assert env.num_observations == {"policy": 10} and env.single_observation_space["policy"].shape == (10,)
    env.reset(seed=1)
    changed = [step(env)[0]["policy"].clone() for _ in range(4)]
    terms["ramp"].history_length = 3
    fresh_env = make_cartpole(frontend=frontend, mode=mode, observations=policy(**terms))
    fresh_env.reset(seed=1)
    for now in changed:
        torch.testing.assert_close(now, step(fresh_env)[0]["policy"], rtol=0, atol=1e-6)


@pytest.mark.parametrize("frontend", FRONTENDS)
def test_the_other_terms_keep_their_state(frontend):
    noise = NoiseModelWithAdditiveBiasCfg(
        noise_cfg=UniformNoiseCfg(n_min=0.0, n_max=0.0), bias_noise_cfg=UniformNoiseCfg(n_min=1.0, n_max=9.0)
    )
    observations = policy(
        biased=ObservationTermCfg(func=ramp, noise=noise),
        summed=ObservationTermCfg(func=cart, modifiers=(IntegratorCfg(dt=1.0),)),
        other=ObservationTermCfg(func=cart),
    )
    rewards = {"count": RewardTermCfg(func=counter), "cart": RewardTermCfg(func=cart)}
    runs = []
    for change in (False, True):
        env = make_cartpole(frontend=frontend, observations=observations, rewards=rewards)
        env.reset(seed=3)
        step(env, 4)
        if change:
            group = env.observation_manager.groups["policy"]
            cfg = group.get_term_cfg("other")
            cfg.clip = (-100.0, 100.0)
            group.set_term_cfg("other", cfg)
            cfg = env.reward_manager.get_term_cfg("cart")
            cfg.func, cfg.params = counter, {"size": 5.0}
            env.reward_manager.set_term_cfg("cart", cfg)
        results = [step(env) for _ in range(3)]
        counts = env.buffers.torch.reward_terms[:, 0].clone()
        runs.append((torch.stack([r[0]["policy"].clone() for r in results]), counts))
        env.close()
    assert torch.equal(runs[0][0], runs[1][0])
    assert torch.equal(runs[0][1], runs[1][1])


def test_event_timers_follow_their_configuration():
    def event(**fields):
        return EventTermCfg(func=push_by, params={"amount": 0.5}, **fields)

    dt = 1.0 / 60.0
    env = make_cartpole(events={"a": event(mode="reset")}, episode_length_s=100.0)
    env.reset()
    position = env.robot.data.torch.joint_pos[:, 0]
    assert (position == 0.5).all()
    env.event_manager.set_term_cfg("a", event(mode="reset", min_step_count_between_reset=5))
    position.fill_(0.1)
    env.reset()
    assert (position == 0.5).all()
    position.fill_(0.1)
    env.reset()
    assert (position == 0.1).all()
    env.event_manager.set_term_cfg("a", event(mode="interval", interval_range_s=(3.0 * dt, 3.0 * dt)))
    hits = []
    for _ in range(6):
        position.fill_(0.1)
        step(env)
        hits.append(bool((position > 0.4).all()))
    assert hits == [False, False, True, False, False, True]
    env.event_manager.set_term_cfg("a", event(mode="reset"))
    position.fill_(0.1)
    step(env, 4)
    assert (position.abs() < 0.4).all()


@pytest.mark.parametrize("frontend", FRONTENDS)
def test_a_parameter_that_a_class_reads_when_it_is_made(frontend):
    env = make_cartpole(frontend=frontend, events={"a": EventTermCfg(func=push_by, params={"amount": 0.5})})
    env.reset()
    cfg = env.event_manager.get_term_cfg("a")
    cfg.params["amount"] = -0.25
    env.event_manager.set_term_cfg("a", cfg)
    env.reset()
    assert (env.robot.data.torch.joint_pos[:, 0] == -0.25).all()


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_what_is_refused_changes_nothing(mode):
    rewards = {"cart": RewardTermCfg(func=cart, weight=2.0), "count": RewardTermCfg(func=counter)}
    env = make_cartpole(mode=mode, rewards=rewards)
    env.reset()
    step(env, 3)
    before = env.reward_manager.get_term_cfg("cart")
    refused = [
        RewardTermCfg(func=cart, weight=-7.0, params={"gain": "abc"}),
        RewardTermCfg(func=uncompilable, weight=-7.0),
        RewardTermCfg(func=without_twin, weight=-7.0),
        RewardTermCfg(func=cart, weight=-7.0, params={"asset_cfg": SceneEntityCfg(name="nobody")}),
    ]
    for cfg in refused:
        with pytest.raises(ConfigError):
            env.reward_manager.set_term_cfg("cart", cfg)
        assert env.reward_manager.get_term_cfg("cart") == before
        step(env)
        position = env.robot.data.torch.joint_pos[:, 0]
        torch.testing.assert_close(env.buffers.torch.reward_terms[:, 0], 2.0 * position * env.step_dt)
    counts = env.buffers.torch.reward_terms[:, 1] / env.step_dt
    torch.testing.assert_close(counts, torch.full((5,), 7.0))


@pytest.mark.parametrize("frontend", FRONTENDS)
def test_a_set_of_terms_is_replaced(frontend):
    env = make_cartpole(frontend=frontend, rewards={"count": RewardTermCfg(func=counter)})
    env.reset()
    step(env, 2)
    captures = env.scope.stats.graph_total("captures")
    env.reward_manager.set_terms({"count": RewardTermCfg(func=counter)})
    step(env)
    assert env.scope.stats.graph_total("captures") == captures
    assert not list(env.reward_manager.scope.invalidations)
    env.reward_manager.set_terms({"cart": RewardTermCfg(func=cart), "count": RewardTermCfg(func=counter)})
    assert len(list(env.reward_manager.scope.invalidations)) == 1
    reward = step(env)[1]
    expected = (env.robot.data.torch.joint_pos[:, 0] + 4.0) * env.step_dt
    torch.testing.assert_close(reward, expected)
    env.termination_manager.set_terms({"all": TerminationTermCfg(func=always)})
    assert step(env)[2].all()
    log = env.pop_episode_log()
    assert {"Episode_Reward/cart", "Episode_Reward/count", "Episode_Termination/all"} <= set(log)
    assert log["Episode_Termination/all"] == 1.0


def always(env) -> torch.Tensor:
    """End every episode."""
    return torch.ones(env.num_envs, dtype=torch.bool)


@warp_twin(always)
def _(env: int) -> bool:
    return True


class steps_seen(ManagerTermBase):
    """An observation that counts how often it was computed."""

    def __init__(self, cfg, env):
        super().__init__(cfg, env)
        self.seen = torch.zeros(env.num_envs, device=env.device)

    def reset(self, env_mask):
        """Start again."""
        self.seen.masked_fill_(env_mask, 0.0)

    def __call__(self, env):
        """Count."""
        self.seen += 1.0
        return self.seen.clone()


def test_a_partial_reset_leaves_torch_terms_of_the_others_alone():
    env = make_cartpole(frontend="torch", observations=policy(seen=ObservationTermCfg(func=steps_seen)))
    env.reset()
    step(env, 3)
    env.reset(env_ids=[0])
    obs = step(env)[0]["policy"]
    assert obs[:, 0].tolist() == [2.0, 5.0, 5.0, 5.0, 5.0]


def test_shared_timers_follow_the_seed():
    def first_draw(seed: int) -> float:
        interval = EventTermCfg(
            func=push_by, params={"amount": 0.0}, mode="interval", interval_range_s=(1.0, 9.0), is_global_time=True
        )
        env = make_cartpole(events={"a": interval})
        env.reset(seed=seed)
        times = env.event_manager._timers["a"].numpy().copy()
        assert np.unique(times).size == 1
        env.close()
        return float(times[0])

    draws = [first_draw(seed) for seed in (1, 2, 3, 1)]
    assert draws[0] == draws[3] and len(set(draws)) == 3


class nan_counter(counter):
    """Counts, and returns what is not finite."""

    def __call__(self, env, size: float = 1.0):
        """Return NaN."""
        return super().__call__(env, size) * float("nan")


@wp.func
def restart_nan(env: int, count: wp.array[float]):
    """Start again."""
    count[env] = 0.0


@warp_twin(nan_counter, reset=restart_nan)
def _(env: int, count: wp.array[float], size: float) -> float:
    count[env] = count[env] + size
    return wp.nan


@pytest.mark.parametrize("frontend", FRONTENDS)
def test_a_term_of_weight_zero_ends_no_episode(frontend):
    rewards = {"bad": RewardTermCfg(func=nan_counter, weight=0.0), "count": RewardTermCfg(func=counter)}
    env = make_cartpole(frontend=frontend, rewards=rewards)
    env.reset()
    _, reward, terminated, *_ = step(env)
    assert not terminated.any()
    torch.testing.assert_close(reward, torch.full((5,), env.step_dt))


@pytest.mark.parametrize("frontend", FRONTENDS)
def test_a_partial_reset_leaves_the_marks_of_the_others(frontend):
    env = make_cartpole(frontend=frontend)
    env.reset()
    step(env)
    env.buffers.torch.bad_observation[1] = True
    env.reset(env_ids=[0])
    assert step(env)[2].tolist() == [False, True, False, False, False]


def test_terms_that_hold_are_taken_back_by_a_reset():
    env = make_cartpole(terminations={"all": TerminationTermCfg(func=always)})
    env.reset()
    step(env)
    assert env.termination_manager.get_term("all").all()
    env.reset(env_ids=[2])
    assert env.termination_manager.get_term("all").tolist() == [True, True, False, True, True]
