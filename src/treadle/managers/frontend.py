"""Making one configuration fit the Warp frontend."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from treadle.errors import ConfigError
from treadle.managers.cfg import ActionTermCfg, CommandTermCfg, ObservationGroupCfg, TermCfg
from treadle.managers.term import merged_params
from treadle.managers.twins import WarpTwin, arguments_of, find_twin, path_of
from treadle.managers.warp_call import twin_problems

__all__ = ["MissingTwinsError", "adapt_to_warp", "all_terms", "missing_twins"]

_SKIPPED = ("env", "env_mask", "env_ids")


class MissingTwinsError(ConfigError):
    """Terms of a configuration have no Warp form, or one that does not take a parameter that is set."""

    @classmethod
    def from_problems(cls, problems: Iterable[str]) -> MissingTwinsError:
        """Join all problems into one error that says what can be done about them."""
        advice = (
            "declare Warp forms with treadle.managers.warp_twin, use --frontend torch, or let these terms run in "
            "torch between graphs with --allow-torch-terms (in Python: cfg.allow_torch_terms = True)"
        )
        return cls(f"{'; '.join(problems)}; {advice}")


def adapt_to_warp(cfg: Any) -> None:
    """Give each term of a configuration its Warp form, in place. Doing it again changes nothing.

    Where ``cfg.allow_torch_terms`` is set, terms without one are marked to run in torch.

    Args:
        cfg: A :class:`treadle.envs.ManagerBasedRLEnvCfg`.

    Raises:
        MissingTwinsError: Terms have no Warp form; all are reported together, with their paths in the configuration.
    """
    missing = missing_twins(cfg)
    if missing and not cfg.allow_torch_terms:
        raise MissingTwinsError.from_problems(missing.values())
    for path, term in all_terms(cfg):
        if isinstance(term, TermCfg) and not path.startswith("curriculum"):
            term.twin = "torch" if path in missing else find_twin(term.func)


def missing_twins(cfg: Any) -> dict[str, str]:
    """Return one sentence for each term that the Warp frontend can't compute, by its path in the configuration."""
    problems = {}
    for path, term in all_terms(cfg):
        if path.startswith("curriculum") or (isinstance(term, TermCfg) and isinstance(term.twin, WarpTwin)):
            continue
        form = term.func if isinstance(term, TermCfg) else term.class_type
        if isinstance(term, TermCfg) and _is_once(term):
            continue
        if isinstance(term, TermCfg) and term.twin == "torch":
            problems[path] = f"{path}.twin is 'torch', so that it has no Warp form"
        elif (twin := find_twin(form)) is None:
            problems[path] = f"{path}: {path_of(form)} has no Warp form"
        elif isinstance(term, TermCfg) and (unused := _unused(term, twin, path)):
            problems[path] = "; ".join(unused)
    return problems


def _is_once(term: TermCfg) -> bool:
    """Return whether a term runs at the start only, where its torch form costs nothing."""
    return getattr(term, "mode", None) in ("prestartup", "startup")


def _unused(term: TermCfg, twin: WarpTwin, path: str) -> list[str]:
    wanted = {name for func in twin.functions().values() for name in arguments_of(func)}
    params = merged_params(term, path, _SKIPPED)
    return twin_problems(params, wanted, twin, path, term.func)


def all_terms(cfg: Any) -> Iterator[tuple[str, TermCfg | ActionTermCfg | CommandTermCfg]]:
    """Yield path and configuration of all terms that a frontend computes."""
    from treadle.managers.manager import iterate_terms

    for manager in ("actions", "commands", "events", "terminations", "rewards", "observations", "curriculum"):
        for name, term in iterate_terms(getattr(cfg, manager)):
            if isinstance(term, ObservationGroupCfg):
                yield from ((f"{manager}.{name}.terms.{inner}", t) for inner, t in iterate_terms(term.terms))
            else:
                yield f"{manager}.{name}", term
