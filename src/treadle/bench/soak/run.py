"""Run random launch programs for a time, and judge what grew."""

from __future__ import annotations

import gc
import os
import random
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import warp as wp

from treadle.bench import provenance
from treadle.bench.soak.cfg import SoakCfg
from treadle.bench.soak.program import Program
from treadle.devices import resolve_device
from treadle.launch.record import LaunchRecord

__all__ = ["growth", "run_soak"]

_MODES = ("auto", "auto", "replay", "eager")
_MOST_PROGRAMS = 4
_ACTIONS_PER_TURN = 30
_MIB = 1024.0 * 1024.0


class _Soak:
    """One program lives as long as the run; others come and go."""

    def __init__(self, device: wp.Device, seed: int):
        self.device = device
        self.rng = random.Random(seed)
        self.lasting = Program(device, "auto", self.rng)
        self.passing: list[Program] = []
        self.counts: Counter[str] = Counter()

    def turn(self) -> str | None:
        """Let a program do some things; return how it differs from its eager twin, if it does."""
        self._come_and_go()
        program = self.rng.choice([self.lasting, *self.passing])
        program.run(_ACTIONS_PER_TURN)
        self.counts["comparisons"] += 1
        difference = program.difference()
        if difference is None:
            return None
        return f"results differ from eager at comparison {self.counts['comparisons']}: {difference}"

    def sample(self, seconds: float) -> dict[str, float]:
        """Look at what is alive when only the lasting program is, and holds all that it ever does."""
        while self.passing:
            self._close(self.passing.pop())
        self.lasting.settle()
        wp.synchronize_device(self.device)
        gc.collect()
        objects = gc.get_objects()
        kinds = Counter(map(type, objects))
        stats = self.lasting.scope.stats
        return {
            "seconds": round(seconds, 2),
            "rss_mib": round(_rss_mib(), 2),
            "device_mib": round(_device_mib(self.device), 2),
            "gc_objects": len(objects),
            "arrays": kinds[wp.array],
            "records": kinds[LaunchRecord],
            "graphs": kinds[wp.Graph],
            "site_entries": len(stats.sites),
            "graph_entries": len(stats.graphs),
        }

    def close(self) -> None:
        while self.passing:
            self._close(self.passing.pop())
        self._close(self.lasting)

    def _come_and_go(self) -> None:
        if len(self.passing) < _MOST_PROGRAMS and self.rng.random() < 0.2:
            self.passing.append(Program(self.device, self.rng.choice(_MODES), self.rng))
            self.counts["programs"] += 1
        elif self.passing and self.rng.random() < 0.15:
            self._close(self.passing.pop(self.rng.randrange(len(self.passing))))

    def _close(self, program: Program) -> None:
        program.close()
        self.counts.update(program.done)


def run_soak(cfg: SoakCfg, argv: Sequence[str], progress: Callable[[str], None] = lambda line: None) -> dict[str, Any]:
    """Run programs, sample, and judge.

    Args:
        cfg: Duration, seed and bounds.
        argv: The command with its options, for the report.
        progress: Is told about each sample.

    Returns:
        The report, as JSON can hold it. ``problems`` is empty where nothing differed or grew.

    Raises:
        ConfigError: The configuration is not usable.
    """
    cfg.validate()
    device = wp.get_device(resolve_device(cfg.device))
    source = provenance.collect(argv, asdict(cfg), device, cfg.seed)
    soak = _Soak(device, cfg.seed)
    samples: list[dict[str, float]] = []
    problem = None
    start = time.perf_counter()
    for number in range(1, cfg.samples + 1):
        until = start + cfg.minutes * 60.0 * number / cfg.samples
        problem = soak.turn()
        while problem is None and time.perf_counter() < until:
            problem = soak.turn()
        if problem is not None:
            break
        samples.append(soak.sample(time.perf_counter() - start))
        progress(f"{samples[-1]['seconds']:.0f} s: {_line(samples[-1])}")
    soak.close()
    grown = growth(samples)
    problems = [problem] if problem else _judge(grown, cfg)
    return {
        "benchmark": "soak",
        "format": 1,
        "provenance": source,
        "seconds": round(time.perf_counter() - start, 1),
        "counts": dict(sorted(soak.counts.items())),
        "growth": grown,
        "bounds": dict(cfg.bounds),
        "problems": problems,
        "samples": samples,
    }


def growth(samples: Sequence[dict[str, float]]) -> dict[str, float]:
    """Return by how much each quantity grew in the second half: the median of its last part less that of its first."""
    half = samples[len(samples) // 2 :]
    early, late = half[: len(half) // 2], half[len(half) // 2 :]
    if not early:
        return {}
    return {
        name: round(statistics.median(s[name] for s in late) - statistics.median(s[name] for s in early), 3)
        for name in samples[0]
        if name != "seconds"
    }


def _judge(grown: dict[str, float], cfg: SoakCfg) -> list[str]:
    return [
        f"{name} grew by {grown[name]:g} over the second half of the run, at most {bound:g} is allowed"
        for name, bound in cfg.bounds.items()
        if grown[name] > bound
    ]


def _line(sample: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in sample.items() if name != "seconds")


def _rss_mib() -> float:
    """Return the memory of this process [MiB]."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / _MIB


def _device_mib(device: wp.Device) -> float:
    """Return the memory in use on a CUDA device [MiB], by others too; 0 on the CPU."""
    return (device.total_memory - device.free_memory) / _MIB if device.is_cuda else 0.0
