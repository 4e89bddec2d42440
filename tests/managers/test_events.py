"""When events happen."""

from __future__ import annotations

import pytest
import torch
import warp as wp
from support.cartpole_terms import make_cartpole

from treadle.errors import ConfigError
from treadle.managers import EventTermCfg, ManagerTermBase, warp_twin


class tally(ManagerTermBase):
    """Counts the events of each environment."""

    def __init__(self, cfg, env):
        super().__init__(cfg, env)
        self.count = wp.zeros(env.num_envs, dtype=int, device=env.device)
        self.view = wp.to_torch(self.count)

    def __call__(self, env, env_mask):
        """Count."""
        self.view.add_(env_mask)


@warp_twin(tally)
def _(env: int, count: wp.array[int]):
    count[env] = count[env] + 1


class tally_ids(tally):
    """The same with indices, in torch only."""

    def __call__(self, env, env_ids):
        """Count."""
        self.view[env_ids] += 1


def env_with(frontend: str = "warp", mode: str = "graph", **events):
    return make_cartpole(frontend=frontend, mode=mode, events=events, episode_length_s=0.2, allow_torch_terms=True)


def counts(env, name: str) -> list[int]:
    return env.event_manager.terms[name].instance.view.tolist()


def step(env, times: int) -> None:
    for _ in range(times):
        env.step(torch.zeros(env.num_envs, 1))


@pytest.mark.parametrize("func", [tally, tally_ids])
@pytest.mark.parametrize("frontend", ["warp", "torch"])
def test_reset_events_happen_at_resets_only(frontend, func):
    env = env_with(frontend, a=EventTermCfg(func=func))
    env.reset()
    assert counts(env, "a") == [1] * 5
    env.reset(env_ids=[1, 3])
    assert counts(env, "a") == [1, 2, 1, 2, 1]
    step(env, 12)  # an episode
    assert counts(env, "a") == [2, 3, 2, 3, 2]


@pytest.mark.parametrize("frontend", ["warp", "torch"])
def test_a_reset_event_is_not_too_frequent(frontend):
    env = env_with(frontend, a=EventTermCfg(func=tally, min_step_count_between_reset=10))
    env.reset()
    assert counts(env, "a") == [1] * 5
    env.reset()
    assert counts(env, "a") == [1] * 5
    step(env, 9)
    env.reset(env_ids=[0])
    assert counts(env, "a") == [1] * 5
    step(env, 1)
    env.reset(env_ids=[0])
    assert counts(env, "a") == [2, 1, 1, 1, 1]


@pytest.mark.parametrize("frontend", ["warp", "torch"])
@pytest.mark.parametrize("shared", [False, True])
def test_intervals(frontend, shared):
    dt = 1.0 / 60.0
    interval = EventTermCfg(func=tally, mode="interval", interval_range_s=(3.0 * dt, 5.0 * dt), is_global_time=shared)
    env = make_cartpole(frontend=frontend, num_envs=64, events={"a": interval}, episode_length_s=100.0)
    env.reset(seed=3)
    first = torch.full((64,), -1)
    for age in range(1, 7):
        step(env, 1)
        now = torch.tensor(counts(env, "a"))
        first = torch.where((first < 0) & (now > 0), age, first)
    assert set(first.tolist()) <= {3, 4, 5, 6}
    assert len(set(first.tolist())) == 1 if shared else len(set(first.tolist())) > 1


def test_a_timer_starts_anew_at_a_reset_of_its_environment():
    dt = 1.0 / 60.0
    env = env_with(a=EventTermCfg(func=tally, mode="interval", interval_range_s=(6.0 * dt, 6.0 * dt)))
    env.reset()
    step(env, 4)
    env.reset(env_ids=[2])
    step(env, 2)
    assert counts(env, "a") == [1, 1, 0, 1, 1]
    step(env, 4)
    assert counts(env, "a") == [1, 1, 1, 1, 1]


def test_interval_events_move_the_bodies_in_the_same_step():
    events = {"push": EventTermCfg(func=push_cart, mode="interval", interval_range_s=(1.0 / 30.0, 1.0 / 30.0))}
    env = make_cartpole(events=events, episode_length_s=100.0)
    env.reset()
    step(env, 2)
    cart_body = env.robot.body_names.index(env.robot.body_names[-1])
    assert (env.robot.data.torch.joint_vel[:, 0] == 2.0).all()
    assert (wp.to_torch(env.physics.body_qd)[:, cart_body, :3].norm(dim=1) > 1.9).all()


def push_cart(env, env_mask):
    """Set the cart's speed to 2 m/s."""
    velocity = env.scene["robot"].data.torch.joint_vel
    velocity[:, 0] = torch.where(env_mask, 2.0, velocity[:, 0])


@warp_twin(push_cart, extra=lambda env, params: {"joint_vel": env.robot.data.joint_vel})
def _(env: int, joint_vel: wp.array2d[float]):
    joint_vel[env, 0] = 2.0


def test_warp_and_torch_events_keep_their_order():
    """Each event adds itself to a number, so another order gives another number."""
    events = {name: EventTermCfg(func=func) for name, func in zip("abc", (tally, tally_ids, tally), strict=True)}
    env = env_with(**events)
    assert [uses_warp for uses_warp, _ in env.event_manager.segments()] == [True, False, True]
    names = [stage.name for stage in env.pipeline.stages]
    assert names.index("reset 0") < names.index("events in torch: b") < names.index("reset 2")
    env.reset()
    assert [counts(env, name) for name in "abc"] == [[1] * 5] * 3


def test_errors():
    with pytest.raises(ConfigError, match=r"events\.a\.interval_range_s is None"):
        env_with(a=EventTermCfg(func=tally, mode="interval"))
    with pytest.raises(ConfigError, match=r"events\.a\.mode is 'never'; allowed: prestartup, startup, reset, interval"):
        env_with(a=EventTermCfg(func=tally, mode="never"))


def test_events_with_indices_are_not_called_for_no_environment():
    calls = []

    def event(env, env_ids):
        calls.append(env_ids.tolist())

    env = env_with("torch", a=EventTermCfg(func=event))
    env.reset()
    step(env, 3)
    env.reset(env_ids=[1, 3])
    assert calls == [[0, 1, 2, 3, 4], [1, 3]]
    env.close()
