"""Events: what happens at the start, at a reset, or at intervals."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

import torch
import warp as wp

from treadle.assets.articulation_data import torch_view
from treadle.launch import Stage
from treadle.managers.cfg import EventTermCfg
from treadle.managers.env_state import STEPPING
from treadle.managers.kernel_builder import KernelBuilder
from treadle.managers.manager import TORCH_CODE, Manager, check_twin
from treadle.managers.term import Term

__all__ = ["EventManager"]


@wp.kernel(enable_backward=False)
def seed_shared_state(seed: int, random_state_out: wp.array[wp.uint32]) -> None:
    """Give all environments the same random state."""
    env = wp.tid()
    random_state_out[env] = wp.rand_init(seed, -1)


class EventManager(Manager[EventTermCfg]):
    """Runs event terms in the order of the configuration.

    Reset and interval terms of the Warp frontend lie in one kernel as long as no torch term stands between them.
    """

    kind: ClassVar[str] = "events"

    def __init__(self, cfg: Any, env: Any):
        super().__init__(cfg, env)
        self._numbers: dict[str, int] = {}
        self._timers: dict[str, wp.array] = {}
        self._shared: dict[str, bool] = {}
        self._last_resets: dict[str, wp.array] = {}
        self._due: dict[str, wp.array] = {}
        self.shared_random_state = wp.zeros(env.num_envs, dtype=wp.uint32, device=env.device)
        """Random state of timers with ``is_global_time``, the same in all environments."""

    def make(self) -> None:
        """Make the terms from their configurations. Timers that are still needed run on."""
        super().make()
        intervals = {name: term.interval_range_s for name, term in self._cfg.items() if term.mode == "interval"}
        limited = [
            name for name, term in self._cfg.items() if term.mode == "reset" and term.min_step_count_between_reset
        ]
        shared = {name: self._cfg[name].is_global_time for name in intervals}
        for name in {name for name, flag in shared.items() if self._shared.get(name, flag) != flag}:
            del self._timers[name]
        self._shared = shared
        self._numbers = {name: self.params.add(interval or (1.0, 1.0)) for name, interval in intervals.items()}
        self._timers = {
            name: self._kept(self._timers, name, interval[1] if interval else 1.0, float)
            for name, interval in intervals.items()
        }
        self._last_resets = {name: self._kept(self._last_resets, name, -(2**30), int) for name in limited}
        self._due = {name: self._kept(self._due, name, False, wp.bool) for name in (*intervals, *limited)}
        self._due_views = {name: torch_view(array) for name, array in self._due.items()}

    def seed(self, seed: int) -> None:
        """Seed the timers that all environments share."""
        arguments = [seed], [self.shared_random_state]
        wp.launch(seed_shared_state, self.env.num_envs, *arguments, device=self.env.device)

    def _kept(self, arrays: dict[str, wp.array], name: str, value: Any, dtype: Any) -> wp.array:
        """Return the array that a name has already, else a new one with a value in each row."""
        if name in arrays:
            return arrays[name]
        return wp.full(self.env.num_envs, value, dtype=dtype, device=self.env.device)

    def names(self, mode: str) -> list[str]:
        """Return the terms of a mode, in order."""
        return [name for name, term in self._cfg.items() if term.mode == mode]

    def run_once(self, mode: str) -> None:
        """Run the torch forms of a mode in all environments, ``prestartup`` or ``startup``."""
        mask = torch.ones(self.env.num_envs, dtype=torch.bool, device=self.env.device)
        for name in self.names(mode):
            call_with_mask(self.terms[name], mask)
        if changes := self.model_changes(mode):
            self.env.physics.apply_properties(changes)

    def model_changes(self, *modes: str) -> tuple[Any, ...]:
        """Return the kinds of changes that the terms of some modes make to the model, without repetition."""
        terms = [self.terms[name] for mode in modes for name in self.names(mode)]
        changes = [getattr(term.instance or term.cfg.func, "changes", ()) for term in terms]
        return tuple(dict.fromkeys(change for of_term in changes for change in of_term))

    # -- stages -----------------------------------------------------------------------------------------------------

    def segments(self) -> list[tuple[bool, list[str]]]:
        """Return reset and interval terms as runs of neighbours: whether they are Warp terms, and their names."""
        runs: list[tuple[bool, list[str]]] = [(True, [])]
        for name in (*self.names("reset"), *self.names("interval")):
            uses_warp = self.terms[name].uses_warp
            if runs[-1][0] != uses_warp:
                runs.append((uses_warp, []))
            runs[-1][1].append(name)
        return runs

    def write_timers(self, builder: KernelBuilder) -> None:
        """Write which conditional events are due: interval timers, and resets that are not too frequent."""
        state = builder.argument("state", self.env.state)
        for name in self._last_resets:
            self._write_reset_due(builder, name, state)
        for name in self._timers:
            self._write_interval_due(builder, name, state)

    def write_terms(self, builder: KernelBuilder, names: list[str]) -> None:
        """Write the calls of some Warp terms."""
        for name in names:
            term = self.terms[name]
            assert term.call is not None
            builder.comment(f"{name} ({self._cfg[name].mode})")
            with builder.block(f"if {self._condition(builder, name)}:"):
                builder.line(term.call.expression(builder))
                if self._cfg[name].mode == "interval":
                    builder.line(f"{builder.argument('state', self.env.state)}.moved_mask[env] = True")

    def torch_stage(self, names: list[str]) -> Stage:
        """Return the stage of some neighbouring torch terms."""
        return Stage(f"events in torch: {', '.join(names)}", lambda: self._run_torch(names), TORCH_CODE)

    def _run_torch(self, names: list[str]) -> None:
        buffers = self.env.buffers.torch
        for name in names:
            mask = self._due_views.get(name, self.env.reset_mask)
            call_with_mask(self.terms[name], mask, skip_none=True)
            if self._cfg[name].mode == "interval":
                buffers.moved_mask.logical_or_(mask)

    def _condition(self, builder: KernelBuilder, name: str) -> str:
        if name in self._due:
            return f"{builder.argument(f'{name}_due', self._due[name])}[env]"
        return f"{builder.argument('state', self.env.state)}.reset_mask[env]"

    def _write_reset_due(self, builder: KernelBuilder, name: str, state: str) -> None:
        due = builder.argument(f"{name}_due", self._due[name])
        last = builder.argument(f"{name}_last", self._last_resets[name])
        least = self._cfg[name].min_step_count_between_reset
        builder.comment(f"{name}: at most once in {least} steps")
        builder.line(f"{due}[env] = {state}.reset_mask[env] and {state}.common_step[env] - {last}[env] >= {least}")
        with builder.block(f"if {due}[env]:"):
            builder.line(f"{last}[env] = {state}.common_step[env]")

    def _write_interval_due(self, builder: KernelBuilder, name: str, state: str) -> None:
        """Per-environment timers start anew at a reset; shared ones run on, each environment with the same copy."""
        shared = self._cfg[name].is_global_time
        due = builder.argument(f"{name}_due", self._due[name])
        timer = builder.argument(f"{name}_timer", self._timers[name])
        params, first = builder.params(self.params), self._numbers[name]
        random = (
            builder.argument("shared_random_state", self.shared_random_state) if shared else f"{state}.random_state"
        )
        builder.comment(f"{name}: timer {'of all environments' if shared else 'of each environment'}")
        builder.line(f"{due}[env] = False")
        restart = f"{state}.common_step[env] == 0" if shared else f"{state}.reset_mask[env]"
        with builder.block(f"if {restart}:"):
            builder.line(f"{timer}[env] = 0.0")
        with builder.block(f"elif {state}.phase[env] == {STEPPING}:"):
            builder.line(f"{timer}[env] = {timer}[env] - {state}.step_dt")
            builder.line(f"{due}[env] = {timer}[env] < 1.0e-6")
        with builder.block(f"if {due}[env] or {restart}:"):
            builder.line(f"rng = {random}[env]")
            builder.line(f"{timer}[env] = wp.randf(rng, {params}[{first}], {params}[{first + 1}])")
            builder.line(f"{random}[env] = rng")

    def _make_term(self, name: str, cfg: EventTermCfg, instance: Any = None) -> Term:
        skip = ("env", "env_mask", "env_ids")
        term = Term(name, cfg, self.env, f"events.{name}", self.params, skip=skip, instance=instance)
        if cfg.mode in ("reset", "interval"):
            check_twin(term, self.env)
        return term

    def _make_columns(self, widths: Any) -> None:
        """Events return nothing."""

    def _is_compiled_change(self, name: str, old: EventTermCfg, new: EventTermCfg) -> bool:
        if name in self._numbers and new.interval_range_s is not None:
            self.params.set(self._numbers[name], new.interval_range_s)
        fields = ("mode", "is_global_time", "min_step_count_between_reset")
        return any(getattr(old, field) != getattr(new, field) for field in fields)


def call_with_mask(term: Term, mask: torch.Tensor, *, skip_none: bool = False) -> Any:
    """Call a torch event with a mask, or with indices where it asks for ``env_ids``.

    Args:
        term: The event.
        mask: Environments, bool, shape (num_envs,).
        skip_none: Leave the call out where there are no indices.
    """
    func: Callable[..., Any] = term.cfg.func if term.instance is None else term.instance.__call__
    if "env_ids" not in inspect.signature(func).parameters:
        return term.torch(mask)
    env_ids = mask.nonzero().flatten()
    return None if skip_none and not env_ids.numel() else term.torch(env_ids)
