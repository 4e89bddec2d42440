"""What the managers share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

import torch
import warp as wp

from treadle.assets.articulation_data import torch_view
from treadle.errors import ConfigError, UnknownNameError
from treadle.launch import Stage
from treadle.managers.cfg import TermCfg, pairs_of, terms_problems
from treadle.managers.kernel_builder import KernelBuilder
from treadle.managers.params import DeviceParams
from treadle.managers.term import Term, as_cfg
from treadle.managers.twins import describe_return, path_of, return_type_of

__all__ = ["TORCH_CODE", "Manager", "TermColumns", "iterate_terms"]

C = TypeVar("C", bound=TermCfg)

TORCH_CODE = "torch code with host control"
"""Why a stage of torch terms is no part of a graph."""


class Manager(Generic[C]):
    """Base of the managers whose terms are functions.

    Terms are held by name, their numbers in device memory, and what torch terms return in a buffer that kernels read.

    Args:
        cfg: Configurations of the terms by name, as a dictionary or as a dataclass with a field per term.
        env: The environment.
    """

    kind: ClassVar[str]
    """Name of the manager's field in the environment's configuration."""
    variable: str
    """Name of the manager in generated kernels."""
    terms: dict[str, Term]
    """The terms that :meth:`make` made."""

    def __init__(self, cfg: Any, env: Any):
        self.env = env
        self.variable = getattr(self, "variable", self.kind)
        self.scope = env.scope.child(self.kind)
        self.params = DeviceParams(f"{self.variable}_params", env.device)
        self.columns: TermColumns | None = None
        self._cfg: dict[str, C] = {name: as_cfg(term) for name, term in iterate_terms(cfg)}

    def make(self) -> None:
        """Make the terms from their configurations, with new device memory.

        Terms whose configurations are the objects that they were made from keep their state.

        Raises:
            ConfigError: Terms can't be made; the problems of all are reported together.
        """
        previous = getattr(self, "terms", {})
        self.params = DeviceParams(f"{self.variable}_params", self.env.device)
        self.terms, errors = {}, []
        for name, cfg in self._cfg.items():
            old = previous.get(name)
            try:
                self.terms[name] = self._make_term(name, cfg, old.instance if old and old.cfg is cfg else None)
            except ConfigError as error:
                errors.append(error)
        if len(errors) == 1:
            raise errors[0]
        if errors:
            raise ConfigError.from_problems(str(error) for error in errors)
        self._make_columns({name: term.threads or 1 for name, term in self.terms.items() if term.reads_columns})

    @property
    def active_terms(self) -> list[str]:
        """Names of the terms, in order."""
        return list(self._cfg)

    def get_term_cfg(self, name: str) -> C:
        """Return a copy of a term's configuration, for :meth:`set_term_cfg`.

        Raises:
            UnknownNameError: There is no such term.
        """
        return as_cfg(self._find(self._cfg, name))

    def set_term_cfg(self, name: str, cfg: C) -> None:
        """Change a term while the environment runs.

        Numbers go to device memory, and no graph is captured again for them. Another function, selection or constant is
        compiled in: this manager's kernels are made anew, and its graphs are captured again, once. What is equal to
        what was there changes nothing.

        Raises:
            UnknownNameError: There is no such term.
            ConfigError: A value is not allowed.
        """
        term: Term = self._find(self.terms, name)
        if problems := list(cfg.problems(f"{self.kind}.{name}")):
            raise ConfigError.from_problems(problems)
        cfg = as_cfg(cfg)
        if cfg.func is not term.cfg.func and cfg.twin is term.cfg.twin:
            cfg.twin = None  # that of the function before
        old = self._cfg[name]
        restore = self._save(term)
        try:
            self._cfg[name] = cfg
            if self._is_compiled_change(name, old, cfg) | term.update(cfg):
                self.env.rebuild(self, f"{self.kind}.{name} changed")
        except Exception:
            self._cfg[name] = old
            restore()
            raise

    def set_terms(self, terms: Any) -> None:
        """Replace the set of terms while the environment runs. Terms that are equal to what was there keep their state.

        The kernels of this manager are made anew, and its graphs are captured again, once; where nothing differs,
        nothing happens. Means of the episode log start anew where the names of its terms change.

        Args:
            terms: Configurations by name, as in the environment's configuration.

        Raises:
            ConfigError: A value is not allowed.
        """
        new = {name: as_cfg(term) for name, term in iterate_terms(terms)}
        if problems := list(terms_problems(new, self.kind)):
            raise ConfigError.from_problems(problems)
        old = self._cfg
        new = {name: old[name] if name in old and old[name] == term else term for name, term in new.items()}
        if list(new) == list(old) and all(new[name] is old[name] for name in new):
            return
        before = dict(vars(self))
        try:
            self._cfg = new
            self.env.rebuild(self, f"{self.kind}: the terms are now {', '.join(new) or 'none'}")
        except Exception:
            vars(self).clear()
            vars(self).update(before)
            raise

    def _save(self, term: Term) -> Callable[[], None]:
        """Return a function that puts the manager and a term back to what they are now, numbers on the device too."""
        before, cfg, params = dict(vars(self)), term.cfg, dict(term.params)

        def restore() -> None:
            vars(self).update(before)
            changed = self._cfg[term.name]
            term.cfg = cfg
            term.params.clear()
            term.params.update(params)
            self._is_compiled_change(term.name, changed, changed)
            if term.call is not None:
                for name, value in cfg.params.items():
                    term.call.set(name, value)

        return restore

    def stages(self) -> list[Stage]:
        """Return the stage of the terms that are computed in torch, empty where there are none."""
        if all(term.uses_warp for term in self.terms.values()):
            return []
        return [Stage(f"{self.kind} in torch", self._compute_torch, TORCH_CODE)]

    def write_reset(self, builder: KernelBuilder) -> None:
        """Write the reset of the Warp terms that have a state."""
        for term in self.terms.values():
            if term.call is not None and term.call.twin.reset is not None:
                builder.comment(f"{self.kind}: {term.name}")
                builder.line(term.call.expression(builder, term.call.twin.reset))

    @property
    def has_torch_state(self) -> bool:
        """Whether a term that is computed in torch has a state."""
        return any(term.is_stateful and not term.uses_warp for term in self.terms.values())

    def reset_torch(self, env_mask: torch.Tensor) -> None:
        """Reset the terms with a state that are computed in torch."""
        for term in self.terms.values():
            if term.instance is not None and not term.uses_warp:
                term.instance.reset(env_mask)

    def _make_term(self, name: str, cfg: C, instance: Any = None) -> Term:
        term = Term(name, cfg, self.env, f"{self.kind}.{name}", self.params, instance=instance)
        check_twin(term, self.env)
        return term

    def _is_compiled_change(self, name: str, old: C, new: C) -> bool:
        """Set the numbers of a term that are no parameters; return whether something compiled in changed."""
        return False

    def _compute_torch(self) -> None:
        """Compute the terms that are computed in torch, into :attr:`columns`."""
        raise NotImplementedError

    def _find(self, terms: Mapping[str, Any], name: str) -> Any:
        if name not in terms:
            raise UnknownNameError(f"term of {self.kind}", name, terms)
        return terms[name]

    def _make_columns(self, widths: Mapping[str, int]) -> None:
        """Make the buffer of the terms that are computed elsewhere, with so many columns each."""
        if widths:
            self.columns = TermColumns(widths, self.env.num_envs, self.env.device)

    def _column(self, builder: KernelBuilder, name: str, offset: str = "") -> str:
        """Return the text of a column of a term that is computed elsewhere."""
        assert self.columns is not None
        array = builder.argument(f"{self.variable}_columns", self.columns.array)
        return f"{array}[env, {self.columns.first[name]}{offset}]"

    @property
    def threaded_terms(self) -> list[str]:
        """Names of the terms that have a kernel of their own."""
        return [name for name, term in self.terms.items() if term.threads]

    def write_thread(self, builder: KernelBuilder, name: str) -> None:
        """Write what one thread of such a term does."""
        call = self.terms[name].call
        assert call is not None
        text, kind = call.expression(builder, thread="thread"), return_type_of(call.twin.func)
        if kind not in (float, bool):
            found, where = describe_return(kind), self.terms[name].where
            raise ConfigError(f"{where}: a thread of the Warp form returns {found}; allowed: float, bool")
        value = f"wp.where({text}, 1.0, 0.0)" if kind is bool else text
        builder.line(f"{self._column(builder, name, ' + thread')} = {value}")


def check_twin(term: Term, env: Any) -> None:
    """Refuse a term without a Warp form where the Warp frontend does not allow torch terms."""
    from treadle.managers.frontend import MissingTwinsError

    if env.task_frontend == "warp" and not term.uses_warp and not env.cfg.allow_torch_terms:
        raise MissingTwinsError.from_problems([f"{term.where}: {path_of(term.cfg.func)} has no Warp form"])


class TermColumns:
    """A buffer with some columns for each term that torch or a kernel of its own computes.

    Args:
        widths: Number of columns of each term.
        num_envs: Number of rows.
        device: Device of the buffer.
    """

    def __init__(self, widths: Mapping[str, int], num_envs: int, device: wp.DeviceLike):
        self.first = {name: sum(list(widths.values())[:index]) for index, name in enumerate(widths)}
        self.array = wp.zeros((num_envs, max(sum(widths.values()), 1)), dtype=float, device=device)
        view = torch_view(self.array)
        self._views = {name: view[:, first : first + widths[name]] for name, first in self.first.items()}

    def write(self, term: Term, value: Any, allowed: str, dtypes: Sequence[torch.dtype] = ()) -> None:
        """Write what a term returned into its columns.

        Args:
            term: The term.
            value: What it returned.
            allowed: What it may return, for the error.
            dtypes: Types that it may return; none for all floating-point types and bool.

        Raises:
            ConfigError: It is no tensor of the right shape and type, on the right device.
        """
        view = self._views[term.name]
        shape = tuple(view.shape)
        fits = isinstance(value, torch.Tensor) and tuple(value.shape) in (shape, shape[:1] if shape[1] == 1 else shape)
        if fits and value.device != view.device:
            raise ConfigError(f"{term.where} returned {describe(value)} on {value.device}; allowed: {view.device}")
        if not fits or not (value.dtype in dtypes or (not dtypes and _is_real(value))):
            kinds = "" if dtypes else ", of a floating-point type or torch.bool"
            raise ConfigError(f"{term.where} returned {describe(value)}; allowed: {allowed}{kinds}")
        view.copy_(value if value.dim() == 2 else value[:, None])


def _is_real(value: torch.Tensor) -> bool:
    return value.is_floating_point() or value.dtype is torch.bool


def describe(value: Any) -> str:
    """Say what a term returned."""
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)} and type {value.dtype}"
    return f"a {type(value).__name__}"


def iterate_terms(terms: Any) -> Iterable[tuple[str, Any]]:
    """Yield name and configuration of each term, of a dictionary or of a dataclass with a field per term.

    Terms that are ``None`` are left out.
    """
    if terms is None:
        return []
    return [(name, term) for name, term in pairs_of(terms) if term is not None]
