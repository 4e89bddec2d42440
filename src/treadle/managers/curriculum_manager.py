"""Curriculum: what changes as training goes on."""

from __future__ import annotations

from typing import Any, ClassVar

import torch

from treadle.managers.cfg import CurriculumTermCfg
from treadle.managers.event_manager import call_with_mask
from treadle.managers.manager import Manager
from treadle.managers.term import Term

__all__ = ["CurriculumManager"]


class CurriculumManager(Manager[CurriculumTermCfg]):
    """Calls the terms before each step, on the host, with the environments that were reset in the last step.

    What a term returns (a number, a tensor with one, a dictionary of them, or nothing) is logged as
    ``Curriculum/<term>``.
    """

    kind: ClassVar[str] = "curriculum"

    def make(self) -> None:
        """Make the terms from their configurations."""
        results = getattr(self, "_results", {})
        super().make()
        self._results: dict[str, Any] = {name: results[name] for name in self.terms if name in results}

    def compute(self, env_mask: torch.Tensor) -> None:
        """Call the terms.

        Args:
            env_mask: Environments that were reset in the last step, bool, shape (num_envs,).
        """
        for name, term in self.terms.items():
            self._results[name] = call_with_mask(term, env_mask)

    def log(self) -> dict[str, float]:
        """Return what the terms returned last, by the names of the log. May synchronize."""
        entries: dict[str, float] = {}
        for name, result in self._results.items():
            if isinstance(result, dict):
                entries |= {f"Curriculum/{name}/{key}": float(value) for key, value in result.items()}
            elif result is not None:
                entries[f"Curriculum/{name}"] = float(result)
        return entries

    def _make_term(self, name: str, cfg: CurriculumTermCfg, instance: Any = None) -> Term:
        skip = ("env", "env_mask", "env_ids")
        term = Term(name, cfg, self.env, f"curriculum.{name}", self.params, skip=skip, instance=instance)
        term.uses_warp = False
        return term

    def _make_columns(self, widths: Any) -> None:
        """Terms of a curriculum write into no buffer."""
