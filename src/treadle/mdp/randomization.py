"""What randomizations of the model share: distributions, operations, and the defaults from which they start."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

import torch
import warp as wp

from treadle._checks import is_finite
from treadle.assets.articulation_data import TorchViews
from treadle.managers.env_state import EnvState
from treadle.managers.term_base import ManagerTermBase
from treadle.physics.properties import ModelChange

__all__ = [
    "Distribution",
    "Operation",
    "Randomization",
    "draw_value",
    "draw_values",
    "numbers_or_none",
    "operated",
    "structs",
    "write_rows",
]

wp.set_module_options({"enable_backward": False})

Operation = Literal["abs", "scale", "add"]
Distribution = Literal["uniform", "log_uniform", "gaussian"]

_OPERATIONS = ("abs", "scale", "add")
_DISTRIBUTIONS = ("uniform", "log_uniform", "gaussian")
_TWO_PI = wp.constant(6.283185307179586)


class Randomization(ManagerTermBase):
    """Base of the events that change the model. Each starts from the defaults, so that none compounds.

    A subclass names what it changes, and gives each parameter that is a distribution a name that ends in
    ``distribution_params``.
    """

    changes: tuple[ModelChange, ...]
    """Kinds of changes; the environment applies them after the events."""
    consumes: ClassVar[tuple[str, ...]] = ("operation", "distribution")

    def __init__(self, cfg: Any, env: Any):
        super().__init__(cfg, env)
        self.defaults, self.properties = env.physics.default_properties, env.physics.properties
        self.default_views, self.views = TorchViews(self.defaults), TorchViews(self.properties)
        self.operation_code = _OPERATIONS.index(cfg.params.get("operation", "abs"))
        self.distribution_code = _DISTRIBUTIONS.index(cfg.params.get("distribution", "uniform"))

    @classmethod
    def param_problems(cls, params: Mapping[str, Any]) -> Iterator[str]:
        """Yield one sentence for each parameter that is not allowed; see :class:`ManagerTermBase`."""
        for name, allowed in (("operation", _OPERATIONS), ("distribution", _DISTRIBUTIONS)):
            if (value := params.get(name, allowed[0])) not in allowed:
                yield f"{name} is {value!r}; allowed: {', '.join(allowed)}"
        distribution = params.get("distribution", "uniform")
        for name, value in params.items():
            if name.endswith("distribution_params") and value is not None and distribution in _DISTRIBUTIONS:
                if not _is_allowed(value, distribution):
                    yield f"{name} is {value!r}; allowed: {_ALLOWED[distribution]}"

    def randomized(
        self, env: Any, env_mask: torch.Tensor, default: torch.Tensor, params: tuple[float, float]
    ) -> torch.Tensor:
        """Return the defaults with the operation applied to new draws, in the rows of the masked environments."""
        drawn = draw_values(env, env_mask, default.shape[1], params, self.distribution_code)
        return (drawn, default * drawn, default + drawn)[self.operation_code]


def structs(env: Any, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties and their defaults as arguments of a Warp form."""
    return {"properties": env.physics.properties, "defaults": env.physics.default_properties}


def numbers_or_none(value: tuple[float, float] | None) -> tuple[float, float]:
    """Return a distribution as numbers of a Warp form, NaN where there is none."""
    return (math.nan, math.nan) if value is None else value


def write_rows(view: torch.Tensor, ids: Any, values: torch.Tensor, env_mask: torch.Tensor) -> None:
    """Write some columns of the masked environments."""
    current = view[:, ids]
    mask = env_mask.reshape((-1,) + (1,) * (current.dim() - 1))
    view[:, ids] = values.where(mask, current)


def draw_values(
    env: Any, env_mask: torch.Tensor, columns: int, params: tuple[float, float], distribution: int
) -> torch.Tensor:
    """Return draws of a distribution, shape (num_envs, columns)."""
    low, high = torch.tensor(params, dtype=torch.float32).unbind()
    if distribution == 2:
        first, second = env.rand(2 * columns, 0.0, 1.0, mask=env_mask).view(-1, columns, 2).unbind(2)
        return low + high * ((-2.0 * (1.0 - first).log()).sqrt() * (_TWO_PI * second).cos())
    unit = env.rand(columns, 0.0, 1.0, mask=env_mask)
    if distribution == 1:
        return (low.log() + (high.log() - low.log()) * unit).exp()
    return low + (high - low) * unit


@wp.func
def draw_value(state: EnvState, env: int, params: wp.vec2, distribution: int) -> float:
    """Return one draw of a distribution; the random state is kept."""
    rng = state.random_state[env]
    unit = wp.randf(rng)
    value = params[0] + (params[1] - params[0]) * unit
    if distribution == 1:
        value = wp.exp(wp.log(params[0]) + (wp.log(params[1]) - wp.log(params[0])) * unit)
    elif distribution == 2:
        value = params[0] + params[1] * (wp.sqrt(-2.0 * wp.log(1.0 - unit)) * wp.cos(_TWO_PI * wp.randf(rng)))
    state.random_state[env] = rng
    return value


@wp.func
def operated(default: float, drawn: float, operation: int) -> float:
    """Return what an operation makes of a default and a draw."""
    value = drawn
    if operation == 1:
        value = default * drawn
    elif operation == 2:
        value = default + drawn
    return value


_ALLOWED = {
    "uniform": "two numbers, the lower first",
    "log_uniform": "two numbers above 0, the lower first",
    "gaussian": "mean and deviation",
}


def _is_allowed(value: Any, distribution: str) -> bool:
    """Return whether two numbers, or two vectors, are parameters of a distribution."""
    try:
        pairs = list(zip(*value, strict=True)) if isinstance(value[0], Sequence) else [tuple(value)]
    except (TypeError, ValueError, IndexError):
        return False
    return bool(pairs) and all(_is_allowed_pair(pair, distribution) for pair in pairs)


def _is_allowed_pair(pair: tuple[Any, ...], distribution: str) -> bool:
    if len(pair) != 2 or not all(isinstance(number, int | float) for number in pair) or not is_finite(*pair):
        return False
    if distribution == "gaussian":
        return pair[1] >= 0.0
    return pair[0] <= pair[1] and (distribution == "uniform" or pair[0] > 0.0)
