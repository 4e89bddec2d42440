"""rsl_rl's logger with one line per iteration instead of a page, and without a host synchronization at each step."""

from __future__ import annotations

import contextlib
import datetime
import io
import logging
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from rsl_rl.utils.logger import Logger

import treadle

__all__ = ["Progress", "TreadleLogger", "prints_to_log", "writer_threads_fail_silently"]

_log = logging.getLogger(__name__)


@contextlib.contextmanager
def prints_to_log() -> Iterator[None]:
    """Send what is printed inside to this module's log, at level DEBUG."""
    text = io.StringIO()
    try:
        with contextlib.redirect_stdout(text):
            yield
    finally:
        for line in text.getvalue().splitlines():
            if line.strip():
                _log.debug("%s", line)


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What is known after an iteration."""

    iteration: int
    """Iterations completed so far, also those before a resumption."""
    total_iterations: int
    """Iterations completed at the end of this run."""
    mean_return: float | None
    """Mean undiscounted return of the last 100 episodes; ``None`` before the first one ended."""
    mean_episode_length: float | None
    """Mean length of the same episodes in environment steps."""
    steps_per_second: float
    """Environment steps of this iteration per second, over all environments, learning included."""
    elapsed_s: float
    """Time since this run began [s]."""
    left_s: float
    """Estimate of the time left [s]."""
    losses: dict[str, float]
    """Mean of each loss over the iteration's updates."""

    def __str__(self) -> str:
        mean_return = "-" if self.mean_return is None else f"{self.mean_return:.2f}"
        length = "-" if self.mean_episode_length is None else f"{self.mean_episode_length:.1f}"
        width = len(str(self.total_iterations))
        return (
            f"iteration {self.iteration:>{width}}/{self.total_iterations} | return {mean_return:>9} | "
            f"length {length:>7} | {self.steps_per_second:>9,.0f} steps/s | "
            f"elapsed {_clock(self.elapsed_s)} | left {_clock(self.left_s)}"
        )


class TreadleLogger(Logger):
    """Logs what rsl_rl logs, under the same names, and hands each iteration's :class:`Progress` to ``on_iteration``."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        # rsl_rl would store the state of whatever repository its own installation lies in.
        self.git_status_repos = [treadle.__file__]
        self.on_iteration: Callable[[Progress], None] | None = None
        self._started = 0.0
        self._pending: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []

    def init_logging_writer(self) -> None:
        """Create the writer and store the state of the source tree."""
        with prints_to_log():
            super().init_logging_writer()
        self._started = time.monotonic()
        self._pending.clear()
        self.ep_extras.clear()

    def process_env_step(
        self,
        rewards: torch.Tensor,
        dones: torch.Tensor,
        extras: dict[str, Any],
        intrinsic_rewards: torch.Tensor | None = None,
    ) -> None:
        """Account for a step without reading from the device; :meth:`log` reads a whole rollout at once.

        Args:
            rewards: Shape (num_envs,).
            dones: Whether each episode ended, shape (num_envs,).
            extras: Extras of the environment's step.
            intrinsic_rewards: Not supported.
        """
        if self.writer is None:
            return
        if "log" in extras:
            self.ep_extras.append(extras["log"])
        self.cur_reward_sum += rewards
        self.cur_episode_length += 1
        done = dones > 0
        self._pending.append((done, self.cur_reward_sum.clone(), self.cur_episode_length.clone()))
        self.cur_reward_sum.masked_fill_(done, 0.0)
        self.cur_episode_length.masked_fill_(done, 0.0)

    def log(
        self,
        it: int,
        start_it: int,
        total_it: int,
        collect_time: float,
        learn_time: float,
        loss_dict: dict[str, float],
        **kwargs: Any,
    ) -> None:
        """Write an iteration's scalars and report its progress."""
        self._collect_episodes()
        with prints_to_log(), self._writer_may_fail():
            super().log(
                it=it,
                start_it=start_it,
                total_it=total_it,
                collect_time=collect_time,
                learn_time=learn_time,
                loss_dict=loss_dict,
                **kwargs,
            )
        if self.on_iteration is not None:
            elapsed = time.monotonic() - self._started
            done = it + 1 - start_it
            self.on_iteration(
                Progress(
                    iteration=it + 1,
                    total_iterations=total_it,
                    mean_return=statistics.mean(self.rewbuffer) if self.rewbuffer else None,
                    mean_episode_length=statistics.mean(self.lenbuffer) if self.lenbuffer else None,
                    steps_per_second=self.cfg["num_steps_per_env"] * self.num_envs / (collect_time + learn_time),
                    elapsed_s=elapsed,
                    left_s=elapsed / done * (total_it - it - 1),
                    losses=loss_dict,
                )
            )

    def stop_logging_writer(self) -> None:
        """Close the writer. rsl_rl leaves TensorBoard's open, so the last scalars of a killed process were lost."""
        with self._writer_may_fail():
            super().stop_logging_writer()
            if self.writer is not None and hasattr(self.writer, "close"):
                self.writer.close()

    @contextlib.contextmanager
    def _writer_may_fail(self) -> Iterator[None]:
        """Go on without scalars when they cannot be written; checkpoints may still be."""
        try:
            yield
        except OSError as error:
            _log.warning("no more scalars are logged, since %s cannot be written: %s", self.log_dir, error.strerror)
            self.writer = _NoWriter()

    def _collect_episodes(self) -> None:
        """Append the returns and lengths of the episodes that ended, in the order in which rsl_rl would."""
        if not self._pending:
            return
        done, returns, lengths = (torch.stack(column) for column in zip(*self._pending, strict=True))
        self._pending.clear()
        ended = torch.stack((returns[done], lengths[done])).tolist()
        self.rewbuffer.extend(ended[0])
        self.lenbuffer.extend(ended[1])


@contextlib.contextmanager
def writer_threads_fail_silently() -> Iterator[None]:
    """Show no traceback of TensorBoard's thread: its writer raises the same error where it is used next."""
    previous = threading.excepthook

    def hook(args: threading.ExceptHookArgs) -> None:
        if not (isinstance(args.exc_value, OSError) and type(args.thread).__module__.startswith("tensorboard.")):
            previous(args)

    threading.excepthook = hook
    try:
        yield
    finally:
        threading.excepthook = previous


class _NoWriter:
    """Takes the place of a writer that failed, since rsl_rl writes no checkpoints without one."""

    def add_scalar(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing."""


def _clock(seconds: float) -> str:
    return str(datetime.timedelta(seconds=round(seconds)))
