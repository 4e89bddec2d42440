"""scripts/check_sizes.py finds what is too large, and only that."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "check_sizes.py"
DOCSTRING = '    """Say it.\n' + "\n    More.\n" * 30 + '    """\n'


def function(lines: int, docstring: str = "", indent: str = "") -> str:
    """Return the source of a function with so many lines, its docstring not counted."""
    source = "def f():\n" + docstring + "    x = 1\n" * (lines - 1)
    return "".join(indent + line for line in source.splitlines(keepends=True))


def check(root: Path, files: dict[str, str]) -> tuple[int, str]:
    """Write files under a root, run the script there, and return its exit status and output."""
    for name, source in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    run = subprocess.run([sys.executable, str(SCRIPT), str(root)], capture_output=True, text=True, check=False)
    assert run.stderr == ""
    return run.returncode, run.stdout


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("src/treadle/a.py", "x = 1\n" * 500),
        ("src/treadle/a.py", function(40)),
        ("src/treadle/a.py", function(40, DOCSTRING)),
        ("src/treadle/a.py", function(40).replace("f()", "f(\n" + "    a,\n" * 20 + ")")),
        ("src/treadle/a.py", "@decorate(\n    1,\n)\n" + function(40)),
        ("tests/a.py", function(41)),
    ],
)
def test_passes_at_the_limit(tmp_path: Path, name: str, source: str) -> None:
    status, output = check(tmp_path, {name: source})
    assert (status, output.count("\n")) == (0, 1)


@pytest.mark.parametrize(
    ("name", "source", "problem"),
    [
        ("src/treadle/a/b.py", "x = 1\n" * 501, "src/treadle/a/b.py: 501 lines"),
        ("tests/a/b.py", "x = 1\n" * 501, "tests/a/b.py: 501 lines"),
        ("src/treadle/a.py", function(41, DOCSTRING), "src/treadle/a.py:1: f() has 41 lines"),
        ("src/treadle/a.py", "async " + function(41), "src/treadle/a.py:1: f() has 41 lines"),
        ("src/treadle/a.py", "class A:\n" + function(41, indent="    "), "src/treadle/a.py:2: f() has 41 lines"),
    ],
)
def test_reports_what_is_too_large(tmp_path: Path, name: str, source: str, problem: str) -> None:
    status, output = check(tmp_path, {name: source})
    assert status == 1
    assert output.startswith(problem)
    assert "1 problems" in output


@pytest.mark.parametrize(("count", "lines", "status"), [(20, 161, 0), (21, 160, 0), (21, 161, 1)])
def test_median_counts_once_there_are_many_files(tmp_path: Path, count: int, lines: int, status: int) -> None:
    files = {f"src/treadle/m{index}.py": "x = 1\n" * lines for index in range(count)}
    got, output = check(tmp_path, files)
    assert got == status
    assert f"median of src/treadle {lines} lines" in output


def test_an_empty_tree_passes(tmp_path: Path) -> None:
    assert check(tmp_path, {})[0] == 0
