"""Terminations."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
import warp as wp

from treadle.assets.articulation_data import torch_view
from treadle.errors import ConfigError
from treadle.managers.cfg import TerminationTermCfg
from treadle.managers.kernel_builder import KernelBuilder
from treadle.managers.manager import Manager
from treadle.managers.term import Term
from treadle.managers.twins import describe_return, return_type_of

__all__ = ["TerminationManager"]

_LOGGED = ("terminated", "non_finite")
"""Entries of the log beside those of the terms; ``time_out`` is one too, which such a term may stand for."""


_LEAST_COLUMNS = 16


class TerminationManager(Manager[TerminationTermCfg]):
    """Decides which episodes end, in a terminal state or because they are cut short. An episode never does both."""

    kind: ClassVar[str] = "terminations"

    def __init__(self, cfg: Any, env: Any):
        super().__init__(cfg, env)
        columns = max(len(self._cfg), _LEAST_COLUMNS)
        self.values = wp.zeros((env.num_envs, columns), dtype=wp.bool, device=env.device)
        """Which terms hold, bool, a column per term, and some for terms that are added; shape (num_envs, columns)."""
        self._values_view = torch_view(self.values)

    def make(self) -> None:
        """Make the terms from their configurations."""
        if len(self._cfg) > self.values.shape[1]:
            raise ConfigError(
                f"terminations has {len(self._cfg)} terms; allowed in this environment: up to {self.values.shape[1]}"
            )
        super().make()
        self._views = {name: self._values_view[:, index] for index, name in enumerate(self._cfg)}

    def get_term(self, name: str) -> torch.Tensor:
        """Return whether a term holds, bool, shape (num_envs,).

        Raises:
            UnknownNameError: There is no such term.
        """
        return self._find(self._views, name)

    def clear(self, env_mask: torch.Tensor) -> None:
        """Take back what held in the masked environments, bool, shape (num_envs,)."""
        self._values_view.masked_fill_(env_mask[:, None], False)

    def write(self, builder: KernelBuilder) -> None:
        """Write the terms of one environment, and the flags that follow from them."""
        state = builder.argument("state", self.env.state)
        builder.comment("terms")
        builder.line(f"is_terminal = bool({state}.non_finite[env])")
        builder.line("is_time_out = bool(False)")
        for index, (name, term) in enumerate(self.terms.items()):
            builder.comment(name)
            if term.threads:
                builder.line("holds = bool(False)")
                with builder.block(f"for i in range({term.threads}):"):
                    builder.line(f"holds = holds or {self._column(builder, name, ' + i')} != 0.0")
            else:
                builder.line(f"holds = {self._value(builder, term)}")
            builder.line(f"{state}.termination_terms[env, {index}] = holds")
            flag = "is_time_out" if self._cfg[name].time_out else "is_terminal"
            builder.line(f"{flag} = {flag} or holds")
        builder.comment("flags, which exclude each other")
        builder.line(f"{state}.terminated[env] = is_terminal")
        builder.line(f"{state}.truncated[env] = is_time_out and not is_terminal")
        builder.line(f"{state}.reset_mask[env] = is_time_out or is_terminal")

    def _value(self, builder: KernelBuilder, term: Term) -> str:
        if term.call is None:
            return f"{self._column(builder, term.name)} != 0.0"
        return term.call.expression(builder)

    def _make_term(self, name: str, cfg: TerminationTermCfg, instance: Any = None) -> Term:
        if name in _LOGGED or (name == "time_out" and not cfg.time_out):
            hint = "another name" if name in _LOGGED else "another name, or time_out=True"
            raise ConfigError(f"terminations.{name}: the log has an entry of that name; allowed: {hint}")
        term = super()._make_term(name, cfg, instance)
        if term.call is not None and (kind := return_type_of(term.call.twin.func)) is not bool:
            raise ConfigError(f"{term.where}: the Warp form returns {describe_return(kind)}; allowed: bool")
        return term

    def _is_compiled_change(self, name: str, old: TerminationTermCfg, new: TerminationTermCfg) -> bool:
        return old.time_out != new.time_out

    def _compute_torch(self) -> None:
        assert self.columns is not None
        allowed = f"a tensor of shape ({self.env.num_envs},) and type torch.bool"
        for term in self.terms.values():
            if not term.uses_warp:
                self.columns.write(term, term.torch(), allowed, (torch.bool,))
