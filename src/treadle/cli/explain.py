"""``treadle explain``."""

from __future__ import annotations

import contextlib
import copy
import json
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from treadle.cli.parsing import parse, split_task
from treadle.errors import ConfigError, UnknownNameError

if TYPE_CHECKING:
    from treadle.cli.explained import StageKernels, TermRow
    from treadle.cli.options import ExplainOptions
    from treadle.envs import EnvCfg
    from treadle.launch.table import PipelineTable
    from treadle.registry import TaskSpec

__all__ = ["run"]

_SUMMARY = "Say how a task's step runs: which terms in which form, which stages from which graph, and what that costs."
_WARM_UP = 3
"""Steps before the measured ones: the first loads and records, the second captures."""


@dataclass(frozen=True, kw_only=True)
class _Facts:
    """What was found out."""

    about: dict[str, Any]
    terms: list[TermRow]
    table: PipelineTable
    stages: list[StageKernels]
    prices: dict[str, Any]
    sources: dict[str, str]


def run(argv: list[str]) -> int:
    """Make a task's environment, take some steps and say how they ran.

    Raises:
        TreadleError: An option or a configuration value cannot be used.
    """
    spec, argv = split_task("explain", argv, _SUMMARY)
    if spec is None:
        return 0
    from treadle.cli.options import ExplainOptions

    argv = _fill_in_kernels(argv)
    options = parse(ExplainOptions(env=spec.load_env_cfg()), argv, f"treadle explain {spec.task_id}")
    frontend = _check(spec, options, argv)
    with contextlib.redirect_stdout(sys.stderr) if options.json else contextlib.nullcontext():
        facts = _find_out(spec, options, frontend)
    if options.json:
        print(json.dumps(_as_json(facts), indent=2))
    else:
        print("\n\n".join(_sections(facts)))
    return 0


def _fill_in_kernels(argv: list[str]) -> list[str]:
    """Give ``--kernels`` without a value an empty one, which means all."""
    following = [*argv[1:], "--"][: len(argv)]
    return [
        "--kernels=" if arg == "--kernels" and n.startswith("--") else arg
        for arg, n in zip(argv, following, strict=True)
    ]


def _check(spec: TaskSpec, options: ExplainOptions, argv: list[str]) -> str:
    """Put the short options into the configuration, check everything, and return the frontend."""
    from treadle.cli import checks
    from treadle.cli.common import apply_short_options, resolve_frontend

    frontend = resolve_frontend(options, None)
    used, conflicts = apply_short_options(options, {"env": options.env}, argv)
    problems = [*checks.check_frontend(spec, frontend), *checks.env_problems(options.env)]
    problems = [*checks.as_options(problems, used), *conflicts, *checks.launch_problems(options.env)]
    if not 1 <= options.steps <= 1_000_000:
        problems.append(f"--steps is {options.steps}; allowed: 1 to 1000000")
    if problems:
        raise ConfigError.from_problems(problems)
    checks.check_terms(options.env, frontend)
    return frontend


def _find_out(spec: TaskSpec, options: ExplainOptions, frontend: str) -> _Facts:
    import torch

    from treadle.cli import explained
    from treadle.cli.common import open_env
    from treadle.envs import ManagerBasedRLEnv

    missing = _missing(options.env)
    with open_env(spec, copy.deepcopy(options.env), frontend) as env:
        sources = _chosen(explained.sources(env), options.kernels)
        actions = torch.zeros(env.num_envs, env.num_actions, device=env.device)
        for _ in range(_WARM_UP):
            env.step(actions)
        table = env.explain(steps=options.steps)
        about = {
            "task": spec.task_id,
            "frontend": frontend,
            "device": env.device,
            "num_envs": env.num_envs,
            "launch": env.launch_report(),
        }
        return _Facts(
            about=about,
            terms=explained.term_rows(env, missing) if isinstance(env, ManagerBasedRLEnv) else [],
            table=table,
            stages=explained.kernels_by_stage(env),
            prices=explained.prices(table),
            sources=sources,
        )


def _missing(cfg: EnvCfg) -> dict[str, str]:
    from treadle.envs import ManagerBasedRLEnvCfg
    from treadle.managers import missing_twins

    return missing_twins(cfg) if isinstance(cfg, ManagerBasedRLEnvCfg) else {}


def _chosen(sources: dict[str, str], wanted: str | None) -> dict[str, str]:
    """Return the sources that ``--kernels`` asks for, by the name of the stage or of the kernel.

    Raises:
        ConfigError: There is no such kernel, or the task has no generated ones.
    """
    if wanted is None:
        return {}
    if not sources:
        raise ConfigError("--kernels is for tasks that are made of terms, with the warp or the torch frontend")
    if not wanted:
        return sources
    chosen = {name: text for name, text in sources.items() if wanted == name or f"def {wanted}(" in text}
    if not chosen:
        raise UnknownNameError("kernel", wanted, sources)
    return chosen


def _as_json(facts: _Facts) -> dict[str, Any]:
    from treadle.cli.explained import table_rows

    outside = [stage for stage in facts.stages if not stage.is_physics]
    return facts.about | {
        "terms": [asdict(row) for row in facts.terms],
        "stages": table_rows(facts.table),
        "kernels_by_stage": {stage.stage: stage.kernels for stage in facts.stages},
        "kernels_outside_physics": sum(stage.count for stage in outside),
        "host_us": facts.prices,
        "sources": facts.sources,
    }


def _sections(facts: _Facts) -> list[str]:
    about = facts.about
    lines = [f"task: {about['task']}, {about['frontend']} frontend"]
    lines += [f"device: {about['device']}, {about['num_envs']} environments", about["launch"]]
    sections = ["\n".join(lines)]
    if facts.terms:
        heads = ("manager", "term", "what", "form", "function", "why no Warp form")
        rows: list[tuple[str, ...]] = [
            heads,
            *((r.manager, r.term, r.what, r.form, r.function, r.why) for r in facts.terms),
        ]
        sections.append(_table(rows if any(row[-1] for row in rows[1:]) else [row[:-1] for row in rows]))
    sections += [str(facts.table), _kernel_counts(facts), _price(facts)]
    return sections + [f"# {name}\n{text.rstrip()}" for name, text in facts.sources.items()]


def _table(rows: list[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows)


def _kernel_counts(facts: _Facts) -> str:
    """Say how many kernels a step launches, and which: those outside of physics first."""
    lines = []
    for is_physics, where in ((False, "outside physics"), (True, "in physics, beside the solver's own")):
        stages = [stage for stage in facts.stages if stage.is_physics is is_physics]
        lines.append(f"kernels per step {where}: {sum(stage.count for stage in stages)}")
        for stage in stages:
            if stage.kernels:
                names = [name if count == 1 else f"{name} x {count}" for name, count in stage.kernels.items()]
                lines.append(f"  {stage.stage}: {', '.join(names)}")
    return "\n".join(lines)


def _price(facts: _Facts) -> str:
    """Say what torch code costs the host, against the graphs."""
    torch, graphs, other = (facts.prices[name] for name in ("torch", "graphs", "other"))
    lines = ["host time per step"]
    counted = (
        (graphs, graphs["islands"], "graph", ""),
        (torch, torch["stages"], "torch stage", ""),
        (other, other["stages"], "stage", " without a graph"),
    )
    for price, count, noun, rest in counted:
        if count:
            time = "not measured" if price["host_us"] is None else f"{price['host_us']:.1f} us"
            lines.append(f"  {count} {noun}{'s' * (count != 1)}{rest}: {time}")
    if facts.about["device"] == "cpu":
        lines.append("  (on the CPU the time of a kernel is in it)")
    return "\n".join(lines)
