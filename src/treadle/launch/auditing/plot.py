"""A picture of the report."""

from __future__ import annotations

from pathlib import Path

from treadle.launch.auditing.report import AuditReport
from treadle.launch.auditing.text import short_path

__all__ = ["draw"]

_MAX_SITES = 20
_BARS = (("now", "host_us", "#4c566a"), ("replayed", "replay_us", "#d08770"), ("in a graph", "graph_us", "#5e81ac"))


def draw(report: AuditReport, path: Path) -> None:
    """Draw host time per step by site, now and after, into a file whose ending says the format.

    Args:
        report: The report.
        path: File to write. matplotlib is needed.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    sites = report.sites[:_MAX_SITES]
    figure = Figure(figsize=(10, 1.6 + 0.45 * max(len(sites), 1)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for number, (label, name, color) in enumerate(_BARS):
        heights = [position + 0.27 * (number - 1) for position in range(len(sites))]
        axes.barh(heights, [getattr(site, name) for site in sites], 0.25, label=label, color=color)
    names = [f"{site.kernel}\n{short_path(site.file)}:{site.line}" for site in sites]
    axes.set_yticks(range(len(sites)), names, fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel("host time per step [µs], estimates")
    more = f", the {len(sites)} most expensive of {len(report.sites)} sites" if len(report.sites) > len(sites) else ""
    axes.set_title(
        f"{_title(report.program)}: {report.host_us_per_step:.0f} µs of launches per step{more}",
        fontsize=9,
    )
    axes.legend(fontsize=8)
    figure.savefig(path)


def _title(program: str) -> str:
    """Return the program's name and the start of its arguments."""
    name, space, args = program.partition(" ")
    return f"{Path(name).name}{space}{args}"[:60]
