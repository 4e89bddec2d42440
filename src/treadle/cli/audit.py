"""``treadle audit``."""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from treadle.errors import ConfigError

if TYPE_CHECKING:
    from treadle.launch.auditing.script import Outcome

__all__ = ["run"]

_EPILOG = """\
The program runs until enough steps were seen; it needs no change. Options come before the script:

  treadle audit --steps 20 simulate.py --num-worlds 64
  treadle audit -m newton.examples basic_pendulum --viewer null --device cpu

A step is an iteration of the program's main loop, which the audit finds. --step-function names it instead: "step" is
a function of that name in any module, "Env.step" a method, "envs:Env.step" that of one module. The script itself is
the module __main__, or its name without .py. Where no such call is seen, the functions that launch are listed.

The exit status is 0 with a report, 2 without one, and the program's own where that failed."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message}; see 'treadle audit --help'")


def run(argv: list[str]) -> int:
    """Audit a program and print the report.

    Returns:
        Exit status: 0, or that of the program if it failed.

    Raises:
        ConfigError: An option cannot be used, or the program was over before its steps were seen.
    """
    options = _parser().parse_args(argv)
    _check_outputs(options)
    from treadle.launch.auditing.script import audit_script

    target, *args = options.program
    outcome = audit_script(
        target,
        args,
        module=options.module,
        steps=options.steps,
        skip=options.skip,
        step_function=options.step_function,
        step_at=options.step_at,
        patience=options.patience,
        on_stuck=lambda outcome: _show(outcome, options),
    )
    return _show(outcome, options)


def _parser() -> _Parser:
    parser = _Parser(
        prog="treadle audit",
        usage="treadle audit [OPTIONS] SCRIPT [ARGS...]  |  treadle audit [OPTIONS] -m MODULE [ARGS...]",
        description="Run a program that uses Warp, watch its kernel launches, and tell what replay and graphs would "
        "save.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("-m", dest="module", action="store_true", help="the program is a module")
    parser.add_argument(
        "--steps", type=int, default=10, metavar="N", help="steps to report (default: 10; a verdict needs at least 4)"
    )
    parser.add_argument("--skip", type=int, default=2, metavar="N", help="steps before them (default: 2)")
    parser.add_argument("--step-function", metavar="[MODULE:]NAME", help="a step is a call of this function; see below")
    parser.add_argument("--step-at", metavar="FILE:LINE", help="a step begins when this line is reached")
    parser.add_argument(
        "--patience",
        type=float,
        default=20.0,
        metavar="S",
        help="seconds to wait for the outermost loop, or for a first call of the function (default: 20)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report as JSON, too")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw host time by site as .svg, .png or .pdf")
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="SCRIPT [ARGS...]", help="what to run")
    return parser


def _check_outputs(options: argparse.Namespace) -> None:
    """Find out before the program runs what would be in the way after it.

    Raises:
        ConfigError: There is no program, a file can't be written, or matplotlib is missing.
    """
    if options.program and options.program[0] == "--":
        del options.program[0]
    if not options.program:
        raise ConfigError("'treadle audit' needs a script, or -m and a module; see 'treadle audit --help'")
    if options.program[0].startswith("-"):
        raise ConfigError(f"unknown option {options.program[0]!r}; see 'treadle audit --help'")
    for option in ("json", "plot"):
        path = getattr(options, option)
        if path is not None:
            path = path.resolve()
            setattr(options, option, path)
            if not path.parent.is_dir():
                raise ConfigError(f"--{option}: there is no directory {path.parent}")
    if options.plot is not None:
        if options.plot.suffix not in (".svg", ".png", ".pdf"):
            raise ConfigError(f"--plot is {options.plot.name!r}; allowed: a name that ends in .svg, .png or .pdf")
        if importlib.util.find_spec("matplotlib") is None:
            raise ConfigError("--plot needs matplotlib, which is not installed; pip install 'treadle[plot]' brings it")


def _show(outcome: Outcome, options: argparse.Namespace) -> int:
    """Print and write the report; return the exit status."""
    report = outcome.report
    if report is None:
        if outcome.status:
            return outcome.status
        raise ConfigError(outcome.why_not)
    print(f"\n{report}", flush=True)
    if options.json is not None:
        options.json.write_text(report.to_json() + "\n")
    if options.plot is not None:
        from treadle.launch.auditing.plot import draw

        draw(report, options.plot)
    return outcome.status
