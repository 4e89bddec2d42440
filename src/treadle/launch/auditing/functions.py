"""Steps that are calls of a function which the user names, and help where no such call was seen."""

from __future__ import annotations

import ast
import difflib
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from treadle.launch.auditing.events import Step
from treadle.launch.auditing.stack import place_of, token_of
from treadle.launch.auditing.steps import LoopFinder, StepFinder

__all__ = ["FunctionFinder", "defined_functions", "near_names"]

_SHOWN = 6


class FunctionFinder(StepFinder):
    """A step is a call of a function.

    Args:
        needed: Number of complete steps that are wanted.
        module: Name of its module, ``""`` for any. The script itself is ``__main__``, and goes by the name of its file
            as well.
        qualname: Its qualified name.
        patience: How long to wait for a first call to come, or to end, while a loop goes on [s].
        clock: Time [s].
    """

    def __init__(
        self,
        needed: int,
        module: str,
        qualname: str,
        patience: float = 20.0,
        clock: Callable[[], float] = time.monotonic,
    ):
        super().__init__(needed)
        self._module, self._qualname = module, qualname
        self._patience, self._clock = patience, clock
        self._runs: list[list[int]] = []
        self._token: object = None
        self._began: float | None = None
        self._gave_up = False
        self._main_names: set[str] = set()
        self._loops = LoopFinder(needed, patience, clock)
        self._seen = _Functions()

    def observe(self, index: int, frames: list[FrameType]) -> None:
        """Take the stack of the next event."""
        if self._began is None:
            self._began = self._clock()
        if not self._main_names:
            self._main_names.update(*map(_names_of_main, frames))
        if len(self._runs) < 2:  # only then they may be asked for
            self._loops.observe(index, frames)
            self._seen.observe(index, frames)
        for frame in reversed(frames):
            if frame.f_code.co_qualname == self._qualname and self._is_in_module(frame):
                token = token_of(frame)
                if token != self._token:
                    self._token = token
                    self._runs.append([index, index])
                    self._began = self._clock()
                self._runs[-1][1] = index + 1
                return

    def steps(self, count: int) -> list[Step]:
        """Return the calls that are over."""
        over = self._runs if self._runs and self._runs[-1][1] < count else self._runs[:-1]
        return [Step(start, stop) for start, stop in over]

    def describe(self) -> str:
        """Name the function."""
        return f"a call of {self._asked}, as asked"

    def hopeless(self, count: int) -> bool:
        """Return whether the program is in its main loop, and that is not one of calls of the function."""
        if len(self._runs) > 1 or self._began is None or self._clock() - self._began <= self._patience:
            return False
        self._gave_up = self._loops.enough(count)
        return self._gave_up

    def explain(self, count: int) -> str:
        """Say why there are no steps, and which functions could have been meant."""
        if len(self._runs) > 1:
            return ""
        waited = f" within {self._patience:.4g} s (--patience waits longer)" if self._gave_up else ""
        if self._runs:
            over = (
                f"it was called once only{waited}, to be captured perhaps"
                if self.steps(count)
                else f"there was one call of it, which went on{waited}"
            )
            why = f"{over}: a step is one of many calls"
        else:
            where = "" if self._module else ", in any module"
            why = f"nothing was launched in a call of it{where}{waited}{self._why_not_called()}"
        near = near_names(self._qualname, (name for _, name in self._seen.functions))
        if self._runs:
            near = [name for name in near if name != self._qualname]
        found = [f"{module}:{name}" for module, name in self._seen.functions if name in near]
        meant = f"; did you mean {' or '.join(found[:_SHOWN])}?" if found else ""
        return f"--step-function {self._asked}: {why}{meant}; {self._list_seen(count)}"

    @property
    def _asked(self) -> str:
        return f"{self._module}:{self._qualname}" if self._module else self._qualname

    def _is_in_module(self, frame: FrameType) -> bool:
        name = frame.f_globals.get("__name__")
        return self._module in ("", name) or self._module in _names_of_main(frame)

    def _why_not_called(self) -> str:
        """Say what is known about a function that was not seen."""
        if self._module in ("", "__main__") or self._module in self._main_names:
            return ""
        if self._module not in sys.modules:
            return f": no module {self._module!r} was imported, and the script itself is __main__"
        found: object = sys.modules[self._module]
        for part in self._qualname.split("."):
            found = getattr(found, part, None)
        return f": {self._module} has {'it, but it was not called or launches nothing' if found else 'none such'}"

    def _list_seen(self, count: int) -> str:
        """Name the functions that launch: those of an iteration of the main loop where there is one."""
        steps = self._loops.steps(count)
        if not self._seen.functions:
            return "no function of the program launches anything: try --step-at FILE:LINE"
        if steps:
            calls = self._seen.count(steps[0].start, steps[-1].stop)
            each = [f"{name} ({_times(number / len(steps))})" for name, number in calls.items()]
            where = self._loops.describe().removeprefix("an iteration of ")
            if each:
                return f"functions that launch, with calls per iteration of {where}: {_some(each)}"
        each = [f"{name} ({_times(number)})" for name, number in self._seen.count(0, count).items()]
        return f"functions that launch, with calls: {_some(each)}"


@dataclass
class _Calls:
    token: object = None
    starts: list[int] = field(default_factory=list)


class _Functions:
    """The program's own functions that were on the stack of a launch."""

    def __init__(self) -> None:
        self.functions: dict[tuple[str, str], _Calls] = {}

    def observe(self, index: int, frames: list[FrameType]) -> None:
        """Take the stack of the next event, innermost frame first."""
        for frame in reversed(frames):
            code = frame.f_code
            if code.co_name[0] == "<" or place_of(frame, "", "caller").owner != "user":
                continue
            calls = self.functions.setdefault((frame.f_globals.get("__name__", ""), code.co_qualname), _Calls())
            token = token_of(frame)
            if token != calls.token:
                calls.token = token
                calls.starts.append(index)

    def count(self, start: int, stop: int) -> dict[str, int]:
        """Return how often each function was called between two events, the outer ones first."""
        numbers = {
            f"{module}:{name}": sum(start <= index < stop for index in calls.starts)
            for (module, name), calls in self.functions.items()
        }
        return {name: number for name, number in numbers.items() if number}


def defined_functions(file: str) -> list[str]:
    """Return the qualified names of the Python functions that a file defines; none where it can't be read."""
    try:
        tree = ast.parse(Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return []
    found: list[str] = []

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            inner = prefix
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                if not any(map(_is_device_code, child.decorator_list)):
                    found.append(prefix + child.name)
                inner = f"{prefix}{child.name}.<locals>."
            elif isinstance(child, ast.ClassDef):
                inner = f"{prefix}{child.name}."
            visit(child, inner)

    visit(tree, "")
    return found


def _is_device_code(decorator: ast.expr) -> bool:
    """Return whether a decorator makes a kernel, or a function that kernels call."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(called).rpartition(".")[2] in ("kernel", "func", "func_native", "func_grad", "func_replay")


def near_names(name: str, names: Iterable[str]) -> list[str]:
    """Return the names that are like one: mistyped, or the same below another class or function."""
    names = list(dict.fromkeys(names))
    last = name.rpartition(".")[2]
    same = [other for other in names if other.rpartition(".")[2] == last]
    short = {other.rpartition(".")[2]: other for other in reversed(names)}
    close = [short[other] for other in difflib.get_close_matches(last, short, n=3, cutoff=0.7)]
    return list(dict.fromkeys([*same, *difflib.get_close_matches(name, names, n=3, cutoff=0.7), *close]))[:_SHOWN]


def _names_of_main(frame: FrameType) -> tuple[str, ...]:
    """Return what a frame's module may be called by as well, if it runs as ``__main__``: by its file, say."""
    if frame.f_globals.get("__name__") != "__main__":
        return ()
    file, spec = Path(frame.f_code.co_filename), frame.f_globals.get("__spec__")
    return file.name, file.stem, getattr(spec, "name", "")


def _times(number: float) -> str:
    return f"{number:.3g} call" + ("" if number == 1 else "s")


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
