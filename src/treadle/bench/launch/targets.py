"""What the launch layer is to cost at most, and whether it does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["TARGETS", "Target", "judge"]


@dataclass(frozen=True)
class Target:
    """A bound on a ratio of host times, taken within one process."""

    mode: str
    quantity: str
    """``host_over_raw`` or ``eager_over_host``, as the report calls it."""
    limit: float
    at_most: bool
    """Whether the ratio is to be at most the limit; else at least."""
    kernels: tuple[str, ...]

    def __str__(self) -> str:
        """Return it as a formula."""
        if self.quantity == "host_over_raw":
            return f"{self.mode} / raw ≤ {self.limit:.2f}"
        return f"eager / {self.mode} ≥ {self.limit:g}"


TARGETS = (
    Target("bound", "host_over_raw", 1.10, True, ("arrays-4", "arrays-12")),
    Target("trusted", "host_over_raw", 1.25, True, ("arrays-4", "arrays-12")),
    Target("checked", "host_over_raw", 1.60, True, ("arrays-4", "arrays-12")),
    Target("checked", "eager_over_host", 3.0, False, ("arrays-4",)),
    Target("checked", "eager_over_host", 4.0, False, ("arrays-12",)),
)


def judge(groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a verdict for each target, kernel and number of launches, with the fewest threads.

    Args:
        groups: What was measured.

    Returns:
        Entries with the ratio and ``met`` or ``missed``, by the median, or ``not measured``.
    """
    threads = min((group["threads"] for group in groups), default=0)
    return [entry for target in TARGETS for entry in _entries(target, groups, threads)]


def _entries(target: Target, groups: list[dict[str, Any]], threads: int) -> Iterator[dict[str, Any]]:
    for group in groups:
        if group["kernel"] not in target.kernels or group["threads"] != threads:
            continue
        ratio = group["modes"].get(target.mode, {}).get(target.quantity)
        verdict = "not measured"
        if ratio is not None:
            value = ratio["median"] if target.at_most else -ratio["median"]
            verdict = "met" if value <= (target.limit if target.at_most else -target.limit) else "missed"
        yield {
            "target": str(target),
            "kernel": group["kernel"],
            "launches": group["launches"],
            "limit": target.limit,
            "ratio": ratio,
            "verdict": verdict,
        }
