"""``treadle play``."""

from __future__ import annotations

import contextlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treadle.cli.output import can_print
from treadle.cli.parsing import parse, split_task
from treadle.cli.sizes import sizes_as_errors
from treadle.errors import ConfigError

if TYPE_CHECKING:
    from treadle.cli.options import PlayOptions
    from treadle.envs import EnvCfg
    from treadle.registry import TaskSpec
    from treadle.rl.checkpoint import Checkpoint

__all__ = ["run"]

_MOST = 2**31 - 1
_SUMMARY = "Play a trained policy and measure it."


def run(argv: list[str]) -> int:
    """Play a policy and print what it reached.

    Raises:
        TreadleError: An option, a configuration value or the checkpoint cannot be used.
    """
    spec, argv = split_task("play", argv, _SUMMARY)
    if spec is None:
        return 0
    from treadle.cli.options import PlayOptions

    options = parse(PlayOptions(), argv, f"treadle play {spec.task_id}")
    # Whatever a library prints must not end up in the JSON.
    with contextlib.redirect_stdout(sys.stderr) if options.json else contextlib.nullcontext():
        result = _play(_plan(spec, options))
    if options.json:
        print(json.dumps(result, indent=2))
    else:
        _print_result(result)
    return 0


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """What is played, checked."""

    spec: TaskSpec
    frontend: str
    options: PlayOptions
    cfg: EnvCfg
    path: Path
    checkpoint: Checkpoint


def _plan(spec: TaskSpec, options: PlayOptions) -> _Plan:
    """Read the checkpoint, put the options over the configuration that it stores, and check everything."""
    from treadle.cli import checks
    from treadle.cli.common import apply_short_options, resolve_frontend, stored_cfg
    from treadle.rl.checkpoint import find_checkpoint, load

    if options.checkpoint is None:
        raise ConfigError(_no_checkpoint(spec.task_id))
    path = find_checkpoint(Path(options.checkpoint))
    checkpoint = load(path, task=spec.task_id)
    frontend = resolve_frontend(options, checkpoint)
    default = spec.load_env_cfg()
    cfg = stored_cfg(path, checkpoint.env_cfg, default)
    cfg.sim.device = default.sim.device
    used, conflicts = apply_short_options(options, {"env": cfg}, [])
    problems = [*checks.check_frontend(spec, frontend), *checks.env_problems(cfg), *_count_problems(options)]
    if problems := [*checks.as_options(problems, used), *conflicts, *checks.launch_problems(cfg)]:
        raise ConfigError.from_problems(problems)
    checks.check_terms(cfg, frontend)
    return _Plan(spec=spec, frontend=frontend, options=options, cfg=cfg, path=path, checkpoint=checkpoint)


def _play(plan: _Plan) -> dict[str, Any]:
    """Play and return what was played and what was seen, as plain data."""
    import torch

    from treadle.cli.common import open_env
    from treadle.rl.checkpoint import check_dimensions
    from treadle.rl.evaluation import evaluate
    from treadle.rl.policy import Policy

    options, checkpoint = plan.options, plan.checkpoint
    torch.manual_seed(plan.cfg.seed)
    with open_env(plan.spec, plan.cfg, plan.frontend) as env:
        check_dimensions(plan.path, checkpoint, env.num_observations, env.num_actions)
        with sizes_as_errors("building the policy"):
            policy = Policy(checkpoint, device=env.device, stochastic=options.stochastic)
        about = {
            "task": plan.spec.task_id,
            "frontend": plan.frontend,
            "device": env.device,
            "num_envs": env.num_envs,
            "seed": plan.cfg.seed,
            "stochastic": options.stochastic,
            "checkpoint": str(plan.path),
            "iterations": checkpoint.iteration + 1,
        }
        if not options.json:
            _print_start(about)
        with sizes_as_errors("playing", building=False):
            result = evaluate(env, policy, num_episodes=options.num_episodes, num_steps=options.num_steps)
        return about | {"launch": env.launch_report()} | result.summary()


def _count_problems(options: PlayOptions) -> list[str]:
    problems = [
        f"{name} is {value}; allowed: {'at least 1' if value < 1 else f'1 to {_MOST}'}"
        for name, value in (("num_episodes", options.num_episodes), ("num_steps", options.num_steps))
        if value is not None and not 1 <= value <= _MOST
    ]
    if options.num_episodes is not None and options.num_steps is not None:
        problems.append("num_steps cannot be combined with --num-episodes; allowed: one of them")
    return problems


def _no_checkpoint(task: str) -> str:
    from treadle.cli.checks import newest_run, runs_dir

    text = f"'treadle play {task}' needs --checkpoint PATH, a file model_<iteration>.pt or a run directory; "
    if (newest := newest_run(task)) is not None:
        return text + f"the newest run here is {newest}"
    return text + f"'treadle train {task}' makes one in {runs_dir(task)}"


def _print_start(about: dict[str, Any]) -> None:
    kind = "stochastic" if about["stochastic"] else "deterministic"
    print(f"task: {about['task']}, {about['frontend']} frontend, {kind} policy")
    print(f"device: {about['device']}, {about['num_envs']} environments, seed {about['seed']}")
    print(f"checkpoint: {about['checkpoint']}, after {about['iterations']} iterations", flush=True)


def _print_result(result: dict[str, Any]) -> None:
    print(result["launch"])
    finished, unfinished, steps = result["finished_episodes"], result["unfinished_episodes"], result["num_steps"]
    if finished:
        sign = "±" if can_print("±") else "+/-"
        print(f"return: {result['mean_return']:.2f} {sign} {result['std_return']:.2f} (mean {sign} standard deviation)")
        print(f"episode length: {result['mean_episode_length']:.1f} steps")
    else:
        print(f"return: unknown, no episode finished in {steps} steps")
    print(f"episodes: {finished} finished, {unfinished} unfinished after {steps} steps")
    if result["overflow"] is not None:
        print(f"warning: contacts were dropped: {result['overflow']}")
