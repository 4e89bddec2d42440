"""Which options a dataclass gives, and what is said of one that it does not give."""

from __future__ import annotations

import collections.abc
import dataclasses
import difflib
import re
import typing
from collections.abc import Iterator
from typing import Annotated, Any

__all__ = ["describe_unknown", "option_types"]


def option_types(cfg: Any) -> dict[str, Any]:
    """Return the type of each option that a dataclass gives, by the option's name."""
    return {option: hint for option, hint, value in _fields(cfg) if _is_text(hint, value)}


def describe_unknown(unknown: list[str], argv: list[str], cfg: Any) -> str:
    """Say what is wrong with arguments that are no options of a dataclass, and what was meant.

    Args:
        unknown: What is left of the arguments, in order.
        argv: All arguments.
        cfg: The dataclass, with its defaults.
    """
    types = option_types(cfg)
    given = [arg.partition("=")[0] for arg in unknown if re.match(r"--?[a-zA-Z]", arg)]
    if not given:
        return _describe_flag(unknown[0], argv, types) or f"unexpected argument {unknown[0]!r}"
    python_only = {option: (hint, value) for option, hint, value in _fields(cfg) if not _is_text(hint, value)}
    return ", ".join(f"unknown option {option!r}{_hint(option, types, python_only)}" for option in given)


def _fields(cfg: Any, prefix: str = "--") -> Iterator[tuple[str, Any, Any]]:
    """Yield name, type and value of each field of a dataclass, of nested ones and of those in dictionaries."""
    hints = typing.get_type_hints(type(cfg), include_extras=True)
    for field in dataclasses.fields(cfg):
        if not field.init:
            continue
        value, option = getattr(cfg, field.name), _option(prefix, field.name)
        if dataclasses.is_dataclass(value):
            yield from _fields(value, f"{option}.")
        elif isinstance(value, dict) and value:
            for key, item in value.items():
                nested = _option(f"{option}.", key)
                if dataclasses.is_dataclass(item):
                    yield from _fields(item, f"{nested}.")
                else:
                    yield nested, type(item), item
        else:
            yield option, hints[field.name], value


def _is_text(hint: Any, value: Any) -> bool:
    """Return whether a value of a type can be given as text, so that it is an option."""
    if hint is object or hint is Any or typing.get_origin(hint) is collections.abc.Callable:
        return False
    if isinstance(value, dict) and any(arg is Any for arg in typing.get_args(hint)):
        return False
    return not _holds_dataclass(hint)


def _holds_dataclass(hint: Any) -> bool:
    return dataclasses.is_dataclass(hint) or any(map(_holds_dataclass, typing.get_args(hint)))


def _option(prefix: str, name: str) -> str:
    """Return the name that tyro gives an option: without empty parts, as a regular expression for a key has them."""
    return ".".join(part for part in (prefix + name.replace("_", "-")).split(".") if part)


def _describe_flag(value: str, argv: list[str], types: dict[str, Any]) -> str | None:
    """Say that an option takes no value, where an argument follows such a one."""
    for arg, following in zip(argv, [*argv[1:], ""], strict=False):
        name, equals, text = arg.partition("=")
        option = re.sub(r"(^--|\.)no-(?=[\w-]+$)", r"\1", name.replace("_", "-"))
        if value != (text if equals else following) or option not in types:
            continue
        hint = types[option]
        if bool in (hint, *typing.get_args(hint)[:1]):
            path, dot, last = option[2:].rpartition(".")
            allowed = option if typing.get_origin(hint) is Annotated else f"{option} or --{path}{dot}no-{last}"
            return f"{option} is given the value {value!r}; allowed, without a value: {allowed}"
    return None


def _hint(option: str, types: dict[str, Any], python_only: dict[str, Any]) -> str:
    """Say in brackets what was meant by an option, or why there is none of this name."""
    name = option.replace("_", "-")
    for field, (hint, value) in python_only.items():
        if name == field or name.startswith(f"{field}."):
            is_empty = not value and hint is not object
            why = f"{field} is {value}, and options change what is there" if is_empty else "it can't be given as text"
            return f" ({why}: set it in Python)"
    fields = sorted((other for other in types if other.startswith(f"{name}.")), key=lambda other: other.count("."))
    if fields:
        more = " or others of it" if len(fields) > 3 else ""
        return f" (did you mean {' or '.join(fields[:3])}{more}?)"
    tail = "." + name.lstrip("-").rpartition(".")[2]
    near = [other for other in types if other.endswith(tail)]
    near = sorted(near, key=lambda other: -difflib.SequenceMatcher(None, name, other).ratio())[:3]
    near = near or difflib.get_close_matches(name, list(types), n=2)
    return f" (did you mean {' or '.join(near)}?)" if near else ""
