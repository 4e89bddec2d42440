"""The report as plain text, at most 120 columns wide."""

from __future__ import annotations

import os
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from treadle.launch.auditing.edits import source_line
from treadle.launch.auditing.report import DONE, MIN_STEPS, AuditReport, SiteReport, Verdict

__all__ = ["render", "short_path", "shorten"]

_WIDTH = 120
_MAX_SITES = 25
_MAX_EDITS = 12
_MAX_BREAKS = 8


def render(report: AuditReport) -> str:
    """Return the whole text."""
    parts = [_head(report), _table(report), _summary(report), _libraries(report), _breaks(report), _edits(report)]
    parts.append([*(f"note: {note}" for note in report.notes), _footer(report)])
    return "\n\n".join("\n".join(_fit(lines)) for lines in parts if lines)


def short_path(file: str) -> str:
    """Return a path as short as it can be told: below the working directory, below site-packages, or as it is."""
    for marker in (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}"):
        if marker in file:
            return file.rpartition(marker)[2]
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except ValueError:
        return file


def _head(report: AuditReport) -> list[str]:
    lines = [
        f"audit of {_head_of(shorten(report.program), 90)}: {_count(report.steps, 'step')} on {report.device}",
        f"a step is {shorten(report.step)}; {report.sureness}",
    ]
    if report.steps < MIN_STEPS:
        lines.append(f"too few steps to tell what changes from what recurs: a verdict needs at least {MIN_STEPS}")
    return lines


def _footer(report: AuditReport) -> str:
    return (
        f"note: what changes only outside of the {_count(report.steps, 'watched step')}, as at a reset, is not seen: "
        "watch more, or later ones"
    )


def _table(report: AuditReport) -> list[str]:
    """Return a row per site, those that cost the most first."""
    if not report.sites:
        return ["no launch was seen in a step"]
    header = ("us/step", "replay", "graph", "calls", "site", "kernel", "what it is like")
    rows = [header, *map(_cells, report.sites[:_MAX_SITES])]
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    lines = []
    for row in rows:
        numbers = " ".join(f"{cell:>{width}}" for cell, width in zip(row[:4], widths, strict=False))
        text = f"{numbers}  {row[4]:<{widths[4]}}  {row[5]:<{widths[5]}}  {row[6]}"
        lines.append(_head_of(text.rstrip(), _WIDTH))
    if left := report.sites[_MAX_SITES:]:
        lines.append(f"... and {len(left)} more sites, {sum(site.host_us for site in left):.1f} us per step")
    return lines


def _cells(site: SiteReport) -> tuple[str, ...]:
    return (
        *(f"{us:.1f}" if us < 1000.0 else f"{us:.0f}" for us in (site.host_us, site.replay_us, site.graph_us)),
        f"{site.calls_per_step:.3g}",
        _tail(f"{short_path(site.file)}:{site.line}", 36),
        _head_of(_kernel_name(site.kernel), 26),
        site.describe,
    )


def _kernel_name(key: str) -> str:
    """Return the name of a kernel as Python's qualified name."""
    return key.replace("__locals__", ".")


def _summary(report: AuditReport) -> list[str]:
    """Return what launches cost now and after."""
    now = report.host_us_per_step
    graphs = sum(site.calls_per_step for site in report.sites if site.verdict is Verdict.GRAPH)
    held = sum(site.graph_launches for site in report.sites)
    count = _count(report.launches_per_step, "launch")
    if graphs:
        count += f" and {_count(graphs, 'graph')} of {_count(held, 'launch')}"
    rows = [("now", now, count)]
    own = [site for site in report.sites if site.owner == "user" and site.verdict not in DONE]
    if any(site.replayable for site in own):
        rows.append(_row("replay, sites that are ready", now, report.replay_us_per_step))
    if not all(site.replayable for site in own):
        how = "replay, after the edits below" if report.steps >= MIN_STEPS else "replay, where that can be done"
        rows.append(_row(how, now, report.edited_us_per_step))
    if report.graph_us_per_step is not None:
        how = "graphs, once nothing is in the way" if report.graph_breaks else "graphs"
        rows.append(_row(how, now, report.graph_us_per_step))
    lines = [f"host time of launches, of {report.step_us:.0f} us from one step to the next (estimates):"]
    lines += [f"  {name:<34} {us:>10.1f} us   {saved}" for name, us, saved in rows]
    if report.kernel_us:
        lines.append(f"the kernels, which the CPU runs within the launches: {report.kernel_us:.0f} us in addition")
    lines.append(
        f"Python around the launches: {report.between_us:.0f} us, of which a graph skips what runs inside of it"
    )
    if report.wait_us:
        lines.append(f"waiting for, or reading from, the device: {report.wait_us:.0f} us")
    return lines


def _count(number: float, what: str) -> str:
    ending = "" if number == 1 else "es" if what.endswith("ch") else "s"
    return f"{number:.4g} {what}{ending}"


def _row(name: str, now: float, after: float) -> tuple[str, float, str]:
    saved = now - after
    text = f"saves {saved:.1f} us ({100 * saved / now:.0f} %)" if now > 0 and saved >= 0.05 else "saves nothing"
    return name, after, text


def _libraries(report: AuditReport) -> list[str]:
    """Return what libraries launch, and from which lines of the program."""
    lines = []
    by_caller: dict[tuple[str, tuple[str, int] | None], list[SiteReport]] = defaultdict(list)
    for site in report.sites:
        if site.owner != "user" and site.verdict is not Verdict.GRAPH:
            by_caller[(site.owner, site.via)].append(site)
    for (owner, via), sites in sorted(by_caller.items(), key=lambda item: -sum(site.host_us for site in item[1])):
        calls, host = sum(site.calls_per_step for site in sites), sum(site.host_us for site in sites)
        line = f"  {owner}: {_count(len(sites), 'site')}, {_count(calls, 'launch')}, {host:.1f} us"
        if via is not None:
            line += f", from {short_path(via[0])}:{via[1]}: {source_line(*via)}"
        lines.append(line)
    if not lines:
        return []
    return ["launches of libraries, which you can't edit: put the call that leads there into a graph", *lines]


def _breaks(report: AuditReport) -> list[str]:
    if not report.graph_breaks and report.steps < MIN_STEPS:
        return ["too few steps to tell whether anything is in the way of a graph"] if report.launches_per_step else []
    if not report.graph_breaks:
        return ["nothing seen in the step is in the way of a graph"] if report.launches_per_step else []
    shown, left = report.graph_breaks[:_MAX_BREAKS], len(report.graph_breaks) - _MAX_BREAKS
    lines = ["in the way of a graph:", *(f"  {shorten(line)}" for line in shown)]
    return [*lines, f"  ... and {left} more"] if left > 0 else lines


def _edits(report: AuditReport) -> list[str]:
    """Return the suggested edits of the program's own sites."""
    sites = [site for site in report.sites if site.owner == "user" and site.edit]
    if not sites:
        return []
    lines = ["suggested edits (launches = treadle.launch.LaunchScope().launches, kept by the owner of the arrays):"]
    for site in islice(sites, _MAX_EDITS):
        lines += ["", f"  {short_path(site.file)}:{site.line} {site.kernel}: {site.describe}", f"  {site.edit}"]
        lines += [f"    {line}" for line in site.code]
    if len(sites) > _MAX_EDITS:
        lines += ["", f"  ... and {len(sites) - _MAX_EDITS} more sites; --json has all of them"]
    return lines


def _fit(lines: Iterable[str]) -> Iterator[str]:
    """Break lines that are too long, and keep their indentation."""
    for line in lines:
        if len(line) <= _WIDTH:
            yield line
        else:
            indent = " " * (len(line) - len(line.lstrip()) + 2)
            yield from textwrap.wrap(line, _WIDTH, subsequent_indent=indent, break_on_hyphens=False)


def shorten(text: str) -> str:
    """Shorten the paths in a sentence."""
    return " ".join(short_path(word) if word.startswith(os.sep) else word for word in text.split(" "))


def _tail(text: str, width: int) -> str:
    return text if len(text) <= width else f"..{text[2 - width :]}"


def _head_of(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 2]}.."
