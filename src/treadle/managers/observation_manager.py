"""Observations."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import torch

from treadle.errors import ConfigError, UnknownNameError
from treadle.managers.cfg import ObservationGroupCfg, ObservationTermCfg
from treadle.managers.kernel_builder import KernelBuilder
from treadle.managers.manager import Manager, describe, iterate_terms
from treadle.managers.observation_pipeline import ObservationPipeline
from treadle.managers.term import Term
from treadle.managers.twins import describe_return, return_type_of

__all__ = ["ObservationGroup", "ObservationManager"]


class ObservationManager:
    """The observation groups of an environment.

    Args:
        cfg: Groups by name.
        env: The environment.
    """

    kind: ClassVar[str] = "observations"

    def __init__(self, cfg: Mapping[str, ObservationGroupCfg | None], env: Any):
        self.groups = {name: ObservationGroup(name, group, env) for name, group in iterate_terms(cfg)}

    def make(self) -> None:
        """Make the terms of all groups, and measure them."""
        problems = []
        for group in self.groups.values():
            try:
                group.make()
            except ConfigError as error:
                problems.append(str(error))
        if problems:
            raise ConfigError.from_problems(problems)

    @property
    def active_terms(self) -> dict[str, list[str]]:
        """Names of the terms of each group, in order."""
        return {name: group.active_terms for name, group in self.groups.items()}

    def get_term_cfg(self, group: str, name: str) -> ObservationTermCfg:
        """Return a copy of a term's configuration, for :meth:`set_term_cfg`.

        Raises:
            UnknownNameError: There is no such group or term.
        """
        return self._group(group).get_term_cfg(name)

    def set_term_cfg(self, group: str, name: str, cfg: ObservationTermCfg) -> None:
        """Change a term while the environment runs; see :meth:`Manager.set_term_cfg`.

        Raises:
            UnknownNameError: There is no such group or term.
            ConfigError: A value is not allowed.
        """
        self._group(group).set_term_cfg(name, cfg)

    def _group(self, name: str) -> ObservationGroup:
        if name not in self.groups:
            raise UnknownNameError("observation group", name, self.groups)
        return self.groups[name]

    @property
    def group_obs_dim(self) -> dict[str, int]:
        """Columns of each group's buffer."""
        return {name: group.size for name, group in self.groups.items()}


class ObservationGroup(Manager[ObservationTermCfg]):
    """The terms of one group, which lie side by side in the columns of ``buffers.observations[name]``.

    Args:
        name: Name of the group.
        cfg: Its configuration.
        env: The environment.
    """

    def __init__(self, name: str, cfg: ObservationGroupCfg, env: Any):
        self.name = name
        self.kind = f"observations.{name}.terms"  # type: ignore[misc]
        self.cfg = copy.deepcopy(cfg)
        self.variable = name if name.isidentifier() else "group"
        super().__init__(cfg.terms, env)

    def make(self) -> None:
        """Make the terms from their configurations, and measure how many columns each has."""
        terms, widths = dict(getattr(self, "terms", {})), getattr(self, "widths", {})
        pipelines: dict[str, ObservationPipeline] = getattr(self, "pipelines", {})
        super().make()
        kept = [name for name, term in self.terms.items() if name in terms and terms[name].cfg is term.cfg]
        self.widths = {n: widths[n] if n in kept else self._measure(term) for n, term in self.terms.items()}
        self._make_columns({name: self.widths[name] for name, term in self.terms.items() if term.reads_columns})
        histories = {max(self._steps(name), 1) for name in self.terms}
        flat = {self._is_flat(name) for name in self.terms}
        interleaved = self.cfg.concatenate_terms and False in flat and histories != {1}
        if interleaved and (len(histories) > 1 or len(flat) > 1):
            raise ConfigError(
                f"observations.{self.name}: history lengths are {sorted(histories)}, flatten_history_dim is "
                f"{' and '.join(map(str, sorted(flat)))}; allowed: one of each for all terms of a concatenated group "
                f"whose history is not flattened"
            )
        self.history = max(histories) if interleaved else 1
        row = sum(self.widths.values())
        self.pipelines = {}
        first = 0
        for name, width in self.widths.items():
            steps = max(self._steps(name), 1)
            stride = row if interleaved else width
            cfg = replace(self._cfg[name], noise=self._cfg[name].noise if self.cfg.enable_corruption else None)
            self.pipelines[name] = ObservationPipeline(name, cfg, width, first, steps, stride, self)
            if name in pipelines:
                self.pipelines[name].go_on_from(pipelines[name])
            first += width if interleaved else width * steps
        self.size = row * self.history if interleaved else first

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the group's tensor in one environment."""
        return (self.history, self.size // self.history) if self.history > 1 else (self.size,)

    def term_shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a term's tensor in one environment, where the group is not concatenated."""
        steps, width = max(self._steps(name), 1), self.widths[name]
        return (width * steps,) if self._is_flat(name) or steps == 1 else (steps, width)

    def arrange(self, values: torch.Tensor) -> Any:
        """Return the rows of the group's buffer as the configuration wants them: one tensor, or one per term."""
        if self.cfg.concatenate_terms:
            return values if self.history == 1 else values.view(-1, *self.shape)
        columns = {n: (p.first, p.first + p.width * p.steps) for n, p in self.pipelines.items()}
        return {
            name: values[:, first:last].reshape(-1, *self.term_shape(name)) for name, (first, last) in columns.items()
        }

    def write(self, builder: KernelBuilder) -> None:
        """Write the terms of one environment into the group's buffer."""
        buffer = builder.argument(self.variable, self.env.buffers.observations[self.name])
        for name, term in self.terms.items():
            pipeline = self.pipelines[name]
            builder.comment(f"{name}: {pipeline.describe()}")
            pipeline.write_shift(builder, buffer)
            self._write_value(builder, buffer, term, pipeline)
            pipeline.write(builder, buffer)

    def _write_value(self, builder: KernelBuilder, buffer: str, term: Term, pipeline: ObservationPipeline) -> None:
        first, width = pipeline.newest, pipeline.width
        if term.call is None or term.threads:
            with builder.block(f"for i in range({width}):"):
                builder.line(f"{buffer}[env, {first} + i] = {self._column(builder, term.name, ' + i')}")
            return
        kind = return_type_of(term.call.twin.func)
        if kind is None:
            builder.line(term.call.expression(builder, out=f"{buffer}[env, {first}:{first + width}]"))
        elif kind is float:
            builder.line(f"{buffer}[env, {first}] = {term.call.expression(builder)}")
        elif kind is bool:
            builder.line(f"{buffer}[env, {first}] = wp.where({term.call.expression(builder)}, 1.0, 0.0)")
        else:
            variable = builder.local(f"{term.name}_value")
            builder.line(f"{variable} = {term.call.expression(builder)}")
            with builder.block(f"for i in range({width}):"):
                builder.line(f"{buffer}[env, {first} + i] = {variable}[i]")

    def _measure(self, term: Term) -> int:
        """Return the number of columns of a term, that of its torch form where it has one."""
        twin = term.twin
        if term.threads:
            return term.threads
        if term.uses_warp and twin is not None:
            kind = return_type_of(twin.func)
            if kind in (float, bool):
                return 1
            if kind is not None and len(getattr(kind, "_shape_", ())) == 1:
                return int(kind._shape_[0])
            if kind is not None:
                found, allowed = describe_return(kind), "float, bool, a vector, nothing"
                raise ConfigError(f"{term.where}: the Warp form returns {found}; allowed: {allowed}")
            if twin.width is not None:
                return twin.width if isinstance(twin.width, int) else int(twin.width(self.env, term.params))
            if term.cfg.func is twin or term.cfg.func is twin.func:
                raise ConfigError(
                    f"{term.where}: the Warp form writes a slice and has no torch form; allowed: one with width="
                )
        with self.env.unchanged(term.instance):
            value = term.torch()
        if not isinstance(value, torch.Tensor) or value.dim() not in (1, 2) or value.shape[0] != self.env.num_envs:
            allowed = f"a tensor of shape ({self.env.num_envs},) or ({self.env.num_envs}, size)"
            raise ConfigError(f"{term.where} returned {describe(value)}; allowed: {allowed}")
        return 1 if value.dim() == 1 else int(value.shape[1])

    def _steps(self, name: str) -> int:
        return self._cfg[name].history_length if self.cfg.history_length is None else self.cfg.history_length

    def _is_flat(self, name: str) -> bool:
        group, term = self.cfg, self._cfg[name]
        return term.flatten_history_dim if group.history_length is None else group.flatten_history_dim

    def _is_compiled_change(self, name: str, old: ObservationTermCfg, new: ObservationTermCfg) -> bool:
        return self.pipelines[name].update(replace(new, noise=new.noise if self.cfg.enable_corruption else None))

    def _compute_torch(self) -> None:
        assert self.columns is not None
        for name, term in self.terms.items():
            if not term.uses_warp:
                width, num_envs = self.widths[name], self.env.num_envs
                with self.env.only_observed(term.instance):
                    value = term.torch()
                self.columns.write(term, value, f"a tensor of shape ({num_envs}, {width})")
