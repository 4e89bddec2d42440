"""Time all modes of one kernel with one number of threads and launches, and check them before believing the times."""

from __future__ import annotations

import contextlib
import gc
import math
import resource
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import warp as wp

from treadle.bench.launch.cfg import LaunchBenchCfg
from treadle.bench.launch.modes import ModeStep, NotAvailableError
from treadle.bench.launch.workload import Workload
from treadle.bench.statistics import counterbalanced, estimate

__all__ = ["Builders", "measure_group"]

Builders = Mapping[str, Callable[[Workload, int], ModeStep]]

_WARM_UP_STEPS = 3
"""The first step records, the second captures, the third is the first steady one."""
_PILOT_STEPS = 5
_SAMPLE_LAUNCHES = 20
"""Least launches in a sample. Few, so that most samples of a busy machine are not interrupted, yet 40 us at the least,
long beside the clock's resolution. A step of 100 launches is far from filling the launch queue of a GPU (1,024)."""
_SAMPLE_S = 0.01
"""Longest sample [s], where a single step is not longer."""
_MIN_ROUNDS = 4
_TRIES = 4
"""A sample during which the system gave the core to another process is taken again, at most this often in all."""
_RETRIED_S = 0.005
"""Longest sample [s] that is taken again."""


@dataclass
class _Mode:
    """A mode with what was measured of it."""

    step: ModeStep
    steps: int = 0
    """Steps that were run, warm-up included."""
    before: dict[str, int] = field(default_factory=dict)
    """Counters after the warm-up."""
    steady_steps: int = 0
    times: dict[str, list[float]] = field(default_factory=lambda: {"host": [], "completed": []})
    """Microseconds per step, a value per round."""
    interrupted: dict[str, int] = field(default_factory=lambda: {"host": 0, "completed": 0})
    """Samples among them that were interrupted."""

    def run(self, steps: int) -> None:
        self.steps += steps
        run = self.step.run
        for _ in range(steps):
            run()


Sampler = Callable[[_Mode, int, wp.Device], float]


def measure_group(workload: Workload, launches: int, cfg: LaunchBenchCfg, builders: Builders) -> dict[str, Any]:
    """Time and check all modes.

    Args:
        workload: The kernel and its inputs.
        launches: Launches per step.
        cfg: Rounds, time limits and seed.
        builders: The modes by name; ``eager`` must be one of them.

    Returns:
        The entry of the report: per mode ``ok`` with its times, or ``invalid`` or ``not available`` with the reason.
    """
    entry: dict[str, Any] = {"kernel": workload.name, "threads": workload.threads, "launches": launches}
    modes: dict[str, _Mode] = {}
    verdicts: dict[str, dict[str, Any]] = {}
    for name, build in builders.items():
        try:
            modes[name] = _warm_up(build(workload, launches))
        except NotAvailableError as error:
            verdicts[name] = {"status": "not available", "reason": str(error)}
        except Exception as error:
            verdicts[name] = {"status": "invalid", "reason": f"{type(error).__name__}: {error}"}
    if "eager" not in modes:
        raise RuntimeError(f"eager launches fail: {verdicts['eager']['reason']}")
    try:
        step_s = _pilot(modes["eager"], workload.device)
        if step_s > cfg.max_step_s:
            case = f"{launches} launches with {workload.threads:,} threads"
            reason = f"{case} take {step_s:.2g} s on this device: that says nothing about host time"
            verdicts = {name: {"status": "not available", "reason": reason} for name in builders}
        else:
            entry |= _time_all(modes, workload.device, launches, step_s, cfg)
            verdicts |= _judge(modes, workload, launches, cfg.seed)
    finally:
        for mode in modes.values():
            mode.step.close()
    return {**entry, "modes": {name: verdicts[name] for name in builders}}


def _warm_up(step: ModeStep) -> _Mode:
    mode = _Mode(step)
    mode.run(_WARM_UP_STEPS)
    mode.before = step.counters()
    return mode


def _pilot(mode: _Mode, device: wp.Device) -> float:
    """Return about how long a completed step takes [s]: the least of a few, since others may use the machine."""
    times = []
    for _ in range(_PILOT_STEPS):
        times.append(_completed_us(mode, 1, device) * 1e-6)
        mode.steady_steps += 1
        if times[-1] > _SAMPLE_S * _PILOT_STEPS:
            break
    return min(times)


def _time_all(
    modes: dict[str, _Mode], device: wp.Device, launches: int, step_s: float, cfg: LaunchBenchCfg
) -> dict[str, int]:
    """Time all modes in rounds; return how many rounds of how many steps there were."""
    steps = max(1, min(math.ceil(_SAMPLE_LAUNCHES / launches), int(_SAMPLE_S / step_s)))
    samplers = _samplers(device)
    fits = int(cfg.max_group_s / (step_s * steps * len(modes) * len(samplers)))
    rounds = max(_MIN_ROUNDS, min(cfg.rounds, fits - fits % 2))
    names, tries = list(modes), _TRIES if step_s * steps < _RETRIED_S else 1
    with _no_garbage_collection():
        for number in range(-2, rounds):  # the first two are thrown away: caches and clocks settle
            for name in counterbalanced(names, number):
                for kind, sample in samplers.items():
                    time_us, interrupted = _take(sample, modes[name], steps, device, tries)
                    if number >= 0:
                        modes[name].times[kind].append(time_us)
                        modes[name].interrupted[kind] += interrupted
    wp.synchronize_device(device)
    return {"rounds": rounds, "steps_per_sample": steps}


def _take(sample: Sampler, mode: _Mode, steps: int, device: wp.Device, tries: int) -> tuple[float, bool]:
    """Return the time of a step [us], and whether the system interrupted each try."""
    for _ in range(tries):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
        time_us = sample(mode, steps, device)
        mode.steady_steps += steps
        if resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw == before:
            return time_us, False
    return time_us, True


def _samplers(device: wp.Device) -> dict[str, Sampler]:
    """Return what is timed. CPU kernels run inside the launch: issuing a step is completing it."""
    return {"host": _host_us, "completed": _completed_us} if device.is_cuda else {"host": _host_us}


def _host_us(mode: _Mode, steps: int, device: wp.Device) -> float:
    """Return the time to issue a step [us], with an empty queue at the start and without waiting at the end."""
    wp.synchronize_device(device)
    start = time.perf_counter_ns()
    mode.run(steps)
    return (time.perf_counter_ns() - start) / steps / 1e3


def _completed_us(mode: _Mode, steps: int, device: wp.Device) -> float:
    """Return the time to issue a step and wait for the device [us]."""
    wp.synchronize_device(device)
    start = time.perf_counter_ns()
    for _ in range(steps):
        mode.run(1)
        wp.synchronize_device(device)
    return (time.perf_counter_ns() - start) / steps / 1e3


@contextlib.contextmanager
def _no_garbage_collection() -> Iterator[None]:
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _judge(modes: dict[str, _Mode], workload: Workload, launches: int, seed: int) -> dict[str, dict[str, Any]]:
    """Return times for the modes that did what they should have, reasons for the others."""
    problems = {name: _problem(mode, workload, launches) for name, mode in modes.items()}
    if problems["eager"] is not None:
        reason = f"there is nothing to compare with: eager: {problems['eager']}"
        problems = {name: problem or reason for name, problem in problems.items()}
    valid = {name: mode for name, mode in modes.items() if problems[name] is None}
    return {
        name: _summary(mode, valid, launches, seed)
        if problems[name] is None
        else {"status": "invalid", "reason": problems[name]}
        for name, mode in modes.items()
    }


def _problem(mode: _Mode, workload: Workload, launches: int) -> str | None:
    """Return what is wrong with a mode's results or counters, if anything is."""
    expected = workload.expected(mode.steps * launches, mode.step.weight_sum(launches, mode.steps))
    received = mode.step.total.numpy()
    wrong = np.flatnonzero(received != expected)
    if wrong.size:
        first = int(wrong[0])
        return (
            f"its results differ from those of eager launches in {wrong.size} of {expected.size} elements, first at "
            f"{first}: {received[first]}, expected {expected[first]}"
        )
    after = mode.step.counters()
    for counter, growth in mode.step.per_step.items():
        change = after[counter] - mode.before[counter]
        if change != growth * mode.steady_steps:
            return f"{counter}: {change} in {mode.steady_steps} steady steps, expected {growth} per step"
    return None


def _summary(mode: _Mode, valid: dict[str, _Mode], launches: int, seed: int) -> dict[str, Any]:
    result: dict[str, Any] = {"status": "ok"}
    for kind, times in mode.times.items():
        if not times:
            continue
        per_step = np.asarray(times)
        result[f"{kind}_us_per_step"] = estimate(per_step, seed).as_dict()
        result[f"{kind}_us_per_launch"] = estimate(per_step / launches, seed).as_dict()
        result[f"{kind}_interrupted"] = round(mode.interrupted[kind] / len(times), 3)
        if "raw" in valid:
            result[f"{kind}_over_raw"] = estimate(per_step / np.asarray(valid["raw"].times[kind]), seed).as_dict()
        result[f"eager_over_{kind}"] = estimate(np.asarray(valid["eager"].times[kind]) / per_step, seed).as_dict()
    return result
