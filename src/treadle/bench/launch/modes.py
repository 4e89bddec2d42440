"""The ways of launching that are compared. Each builds a step: a function that issues a number of launches.

Launch ``k`` of a step has a site, a recorded command and a weight (``k + 1``) of its own, so a replay of the wrong one
shows in the sum. Arguments are packed into lists beforehand: making those lists is part of no timing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import warp as wp

from treadle.bench.launch.workload import Workload
from treadle.launch import LaunchContract, LaunchMode, LaunchScope, Stage

__all__ = ["MODES", "ModeStep", "NotAvailableError", "all_modes"]

_GAP_NEEDS = 3


class NotAvailableError(Exception):
    """A way of launching does not apply here; the message says why."""


def _fixed_weights(launches: int, steps: int) -> int:
    return steps * launches * (launches + 1) // 2


def _growing_weights(launches: int, steps: int) -> int:
    calls = launches * steps
    return calls * (calls + 1) // 2


@dataclass
class ModeStep:
    """One way to launch a workload."""

    run: Callable[[], None]
    """Issues the launches of a step."""
    total: wp.array
    """What they add to."""
    scope: LaunchScope | None = None
    """Owner of records and graphs, if there is one."""
    per_step: Mapping[str, int] = field(default_factory=dict)
    """By how much each counter of the scope must grow in a step once all is recorded and captured."""
    weight_sum: Callable[[int, int], int] = _fixed_weights
    """Returns the sum of the weights of all launches, given launches per step and steps."""
    close: Callable[[], None] = lambda: None
    """Frees what does not go by itself."""

    def counters(self) -> dict[str, int]:
        """Return the counters that ``per_step`` is about."""
        if self.scope is None:
            return {}
        stats = self.scope.stats
        sites = {name: stats.total(name) for name in ("eager", "recorded", "replayed", "patched")}
        graphs = {f"graph {name}": stats.graph_total(name) for name in ("captures", "launches", "fallbacks")}
        return {**sites, **graphs}


def _replays(scope: LaunchScope, run: Callable[[], None], total: wp.array, launches: int) -> ModeStep:
    return ModeStep(run, total, scope, _growth(replayed=launches))


def _growth(replayed: int = 0, graphs: int = 0) -> dict[str, int]:
    still = dict.fromkeys(("eager", "recorded", "patched", "graph captures", "graph fallbacks"), 0)
    return {**still, "replayed": replayed, "graph launches": graphs}


def _scope(workload: Workload, mode: LaunchMode, contract: LaunchContract) -> LaunchScope:
    return LaunchScope(workload.device, mode=mode, contract=contract, name="bench")


def _calls(workload: Workload, total: wp.array, launches: int) -> list[tuple[list[Any], list[Any]]]:
    return [workload.arguments(site + 1, total) for site in range(launches)]


def _eager_runner(workload: Workload, calls: list[tuple[list[Any], list[Any]]]) -> Callable[[], None]:
    """Return a function that launches through Warp, with no more Python around it than a user's loop has."""
    kernel, dim, device, block_dim = workload.kernel, workload.dim, workload.device, workload.block_dim
    if workload.tiled:

        def run_tiled() -> None:
            for inputs, outputs in calls:
                wp.launch_tiled(kernel, dim=dim, inputs=inputs, outputs=outputs, device=device, block_dim=block_dim)

        return run_tiled

    def run() -> None:
        for inputs, outputs in calls:
            wp.launch(kernel, dim, inputs, outputs, device=device)

    return run


def eager(workload: Workload, launches: int) -> ModeStep:
    """``wp.launch``: Python packs every argument at each call."""
    total = workload.new_total()
    return ModeStep(_eager_runner(workload, _calls(workload, total, launches)), total)


def raw(workload: Workload, launches: int) -> ModeStep:
    """``wp.Launch.launch`` of a recorded command, the least that a launch costs with Warp."""
    total = workload.new_total()
    commands: list[Any] = [workload.record(*call) for call in _calls(workload, total, launches)]

    def run() -> None:
        for command in commands:
            command.launch()

    return ModeStep(run, total)


def bound(workload: Workload, launches: int) -> ModeStep:
    """A bound launch with fixed arguments."""
    scope, total, bounds = _bind(workload, launches)

    def run() -> None:
        for launch in bounds:
            launch()

    return _replays(scope, run, total, launches)


def bound_set(workload: Workload, launches: int) -> ModeStep:
    """A bound launch whose scalar is set to another value before each call."""
    scope, total, bounds = _bind(workload, launches)
    weight = 0

    def run() -> None:
        nonlocal weight
        for launch in bounds:
            weight += 1
            launch.set("weight", weight)
            launch()

    step = _replays(scope, run, total, launches)
    step.weight_sum = _growing_weights
    return step


def _bind(workload: Workload, launches: int) -> tuple[LaunchScope, wp.array, list[Any]]:
    scope, total = _scope(workload, LaunchMode.REPLAY, LaunchContract.CHECKED), workload.new_total()
    dim: Any = workload.dim
    block_dim = None
    if workload.tiled:  # as wp.launch_tiled does: a last extent for the threads of a tile
        block_dim = workload.block_dim if workload.device.is_cuda else 1
        dim = (workload.dim, block_dim)
    bind = scope.launches.bind
    calls = _calls(workload, total, launches)
    return scope, total, [bind(workload.kernel, dim, *call, block_dim=block_dim) for call in calls]


def trusted(workload: Workload, launches: int) -> ModeStep:
    """``LaunchCache.launch`` that compares nothing but the dimension."""
    return _cached(workload, launches, LaunchContract.TRUSTED)


def checked(workload: Workload, launches: int) -> ModeStep:
    """``LaunchCache.launch`` that compares every argument: the default."""
    return _cached(workload, launches, LaunchContract.CHECKED)


def _cached(workload: Workload, launches: int, contract: LaunchContract) -> ModeStep:
    scope, total = _scope(workload, LaunchMode.REPLAY, contract), workload.new_total()
    return _replays(scope, _site_runner(scope, workload, _calls(workload, total, launches)), total, launches)


def _site_runner(
    scope: LaunchScope, workload: Workload, calls: list[tuple[list[Any], list[Any]]], first: int = 0
) -> Callable[[], None]:
    launch, kernel, dim = scope.launches.launch, workload.kernel, workload.dim
    sites = [(first + number, *call) for number, call in enumerate(calls)]
    if workload.tiled:
        launch_tiled, block_dim = scope.launches.launch_tiled, workload.block_dim

        def run_tiled() -> None:
            for site, inputs, outputs in sites:
                launch_tiled(kernel, dim, inputs, outputs, block_dim=block_dim, site=site)

        return run_tiled

    def run() -> None:
        for site, inputs, outputs in sites:
            launch(kernel, dim, inputs, outputs, site=site)

    return run


def graph(workload: Workload, launches: int) -> ModeStep:
    """One graph of all launches of the step."""
    scope, total, stage = _graph_scope(workload)
    calls = _calls(workload, total, launches)
    pipeline = scope.pipeline([Stage("all", stage(calls, 0))])
    return ModeStep(pipeline.run, total, scope, _growth(graphs=1))


def islands(workload: Workload, launches: int) -> ModeStep:
    """Two graphs with an eager launch between them, which can't be captured."""
    if launches < _GAP_NEEDS:
        raise NotAvailableError(f"a gap between two graphs needs at least {_GAP_NEEDS} launches per step")
    scope, total, stage = _graph_scope(workload)
    calls, middle = _calls(workload, total, launches), launches // 2
    stages = [
        Stage("before", stage(calls[:middle], 0)),
        Stage("gap", _eager_runner(workload, calls[middle : middle + 1]), capture="stands for code that can't be"),
        Stage("after", stage(calls[middle + 1 :], middle + 1)),
    ]
    return ModeStep(scope.pipeline(stages).run, total, scope, _growth(graphs=2))


def _graph_scope(workload: Workload) -> tuple[LaunchScope, wp.array, Callable[[list[Any], int], Callable[[], None]]]:
    """Return a scope, a sum, and a function that makes the body of a stage."""
    scope = _scope(workload, LaunchMode.AUTO, LaunchContract.CHECKED)
    if not scope.graphs.capturing_allowed:
        raise NotAvailableError(f"{workload.device} can't capture graphs: its memory pool is off")
    return scope, workload.new_total(), partial(_site_runner, scope, workload)


def driver(workload: Workload, launches: int) -> ModeStep:
    """``cuLaunchKernel`` of a like kernel, without Warp."""
    from treadle.bench.launch.driver import driver_step

    return driver_step(workload, launches)


def driver_warp(workload: Workload, launches: int) -> ModeStep:
    """``cuLaunchKernel`` of Warp's own kernel, with the parameters that Warp packed."""
    from treadle.bench.launch.driver import driver_warp_step

    return driver_warp_step(workload, launches)


MODES: dict[str, Callable[[Workload, int], ModeStep]] = {
    "eager": eager,
    "raw": raw,
    "bound": bound,
    "bound_set": bound_set,
    "trusted": trusted,
    "checked": checked,
    "graph": graph,
    "islands": islands,
    "driver": driver,
    "driver_warp": driver_warp,
}
"""The modes; the first two are what the others are compared with."""


def all_modes(device: wp.Device) -> dict[str, Callable[[Workload, int], ModeStep]]:
    """Return the modes of a device: the CPU has no driver."""
    return {name: build for name, build in MODES.items() if device.is_cuda or not name.startswith("driver")}
