"""Output that cannot be written any more, because its reader went away, its terminal was closed or its disk is full."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import TextIO

__all__ = [
    "can_print",
    "complain",
    "discard",
    "escape_unknown_characters",
    "open_missing_streams",
    "output_may_be_lost",
]


def open_missing_streams() -> None:
    """Let closed standard streams lead nowhere. Otherwise the next file to be opened would take their place."""
    for descriptor, name in ((0, "stdin"), (1, "stdout"), (2, "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != descriptor:
                os.dup2(opened, descriptor)
                os.close(opened)
        if getattr(sys, name) is None:
            setattr(sys, name, open(descriptor, "r" if descriptor == 0 else "w", closefd=False))


def can_print(text: str) -> bool:
    """Return whether the encoding of stdout has the characters of a text."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def escape_unknown_characters() -> None:
    """Let a character that the encoding of stdout does not have, as in a path, be no error."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def complain(text: str) -> None:
    """Print a line on stderr, if that is possible."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        discard(sys.stderr)


def discard(stream: TextIO) -> None:
    """Let a stream lead nowhere from now on, with what it still holds."""
    with contextlib.suppress(OSError):  # a test's stream has no descriptor
        null = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(null, stream.fileno())
        finally:
            os.close(null)


@contextlib.contextmanager
def output_may_be_lost() -> Iterator[None]:
    """Around prints alone: when they cannot be written, nothing is printed from then on, and the work goes on."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        discard(sys.stdout)
        complain(f"treadle: warning: the output cannot be written any more: {error.strerror}; going on without")
