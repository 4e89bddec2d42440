"""Learners: training with rsl_rl, checkpoints, evaluation.

The configuration classes load nothing heavy. The rest loads torch and rsl_rl when it is first used.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from treadle._lazy import lazy_names
from treadle.rl_cfg import ActorModelCfg, MLPModelCfg, OnPolicyRunnerCfg, PPOAlgorithmCfg

if TYPE_CHECKING:
    from treadle.rl.checkpoint import Checkpoint, CheckpointError, find_checkpoint
    from treadle.rl.evaluation import Evaluation, evaluate
    from treadle.rl.health import DivergedError, NonFiniteError
    from treadle.rl.policy import Policy
    from treadle.rl.runner import TreadleRunner
    from treadle.rl.wrapper import RslRlVecEnvWrapper

__all__ = [
    "ActorModelCfg",
    "Checkpoint",
    "CheckpointError",
    "DivergedError",
    "Evaluation",
    "MLPModelCfg",
    "NonFiniteError",
    "OnPolicyRunnerCfg",
    "PPOAlgorithmCfg",
    "Policy",
    "RslRlVecEnvWrapper",
    "TreadleRunner",
    "evaluate",
    "find_checkpoint",
]

# rsl_rl's logger imports GitPython, which refuses to be imported without a git program unless told to be quiet.
os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")

__getattr__ = lazy_names(
    __name__,
    {
        "Checkpoint": "treadle.rl.checkpoint",
        "CheckpointError": "treadle.rl.checkpoint",
        "DivergedError": "treadle.rl.health",
        "Evaluation": "treadle.rl.evaluation",
        "NonFiniteError": "treadle.rl.health",
        "Policy": "treadle.rl.policy",
        "RslRlVecEnvWrapper": "treadle.rl.wrapper",
        "TreadleRunner": "treadle.rl.runner",
        "evaluate": "treadle.rl.evaluation",
        "find_checkpoint": "treadle.rl.checkpoint",
    },
)
