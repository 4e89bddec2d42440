"""What a launch costs the host on this machine, measured with kernels that do nothing."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import warp as wp

from treadle.launch.auditing.hooks import FunctionHook
from treadle.launch.auditing.kernels import nothing_with_arrays, nothing_with_one, nothing_with_scalars
from treadle.launch.cache import LaunchCache

__all__ = ["Costs", "measure_costs", "measure_hook_us"]

_BATCHES = 15
_BATCH = 40
_MANY = 12
_NODES = 33


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Host time of launches [us]. Linear in the number of arguments, or of launches in a graph."""

    eager: float
    """A ``wp.launch`` without arguments."""
    eager_per_scalar: float
    eager_per_array: float
    replay: float
    """A replay through ``LaunchCache.launch`` with the ``checked`` contract, without arguments."""
    replay_per_argument: float
    patch: float
    """What a replay costs in addition for each number that is not as it was: up to an eager launch, or more."""
    command: float
    """A recorded ``wp.Launch``, which a replay issues, without arguments."""
    command_per_argument: float
    graph: float | None
    """Launching a graph, without its nodes. ``None`` where the device can't capture."""
    graph_per_launch: float

    def eager_us(self, scalars: int, arrays: int) -> float:
        """Return what ``wp.launch`` costs."""
        return self.eager + scalars * self.eager_per_scalar + arrays * self.eager_per_array

    def replay_us(self, arguments: int, patched: int = 0) -> float:
        """Return what a checked replay costs, some of whose arguments are numbers that change."""
        return self.replay + arguments * self.replay_per_argument + patched * self.patch

    def command_us(self, arguments: int) -> float:
        """Return what the recorded command within a replay costs."""
        return self.command + arguments * self.command_per_argument


def measure_costs(device: wp.DeviceLike = None) -> Costs:
    """Measure the costs on a device. It takes a fraction of a second once the three kernels are compiled."""
    resolved = wp.get_device(device)
    values = [1.0] * _MANY
    arrays = [wp.zeros(1, dtype=float, device=resolved) for _ in range(_MANY)]
    eager = [
        _time(lambda: wp.launch(nothing_with_one, 1, [1.0], device=resolved), resolved),
        _time(lambda: wp.launch(nothing_with_scalars, 1, values, device=resolved), resolved),
        _time(lambda: wp.launch(nothing_with_arrays, 1, arrays, device=resolved), resolved),
    ]
    cache = LaunchCache(resolved, mode="replay", contract="checked", name="audit")
    replay = [
        _time(lambda: cache.launch(nothing_with_one, 1, [1.0]), resolved),
        _time(lambda: cache.launch(nothing_with_arrays, 1, arrays), resolved),
    ]
    number = itertools.count()
    patched = _time(lambda: cache.launch(nothing_with_one, 1, [float(next(number))], dynamic=("a",)), resolved)
    commands = [
        wp.launch(nothing_with_one, 1, [1.0], device=resolved, record_cmd=True),
        wp.launch(nothing_with_arrays, 1, arrays, device=resolved, record_cmd=True),
    ]
    graph, per_launch = _measure_graph(cache, resolved)
    per_scalar = max(eager[1] - eager[0], 0.0) / (_MANY - 1)
    base = max(eager[0] - per_scalar, 0.0)
    replay_base, per_argument = _line(*replay)
    command_base, command_per_argument = _line(*(_time(command.launch, resolved) for command in commands))
    return Costs(
        eager=base,
        eager_per_scalar=per_scalar,
        eager_per_array=max(eager[2] - base, 0.0) / _MANY,
        replay=replay_base,
        replay_per_argument=per_argument,
        patch=max(patched - replay[0], 0.0),
        command=command_base,
        command_per_argument=command_per_argument,
        graph=graph,
        graph_per_launch=per_launch,
    )


def _line(one: float, many: float) -> tuple[float, float]:
    """Return what no argument costs and what each one adds, from the costs of one argument and of many."""
    per_argument = max(many - one, 0.0) / (_MANY - 1)
    return max(one - per_argument, 0.0), per_argument


def measure_hook_us() -> tuple[float, float]:
    """Return what the two sides of a hook that its own clock does not see cost [us].

    Returns:
        What a routed call takes in addition outside the clock, and what the clock reads for a function that does
        nothing.
    """
    read: list[int] = []

    def nothing(*args: Any) -> None:
        pass

    def around(original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        start = time.perf_counter_ns()
        (lambda: original(*args, **kwargs))()
        read.append(time.perf_counter_ns() - start)

    bare = _time(lambda: nothing(1, 2), None)
    hook = FunctionHook(nothing, around)
    hook.attach()
    try:
        routed = _time(lambda: nothing(1, 2), None)
    finally:
        hook.detach()
    inside = median(read) / 1000.0
    return max(routed - inside, 0.0), max(inside - bare, 0.0)


def _measure_graph(cache: LaunchCache, device: wp.Device) -> tuple[float | None, float]:
    """Return what launching a graph costs, and what each launch in it adds."""
    if device.is_capturing or not (device.is_cpu or device.is_mempool_enabled):
        return None, 0.0
    times = []
    for nodes in (1, _NODES):
        stream = None if device.is_cpu else wp.Stream(device)
        with wp.ScopedCapture(device=device, stream=stream) as capture:
            for _ in range(nodes):
                wp.launch(nothing_with_one, 1, [1.0], device=device, stream=stream)
        graph = capture.graph
        times.append(_time(lambda graph=graph: wp.capture_launch(graph), device))  # type: ignore[misc]
    per_launch = max(times[1] - times[0], 0.0) / (_NODES - 1)
    return max(times[0] - per_launch, 0.0), per_launch


def _time(call: Callable[[], Any], device: wp.Device | None) -> float:
    """Return the host time of a call [us]: the median over batches, between which the device is drained."""
    call()
    batches = []
    for _ in range(_BATCHES):
        if device is not None:
            wp.synchronize_device(device)
        start = time.perf_counter_ns()
        for _ in range(_BATCH):
            call()
        batches.append((time.perf_counter_ns() - start) / _BATCH)
    return median(batches) / 1000.0
