"""What reports are written as: tables, blocks of pages, JSON files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Table", "replace_block", "write_json"]


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


def write_json(path: Path, report: Mapping[str, Any]) -> None:
    """Write a report with a line per key, and per entry of its long lists, making the folder where it is missing."""
    parts = []
    for key, value in report.items():
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        if isinstance(value, list) and value and isinstance(value[0], dict):
            lines = [json.dumps(entry, ensure_ascii=False, allow_nan=False) for entry in value]
            text = "[\n  " + ",\n  ".join(lines) + "\n ]"
        parts.append(f" {json.dumps(key)}: {text}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")
