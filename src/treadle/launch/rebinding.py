"""New arguments in the place of old ones in bound launches: all of them or none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from treadle.launch.dims import other_shape
from treadle.launch.errors import LaunchError
from treadle.launch.record import LaunchCall
from treadle.launch.signature import is_constant, is_scalar

if TYPE_CHECKING:
    from treadle.launch.bound import BoundLaunch

__all__ = ["plan_rebinding"]

_Plan = list[tuple["BoundLaunch", LaunchCall]]


def plan_rebinding(owner: str, bound: Sequence[BoundLaunch], replaced: Iterable[tuple[Any, Any]]) -> _Plan:
    """Return what each bound launch is to launch, without changing anything.

    Args:
        owner: Name of the owner, for messages.
        bound: The bound launches.
        replaced: Old and new arguments, by identity.

    Raises:
        LaunchError: A pair can't be followed; the message lists all that are wrong.
    """
    pairs = _read_pairs(owner, replaced)
    new = {id(old): value for old, value in pairs}
    plan = [(launch, _replaced(launch.call, new)) for launch in bound]
    problems = [*_pair_problems(pairs, bound), *_refused_by_warp(plan)]
    if problems:
        raise LaunchError(f"{owner}: nothing was rebound: " + "; ".join(dict.fromkeys(problems)))
    return plan


def _read_pairs(owner: str, replaced: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    usage = f"{owner}: rebind takes a list of pairs, [(old, new), ...]"
    if isinstance(replaced, str) or hasattr(replaced, "shape") or not hasattr(replaced, "__iter__"):
        raise LaunchError(f"{usage}, received a {type(replaced).__name__}")
    pairs = list(replaced)
    for number, pair in enumerate(pairs, 1):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise LaunchError(f"{usage}; item {number} is a {type(pair).__name__} and no pair")
    return [(old, new) for old, new in pairs]


def _pair_problems(pairs: list[tuple[Any, Any]], bound: Sequence[BoundLaunch]) -> Iterable[str]:
    seen: dict[int, Any] = {}
    for number, (old, new) in enumerate(pairs, 1):
        where = f"pair {number}: "
        if isinstance(old, str) or is_constant(old) or is_scalar(old):
            yield f"{where}{old!r} has no identity; change it by name, with BoundLaunch.set(name, value)"
            continue
        if seen.setdefault(id(old), new) is not new:
            yield f"{where}the same {type(old).__name__} is to be replaced by two different ones"
        holders = [(launch.call, index) for launch in bound for index, arg in enumerate(launch.call.args) if arg is old]
        if not holders:
            yield (
                f"{where}no bound launch has this {type(old).__name__}. What a function passes to launch(), the "
                f"function itself has to pass anew; invalidate() or rebind() makes its graphs follow"
            )
        for call, index in holders:
            problem = _problem(old, new)
            if problem is not None:
                yield f"{where}kernel {call.kernel.key!r}: argument {call.kernel.adj.args[index].label!r} {problem}"


def _problem(old: Any, new: Any) -> str | None:
    """Return what Warp would not refuse by itself."""
    if new is None:
        return "can't become None here; BoundLaunch.set does that, for a kernel that looks whether an array is there"
    other = other_shape("", old, new)
    if other is not None:
        field, was, now = other
        where = f" in {field[1:]}" if field else ""
        return (
            f"has shape {was}{where} and the new one has {now}: the number of threads would not fit; give both to the "
            f"bound launch, with BoundLaunch.set(name, value, dim=...), or bind again"
        )
    return None


def _replaced(call: LaunchCall, new: dict[int, Any]) -> LaunchCall:
    return call._replace(args=[new.get(id(value), value) for value in call.args])


def _refused_by_warp(plan: _Plan) -> Iterable[str]:
    """Yield why Warp can't record what is planned: types, devices, the number of arguments."""
    for launch, call in plan:
        if launch.record is None and all(new is old for new, old in zip(call.args, launch.call.args, strict=True)):
            continue
        try:
            call.issue(launch.device, record_cmd=True)
        except Exception as error:
            yield " ".join(str(error).split())
