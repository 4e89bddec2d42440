"""``treadle train``."""

from __future__ import annotations

import contextlib
import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from treadle.cli.imports import split_imports
from treadle.cli.output import output_may_be_lost
from treadle.cli.parsing import parse, peek, split_task
from treadle.cli.run_dir import open_run_dir
from treadle.cli.sizes import sizes_as_errors
from treadle.errors import ConfigError

if TYPE_CHECKING:
    from treadle.cli.options import TrainOptions
    from treadle.envs import VectorEnv
    from treadle.registry import TaskSpec
    from treadle.rl.checkpoint import Checkpoint
    from treadle.rl.logger import Progress
    from treadle.rl.runner import TreadleRunner

__all__ = ["run"]

_SUMMARY = "Train a policy with PPO."
_INTERRUPTED = 130


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """What a run does, checked."""

    spec: TaskSpec
    frontend: str
    options: TrainOptions
    modules: list[str]
    resume_from: Path | None
    resumed: Checkpoint | None
    run_dir: Path


def run(argv: list[str]) -> int:
    """Train a policy.

    Returns:
        Exit status: 0, or 130 after an interruption.

    Raises:
        TreadleError: An option, a configuration value or a checkpoint cannot be used.
    """
    modules, _ = split_imports(argv)
    spec, argv = split_task("train", argv, _SUMMARY)
    if spec is None:
        return 0
    with contextlib.ExitStack() as stack:
        return _train(_plan(spec, argv, modules, stack))


def _plan(spec: TaskSpec, argv: list[str], modules: list[str], stack: contextlib.ExitStack) -> _Plan:
    """Read the options over the defaults, which a resumed run takes from its checkpoint, and check everything.

    The run directory is held as long as the stack is.
    """
    from treadle.cli import checks
    from treadle.cli.common import apply_short_options, resolve_frontend, stored_cfg
    from treadle.cli.options import TrainOptions

    argv = _fill_in_resume(argv)
    env_cfg, agent_cfg = spec.load_env_cfg(), spec.load_agent_cfg()
    resume_from, resumed = None, None
    if (resume := peek(argv, "--resume")) is not None:
        resume_from, resumed = _load_resumed(spec, resume, peek(argv, "--log-dir"))
        device = env_cfg.sim.device
        env_cfg = stored_cfg(resume_from, resumed.env_cfg, env_cfg)
        env_cfg.sim.device = device
        agent_cfg = stored_cfg(resume_from, resumed.agent_cfg, agent_cfg)
    options = parse(TrainOptions(env=env_cfg, agent=agent_cfg), argv, f"treadle train {spec.task_id}")
    frontend = resolve_frontend(options, resumed)
    used, conflicts = apply_short_options(options, {"env": options.env, "agent": options.agent}, argv)
    problems = [*checks.check_frontend(spec, frontend), *checks.env_problems(options.env), *options.agent.problems()]
    # A seed that is not allowed is said once.
    problems = list(dict.fromkeys([*checks.as_options(problems, used), *conflicts]))
    if problems := [*problems, *checks.launch_problems(options.env)]:
        raise ConfigError.from_problems(problems)
    checks.check_terms(options.env, frontend)
    completed = None if resumed is None else resumed.iteration + 1
    run_dir = stack.enter_context(open_run_dir(spec.task_id, options.log_dir, options.run_name, completed))
    return _Plan(
        spec=spec,
        frontend=frontend,
        options=options,
        modules=modules,
        resume_from=resume_from,
        resumed=resumed,
        run_dir=run_dir,
    )


def _fill_in_resume(argv: list[str]) -> list[str]:
    """Give ``--resume`` without a value an empty one."""
    filled = []
    for position, arg in enumerate(argv):
        following = argv[position + 1] if position + 1 < len(argv) else "--"
        filled.append("--resume=" if arg == "--resume" and following.startswith("--") else arg)
    return filled


def _load_resumed(spec: TaskSpec, resume: str, log_dir: str | None) -> tuple[Path, Checkpoint]:
    from treadle.cli import checks
    from treadle.rl.checkpoint import find_checkpoint, list_checkpoints, load

    if not resume and log_dir:
        if not list_checkpoints(Path(log_dir)):
            raise ConfigError(
                f"--resume: --log-dir {log_dir} has no checkpoint; name the file or the run directory to go on from"
            )
        resume = log_dir
    path = Path(resume) if resume else checks.newest_run(spec.task_id)
    if path is None:
        raise ConfigError(
            f"--resume: no run in {checks.runs_dir(spec.task_id)} has a checkpoint; name a file or a run directory"
        )
    file = find_checkpoint(path)
    return file, load(file, task=spec.task_id)


def _train(plan: _Plan) -> int:
    import torch

    from treadle.cli.common import open_env
    from treadle.rl.runner import TreadleRunner
    from treadle.rl.wrapper import RslRlVecEnvWrapper

    agent = plan.options.agent
    _print_plan(plan)
    torch.manual_seed(agent.seed)
    with open_env(plan.spec, plan.options.env, plan.frontend) as env:
        with sizes_as_errors("building the learner"):
            wrapper = RslRlVecEnvWrapper(env, clip_actions=agent.clip_actions)
            runner = TreadleRunner(wrapper, agent, task=plan.spec.task_id, run_dir=plan.run_dir)
        if plan.resume_from is not None:
            runner.load(str(plan.resume_from))
        _write_params(plan, env)
        print(f"device: {env.device}, {env.num_envs} environments, seed {env.cfg.seed}")
        reporter = _Reporter(env, plan.options.quiet)
        runner.on_progress = reporter
        try:
            with sizes_as_errors("training", building=False):
                runner.learn(agent.max_iterations, init_at_random_ep_len=agent.init_at_random_ep_len)
        except KeyboardInterrupt:
            with output_may_be_lost():
                print(f"interrupted again: stopped without a checkpoint; earlier ones are in {plan.run_dir}")
            return _INTERRUPTED
        with output_may_be_lost():
            _print_end(plan, runner, reporter)
        return _INTERRUPTED if runner.interrupted else 0


class _Reporter:
    """Prints a line per iteration, and how kernels are launched: as planned, as they are, and whenever that changes."""

    def __init__(self, env: VectorEnv, quiet: bool):
        self.last: Progress | None = None
        self._env = env
        self._quiet = quiet
        self._launch_report = ""
        self._started = time.monotonic()
        print(f"planned {env.launch_report()}", flush=True)

    @property
    def elapsed_s(self) -> float:
        """Time since the training began [s]."""
        return time.monotonic() - self._started

    def __call__(self, progress: Progress) -> None:
        self.last = progress
        lines = [] if self._quiet else [str(progress)]
        if (report := self._env.launch_report()) != self._launch_report:
            self._launch_report = report
            lines.insert(0, report)
        if lines:
            with output_may_be_lost():
                print(*lines, sep="\n")


def _write_params(plan: _Plan, env: VectorEnv) -> None:
    """Write the configurations of the run as JSON files.

    Raises:
        ConfigError: They cannot be written.
    """
    from treadle.rl.plain import to_json

    directory = plan.run_dir / "params"
    texts = {"env.json": to_json(env.cfg), "agent.json": to_json(plan.options.agent)}
    try:
        directory.mkdir(exist_ok=True)
        for name, text in texts.items():
            (directory / name).write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{directory} cannot be written: {error.strerror}; choose another --log-dir") from error


def _print_plan(plan: _Plan) -> None:
    print(f"task: {plan.spec.task_id}, {plan.frontend} frontend")
    print(f"run directory: {plan.run_dir}")
    if plan.resumed is not None:
        print(f"resuming from {plan.resume_from} after {plan.resumed.iteration + 1} iterations")
    print("building the environment; kernels that are not cached are compiled first", flush=True)


def _print_end(plan: _Plan, runner: TreadleRunner, reporter: _Reporter) -> None:
    """Say what was reached, where the checkpoint is and how to go on."""
    mean_return = None if reporter.last is None else reporter.last.mean_return
    reached = "no episode ended" if mean_return is None else f"mean return {mean_return:.2f}"
    state = "interrupted after" if runner.interrupted else "finished"
    print(f"{state} {runner.num_completed} iterations: {reached}, {reporter.elapsed_s:.1f} s")
    checkpoint = runner.last_checkpoint
    if checkpoint is None:
        print("no iteration was completed, so no checkpoint was written")
        return
    task, file = shlex.join([plan.spec.task_id, *(f"--import={m}" for m in plan.modules)]), shlex.quote(str(checkpoint))
    print(f"checkpoint: {checkpoint}")
    if runner.interrupted:
        done_before = 0 if plan.resumed is None else plan.resumed.iteration + 1
        left = plan.options.agent.max_iterations - (runner.num_completed - done_before)
        print(f"resume: treadle train {task} --resume {file} --max-iterations {left}")
    print(f"play: treadle play {task} --checkpoint {file}")
