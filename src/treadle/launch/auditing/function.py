"""``treadle.launch.audit``."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable

import warp as wp

from treadle.launch.auditing.events import Step
from treadle.launch.auditing.report import AuditReport
from treadle.launch.errors import LaunchError

__all__ = ["audit"]


def audit(fn: Callable[[], object], *, steps: int = 10, warmup: int = 2, device: wp.DeviceLike = None) -> AuditReport:
    """Run a step function some times, watch its launches, and tell what replay and graphs would save.

    The function runs ``warmup + steps`` times, each time as it would without the audit: results are the same to the
    bit. Nothing is launched twice. ``wp.launch`` and its kin are wrapped for that time only.

    Args:
        fn: Makes one step.
        steps: Number of steps to report. Fewer than four can't tell what recurs from what changes.
        warmup: Number of steps before them: modules load, buffers are allocated, graphs are captured.
        device: Default device of the step; ``None`` leaves the current one.

    Returns:
        The report: print it.

    Raises:
        LaunchError: ``steps`` or ``warmup`` is too small, another audit is running, or a graph is being captured or a
            tape is recording around the call.
    """
    from treadle.launch.auditing.build import Measured, build_report, main_device
    from treadle.launch.auditing.costs import measure_costs, measure_hook_us
    from treadle.launch.auditing.watch import LaunchWatch

    if steps < 1 or warmup < 0:
        raise LaunchError(f"steps is {steps} and warmup is {warmup}; allowed: at least 1 and at least 0")
    current = wp.get_device(device)
    if current.is_capturing or current.runtime.tape is not None:
        raise LaunchError("an audit can't run inside a graph capture or a wp.Tape: put them into the step")
    seen: list[Step] = []
    with contextlib.nullcontext() if device is None else wp.ScopedDevice(device):
        with LaunchWatch(sys._getframe()) as watch:
            events = watch.recording.events
            for number in range(warmup + steps):
                start = len(events)
                fn()
                if number >= warmup:
                    seen.append(Step(start, len(events)))
            busiest = wp.get_device(main_device(watch.recording))
            watch.drain([busiest])
    measured = Measured(measure_costs(busiest), *measure_hook_us())
    name = getattr(fn, "__qualname__", type(fn).__name__)
    return build_report(name, watch.recording, seen, f"a call of {name}", measured)
