"""A pipeline as a table: which stage runs how, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["PipelineTable", "StageRow"]

_HEADS = ("stage", "island", "launches", "mode", "host us", "elapsed us", "why no graph")


@dataclass(frozen=True)
class StageRow:
    """One stage. What belongs to a whole island stands at its first stage."""

    stage: str
    island: int
    """Number of the island, from 1."""
    launches: int | None
    """Launches of the island by the launch caches in one run, if they are known."""
    mode: str
    """``graph``, ``replay`` or ``eager``."""
    host_us: float | None
    """Median host time of the island [us]."""
    elapsed_us: float | None
    """Median time between the events before and after the island on the device [us]; ``None`` on the CPU.

    Where the device waits for the host in between, that is in it.
    """
    reason: str
    """Why the stage runs without a graph, empty if it has one or none was asked for."""

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as text."""
        times = ("" if time is None else f"{time:.1f}" for time in (self.host_us, self.elapsed_us))
        launches = "" if self.launches is None else str(self.launches)
        return (self.stage, str(self.island), launches, self.mode, *times, self.reason)


@dataclass(frozen=True)
class PipelineTable:
    """What :meth:`Pipeline.explain` returns. ``str`` gives plain text, and ``rich`` renders it as a table."""

    title: str
    rows: tuple[StageRow, ...]

    def __str__(self) -> str:
        """Return a line per stage under a line of heads."""
        lines = [_HEADS, *(row.cells for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        texts = ("  ".join(self._aligned(cells, widths)).rstrip() for cells in lines)
        return "\n".join((self.title, *texts))

    def __rich__(self) -> Any:
        """Return a table of ``rich``, which asks for it, and is installed then."""
        from rich.table import Table

        table = Table(title=self.title)
        for index, head in enumerate(_HEADS):
            table.add_column(head, justify="right" if _is_number(index) else "left")
        for row in self.rows:
            table.add_row(*row.cells)
        return table

    @staticmethod
    def _aligned(cells: tuple[str, ...], widths: list[int]) -> list[str]:
        pairs = enumerate(zip(cells, widths, strict=True))
        return [cell.rjust(width) if _is_number(index) else cell.ljust(width) for index, (cell, width) in pairs]


def _is_number(column: int) -> bool:
    return _HEADS[column] in ("island", "launches", "host us", "elapsed us")
