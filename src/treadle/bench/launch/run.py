"""Run the benchmark of the launch modes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import warp as wp

from treadle.bench import provenance
from treadle.bench.launch.cfg import LaunchBenchCfg
from treadle.bench.launch.group import measure_group
from treadle.bench.launch.modes import all_modes
from treadle.bench.launch.targets import judge
from treadle.bench.launch.workload import Workload
from treadle.devices import resolve_device

__all__ = ["invalid_cells", "run_launch_bench"]

_FORMAT = 1
_CPU_NOTE = (
    "On the CPU a kernel runs inside its launch: to issue a step is to complete it, so there is one time, and host "
    "overhead shows with 1 thread."
)
_CUDA_NOTE = (
    "host: time to issue a step without waiting, with an empty queue at its start. completed: time to issue a step and "
    "to wait for the device."
)
_DRIVER_NOTE = (
    "driver: cuLaunchKernel (cuda.bindings) of a like kernel, compiled by NVRTC, with as many arguments and array "
    "arguments of the same size, packed beforehand. driver_warp: cuLaunchKernel of Warp's own kernel, with what a "
    "recorded wp.Launch holds: hooks.forward and params_addr, which are not documented."
)


def run_launch_bench(
    cfg: LaunchBenchCfg, argv: Sequence[str], progress: Callable[[str], None] = lambda line: None
) -> dict[str, Any]:
    """Measure the matrix.

    Args:
        cfg: The matrix.
        argv: The command with its options, for the report.
        progress: Is told about each finished part.

    Returns:
        The report, as JSON can hold it.

    Raises:
        ConfigError: The configuration is not usable.
    """
    cfg.validate()
    device = wp.get_device(resolve_device(cfg.device))
    start = time.perf_counter()
    source = provenance.collect(argv, asdict(cfg), device, cfg.seed)
    builders = all_modes(device)
    groups = []
    for threads in cfg.threads:
        for kernel in cfg.kernels:
            workload = Workload(kernel, device, threads, cfg.seed)
            for launches in cfg.launches:
                groups.append(measure_group(workload, launches, cfg, builders))
                progress(_progress_line(groups[-1]))
    source["load_average_after"] = provenance.load_average()
    source["seconds"] = round(time.perf_counter() - start, 1)
    return {
        "benchmark": "launch",
        "format": _FORMAT,
        "provenance": source,
        "notes": [_CUDA_NOTE, _DRIVER_NOTE] if device.is_cuda else [_CPU_NOTE],
        "modes": list(builders),
        "targets": judge(groups),
        "groups": groups,
    }


def invalid_cells(report: dict[str, Any]) -> list[str]:
    """Return a sentence for each cell whose numbers can't be believed."""
    return [
        f"{group['kernel']}, threads {group['threads']}, launches {group['launches']}, {mode}: {cell['reason']}"
        for group in report["groups"]
        for mode, cell in group["modes"].items()
        if cell["status"] == "invalid"
    ]


def _progress_line(group: dict[str, Any]) -> str:
    cells = group["modes"].values()
    valid, invalid = (sum(cell["status"] == status for cell in cells) for status in ("ok", "invalid"))
    case = f"{group['kernel']}, threads {group['threads']}, launches per step {group['launches']}"
    return f"{case}: {valid} modes" + (f", {invalid} INVALID" if invalid else "")
