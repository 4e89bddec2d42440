"""Questions that the configurations ask about their values."""

from __future__ import annotations

import dataclasses
import numbers
import types
import typing
from collections.abc import Iterable, Iterator
from typing import Any, Literal, cast

__all__ = ["choice_problems", "count_problems", "is_finite", "range_problems", "type_problems"]

_LARGEST_FLOAT = 3.4028234e38


def is_finite(*values: Any) -> bool:
    """Return whether all values are real numbers that are finite in single precision, which the kernels compute in."""
    # Whole numbers that no float can hold are compared as they are.
    return all(isinstance(value, numbers.Real) and abs(cast(Any, value)) <= _LARGEST_FLOAT for value in values)


def count_problems(cfg: object, where: str, names: Iterable[str], most: int = 2**31 - 1) -> Iterator[str]:
    """Yield one sentence for each field that is not a whole number from 1 to ``most``.

    Args:
        cfg: The configuration.
        where: Its path with a dot at the end, empty for the outermost one.
        names: The fields.
        most: Largest value that is allowed.
    """
    for name in names:
        value = getattr(cfg, name)
        if not isinstance(value, numbers.Integral):
            yield f"{where}{name} is {value!r}; allowed: a whole number of at least 1"
        elif value < 1:
            yield f"{where}{name} is {value}; allowed: at least 1"
        elif int(value) > most:
            yield f"{where}{name} is {value}; allowed: 1 to {most}"


def range_problems(
    cfg: object, where: str, names: Iterable[str], least: float, most: float, *, above: bool = False
) -> Iterator[str]:
    """Yield one sentence for each field that is not a number from ``least`` to ``most``.

    Args:
        cfg: The configuration.
        where: Its path with a dot at the end, empty for the outermost one.
        names: The fields.
        least: Smallest value that is allowed.
        most: Largest value that is allowed.
        above: Whether ``least`` itself is not allowed.
    """
    for name in names:
        value = getattr(cfg, name)
        if not (is_finite(value) and least <= value <= most and not (above and value == least)):
            allowed = f"above {least:g}, at most {most:g}" if above else f"{least:g} to {most:g}"
            yield f"{where}{name} is {value!r}; allowed: {allowed}"


def choice_problems(cfg: Any, where: str) -> Iterator[str]:
    """Yield one sentence for each ``Literal`` field whose value is none of its choices.

    Args:
        cfg: The configuration, a dataclass instance.
        where: Its path with a dot at the end, empty for the outermost one.
    """
    for name, hint in typing.get_type_hints(type(cfg)).items():
        parts = (hint, *typing.get_args(hint))
        choices = [choice for part in parts if typing.get_origin(part) is Literal for choice in typing.get_args(part)]
        value = getattr(cfg, name)
        if choices and value not in choices and not (value is None and type(None) in parts):
            yield f"{where}{name} is {value!r}; allowed: {', '.join(choices)}"


def type_problems(cfg: Any, where: str = "") -> Iterator[str]:
    """Yield one sentence for each field of another type than declared, and for each attribute that is no field.

    Args:
        cfg: The configuration, a dataclass instance with dataclasses, dictionaries and tuples inside.
        where: Its path with a dot at the end, empty for the outermost one.
    """
    hints = typing.get_type_hints(type(cfg))
    names = [field.name for field in dataclasses.fields(cfg)]
    for name in vars(cfg):
        if name not in names:
            yield f"{where}{name} is no field of {type(cfg).__name__}; allowed: {', '.join(names)}"
    for name in names:
        yield from _value_problems(getattr(cfg, name), hints[name], f"{where}{name}")


def _value_problems(value: Any, hint: Any, where: str) -> Iterator[str]:
    arguments = typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        if isinstance(value, cast(type, hint)):
            yield from type_problems(value, f"{where}.")
        else:
            yield f"{where} is {value!r}; allowed: a {cast(type, hint).__name__}"
    elif typing.get_origin(hint) is dict and isinstance(value, dict):
        for key, item in value.items():
            yield from _value_problems(item, arguments[1], f"{where}[{key!r}]")
    elif not _is_of_type(value, hint):
        yield f"{where} is {value!r}; allowed: {_describe(hint)}"


def _is_of_type(value: Any, hint: Any) -> bool:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal or hint is Any:
        return True  # choice_problems lists the choices
    if origin in (typing.Union, types.UnionType):
        return any(_is_of_type(value, part) for part in arguments)
    if origin is tuple:
        if not isinstance(value, tuple | list):
            return False
        parts = arguments[:1] * len(value) if arguments[-1] is Ellipsis else arguments
        return len(parts) == len(value) and all(map(_is_of_type, value, parts))
    if hint in (int, float):
        kind = numbers.Integral if hint is int else numbers.Real
        return isinstance(value, kind) and not isinstance(value, bool)
    return isinstance(value, origin or hint)


def _describe(hint: Any) -> str:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(map(_describe, arguments))
    if origin is tuple and arguments[-1] is not Ellipsis:
        return f"{len(arguments)} values, each {_describe(arguments[0])}"
    names = {int: "a whole number", float: "a number", str: "a string", bool: "True or False", type(None): "None"}
    return names.get(hint, str(origin.__name__ if origin else hint))
