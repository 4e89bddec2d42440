"""Questions that the configurations ask about their values."""

from __future__ import annotations

import numbers
import typing
from collections.abc import Iterable, Iterator
from typing import Any, Literal, cast

__all__ = ["choice_problems", "count_problems", "is_finite", "range_problems"]

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
