"""What ends a run whose numbers are no longer finite, and which side they come from.

Nothing here runs in a healthy iteration: the losses, which the learner reads back anyway, show that something is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from treadle.errors import TreadleError

if TYPE_CHECKING:
    from rsl_rl.algorithms import PPO

__all__ = ["DivergedError", "NonFiniteError", "bad_losses", "bad_parameters", "diverged", "environment_fault"]


class NonFiniteError(TreadleError):
    """The environment returned an observation or a reward that is not a finite number."""


class DivergedError(TreadleError):
    """The learner's losses or parameters are not finite numbers."""


def bad_losses(losses: Mapping[str, float]) -> list[str]:
    """Return a few words for each loss that is not finite."""
    return [f"the {name} loss is {value}" for name, value in losses.items() if not math.isfinite(value)]


def bad_parameters(alg: PPO) -> list[str]:
    """Return the names of the tensors of both networks that are not finite. One read from the device if all are."""
    models = {"actor": alg._raw_actor, "critic": alg._raw_critic}
    return _not_finite(
        (f"{model}.{name}", tensor) for model, module in models.items() for name, tensor in module.state_dict().items()
    )


def environment_fault(alg: PPO, current: Mapping[str, torch.Tensor]) -> NonFiniteError | None:
    """Return an error if the environment, and not an action, brought the first bad number of the last rollout.

    Args:
        alg: The learner, whose storage still holds the rollout.
        current: The environment's current observations by group.
    """
    storage = alg.storage
    observed = {f"observation {name!r}": tensor for name, tensor in storage.observations.items()}
    first_action = _first_bad_step(storage.actions)
    first = {name: _first_bad_step(tensor) for name, tensor in observed.items()}
    # An action follows the observation of its step and precedes its reward.
    bad = [name for name, step in first.items() if step <= first_action and step < len(storage.actions)]
    if _first_bad_step(storage.rewards) < first_action:
        bad.append("the reward")
    if not bad and first_action == len(storage.actions):
        bad = [f"observation {name!r}" for name in _not_finite(current.items())]
    if not bad:
        return None
    return NonFiniteError(f"the environment returned values that are not finite in {' and in '.join(bad)}")


def diverged(what: Iterable[str], iteration: int, good: Path | None) -> DivergedError:
    """Return the error of a learner whose numbers are not finite.

    Args:
        what: What is not finite.
        iteration: Number of the iteration, counted from 1 as progress is.
        good: The last good checkpoint.
    """
    found = list(what)
    named = ", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
    where = f"the last good checkpoint is {good}" if good is not None else "there is no checkpoint before it"
    return DivergedError(
        f"the learner diverged in iteration {iteration}: {named}; {where}; a smaller agent.algorithm.learning_rate or "
        "agent.algorithm.max_grad_norm may help"
    )


def _not_finite(tensors: Iterable[tuple[str, torch.Tensor]]) -> list[str]:
    named = dict(tensors)
    finite = torch.stack([torch.isfinite(tensor).all() for tensor in named.values()])
    return [name for name, fine in zip(named, finite.tolist(), strict=True) if not fine]


def _first_bad_step(values: torch.Tensor) -> int:
    """Return the first step with a number that is not finite, else the number of steps."""
    bad = (~torch.isfinite(values)).flatten(1).any(dim=1).nonzero()
    return int(bad[0]) if len(bad) else len(values)
