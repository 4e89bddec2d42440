"""The states of everything that draws random numbers in a training run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import warp as wp

if TYPE_CHECKING:
    from treadle.envs import VectorEnv

__all__ = ["random_states", "restore_env_random_state", "restore_random_states"]


def random_states(env: VectorEnv, device: str) -> dict[str, torch.Tensor]:
    """Return copies on the CPU: ``"cpu"`` and ``"cuda"`` of torch, ``"env"`` of the environment.

    Args:
        env: The environment. One from elsewhere that keeps no states in ``buffers.random_state`` gives none.
        device: Device of the learner.
    """
    states = {"cpu": torch.get_rng_state()}
    if torch.device(device).type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    if (view := _env_view(env)) is not None:
        states["env"] = view.to("cpu", copy=True)
    return states


def restore_random_states(states: dict[str, torch.Tensor], device: str) -> None:
    """Restore torch's states."""
    torch.set_rng_state(states["cpu"])
    if "cuda" in states and torch.device(device).type == "cuda":
        torch.cuda.set_rng_state(states["cuda"], device)


def restore_env_random_state(env: VectorEnv, states: dict[str, torch.Tensor], fresh_seed: int) -> str | None:
    """Restore an environment's state and reset the environment, so that it starts with draws that were not made before.

    Args:
        env: The environment.
        states: What :func:`random_states` returned.
        fresh_seed: Seeds the environment where its state cannot be restored.

    Returns:
        Why it was seeded instead, ``None`` if it was restored.
    """
    view, stored = _env_view(env), states.get("env")
    if view is not None and stored is not None and stored.shape == view.shape:
        view.copy_(stored)
        env.reset()
        return None
    env.reset(seed=fresh_seed)
    if view is None:
        return "the environment has no random state that can be stored"
    if stored is None:
        return "the checkpoint holds no random state of the environment"
    return f"the checkpoint holds the random states of {len(stored)} environments, and this run has {len(view)}"


def _env_view(env: VectorEnv) -> torch.Tensor | None:
    """Return the state of each environment as int32, shape (num_envs,): torch hardly knows unsigned numbers."""
    state = getattr(getattr(env, "buffers", None), "random_state", None)
    if not isinstance(state, wp.array):
        return None
    with torch.inference_mode(False):
        return wp.to_torch(state.view(wp.int32))
