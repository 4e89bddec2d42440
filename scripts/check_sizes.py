"""Check that files and functions stay small: run from the repository root, or name another root.

A file of ``src/treadle`` or ``tests`` has at most 500 lines, a function of ``src/treadle`` at most 40 without its
docstring and arguments, and the median file of ``src/treadle`` at most 160 once there are more than 20 files.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 40
MAX_MEDIAN_LINES = 160
MEDIAN_NEEDS_FILES = 20


def count_lines(path: Path) -> int:
    """Return the number of lines of a file, blank lines and comments included."""
    return len(path.read_text(encoding="utf-8").splitlines())


def function_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the lines of a function: one for its head, however many arguments stand there, and those of its body.

    Decorators and the docstring do not count. A kernel names each array that it touches, a line each.
    """
    body = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    if not body:
        return 1
    assert function.end_lineno is not None
    return 1 + function.end_lineno - body[0].lineno + 1


def long_functions(path: Path) -> Iterator[tuple[int, str, int]]:
    """Yield line, name and length of each function of a file that is too long."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = function_lines(node)
            if lines > MAX_FUNCTION_LINES:
                yield node.lineno, node.name, lines


def find_problems(root: Path) -> tuple[list[str], str]:
    """Return what is too large under a repository root, and a line with the figures."""
    package = sorted((root / "src" / "treadle").rglob("*.py"))
    tests = sorted((root / "tests").rglob("*.py"))
    lengths = {path: count_lines(path) for path in package + tests}
    problems = [
        f"{path.relative_to(root)}: {lines} lines, at most {MAX_FILE_LINES} are allowed"
        for path, lines in lengths.items()
        if lines > MAX_FILE_LINES
    ]
    for path in package:
        problems += [
            f"{path.relative_to(root)}:{lineno}: {name}() has {lines} lines, at most {MAX_FUNCTION_LINES} are allowed"
            for lineno, name, lines in long_functions(path)
        ]
    middle = median(lengths[path] for path in package) if package else 0
    if len(package) > MEDIAN_NEEDS_FILES and middle > MAX_MEDIAN_LINES:
        problems.append(f"src/treadle: the median file has {middle:g} lines, at most {MAX_MEDIAN_LINES} are allowed")
    longest = max(lengths.values(), default=0)
    return problems, f"{len(lengths)} files, longest {longest} lines, median of src/treadle {middle:g} lines"


def main(root: Path) -> int:
    """Print the problems and the figures; return the exit status."""
    problems, figures = find_problems(root)
    for problem in problems:
        print(problem)
    print(f"sizes: {figures}, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
