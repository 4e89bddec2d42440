"""Auditing a program that runs as a script or a module."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import runpy
import shlex
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import warp as wp

from treadle.errors import ConfigError
from treadle.launch.auditing.functions import FunctionFinder, defined_functions, near_names
from treadle.launch.auditing.report import AuditReport
from treadle.launch.auditing.steps import LineFinder, LoopFinder, StepFinder
from treadle.launch.auditing.text import shorten
from treadle.launch.auditing.watch import LaunchWatch

__all__ = ["Outcome", "audit_script", "make_finder"]

_MAX_CAUGHT = 100
"""How often the program may catch the order to stop before the process is ended."""


class _StopAudit(BaseException):
    """Ends the audited program: enough was seen. No ``Exception``, so that the program's own handlers let it pass."""


@dataclass(frozen=True)
class Outcome:
    """How an audited program ended."""

    report: AuditReport | None
    """``None`` where too little was seen."""
    why_not: str = ""
    """Why there is no report."""
    status: int = 0
    """Exit status of the program, where it ended by itself; 1 after an exception."""


def make_finder(needed: int, function: str | None = None, at: str | None = None, patience: float = 20.0) -> StepFinder:
    """Return what divides a program into steps.

    Args:
        needed: Number of steps that are wanted.
        function: ``module:qualname`` or ``qualname`` of a function whose calls are the steps.
        at: ``file:line`` that is reached once in each step.
        patience: How long to wait for an outer loop to come round, or for a first call of the function [s].

    Raises:
        ConfigError: Both are given, or one of them is not of its form.
    """
    if function is not None and at is not None:
        raise ConfigError("--step-function cannot be combined with --step-at; allowed: one of them")
    if function is not None:
        module, _, name = function.rpartition(":")
        if not re.fullmatch(r"[\w.<>]+", name):
            raise ConfigError(f"--step-function is {function!r}; allowed: module:qualname or qualname")
        return FunctionFinder(needed, module, name, patience)
    if at is not None:
        file, _, line = at.rpartition(":")
        if not file or not line.isdigit():
            raise ConfigError(f"--step-at is {at!r}; allowed: file:line")
        return LineFinder(needed, file, int(line))
    return LoopFinder(needed, patience)


def audit_script(
    target: str,
    args: Sequence[str] = (),
    *,
    module: bool = False,
    steps: int = 10,
    skip: int = 2,
    step_function: str | None = None,
    step_at: str | None = None,
    patience: float = 20.0,
    on_stuck: Callable[[Outcome], object] | None = None,
) -> Outcome:
    """Run a program until enough of its steps were seen, and report them.

    Args:
        target: Path of a script, or name of a module.
        args: Its arguments.
        module: Whether ``target`` is a module, as in ``python -m``.
        steps: Number of steps to report.
        skip: Number of steps before them.
        step_function: ``module:qualname`` or ``qualname`` of a function whose calls are the steps.
        step_at: ``file:line`` that is reached once in each step.
        patience: How long to wait for an outer loop to come round, or for a first call of the function [s].
        on_stuck: Called with the outcome where the program catches everything and can't be stopped, before the process
            is ended.

    Returns:
        The outcome. The traceback of an exception of the program has been written to stderr.

    Raises:
        ConfigError: There is no such script, or an option can't be used.
    """
    if not module and not Path(target).is_file():
        raise ConfigError(f"there is no script {target!r}; name a Python file, or a module with -m")
    if module and importlib.util.find_spec(target) is None:
        raise ConfigError(f"there is no module {target!r}")
    if steps < 1 or skip < 0:
        raise ConfigError(f"--steps is {steps} and --skip is {skip}; allowed: at least 1 and at least 0")
    finder = make_finder(steps + skip, step_function, step_at, patience)
    if step_function is not None and not module:
        _check_function(step_function, target)
    run = _Run(shlex.join([target, *args]), finder, steps, skip, on_stuck)
    status = run.execute(lambda: _execute(target, module), [target, *args])
    return run.outcome(status)


def _check_function(asked: str, script: str) -> None:
    """Find out before the program runs whether the script has a function that is said to be its own.

    Raises:
        ConfigError: It has not.
    """
    module, _, name = asked.rpartition(":")
    names = defined_functions(script)
    if module not in ("__main__", Path(script).name, Path(script).stem) or name in names or not names:
        return
    near = near_names(name, names)
    meant = f"did you mean {' or '.join(near)}?" if near else f"it defines {', '.join(names[:8])}"
    raise ConfigError(f"--step-function {asked}: {Path(script).name} defines no function {name!r}; {meant}")


class _Run:
    """A program under audit."""

    def __init__(
        self, program: str, finder: StepFinder, steps: int, skip: int, on_stuck: Callable[[Outcome], object] | None
    ):
        self._program, self._finder, self._steps, self._skip = program, finder, steps, skip
        self._on_stuck = on_stuck
        self._stopping = False
        self._caught = 0
        self._watch: LaunchWatch | None = None

    def execute(self, program: Callable[[], object], argv: list[str]) -> int:
        """Run the program; return its exit status."""
        with _as_main_program(argv), LaunchWatch(sys._getframe(), self._on_event) as self._watch:
            try:
                program()
                status = 0
            except _StopAudit:
                status = 0
            except SystemExit as stop:
                status = _status_of(stop)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                _print_traceback(error)
                status = 1
            self._watch.drain([wp.get_device(name) for name in self._devices()])
        return 0 if self._stopping else status

    def outcome(self, status: int) -> Outcome:
        """Return what can be said about the program."""
        from treadle.launch.auditing.build import Measured, build_report, main_device
        from treadle.launch.auditing.costs import measure_costs, measure_hook_us

        assert self._watch is not None
        recording = self._watch.recording
        found = self._finder.steps(len(recording.events))
        steps = found[self._skip : self._skip + self._steps]
        if not steps:
            return Outcome(None, shorten(self._too_little(len(recording.events), len(found))), status)
        notes = []
        if len(steps) < self._steps:
            ended = "there was no other call" if self._stopping else "the program ended"
            notes.append(f"{ended} after {len(found)} steps, of which {len(steps)} are reported")
        if isinstance(self._finder, LoopFinder):
            notes.append("if this is not the step that you mean, name it: --step-function NAME or --step-at FILE:LINE")
        measured = Measured(measure_costs(main_device(recording)), *measure_hook_us())
        report = build_report(self._program, recording, steps, self._finder.describe(), measured, notes)
        return Outcome(report, "", status)

    def _devices(self) -> set[str]:
        assert self._watch is not None
        return {event.device for event in self._watch.recording.events if event.device}

    def _too_little(self, launches: int, steps: int) -> str:
        if launches == 0:
            return f"{self._program} ended without a launch of a Warp kernel"
        explained = self._finder.explain(launches)
        if explained:
            return explained
        return (
            f"{self._program} ended after {launches} launches and {steps} complete steps, where a step is "
            f"{self._finder.describe()}; {self._skip} are skipped: let it run longer, or name the step with "
            "--step-function or --step-at"
        )

    def _on_event(self, index: int, frames: list[FrameType], captured: bool) -> None:
        """Watch for the steps, and stop the program once there are enough: before a launch, outside of a capture."""
        if not self._stopping:
            self._finder.observe(index, frames)
            self._stopping = not captured and (self._finder.enough(index) or self._finder.hopeless(index))
        if self._stopping and not captured and not _is_unwinding():
            self._caught += 1
            if self._caught > _MAX_CAUGHT:
                self._end_process()
            raise _StopAudit

    def _end_process(self) -> None:
        """End the process: the program catches everything."""
        assert self._watch is not None
        self._watch.__exit__(None, None, None)
        if self._on_stuck is not None:
            self._on_stuck(self.outcome(0))
        sys.stdout.flush()
        os._exit(0)


def _is_unwinding() -> bool:
    """Return whether the program is cleaning up, in a ``finally`` say, because it is being stopped."""
    error = sys.exc_info()[1]
    while error is not None:
        if isinstance(error, _StopAudit):
            return True
        error = error.__context__
    return False


def _execute(target: str, module: bool) -> None:
    if module:
        runpy.run_module(target, run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(target, run_name="__main__")


@contextlib.contextmanager
def _as_main_program(argv: list[str]) -> Iterator[None]:
    """Give the program its arguments, and its folder on the path, as Python does."""
    old_argv, old_path = sys.argv, sys.path
    folder = str(Path(argv[0]).resolve().parent) if Path(argv[0]).is_file() else os.getcwd()
    sys.argv, sys.path = argv, [folder, *old_path]
    try:
        yield
    finally:
        sys.argv, sys.path = old_argv, old_path


def _status_of(stop: SystemExit) -> int:
    """Return the exit status, and write the message, as Python does at its end."""
    if stop.code is None or isinstance(stop.code, int):
        return stop.code or 0
    print(stop.code, file=sys.stderr)
    return 1


def _print_traceback(error: BaseException) -> None:
    """Write the traceback of the program's exception, from its own first line on."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__") in (__name__, "runpy"):
        trace = trace.tb_next
    frozen = trace
    while frozen is not None and frozen.tb_frame.f_code.co_filename.startswith("<frozen runpy"):
        frozen = frozen.tb_next
    traceback.print_exception(type(error), error, frozen or error.__traceback__)
