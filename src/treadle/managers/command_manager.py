"""Commands: targets that the environment gives to the policy."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import torch
import warp as wp

from treadle.assets.articulation_data import TorchViews
from treadle.errors import ConfigError, UnknownNameError
from treadle.launch import Stage
from treadle.managers.cfg import CommandTermCfg
from treadle.managers.env_state import STEPPING
from treadle.managers.kernel_builder import KernelBuilder
from treadle.managers.manager import TORCH_CODE, iterate_terms
from treadle.managers.params import DeviceParams
from treadle.managers.twins import find_twin
from treadle.managers.warp_call import WarpCall

__all__ = ["CommandManager", "CommandState", "CommandTerm"]


@wp.struct
class CommandState:
    """A command as one argument of a kernel."""

    command: wp.array2d[float]
    """The command, shape (num_envs, size)."""
    time_left: wp.array[float]
    """Time until the command is drawn anew [s]."""
    counter: wp.array[int]
    """How often the command was drawn in the episode, the first time included."""


class CommandTerm:
    """A command that is drawn at a reset and at intervals, and updated at each step.

    A subclass implements the methods with an underscore in torch. Its Warp form is the function that updates one
    environment, with the methods ``resample`` and ``metrics``; these take attributes of the term as arguments.

    Args:
        cfg: Configuration of the term.
        env: The environment.
        size: Columns of the command.
        metrics: Names of the metrics.
    """

    device_fields: ClassVar[tuple[str, ...]] = ("resampling_time_range",)
    """Fields of the configuration that may change while the environment runs, and that lie in device memory."""
    compiled_fields: ClassVar[tuple[str, ...]] = ()
    """Fields that may change while the environment runs, and that are compiled in. All others are refused."""

    def __init__(self, cfg: CommandTermCfg, env: Any, size: int, metrics: tuple[str, ...] = ()):
        self.cfg = cfg
        self.env = env
        num_envs, device = env.num_envs, env.device
        self.torch = TorchViews(self)
        self.command_buffer = wp.zeros((num_envs, size), dtype=float, device=device)
        self.time_left = wp.zeros(num_envs, dtype=float, device=device)
        self.counter = wp.zeros(num_envs, dtype=int, device=device)
        self.metric_names = metrics
        self.metrics = wp.zeros((num_envs, max(len(metrics), 1)), dtype=float, device=device)
        """Metrics of the episode, float, shape (num_envs, num_metrics)."""
        self.state = CommandState()
        self.state.command, self.state.time_left, self.state.counter = self.command_buffer, self.time_left, self.counter

    @property
    def command(self) -> torch.Tensor:
        """The command, float, shape (num_envs, size)."""
        return self.torch.command_buffer

    def update(self, cfg: Any) -> None:
        """Take another configuration, of which :attr:`device_fields` and :attr:`compiled_fields` may differ."""
        self.cfg = cfg

    def _resample_command(self, env_mask: torch.Tensor) -> None:
        """Draw the command anew in the masked environments, bool, shape (num_envs,)."""
        raise NotImplementedError

    def _update_command(self) -> None:
        """Change the command by the state, in all environments."""

    def _update_metrics(self) -> None:
        """Add the step to :attr:`metrics`, in all environments."""


class CommandManager:
    """Draws, updates and measures the commands.

    Args:
        cfg: Terms by name.
        env: The environment.

    Raises:
        ConfigError: A term can't be made; the problems of all are reported together.
    """

    kind: ClassVar[str] = "commands"

    def __init__(self, cfg: Mapping[str, CommandTermCfg | None], env: Any):
        self.env = env
        self.scope = env.scope.child(self.kind)
        self.terms: dict[str, CommandTerm] = {}
        problems = []
        for name, term in iterate_terms(cfg):
            try:
                self.terms[name] = term.class_type(copy.deepcopy(term), env)
            except ConfigError as error:
                problems.append(f"commands.{name}: {error}")
        if problems:
            raise ConfigError.from_problems(problems)

    def make(self) -> None:
        """Find the Warp forms of the terms."""
        self.params = DeviceParams("command_params", self.env.device)
        self._times = {name: self.params.add(term.cfg.resampling_time_range) for name, term in self.terms.items()}
        self._calls = {name: call for name, term in self.terms.items() if (call := self._make_call(name, term))}

    @property
    def active_terms(self) -> list[str]:
        """Names of the terms, in order."""
        return list(self.terms)

    @property
    def metrics(self) -> dict[str, tuple[CommandTerm, int]]:
        """Term and column of each metric, by its name in the log."""
        return {
            f"Metrics/{name}/{metric}": (term, column)
            for name, term in self.terms.items()
            for column, metric in enumerate(term.metric_names)
        }

    def get_term(self, name: str) -> CommandTerm:
        """Return a term.

        Raises:
            UnknownNameError: There is no such term.
        """
        if name not in self.terms:
            raise UnknownNameError("term of commands", name, self.terms)
        return self.terms[name]

    def get_term_cfg(self, name: str) -> CommandTermCfg:
        """Return a copy of a term's configuration, for :meth:`set_term_cfg`.

        Raises:
            UnknownNameError: There is no such term.
        """
        return copy.deepcopy(self.get_term(name).cfg)

    def set_term_cfg(self, name: str, cfg: CommandTermCfg) -> None:
        """Change a term while the environment runs. Resampling times and ranges go to device memory.

        What is compiled in makes this manager's kernels anew, once. Equal values change nothing. An entity or a body is
        refused, since other terms of the environment may have taken it over. A change that is refused leaves all as it
        was.

        Raises:
            UnknownNameError: There is no such term.
            ConfigError: A value is not allowed, or may not change while the environment runs.
        """
        term = self.get_term(name)
        where = f"commands.{name}"
        if type(cfg) is not type(term.cfg):
            raise ConfigError(f"{where} is a {type(cfg).__name__}; allowed now: a {type(term.cfg).__name__}")
        if problems := [*cfg.problems(where), *_fixed_problems(term, cfg, where)]:
            raise ConfigError.from_problems(problems)
        if cfg == term.cfg:
            return
        old, cfg = term.cfg, copy.deepcopy(cfg)
        self._take(name, cfg)
        if any(getattr(cfg, field) != getattr(old, field) for field in term.compiled_fields):
            before = dict(vars(self))
            try:
                self.env.rebuild(self, f"{where} changed")
            except ConfigError:
                vars(self).update(before)
                self._take(name, old)
                raise

    def _take(self, name: str, cfg: CommandTermCfg) -> None:
        self.params.set(self._times[name], cfg.resampling_time_range)
        self.terms[name].update(cfg)

    def get_command(self, name: str) -> torch.Tensor:
        """Return the command of a term, float, shape (num_envs, size).

        Raises:
            UnknownNameError: There is no such term.
        """
        return self.get_term(name).command

    def uses_warp(self, name: str) -> bool:
        """Return whether a term is computed by its Warp form."""
        return name in self._calls

    def stages(self) -> list[Stage]:
        """Return the stage of the terms that are computed in torch."""
        if len(self._calls) == len(self.terms):
            return []
        return [Stage("commands in torch", self._compute_torch, TORCH_CODE)]

    def write(self, builder: KernelBuilder) -> None:
        """Write the commands of one environment: a new one at a reset or when its time is up, else an update."""
        state = builder.argument("state", self.env.state)
        for name, call in self._calls.items():
            term = self.terms[name]
            time_left = builder.argument(f"{name}_time_left", term.time_left)
            counter = builder.argument(f"{name}_counter", term.counter)
            params, first = builder.params(self.params), self._times[name]
            builder.comment(f"command {name}")
            builder.line("draw = bool(False)")
            with builder.block(f"if {state}.reset_mask[env]:"):
                builder.line("draw = True")
                builder.line(f"{counter}[env] = 0")
                if term.metric_names:
                    metrics = builder.argument(f"{name}_metrics", term.metrics)
                    with builder.block(f"for i in range({len(term.metric_names)}):"):
                        builder.line(f"{metrics}[env, i] = 0.0")
            with builder.block(f"elif {state}.phase[env] == {STEPPING}:"):
                if "metrics" in call.twin.methods:
                    builder.line(call.expression(builder, call.twin.methods["metrics"]))
                builder.line(f"{time_left}[env] = {time_left}[env] - {state}.step_dt")
                builder.line(f"draw = {time_left}[env] < 1.0e-6")
            with builder.block("if draw:"):
                builder.line(f"rng = {state}.random_state[env]")
                builder.line(f"{time_left}[env] = wp.randf(rng, {params}[{first}], {params}[{first + 1}])")
                builder.line(f"{state}.random_state[env] = rng")
                builder.line(call.expression(builder, call.twin.methods["resample"]))
                builder.line(f"{counter}[env] = {counter}[env] + 1")
            builder.line(call.expression(builder))

    def _make_call(self, name: str, term: CommandTerm) -> WarpCall | None:
        twin = find_twin(type(term)) if self.env.task_frontend == "warp" else None
        if twin is None:
            return None
        return WarpCall(twin, {}, self.env, f"commands.{name}", self.params, name, term)

    def _compute_torch(self) -> None:
        mask = self.env.reset_mask
        stepping = self.env.buffers.torch.phase == STEPPING
        for name, term in self.terms.items():
            if name not in self._calls:
                self._compute_term(term, mask, stepping & ~mask)

    def _compute_term(self, term: CommandTerm, mask: torch.Tensor, stepping: torch.Tensor) -> None:
        views = term.torch
        views.counter.masked_fill_(mask, 0)
        before = views.metrics.clone()
        term._update_metrics()
        views.metrics.copy_(torch.where(stepping[:, None], views.metrics, before).masked_fill(mask[:, None], 0.0))
        views.time_left.copy_(torch.where(stepping, views.time_left - self.env.step_dt, views.time_left))
        draw = mask | (stepping & (views.time_left < 1.0e-6))
        times = self.env.rand(1, *term.cfg.resampling_time_range, mask=draw)[:, 0]
        views.time_left.copy_(torch.where(draw, times, views.time_left))
        term._resample_command(draw)
        views.counter.add_(draw)
        with self.env.only_observed(term):
            term._update_command()


def _fixed_problems(term: CommandTerm, cfg: CommandTermCfg, where: str) -> Iterator[str]:
    """Yield one sentence for each field that differs and may not change while the environment runs."""
    free = {*term.device_fields, *term.compiled_fields}
    for field in dataclasses.fields(cfg):
        value, current = getattr(cfg, field.name), getattr(term.cfg, field.name)
        if field.name not in free and value != current:
            yield f"{where}.{field.name} is {value!r}; allowed while the environment runs: {current!r}"
