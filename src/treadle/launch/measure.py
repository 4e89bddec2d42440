"""What the islands of a pipeline cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import warp as wp

if TYPE_CHECKING:
    from treadle.launch.pipeline import Island
    from treadle.launch.scope import LaunchScope

__all__ = ["IslandCost", "measure"]


@dataclass(frozen=True)
class IslandCost:
    """Medians over some runs; ``None`` where nothing was measured."""

    launches: int | None = None
    host_us: float | None = None
    elapsed_us: float | None = None


class _Sample(NamedTuple):
    launches: int
    host_us: float
    elapsed_us: float | None
    steady: bool
    """Whether nothing was recorded or captured, nor run without a graph because that was to come."""


def measure(
    islands: Callable[[], Sequence[Island]], run: Callable[[Island], None], scope: LaunchScope, steps: int
) -> dict[tuple[tuple[str, ...], str | None], IslandCost]:
    """Run all islands some times, in order; return what each costs once it is captured or recorded, by key and reason.

    Args:
        islands: Returns the islands as they are at the start of each run.
        run: Runs one of them.
        scope: Owner of the launches.
        steps: How many runs.
    """
    samples: dict[tuple[tuple[str, ...], str | None], list[_Sample]] = {}
    for _ in range(steps):
        for island in islands():
            samples.setdefault((island.key, island.break_reason), []).append(_sample(island, run, scope))
    return {island: _summary(taken) for island, taken in samples.items()}


def _summary(taken: list[_Sample]) -> IslandCost:
    launches = taken[-1].launches
    taken = [sample for sample in taken if sample.steady]
    if not taken:
        return IslandCost(launches)
    elapsed = [sample.elapsed_us for sample in taken if sample.elapsed_us is not None]
    host_us = median(sample.host_us for sample in taken)
    return IslandCost(launches, host_us, median(elapsed) if elapsed else None)


def _sample(island: Island, run: Callable[[Island], None], scope: LaunchScope) -> _Sample:
    """Run an island once."""
    launches, unsteady, elapsed_us = _count_launches(scope), _count_unsteady(scope), None
    begin = end = None
    if scope.device.is_cuda:
        begin, end = (wp.Event(scope.device, enable_timing=True) for _ in range(2))
        scope.device.stream.record_event(begin)
    start = time.perf_counter()
    run(island)
    host_us = 1e6 * (time.perf_counter() - start)
    if begin is not None and end is not None:
        scope.device.stream.record_event(end)
        elapsed_us = 1e3 * wp.get_event_elapsed_time(begin, end)
    steady = _count_unsteady(scope) == unsteady
    return _Sample(_count_launches(scope) - launches, host_us, elapsed_us, steady)


def _count_launches(scope: LaunchScope) -> int:
    stats = scope.stats
    return sum(stats.total(counter) for counter in ("eager", "recorded", "replayed"))


def _count_unsteady(scope: LaunchScope) -> int:
    stats = scope.stats
    return stats.total("recorded") + sum(stats.graph_total(counter) for counter in ("warmups", "captures"))
