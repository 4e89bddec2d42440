"""Recorder terms: what is written of each episode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from treadle.assets.articulation_data import TorchViews, torch_view
from treadle.errors import ConfigError
from treadle.managers.cfg import RecorderTermCfg
from treadle.managers.recorder_manager import Recorded, RecorderTerm

__all__ = [
    "InitialStateRecorder",
    "InitialStateRecorderCfg",
    "PostStepProcessedActionsRecorder",
    "PostStepProcessedActionsRecorderCfg",
    "PostStepStatesRecorder",
    "PostStepStatesRecorderCfg",
    "PreStepActionsRecorder",
    "PreStepActionsRecorderCfg",
    "PreStepPolicyObservationsRecorder",
    "PreStepPolicyObservationsRecorderCfg",
]


class _StateRecorder(RecorderTerm):
    """Base of the terms that record the state of the scene. Positions are relative to the environments' origins."""

    def __init__(self, cfg: RecorderTermCfg, env: Any):
        super().__init__(cfg, env)
        self._physics = TorchViews(env.physics)
        self._origins = torch_view(env.scene.env_origins)

    def state(self) -> dict[str, Any]:
        """Return the state of each articulation."""
        robot, data = self.env.scene.robot, self.env.scene.robot.data.torch
        pose = self._physics.joint_q[:, :7] if robot.layout.floating_base else data.body_pose_w[:, 0]
        velocity = self._physics.joint_qd[:, :6] if robot.layout.floating_base else data.body_vel_w[:, 0]
        state = {
            "root_pose": torch.cat((pose[:, :3] - self._origins, pose[:, 3:]), dim=1),
            "root_velocity": velocity,
            "joint_position": data.joint_pos,
            "joint_velocity": data.joint_vel,
        }
        return {"articulation": {"robot": state}}


class InitialStateRecorder(_StateRecorder):
    """Records the state after a reset, as ``initial_state``."""

    def record_post_reset(self, env_ids: torch.Tensor) -> Recorded:
        """Record the state of the environments that were reset."""
        robot = self.state()["articulation"]["robot"]
        rows = {name: value[env_ids] for name, value in robot.items()}
        return "initial_state", {"articulation": {"robot": rows}}


@dataclass(kw_only=True)
class InitialStateRecorderCfg(RecorderTermCfg):
    """Records the state after a reset, as ``initial_state``."""

    class_type: ClassVar[type[RecorderTerm]] = InitialStateRecorder


class PostStepStatesRecorder(_StateRecorder):
    """Records the state after each step, before a reset, as ``states``."""

    def record_post_step(self) -> Recorded:
        """Record the state."""
        return "states", self.state()


@dataclass(kw_only=True)
class PostStepStatesRecorderCfg(RecorderTermCfg):
    """Records the state after each step, before a reset, as ``states``."""

    class_type: ClassVar[type[RecorderTerm]] = PostStepStatesRecorder


class PreStepActionsRecorder(RecorderTerm):
    """Records the actions as they are given, as ``actions``."""

    def record_pre_step(self) -> Recorded:
        """Record the actions."""
        return "actions", self.env.buffers.torch.action_input


@dataclass(kw_only=True)
class PreStepActionsRecorderCfg(RecorderTermCfg):
    """Records the actions as they are given, as ``actions``."""

    class_type: ClassVar[type[RecorderTerm]] = PreStepActionsRecorder


class PreStepPolicyObservationsRecorder(RecorderTerm):
    """Records the observations of the group ``policy`` that the actions answer, as ``obs``."""

    def __init__(self, cfg: RecorderTermCfg, env: Any):
        super().__init__(cfg, env)
        if "policy" not in (groups := env.cfg.observations):
            raise ConfigError(f"there is no observation group 'policy'; allowed: {', '.join(groups)}")

    def record_pre_step(self) -> Recorded:
        """Record the observations."""
        return "obs", self.env.observations["policy"]


@dataclass(kw_only=True)
class PreStepPolicyObservationsRecorderCfg(RecorderTermCfg):
    """Records the observations of the group ``policy`` that the actions answer, as ``obs``."""

    class_type: ClassVar[type[RecorderTerm]] = PreStepPolicyObservationsRecorder


class PostStepProcessedActionsRecorder(RecorderTerm):
    """Records what the action terms made of the actions, as ``processed_actions``."""

    def record_post_step(self) -> Recorded:
        """Record the processed actions of all terms."""
        terms = self.env.action_manager.terms.values()
        return "processed_actions", torch.cat([term.processed_actions for term in terms], dim=1)


@dataclass(kw_only=True)
class PostStepProcessedActionsRecorderCfg(RecorderTermCfg):
    """Records what the action terms made of the actions, as ``processed_actions``."""

    class_type: ClassVar[type[RecorderTerm]] = PostStepProcessedActionsRecorder
