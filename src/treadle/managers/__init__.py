"""Managers: terms of a configuration, computed in torch or fused into Warp kernels."""

from typing import TYPE_CHECKING

from treadle._lazy import lazy_names
from treadle.managers.cfg import (
    ActionTermCfg,
    CommandTermCfg,
    CurriculumTermCfg,
    EventTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RecorderTermCfg,
    RecordingCfg,
    RewardTermCfg,
    TerminationTermCfg,
)
from treadle.managers.modifiers import (
    BiasModifierCfg,
    ClipModifierCfg,
    DigitalFilterCfg,
    IntegratorCfg,
    ScaleModifierCfg,
)
from treadle.managers.noise import (
    ConstantNoiseCfg,
    GaussianNoiseCfg,
    NoiseModelWithAdditiveBiasCfg,
    UniformNoiseCfg,
)
from treadle.managers.scene_entity import SceneEntityCfg
from treadle.managers.term_base import ManagerTermBase

if TYPE_CHECKING:
    from treadle.managers.action_manager import ActionManager, ActionTerm
    from treadle.managers.command_manager import CommandManager, CommandState, CommandTerm
    from treadle.managers.curriculum_manager import CurriculumManager
    from treadle.managers.env_state import EnvState
    from treadle.managers.event_manager import EventManager
    from treadle.managers.frontend import MissingTwinsError, adapt_to_warp, missing_twins
    from treadle.managers.observation_manager import ObservationManager
    from treadle.managers.recorder_manager import RecorderManager, RecorderTerm
    from treadle.managers.reward_manager import RewardManager
    from treadle.managers.termination_manager import TerminationManager
    from treadle.managers.twins import WarpTwin, find_twin, warp_twin

_LAZY = {
    "ActionManager": "treadle.managers.action_manager",
    "ActionTerm": "treadle.managers.action_manager",
    "CommandManager": "treadle.managers.command_manager",
    "CommandState": "treadle.managers.command_manager",
    "CommandTerm": "treadle.managers.command_manager",
    "CurriculumManager": "treadle.managers.curriculum_manager",
    "EnvState": "treadle.managers.env_state",
    "EventManager": "treadle.managers.event_manager",
    "MissingTwinsError": "treadle.managers.frontend",
    "adapt_to_warp": "treadle.managers.frontend",
    "missing_twins": "treadle.managers.frontend",
    "ObservationManager": "treadle.managers.observation_manager",
    "RecorderManager": "treadle.managers.recorder_manager",
    "RecorderTerm": "treadle.managers.recorder_manager",
    "RewardManager": "treadle.managers.reward_manager",
    "TerminationManager": "treadle.managers.termination_manager",
    "WarpTwin": "treadle.managers.twins",
    "find_twin": "treadle.managers.twins",
    "warp_twin": "treadle.managers.twins",
}

__all__ = [
    "ActionManager",
    "ActionTerm",
    "ActionTermCfg",
    "BiasModifierCfg",
    "ClipModifierCfg",
    "CommandManager",
    "CommandState",
    "CommandTerm",
    "CommandTermCfg",
    "ConstantNoiseCfg",
    "CurriculumManager",
    "CurriculumTermCfg",
    "DigitalFilterCfg",
    "EnvState",
    "EventManager",
    "EventTermCfg",
    "GaussianNoiseCfg",
    "IntegratorCfg",
    "ManagerTermBase",
    "MissingTwinsError",
    "NoiseModelWithAdditiveBiasCfg",
    "ObservationGroupCfg",
    "ObservationManager",
    "ObservationTermCfg",
    "RecorderManager",
    "RecorderTerm",
    "RecorderTermCfg",
    "RecordingCfg",
    "RewardManager",
    "RewardTermCfg",
    "ScaleModifierCfg",
    "SceneEntityCfg",
    "TerminationManager",
    "TerminationTermCfg",
    "UniformNoiseCfg",
    "WarpTwin",
    "adapt_to_warp",
    "find_twin",
    "missing_twins",
    "warp_twin",
]

__getattr__ = lazy_names(__name__, _LAZY)
