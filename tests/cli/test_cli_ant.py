"""Training and playing a real task, on the CPU."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from treadle.cli import main
from treadle.rl import checkpoint as ckpt

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("frontend", ["warp", "torch"])
def test_train_resume_and_play(frontend, capsys):
    common = ["--device", "cpu", "--log-dir", "run"]
    argv = ["--frontend", frontend, "--num-envs", "16", "--env.scene.robot.actuators.body.damping", "0.2"]
    assert main(["train", "Ant-Direct", *common, *argv, "--max-iterations", "2"]) == 0
    assert main(["train", "Ant-Direct", *common, "--resume", "--max-iterations", "1"]) == 0
    out = capsys.readouterr().out
    assert "iteration 3/3" in out
    assert f"Ant-Direct, {frontend} frontend" in out
    loaded = ckpt.load(Path("run"), task="Ant-Direct")
    assert (loaded.iteration, loaded.frontend, loaded.num_observations) == (2, frontend, {"policy": 60})
    assert json.loads(loaded.env_cfg)["scene"]["robot"]["actuators"]["body"]["damping"] == 0.2
    argv = ["--device", "cpu", "--checkpoint", "run", "--num-envs", "4", "--num-episodes", "4", "--json"]
    assert main(["play", "Ant-Direct", *argv]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["finished_episodes"] == 4
    assert math.isfinite(result["mean_return"])
    assert 0 < result["mean_episode_length"] <= 960
