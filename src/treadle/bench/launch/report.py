"""What the benchmark of the launch modes says, as text, Markdown and a block of a page of the documentation."""

from __future__ import annotations

from typing import Any

from treadle.bench.tables import Table, replace_block

__all__ = ["docs_block", "headline", "markdown", "select", "summary_block", "targets_block", "text", "update_page"]

_USUAL_LAUNCHES = 10
_SUMMARY = {"eager": "before", "checked": "replayed", "bound": "bound", "graph": "in a graph"}
_DASH = "n/a"
_BUSY = 0.25
"""Share of interrupted samples from which on a number is marked."""
_MARK = (
    "~: other processes interrupted more than a quarter of these samples, so the number is too large. Measure again on "
    "an idle machine."
)


def text(report: dict[str, Any]) -> str:
    """Return the report for a terminal: medians only."""
    parts = [_source_line(report), *report["notes"]]
    parts += [table.text() for table in _full_tables(report)]
    parts += [table.text() for table in _target_tables(report)]
    parts += [table.text() for table in _headline_tables(report, intervals=False)]
    return "\n\n".join([*parts, *_marks(parts), *_reasons(report)])


def markdown(report: dict[str, Any]) -> str:
    """Return the whole report: medians with intervals for the usual case, then all medians."""
    source = report["provenance"]
    parts = ["# Host time of kernel launches", _source_line(report), f"`{source['command']}`", *report["notes"]]
    if targets := _target_tables(report):
        parts += ["## Targets", *(table.markdown() for table in targets)]
    parts += ["## Medians with 95 % confidence intervals"]
    parts += [table.markdown() for table in _headline_tables(report, intervals=True)]
    parts += ["## All medians", *(table.markdown() for table in _full_tables(report))]
    parts += _marks(parts)
    if reasons := _reasons(report):
        parts += ["## Not measured", "\n".join(f"* {reason}" for reason in reasons)]
    return "\n\n".join(parts) + "\n"


def docs_block(report: dict[str, Any]) -> str:
    """Return the tables that the documentation shows."""
    threads, _ = headline(report)
    tables = [*_headline_tables(report, intervals=True), _host_table(report, threads)]
    parts = [_source_line(report), *(table.markdown() for table in [*_target_tables(report), *tables])]
    return "\n\n".join([*parts, *_marks(parts)])


def targets_block(report: dict[str, Any]) -> str:
    """Return what the documentation shows of a GPU: where the numbers come from, and which targets are met."""
    return "\n\n".join([_source_line(report), *(table.markdown() for table in _target_tables(report))])


def summary_block(report: dict[str, Any]) -> str:
    """Return what the page that teaches the launch layer shows: three ways to launch, in one table."""
    threads, launches = headline(report)
    groups = select(report, threads=threads, launches=launches)
    device = report["provenance"]["device"]["name"]
    title = f"Host time per launch [µs], {_count(launches, 'launch', 'es')} per step, {device}"
    modes = [mode for mode in _SUMMARY if mode in report["modes"]]
    rows = [[group["kernel"], *(_cell(group, mode, "host_us_per_launch", False) for mode in modes)] for group in groups]
    header = ["kernel", *(f"{_SUMMARY[mode]} (`{mode}`)" for mode in modes)]
    return Table(title, header, rows, names=1).markdown()


def update_page(page: str, report: dict[str, Any]) -> str:
    """Return a page of the documentation with its blocks made anew from a report: those of the CPU, or of CUDA.

    Raises:
        ValueError: The page has none of the blocks.
    """
    blocks = {"launch table": docs_block, "launch summary": summary_block}
    if report["provenance"]["cuda"] is not None:
        blocks = {"launch targets on CUDA": targets_block, "launch summary on CUDA": summary_block}
    found = [name for name in blocks if f"<!-- begin {name} -->" in page]
    for name in found or blocks:
        page = replace_block(page, name, blocks[name](report))
    return page


def headline(report: dict[str, Any]) -> tuple[int, int]:
    """Return the threads and launches per step of the case that is shown first: the fewest threads, 10 launches."""
    launches = sorted({group["launches"] for group in report["groups"]})
    usual = _USUAL_LAUNCHES if _USUAL_LAUNCHES in launches else launches[-1]
    return min(group["threads"] for group in report["groups"]), usual


def select(report: dict[str, Any], **values: Any) -> list[dict[str, Any]]:
    """Return the groups with these values of ``kernel``, ``threads`` or ``launches``."""
    return [group for group in report["groups"] if all(group[name] == value for name, value in values.items())]


def _headline_tables(report: dict[str, Any], *, intervals: bool) -> list[Table]:
    threads, launches = headline(report)
    groups = select(report, threads=threads, launches=launches)
    case = f"{_count(threads, 'thread')}, {_count(launches, 'launch', 'es')} per step"
    quantities = {
        "host_us_per_launch": f"Host time per launch [µs], {case}",
        "host_over_raw": f"Host time over that of raw, {case}",
        "eager_over_host": f"Host time of eager over this one, {case}",
    }
    return [
        Table(
            title,
            ["mode", *(group["kernel"] for group in groups)],
            [[mode, *(_cell(group, mode, key, intervals) for group in groups)] for mode in report["modes"]],
        )
        for key, title in quantities.items()
    ]


def _target_tables(report: dict[str, Any]) -> list[Table]:
    """Return a table of the targets with what was measured, in a list that is empty where there is nothing to say."""
    entries = report.get("targets", [])
    if not entries:
        return []
    launches = sorted({entry["launches"] for entry in entries})
    rows: dict[tuple[str, str], dict[int, str]] = {}
    for entry in entries:
        shown = entry["verdict"] if entry["ratio"] is None else f"{_ratio(entry)} {entry['verdict']}"
        rows.setdefault((entry["target"], entry["kernel"]), {})[entry["launches"]] = shown
    cells = [[*names, *(row.get(count, _DASH) for count in launches)] for names, row in rows.items()]
    header = ["target", "kernel", *(_count(count, "launch", "es") for count in launches)]
    return [Table("Targets, with the fewest threads, by launches per step", header, cells, names=2)]


def _ratio(entry: dict[str, Any]) -> str:
    """Return what was measured with two digits, with three where these are those of the limit."""
    median, limit = entry["ratio"]["median"], entry["limit"]
    return f"{median:.2f}" if f"{median:.2f}" != f"{limit:.2f}" else f"{median:.3f}"


def _full_tables(report: dict[str, Any]) -> list[Table]:
    threads = sorted({group["threads"] for group in report["groups"]})
    tables = [_host_table(report, count) for count in threads]
    if report["provenance"]["cuda"] is not None:
        tables += [_matrix(report, count, "completed_us_per_step", "Completed time per step [µs]") for count in threads]
    return tables


def _host_table(report: dict[str, Any], threads: int) -> Table:
    return _matrix(report, threads, "host_us_per_launch", "Host time per launch [µs]")


def _matrix(report: dict[str, Any], threads: int, key: str, title: str) -> Table:
    rows = [
        [group["kernel"], str(group["launches"]), *(_cell(group, mode, key, False) for mode in report["modes"])]
        for group in select(report, threads=threads)
    ]
    header = ["kernel", "launches", *report["modes"]]
    return Table(f"{title}, {_count(threads, 'thread')}", header, rows, names=1)


def _cell(group: dict[str, Any], mode: str, key: str, interval: bool) -> str:
    cell = group["modes"][mode]
    if cell["status"] == "invalid":
        return "INVALID"
    if key not in cell:
        return _DASH
    number = cell[key]
    shown = _number(number["median"]) + ("~" if cell[f"{_kind(key)}_interrupted"] > _BUSY else "")
    return f"{shown} ({_number(number['low'])} to {_number(number['high'])})" if interval else shown


def _kind(key: str) -> str:
    return "completed" if "completed" in key else "host"


def _marks(parts: list[str]) -> list[str]:
    """Return the explanation of marks where there are any."""
    return [_MARK] if any("~" in part for part in parts) else []


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _count(number: int, noun: str, plural: str = "s") -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else plural)


def _source_line(report: dict[str, Any]) -> str:
    source = report["provenance"]
    versions, git = source["versions"], source["git"]
    revision = f" ({git['revision'][:9]}{' with changes' if git['dirty'] else ''})" if git else ""
    device = source["device"]["name"] + (f", driver {source['cuda']['driver']}" if source["cuda"] else "")
    host = f"{source['host']['cpu']}, {source['host']['usable_cores']} cores"
    where = f"{device} on {host}" if source["cuda"] else f"{device}, {source['host']['usable_cores']} cores"
    return (
        f"Treadle {versions['treadle']}{revision}, Warp {versions['warp']}, Python {versions['python']}, "
        f"{where}, load average {source['host']['load_average'][0]:.1f} to {source['load_average_after'][0]:.1f}, "
        f"{source['utc'][:10]}."
    )


def _reasons(report: dict[str, Any]) -> list[str]:
    """Return a sentence per reason why there is no number."""
    places: dict[tuple[str, str], dict[str, list[str]]] = {}
    for group in report["groups"]:
        for mode, cell in group["modes"].items():
            if cell["status"] != "ok":
                found = places.setdefault((cell["status"], cell["reason"]), {})
                found.setdefault(group["kernel"], []).append(mode)
    return [f"{status}: {_where(report, found)}: {reason}" for (status, reason), found in places.items()]


def _where(report: dict[str, Any], found: dict[str, list[str]]) -> str:
    """Return modes, and kernels where not all are meant."""
    modes = [mode for mode in report["modes"] if any(mode in names for names in found.values())]
    kernels = {group["kernel"] for group in report["groups"]}
    return ", ".join(modes) + (f" ({', '.join(found)})" if found.keys() != kernels else "")
