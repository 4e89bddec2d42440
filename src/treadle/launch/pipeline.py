"""Stages, and the graph islands that they form."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from treadle.launch.errors import CaptureWarning, LaunchError
from treadle.launch.modes import LaunchMode
from treadle.launch.scope import LaunchScope

__all__ = ["Island", "Pipeline", "Stage"]


@dataclass(frozen=True)
class Stage:
    """One step of a pipeline.

    Once the stage runs from a graph, its Python code does not run any more. An array or a number that it would pass
    from then on must be declared in ``inputs``, or replaced with :meth:`LaunchScope.invalidate`. The ``debug`` contract
    raises where that was forgotten; ``checked`` can't see it.
    """

    name: str
    """Unique name."""
    fn: Callable[[], object]
    """Issues the stage's launches."""
    capture: bool | str = True
    """``True`` where the function may be captured. Else ``False``, or better the reason why not."""
    inputs: Sequence[Any] | Callable[[], Sequence[Any]] = ()
    """Arguments whose change makes a graph of it wrong, or a function that returns them; see :meth:`GraphCache.run`."""

    @property
    def break_reason(self) -> str | None:
        """Why the stage can't be captured, ``None`` if it can."""
        if self.capture is True:
            return None
        return self.capture if isinstance(self.capture, str) else "declared capture=False"


@dataclass(frozen=True)
class Island:
    """Neighbouring stages that run from one graph, or one stage that can't be captured."""

    stages: tuple[Stage, ...]
    """The stages, in order."""
    break_reason: str | None
    """Why this island is no graph; ``None`` if it is one."""

    @property
    def key(self) -> tuple[str, ...]:
        """Names of the stages: the key of the island's graph in a scope with one pipeline."""
        return tuple(stage.name for stage in self.stages)

    def read_inputs(self) -> list[Any]:
        """Return the declared inputs of all stages."""
        inputs = [stage.inputs() if callable(stage.inputs) else stage.inputs for stage in self.stages]
        return [value for values in inputs for value in values]


class Pipeline:
    """Runs stages in order, with neighbouring capturable stages merged into one graph.

    Nothing places graph breaks by hand: they follow from what each stage says about itself, and from what happens. A
    stage that fails to be captured leaves its island, once, and the rest of the island is captured without it.

    Args:
        stages: The stages, in order, with unique names.
        scope: Owner of the graphs.
        key: Distinguishes the graphs of several pipelines of one scope; :meth:`LaunchScope.pipeline` counts them.

    Raises:
        LaunchError: Two stages share a name.
    """

    def __init__(self, stages: Sequence[Stage], scope: LaunchScope, *, key: Hashable = None):
        names = [stage.name for stage in stages]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise LaunchError(f"stage names must be unique; repeated: {', '.join(repeated)}")
        self.stages = tuple(stages)
        self.scope = scope
        self._key = key
        self._failed: dict[str, str] = {}
        self._alone: set[str] = set()
        self._culprit: str | None = None
        self._unexplained: tuple[str, ...] = ()
        self.islands = self._compute_islands()

    def run(self) -> None:
        """Run each stage exactly once."""
        for island in self.islands:
            self._culprit = None
            if island.break_reason is not None:
                self._run_stages(island)
                continue
            run = partial(self._run_stages, island)
            reason = self.scope.graphs.attempt(self._graph_key(island.key), run, inputs=island.read_inputs)
            if reason is not None:
                self._split(island, reason)
        if self._alone:
            self._rejoin()

    @property
    def graph_count(self) -> int:
        """Number of islands that run, or will run, from a graph."""
        if not self.scope.graphs.capturing_allowed:
            return 0
        return sum(island.break_reason is None for island in self.islands)

    def describe(self) -> str:
        """Return a line per island: its stages, how it runs, and why it is not part of a graph."""
        lines = []
        for island in self.islands:
            if island.break_reason is not None:
                how = f"no graph: {island.break_reason}"
            elif self.scope.graphs.capturing_allowed:
                how = "graph"
            else:
                how = self._mode_without_graphs()
            lines.append(f"{' + '.join(island.key)}: {how}")
        return "\n".join(lines)

    def _mode_without_graphs(self) -> str:
        return "eager" if self.scope.mode is LaunchMode.EAGER else "replay"

    def _graph_key(self, names: tuple[str, ...]) -> Hashable:
        return names if self._key is None else (self._key, *names)

    def _run_stages(self, island: Island) -> None:
        for stage in island.stages:
            try:
                stage.fn()
            except BaseException as error:
                self._culprit = stage.name
                note = f"in stage {stage.name!r} of {self.scope.name}"
                if note not in getattr(error, "__notes__", ()):
                    error.add_note(note)
                raise

    def _compute_islands(self) -> tuple[Island, ...]:
        islands: list[Island] = []
        joinable = False
        for stage in self.stages:
            reason = self._failed.get(stage.name, stage.break_reason)
            if joinable and reason is None and stage.name not in self._alone:
                islands[-1] = Island((*islands[-1].stages, stage), None)
                continue
            islands.append(Island((stage,), reason))
            joinable = reason is None and stage.name not in self._alone
        return tuple(islands)

    def _split(self, island: Island, reason: str) -> None:
        """Take the stage whose capture failed out of its island; where it is not known, try each stage on its own."""
        culprit = island.key[0] if len(island.key) == 1 else self._culprit
        if culprit is not None:
            self._failed[culprit] = reason
            if len(island.key) > 1:
                self.scope.graphs.forget(self._graph_key(island.key))
            self.scope.graphs.give_up(self._graph_key((culprit,)), reason)
            message = f"stage {culprit!r} runs without a graph: {reason}"
        else:
            self._alone.update(island.key)
            self._unexplained = island.key
            message = f"stages {', '.join(island.key)} make no graph together, each is tried on its own: {reason}"
        self.islands = self._compute_islands()
        if self.scope.mode is LaunchMode.GRAPH:
            warnings.warn(f"{self.scope.name}: {message}", CaptureWarning, stacklevel=3)

    def _rejoin(self) -> None:
        """Join the stages that were tried on their own again, once it is known which of them can't be captured."""
        failed = self._alone & self._failed.keys()
        graphs = self.scope.graphs
        if failed and all(graphs.has_graph(self._graph_key((name,))) for name in self._alone - failed):
            self._alone.clear()
            graphs.forget(self._graph_key(self._unexplained))
            self.islands = self._compute_islands()
