"""Warp forms of terms, declared beside the torch form or attached to a function that somebody else owns."""

from __future__ import annotations

import inspect
import re
import typing
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import warp as wp

from treadle.errors import ConfigError

__all__ = ["WarpTwin", "find_twin", "path_of", "registered_twins", "warp_twin"]

_twins: dict[str, WarpTwin] = {}
"""Twins by the path of the torch form, so that a twin may be attached before that form is imported."""
_local_twins: weakref.WeakKeyDictionary[Any, WarpTwin] = weakref.WeakKeyDictionary()
"""Twins of functions that were made in functions or are lambdas: there may be several of the same path."""
_local_names: dict[str, int] = {}
"""How many of these have a name, so that each has one of its own in generated code."""


@dataclass(frozen=True, eq=False)
class WarpTwin:
    """The Warp form of a term."""

    func: wp.Function
    """Computes the term for one environment."""
    reset: wp.Function | None = None
    """Restarts the state of a stateful term in one environment."""
    methods: Mapping[str, wp.Function] = field(default_factory=dict)
    """Further functions of a term that has several, such as a command's ``resample``."""
    converts: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    """How a parameter becomes what the Warp form takes, by its name."""
    extra: Callable[..., Mapping[str, Any]] | None = None
    """Returns further arguments by name, from the environment and the term's parameters."""
    consumes: tuple[str, ...] = ()
    """Parameters that ``extra`` reads."""
    width: Callable[..., int] | int | None = None
    """Columns of an observation that has no torch form to measure."""
    threads: Callable[..., int] | int | None = None
    """Threads per environment; ``None`` for one, in the kernel of the manager's other terms."""

    def __deepcopy__(self, memo: dict[int, Any]) -> WarpTwin:
        return self

    def functions(self) -> dict[str, wp.Function]:
        """Return all functions by the name of what they do."""
        named = {"func": self.func, "reset": self.reset, **self.methods}
        return {name: func for name, func in named.items() if func is not None}


def warp_twin(
    torch_form: Callable[..., Any] | str,
    *,
    reset: Callable[..., Any] | None = None,
    methods: Mapping[str, Callable[..., Any]] | None = None,
    converts: Mapping[str, Callable[[Any], Any]] | None = None,
    extra: Callable[..., Mapping[str, Any]] | None = None,
    consumes: tuple[str, ...] = (),
    width: Callable[..., int] | int | None = None,
    threads: Callable[..., int] | int | None = None,
) -> Callable[[Any], WarpTwin]:
    """Return a decorator that makes a function for one environment the Warp form of a term.

    The function becomes a ``@wp.func``. Its arguments are found by name and type annotation:

    * ``env: int`` is the index of the environment.
    * An argument whose annotation is the state struct of an entity (``ArticulationState``, ``ContactSensorState``, ...)
      is the entity that the parameter ``<argument>_cfg`` names; ``EnvState`` is the state of the environments.
    * ``joint_ids`` and ``body_ids`` (``wp.array[int]``) are what ``asset_cfg`` selects, ``<x>_joint_ids`` and
      ``<x>_body_ids`` what ``<x>_cfg`` selects.
    * ``out: wp.array[float]`` is the slice of an observation that the term writes.
    * ``thread: int`` is the number of the thread, for terms with ``threads``.
    * Attributes of a term that is a class are passed under their names; arrays among them are its buffers.
    * All others are parameters of the term. Numbers with the annotation ``float``, and vectors and matrices, are read
      from device memory, so that they may change at run time; ``int`` and ``bool`` are compiled in.

    Args:
        torch_form: The torch form, a function or a class, or its path ``"package.module:name"`` where it is defined at
            the top level of a module.
        reset: Restarts the state in one environment, with arguments as above.
        methods: Further functions of the term.
        converts: Turns a parameter into numbers or an array.
        extra: Called with the environment and the parameters; returns further arguments by name.
        consumes: Parameters that ``extra`` reads.
        width: Columns of an observation term, where there is no torch form to measure.
        threads: Threads per environment, or a function of the environment and the parameters that returns them. The
            term gets a kernel of its own, in which each thread returns a number: a column of an observation, a summand
            of a reward, or whether a termination holds. They are added up in order, so that results do not vary.

    Raises:
        ConfigError: The torch form has a Warp form already, or the function lacks a type annotation.
    """
    path = torch_form if isinstance(torch_form, str) else path_of(torch_form)
    if isinstance(torch_form, str) and not _is_global(path):
        raise ConfigError(f"{path} may be the path of several functions; allowed: the function itself")
    name = _name_of(path)

    def decorate(func: Any) -> WarpTwin:
        made = {key: _as_warp(value, f"{name}_{key}") for key, value in (methods or {}).items()}
        twin = WarpTwin(
            func=_as_warp(func, name),
            reset=None if reset is None else _as_warp(reset, f"{name}_reset"),
            methods=made,
            converts=converts or {},
            extra=extra,
            consumes=consumes,
            width=width,
            threads=threads,
        )
        previous = _twins.get(path) if _is_global(path) else _local_twins.get(_unwrapped(torch_form))
        if previous is not None and _place(previous.func) != _place(twin.func):
            raise ConfigError(f"{path} has a Warp form already, in {_place(previous.func)}; allowed: one")
        if _is_global(path):
            _twins[path] = twin
        else:
            _local_twins[_unwrapped(torch_form)] = twin
        return twin

    return decorate


def find_twin(func: Any) -> WarpTwin | None:
    """Return the Warp form of a term's function, ``None`` if it has none. A Warp function is its own."""
    if isinstance(func, WarpTwin):
        return func
    if isinstance(func, wp.Function):
        return WarpTwin(func=func)
    path = path_of(func)
    return _twins.get(path) if _is_global(path) else _local_twins.get(_unwrapped(func))


def registered_twins() -> dict[str, WarpTwin]:
    """Return the Warp forms that were declared so far, by the path ``"package.module:name"`` of their torch form.

    Those of functions that were made in functions are left out.
    """
    return dict(_twins)


def path_of(func: Any) -> str:
    """Return the path ``"package.module:name"`` of a function or a class."""
    func = _unwrapped(func)
    return f"{func.__module__}:{func.__qualname__}"


def _unwrapped(func: Any) -> Any:
    return func if isinstance(func, type) else inspect.unwrap(getattr(func, "func", func))


def _is_global(path: str) -> bool:
    """Return whether a path names one function, rather than all that a function makes under a name."""
    return "<" not in path


def _name_of(path: str) -> str:
    """Return the name of the Warp form of a term in generated code."""
    name = path.rpartition(":")[2]
    if _is_global(path):
        return name.replace(".", "_")
    name = re.sub(r"\W", "_", name.rpartition("<locals>.")[2].strip("<>"))
    _local_names[name] = number = _local_names.get(name, 0) + 1
    return f"{name}_{number}"


def arguments_of(func: wp.Function) -> dict[str, Any]:
    """Return the type annotation of each argument of a Warp function."""
    return dict(func.input_types)


def return_type_of(func: wp.Function) -> Any:
    """Return the annotated return type of a Warp function, ``None`` where it returns nothing."""
    hints = typing.get_type_hints(func.func)
    result = hints.get("return")
    return None if result is type(None) else result


def describe_return(kind: Any) -> str:
    """Say what a Warp function returns, by its annotation."""
    return "nothing, as it has no '-> TYPE'" if kind is None else getattr(kind, "__name__", str(kind))


def _as_warp(func: Any, name: str) -> wp.Function:
    if isinstance(func, wp.Function):
        made = func
    else:
        missing = [p for p in inspect.signature(func).parameters if p not in func.__annotations__]
        if missing:
            raise ConfigError(f"Warp form {name}: {', '.join(missing)} have no type annotation; allowed: one each")
        made = wp.func(func, name=name)
    return made


def _place(func: wp.Function) -> str:
    code = func.func.__code__
    return f"{code.co_filename}:{code.co_firstlineno}"
