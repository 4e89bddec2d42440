"""The picture of the benchmark of the launch modes."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treadle.bench.launch.report import headline, select
from treadle.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw", "require_matplotlib", "save_plot"]

_COLOURS = {
    "eager": "#b2182b",
    "raw": "#555555",
    "bound": "#1f77b4",
    "bound_set": "#8c6bb1",
    "trusted": "#17a2b8",
    "checked": "#0b559f",
    "graph": "#1b7837",
    "islands": "#7fbf7b",
    "driver": "#999999",
    "driver_warp": "#666666",
}
_TITLES = {
    "arrays-1": "1 array",
    "arrays-4": "4 arrays",
    "arrays-12": "12 arrays",
    "struct": "struct of 3 arrays, 1 array",
    "tiled": "tiles, 3 arrays",
}
_KEY = "host_us_per_launch"


def require_matplotlib() -> None:
    """Check that pictures can be made.

    Raises:
        ConfigError: matplotlib is not installed.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise ConfigError("launch.svg needs matplotlib; pip install 'treadle[plot]' brings it, --no-plot does without")


def save_plot(report: dict[str, Any], path: Path) -> None:
    """Draw the report and write it in the format of the path's suffix."""
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "treadle"}):  # the same report gives the same file
        draw(report).savefig(path, dpi=110, metadata={"Date": None} if path.suffix == ".svg" else None)


def draw(report: dict[str, Any]) -> Figure:
    """Return the picture: bars by kernel for the usual case, then lines by launches per step."""
    from matplotlib.figure import Figure

    threads, launches = headline(report)
    groups = select(report, threads=threads, launches=launches)
    figure = Figure(figsize=(13, 9.2), layout="constrained")
    parts: Any = figure.subfigures(2, 1, height_ratios=(1, 1.15))
    upper, lower = parts
    case = f"{threads:,} thread" + ("" if threads == 1 else "s")
    source = report["provenance"]
    device = source["device"]["name"]
    figure.suptitle(f"Host time of a kernel launch: {device}, Warp {source['versions']['warp']}", fontweight="bold")
    upper.suptitle(f"By mode and kernel: {case}, {launches:,} launches per step, medians", fontsize=10.5)
    panels = upper.subplots(1, len(groups), sharey=True, squeeze=False)[0]
    longest = max((cell[_KEY]["high"] for group in groups for cell in _numbered(group)), default=1.0)
    for axes, group in zip(panels, groups, strict=True):
        _draw_bars(axes, group, report["modes"], 1.3 * longest)
    kernels = [group["kernel"] for group in groups if group["kernel"] in ("arrays-4", "arrays-12")] or [
        groups[0]["kernel"]
    ]
    lower.suptitle(f"By number of launches per step: {case}, medians with 95 % intervals", fontsize=10.5)
    panels = lower.subplots(1, len(kernels), sharey=True, squeeze=False)[0]
    for axes, kernel in zip(panels, kernels, strict=True):
        _draw_lines(axes, select(report, threads=threads, kernel=kernel), report["modes"], kernel)
    panels[0].set_ylabel("host time per launch [µs], log scale")
    return figure


def _numbered(group: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in group["modes"].values() if _KEY in cell]


def _draw_bars(axes: Axes, group: dict[str, Any], modes: list[str], right: float) -> None:
    axes.set_title(_TITLES[group["kernel"]], fontsize=10)
    for row, mode in enumerate(modes):
        cell = group["modes"][mode]
        if _KEY not in cell:
            axes.text(0.01 * right, row, cell["status"], va="center", color="#777777", size=8)
            continue
        number = cell[_KEY]
        error = [[number["median"] - number["low"]], [number["high"] - number["median"]]]
        axes.barh(row, number["median"], xerr=error, color=_COLOURS[mode], height=0.7, error_kw={"lw": 1})
        axes.text(number["high"] + 0.02 * right, row, f"{number['median']:.3g}", va="center", size=9)
    axes.set_yticks(range(len(modes)), modes)
    axes.set_ylim(len(modes) - 0.4, -0.6)
    axes.set_xlim(0, right)
    axes.set_xlabel("µs per launch", fontsize=9)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_lines(axes: Axes, groups: list[dict[str, Any]], modes: list[str], kernel: str) -> None:
    axes.set_title(_TITLES[kernel], fontsize=10)
    launches = [group["launches"] for group in groups]
    axes.set_xlim(min(launches) / 1.25, max(launches) * 2.3)
    axes.set_xscale("log")
    axes.set_yscale("log")
    ends: dict[str, tuple[float, float]] = {}
    for mode in modes:
        points = [(group["launches"], group["modes"][mode][_KEY]) for group in groups if _KEY in group["modes"][mode]]
        if not points:
            continue
        counts = [count for count, _ in points]
        medians = [number["median"] for _, number in points]
        errors = [
            [number["median"] - number["low"] for _, number in points],
            [number["high"] - number["median"] for _, number in points],
        ]
        axes.errorbar(counts, medians, errors, color=_COLOURS[mode], marker="o", ms=4, lw=1.6, elinewidth=1)
        ends[mode] = (counts[-1], medians[-1])
    axes.autoscale(axis="y")  # the panels share this axis: fit the data of those before as well
    low, high = axes.get_ylim()
    ticks = [factor * 10.0**power for power in range(-3, 6) for factor in (1, 2, 5)]
    axes.set_yticks([tick for tick in ticks if low <= tick <= high], minor=False)
    axes.set_yticks([], minor=True)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_ylim(low, high)
    axes.set_xticks(launches, [f"{count:,}" for count in launches])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("launches per step", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e6e6e6", lw=0.8)
    _label_ends(axes, ends)


def _label_ends(axes: Axes, ends: dict[str, tuple[float, float]]) -> None:
    """Write the name of each line at its right end, moved apart where names would overlap."""
    from math import log10

    low, high = (log10(limit) for limit in axes.get_ylim())
    gap = 0.045 * (high - low)
    last = float("-inf")
    for mode, (x, y) in sorted(ends.items(), key=lambda item: item[1][1]):
        last = max(log10(y), last + gap)
        axes.annotate(
            mode,
            (x, y),
            (x * 1.2, 10**last),
            color=_COLOURS[mode],
            va="center",
            size=9,
            arrowprops={"arrowstyle": "-", "color": _COLOURS[mode], "lw": 0.6, "shrinkA": 0, "shrinkB": 3},
        )
