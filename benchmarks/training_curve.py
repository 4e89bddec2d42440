"""Print the learning curves of training runs as a table, from their TensorBoard events.

python benchmarks/training_curve.py logs/warp logs/torch --every 50 --out curves.json
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

RETURN, LENGTH, RATE = "Train/mean_reward", "Train/mean_episode_length", "Perf/total_fps"
COLLECTION, LEARNING = "Perf/collection_time", "Perf/learning_time"


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+", help="run directories")
    parser.add_argument("--every", type=int, default=50, help="iterations between rows")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    args = parser.parse_args()
    curves = {run.name: _curve(run) for run in args.runs}
    if args.out:
        args.out.write_text(json.dumps(curves, indent=1) + "\n")
    _print(curves, args.every)
    return 0


def _curve(run: Path) -> dict[str, dict[int, float]]:
    """Return the logged scalars by iteration, counted from 1."""
    events = EventAccumulator(str(run), size_guidance={"scalars": 0})
    events.Reload()
    known = events.Tags()["scalars"]
    if RETURN not in known:
        sys.exit(f"{run}: no finished episode was logged; allowed: a run directory with TensorBoard events")
    tags = (RETURN, LENGTH, RATE, COLLECTION, LEARNING)
    return {tag: {event.step + 1: event.value for event in events.Scalars(tag)} for tag in tags}


def _print(curves: dict[str, dict[str, dict[int, float]]], every: int) -> None:
    print("| iteration | " + " | ".join(f"{name}: return | {name}: length" for name in curves) + " |")
    print("|---|" + "---|---|" * len(curves))
    last = max(max(curve[RETURN]) for curve in curves.values())
    for iteration in [1, *range(every, last + 1, every)]:
        cells = []
        for curve in curves.values():
            value, length = curve[RETURN].get(iteration), curve[LENGTH].get(iteration)
            cells += ["-" if value is None else f"{value:.2f}", "-" if length is None else f"{length:.0f}"]
        print(f"| {iteration} | " + " | ".join(cells) + " |")
    print()
    print("| run | seconds in the loop | of them stepping | of them learning | median steps/s |")
    print("|---|---|---|---|---|")
    for name, curve in curves.items():
        stepping, learning = sum(curve[COLLECTION].values()), sum(curve[LEARNING].values())
        rate = statistics.median(curve[RATE].values())
        print(f"| {name} | {stepping + learning:.1f} | {stepping:.1f} | {learning:.1f} | {rate:,.0f} |")


if __name__ == "__main__":
    sys.exit(main())
