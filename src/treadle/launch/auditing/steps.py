"""What a step of a program is: found from the stacks of its launches."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType

from treadle.launch.auditing.events import Step
from treadle.launch.auditing.loops import Loop, innermost_loop, loops_of
from treadle.launch.auditing.stack import token_of

__all__ = ["LineFinder", "LoopFinder", "StepFinder"]

_SETTLE_S = 0.5
"""A loop counts as the program's main one once it has gone on for so long: loops of a set-up are over by then."""
_MAX_EVENTS = 50_000
"""For how many events to wait for an outer loop: each takes about a kilobyte."""


class StepFinder:
    """Divides the events of a program into steps.

    Args:
        needed: Number of complete steps that are wanted.
    """

    def __init__(self, needed: int):
        self.needed = needed

    def observe(self, index: int, frames: list[FrameType]) -> None:
        """Take the stack of the next event, innermost frame first."""
        raise NotImplementedError

    def enough(self, count: int) -> bool:
        """Return whether ``count`` events hold all steps that are wanted."""
        return len(self.steps(count)) >= self.needed

    def steps(self, count: int) -> list[Step]:
        """Return the complete steps among the first ``count`` events."""
        raise NotImplementedError

    def describe(self) -> str:
        """Say what was taken as a step."""
        raise NotImplementedError

    def hopeless(self, count: int) -> bool:
        """Return whether there is nothing to wait for any more."""
        return False

    def explain(self, count: int) -> str:
        """Say more about why there are no steps; ``""`` if nothing is known."""
        return ""


class LineFinder(StepFinder):
    """A step begins whenever a line is reached.

    Args:
        needed: Number of complete steps that are wanted.
        file: Path, or the end of one.
        line: Number of the line.
    """

    def __init__(self, needed: int, file: str, line: int):
        super().__init__(needed)
        self._file, self._line = Path(file), line
        self._starts: list[int] = []
        self._last: tuple[object, object, int] | None = None

    def observe(self, index: int, frames: list[FrameType]) -> None:
        """Take the stack of the next event."""
        for depth in reversed(range(len(frames))):
            frame = frames[depth]
            if (
                frame.f_lineno == self._line
                and Path(frame.f_code.co_filename).parts[-len(self._parts) :] == self._parts
            ):
                child = token_of(frames[depth - 1]) if depth else None
                now = (token_of(frame), child, frame.f_lasti)
                if self._begins(now):
                    self._starts.append(index)
                self._last = now
                return
        self._last = None

    def steps(self, count: int) -> list[Step]:
        """Return the steps between the times that the line was reached."""
        return _between(self._starts)

    def describe(self) -> str:
        """Name the line."""
        return f"from one time that {self._file}:{self._line} is reached to the next, as asked"

    @property
    def _parts(self) -> tuple[str, ...]:
        return self._file.parts

    def _begins(self, now: tuple[object, object, int]) -> bool:
        if self._last is None or now[0] != self._last[0]:
            return True
        if now[2] == self._last[2]:
            return now[1] is None or now[1] != self._last[1]
        return now[2] < self._last[2]


@dataclass
class _Running:
    """A loop that is, or was, going on in one run of a function."""

    code: CodeType
    loop: Loop | None
    """``None`` where a function is called again and again from one place without a loop in Python."""
    line: int
    depth: int
    began: float
    starts: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class _Level:
    """A frame of the stack of an event."""

    token: object
    code: CodeType
    at: int
    line: int


class LoopFinder(StepFinder):
    """A step is an iteration of the outermost loop that comes round often enough.

    Which loops a launch is in, the bytecode of the functions on the stack says; that a loop came round is seen from the
    instruction that the function is at: it went back, or it is the same and has called another time.

    Args:
        needed: Number of complete steps that are wanted.
        patience: How long to wait for a loop around the one that is going on to come round [s].
        clock: Time [s].
    """

    def __init__(self, needed: int, patience: float = 20.0, clock: Callable[[], float] = time.monotonic):
        super().__init__(needed)
        self._patience = patience
        self._clock = clock
        self._outer: str | None = None
        self._stack: list[_Level] = []
        self._loops: dict[tuple[object, int], _Running] = {}

    def observe(self, index: int, frames: list[FrameType]) -> None:
        """Take the stack of the next event."""
        stack = [_Level(token_of(frame), frame.f_code, frame.f_lasti, frame.f_lineno) for frame in reversed(frames)]
        self._note_repetition(index, self._stack, stack)
        self._stack = stack

    def enough(self, count: int) -> bool:
        """Return whether the outermost loop has come round often enough, or patience with it is over."""
        best = self._best(going_on=True)
        if best is None:
            return False
        self._outer = self._find_outer(best)
        wait = _SETTLE_S if self._outer is None else self._patience
        return count > _MAX_EVENTS or self._clock() - best.began > wait

    def steps(self, count: int) -> list[Step]:
        """Return the iterations that are over."""
        best = self._best(going_on=True) or self._best(going_on=False)
        return [] if best is None else _between(best.starts)

    def describe(self) -> str:
        """Name the loop."""
        best = self._best(going_on=True) or self._best(going_on=False)
        if best is None:
            return "no loop was found"
        where = f"{best.code.co_filename}:{best.line} in {best.code.co_qualname}"
        what = f"an iteration of the loop at {where}" if best.loop else f"a call made at {where}"
        if self._outer is None:
            return what
        return f"{what} (that of the loop around it, at {self._outer} , takes too long: see --patience)"

    def _find_outer(self, run: _Running) -> str | None:
        """Return where the functions on the stack are in a loop around this one, ``None`` if they aren't."""
        for level in self._stack[: run.depth + 1]:
            loop = next((loop for loop in loops_of(level.code) if loop.holds(level.at)), None)
            if level is self._stack[run.depth]:
                return None if loop in (None, run.loop) else f"{level.code.co_filename}:{loop.line}"
            if loop is not None:
                return f"{level.code.co_filename}:{loop.line}"
        return None

    def _best(self, going_on: bool) -> _Running | None:
        """Return the outermost loop with enough iterations; without any, the one with the most launches."""
        present = {level.token for level in self._stack}
        loops = [run for (token, _), run in self._loops.items() if not going_on or token in present]
        ready = [run for run in loops if len(run.starts) > self.needed]
        if ready:
            return min(ready, key=lambda run: (run.depth, 0 if run.loop is None else run.loop.start - run.loop.stop))
        ended = [run for run in loops if len(run.starts) > 2] if not going_on else []
        return max(ended, key=lambda run: run.starts[-1] - run.starts[0], default=None)

    def _note_repetition(self, index: int, before: list[_Level], now: list[_Level]) -> None:
        """Find the outermost function that is still running and has moved on, and what loop it came round, if any."""
        for depth, (old, new) in enumerate(zip(before, now, strict=False)):
            if old.token != new.token:
                return
            again = old.at == new.at and self._called_again(before, now, depth)
            if new.at < old.at or again:
                loop = innermost_loop(new.code, old.at, new.at)
                if loop is not None or again:
                    self._count(index, depth, new, loop)
            if new.at != old.at or again:
                return

    def _called_again(self, before: list[_Level], now: list[_Level], depth: int) -> bool:
        """Return whether a function, at the same instruction as before, has called another time from there."""
        if depth + 1 == len(before) or depth + 1 == len(now):
            return True
        return before[depth + 1].token != now[depth + 1].token

    def _count(self, index: int, depth: int, level: _Level, loop: Loop | None) -> None:
        key = (level.token, level.at if loop is None else loop.start)
        run = self._loops.get(key)
        if run is None:
            line = level.line if loop is None else loop.line
            run = self._loops[key] = _Running(level.code, loop, line, depth, self._clock())
        run.starts.append(index)


def _between(starts: list[int]) -> list[Step]:
    return [Step(start, stop) for start, stop in pairwise(starts)]
