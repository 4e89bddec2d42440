"""Names of a package that load their module when they are first used, so that importing a configuration stays cheap."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(package: str, modules: dict[str, str]) -> Callable[[str], Any]:
    """Return a module-level ``__getattr__`` (PEP 562).

    Args:
        package: Name of the package that offers the names.
        modules: Full name of the module that defines each name.
    """

    def __getattr__(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(modules[name]), name)

    return __getattr__
