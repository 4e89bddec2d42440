"""Memory that is allocated while a graph is captured."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator

import warp as wp

__all__ = ["noting_allocations"]

_MANY = 10_000


@contextlib.contextmanager
def noting_allocations() -> Iterator[list[str]]:
    """Fill the list with what Warp allocates inside: size, device, type and place.

    A tracker of the user's own that is on already goes on as it was.
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
            before, after = (Counter(_entries(report)) for report in reports)
            found.extend((after - before).elements())


def _entries(report: str) -> list[str]:
    """Return the lines of a report that describe one allocation each: "size : device : type ...".

    Warp tells what its tracker saw in this text only. With another text nothing is found, and the tests fail.
    """
    return [line.strip() for line in report.splitlines() if line.count(" : ") >= 2]
