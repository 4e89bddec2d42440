"""The reference of the launch layer is what its docstrings say, and nothing public goes without one."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from functools import cached_property
from pathlib import Path

import pytest

from treadle import launch

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "api_reference.py"
PAGE = ROOT / "docs" / "launch_api.md"
CALLABLES = (classmethod, staticmethod, property, cached_property)


def check() -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True, check=False)


def public_members(kind: type) -> dict[str, object]:
    """Return the public methods and properties that a class has from the package."""
    found: dict[str, object] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("treadle."):
            found.update(vars(base))
    return {
        name: member
        for name, member in found.items()
        if (name == "__call__" or not name.startswith("_"))
        and (inspect.isfunction(member) or isinstance(member, CALLABLES))
    }


def test_the_page_is_up_to_date() -> None:
    run = check()
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("name", launch.__all__)
def test_each_public_name_is_on_the_page_with_its_members(name: str) -> None:
    heads = PAGE.read_text(encoding="utf-8").splitlines()
    assert heads.count(f"### `{name}`") == 1
    value = getattr(launch, name)
    if inspect.isclass(value):
        assert [member for member in public_members(value) if f"#### `{name}.{member}`" not in heads] == []


@pytest.mark.parametrize("name", launch.__all__)
def test_nothing_public_lacks_a_docstring(name: str) -> None:
    value = getattr(launch, name)
    members = public_members(value) if inspect.isclass(value) else {}
    documented = {name: value.__doc__} | {f"{name}.{member}": item.__doc__ for member, item in members.items()}
    # A dataclass without a docstring gets its signature for one.
    assert [key for key, text in documented.items() if not text or text.startswith(f"{name}(")] == []


def test_the_page_holds_together() -> None:
    page = PAGE.read_text(encoding="utf-8")
    heads = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    anchors = [re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads]
    assert len(set(anchors)) == len(anchors)
    assert set(re.findall(r"\]\(#([^)]+)\)", page)) <= set(anchors)
    assert all((PAGE.parent / target).is_file() for target in re.findall(r"\]\(([^#)]+)\)", page))
    assert not re.search(r"0x[0-9a-f]{6}|<[\w.]+ object|(?<![\w.`])/(?:home|root|tmp|usr|work)\b", page)
    assert not re.search(r":\w+:`|(?<!`)``(?!`)", page), "markup that was not turned into Markdown"
