"""What the soak test says."""

from __future__ import annotations

from typing import Any

from treadle.bench.tables import Table, replace_block

__all__ = ["docs_block", "text", "update_page"]


def text(report: dict[str, Any]) -> str:
    """Return what was done, what grew, and the verdict."""
    return f"{_done(report)}\n\n{_growth(report).text()}\n\n{_verdict(report)}"


def docs_block(report: dict[str, Any]) -> str:
    """Return what the documentation shows: the same, and where it comes from."""
    source = report["provenance"]
    versions, git = source["versions"], source["git"]
    revision = f" ({git['revision'][:9]}{' with changes' if git['dirty'] else ''})" if git else ""
    where = (
        f"`{source['command']}` with Treadle {versions['treadle']}{revision}, Warp {versions['warp']}, Python "
        f"{versions['python']} on {source['device']['name']}, {source['utc'][:10]}."
    )
    return f"{where}\n\n{_done(report)}.\n\n{_growth(report).markdown()}\n\nResult: {_verdict(report)}."


def update_page(page: str, report: dict[str, Any]) -> str:
    """Return a page of the documentation with its block made anew from a report.

    Raises:
        ValueError: The page has no such block.
    """
    return replace_block(page, "soak", docs_block(report))


def _growth(report: dict[str, Any]) -> Table:
    rows = [
        [name, f"{report['samples'][-1][name]:g}", f"{grown:g}", f"{report['bounds'][name]:g}"]
        for name, grown in report["growth"].items()
    ]
    title = "Growth over the second half of the run: median of the last quarter less that of the third"
    return Table(title, ["quantity", "at the end", "growth", "bound"], rows)


def _done(report: dict[str, Any]) -> str:
    counts = ", ".join(f"{name} {count}" for name, count in report["counts"].items())
    return f"{report['seconds']:g} s: {counts}"


def _verdict(report: dict[str, Any]) -> str:
    fine = "all results equal those of eager launches, and nothing grew beyond its bound"
    return "; ".join(report["problems"]) or fine
