"""The Python examples of the documentation run as they are printed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    if re.search(r"^```python$", page.read_text(), flags=re.MULTILINE)
)


def test_there_are_pages_with_examples() -> None:
    assert {"README.md", "environments.md", "launch.md"} <= {page.name for page in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_run(page: Path, tmp_path: Path) -> None:
    """All examples of a page run as one program, without a warning."""
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    script = tmp_path / "example.py"
    script.write_text("\n\n".join(blocks))
    result = subprocess.run([sys.executable, "-W", "error", str(script)], capture_output=True, text=True, timeout=500)
    assert result.returncode == 0, result.stderr
