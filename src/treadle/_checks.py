"""Questions that the configurations ask about their values."""

from __future__ import annotations

import math
import numbers
import typing
from collections.abc import Iterable, Iterator
from typing import Any, Literal

__all__ = ["choice_problems", "count_problems", "is_finite"]


def is_finite(*values: object) -> bool:
    """Return whether all values are finite real numbers."""
    return all(isinstance(value, numbers.Real) and math.isfinite(value) for value in values)


def count_problems(cfg: object, where: str, names: Iterable[str]) -> Iterator[str]:
    """Yield one sentence for each field that is not a whole number of at least 1.

    Args:
        cfg: The configuration.
        where: Its path with a dot at the end, empty for the outermost one.
        names: The fields.
    """
    for name in names:
        value = getattr(cfg, name)
        if not isinstance(value, numbers.Integral):
            yield f"{where}{name} is {value!r}; allowed: a whole number of at least 1"
        elif value < 1:
            yield f"{where}{name} is {value}; allowed: at least 1"


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
