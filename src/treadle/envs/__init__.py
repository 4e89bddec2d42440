"""Environments: one runtime, two frontends."""

from typing import TYPE_CHECKING

from treadle._lazy import lazy_names
from treadle.envs.cfg import DirectEnvCfg, LaunchCfg

if TYPE_CHECKING:
    from treadle.envs.direct_env import DirectEnv
    from treadle.envs.direct_torch_env import DirectTorchEnv
    from treadle.envs.direct_warp_env import DirectWarpEnv

__all__ = ["DirectEnv", "DirectEnvCfg", "DirectTorchEnv", "DirectWarpEnv", "LaunchCfg"]

__getattr__ = lazy_names(
    __name__,
    {
        "DirectEnv": "treadle.envs.direct_env",
        "DirectTorchEnv": "treadle.envs.direct_torch_env",
        "DirectWarpEnv": "treadle.envs.direct_warp_env",
    },
)
