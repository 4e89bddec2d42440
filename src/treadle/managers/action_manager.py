"""Actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import warp as wp

from treadle.assets.articulation_data import torch_view
from treadle.errors import ConfigError
from treadle.launch import Stage
from treadle.managers.cfg import ActionTermCfg
from treadle.managers.kernel_builder import KernelBuilder
from treadle.managers.manager import TORCH_CODE, iterate_terms
from treadle.managers.params import DeviceParams
from treadle.managers.twins import WarpTwin, find_twin
from treadle.managers.warp_call import WarpCall

__all__ = ["ActionManager", "ActionTerm"]


class ActionTerm:
    """Turns some columns of the actions into targets of an articulation.

    A subclass computes :attr:`processed_actions` and sets the targets in :meth:`process_actions`; its Warp form does
    the same for one environment, from ``raw: wp.array[float]``, its columns of the actions, and ``processed``, and from
    attributes of the term.

    Args:
        cfg: Configuration of the term.
        env: The environment.
    """

    action_dim: int
    """Number of columns."""

    def __init__(self, cfg: ActionTermCfg, env: Any):
        self.cfg = cfg
        self.env = env
        self.asset = env.scene[cfg.asset_name]
        self.asset_state = self.asset.state

    def allocate(self) -> None:
        """Make the buffer of the processed actions, once :attr:`action_dim` is known."""
        self.processed = wp.zeros((self.env.num_envs, self.action_dim), dtype=float, device=self.env.device)
        self.processed_actions = torch_view(self.processed)
        """Processed actions, float, shape (num_envs, action_dim)."""

    def process_actions(self, actions: torch.Tensor) -> None:
        """Compute the processed actions and set the targets, which hold for the environment step.

        Args:
            actions: Raw actions of the term, float, shape (num_envs, action_dim).
        """
        raise NotImplementedError

    def apply_actions(self) -> None:
        """Set targets before each physics step; for terms whose targets depend on the state then."""

    def reset(self, env_mask: torch.Tensor) -> None:
        """Restart the state of the term in the masked environments, bool, shape (num_envs,)."""


class ActionManager:
    """Splits the actions into the columns of its terms, and lets these set the targets.

    Args:
        cfg: Terms by name, in the order of their columns.
        env: The environment.

    Raises:
        ConfigError: A term can't be made; the problems of all are reported together.
    """

    kind: ClassVar[str] = "actions"

    def __init__(self, cfg: Mapping[str, ActionTermCfg], env: Any):
        self.env = env
        self.scope = env.scope.child(self.kind)
        self._cfg = dict(iterate_terms(cfg))
        self.terms: dict[str, ActionTerm] = {}
        self._first: dict[str, int] = {}
        problems = []
        for name, term in self._cfg.items():
            try:
                self.terms[name] = made = term.class_type(term, env)
                made.allocate()
            except ConfigError as error:
                problems.append(f"actions.{name}: {error}")
                continue
            self._first[name] = self.total_action_dim - made.action_dim
        if problems:
            raise ConfigError.from_problems(problems)

    def make(self) -> None:
        """Find the Warp forms of the terms."""
        self.params = DeviceParams("action_params", self.env.device)
        self._calls = {name: call for name, term in self.terms.items() if (call := self._make_call(name, term))}
        view = self.env.buffers.torch.actions
        self._raw_views = {
            name: view[:, self._first[name] : self._first[name] + term.action_dim] for name, term in self.terms.items()
        }

    @property
    def active_terms(self) -> list[str]:
        """Names of the terms, in order."""
        return list(self.terms)

    @property
    def total_action_dim(self) -> int:
        """Number of columns of all terms."""
        return sum(term.action_dim for term in self.terms.values())

    @property
    def action_term_dim(self) -> list[int]:
        """Number of columns of each term."""
        return [term.action_dim for term in self.terms.values()]

    @property
    def action(self) -> torch.Tensor:
        """Actions as the learner gave them; zero after a reset. Float, shape (num_envs, total_action_dim)."""
        return self.env.buffers.torch.actions

    @property
    def prev_action(self) -> torch.Tensor:
        """Actions of the step before; zero after a reset. Float, shape (num_envs, total_action_dim)."""
        return self.env.buffers.torch.previous_actions

    def get_term(self, name: str) -> ActionTerm:
        """Return a term.

        Raises:
            UnknownNameError: There is no such term.
        """
        from treadle.errors import UnknownNameError

        if name not in self.terms:
            raise UnknownNameError("term of actions", name, self.terms)
        return self.terms[name]

    def columns_of(self, name: str) -> slice:
        """Return the columns of a term."""
        return slice(self._first[name], self._first[name] + self.get_term(name).action_dim)

    def uses_warp(self, name: str) -> bool:
        """Return whether a term is computed by its Warp form."""
        return name in self._calls

    def stages(self) -> list[Stage]:
        """Return the stage of the terms that are computed in torch."""
        if len(self._calls) == len(self.terms):
            return []
        return [Stage("actions in torch", self._process_torch, TORCH_CODE)]

    def write(self, builder: KernelBuilder) -> None:
        """Write the processing of one environment's actions."""
        actions = builder.argument("actions", self.env.buffers.actions)
        for name, call in self._calls.items():
            term, first = self.terms[name], self._first[name]
            last = first + term.action_dim
            builder.comment(f"{name}: columns {first} to {last - 1}")
            processed = builder.argument(f"{name}_processed", term.processed)
            builder.line(call.expression(builder, raw=f"{actions}[env, {first}:{last}]", processed=f"{processed}[env]"))

    def write_apply(self, builder: KernelBuilder) -> None:
        """Write what some terms do before each physics step."""
        for name, call in self._calls.items():
            if (apply := call.twin.methods.get("apply")) is not None:
                processed = builder.argument(f"{name}_processed", self.terms[name].processed)
                builder.comment(name)
                builder.line(call.expression(builder, apply, processed=f"{processed}[env]"))

    def write_reset(self, builder: KernelBuilder) -> None:
        """Write the reset of the terms that have a state."""
        for name, call in self._calls.items():
            if call.twin.reset is not None:
                builder.comment(f"actions: {name}")
                builder.line(call.expression(builder, call.twin.reset))

    @property
    def torch_apply_terms(self) -> list[ActionTerm]:
        """Terms computed in torch that act before each physics step."""
        return [
            term
            for name, term in self.terms.items()
            if name not in self._calls and type(term).apply_actions is not ActionTerm.apply_actions
        ]

    @property
    def has_torch_state(self) -> bool:
        """Whether a term that is computed in torch has a state."""
        return any(
            name not in self._calls and type(term).reset is not ActionTerm.reset for name, term in self.terms.items()
        )

    def reset_torch(self, env_mask: torch.Tensor) -> None:
        """Reset the terms that are computed in torch."""
        for name, term in self.terms.items():
            if name not in self._calls:
                term.reset(env_mask)

    def _make_call(self, name: str, term: ActionTerm) -> WarpCall | None:
        twin: WarpTwin | None = find_twin(type(term)) if self.env.task_frontend == "warp" else None
        if twin is None:
            return None
        return WarpCall(twin, {}, self.env, f"actions.{name}", self.params, name, term, given=("raw", "processed"))

    def _process_torch(self) -> None:
        for name, term in self.terms.items():
            if name not in self._calls:
                term.process_actions(self._raw_views[name])
