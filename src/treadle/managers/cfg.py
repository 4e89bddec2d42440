"""Typed configuration of the managers' terms, in the field's vocabulary."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal

from treadle._checks import choice_problems, is_finite
from treadle._frozen import thawed_value
from treadle.managers.modifiers import ModifierCfg
from treadle.managers.noise import NoiseCfg, NoiseModelCfg
from treadle.managers.scene_entity import Internal, SceneEntityCfg

__all__ = [
    "ActionTermCfg",
    "CommandTermCfg",
    "CurriculumTermCfg",
    "EventTermCfg",
    "ObservationGroupCfg",
    "ObservationTermCfg",
    "RecorderTermCfg",
    "RecordingCfg",
    "RewardTermCfg",
    "TermCfg",
    "TerminationTermCfg",
    "name_problems",
    "pairs_of",
    "terms_problems",
]


def pairs_of(terms: Any) -> Iterable[tuple[str, Any]]:
    """Return name and configuration of each term, or group of terms, of a dictionary or a dataclass."""
    return terms.items() if isinstance(terms, Mapping) else [(f.name, getattr(terms, f.name)) for f in fields(terms)]


def name_problems(name: str, where: str) -> Iterator[str]:
    """Yield one sentence for the name of a term that can't be part of a kernel's text."""
    if not name.isidentifier() or keyword.iskeyword(name):
        yield f"{where} has the name {name!r}; allowed: letters, digits and _, no digit first, no keyword of Python"


def terms_problems(terms: Any, where: str) -> Iterator[str]:
    """Yield one sentence for each value of terms, or of groups of them, that is not allowed. ``None`` is none.

    Args:
        terms: Configurations by name, or a dataclass with a field for each.
        where: Path of the terms in the configuration.
    """
    for name, term in pairs_of(terms):
        yield from name_problems(name, where)
        if term is not None:
            yield from term.problems(f"{where}.{name}")


@dataclass(kw_only=True)
class TermCfg:
    """A function with its parameters."""

    func: Callable[..., Any]
    """A function ``f(env, **params)``, a class derived from :class:`ManagerTermBase`, or a Warp term alone."""
    params: dict[str, Any] = field(default_factory=dict)
    """Parameters by name; the others take the defaults of the function's signature."""
    twin: Internal = field(default=None, repr=False, compare=False, metadata={"stored": False})
    """Warp form of ``func``; ``None`` takes the one that :func:`treadle.managers.warp_twin` declared for it, and
    ``"torch"`` runs ``func`` in torch between graphs, where the environment allows torch terms."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        values = {item.name: thawed_value(getattr(self, item.name), memo) for item in fields(self)}
        return type(self)(**values)

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        if not callable(self.func):
            yield f"{where}.func is {self.func!r}; allowed: a function or a class"
        for name, value in self.params.items():
            place = f"{where}.params[{name!r}]"
            if isinstance(value, SceneEntityCfg):
                yield from value.problems(place)
            elif name.endswith("_range") or name == "bounds":
                yield from _reversed_ranges(value, place)
        if isinstance(self.func, type) and hasattr(self.func, "param_problems"):
            yield from (f"{where}: {problem}" for problem in self.func.param_problems(self.params))


def _reversed_ranges(value: Any, where: str) -> Iterator[str]:
    """Yield one sentence for each pair of numbers whose lower end is not the first."""
    for key, item in value.items() if isinstance(value, Mapping) else [("", value)]:
        if isinstance(item, tuple | list) and len(item) == 2 and all(isinstance(end, int | float) for end in item):
            if not item[0] <= item[1]:
                place = f"{where}[{key!r}]" if key else where
                yield f"{place} is {tuple(item)}; allowed: two numbers, the lower end first"


@dataclass(kw_only=True)
class RewardTermCfg(TermCfg):
    """A reward term: ``f(env, **params)`` returns float, shape (num_envs,)."""

    weight: float = 1.0
    """The term counts ``weight * value * step_dt``; where the weight is 0, the term is not computed."""

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        yield from super().problems(where)
        if not is_finite(self.weight):
            yield f"{where}.weight is {self.weight!r}; allowed: a finite number"


@dataclass(kw_only=True)
class TerminationTermCfg(TermCfg):
    """A termination term: ``f(env, **params)`` returns bool, shape (num_envs,)."""

    time_out: bool = False
    """Whether the term cuts the episode short rather than ending it in a terminal state. It has to where the function
    has an attribute ``needs_time_out`` that holds, as one that reads the episode length should."""

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        yield from super().problems(where)
        if getattr(self.func, "needs_time_out", False) and not self.time_out:
            name = getattr(self.func, "__name__", repr(self.func))
            yield f"{where}.time_out is {self.time_out}; allowed with {name}: True, as its end is no terminal state"


@dataclass(kw_only=True)
class ObservationTermCfg(TermCfg):
    """An observation term: ``f(env, **params)`` returns float, shape (num_envs,) or (num_envs, size).

    Order of operations: term, modifiers, noise, clip, scale, delay, history.
    """

    modifiers: tuple[ModifierCfg, ...] = ()
    """Applied first, in order."""
    noise: NoiseCfg | NoiseModelCfg | None = None
    """Applied where the group has ``enable_corruption``."""
    clip: tuple[float, float] | None = None
    """Lower and upper bound."""
    scale: float | tuple[float, ...] | None = None
    """Factor, one for all or one per column."""
    delay_min_lag: int = 0
    """Least delay in environment steps. Each environment draws its delay anew at each step, uniformly."""
    delay_max_lag: int = 0
    """Largest delay in environment steps; 0 for none."""
    history_length: int = 0
    """Number of past values that are observed, the newest last; 0 for the current value alone. After a reset the
    history is filled with the first value."""
    flatten_history_dim: bool = True
    """Whether the history of a term lies in one row of columns, rather than in a dimension of its own."""

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        yield from super().problems(where)
        if self.clip is not None and not (is_finite(*self.clip) and self.clip[0] <= self.clip[1]):
            yield f"{where}.clip is {self.clip}; allowed: two finite numbers, the lower end first"
        scales = self.scale if isinstance(self.scale, tuple) else (1.0 if self.scale is None else self.scale,)
        if not is_finite(*scales):
            yield f"{where}.scale is {self.scale}; allowed: finite numbers"
        if not 0 <= self.delay_min_lag <= self.delay_max_lag <= 1000:
            lags = (self.delay_min_lag, self.delay_max_lag)
            yield f"{where}.delay_min_lag and delay_max_lag are {lags}; allowed: 0 to 1000 steps, the least first"
        if not 0 <= self.history_length <= 1000:
            yield f"{where}.history_length is {self.history_length}; allowed: 0 to 1000"
        for index, modifier in enumerate(self.modifiers):
            yield from modifier.problems(f"{where}.modifiers[{index}]")
        if self.noise is not None:
            yield from self.noise.problems(f"{where}.noise")


@dataclass(kw_only=True)
class ObservationGroupCfg:
    """A group of observation terms, which a learner sees as one input."""

    terms: dict[str, ObservationTermCfg | None] = field(default_factory=dict)
    """Terms by name, in the order of their columns. One that is ``None`` is left out."""
    concatenate_terms: bool = True
    """Whether the group is one tensor, shape (num_envs, size), rather than one tensor per term."""
    enable_corruption: bool = False
    """Whether noise is applied."""
    history_length: int | None = None
    """Overrides ``history_length`` of all terms."""
    flatten_history_dim: bool = True
    """Overrides ``flatten_history_dim`` of all terms where ``history_length`` is given. A group whose history is not
    flattened has shape (num_envs, history_length, size)."""

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        if all(term is None for _, term in pairs_of(self.terms)):
            yield f"{where}.terms is empty; allowed: at least one term"
        if self.history_length is not None and not 0 <= self.history_length <= 1000:
            yield f"{where}.history_length is {self.history_length}; allowed: 0 to 1000, or None"
        if self.history_length is None and not self.flatten_history_dim:
            yield f"{where}.flatten_history_dim is False; allowed: with history_length, or that of each term"
        yield from terms_problems(self.terms, f"{where}.terms")


@dataclass(kw_only=True)
class EventTermCfg(TermCfg):
    """An event term: ``f(env, env_mask, **params)``, or ``f(env, env_ids, **params)``, which synchronizes."""

    mode: Literal["prestartup", "startup", "reset", "interval"] = "reset"
    """When it happens: before the simulation starts, once, at each reset, or at intervals."""
    interval_range_s: tuple[float, float] | None = None
    """Mode ``interval``: range of the time between two events [s]."""
    is_global_time: bool = False
    """Mode ``interval``: whether all environments share one timer. One of their own is drawn anew at a reset."""
    min_step_count_between_reset: int = 0
    """Mode ``reset``: least number of environment steps between two events of an environment."""

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        yield from super().problems(where)
        modes = ("prestartup", "startup", "reset", "interval")
        if self.mode not in modes:
            yield f"{where}.mode is {self.mode!r}; allowed: {', '.join(modes)}"
        interval = self.interval_range_s
        if self.mode == "interval" and (
            interval is None or not (is_finite(*interval) and 0.0 < interval[0] <= interval[1])
        ):
            yield f"{where}.interval_range_s is {interval}; allowed: two times above 0 s, the shorter first"
        if not 0 <= self.min_step_count_between_reset < 2**31:
            yield f"{where}.min_step_count_between_reset is {self.min_step_count_between_reset}; allowed: at least 0"


@dataclass(kw_only=True)
class CurriculumTermCfg(TermCfg):
    """A curriculum term: ``f(env, env_mask, **params)``, called before each step; what it returns is logged."""


@dataclass(kw_only=True)
class ActionTermCfg:
    """Base of the action terms' configurations. ``class_type`` names the class that computes it."""

    class_type: ClassVar[Any]
    """Class derived from :class:`ActionTerm`."""
    asset_name: str = "robot"
    """Articulation that the actions move."""

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        yield from ()


@dataclass(kw_only=True)
class CommandTermCfg:
    """Base of the command terms' configurations. ``class_type`` names the class that computes it."""

    class_type: ClassVar[Any]
    """Class derived from :class:`CommandTerm`."""
    resampling_time_range: tuple[float, float] = (1e9, 1e9)
    """Range of the time after which a command is drawn anew [s]."""

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        times = self.resampling_time_range
        if not (is_finite(*times) and 0.0 < times[0] <= times[1]):
            yield f"{where}.resampling_time_range is {times}; allowed: two times above 0 s, the shorter first"


@dataclass(kw_only=True)
class RecordingCfg:
    """Where recorder terms write to, and what."""

    path: str = "recording.hdf5"
    """HDF5 file; one that exists is continued."""
    export: Literal["all", "succeeded"] = "all"
    """Which episodes are written."""
    success_term: str | None = None
    """Termination term that holds at the end of an episode that succeeded."""

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        yield from choice_problems(self, f"{where}.")
        if not self.path:
            yield f"{where}.path is empty; allowed: a file"
        if self.export == "succeeded" and self.success_term is None:
            yield f"{where}.success_term is None; allowed with export 'succeeded': the name of a termination term"


@dataclass(kw_only=True)
class RecorderTermCfg:
    """Base of the recorder terms' configurations. ``class_type`` names the class that records."""

    class_type: ClassVar[Any]
    """Class derived from :class:`RecorderTerm`."""

    def problems(self, where: str) -> Iterator[str]:
        """Yield one sentence for each value that is not allowed."""
        yield from ()
