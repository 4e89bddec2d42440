"""The task registry, and a task of somebody else from its registration to its last step."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from support import cartpole_task

import treadle
from treadle import registry
from treadle.envs import DirectEnvCfg
from treadle.errors import ConfigError, UnknownNameError
from treadle.registry import TaskSpec, task_spec


@pytest.fixture(autouse=True)
def _own_registrations(monkeypatch):
    """Forget what a test registers."""
    treadle.list_tasks()
    monkeypatch.setattr(registry, "_tasks", dict(registry._tasks))


@pytest.mark.parametrize("name", ["Ant-Drect", "ant-direct", "AntDirect", "Ant-Dir"])
def test_an_unknown_task_suggests_near_names(name):
    with pytest.raises(UnknownNameError, match=rf"unknown task '{name}' \(did you mean 'Ant-Direct'") as caught:
        treadle.make(name)
    assert "allowed: " in str(caught.value) and "Ant-Direct" in str(caught.value).split("allowed: ")[1]


def test_an_unknown_task_that_is_near_to_nothing():
    with pytest.raises(UnknownNameError, match=r"unknown task 'zzzzzzzz'; allowed: .*Ant-Direct"):
        task_spec("zzzzzzzz")


def test_tasks_are_listed_sorted():
    treadle.register(dataclasses.replace(cartpole_task.SPEC, task_id="AAA"))
    tasks = treadle.list_tasks()
    assert tasks == sorted(tasks) and {"AAA", "Ant-Direct"} <= set(tasks)


def test_the_same_registration_twice_and_a_conflict():
    treadle.register(cartpole_task.SPEC)
    treadle.register(dataclasses.replace(cartpole_task.SPEC))
    other = dataclasses.replace(cartpole_task.SPEC, env_cfg="elsewhere:Cfg")
    with pytest.raises(ConfigError, match=r"'Test-Cartpole' is registered already, by support\.cartpole_task:Cart"):
        treadle.register(other)
    with pytest.raises(ConfigError, match=r"'Ant-Direct' is registered already, by treadle\.tasks\.ant\.cfg"):
        treadle.register(dataclasses.replace(other, task_id="Ant-Direct"))
    assert task_spec("Test-Cartpole") == cartpole_task.SPEC


def test_a_name_of_treadle_is_taken_before_anybody_asked():
    """Treadle's own tasks are registered when somebody asks for tasks; their names are theirs before."""
    code = """if True:
        import treadle
        try:
            spec = treadle.TaskSpec(task_id="Ant-Direct", env_cfg="a:B", agent_cfg="a:B", frontends={"torch": "a:B"})
            treadle.register(spec)
        except treadle.ConfigError as error:
            print(error, treadle.list_tasks())
    """
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "task 'Ant-Direct' is registered already, by treadle.tasks.ant.cfg" in result.stdout


def test_a_task_without_a_frontend():
    with pytest.raises(ConfigError, match="task 'Empty': frontends is empty; allowed: 'warp', 'torch' or both"):
        treadle.register(TaskSpec(task_id="Empty", env_cfg="a:B", agent_cfg="a:B"))


def test_an_unknown_frontend_lists_those_of_the_task():
    torch_only = {"torch": cartpole_task.SPEC.frontends["torch"]}
    treadle.register(dataclasses.replace(cartpole_task.SPEC, task_id="Torch-Only", frontends=torch_only))
    with pytest.raises(UnknownNameError, match=r"unknown frontend of task Torch-Only 'warp'.*allowed: torch"):
        treadle.make("Torch-Only")
    with pytest.raises(UnknownNameError, match=r"unknown frontend of task Ant-Direct 'jax'.*allowed: torch, warp"):
        treadle.make("Ant-Direct", frontend="jax")


def test_configurations_are_new_each_time():
    spec = task_spec("Ant-Direct")
    first = spec.load_env_cfg()
    first.scene.robot.actuators["body"].damping = 7.0
    first.rewards.alive = 7.0
    second = spec.load_env_cfg()
    assert second.scene.robot.actuators["body"].damping == 0.1 and second.rewards.alive == 0.5
    assert spec.load_agent_cfg() == spec.load_agent_cfg() is not spec.load_agent_cfg()


@pytest.mark.parametrize("task_id", [t for t in treadle.list_tasks() if task_spec(t).env_cfg.startswith("treadle.")])
def test_every_task_resolves(task_id):
    spec = task_spec(task_id)
    assert list(spec.load_env_cfg().problems()) == []
    assert list(spec.load_agent_cfg().problems()) == []
    assert spec.description
    for frontend in spec.frontends:
        assert spec.load_env_class(frontend).task_frontend == frontend


class FakeEntryPoint(importlib.metadata.EntryPoint):
    """An entry point whose distribution has a name."""

    dist = SimpleNamespace(name="some-robots")


@pytest.fixture
def plugins(monkeypatch, tmp_path):
    """Return a function that installs modules, each with an entry point, for the time of a test."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "_plugins_loaded", False)

    def install(**sources: str) -> None:
        for name, source in sources.items():
            (tmp_path / f"{name}.py").write_text(source)
        points = [FakeEntryPoint(f"{name}-tasks", name, "treadle.tasks") for name in sources]
        monkeypatch.setattr(importlib.metadata, "entry_points", lambda *, group: points)

    yield install
    for name in [path.stem for path in tmp_path.glob("*.py")]:
        sys.modules.pop(name, None)


REGISTER = """
import treadle
treadle.list_tasks()  # a module may ask, too
treadle.register(treadle.TaskSpec(task_id="{task}", env_cfg="a:B", agent_cfg="a:B", frontends={{"torch": "a:B"}}))
"""


def test_plugins_register_tasks_and_a_broken_one_harms_no_other(plugins, caplog):
    plugins(
        plugin_a=REGISTER.format(task="Plugin-A"),
        plugin_b="import no_such_package",
        plugin_c=REGISTER.format(task="Ant-Direct"),
        plugin_d="raise SystemExit(3)",
        plugin_e=REGISTER.format(task="Plugin-E"),
    )
    assert {"Plugin-A", "Plugin-E", "Ant-Direct"} <= set(treadle.list_tasks())
    assert caplog.messages == [
        "plug-in 'plugin_b-tasks' of some-robots (plugin_b) cannot be loaded: "
        "ModuleNotFoundError: No module named 'no_such_package'",
        "plug-in 'plugin_c-tasks' of some-robots (plugin_c) cannot be loaded: "
        "task 'Ant-Direct' is registered already, by treadle.tasks.ant.cfg:AntDirectEnvCfg",
        "plug-in 'plugin_d-tasks' of some-robots (plugin_d) cannot be loaded: SystemExit: 3",
    ]
    caplog.clear()
    treadle.list_tasks()
    assert caplog.messages == [], "each is imported once"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (
            "no_such_package.cfg:Cfg",
            "a registered path is 'no_such_package.cfg:Cfg', and there is no module 'no_such_p",
        ),
        ("treadle.errors:Cfg", "a registered path is 'treadle.errors:Cfg', and module 'treadle.errors' has no 'Cfg'"),
        ("treadle.errors", "a registered path is 'treadle.errors'; allowed: 'package.module:Name'"),
    ],
)
def test_a_wrong_path_is_said(path, message):
    treadle.register(dataclasses.replace(cartpole_task.SPEC, task_id="Wrong", env_cfg=path))
    with pytest.raises(ConfigError, match=re.escape(message)):
        treadle.make("Wrong")


@pytest.mark.parametrize(("module", "extra"), [("torch", "rl"), ("newton", "sim")])
def test_a_missing_extra_is_named(module, extra):
    code = f"""if True:
        import sys, treadle
        sys.modules[{module!r}] = None
        try:
            treadle.make("Ant-Direct", num_envs=1, device="cpu")
        except treadle.ConfigError as error:
            print(error)
    """
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    message = f"the environment needs {module}, which is not installed; the extra {extra!r} brings it: pip install "
    assert result.stdout == message + "'treadle[sim,rl]'\n"


@pytest.mark.parametrize("cfg", [DirectEnvCfg(), {"seed": 1}])
def test_a_configuration_of_another_class_is_refused(cfg):
    message = f"cfg is a {type(cfg).__name__}; allowed for task Ant-Direct: AntDirectEnvCfg, or a class derived from it"
    with pytest.raises(ConfigError, match=message):
        treadle.make("Ant-Direct", cfg=cfg)


def test_a_task_of_somebody_else_works_end_to_end():
    treadle.register(cartpole_task.SPEC)
    observed, rewards = {}, {}
    for frontend in ("warp", "torch"):
        env = treadle.make("Test-Cartpole", frontend=frontend, num_envs=6, device="cpu", seed=1)
        observations, _ = env.reset()
        start = torch.full((6, 2), 0.15)
        env.robot.write_joint_state_to_sim(start, torch.zeros(6, 2), torch.ones(6, dtype=torch.bool))
        assert ((observations["policy"][:, :2] >= 0.1) & (observations["policy"][:, :2] <= 0.2)).all()
        assert len(np.unique(observations["policy"][:, :2].numpy())) == 12
        env.episode_length_buf = torch.tensor([299 - 10, 0, 0, 0, 0, 0])
        observed[frontend], rewards[frontend], ends = [], [], []
        for step in range(60):
            actions = torch.full((6, 1), 1.0 if step >= 20 else 0.0)
            observations, reward, terminated, truncated, _ = env.step(actions)
            ends.append((terminated.clone(), truncated.clone()))
            observed[frontend].append(observations["policy"][1:])
            rewards[frontend].append(reward[1:])
        terminated, truncated = (torch.stack(flags) for flags in zip(*ends, strict=True))
        assert truncated[10].tolist() == [True] + [False] * 5 and truncated.sum() == 1
        assert terminated[:, 1:].any(dim=0).all(), "the cart left the rail"
        log = env.pop_episode_log()
        assert {"Episode_Reward/alive", "Episode_Reward/upright", "Episode_Termination/time_out"} <= set(log)
        env.close()
    # The draws of the frontends differ, but all others started equal and are compared until the first reset.
    first_end = int(terminated.any(dim=1).nonzero()[0])
    assert first_end > 25
    for values in (observed, rewards):
        for warp, torch_ in zip(values["warp"][:first_end], values["torch"][:first_end], strict=True):
            torch.testing.assert_close(warp, torch_, rtol=1e-5, atol=1e-5)
