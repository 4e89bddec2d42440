"""The errors that Treadle raises for a user's mistake.

Every message names the field, the value that was given, and what is allowed, so that the command line can print it
as it is.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["ConfigError", "TreadleError", "UnknownNameError", "did_you_mean", "missing_extra"]

_EXTRA_OF_MODULE = {
    "gymnasium": "rl",
    "matplotlib": "plot",
    "mujoco": "sim",
    "mujoco_warp": "sim",
    "newton": "sim",
    "rsl_rl": "rl",
    "tensorboard": "rl",
    "tensordict": "rl",
    "torch": "rl",
    "tyro": "rl",
}
"""The extra of the package that brings a module."""


class TreadleError(Exception):
    """Base class of the errors that a user of Treadle can cause and fix."""


class ConfigError(TreadleError, ValueError):
    """A configuration value is not usable.

    Several problems are reported together: build the error with :meth:`from_problems`.
    """

    @classmethod
    def from_problems(cls, problems: Iterable[str]) -> ConfigError:
        """Join all problems into one error, one after the other."""
        return cls("; ".join(problems))


class UnknownNameError(ConfigError):
    """A name is not one of a closed set of names."""

    def __init__(self, kind: str, name: str, allowed: Iterable[str]):
        """Say which names are allowed, the most similar ones first.

        Args:
            kind: What the name stands for, such as ``"task"``.
            name: The name that was given.
            allowed: The names that exist.
        """
        names = sorted(allowed)
        super().__init__(f"unknown {kind} {name!r}{did_you_mean(name, names)}; allowed: {', '.join(names) or 'none'}")


def missing_extra(error: ModuleNotFoundError, what: str) -> ConfigError | None:
    """Return an error that says which extra brings a missing module, ``None`` for a module that none brings.

    Args:
        error: What was raised.
        what: What needs the module.
    """
    module = (error.name or "").partition(".")[0]
    if (extra := _EXTRA_OF_MODULE.get(module)) is None:
        return None
    extras = extra if extra == "plot" else "sim,rl"
    return ConfigError(
        f"{what} needs {module}, which is not installed; the extra {extra!r} brings it: pip install 'treadle[{extras}]'"
    )


def did_you_mean(name: str, allowed: Iterable[str]) -> str:
    """Return `` (did you mean 'X'?)`` for the names close to ``name``, or an empty string."""
    by_lower = {candidate.lower(): candidate for candidate in allowed}
    near = [candidate for candidate in by_lower if name and candidate.startswith(name.lower())][:3]
    near = near or difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.5)
    if not near:
        return ""
    return f" (did you mean {' or '.join(repr(by_lower[n]) for n in near)}?)"
