"""What there is to say about an environment's step, as plain data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from treadle.envs import ManagerBasedRLEnv, VectorEnv
    from treadle.launch.table import PipelineTable, StageRow

__all__ = ["StageKernels", "TermRow", "kernels_by_stage", "prices", "sources", "table_rows", "term_rows"]

_PHYSICS = ("physics", "physics reset")
"""Stages that the solver's own kernels are in."""
_BEFORE_PHYSICS = "apply actions"
"""Kernel that is no stage: it is launched before each physics step."""


@dataclass(frozen=True, kw_only=True)
class TermRow:
    """One term of a manager."""

    manager: str
    term: str
    function: str
    """Path of its torch form, or of its class."""
    what: str
    """Columns, weight, mode: what the manager adds."""
    form: str
    """``warp`` or ``torch``."""
    why: str
    """Why not Warp, empty in a frontend that did not ask for it."""


@dataclass(frozen=True, kw_only=True)
class StageKernels:
    """The kernels that a stage launches in a step, with the number of launches of each."""

    stage: str
    is_physics: bool
    kernels: dict[str, int]

    @property
    def count(self) -> int:
        """Number of launches."""
        return sum(self.kernels.values())


def term_rows(env: ManagerBasedRLEnv, missing: dict[str, str]) -> list[TermRow]:
    """Return a row for each term of an environment, manager by manager, in the order of a step.

    Args:
        env: The environment.
        missing: What :func:`treadle.managers.missing_twins` said of its configuration.
    """
    rows = []
    for manager, term, function, what, form in _terms(env):
        why = missing.get(f"{manager}.{term}", "").partition(": ")[2] if env.task_frontend == "warp" else ""
        if form == "torch" and manager == "curriculum":
            why = "runs on the host, before a step"
        elif form == "torch" and what.endswith("startup"):
            why = "runs once, at the start"
        elif manager == "recorders":
            why = "records on the host"
        rows.append(TermRow(manager=manager, term=term, function=function, what=what, form=form, why=why))
    return rows


def _terms(env: ManagerBasedRLEnv) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield manager, name, function, what is said of it and form of each term."""
    from treadle.managers.twins import path_of

    owners: list[Any] = [env.action_manager, env.command_manager]
    for manager in owners:
        for name, owner in manager.terms.items():
            form = "warp" if manager.uses_warp(name) else "torch"
            yield manager.kind, name, path_of(type(owner)), _size_of(env, manager.kind, name), form
    groups = env.observation_manager.groups.values()
    managers: list[Any] = [env.event_manager, env.termination_manager, env.reward_manager, *groups]
    for held in (*managers, env.curriculum_manager):
        for name, term in held.terms.items():
            form = "warp" if term.uses_warp else "torch"
            yield held.kind, name, path_of(term.cfg.func), _describe(held, name), form
    for name, recorder in env.recorder_manager.terms.items():
        yield "recorders", name, path_of(type(recorder)), "", "torch"


def _size_of(env: ManagerBasedRLEnv, kind: str, name: str) -> str:
    if kind == "actions":
        columns = env.action_manager.columns_of(name)
        return _columns(columns.start, columns.stop)
    return _columns(0, env.command_manager.get_command(name).shape[1])


def _describe(manager: Any, name: str) -> str:
    cfg = manager.get_term_cfg(name)
    if manager.kind == "events":
        interval = cfg.interval_range_s
        return cfg.mode if cfg.mode != "interval" else f"every {interval[0]:g} to {interval[1]:g} s"
    if manager.kind == "terminations":
        return "time-out" if cfg.time_out else "terminal"
    if manager.kind == "rewards":
        return f"weight {cfg.weight:g}" + ("" if cfg.weight else ", not computed")
    if manager.kind == "curriculum":
        return ""
    pipeline = manager.pipelines[name]
    corrupted = cfg.noise is not None and manager.cfg.enable_corruption
    operations = [f"{len(cfg.modifiers)} modifier{'s' * (len(cfg.modifiers) > 1)}"] * bool(cfg.modifiers)
    operations += ["noise"] * corrupted + ["clip"] * (cfg.clip is not None) + ["scale"] * (cfg.scale is not None)
    operations += [f"delay to {cfg.delay_max_lag}"] * bool(cfg.delay_max_lag)
    operations += [f"history {pipeline.steps}"] * (pipeline.steps > 1)
    first = pipeline.first
    return ", ".join([_columns(first, first + pipeline.width * pipeline.steps), *operations])


def _columns(first: int, last: int) -> str:
    return f"column {first}" if last - first == 1 else f"columns {first} to {last - 1}"


def kernels_by_stage(env: VectorEnv) -> list[StageKernels]:
    """Take a step without graphs, stage by stage, and return the kernels that Treadle's launch caches launched.

    The solver launches its own kernels in the stages ``physics`` and ``physics reset``; these are not counted. The
    environment's count of steps does not advance, so let this be the last step that is taken.
    """
    from treadle.launch import torch_stream

    found = []
    with env.scope.exclusive(), torch_stream(env.device):
        for stage in env.pipeline.stages:
            before = _launches(env)
            stage.fn()
            counts: dict[str, int] = {}
            for key, (kernel, count) in _launches(env).items():
                if (new := count - before.get(key, ("", 0))[1]) > 0:
                    counts[kernel] = counts.get(kernel, 0) + new
            found.append(StageKernels(stage=stage.name, is_physics=stage.name in _PHYSICS, kernels=counts))
    return found


def _launches(env: VectorEnv) -> dict[Any, tuple[str, int]]:
    sites = env.scope.stats.sites
    return {key: (site.kernel, site.eager + site.recorded + site.replayed) for key, site in sites.items()}


def prices(table: PipelineTable) -> dict[str, Any]:
    """Return host time [us] and number of the torch stages, of what runs from graphs, and of what else is launched."""
    from treadle.managers.manager import TORCH_CODE

    def total(rows: list[StageRow]) -> dict[str, Any]:
        times = [row.host_us for row in rows if row.host_us is not None]
        islands = len({row.island for row in rows})
        return {"islands": islands, "stages": len(rows), "host_us": sum(times) if times else None}

    torch = [row for row in table.rows if row.reason == TORCH_CODE]
    graphs = [row for row in table.rows if row.mode == "graph"]
    others = [row for row in table.rows if row not in torch and row not in graphs]
    return {"torch": total(torch), "graphs": total(graphs), "other": total(others)}


def sources(env: VectorEnv) -> dict[str, str]:
    """Return the text of the generated kernels in the order of a step, empty where a task brings kernels of its own."""
    if (kernels := getattr(env, "kernels", None)) is None:
        return {}
    order = [_BEFORE_PHYSICS, *(stage.name for stage in env.pipeline.stages)]
    named = sorted(kernels.by_name.items(), key=lambda item: order.index(item[0]))
    return {name: kernel.source for name, kernel in named}


def table_rows(table: PipelineTable) -> list[dict[str, Any]]:
    """Return the rows of a pipeline's table as plain data."""
    return [asdict(row) for row in table.rows]
