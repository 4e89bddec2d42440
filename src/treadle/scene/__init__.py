"""The scene: what stands in each environment."""

from typing import TYPE_CHECKING

from treadle._lazy import lazy_names
from treadle.scene.cfg import SceneCfg

if TYPE_CHECKING:
    from treadle.scene.scene import Scene

__all__ = ["Scene", "SceneCfg"]

__getattr__ = lazy_names(__name__, {"Scene": "treadle.scene.scene"})
