"""Importing Treadle is cheap, and loads nothing that a configuration does not need."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = ["gymnasium", "mujoco", "mujoco_warp", "newton", "numpy", "rsl_rl", "tensordict", "torch", "tyro", "warp"]
LIMIT_S = 0.1


def _run(code: str) -> str:
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return result.stdout


@pytest.mark.parametrize(
    "module",
    [
        "treadle",
        "treadle.registry",
        "treadle.errors",
        "treadle.tasks",
        "treadle.tasks.ant.cfg",
        "treadle.tasks.ant.agents",
        "treadle.envs",
        "treadle.physics",
        "treadle.assets",
        "treadle.scene",
        "treadle.sensors",
    ],
)
def test_nothing_heavy_is_loaded(module):
    loaded = json.loads(
        _run(f"import sys, json, {module}; print(json.dumps([m for m in {HEAVY} if m in sys.modules]))")
    )
    assert loaded == []


def test_listing_tasks_loads_nothing_heavy():
    code = f"import sys, treadle; print(treadle.list_tasks(), [m for m in {HEAVY} if m in sys.modules])"
    assert _run(code).strip().endswith("[]")
    assert "Ant-Direct" in _run(code)


def test_importing_treadle_is_fast():
    """Processor time inside of the interpreter: neither starting one nor a busy machine counts; the best of five."""
    code = "import time; start = time.process_time(); import treadle; print(time.process_time() - start)"
    assert min(float(_run(code)) for _ in range(5)) < LIMIT_S


def test_public_names_exist():
    import importlib

    for name in ("treadle", "treadle.envs", "treadle.physics", "treadle.assets", "treadle.scene", "treadle.sensors"):
        module = importlib.import_module(name)
        for public in module.__all__:
            assert getattr(module, public) is not None, f"{name}.{public}"
        with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'nothing'"):
            _ = module.nothing
