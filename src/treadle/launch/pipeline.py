"""Stages, and the graph islands that they form."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from treadle.launch.errors import LaunchError
from treadle.launch.identity import call, check_runs_when_called
from treadle.launch.inputs import read_inputs
from treadle.launch.measure import IslandCost, measure
from treadle.launch.modes import LaunchMode
from treadle.launch.probe import StageProbe
from treadle.launch.scope import LaunchScope
from treadle.launch.table import PipelineTable, StageRow
from treadle.launch.warn import warn_caller

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
    capture: bool | str | None = True
    """``True`` where the function may be captured. Else ``False``, or better the reason why not.

    ``None`` leaves it to what is seen: the stage runs without a graph twice, and then in a capture that is thrown away.
    It joins the graphs where it can be captured, all three launched the same, and through launch caches only.
    """
    inputs: Sequence[Any] | Callable[[], Sequence[Any]] = ()
    """Arguments whose change makes a graph of it wrong, or a function that returns them; see :meth:`GraphCache.run`."""
    may_allocate: bool = True
    """``False`` makes the ``debug`` contract raise where Warp allocates memory while the stage is captured."""

    def __post_init__(self) -> None:
        """Refuse a function that does not run when it is called.

        Raises:
            LaunchError: It has ``yield`` in it, is ``async``, or is no function.
        """
        if not callable(self.fn):
            raise LaunchError(f"stage {self.name!r}: {self.fn!r} can't be called; pass the function that launches")
        check_runs_when_called(self.fn, f"stage {self.name!r}:")

    @property
    def break_reason(self) -> str | None:
        """Why the stage can't be captured, ``None`` if it can."""
        if self.capture is True or self.capture is None:
            return None
        return self.capture if isinstance(self.capture, str) else "declared capture=False"


@dataclass(frozen=True)
class Island:
    """Neighbouring stages that run from one graph, or one stage that can't be captured."""

    stages: tuple[Stage, ...]
    """The stages, in order."""
    break_reason: str | None
    """Why this island is no graph; ``None`` if it is one."""

    @cached_property
    def key(self) -> tuple[str, ...]:
        """Names of the stages: the key of the island's graph in a scope with one pipeline."""
        return tuple(stage.name for stage in self.stages)

    @cached_property
    def may_allocate(self) -> bool:
        """Whether each stage may allocate while it is captured."""
        return all(stage.may_allocate for stage in self.stages)

    @cached_property
    def _inputs(self) -> tuple[Any, ...]:
        """The declarations of the stages that have one; most have none."""
        return tuple(stage.inputs for stage in self.stages if type(stage.inputs) is not tuple or stage.inputs)

    def read_inputs(self) -> list[Any]:
        """Return the declared inputs of all stages."""
        return [value for inputs in self._inputs for value in read_inputs(inputs)]


class _IslandRun:
    """Runs the stages of an island. A function of the pipeline itself would keep it in a cycle of references."""

    def __init__(self, stages: tuple[Stage, ...], owner: str, unconfirmed: dict[str, StageProbe]):
        self.stages = stages
        self.owner = owner
        self.unconfirmed = unconfirmed
        self.culprit: str | None = None
        """The stage that raised in the last call of the pipeline."""
        self.__qualname__ = f"the pipeline of {', '.join(stage.name for stage in stages)}"

    def __call__(self) -> None:
        for stage in self.stages:
            probe = self.unconfirmed.get(stage.name)
            try:
                call(stage.fn) if probe is None else probe.run_again(stage.fn)
            except BaseException as error:
                self.culprit = stage.name
                note = f"in stage {stage.name!r} of {self.owner}"
                if note not in getattr(error, "__notes__", ()):
                    error.add_note(note)
                raise


class Pipeline:
    """Runs stages in order, with neighbouring capturable stages merged into one graph.

    Nothing places graph breaks by hand: they follow from what each stage says about itself, and from what happens. A
    stage that fails to be captured leaves its island, once, and the rest of the island is captured without it.

    Args:
        stages: The stages, in order, with unique names.
        scope: Owner of the graphs.
        key: Distinguishes the graphs of several pipelines of one scope; :meth:`LaunchScope.pipeline` counts them.

    Raises:
        LaunchError: Two stages share a name, or what is passed is no list of stages.
    """

    def __init__(self, stages: Sequence[Stage], scope: LaunchScope, *, key: Hashable = None):
        stages = _as_stages(stages)
        names = [stage.name for stage in stages]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise LaunchError(f"stage names must be unique; repeated: {', '.join(repeated)}")
        self.stages = stages
        self.scope = scope
        self._key = key
        self._failed: dict[str, str] = {}
        self._alone: set[str] = set()
        self._unexplained: tuple[str, ...] = ()
        self._unconfirmed: dict[str, StageProbe] = {}
        """Stages that joined the graphs for what was seen of them, until their first graph."""
        self._probes = {stage.name: StageProbe(scope) for stage in stages if stage.capture is None}
        self._runs: dict[tuple[str, ...], _IslandRun] = {}
        self._generation = scope.graphs.recorder.generation
        self.islands = self._compute_islands()

    def run(self) -> None:
        """Run each stage exactly once. On the CPU with graphs, one thread at a time: :meth:`LaunchScope.exclusive`."""
        with self.scope.exclusive():
            self._follow_scope()
            for island in self.islands:
                self._run_island(island)
            if self._alone:
                self._rejoin()

    def close(self) -> None:
        """Let go of the functions and inputs of the stages: of their owner. :meth:`LaunchScope.close` does it.

        What remains are their names and how they ran, for :meth:`describe`.
        """
        self.stages = tuple(replace(stage, fn=_refuse_to_run, inputs=()) for stage in self.stages)
        stages = {stage.name: stage for stage in self.stages}
        self.islands = tuple(
            Island(tuple(stages[name] for name in island.key), island.break_reason) for island in self.islands
        )
        for held in (self._runs, self._probes, self._unconfirmed):
            held.clear()

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

    def explain(self, steps: int = 0) -> PipelineTable:
        """Return a table of the stages: island, launches, mode, cost, and why a stage has no graph.

        Args:
            steps: How often to run the pipeline for the times, which are empty without. Each of these runs counts, as
                any other does. Runs of an island that recorded or captured something, or came before that, are not in
                its times, so three are the fewest that give any. On CUDA the device is synchronized after each island.
        """
        with self.scope.exclusive():
            self._follow_scope()
            costs = measure(lambda: self.islands, self._run_island, self.scope, steps)
        rows = []
        for number, island in enumerate(self.islands, 1):
            cost = costs.get((island.key, island.break_reason), IslandCost())
            sites = self.scope.graphs.sites(self._graph_key(island.key))
            for stage in island.stages:
                first = stage is island.stages[0]
                rows.append(
                    StageRow(
                        stage.name,
                        number,
                        (len(sites) if sites else cost.launches) if first else None,
                        self._mode_of(island),
                        cost.host_us if first else None,
                        cost.elapsed_us if first else None,
                        island.break_reason or "",
                    )
                )
        return PipelineTable(f"{self.scope.name} on {self.scope.device}", tuple(rows))

    def _follow_scope(self) -> None:
        """Refuse a closed scope; after its graphs were dropped, give the stages that failed another chance."""
        graphs = self.scope.graphs.recorder
        graphs.check_open()
        if self._generation == graphs.generation:
            return
        self._generation = graphs.generation
        unsure = {*self._failed, *self._probes, *self._unconfirmed}
        if not unsure and not self._alone:
            return
        self._probes.update(
            (stage.name, StageProbe(self.scope))
            for stage in self.stages
            if stage.capture is None and stage.name in unsure
        )
        self._unconfirmed.clear()
        self._failed.clear()
        self._alone.clear()
        before, self.islands = self.islands, self._compute_islands()
        for key in {island.key for island in before} - {island.key for island in self.islands}:
            graphs.forget(self._graph_key(key))
        if self._unexplained:
            graphs.forget(self._graph_key(self._unexplained))
            self._unexplained = ()

    def _mode_of(self, island: Island) -> str:
        graph = island.break_reason is None and self.scope.graphs.capturing_allowed
        return "graph" if graph else self._mode_without_graphs()

    def _run_island(self, island: Island) -> None:
        run = self._runs.get(island.key)
        if run is None:
            run = self._runs[island.key] = _IslandRun(island.stages, self.scope.name, self._unconfirmed)
        run.culprit = None
        if island.break_reason is not None:
            self._run_alone(island, run)
            return
        reason = self.scope.graphs.recorder.attempt(
            self._graph_key(island.key), run, inputs=island.read_inputs, may_allocate=island.may_allocate
        )
        if reason is not None:
            self._split(island, reason, run.culprit)
        elif self._unconfirmed and self.scope.graphs.has_graph(self._graph_key(island.key)):
            for name in island.key:
                self._unconfirmed.pop(name, None)

    def _run_alone(self, island: Island, run: Callable[[], object]) -> None:
        """Run an island without a graph, and watch its stage as long as it is not known whether it can have one."""
        name = island.key[0]
        probe = self._probes.get(name)
        if probe is None:
            run()
        elif probe.run(run):
            del self._probes[name]
            if probe.reason is not None:
                self._failed[name] = probe.reason
            else:
                self._unconfirmed[name] = probe
            self.islands = self._compute_islands()

    def _mode_without_graphs(self) -> str:
        return "eager" if self.scope.mode is LaunchMode.EAGER else "replay"

    def _graph_key(self, names: tuple[str, ...]) -> Hashable:
        return names if self._key is None else (self._key, *names)

    def _compute_islands(self) -> tuple[Island, ...]:
        islands: list[Island] = []
        joinable = False
        for stage in self.stages:
            reason = self._failed.get(stage.name, stage.break_reason)
            if stage.name in self._probes and self.scope.graphs.capturing_allowed:
                reason = "not known yet whether it can be captured"
            if joinable and reason is None and stage.name not in self._alone:
                islands[-1] = Island((*islands[-1].stages, stage), None)
                continue
            islands.append(Island((stage,), reason))
            joinable = reason is None and stage.name not in self._alone
        return tuple(islands)

    def _split(self, island: Island, reason: str, culprit: str | None = None) -> None:
        """Take the stage whose capture failed out of its island; where it is not known, try each stage on its own."""
        if len(island.key) == 1:
            culprit = island.key[0]
        if culprit is not None:
            self._failed[culprit] = reason
            self._unconfirmed.pop(culprit, None)
            if len(island.key) > 1:
                self.scope.graphs.forget(self._graph_key(island.key))
            self.scope.graphs.recorder.give_up(self._graph_key((culprit,)), reason)
            message = f"stage {culprit!r} runs without a graph: {reason}"
        else:
            self._alone.update(island.key)
            self._unexplained = island.key
            message = f"stages {', '.join(island.key)} make no graph together, each is tried on its own: {reason}"
        self.islands = self._compute_islands()
        if self.scope.mode is LaunchMode.GRAPH:
            warn_caller(f"{self.scope.name}: {message}")

    def _rejoin(self) -> None:
        """Join the stages that were tried on their own again, once it is known which of them can't be captured."""
        failed = self._alone & self._failed.keys()
        graphs = self.scope.graphs
        if failed and all(graphs.has_graph(self._graph_key((name,))) for name in self._alone - failed):
            self._alone.clear()
            graphs.forget(self._graph_key(self._unexplained))
            self.islands = self._compute_islands()


def _refuse_to_run() -> None:
    raise LaunchError("the pipeline is closed: its stages can't be run any more")


def _as_stages(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    usage = "a pipeline takes a list of stages, [Stage(name, function), ...]"
    if not hasattr(stages, "__iter__"):
        raise LaunchError(f"{usage}, received a {type(stages).__name__}")
    stages = tuple(stages)
    for number, stage in enumerate(stages, 1):
        if not isinstance(stage, Stage):
            hint = f": write Stage({getattr(stage, '__name__', 'name')!r}, ...) around it" if callable(stage) else ""
            raise LaunchError(f"{usage}; item {number} is a {type(stage).__name__}{hint}")
    return stages
