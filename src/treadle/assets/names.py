"""Matching of joint and body names by regular expressions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from treadle.errors import ConfigError

__all__ = ["match_names", "values_by_name"]


def match_names(patterns: Sequence[str], names: Sequence[str], where: str) -> list[int]:
    """Return the indices of the names that match any of the patterns, in the order of the names.

    Args:
        patterns: Regular expressions, each matched against whole names.
        names: The names that exist.
        where: The field that holds the patterns, for the error.

    Raises:
        ConfigError: A pattern matches nothing, or is no regular expression.
    """
    matched: set[int] = set()
    for pattern in patterns:
        hits = {index for index, name in enumerate(names) if _full_match(pattern, name, where)}
        if not hits:
            raise ConfigError(f"{where}: {pattern!r} matches no name; allowed: {', '.join(names)}")
        matched |= hits
    return sorted(matched)


def values_by_name(values: Mapping[str, float], names: Sequence[str], where: str, default: float = 0.0) -> list[float]:
    """Return one value per name: that of the first pattern that matches it, else the default.

    Raises:
        ConfigError: A pattern matches nothing, or is no regular expression.
    """
    result = [default] * len(names)
    for pattern in reversed(list(values)):
        for index in match_names([pattern], names, where):
            result[index] = float(values[pattern])
    return result


def _full_match(pattern: str, name: str, where: str) -> bool:
    try:
        return re.fullmatch(pattern, name) is not None
    except re.error as error:
        raise ConfigError(f"{where}: {pattern!r} is no regular expression: {error}") from None
