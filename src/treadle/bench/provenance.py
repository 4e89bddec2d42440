"""Where the numbers of a benchmark come from."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import warp as wp

import treadle

__all__ = ["collect", "config_digest", "load_average"]

_PACKAGES = ("numpy", "newton", "mujoco-warp", "torch", "cuda-bindings")


def collect(argv: Sequence[str], config: Mapping[str, Any], device: wp.DeviceLike, seed: int) -> dict[str, Any]:
    """Describe a run, as JSON can hold it.

    Args:
        argv: The command and its options, without the program.
        config: What the options came to.
        device: Device that was measured.
        seed: Seed of the run.
    """
    resolved = wp.get_device(device)
    return {
        "command": f"treadle {shlex.join(argv)}",
        "utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": _versions(),
        "git": _git(Path(treadle.__file__).parent),
        "device": {"alias": str(resolved), "name": resolved.name if resolved.is_cuda else _cpu_model()},
        "cuda": _cuda(resolved),
        "host": {
            "cpu": _cpu_model(),
            "cores": os.cpu_count(),
            "usable_cores": len(os.sched_getaffinity(0)),
            "platform": f"{platform.system()} {platform.machine()}",
            "load_average": load_average(),
        },
        "config": dict(config),
        "config_sha256": config_digest(config),
        "seed": seed,
    }


def config_digest(config: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a configuration, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()


def load_average() -> list[float]:
    """Return the load averages of the last 1, 5 and 15 minutes."""
    return [round(load, 2) for load in os.getloadavg()]


def _versions() -> dict[str, str]:
    """Return the versions of what is installed; Treadle itself need not be."""
    versions = {"treadle": treadle.__version__, "warp": wp.__version__, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _git(folder: Path) -> dict[str, Any] | None:
    """Return revision and dirtiness of the checkout that Treadle runs from, ``None`` where it is no checkout."""
    if _run_git(folder, "ls-files", "--error-unmatch", "__init__.py") is None:
        return None
    revision, changes = _run_git(folder, "rev-parse", "HEAD"), _run_git(folder, "status", "--porcelain")
    return None if revision is None else {"revision": revision, "dirty": bool(changes)}


def _run_git(folder: Path, *args: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(folder), *args], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _cuda(device: wp.Device) -> dict[str, Any] | None:
    if not device.is_cuda:
        return None
    return {
        "driver": ".".join(map(str, wp.get_cuda_driver_version() or ())),
        "toolkit": ".".join(map(str, wp.get_cuda_toolkit_version() or ())),
        "arch": device.arch,
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
