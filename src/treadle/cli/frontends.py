"""What each frontend of a task supports, found by looking at its configuration and at the Warp forms of its terms."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from treadle.errors import TreadleError

if TYPE_CHECKING:
    from treadle.registry import TaskSpec

__all__ = ["FrontendSupport", "frontend_support"]


@dataclass(frozen=True, kw_only=True)
class FrontendSupport:
    """What a frontend of a task supports."""

    environment: str
    """Path of the environment's class."""
    num_terms: int | None = None
    """Number of terms, ``None`` for a task that is not made of terms."""
    missing: dict[str, str] = field(default_factory=dict)
    """A sentence for each term without a form for this frontend, by its path in the configuration."""
    error: str | None = None
    """Why the task can't be looked at."""

    def __str__(self) -> str:
        """Return a few words."""
        if self.error is not None:
            return f"unusable: {self.error}"
        if self.num_terms is None:
            return "yes"
        if self.missing:
            return f"{self.num_terms - len(self.missing)} of {self.num_terms} terms"
        return f"all {self.num_terms} terms"


def frontend_support(spec: TaskSpec) -> dict[str, FrontendSupport]:
    """Return what a task supports, by frontend."""
    found = {}
    for frontend, path in sorted(spec.frontends.items()):
        try:
            spec.load_env_class(frontend)
            found[frontend] = _look_at(spec.load_env_cfg(), frontend, path)
        except (TreadleError, ImportError) as error:
            found[frontend] = FrontendSupport(environment=path, error=" ".join(str(error).split()))
    return found


def _look_at(cfg: Any, frontend: str, path: str) -> FrontendSupport:
    from treadle.envs import ManagerBasedRLEnvCfg
    from treadle.managers import missing_twins
    from treadle.managers.frontend import all_terms

    if not isinstance(cfg, ManagerBasedRLEnvCfg):
        return FrontendSupport(environment=path)
    terms = dict(all_terms(cfg))
    missing = missing_twins(cfg) if frontend == "warp" else _without_torch_form(terms)
    return FrontendSupport(environment=path, num_terms=len(terms), missing=missing)


def _without_torch_form(terms: dict[str, Any]) -> dict[str, str]:
    import warp as wp

    from treadle.managers import WarpTwin

    return {
        path: f"{path}: it is a Warp function, without a torch form"
        for path, term in terms.items()
        if isinstance(getattr(term, "func", None), wp.Function | WarpTwin)
    }
