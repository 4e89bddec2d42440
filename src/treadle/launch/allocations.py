"""Memory that is allocated while a graph is captured."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterator

import warp as wp

__all__ = ["noting_allocations"]

_MANY = 10_000
_TOTALS = re.compile(r"Total allocations:\n(.*?)Peak usage:", re.DOTALL)
_TOTAL = re.compile(r"^ +(\S+) +(\d+) \(", re.MULTILINE)


@contextlib.contextmanager
def noting_allocations() -> Iterator[list[str]]:
    """Fill the list with what Warp allocates inside: size, device, type and place.

    Of what is freed inside as well, only the number is known: Warp lists what lives. On CUDA that is any temporary; on
    the CPU a capture keeps it. A tracker of the user's own that is on already goes on as it was.
    """
    found: list[str] = []
    reports: list[str] = []
    tracker = wp.ScopedMemoryTracker("capture", print=False, report_func=reports.append)
    with tracker:
        tracker.report(max_items=_MANY)
        try:
            yield found
        finally:
            tracker.report(max_items=_MANY)
            before, after = reports
            found.extend((Counter(_entries(after)) - Counter(_entries(before))).elements())
            listed = Counter(line.split(" : ")[1] for line in found)
            unlisted = _totals(after) - _totals(before) - listed
            found.extend(f"{count} on {device}, freed again inside" for device, count in unlisted.items())


# Warp tells what its tracker saw in this text only. With another text nothing is found, and the tests fail.


def _entries(report: str) -> list[str]:
    """Return the lines of a report that describe one allocation each: "size : device : type ..."."""
    return [line.strip() for line in report.splitlines() if line.count(" : ") >= 2]


def _totals(report: str) -> Counter[str]:
    """Return how much was allocated so far on each device, whether it lives or not: "device   count (size)"."""
    section = _TOTALS.search(report)
    return Counter({device: int(count) for device, count in _TOTAL.findall(section[1] if section else "")})
