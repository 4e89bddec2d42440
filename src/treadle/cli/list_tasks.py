"""``treadle list``."""

from __future__ import annotations

import json

from treadle.cli.imports import import_modules, split_imports
from treadle.errors import ConfigError
from treadle.registry import list_tasks, task_spec

__all__ = ["run"]

_HELP = """usage: treadle list [--import MODULE] [--json]

List the tasks with their frontends.

options:
  -h, --help       show this help
  --import MODULE  import a module that registers tasks first
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
    if unknown := [arg for arg in argv if arg != "--json"]:
        raise ConfigError(f"unknown option {unknown[0]!r} of 'treadle list'; allowed: --import, --json")
    import_modules(modules)
    specs = [task_spec(task_id) for task_id in list_tasks()]
    if argv:
        tasks = [{"id": s.task_id, "frontends": sorted(s.frontends), "description": s.description} for s in specs]
        print(json.dumps(tasks, indent=2))
        return 0
    rows = [(s.task_id, ", ".join(sorted(s.frontends)), s.description) for s in specs]
    header = ("task", "frontends", "description")
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(2)]
    for row in [header, *rows]:
        print(f"{row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]}".rstrip())
    return 0
