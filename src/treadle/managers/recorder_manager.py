"""Recording episodes to a file."""

from __future__ import annotations

import atexit
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from treadle.errors import ConfigError
from treadle.launch import Stage
from treadle.managers.cfg import RecorderTermCfg
from treadle.managers.episode_file import EpisodeFile
from treadle.managers.manager import TORCH_CODE, iterate_terms

__all__ = ["RecorderManager", "RecorderTerm"]

Recorded = tuple[str | None, Any]
"""A name, and a tensor with a row per environment or a nested dictionary of them; ``(None, None)`` for nothing."""


class RecorderTerm:
    """Records something of each environment. A subclass implements some of the methods.

    Each returns a name and a tensor with a row per environment, or a nested dictionary of tensors.

    Args:
        cfg: Configuration of the term.
        env: The environment.
    """

    def __init__(self, cfg: RecorderTermCfg, env: Any):
        self.cfg = cfg
        self.env = env

    def record_pre_reset(self, env_ids: torch.Tensor) -> Recorded:
        """Record before a reset. Rows are those of ``env_ids``, int64, shape (num_reset,)."""
        return None, None

    def record_post_reset(self, env_ids: torch.Tensor) -> Recorded:
        """Record after a reset. Rows are those of ``env_ids``, int64, shape (num_reset,)."""
        return None, None

    def record_pre_step(self) -> Recorded:
        """Record before a step, when its actions are known. Rows are those of all environments."""
        return None, None

    def record_post_step(self) -> Recorded:
        """Record after a step, before environments that ended are reset. Rows are those of all environments."""
        return None, None


class RecorderManager:
    """Collects what the terms record, and writes each episode to the file when it ends.

    Each recording waits for the device. Without terms there is none, and no cost. Episodes that have not ended when
    the environment is closed, or when the program stops, are written too, as incomplete ones.

    Args:
        cfg: Terms by name.
        env: The environment, whose ``cfg.recording`` says where to.

    Raises:
        ConfigError: There are terms, and h5py is missing or the file can't be opened; or there is no termination term
            of the name ``recording.success_term``.
    """

    kind: ClassVar[str] = "recorders"

    def __init__(self, cfg: Mapping[str, RecorderTermCfg | None], env: Any):
        self.env = env
        success, endings = env.cfg.recording.success_term, env.termination_manager.active_terms
        if success is not None and success not in endings:
            allowed = ", ".join([*endings, "None"])
            raise ConfigError(f"recording.success_term is {success!r}; allowed: {allowed}")
        self.terms = {name: term.class_type(term, env) for name, term in iterate_terms(cfg)}
        self._episodes: list[dict[str, list[np.ndarray]]] = [{} for _ in range(env.num_envs)]
        self._steps = np.zeros(env.num_envs, dtype=np.int64)
        self._stepping = False
        self._file: EpisodeFile | None = None
        if self.terms:
            self._file = EpisodeFile(Path(env.cfg.recording.path))
            atexit.register(self.close)

    @property
    def active_terms(self) -> list[str]:
        """Names of the terms, in order."""
        return list(self.terms)

    def begin_step(self) -> None:
        """Record before a step."""
        if self.terms:
            self._stepping = True
            self._lengths = [{name: len(rows) for name, rows in episode.items()} for episode in self._episodes]
            for term in self.terms.values():
                self._add_all(term.record_pre_step())

    def abort_step(self) -> None:
        """Forget what was recorded since :meth:`begin_step`, as the step failed."""
        if self._stepping:
            self._stepping = False
            for episode, lengths in zip(self._episodes, self._lengths, strict=True):
                for name in list(episode):
                    episode[name] = episode[name][: lengths.get(name, 0)]
                    if not episode[name]:
                        del episode[name]

    def stages_before_reset(self) -> list[Stage]:
        """Return the stage that records a step and writes the episodes that ended, empty without terms."""
        return [Stage("record before reset", self._before_reset, TORCH_CODE)] if self.terms else []

    def stages_after_reset(self) -> list[Stage]:
        """Return the stage that records new episodes, empty without terms."""
        return [Stage("record after reset", self._after_reset, TORCH_CODE)] if self.terms else []

    def close(self) -> None:
        """Write the episodes that have not ended, and close the file."""
        if self._file is None:
            return
        for env_id in range(len(self._episodes)):
            self._write(env_id, complete=False)
        self._file.close()
        self._file = None
        atexit.unregister(self.close)

    def _before_reset(self) -> None:
        complete, self._stepping = self._stepping, False
        if complete:
            self._steps += 1
            for term in self.terms.values():
                self._add_all(term.record_post_step())
        env_ids = self.env.reset_mask.nonzero().flatten()
        if not len(env_ids):
            return
        for term in self.terms.values():
            self._add_rows(term.record_pre_reset(env_ids), env_ids)
        for env_id in env_ids.tolist():
            self._write(env_id, complete=complete)

    def _after_reset(self) -> None:
        env_ids = self.env.reset_mask.nonzero().flatten()
        if len(env_ids):
            for term in self.terms.values():
                self._add_rows(term.record_post_reset(env_ids), env_ids)

    def _add_all(self, recorded: Recorded) -> None:
        self._add(recorded, range(self.env.num_envs))

    def _add_rows(self, recorded: Recorded, env_ids: torch.Tensor) -> None:
        self._add(recorded, env_ids.tolist())

    def _add(self, recorded: Recorded, env_ids: Any) -> None:
        key, value = recorded
        if key is None:
            return
        for name, tensor in _flatten(key, value):
            rows = tensor.detach().to("cpu", copy=True).numpy()
            if len(rows) != len(env_ids):
                raise ConfigError(f"{name!r} is recorded with {len(rows)} rows; allowed: {len(env_ids)}")
            for row, env_id in zip(rows, env_ids, strict=True):
                self._episodes[env_id].setdefault(name, []).append(row)

    def _write(self, env_id: int, complete: bool) -> None:
        """Write an episode in which there was a step, and forget it."""
        episode, self._episodes[env_id] = self._episodes[env_id], {}
        steps, self._steps[env_id] = int(self._steps[env_id]), 0
        if not steps or self._file is None:
            return
        attributes: dict[str, Any] = {"num_samples": steps, "env_id": env_id, "complete": complete}
        if (term := self.env.cfg.recording.success_term) is not None:
            success = complete and bool(self.env.termination_manager.get_term(term)[env_id])
            if self.env.cfg.recording.export == "succeeded" and not success:
                return
            attributes["success"] = success
        self._file.write({name: np.stack(rows) for name, rows in episode.items()}, attributes)


def _flatten(key: str, value: Any) -> list[tuple[str, torch.Tensor]]:
    if isinstance(value, Mapping):
        return [pair for name, inner in value.items() for pair in _flatten(f"{key}/{name}", inner)]
    return [(key, value)]
