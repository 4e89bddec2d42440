"""``treadle list``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from treadle.cli.imports import import_modules, split_imports
from treadle.errors import ConfigError
from treadle.registry import list_tasks, task_spec

if TYPE_CHECKING:
    from treadle.registry import TaskSpec

__all__ = ["run"]

_HELP = """usage: treadle list [--import MODULE] [--frontends] [--json]

List the tasks with their frontends.

options:
  -h, --help       show this help
  --import MODULE  import a module that registers tasks first
  --frontends      say what each frontend of each task supports; loads all tasks
  --json           print JSON"""


def run(argv: list[str]) -> int:
    """Print the registered tasks.

    Raises:
        ConfigError: There is an unknown option.
    """
    if "-h" in argv or "--help" in argv:
        print(_HELP)
        return 0
    modules, argv = split_imports(argv)
    if unknown := [arg for arg in argv if arg not in ("--frontends", "--json")]:
        raise ConfigError(f"unknown option {unknown[0]!r} of 'treadle list'; allowed: --import, --frontends, --json")
    import_modules(modules)
    specs = [task_spec(task_id) for task_id in list_tasks()]
    support = _support(specs) if "--frontends" in argv else {}
    if "--json" in argv:
        print(json.dumps([_as_json(spec, support.get(spec.task_id)) for spec in specs], indent=2))
    elif support:
        _print_support(support)
    else:
        rows = [(s.task_id, ", ".join(sorted(s.frontends)), s.description) for s in specs]
        _print_table([("task", "frontends", "description"), *rows])
    return 0


def _support(specs: list[TaskSpec]) -> dict[str, dict[str, Any]]:
    from treadle.cli.frontends import frontend_support

    return {spec.task_id: frontend_support(spec) for spec in specs}


def _as_json(spec: TaskSpec, support: dict[str, Any] | None) -> dict[str, Any]:
    about = {"id": spec.task_id, "frontends": sorted(spec.frontends), "description": spec.description}
    if support is None:
        return about
    from dataclasses import asdict

    return about | {"support": {frontend: asdict(found) for frontend, found in support.items()}}


def _print_support(support: dict[str, dict[str, Any]]) -> None:
    """Print a row per task, then a line per term that a frontend has no form of."""
    frontends = sorted({name for found in support.values() for name in found})
    rows = [
        (task, *(str(found[name]) if name in found else "no" for name in frontends)) for task, found in support.items()
    ]
    _print_table([("task", *frontends), *rows])
    for task, found in support.items():
        for name, one in found.items():
            for problem in one.missing.values():
                print(f"{task}, {name}: {problem}")


def _print_table(rows: list[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
