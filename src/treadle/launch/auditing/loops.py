"""The loops in a function's bytecode."""

from __future__ import annotations

import dis
from dataclasses import dataclass
from functools import cache
from types import CodeType

__all__ = ["Loop", "innermost_loop", "loops_of"]


@dataclass(frozen=True)
class Loop:
    """A loop: the instructions from ``start`` to ``stop``, both included."""

    start: int
    stop: int
    line: int

    def holds(self, *instructions: int) -> bool:
        """Return whether instructions are in the loop."""
        return all(self.start <= instruction <= self.stop for instruction in instructions)


@cache
def loops_of(code: CodeType) -> tuple[Loop, ...]:
    """Return the loops of a function, the outer ones first."""
    lines = {start: line for start, _, line in code.co_lines() if line is not None}
    line, line_at = code.co_firstlineno, {}
    found: list[list[int]] = []
    for instruction in dis.get_instructions(code):
        line = line_at[instruction.offset] = lines.get(instruction.offset, line)
        if "JUMP_BACKWARD" in instruction.opname and "INTERRUPT" not in instruction.opname:
            found.append([instruction.argval, instruction.offset])
    merged: list[list[int]] = []
    for start, stop in sorted(found, key=lambda jump: (jump[0], -jump[1])):
        last = next((loop for loop in reversed(merged) if loop[0] <= start <= loop[1]), None)
        if last is not None and (stop > last[1] or start == last[0]):
            last[1] = max(last[1], stop)  # another way back to the head, as `continue` is
        else:
            merged.append([start, stop])
    loops = [Loop(start, stop, min(line_at.get(start, line), line_at[stop])) for start, stop in merged]
    return tuple(sorted(loops, key=lambda loop: loop.start - loop.stop))


def innermost_loop(code: CodeType, *instructions: int) -> Loop | None:
    """Return the smallest loop that holds all of the instructions."""
    return next((loop for loop in reversed(loops_of(code)) if loop.holds(*instructions)), None)
