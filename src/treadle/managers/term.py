"""One term of a manager: its torch form, its Warp form, and which of them is used."""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from treadle.errors import ConfigError, UnknownNameError
from treadle.managers.cfg import TermCfg
from treadle.managers.params import DeviceParams
from treadle.managers.scene_entity import SceneEntityCfg
from treadle.managers.twins import WarpTwin, arguments_of, find_twin
from treadle.managers.warp_call import WarpCall, check_parameters

__all__ = ["Term", "as_cfg", "merged_params"]

C = TypeVar("C", bound=TermCfg)


class Term:
    """A term that is made: parameters merged with the defaults and resolved, class terms instantiated.

    Args:
        name: Name of the term.
        cfg: Its configuration.
        env: The environment.
        where: Path of ``cfg`` in the configuration, for errors.
        params: Device memory of the manager.
        skip: Leading parameters of the torch form that are no parameters of the term.
        instance: Instance of a class term to go on with, rather than a new one.

    Raises:
        ConfigError: A parameter does not exist or is missing, or an entity, a joint or a body is not found.
    """

    def __init__(
        self,
        name: str,
        cfg: TermCfg,
        env: Any,
        where: str,
        params: DeviceParams,
        skip: tuple[str, ...] = ("env",),
        instance: Any = None,
    ):
        self.name = name
        self.cfg = cfg
        self.where = where
        self.env = env
        self.twin: WarpTwin | None = find_twin(cfg.func) if cfg.twin is None else cfg.twin
        if cfg.twin == "torch":
            self.twin = None
        self.params = _resolve(merged_params(cfg, where, skip), env, where)
        _check_command(self.params, env, where)
        for measurement in getattr(cfg.func, "measures", ()):
            env.physics.measure(measurement)
        self.instance = instance
        if instance is None and isinstance(cfg.func, type):
            self.instance = _instantiate(cfg, self.params, env, where)
        elif instance is not None:
            self.params = instance.cfg.params
        self.uses_warp = env.task_frontend == "warp" and self.twin is not None
        self.call: WarpCall | None = None
        if self.uses_warp:
            assert self.twin is not None
            self.call = WarpCall(self.twin, self.params, env, where, params, name, self.instance)
        elif self.twin is not None:
            check_parameters(self.twin, self.params, env, where)

    @property
    def threads(self) -> int:
        """Threads per environment of a Warp form with a kernel of its own, 0 for all others."""
        threads = self.twin.threads if self.uses_warp and self.twin is not None else None
        if threads is None:
            return 0
        return threads if isinstance(threads, int) else int(threads(self.env, self.params))

    @property
    def reads_columns(self) -> bool:
        """Whether the manager's kernel reads the values from a buffer that torch or another kernel writes."""
        return not self.uses_warp or self.threads > 0

    @property
    def is_stateful(self) -> bool:
        """Whether the term has a state that a reset clears."""
        return self.instance is not None

    def torch(self, *leading: Any) -> Any:
        """Compute the torch form."""
        func = self.cfg.func if self.instance is None else self.instance
        try:
            return func(self.env, *leading, **self.params)
        except ConfigError as error:
            raise ConfigError(f"{self.where}: {error}") from None

    def _live_parameters(self) -> set[str]:
        """Return the parameters of a class term that its Warp form reads at each call, and so does the torch form."""
        if self.twin is None:
            return set()
        return {name for func in self.twin.functions().values() for name in arguments_of(func)} - set(
            self.twin.consumes
        )

    def update(self, cfg: TermCfg) -> bool:
        """Take the parameters of another configuration. Numbers go to device memory.

        Returns:
            Whether the term has to be made anew, because something changed that is compiled in.
        """
        if cfg.func is not self.cfg.func or cfg.twin is not self.cfg.twin:
            return True
        changed = {
            key: value for key, value in cfg.params.items() if not _same(value, self.cfg.params.get(key, _MISSING))
        }
        if any(value is None or self.params.get(key) is None for key, value in changed.items()):
            return True
        if self.call is None and self.twin is not None:
            check_parameters(self.twin, changed, self.env, self.where)
        if set(self.cfg.params) - set(cfg.params) or any(isinstance(v, SceneEntityCfg) for v in changed.values()):
            return True
        if self.call is not None and not all(self.call.set(key, value) for key, value in changed.items()):
            return True
        if self.call is None and self.instance is not None and not set(changed) <= self._live_parameters():
            return True
        self.params.update(changed)
        self.cfg = cfg
        return False


def _check_command(params: Mapping[str, Any], env: Any, where: str) -> None:
    """Refuse the name of a command that there is not, before a torch form asks for it in the first step."""
    name = params.get("command_name")
    if isinstance(name, str) and name not in env.command_manager.terms:
        error = UnknownNameError("term of commands", name, env.command_manager.terms)
        raise ConfigError(f"{where}.params['command_name']: {error}")


class _Missing:
    pass


_MISSING = _Missing()


def merged_params(cfg: TermCfg, where: str, skip: tuple[str, ...]) -> dict[str, Any]:
    """Return the parameters of a term: those of the configuration, and the defaults of the signature.

    Raises:
        ConfigError: A parameter does not exist, or one without default is missing; all are reported together.
    """
    func: Any = cfg.func
    if isinstance(func, type):
        func = func.__call__
        skip = ("self", *skip)
    try:
        signature = inspect.signature(func).parameters
    except (TypeError, ValueError):
        return dict(cfg.params)
    if isinstance(find_twin(cfg.func), WarpTwin) and find_twin(cfg.func).func is cfg.func:  # type: ignore[union-attr]
        return dict(cfg.params)
    return _merge(signature, cfg.params, where, skip)


def _merge(
    signature: Mapping[str, inspect.Parameter], given: Mapping[str, Any], where: str, skip: tuple[str, ...]
) -> dict[str, Any]:
    names = [name for name in signature if name not in skip and name not in ("env_mask", "env_ids")]
    open_ended = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in signature.values())
    names = [name for name in names if signature[name].kind is not inspect.Parameter.VAR_KEYWORD]
    problems = [
        f"{where}.params[{name!r}] is no parameter of the term; allowed: {', '.join(names) or 'none'}"
        for name in given
        if name not in names and not open_ended
    ]
    empty = inspect.Parameter.empty
    problems += [
        f"{where}.params lacks {name!r}, which has no default"
        for name in names
        if name not in given and signature[name].default is empty
    ]
    if problems:
        raise ConfigError.from_problems(problems)
    defaults = {name: signature[name].default for name in names if signature[name].default is not empty}
    return {**defaults, **given}


def _resolve(params: dict[str, Any], env: Any, where: str) -> dict[str, Any]:
    return {
        name: value.resolve(env.scene, f"{where}.params[{name!r}]") if isinstance(value, SceneEntityCfg) else value
        for name, value in params.items()
    }


def _instantiate(cfg: TermCfg, params: dict[str, Any], env: Any, where: str) -> Any:
    """Make a term that is a class, with a configuration whose ``params`` are the resolved ones and stay current."""
    try:
        return cfg.func(dataclasses.replace(cfg, params=params), env)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def _same(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    return a is b or (np.array_equal(a, b) if hasattr(a, "shape") else bool(a == b))


def as_cfg(term: C) -> C:
    """Return a copy of a term's configuration that may be changed."""
    return copy.deepcopy(term)
