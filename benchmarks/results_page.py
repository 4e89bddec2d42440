"""Write the tables of docs/results.md from the JSON files in benchmarks/results.

    python benchmarks/results_page.py

A table stands between ``<!-- table: FILE.json -->`` and ``<!-- end -->``; what stands there is replaced.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "results.md"
RESULTS = ROOT / "benchmarks" / "results"
BLOCK = re.compile(r"(<!-- table: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def main() -> int:
    """Rewrite the page."""
    PAGE.write_text(render(PAGE.read_text()))
    return 0


def render(page: str) -> str:
    """Return the page with its tables made anew."""
    return BLOCK.sub(lambda block: block[1] + table(RESULTS / block[2]) + block[3], page)


def table(path: Path) -> str:
    """Return the tables of a results file, by what it holds."""
    report = json.loads(path.read_text())
    lines = training_table(report["runs"]) if "runs" in report else modes_table(report)
    return "\n".join(["", *lines, "", ""])


def training_table(runs: dict[str, dict[str, dict[str, float]]], every: int = 25) -> list[str]:
    """Return the learning curves, then where the time went."""
    returns = {name: run["Train/mean_reward"] for name, run in runs.items()}
    lengths = {name: run["Train/mean_episode_length"] for name, run in runs.items()}
    last = max(int(iteration) for curve in returns.values() for iteration in curve)
    lines = ["| iteration | " + " | ".join(f"{name}: return | {name}: episode length" for name in runs) + " |"]
    lines.append("|---|" + "---|---|" * len(runs))
    for iteration in map(str, [1, *range(every, last + 1, every)]):
        cells = [f"{returns[name][iteration]:.2f} | {lengths[name][iteration]:.0f}" for name in runs]
        lines.append(f"| {iteration} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "| frontend | training loop [s] | stepping [s] | learning [s] | median steps/s |",
        "|---|---|---|---|---|",
    ]
    for name, run in runs.items():
        stepping, learning = (sum(run[f"Perf/{part}_time"].values()) for part in ("collection", "learning"))
        rate = statistics.median(run["Perf/total_fps"].values())
        lines.append(f"| {name} | {stepping + learning:.1f} | {stepping:.1f} | {learning:.1f} | {rate:,.0f} |")
    return lines


def modes_table(report: dict[str, Any]) -> list[str]:
    """Return the latency of a step in each launch mode."""
    lines = ["| mode | ms per step | eager / mode | range over rounds |", "|---|---|---|---|"]
    for mode, times in report["step_ms"].items():
        ratios = report["eager_over_mode"][mode]
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        lines.append(f"| {mode} | {statistics.median(times):.3f} | {statistics.median(ratios):.2f} | {spread} |")
    return lines


if __name__ == "__main__":
    sys.exit(main())
