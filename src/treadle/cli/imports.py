"""``--import MODULE``: modules that register tasks of a user's own."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Iterable

from treadle.errors import ConfigError

__all__ = ["import_modules", "split_imports"]

_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


def split_imports(argv: list[str]) -> tuple[list[str], list[str]]:
    """Take ``--import MODULE`` out of a command's arguments, wherever it stands.

    Returns:
        The modules and the remaining arguments.

    Raises:
        ConfigError: A module is missing, or what is given is no module's name.
    """
    modules, rest = [], []
    remaining = iter(argv)
    for arg in remaining:
        option, equals, value = arg.partition("=")
        if option != "--import":
            rest.append(arg)
            continue
        module = value if equals else next(remaining, "")
        if not module or module.startswith("-"):
            raise ConfigError("--import needs a value: the name of a module that registers tasks")
        if not _MODULE.fullmatch(module) or os.path.isfile(module):
            name = re.sub(r"\.py$", "", module).strip("./").replace("/", ".")
            raise ConfigError(f"--import is {module!r}; allowed: a module's name, such as {name or 'my_tasks'!r}")
        modules.append(module)
    return modules, rest


def import_modules(modules: Iterable[str]) -> None:
    """Import modules, also from the current directory. What is installed comes first.

    Raises:
        ConfigError: There is no such module. An error inside of one keeps its traceback.
    """
    for module in modules:
        # A task's classes are imported later, from their paths, so the directory stays.
        if os.getcwd() not in sys.path and "" not in sys.path:
            sys.path.append(os.getcwd())
        try:
            importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{module}.".startswith(f"{error.name}."):
                raise
            raise ConfigError(
                f"--import is {module!r}; there is no module {error.name!r}, neither installed nor in {os.getcwd()}"
            ) from error
