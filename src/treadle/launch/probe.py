"""Whether a stage that does not say so can be captured."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from treadle.launch.captured import CapturedLaunches
from treadle.launch.errors import LaunchError, StaleArgumentError
from treadle.launch.identity import call

if TYPE_CHECKING:
    from treadle.launch.scope import LaunchScope

__all__ = ["StageProbe"]

_RUNS = 2


class StageProbe:
    """Watches the first runs of a stage.

    Two runs must launch the same, and so must a capture of it, which is thrown away, and then the capture of the graph
    that the stage becomes part of: a stage that counts steps, swaps buffers, or takes another path now and then is
    better off without a graph. A stage that does more than its launch caches see has none either.

    Args:
        scope: Owner of the stage.
    """

    def __init__(self, scope: LaunchScope):
        self._scope = scope
        self._seen: list[CapturedLaunches] = []
        self.reason: str | None = None
        """Why the stage can't be captured, once it is decided; ``None`` if it can."""

    def run(self, fn: Callable[[], object]) -> bool:
        """Run the stage once; return whether it is decided."""
        graphs = self._scope.graphs.recorder
        if not graphs.capturing_now:
            fn()
            return False
        launches = CapturedLaunches()
        with graphs.observing(launches):
            fn()
        launches.seal()
        self._seen.append(launches)
        if len(self._seen) < _RUNS:
            return False
        self.reason = self._difference(self._seen[0], launches) or self._try_capture(fn, launches)
        self._seen.clear()
        if self.reason is None:
            self._seen.append(launches)
        return True

    def run_again(self, fn: Callable[[], object]) -> None:
        """Run the stage once more. In a capture, it must launch what was seen.

        Raises:
            LaunchError: It launches something else in a capture.
        """
        log = self._scope.graphs.recorder.captures.open
        if log is None or log.probing or not self._scope.device.is_capturing:
            call(fn)
            return
        start = log.count
        call(fn)
        if reason := self._difference(self._seen[0], log.since(start)):
            raise LaunchError(reason)

    def _try_capture(self, fn: Callable[[], object], seen: CapturedLaunches) -> str | None:
        captured = self._scope.graphs.recorder.try_capture(fn)
        return captured if isinstance(captured, str) else self._difference(seen, captured)

    @staticmethod
    def _difference(first: CapturedLaunches, second: CapturedLaunches) -> str | None:
        try:
            first.compare(second)
        except StaleArgumentError as error:
            return f"kernel {error.kernel!r}, argument {error.argument!r}: changes from run to run"
        return None
