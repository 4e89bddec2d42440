"""Store the learning curves of training runs as JSON, from their TensorBoard events.

    python benchmarks/training_curve.py logs/warp logs/torch --note "treadle train ..., on ..." --out curves.json

The names of the run directories become the names of the curves. ``results_page.py`` makes tables of such files.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

TAGS = (
    "Train/mean_reward",
    "Train/mean_episode_length",
    "Perf/total_fps",
    "Perf/collection_time",
    "Perf/learning_time",
)


def main() -> int:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+", help="run directories")
    parser.add_argument("--note", default="", help="command and machine of the runs")
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    args = parser.parse_args()
    args.out.write_text(
        json.dumps({"note": args.note, "runs": {run.name: read_curve(run) for run in args.runs}}) + "\n"
    )
    return 0


def read_curve(run: Path) -> dict[str, dict[int, float]]:
    """Return the logged scalars by iteration, counted from 1."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(run), size_guidance={"scalars": 0})
    events.Reload()
    if missing := set(TAGS) - set(events.Tags()["scalars"]):
        sys.exit(f"{run} logs no {', '.join(sorted(missing))}; allowed: a run directory of treadle train")
    return {tag: {event.step + 1: round(event.value, 4) for event in events.Scalars(tag)} for tag in TAGS}


if __name__ == "__main__":
    sys.exit(main())
