"""Rewards."""

from __future__ import annotations

from typing import Any, ClassVar

from treadle.errors import ConfigError
from treadle.managers.cfg import RewardTermCfg
from treadle.managers.kernel_builder import KernelBuilder
from treadle.managers.manager import Manager
from treadle.managers.term import Term
from treadle.managers.twins import describe_return, return_type_of

__all__ = ["RewardManager"]


class RewardManager(Manager[RewardTermCfg]):
    """Computes ``weight * value * step_dt`` of each term, their sum, and their sums over the episode."""

    kind: ClassVar[str] = "rewards"

    def make(self) -> None:
        """Make the terms from their configurations."""
        super().make()
        self._weights = {name: self.params.add([term.weight]) for name, term in self._cfg.items()}

    def write(self, builder: KernelBuilder) -> None:
        """Write the terms of one environment into ``buffers.reward_terms``."""
        state = builder.argument("state", self.env.state)
        values = builder.argument("reward_terms", self.env.buffers.reward_terms)
        for index, (name, term) in enumerate(self.terms.items()):
            builder.comment(name)
            builder.line(f"weight = {builder.params(self.params)}[{self._weights[name]}]")
            if term.is_stateful and term.uses_warp and not term.threads:
                builder.line(f"value = {self._value(builder, term)}")
                with builder.block("if weight == 0.0:"):
                    builder.line("value = float(0.0)")
            else:
                builder.line("value = float(0.0)")
                with builder.block("if weight != 0.0:"):
                    self._write_value(builder, term)
            builder.line(f"{values}[env, {index}] = weight * value * {state}.step_dt")

    def _write_value(self, builder: KernelBuilder, term: Term) -> None:
        if term.threads:
            with builder.block(f"for i in range({term.threads}):"):
                builder.line(f"value = value + {self._column(builder, term.name, ' + i')}")
        else:
            builder.line(f"value = {self._value(builder, term)}")

    def _value(self, builder: KernelBuilder, term: Term) -> str:
        if term.call is None:
            return self._column(builder, term.name)
        text = term.call.expression(builder)
        return f"wp.where({text}, 1.0, 0.0)" if return_type_of(term.call.twin.func) is bool else text

    def _make_term(self, name: str, cfg: RewardTermCfg, instance: Any = None) -> Term:
        term = super()._make_term(name, cfg, instance)
        if term.call is not None and (kind := return_type_of(term.call.twin.func)) not in (float, bool):
            raise ConfigError(f"{term.where}: the Warp form returns {describe_return(kind)}; allowed: float or bool")
        return term

    def _is_compiled_change(self, name: str, old: RewardTermCfg, new: RewardTermCfg) -> bool:
        self.params.set(self._weights[name], [new.weight])
        return False

    def _compute_torch(self) -> None:
        assert self.columns is not None
        allowed = f"a tensor of shape ({self.env.num_envs},)"
        for name, term in self.terms.items():
            if not term.uses_warp and (self._cfg[name].weight != 0.0 or term.is_stateful):
                self.columns.write(term, term.torch(), allowed)
