"""Configurations as JSON text and back.

A checkpoint and a run directory keep the configuration that they were made with. It is read back over the task's
defaults, so a field that was added later takes its default, and a field that no longer exists is an error.
"""

from __future__ import annotations

import collections.abc
import contextlib
import dataclasses
import functools
import json
import math
import sys
import types
import typing
from typing import Any, Literal, TypeVar, Union

from treadle.errors import ConfigError, did_you_mean

__all__ = ["from_json", "to_json"]

T = TypeVar("T")

_BARE = {dict: dict, list: list, tuple: list}
"""Types of the plain data of containers whose type says nothing about their items."""
_CLASS = "__class__"
"""Key under which a dataclass that its field does not name stores its path."""


def to_json(cfg: Any) -> str:
    """Return a configuration as JSON text.

    Infinite and undefined numbers become strings, since JSON has no such numbers.

    Args:
        cfg: A dataclass of dataclasses, tuples, lists, dictionaries by string, numbers, strings, booleans, None, and
            functions, of which the path is stored.

    Raises:
        ConfigError: A value has another type.
    """
    return json.dumps(_to_plain(cfg, type(cfg).__name__, type(cfg)), indent=2)


def from_json(text: str, default: T) -> T:
    """Return a copy of ``default`` with the values of JSON text made by :func:`to_json`.

    Raises:
        ConfigError: The text is not JSON, or has an unknown field or a value of the wrong type.
    """
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(f"the stored configuration is not JSON: {error}") from error
    return _from_plain(data, type(default), default, type(default).__name__)


def _to_plain(value: Any, where: str, hint: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        hints = typing.get_type_hints(type(value))
        plain = {f.name: _to_plain(getattr(value, f.name), f"{where}.{f.name}", hints[f.name]) for f in _stored(value)}
        return plain if type(value) in (hint, *typing.get_args(hint)) else {_CLASS: _path(type(value)), **plain}
    if isinstance(value, dict):
        inner = _inner_hint(hint, -1)
        return {str(key): _to_plain(item, f"{where}.{key}", inner) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_to_plain(item, f"{where}[{i}]", _inner_hint(hint, 0)) for i, item in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if callable(value) and not isinstance(value, functools.partial):
        return _path(value)
    raise ConfigError(f"{where} is a {type(value).__name__}, which a configuration file cannot hold")


def _inner_hint(hint: Any, position: int) -> Any:
    """Return the type of the items of a container's type."""
    args = typing.get_args(hint)
    return args[position] if args else Any


def _from_plain(data: Any, hint: Any, default: Any, where: str) -> Any:
    """Turn plain data into a value of a type.

    ``default`` decides which dataclass stands in a field, since a task may use a derived one.
    """
    if data is None and type(None) in typing.get_args(hint):
        return None
    if isinstance(data, dict) and _CLASS in data:
        return _named_class_from_plain(data, hint, default, where)
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    is_function = callable(default) and not isinstance(default, type) and not dataclasses.is_dataclass(default)
    if is_function or origin is collections.abc.Callable:
        return _function_from_plain(data, default, where)
    if hint is Any or (hint in _BARE and isinstance(data, _BARE[hint])):
        return _like_default(data, default, where)
    if dataclasses.is_dataclass(default) or dataclasses.is_dataclass(hint):
        return _dataclass_from_plain(data, hint if default is None else default, where)
    if origin is Union or origin is types.UnionType:
        return _union_from_plain(data, args, default, where)
    if origin is Literal and data in args:
        return data
    if origin in (tuple, list, collections.abc.Sequence) and isinstance(data, list):
        return _sequence_from_plain(data, origin, args, default, where)
    if origin is dict and isinstance(data, dict):
        known = default if isinstance(default, dict) else {}
        return {key: _from_plain(item, args[1], known.get(key), f"{where}.{key}") for key, item in data.items()}
    if hint is float and (type(data) in (int, float) or data in ("inf", "-inf", "nan")):
        with contextlib.suppress(OverflowError):  # a whole number with hundreds of digits
            return float(data)
    if hint in (int, str, bool, type(None)) and type(data) is hint:
        return data
    raise ConfigError(
        f"{where} is {data!r:.200} in the stored configuration; allowed: {getattr(hint, '__name__', hint)}"
    )


def _dataclass_from_plain(data: Any, default: Any, where: str) -> Any:
    cls = default if isinstance(default, type) else type(default)
    names = {f.name for f in _stored(cls)}
    if not isinstance(data, dict):
        raise ConfigError(
            f"{where} is {data!r:.200} in the stored configuration; allowed: the fields of {cls.__name__}"
        )
    for name in data:
        if name not in names:
            raise ConfigError(f"{where} has no field {name!r}{did_you_mean(name, names)}")
    hints = typing.get_type_hints(cls)
    likes = {f.name: _default_of(f) if isinstance(default, type) else getattr(default, f.name) for f in _stored(cls)}
    values = {name: _from_plain(item, hints[name], likes[name], f"{where}.{name}") for name, item in data.items()}
    if not isinstance(default, type):
        return dataclasses.replace(default, **values)
    try:
        return cls(**values)
    except TypeError as error:
        raise ConfigError(f"{where} in the stored configuration is not complete: {error}") from error


def _default_of(field: dataclasses.Field[Any]) -> Any:
    """Return a field's default, ``None`` where it has none."""
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return None if field.default is dataclasses.MISSING else field.default


def _named_class_from_plain(data: dict[str, Any], hint: Any, default: Any, where: str) -> Any:
    """Return a dataclass whose path is stored: the default's, or one of a module that is imported."""
    cls = type(default) if data[_CLASS] == _path(type(default)) else _find(data[_CLASS])
    base: type = hint if isinstance(hint, type) and dataclasses.is_dataclass(hint) else object
    if not (isinstance(cls, type) and dataclasses.is_dataclass(cls) and issubclass(cls, base)):
        what = "a configuration" if base is object else f"one derived from {base.__name__}"
        raise ConfigError(f"{where} is a {data[_CLASS]} in the stored configuration; allowed: {what} that is imported")
    values = {name: item for name, item in data.items() if name != _CLASS}
    return _dataclass_from_plain(values, default if type(default) is cls else cls, where)


def _union_from_plain(data: Any, options: tuple[Any, ...], default: Any, where: str) -> Any:
    for option in sorted(options, key=lambda option: option is not type(None)):
        try:
            return _from_plain(data, option, default, where)
        except ConfigError:
            continue
    allowed = " or ".join(getattr(option, "__name__", str(option)) for option in options)
    raise ConfigError(f"{where} is {data!r:.200} in the stored configuration; allowed: {allowed}")


def _stored(cfg: Any) -> list[dataclasses.Field[Any]]:
    """Return the fields that are configuration, rather than what an environment sets in its copy."""
    return [field for field in dataclasses.fields(cfg) if field.init and field.metadata.get("stored", True)]


def _path(function: Any) -> str:
    inner = function if isinstance(function, type) else getattr(function, "func", function)  # that of a Warp function
    return f"{inner.__module__}:{inner.__qualname__}"


def _find(path: Any) -> Any:
    """Return what a path means in the modules that are imported, ``None`` if nothing. Nothing is imported here."""
    module, _, name = str(path).partition(":")
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _function_from_plain(data: Any, default: Any, where: str) -> Any:
    """Return the function of a path: the default, or one of a module that is imported."""
    if default is not None and data == _path(default):
        return default
    if not callable(found := _find(data)):
        raise ConfigError(
            f"{where} is {data!r:.200} in the stored configuration, and there is no such function; allowed: one of a "
            "module that the task or --import imports"
        )
    return found


def _like_default(data: Any, default: Any, where: str) -> Any:
    """Return plain data as the kind of value that the default is."""
    if data is None:
        return None
    if isinstance(data, dict) and _CLASS in data:
        return _named_class_from_plain(data, Any, default, where)
    if isinstance(default, type) or callable(default):
        return _function_from_plain(data, default, where)
    if dataclasses.is_dataclass(default):
        return _dataclass_from_plain(data, default, where)
    if isinstance(data, list):
        items = default if isinstance(default, tuple | list) and len(default) == len(data) else [None] * len(data)
        kind = list if isinstance(default, list) else tuple
        return kind(
            _like_default(item, like, f"{where}[{i}]") for i, (item, like) in enumerate(zip(data, items, strict=True))
        )
    if isinstance(data, dict):
        known = default if isinstance(default, dict) else {}
        return {key: _like_default(item, known.get(key), f"{where}.{key}") for key, item in data.items()}
    if isinstance(default, float) and (type(data) is int or data in ("inf", "-inf", "nan")):
        return float(data)
    return data


def _sequence_from_plain(data: list[Any], origin: Any, args: tuple[Any, ...], default: Any, where: str) -> Any:
    if origin is not tuple or args[1:] == (Ellipsis,):
        hints = [args[0]] * len(data)
    elif len(args) == len(data):
        hints = list(args)
    else:
        raise ConfigError(f"{where} has {len(data)} values in the stored configuration; allowed: {len(args)}")
    likes = default if isinstance(default, tuple | list) and len(default) == len(data) else [None] * len(data)
    kind = list if origin is list else tuple
    return kind(
        _from_plain(item, hint, like, f"{where}[{i}]")
        for i, (item, hint, like) in enumerate(zip(data, hints, likes, strict=True))
    )
