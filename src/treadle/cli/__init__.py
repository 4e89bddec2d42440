"""The command line, ``treadle``.

A command is imported when it is called, so listing tasks or naming a wrong one loads neither torch nor Newton.
"""

from __future__ import annotations

import errno
import importlib
import logging
import sys
from collections.abc import Sequence

from treadle import __version__
from treadle.cli.output import complain, discard, escape_unknown_characters, open_missing_streams
from treadle.errors import TreadleError, UnknownNameError, missing_extra

__all__ = ["main"]

_COMMANDS = {
    "list": ("treadle.cli.list_tasks", "list the tasks"),
    "train": ("treadle.cli.train", "train a policy for a task"),
    "play": ("treadle.cli.play", "play a trained policy and measure it"),
    "explain": ("treadle.cli.explain", "say how a task's step runs, and what it costs"),
    "bench": ("treadle.cli.bench", "measure what launches cost"),
    "audit": ("treadle.cli.audit", "tell what replay and graphs would save in a program"),
}
"""Module of each command, which has ``run(argv) -> int``, and its line in the help."""

_ERROR = 2
_INTERRUPTED = 130
_BROKEN_PIPE = 141
_FULL = (errno.ENOSPC, errno.EDQUOT)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    A user's mistake becomes one line on stderr, and so does each warning.

    Args:
        argv: Command and options; the process's own when ``None``.

    Returns:
        Exit status: 0, 2 after a mistake, 130 after an interruption.
    """
    open_missing_streams()
    escape_unknown_characters()
    warnings = _Warnings()
    logger = logging.getLogger("treadle")
    logger.addHandler(warnings)
    try:
        status = _dispatch(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()  # where Python does it, after this, a failure is no line but a traceback
        return status
    except TreadleError as error:
        return _fail(str(error))
    except ModuleNotFoundError as error:
        if (missing := missing_extra(error, "this command")) is None:
            raise
        return _fail(str(missing))
    except KeyboardInterrupt:
        complain("treadle: interrupted")
        return _INTERRUPTED
    except BrokenPipeError:  # the reader of our output went away, as in `treadle train TASK --help | head`
        discard(sys.stdout)
        return _BROKEN_PIPE
    except OSError as error:
        if error.errno not in _FULL:
            raise
        discard(sys.stdout)
        return _fail(f"{error.filename or 'the output'} cannot be written: {error.strerror}")
    finally:
        logger.removeHandler(warnings)


class _Warnings(logging.Handler):
    """Prints what the package warns of, each in one line."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record."""
        complain(f"treadle: warning: {' '.join(record.getMessage().split())}")


def _dispatch(argv: list[str]) -> int:
    command = argv[0] if argv else "--help"
    if command in ("-h", "--help"):
        print(_help())
        return 0 if argv else _ERROR
    if command == "--version":
        print(f"treadle {__version__}")
        return 0
    if command not in _COMMANDS:
        raise UnknownNameError("command", command, _COMMANDS)
    run = importlib.import_module(_COMMANDS[command][0]).run
    try:
        return int(run(argv[1:]))
    except SystemExit as stop:  # argument parsers leave like this after --help
        return int(stop.code or 0)


def _help() -> str:
    lines = ["usage: treadle COMMAND ...", "", "Robot-learning environments on NVIDIA Warp.", "", "commands:"]
    lines += [f"  {name:<8} {summary}" for name, (_, summary) in _COMMANDS.items()]
    lines += ["", "options:", "  -h, --help  show this help", "  --version   show the version", ""]
    return "\n".join([*lines, "'treadle COMMAND --help' describes a command."])


def _fail(message: str) -> int:
    complain(f"treadle: error: {' '.join(message.split())}")
    return _ERROR
