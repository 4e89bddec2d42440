"""The order of one environment step, written down once more."""

from __future__ import annotations

import pytest
import torch
from support.ant import ant_cfg

from treadle.assets import Articulation
from treadle.physics import NewtonBackend
from treadle.registry import task_spec
from treadle.sensors import JointWrenchSensor

DERIVED = ["articulation.update", "sensor.update"]
DERIVED_AFTER_RESET = ["articulation.reset", "sensor.reset"]
RESET = [
    "_clear_episodes",
    "_reset_task",
    "write_default_root_state_to_sim",
    "physics.reset",
    *DERIVED_AFTER_RESET,
    "_compute_observations",
]
STEP = [
    "_process_actions",
    *["write_targets_to_sim", "physics.step"] * 3,
    *DERIVED,
    "_advance_counters",
    "_compute_terminations",
    "_finish_terminations",
    "_compute_rewards",
    "_finish_rewards",
    *RESET,
]


def _record(owner: type, method: str, name: str, calls: list[str], monkeypatch) -> None:
    original = getattr(owner, method)

    def recording(self, *args):
        calls.append(name)
        return original(self, *args)

    monkeypatch.setattr(owner, method, recording)


@pytest.mark.parametrize("mode", ["eager", "graph"])
@pytest.mark.parametrize("frontend", ["warp", "torch"])
def test_the_order_of_a_step(frontend, mode, monkeypatch):
    calls: list[str] = []
    env_class = task_spec("Ant-Direct").load_env_class(frontend)
    recorder = type("Recorder", (env_class,), {})
    for method in (name for name in dict.fromkeys((*STEP, *RESET)) if name.startswith("_")):
        _record(recorder, method, method, calls, monkeypatch)
    for owner, method, name in (
        (Articulation, "write_targets_to_sim", "write_targets_to_sim"),
        (Articulation, "write_default_root_state_to_sim", "write_default_root_state_to_sim"),
        (Articulation, "update", "articulation.update"),
        (Articulation, "reset", "articulation.reset"),
        (JointWrenchSensor, "update", "sensor.update"),
        (JointWrenchSensor, "reset", "sensor.reset"),
        (NewtonBackend, "step", "physics.step"),
        (NewtonBackend, "reset", "physics.reset"),
    ):
        _record(owner, method, name, calls, monkeypatch)
    cfg = ant_cfg(mode=mode, decimation=3)
    cfg.scene.num_envs, cfg.sim.device = 2, "cpu"
    env = recorder(cfg)
    assert calls == [], "nothing runs before the first reset"
    env.reset()
    assert calls == RESET
    for _ in range(2):  # without a graph, then the capture
        calls.clear()
        env.step(torch.zeros(2, 8))
        assert calls == STEP
    env.step(torch.zeros(2, 8))  # here the debug contract compares the stages with what was captured
    calls.clear()
    env.step(torch.zeros(2, 8))
    task = ["_process_actions", "_compute_terminations", "_compute_rewards", "_reset_task"]
    by_python = {
        ("eager", "warp"): STEP,
        ("eager", "torch"): STEP,
        ("graph", "warp"): [],
        ("graph", "torch"): [*task, "write_default_root_state_to_sim", "_compute_observations"],
    }
    assert calls == by_python[mode, frontend]
    env.close()


def test_both_frontends_have_the_same_stages():
    stages = []
    for frontend in ("warp", "torch"):
        cfg = ant_cfg()
        cfg.scene.num_envs, cfg.sim.device = 1, "cpu"
        env = task_spec("Ant-Direct").load_env_class(frontend)(cfg)
        stages.append([stage.name for stage in env.pipeline.stages])
        env.close()
    assert stages[0] == stages[1]
