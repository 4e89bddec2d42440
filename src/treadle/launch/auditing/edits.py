"""What to write instead of a launch."""

from __future__ import annotations

import ast
import linecache
from dataclasses import replace
from functools import lru_cache

from treadle.launch.auditing.classify import Finding
from treadle.launch.auditing.events import Place
from treadle.launch.auditing.report import DONE, ArgumentChange, Verdict

__all__ = ["source_line", "suggest"]

_ORDER = list(Verdict)

_INSTEAD = {
    Verdict.STABLE: "replay it",
    Verdict.ALTERNATING: "replay it, with a site for each argument set",
    Verdict.VIEW: "make the view once and keep it, then replay it",
    Verdict.SCALAR: "replay it, and name what is meant to change; for a graph, keep the value in device memory",
    Verdict.TRANSIENT: "allocate the array once, outside of the step, and refill it in each step; then replay it",
    Verdict.POINTER: "copy into one array that stays, then replay it",
    Verdict.DIM: "launch the largest dim with a bound that the kernel checks, or bind the launch and use set_dim",
    Verdict.KERNEL: "make the kernel once, outside of the step, then replay it",
    Verdict.CONDITIONAL: "replay it; for a graph, let the kernel decide, from device memory, what is to be done",
    Verdict.CAPTURED: "capture once and keep the graph, as scope.graphs.run(...) does",
    Verdict.TAPE: "capture forward and backward together: launches on a tape are not replayed",
    Verdict.REPLAYED: "",
    Verdict.GRAPH: "",
}
_REPLAYED_INSTEAD = {
    Verdict.ALTERNATING: "give each argument set a site of its own",
    Verdict.SCALAR: "name what is meant to change; for a graph, keep the value in device memory",
    Verdict.CONDITIONAL: "give each argument set a site of its own",
}
"""For a launch that is replayed, but patched at each call. Else as above."""


def suggest(place: Place, via: Place | None, finding: Finding) -> tuple[str, tuple[str, ...]]:
    """Return what to do about a site, and lines of code.

    Returns:
        A sentence; the lines as they are, prefixed by their numbers, and then what could stand there.
    """
    if finding.verdict in DONE or Verdict.UNKNOWN in (finding.verdict, *finding.also):
        return "", ()
    if finding.verdict is Verdict.UNSTABLE:
        finding = replace(finding, verdict=max(finding.also, key=_ORDER.index, default=Verdict.ALTERNATING))
    if place.owner != "user":
        where = "" if via is None else f" around {via.file}:{via.line}"
        return f"belongs to {place.owner}: use a graph{where}", ()
    call = _find_call(place)
    code = [] if call is None else _numbered(place.file, call.lineno, call.end_lineno or call.lineno)
    refills: list[str] = []
    for change in finding.changes:
        if change.allocated_at is not None:
            file, _, line = change.allocated_at.rpartition(":")
            code += [line for line in _numbered(file, int(line), int(line)) if line not in code]
            refills += _refill(source_line(file, int(line)))
    if not code:
        code = _numbered(place.file, place.line, place.line)
    lines = (*dict.fromkeys(refills), *_replacement(call, finding, place.kind == "replay"))
    instead = _INSTEAD[finding.verdict]
    if place.kind == "replay":
        instead = _REPLAYED_INSTEAD.get(finding.verdict, instead.partition("then replay it")[0].rstrip(",; "))
    return instead, (*code, *(f"-> {line}" for line in lines))


def source_line(file: str, line: int) -> str:
    """Return a line of a file without its indentation."""
    return linecache.getline(file, line).strip()


def _replacement(call: ast.Call | None, finding: Finding, replayed: bool) -> list[str]:
    """Return the lines that could stand in the place of a launch."""
    verdict = finding.verdict
    options: dict[str, str] = {}
    if verdict is Verdict.SCALAR:
        changing = [change.name.partition(".")[0] for change in finding.changes if change.verdict is Verdict.SCALAR]
        options["dynamic"] = repr(tuple(dict.fromkeys(changing)))
    if Verdict.ALTERNATING in (verdict, *finding.also):
        options["site"] = _site(call, finding)
    if verdict in (Verdict.CAPTURED, Verdict.TAPE):
        return ['scope.graphs.run("step", step)']
    arguments = _arguments(call, options)
    if call is None or arguments is None:
        return [] if replayed else ["launches.launch(kernel, dim, inputs, outputs)"]
    name = ast.unparse(call.func) if replayed else f"launches.{_function_name(call)}"
    if verdict is Verdict.DIM and name.endswith("launch"):
        dim, cache = _keywords(call).get("dim", "dim"), name.rpartition(".")[0] or "launches"
        return [f"bound = {cache}.bind({arguments})  # once", f"bound.set_dim({dim})", "bound()"]
    return [f"{name}({arguments})"]


def _refill(line: str) -> list[str]:
    """Return what gives an array the values again that the line which allocates it in each step gives it."""
    try:
        statement = ast.parse(line).body[0]
    except (SyntaxError, IndexError):
        return []
    if not (isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call)):
        return []
    call, target = statement.value, ast.unparse(statement.targets[0])
    maker = ast.unparse(call.func).rpartition(".")[2]
    value = call.args[1] if len(call.args) > 1 else next((w.value for w in call.keywords if w.arg == "value"), None)
    refill = {"zeros": "zero_()", "zeros_like": "zero_()", "ones": "fill_(1)", "ones_like": "fill_(1)"}.get(maker)
    if maker in ("full", "full_like") and value is not None:
        refill = f"fill_({ast.unparse(value)})"
    return [f"{target}.{refill}  # in each step, where it was allocated"] if refill else []


def _function_name(call: ast.Call | None) -> str:
    return "launch_tiled" if call is not None and ast.unparse(call.func).endswith("launch_tiled") else "launch"


def _site(call: ast.Call | None, finding: Finding) -> str:
    """Return an expression that tells the argument sets apart."""
    sets = [change for change in finding.changes if change.verdict is Verdict.ALTERNATING] or finding.changes
    change = max(sets, key=lambda change: len(change.shown), default=None)
    expression = None if change is None else _expression(call, finding, change)
    if change is None or expression is None:
        return "..."
    return f"{expression}.ptr" if change.shown and change.shown[0].startswith("array") else expression


def _expression(call: ast.Call | None, finding: Finding, change: ArgumentChange) -> str | None:
    """Return the source of an argument."""
    given = _keywords(call)
    values: list[str] = []
    for name in ("inputs", "outputs"):
        if name in given:
            parsed = ast.parse(given[name], mode="eval").body
            if not isinstance(parsed, ast.List | ast.Tuple) or any(isinstance(e, ast.Starred) for e in parsed.elts):
                return None
            values += [ast.unparse(item) for item in parsed.elts]
    names = finding.names
    return values[names.index(change.name)] if change.name in names and len(values) == len(names) else None


def _arguments(call: ast.Call | None, options: dict[str, str]) -> str | None:
    """Return the arguments of ``wp.launch``, or of a launch cache, as those of ``LaunchCache.launch``.

    Args:
        call: The call.
        options: Further arguments by name, in the place of those that are given.
    """
    given = _keywords(call)
    if "kernel" not in given or "dim" not in given:
        return None
    parts = [given["kernel"], given["dim"]]
    if "inputs" in given or "outputs" in given:
        parts.append(given.get("inputs", "[]"))
    if "outputs" in given:
        parts.append(given["outputs"])
    given = given | options
    names = ("stream", "block_dim", "max_blocks", "dynamic", "site")
    return ", ".join(parts + [f"{name}={given[name]}" for name in names if name in given])


def _keywords(call: ast.Call | None) -> dict[str, str]:
    """Return the source of the arguments of a ``wp.launch`` call by name; nothing where there are starred ones."""
    if call is None or any(isinstance(value, ast.Starred) for value in call.args):
        return {}
    names = ("kernel", "dim", "inputs", "outputs", "adj_inputs", "adj_outputs", "device", "stream")
    given = {name: ast.unparse(value) for name, value in zip(names, call.args, strict=False)}
    return given | {word.arg: ast.unparse(word.value) for word in call.keywords if word.arg is not None}


def _find_call(place: Place) -> ast.Call | None:
    """Return the launch that stands at a place, if its source can be read."""
    calls = [call for call in _calls(place.file) if call.lineno <= place.line <= (call.end_lineno or call.lineno)]
    launches = [call for call in calls if "launch" in ast.unparse(call.func).rpartition(".")[2]]
    return min(launches, key=lambda call: (call.end_lineno or call.lineno) - call.lineno, default=None)


@lru_cache(maxsize=32)
def _calls(file: str) -> tuple[ast.Call, ...]:
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return ()
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _numbered(file: str, first: int, last: int) -> list[str]:
    lines = [linecache.getline(file, line).rstrip() for line in range(first, last + 1)]
    if not any(lines):
        return []
    indentation = min(len(line) - len(line.lstrip()) for line in lines if line)
    return [f"{number:5} | {line[indentation:]}" for number, line in enumerate(lines, first)]
