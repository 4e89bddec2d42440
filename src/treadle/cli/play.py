"""``treadle play``."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treadle.cli.parsing import parse, split_task
from treadle.errors import ConfigError

if TYPE_CHECKING:
    from treadle.cli.options import PlayOptions
    from treadle.registry import TaskSpec

__all__ = ["run"]

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
        result = _play(spec, options)
    if options.json:
        print(json.dumps(result, indent=2))
    else:
        _print_result(result)
    return 0


def _play(spec: TaskSpec, options: PlayOptions) -> dict[str, Any]:
    from treadle.cli import checks
    from treadle.cli.common import apply_common_options, open_env, resolve_frontend, stored_cfg
    from treadle.rl.checkpoint import check_dimensions, find_checkpoint, load

    if options.checkpoint is None:
        raise ConfigError(_no_checkpoint(spec.task_id))
    path = find_checkpoint(Path(options.checkpoint))
    checkpoint = load(path, task=spec.task_id)
    frontend = resolve_frontend(options, checkpoint)
    default = spec.load_env_cfg()
    cfg = stored_cfg(path, checkpoint.env_cfg, default)
    cfg.sim.device = default.sim.device
    used = apply_common_options(options, cfg)
    problems = [*checks.check_frontend(spec, frontend), *checks.env_problems(cfg), *_count_problems(options)]
    if problems := [*checks.as_options(problems, used), *checks.launch_problems(cfg)]:
        raise ConfigError.from_problems(problems)

    import torch

    from treadle.rl.evaluation import evaluate
    from treadle.rl.policy import Policy

    torch.manual_seed(cfg.seed)
    with open_env(spec, cfg, frontend) as env:
        check_dimensions(path, checkpoint, env.num_observations, env.num_actions)
        policy = Policy(checkpoint, device=env.device, stochastic=options.stochastic)
        if not options.json:
            kind = "stochastic" if options.stochastic else "deterministic"
            print(f"task: {spec.task_id}, {frontend} frontend, {kind} policy")
            print(f"device: {env.device}, {env.num_envs} environments, seed {env.cfg.seed}")
            print(f"checkpoint: {path}, iteration {checkpoint.iteration}")
        result = evaluate(env, policy, num_episodes=options.num_episodes, num_steps=options.num_steps)
        report = env.launch_report()
    if not options.json:
        print(report)
    about = {
        "task": spec.task_id,
        "frontend": frontend,
        "device": env.device,
        "num_envs": cfg.scene.num_envs,
        "seed": cfg.seed,
        "stochastic": options.stochastic,
        "checkpoint": str(path),
        "iteration": checkpoint.iteration,
        "launch": report,
    }
    return about | result.summary()


def _count_problems(options: PlayOptions) -> list[str]:
    problems = [
        f"{name} is {value}; allowed: at least 1"
        for name, value in (("num_episodes", options.num_episodes), ("num_steps", options.num_steps))
        if value is not None and value < 1
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


def _print_result(result: dict[str, Any]) -> None:
    finished, unfinished, steps = result["finished_episodes"], result["unfinished_episodes"], result["num_steps"]
    if finished:
        print(f"return: {result['mean_return']:.2f} ± {result['std_return']:.2f} (mean ± standard deviation)")
        print(f"episode length: {result['mean_episode_length']:.1f} steps")
    else:
        print(f"return: unknown, no episode finished in {steps} steps")
    print(f"episodes: {finished} finished, {unfinished} unfinished after {steps} steps")
