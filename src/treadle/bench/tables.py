"""Tables as plain text and as Markdown."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Table", "replace_block"]


@dataclass(frozen=True)
class Table:
    """A title, a header and rows of text. The first columns are names, the others numbers."""

    title: str
    header: list[str]
    rows: list[list[str]]
    names: int = 1
    """Number of columns that hold names."""

    def text(self) -> str:
        """Return the table for a terminal."""
        lines = [self.header, *self.rows]
        widths = [max(len(row[column]) for row in lines) for column in range(len(self.header))]
        return "\n".join([self.title, *("  ".join(self._cells(row, widths)).rstrip() for row in lines)])

    def markdown(self) -> str:
        """Return the table for a Markdown page."""
        rule = ["---" if column < self.names else "---:" for column in range(len(self.header))]
        lines = [self.header, rule, *self.rows]
        return "\n".join([f"**{self.title}**", "", *(f"| {' | '.join(row)} |" for row in lines)])

    def _cells(self, row: list[str], widths: list[int]) -> list[str]:
        pairs = enumerate(zip(row, widths, strict=True))
        return [cell.ljust(width) if column < self.names else cell.rjust(width) for column, (cell, width) in pairs]


def replace_block(page: str, name: str, content: str) -> str:
    """Return a page with what stands between ``<!-- begin NAME -->`` and ``<!-- end NAME -->`` replaced.

    Raises:
        ValueError: The page has no such block.
    """
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"no block between {begin!r} and {end!r}")
    return f"{before}{begin}\n{content.strip()}\n{end}{after}"
