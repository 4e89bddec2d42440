"""Launch modes and replay contracts, and where their defaults come from."""

from __future__ import annotations

import enum
import os
from typing import TypeVar

from treadle.errors import UnknownNameError

__all__ = ["LaunchContract", "LaunchMode", "resolve_contract", "resolve_mode"]


class LaunchMode(enum.Enum):
    """How launches reach the device, from slowest to fastest on the host."""

    EAGER = "eager"
    """``wp.launch``: Python packs every argument at each call."""
    REPLAY = "replay"
    """A recorded launch is issued again."""
    GRAPH = "graph"
    """Stages that allow it are captured into graphs; all else replays. What can't be captured is warned about."""
    AUTO = "auto"
    """As ``GRAPH`` where the device can capture, else as ``REPLAY``, without a warning."""


class LaunchContract(enum.Enum):
    """What a replay verifies about its arguments."""

    CHECKED = "checked"
    """Every argument is compared with the recorded one; what changed is patched and counted.

    Of a graph, only what it holds and what is declared in ``inputs`` is compared: that its function would pass another
    array or number now shows under ``debug`` alone.
    """
    TRUSTED = "trusted"
    """Nothing is compared. The owner guarantees that arguments persist."""
    DEBUG = "debug"
    """Everything is verified; a change raises :class:`treadle.launch.StaleArgumentError`.

    The function of a graph is run again now and then, in a capture that is thrown away, to see what it passes.
    """


_Choice = TypeVar("_Choice", LaunchMode, LaunchContract)


def resolve_mode(mode: LaunchMode | str | None = None) -> LaunchMode:
    """Return the launch mode: the argument, else ``TREADLE_LAUNCH_MODE``, else ``auto``.

    Raises:
        UnknownNameError: The value is not a launch mode.
    """
    return _resolve(LaunchMode, mode, "launch mode", "TREADLE_LAUNCH_MODE", LaunchMode.AUTO)


def resolve_contract(contract: LaunchContract | str | None = None) -> LaunchContract:
    """Return the contract: the argument, else ``TREADLE_LAUNCH_CONTRACT``, else ``checked``.

    Raises:
        UnknownNameError: The value is not a contract.
    """
    return _resolve(LaunchContract, contract, "launch contract", "TREADLE_LAUNCH_CONTRACT", LaunchContract.CHECKED)


def _resolve(kind: type[_Choice], value: _Choice | str | None, what: str, variable: str, default: _Choice) -> _Choice:
    if isinstance(value, kind):
        return value
    if value is None:
        value = os.environ.get(variable)
        if not value:
            return default
        what = f"{what} in {variable}"
    try:
        return kind(value)
    except ValueError:
        raise UnknownNameError(what, str(value), (choice.value for choice in kind)) from None
