"""Exceptions that a configuration causes by asking for too much become one line; all others keep their traceback."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterator

from treadle.errors import ConfigError

__all__ = ["sizes_as_errors"]

_log = logging.getLogger(__name__)

_OUT_OF_MEMORY = re.compile(
    r"out of memory|not enough memory|can(no|')t allocate memory|failed to allocate", re.IGNORECASE
)
_TOO_LARGE = re.compile(
    r"size calculation overflowed|overflow when unpacking|array is too big|maximum allowed dimension"
    r"|exceed the maximum representable value",
    re.IGNORECASE,
)
_TORCH_PLACE = re.compile(r"^\[enforce fail at [^]]*\][^.]*\. (DefaultCPUAllocator: )?")


@contextlib.contextmanager
def sizes_as_errors(doing: str, *, building: bool = True) -> Iterator[None]:
    """Turn a lack of memory into one line, and, while something is built, also numbers that are too large for it.

    Args:
        doing: What goes on inside, such as ``"building the environment"``.
        building: Whether sizes come from the configuration alone.

    Raises:
        ConfigError: What was asked for does not fit.
    """
    try:
        yield
    except (MemoryError, OverflowError, RuntimeError, TypeError, ValueError) as error:
        if isinstance(error, ConfigError) or not _is_too_much(error, building):
            raise
        _log.debug("%s failed", doing, exc_info=True)
        reason = _TORCH_PLACE.sub("", str(error).strip().partition("\n")[0]) or type(error).__name__
        raise ConfigError(
            f"{doing} needs more than there is: {reason}; allowed: fewer environments (--num-envs), fewer steps per "
            "iteration (--agent.num-steps-per-env), smaller networks or smaller solver buffers"
        ) from error


def _is_too_much(error: Exception, building: bool) -> bool:
    if isinstance(error, MemoryError) or _OUT_OF_MEMORY.search(str(error)):
        return True
    return building and (isinstance(error, OverflowError) or bool(_TOO_LARGE.search(str(error))))
