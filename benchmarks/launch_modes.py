"""Time an environment step in each launch mode, and refuse to report when the modes disagree.

    python benchmarks/launch_modes.py --task Ant-Direct --num-envs 8 --device cpu --out modes.json

All modes run in one process, in rounds of alternating order. Each step is synchronized with the device, so a time is
the latency of one step with random bounded actions, resets included.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

import torch
import warp as wp

import treadle
from treadle.envs import DirectEnv

MODES = ("eager", "replay", "graph")


def main() -> int:
    """Run the benchmark and print a table; return 1 where the result is not valid."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="Ant-Direct")
    parser.add_argument("--frontend", default="warp", choices=("warp", "torch"))
    parser.add_argument("--num-envs", type=int, default=8)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--rounds", type=int, default=10, help="rounds, each of which times every mode")
    parser.add_argument("--steps", type=int, default=20, help="timed steps per mode and round")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    args = parser.parse_args()
    wp.config.log_level = wp.LOG_WARNING

    envs = {mode: _make(args, mode) for mode in MODES}
    device = envs["eager"].device
    actions = _actions(envs["eager"], args.rounds * args.steps + 3)
    times: dict[str, list[float]] = {mode: [] for mode in MODES}
    for mode, env in envs.items():
        for action in actions[:3]:
            env.step(action)
        print(f"{mode}: {env.launch_report()}", file=sys.stderr)
    for number in range(args.rounds):
        batch = actions[3 + number * args.steps : 3 + (number + 1) * args.steps]
        for mode in MODES if number % 2 == 0 else reversed(MODES):
            times[mode].append(_time_steps(envs[mode], batch))

    problems = _problems(envs)
    report = _report(args, device, times, problems, envs)
    if args.out:
        args.out.write_text(json.dumps(report, indent=2) + "\n")
    if problems:
        print("invalid, nothing is reported: " + "; ".join(problems), file=sys.stderr)
        return 1
    _print_table(report)
    return 0


def _make(args: argparse.Namespace, mode: str) -> DirectEnv:
    cfg = treadle.task_spec(args.task).load_env_cfg()
    cfg.launch.mode = mode
    env = treadle.make(args.task, cfg=cfg, frontend=args.frontend, num_envs=args.num_envs, device=args.device)
    env.reset(seed=0)
    return env


def _actions(env: DirectEnv, steps: int) -> torch.Tensor:
    generator = torch.Generator(device=env.device).manual_seed(0)
    return torch.rand((steps, env.num_envs, env.num_actions), generator=generator, device=env.device) * 2.0 - 1.0


def _time_steps(env: DirectEnv, actions: torch.Tensor) -> float:
    """Return the median latency of a step [ms]."""
    latencies = []
    for action in actions:
        wp.synchronize_device(env.device)
        start = time.perf_counter()
        env.step(action)
        wp.synchronize_device(env.device)
        latencies.append((time.perf_counter() - start) * 1e3)
    return statistics.median(latencies)


def _problems(envs: dict[str, DirectEnv]) -> list[str]:
    """Return why the numbers can't be trusted. On the CPU all modes must end in the same state, to the bit."""
    problems = []
    for mode, env in envs.items():
        if not all(bool(torch.isfinite(view).all()) for view in env.observations.values()):
            problems.append(f"{mode}: observations are not finite")
        if env.physics.overflow_steps.numpy().any():
            problems.append(f"{mode}: {env.physics.describe_overflow()}")
        if env.device == "cpu":
            for group, expected in envs["eager"].observations.items():
                if not torch.equal(env.observations[group], expected):
                    problems.append(f"{mode}: observations of group {group!r} differ from eager")
    graphs = envs["graph"].scope.stats
    problems += [f"graph: {reason}" for reason in graphs.fallback_reasons().values()]
    return problems


def _report(
    args: argparse.Namespace,
    device: str,
    times: dict[str, list[float]],
    problems: list[str],
    envs: dict[str, DirectEnv],
) -> dict[str, object]:
    ratios = {mode: [e / t for e, t in zip(times["eager"], times[mode], strict=True)] for mode in MODES}
    return {
        "command": " ".join(sys.argv),
        "task": args.task,
        "frontend": args.frontend,
        "num_envs": args.num_envs,
        "device": wp.get_device(device).name,
        "host": f"{platform.machine()}, Python {platform.python_version()}",
        "git": subprocess.run(
            ["git", "describe", "--always", "--dirty"], capture_output=True, text=True
        ).stdout.strip(),
        "versions": {
            "treadle": treadle.__version__,
            **{name: metadata.version(name) for name in ("warp-lang", "newton", "mujoco", "mujoco-warp", "torch")},
        },
        "problems": problems,
        "launch": {mode: env.launch_report() for mode, env in envs.items()},
        "step_ms": {} if problems else times,
        "eager_over_mode": {} if problems else ratios,
    }


def _print_table(report: dict[str, object]) -> None:
    print(f"{report['task']}, {report['frontend']} frontend, {report['num_envs']} environments, {report['device']}")
    print(f"{'mode':8} {'ms per step':>12} {'faster than eager':>18}   range over rounds")
    for mode in MODES:
        times, ratios = report["step_ms"][mode], report["eager_over_mode"][mode]  # type: ignore[index]
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        print(f"{mode:8} {statistics.median(times):12.3f} {statistics.median(ratios):18.2f}   {spread}")


if __name__ == "__main__":
    sys.exit(main())
