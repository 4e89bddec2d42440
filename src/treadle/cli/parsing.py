"""Options from typed dataclasses, by tyro, with its errors turned into one line."""

from __future__ import annotations

import contextlib
import io
import re
import types
import typing
from typing import Annotated, Any, Literal, TypeVar, Union

from treadle.cli.imports import import_modules, split_imports
from treadle.cli.option_names import describe_unknown, option_types
from treadle.errors import ConfigError, UnknownNameError
from treadle.registry import TaskSpec, list_tasks, task_spec

__all__ = ["parse", "peek", "split_task"]

T = TypeVar("T")

_TYPE_WORDS = {int: "an integer", float: "a number", str: "text", bool: "True or False", type(None): "None"}
_BOX = str.maketrans("╭╮╰╯│─", "      ")


def split_task(command: str, argv: list[str], summary: str) -> tuple[TaskSpec | None, list[str]]:
    """Import what ``--import`` names, and take that and the task's id out of a command's arguments.

    Returns:
        The task and the remaining arguments; ``None`` instead of the task after general help was printed.

    Raises:
        ConfigError: There is no id, or no such task.
    """
    modules, argv = split_imports(argv)
    import_modules(modules)
    tasks = ", ".join(list_tasks())
    if argv and argv[0] in ("-h", "--help"):
        print(f"usage: treadle {command} [--import MODULE] TASK [OPTIONS]\n\n{summary}\n\ntasks: {tasks}\n")
        print("--import MODULE, also in the current directory, imports a module that registers tasks of your own.")
        print(f"'treadle {command} TASK --help' describes all options; a task's defaults are among them.")
        return None, []
    if not argv or argv[0].startswith("-"):
        raise ConfigError(f"'treadle {command}' needs a task as its first argument; allowed: {tasks}")
    try:
        return task_spec(argv[0]), argv[1:]
    except UnknownNameError as error:
        if modules:
            raise
        raise ConfigError(f"{error}; one of your own needs --import MODULE, the module that registers it") from None


def parse(default: T, argv: list[str], prog: str) -> T:
    """Return a copy of a dataclass with the values that the options give.

    Args:
        default: Its fields, nested ones and entries of dictionaries included, are the options.
        argv: The options.
        prog: Command as it is shown to the user.

    Raises:
        ConfigError: An option or its value is not allowed.
        SystemExit: Help was printed.
    """
    import tyro

    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors):
            options, unknown = tyro.cli(
                type(default), default=default, args=argv, prog=prog, return_unknown_args=True, config=_tyro_config()
            )
    except SystemExit as stop:
        if not stop.code:
            raise
        raise ConfigError(
            f"{_describe_error(errors.getvalue(), argv, option_types(default))}; see '{prog} --help'"
        ) from None
    if unknown:
        raise ConfigError(f"{describe_unknown(unknown, argv, default)}; see '{prog} --help'")
    return options


def _tyro_config() -> tuple[Any, ...]:
    """One option per field: no subcommands for alternatives, and nothing that can't be given as text."""
    import tyro

    return (tyro.conf.AvoidSubcommands, tyro.conf.SuppressFixed)


def peek(argv: list[str], option: str) -> str | None:
    """Return an option's last value before the options are parsed, ``None`` when it is not given."""
    found = None
    for position, arg in enumerate(argv):
        name, equals, value = arg.partition("=")
        if name.replace("_", "-") == option:
            found = value if equals else next(iter(argv[position + 1 :]), None)
    return found


def _describe_error(text: str, argv: list[str], by_option: dict[str, Any]) -> str:
    """Say what tyro says in a box over many lines.

    Its wording is no stable interface. Only the option's name is taken from it; where there is none, the text is passed
    on without the box and without the advice below it.
    """
    body = " ".join(re.split(r"For full helptext|Argument helptext:", text.translate(_BOX))[0].split())
    option = next((name for name in re.findall(r"--[\w.*-]+", body) if name in by_option), None)
    if option is None:
        return body or "the options cannot be read"
    allowed = _describe_type(by_option[option])
    values = _values(argv, option)
    return f"{option} is {' '.join(values)!r}; allowed: {allowed}" if values else f"{option} needs a value: {allowed}"


def _values(argv: list[str], option: str) -> list[str]:
    """Return the arguments that follow an option's last occurrence."""
    values: list[str] = []
    inside = False
    for arg in argv:
        name, equals, value = arg.partition("=")
        if arg.startswith("--"):
            if inside := name.replace("_", "-") == option:
                values = [value] if equals else []
        elif inside:
            values.append(arg)
    return values


def _describe_type(hint: Any) -> str:
    """Say in words which values an option takes."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        import tyro

        described = _describe_type(args[0])
        return described.removesuffix(" or None") if tyro.conf.DisallowNone in args else described
    if origin is Literal:
        return ", ".join(str(choice) for choice in args)
    if origin is Union or origin is types.UnionType:
        return " or ".join(_describe_type(arg) for arg in args)
    if origin is tuple and args[-1] is not Ellipsis:
        return f"{len(args)} values, each {_describe_type(args[0])}"
    if origin in (tuple, list):
        return f"any number of values, each {_describe_type(args[0])}"
    if origin is dict:
        return f"pairs of {_describe_type(args[0])} and {_describe_type(args[1])}"
    return _TYPE_WORDS.get(hint, getattr(hint, "__name__", str(hint)))
