"""Environments: one runtime, two frontends."""

from typing import TYPE_CHECKING

from treadle._lazy import lazy_names
from treadle.envs.cfg import DirectEnvCfg, EnvCfg, LaunchCfg

if TYPE_CHECKING:
    from treadle.envs.direct_env import DirectEnv
    from treadle.envs.direct_torch_env import DirectTorchEnv
    from treadle.envs.direct_warp_env import DirectWarpEnv
    from treadle.envs.manager_based_cfg import ManagerBasedRLEnvCfg
    from treadle.envs.manager_based_env import ManagerBasedRLEnv, ManagerBasedTorchEnv, ManagerBasedWarpEnv
    from treadle.envs.vector_env import VectorEnv

__all__ = [
    "DirectEnv",
    "DirectEnvCfg",
    "DirectTorchEnv",
    "DirectWarpEnv",
    "EnvCfg",
    "LaunchCfg",
    "ManagerBasedRLEnv",
    "ManagerBasedRLEnvCfg",
    "ManagerBasedTorchEnv",
    "ManagerBasedWarpEnv",
    "VectorEnv",
]

__getattr__ = lazy_names(
    __name__,
    {
        "DirectEnv": "treadle.envs.direct_env",
        "DirectTorchEnv": "treadle.envs.direct_torch_env",
        "DirectWarpEnv": "treadle.envs.direct_warp_env",
        "ManagerBasedRLEnv": "treadle.envs.manager_based_env",
        "ManagerBasedRLEnvCfg": "treadle.envs.manager_based_cfg",
        "ManagerBasedTorchEnv": "treadle.envs.manager_based_env",
        "ManagerBasedWarpEnv": "treadle.envs.manager_based_env",
        "VectorEnv": "treadle.envs.vector_env",
    },
)
