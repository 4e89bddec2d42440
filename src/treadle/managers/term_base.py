"""Base class of the terms that have a state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from treadle.errors import ConfigError

if TYPE_CHECKING:
    import torch

    from treadle.managers.cfg import TermCfg

__all__ = ["ManagerTermBase"]


class ManagerTermBase:
    """A term that is a class: made once per term, called at each step, reset with a mask.

    Buffers are Warp arrays in attributes, which the Warp form takes as arguments of the same names, and whose torch
    views the torch form uses. Two terms of the same class have buffers of their own.

    Args:
        cfg: Configuration of the term. Its ``params`` are complete, resolved, and stay current.
        env: The environment.
    """

    consumes: ClassVar[tuple[str, ...]] = ()
    """Parameters that the constructor makes into attributes, so that the Warp form need not take them."""

    def __init__(self, cfg: TermCfg, env: Any):
        if problems := list(self.param_problems(cfg.params)):
            raise ConfigError.from_problems(problems)
        self.cfg = cfg
        self.env = env

    @classmethod
    def param_problems(cls, params: Mapping[str, Any]) -> Iterator[str]:
        """Yield one sentence for each parameter that is not allowed, before the term is made and before a change.

        Args:
            params: The parameters that are given; one that takes its default may be missing.
        """
        yield from ()

    def reset(self, env_mask: torch.Tensor) -> None:
        """Restart the state in the masked environments, after their new state was written.

        Args:
            env_mask: bool, shape (num_envs,).
        """

    def __call__(self, env: Any, *args: Any, **params: Any) -> Any:
        """Compute the term."""
        raise NotImplementedError
