"""Curriculum terms: what changes as training goes on. They run on the host, before each step."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import warp as wp

from treadle.assets.articulation_data import torch_view
from treadle.errors import ConfigError, UnknownNameError
from treadle.managers.term_base import ManagerTermBase

if TYPE_CHECKING:
    from treadle.envs import ManagerBasedRLEnv

__all__ = [
    "NO_CHANGE",
    "difficulty_scheduler",
    "modify_env_param",
    "modify_reward_weight",
    "modify_term_cfg",
]


class _NoChange:
    def __repr__(self) -> str:
        return "NO_CHANGE"


NO_CHANGE = _NoChange()
"""What a ``modify_fn`` returns to leave the value as it is."""

ModifyFn = Callable[..., Any]
"""``modify_fn(env, env_mask, old_value, **modify_params)`` returns the new value, or :data:`NO_CHANGE`."""

_MANAGERS = {
    "rewards": "reward_manager",
    "terminations": "termination_manager",
    "events": "event_manager",
    "commands": "command_manager",
    "curriculum": "curriculum_manager",
}


class modify_reward_weight(ManagerTermBase):
    """Set the weight of a reward term after a number of environment steps, once. Returns the weight.

    Parameters: ``term_name``, ``weight``, and ``num_steps``.
    """

    def __init__(self, cfg: Any, env: Any):
        super().__init__(cfg, env)
        self._set: tuple[str, float] | None = None

    def __call__(
        self, env: ManagerBasedRLEnv, env_mask: torch.Tensor, term_name: str, weight: float, num_steps: int
    ) -> float:
        """Set the weight if it is time."""
        if self._set == (term_name, weight):
            return weight
        cfg = env.reward_manager.get_term_cfg(term_name)
        if env.common_step_counter <= num_steps:
            return cfg.weight
        cfg.weight = weight
        env.reward_manager.set_term_cfg(term_name, cfg)
        self._set = term_name, weight
        return weight


def modify_term_cfg(
    env: ManagerBasedRLEnv,
    env_mask: torch.Tensor,
    address: str,
    modify_fn: ModifyFn,
    modify_params: dict[str, Any] | None = None,
) -> Any:
    """Change a value in the configuration of a term. Numbers go to device memory; no graph is captured again for them.

    Args:
        env: The environment.
        env_mask: Environments that were reset in the last step, bool, shape (num_envs,).
        address: Path of the value, such as ``"events.push_robot.params.velocity_range"``, ``"rewards.alive.weight"``,
            ``"commands.base_velocity.ranges.lin_vel_x"`` or ``"observations.policy.joint_pos.noise.n_max"``.
        modify_fn: Returns the new value; see :data:`ModifyFn`.
        modify_params: Further arguments of ``modify_fn``.

    Returns:
        The value where it is a number, for the log.

    Raises:
        ConfigError: The path leads nowhere.
    """
    manager, term_name, path = _find_term(env, address)
    cfg = manager.get_term_cfg(term_name)
    holder: Any = cfg
    for part in path[:-1]:
        holder = _get(holder, part, address)
    old = _get(holder, path[-1], address)
    new = modify_fn(env, env_mask, old, **(modify_params or {}))
    if not (new is NO_CHANGE or _equal(old, new)):
        _set(holder, path[-1], new, address)
        if path == ["func"]:
            cfg.twin = None  # that of the function before
        manager.set_term_cfg(term_name, cfg)
        old = new
    return old if isinstance(old, int | float) else None


def modify_env_param(
    env: ManagerBasedRLEnv,
    env_mask: torch.Tensor,
    address: str,
    modify_fn: ModifyFn,
    modify_params: dict[str, Any] | None = None,
) -> Any:
    """Change an attribute of the environment or of what it holds, such as ``"scene.robot.data.joint_effort_limits"``.

    Arrays are written in place: a Warp array is handed to ``modify_fn`` as a torch view, and what is returned is copied
    into it. Anything else is assigned, which code that is compiled already does not see: for terms use
    :func:`modify_term_cfg`.

    Args:
        env: The environment.
        env_mask: Environments that were reset in the last step, bool, shape (num_envs,).
        address: Path of attributes, of keys, and of indices such as ``terms[0]``.
        modify_fn: Returns the new value; see :data:`ModifyFn`.
        modify_params: Further arguments of ``modify_fn``.

    Returns:
        The value where it is a number, for the log.

    Raises:
        ConfigError: The path leads nowhere, or into the configuration of the environment.
    """
    path = _split(address)
    if path[0] == "cfg" or path[0] in _MANAGERS.values() or path[0] == "observation_manager":
        raise ConfigError(f"address {address!r} leads into {path[0]}; allowed: modify_term_cfg for what terms use")
    holder: Any = env
    for part in path[:-1]:
        holder = _get(holder, part, address)
    old = _get(holder, path[-1], address)
    view = torch_view(old) if isinstance(old, wp.array) else old
    new = modify_fn(env, env_mask, view, **(modify_params or {}))
    if new is not NO_CHANGE and isinstance(view, torch.Tensor):
        view.copy_(torch.as_tensor(new, dtype=view.dtype, device=view.device))
    elif new is not NO_CHANGE and not _equal(old, new):
        _set(holder, path[-1], new, address)
        old = new
    return old if isinstance(old, int | float) else None


class difficulty_scheduler(ManagerTermBase):
    """Raise the difficulty of an environment by 1 when its episode succeeds, and lower it when it fails.

    An episode succeeds when the termination term ``success_term`` holds at its end. Other terms read
    ``difficulty`` (int32, shape (num_envs,)) or ``difficulty_frac``, the mean as a share of the range, which is
    returned.

    Parameters: ``success_term``, ``init_difficulty``, ``min_difficulty``, ``max_difficulty``, and ``promotion_only``,
    with which a failure changes nothing.
    """

    def __init__(self, cfg: Any, env: Any):
        super().__init__(cfg, env)
        params = cfg.params
        low, start, high = (params[f"{name}_difficulty"] for name in ("min", "init", "max"))
        if not low <= start <= high or low == high:
            raise ConfigError(f"the difficulty goes from {low} to {high} and starts at {start}; allowed: in between")
        names = env.termination_manager.active_terms
        if params["success_term"] not in names:
            raise UnknownNameError("term of terminations", params["success_term"], names)
        self.difficulty = wp.full(env.num_envs, start, dtype=int, device=env.device)
        self.difficulty_frac = (start - low) / (high - low)
        self._view = torch_view(self.difficulty)

    def __call__(
        self,
        env: ManagerBasedRLEnv,
        env_mask: torch.Tensor,
        success_term: str,
        init_difficulty: int = 0,
        min_difficulty: int = 0,
        max_difficulty: int = 10,
        promotion_only: bool = False,
    ) -> torch.Tensor:
        """Count the episodes that ended."""
        succeeded = env.termination_manager.get_term(success_term)
        failed = torch.full_like(self._view, 0 if promotion_only else -1)
        step = torch.where(succeeded, torch.ones_like(failed), failed) * env_mask
        self._view.copy_((self._view + step).clamp(min_difficulty, max_difficulty))
        mean = self._view.float().mean()
        self.difficulty_frac = (mean - min_difficulty) / (max_difficulty - min_difficulty)
        return self.difficulty_frac


def _find_term(env: Any, address: str) -> tuple[Any, str, list[str | int]]:
    """Return the manager or group, the name of the term, and the path within its configuration."""
    path = _split(address)
    if path[0] == "observations" and len(path) > 3:
        groups = env.observation_manager.groups
        if path[1] not in groups:
            raise UnknownNameError("observation group", str(path[1]), groups)
        rest = path[3:] if path[2] == "terms" else path[2:]
        if len(rest) > 1:
            return groups[path[1]], str(rest[0]), rest[1:]
    elif path[0] in _MANAGERS and len(path) > 2:
        return getattr(env, _MANAGERS[str(path[0])]), str(path[1]), path[2:]
    raise ConfigError(
        f"address {address!r} names no value of a term; allowed: <manager>.<term>.<field>, where the manager is one of "
        f"{', '.join(_MANAGERS)}, or observations.<group>.<term>.<field>"
    )


def _split(address: str) -> list[str | int]:
    parts: list[str | int] = []
    for part in address.split("."):
        name, *indices = re.split(r"[\[\]]+", part.rstrip("]"))
        parts += [name, *(int(index) for index in indices)]
    return parts


def _get(holder: Any, part: str | int, address: str) -> Any:
    try:
        if isinstance(holder, dict) or isinstance(part, int):
            return holder[part]
        return getattr(holder, part)
    except (AttributeError, KeyError, IndexError, TypeError):
        raise ConfigError(f"address {address!r}: there is no {part!r} in a {type(holder).__name__}") from None


def _set(holder: Any, part: str | int, value: Any, address: str) -> None:
    if isinstance(holder, tuple):
        raise ConfigError(f"address {address!r} leads into a tuple; allowed: the whole tuple")
    if isinstance(holder, dict) or isinstance(part, int):
        holder[part] = value
    else:
        setattr(holder, part, value)


def _equal(a: Any, b: Any) -> bool:
    return type(a) is type(b) and bool(a == b)
