"""Configurations that can't be changed any more."""

from __future__ import annotations

import copy
import dataclasses
import functools
from typing import Any, NoReturn, TypeVar

from treadle.errors import ConfigError

__all__ = ["frozen_copy", "thawed_value"]

T = TypeVar("T")


def frozen_copy(cfg: T) -> T:
    """Return a deep copy of a configuration in which assigning to a field, or changing a dictionary, raises.

    An environment has baked values of its configuration into graphs. An assignment would act in one launch mode and not
    in another, so there is none. ``copy.deepcopy`` of the result can be changed again.

    Args:
        cfg: A dataclass instance, with dataclasses and dictionaries inside.
    """
    return _freeze(copy.deepcopy(cfg))


def _freeze(value: Any) -> Any:
    kind: Any = type(value)
    if kind.__setattr__ is _refuse:
        return value  # it is in two places of the configuration
    if dataclasses.is_dataclass(value) and not isinstance(value, type) and not kind.__dataclass_params__.frozen:
        for field in dataclasses.fields(value):
            object.__setattr__(value, field.name, _freeze(getattr(value, field.name)))
        value.__class__ = _frozen_class(kind)
        return value
    if isinstance(value, dict):
        return _FrozenDict({key: _freeze(item) for key, item in value.items()})
    return value


def _refuse(*args: Any, **kwargs: Any) -> NoReturn:
    raise ConfigError(
        "the configuration is in use by an environment; allowed: change a copy and make a new environment"
    )


@functools.cache
def _frozen_class(cls: type) -> type:
    """Return a subclass whose instances refuse assignments; it keeps the name, and copies are of the class itself."""

    def thaw(self: Any, memo: dict[int, Any]) -> Any:
        values = {field: thawed_value(getattr(self, field.name), memo) for field in dataclasses.fields(self)}
        thawed = cls(**{field.name: value for field, value in values.items() if field.init})
        for field, value in values.items():
            setattr(thawed, field.name, value)
        return thawed

    body = {"__setattr__": _refuse, "__delattr__": _refuse, "__deepcopy__": thaw, "__module__": cls.__module__}
    return type(cls.__name__, (cls,), body)


def thawed_value(value: Any, memo: dict[int, Any]) -> Any:
    """Return a copy that can be changed. What can be called is no data, and stays what it is."""
    return value if callable(value) else copy.deepcopy(value, memo)


class _FrozenDict(dict[Any, Any]):
    """A dictionary that refuses changes."""

    __setitem__ = __delitem__ = update = pop = popitem = clear = setdefault = __ior__ = _refuse

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[Any, Any]:
        return {key: copy.deepcopy(value, memo) for key, value in self.items()}
