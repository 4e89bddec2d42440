"""Training does not depend on how kernels are launched."""

from __future__ import annotations

from pathlib import Path

import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from treadle.registry import make, task_spec
from treadle.rl import RslRlVecEnvWrapper, TreadleRunner


def train(mode: str, run_dir: Path, frontend: str = "warp"):
    """Train five iterations; return the learning series by name, and the final network."""
    spec = task_spec("Cartpole")
    cfg, agent = spec.load_env_cfg(), spec.load_agent_cfg()
    cfg.launch.mode = mode
    torch.manual_seed(agent.seed)
    env = make("Cartpole", cfg=cfg, frontend=frontend, num_envs=16, device="cpu", seed=7)
    wrapper = RslRlVecEnvWrapper(env, clip_actions=agent.clip_actions, num_steps_per_env=agent.num_steps_per_env)
    runner = TreadleRunner(wrapper, agent, task="Cartpole", run_dir=run_dir)
    runner.learn(5, init_at_random_ep_len=True)
    networks = {
        **{f"actor.{k}": v.clone() for k, v in runner.alg.actor.state_dict().items()},
        **{f"critic.{k}": v.clone() for k, v in runner.alg.critic.state_dict().items()},
    }
    env.close()
    events = EventAccumulator(str(run_dir))
    events.Reload()
    series = {
        tag: [(event.step, event.value) for event in events.Scalars(tag)]
        for tag in events.Tags()["scalars"]
        if not tag.startswith("Perf/") and not tag.endswith("/time")  # the clock's
    }
    return series, networks


def test_five_iterations_are_the_same_in_eager_replay_and_graph(tmp_path):
    eager, network = train("eager", tmp_path / "eager")
    assert {"Loss/value", "Loss/surrogate"} <= set(eager) and len(eager["Loss/value"]) == 5
    for mode in ("replay", "graph"):
        series, other = train(mode, tmp_path / mode)
        assert series == eager
        assert network.keys() == other.keys()
        assert all(torch.equal(network[name], other[name]) for name in network)
