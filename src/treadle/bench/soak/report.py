"""What the soak test says."""

from __future__ import annotations

from typing import Any

from treadle.bench.tables import Table

__all__ = ["text"]


def text(report: dict[str, Any]) -> str:
    """Return what was done, what grew, and the verdict."""
    rows = [
        [name, f"{report['samples'][-1][name]:g}", f"{grown:g}", f"{report['bounds'][name]:g}"]
        for name, grown in report["growth"].items()
    ]
    title = "Growth over the second half of the run: median of the last quarter less that of the third"
    table = Table(title, ["quantity", "at the end", "growth", "bound"], rows)
    counts = ", ".join(f"{name} {count}" for name, count in report["counts"].items())
    fine = "all results equal those of eager launches, and nothing grew beyond its bound"
    verdict = "; ".join(report["problems"]) or fine
    return f"{report['seconds']:g} s: {counts}\n\n{table.text()}\n\n{verdict}"
