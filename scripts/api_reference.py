"""Write ``docs/launch_api.md`` from the docstrings of ``treadle.launch``; with ``--check``, say if it is out of date.

All text comes from the source by way of ``ast``: signatures stand as they are written, whatever Python shows of a
default value, and the docstring under a field is found. Members keep the order of their class.
"""

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "launch_api.md"
sys.path.insert(0, str(ROOT / "src"))

import treadle.launch as launch  # noqa: E402

GROUPS = {
    "Launching": "LaunchCache BoundLaunch LaunchMode LaunchContract resolve_mode resolve_contract torch_stream "
    "ArgumentSignature CachedPointer",
    "Graphs": "GraphCache GraphTopology",
    "Pipelines": "Pipeline Stage Island PipelineTable StageRow",
    "Scopes": "LaunchScope",
    "Statistics": "LaunchStats SiteStats GraphStats",
    "Errors": "LaunchError AllocationError StaleArgumentError CaptureWarning",
    "Auditing": "audit AuditReport",
}
INTRO = """# Reference of `treadle.launch`

Every public name with its signature and docstring. [launch.md](launch.md) explains the launch layer with examples,
and [contracts.md](contracts.md) what it verifies and what lives how long.

This page is generated: edit the docstrings, then run `python scripts/api_reference.py`.
"""
SECTION = re.compile(r"^(Args|Attributes|Returns|Yields|Raises):$", re.MULTILINE)
REFERENCE = re.compile(r":\w+:`~?(?:treadle\.launch\.)?([^`]+)`")
WIDTH = 100
"""A longer signature has a line per argument."""


def groups() -> dict[str, list[str]]:
    """Return the public names by group. What belongs to no group yet stands in one of its own at the end."""
    known = {title: [name for name in names.split() if name in launch.__all__] for title, names in GROUPS.items()}
    rest = sorted(set(launch.__all__).difference(*known.values()))
    return known | ({"Other": rest} if rest else {})


@cache
def parsed(name: str) -> ast.AST:
    """Return the definition of a public name."""
    return ast.parse(inspect.getsource(getattr(launch, name))).body[0]


def members(name: str) -> dict[str, ast.FunctionDef]:
    """Return the public methods and properties of a class, and ``__call__``; those of its bases in the package too."""
    found: dict[str, ast.FunctionDef] = {}
    for kind in inspect.getmro(getattr(launch, name)):
        body = ast.parse(inspect.getsource(kind)).body[0].body if kind.__module__.startswith("treadle.") else []
        for node in body:
            public = isinstance(node, ast.FunctionDef) and (node.name == "__call__" or not node.name.startswith("_"))
            if public and not any("overload" in mark or mark.endswith("ter") for mark in decorators(node)):
                found.setdefault(node.name, node)
    return found


def decorators(node: ast.FunctionDef | ast.ClassDef) -> list[str]:
    """Return the decorators of a definition as text."""
    return [ast.unparse(mark) for mark in node.decorator_list]


@cache
def headings() -> frozenset[str]:
    """Return what a cross reference can point to."""
    classes = [name for name in launch.__all__ if isinstance(parsed(name), ast.ClassDef)]
    return frozenset(launch.__all__) | {f"{name}.{member}" for name in classes for member in members(name)}


def link(name: str, text: str) -> str:
    """Return a link to a heading of the page."""
    return f"[`{text}`](#{name.replace('.', '').lower()})"


def markdown(text: str, owner: str) -> str:
    """Turn the roles and literals of a docstring into links and code."""

    def resolve(match: re.Match) -> str:
        target = match[1]
        name = next((name for name in (f"{owner}.{target}", target) if name in headings()), None)
        return f"`{target}`" if name is None else link(name, target)

    return REFERENCE.sub(resolve, text).replace("``", "`")


def one_line(text: str) -> str:
    """Unwrap text."""
    return " ".join(text.split())


def docstring(node: ast.AST, owner: str) -> str:
    """Return the docstring of a definition as Markdown: its text, then a list or a paragraph for each section."""
    text, *sections = SECTION.split(ast.get_docstring(node) or "")
    parts = [text.strip()]
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        entries = re.split(r"^(?: {4})(?=\S)", body.strip("\n"), flags=re.MULTILINE)[1:]
        if title in ("Returns", "Yields"):
            parts.append(f"**{title}:** {one_line(body)}")
            continue
        name = r":class:`\1`:" if title == "Raises" else r"``\1``:"
        items = (re.sub(r"^([\w.*]+)(?: \([^)]*\))?:", name, one_line(entry)) for entry in entries)
        parts.append(f"**{title}:**\n\n" + "\n".join(f"- {item}" for item in items))
    return markdown("\n\n".join(parts), owner)


def fields(node: ast.ClassDef) -> Iterator[tuple[ast.AnnAssign | ast.Assign, str, str]]:
    """Yield what a class and its methods assign to one public attribute: statement, name, docstring under it."""
    for block in [node.body, *(item.body for item in node.body if isinstance(item, ast.FunctionDef))]:
        for statement, following in zip(block, [*block[1:], None], strict=True):
            target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
            of_self = isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self"
            name = target.attr if of_self else target.id if isinstance(target, ast.Name) else "_"
            if name.startswith("_") or of_self == (block is node.body):
                continue
            text = following.value if isinstance(following, ast.Expr) else None
            documented = isinstance(text, ast.Constant) and isinstance(text.value, str)
            yield statement, name, one_line(text.value) if documented else ""


def attributes(node: ast.ClassDef) -> str:
    """Return a list of the fields and attributes that have a docstring, or whose type is written down."""
    lines = {}
    for statement, name, text in fields(node):
        kind = getattr(statement, "annotation", None) or class_called(statement.value)
        if kind is not None:
            shown = f"{name}: {ast.unparse(kind)}"
        else:
            shown = f"{name} = {ast.unparse(statement.value)}" if isinstance(statement.value, ast.Constant) else name
        if text or kind is not None:
            lines.setdefault(name, f"- `{shown}`" + (f": {markdown(text, node.name)}" if text else ""))
    return "**Attributes:**\n\n" + "\n".join(lines.values()) if lines else ""


def class_called(value: ast.AST) -> ast.Name | None:
    """Return the class of which a value is made, if it is seen."""
    made = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id[0].isupper()
    return value.func if made else None


def constructor(node: ast.ClassDef) -> list[str] | None:
    """Return the arguments of a class; ``None`` where it has none of its own."""
    marks = "".join(decorators(node))
    if "dataclass" in marks:
        own = [(item, name) for item, name, _ in fields(node) if item in node.body and isinstance(item, ast.AnnAssign)]
        return ["*"] * ("kw_only=True" in marks) + [
            f"{name}: {ast.unparse(i.annotation)}{default(i)}" for i, name in own
        ]
    made = [item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == "__init__"]
    return arguments(made[0]) if made else None


def default(item: ast.AnnAssign) -> str:
    """Return the default of a field of a dataclass."""
    keywords = {word.arg: word.value for word in getattr(item.value, "keywords", ())}
    if "default_factory" in keywords:
        return f" = {ast.unparse(keywords['default_factory'])}()"
    value = keywords.get("default", item.value)
    return "" if value is None else f" = {ast.unparse(value)}"


def arguments(node: ast.FunctionDef) -> list[str]:
    """Return the arguments of a function or method, without ``self`` or ``cls``."""
    plain = ast.parse(f"def f({ast.unparse(node.args)}): ...").body[0].args
    every = [*plain.posonlyargs, *plain.args]
    values = [None] * (len(every) - len(plain.defaults)) + list(plain.defaults)
    pairs = [(ast.unparse(argument), value) for argument, value in zip(every, values, strict=True)]
    if plain.vararg or plain.kwonlyargs:
        pairs.append(("*" + (ast.unparse(plain.vararg) if plain.vararg else ""), None))
    pairs += [(ast.unparse(a), value) for a, value in zip(plain.kwonlyargs, plain.kw_defaults, strict=True)]
    pairs += [("**" + ast.unparse(plain.kwarg), None)] if plain.kwarg else []
    shown = [text if value is None else f"{text} = {ast.unparse(value)}" for text, value in pairs]
    return [text for text in shown if text not in ("self", "cls")]


def signature(head: str, values: list[str], returns: ast.AST | None) -> str:
    """Return a code block with a signature, on one line if it fits.

    A block of ``python`` would be run as an example.
    """
    end = ")" if returns is None else f") -> {ast.unparse(returns)}"
    line = f"{head}({', '.join(values)}{end}"
    if len(line) > WIDTH:
        line = f"{head}(\n" + "".join(f"    {value},\n" for value in values) + end
    return f"```py\n{line}\n```"


def function(node: ast.FunctionDef, owner: str = "") -> list[str]:
    """Return the blocks of a function, method or property."""
    name = f"{owner}.{node.name}" if owner else node.name
    marks = decorators(node)
    if "property" in marks or "cached_property" in marks:
        returns = f" `{ast.unparse(node.returns)}`" if node.returns else ""
        shown = f"Property:{returns}"
    else:
        kind = next((f"{mark} " for mark in marks if mark in ("classmethod", "staticmethod")), "")
        shown = signature(f"{kind}{node.name}", arguments(node), node.returns)
    return [f"{'####' if owner else '###'} `{name}`", shown, docstring(node, owner)]


def class_(name: str) -> list[str]:
    """Return the blocks of a class and its members."""
    node = parsed(name)
    values = constructor(node)
    bases = [ast.unparse(base).removeprefix("enum.") for base in node.bases]
    blocks = [f"### `{name}`"]
    if values is not None:
        blocks.append(signature(f"class {name}", values, None))
    if bases:
        blocks.append("Base: " + ", ".join(link(base, base) if base in headings() else f"`{base}`" for base in bases))
    blocks += [docstring(node, name), attributes(node)]
    return blocks + [block for member in members(name).values() for block in function(member, name)]


def render() -> str:
    """Return the page."""
    blocks = [INTRO.rstrip()]
    blocks.append("\n".join(f"- {title}: {', '.join(link(n, n) for n in names)}" for title, names in groups().items()))
    for title, names in groups().items():
        blocks.append(f"## {title}")
        for name in names:
            blocks += class_(name) if isinstance(parsed(name), ast.ClassDef) else function(parsed(name))
    return "\n\n".join(block for block in blocks if block) + "\n"


def main() -> int:
    """Write the page, or check it; return the exit status."""
    page = render()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page, encoding="utf-8")
        return 0
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == page:
        return 0
    print(f"{PAGE.relative_to(ROOT)} is out of date; run: python scripts/api_reference.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
