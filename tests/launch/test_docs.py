"""The example of the page runs as it stands."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "launch.md"


def test_example(tmp_path, capsys):
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    path = tmp_path / "example.py"  # Warp reads the source of kernels from their file
    path.write_text(example)
    names = runpy.run_path(str(path))
    before = names["position"].numpy().copy()
    assert "push + move: graph" in capsys.readouterr().out
    names["velocity"].zero_()
    names["position"].zero_()
    for _ in range(10):
        names["step_before"]()
    assert (names["position"].numpy() == before).all()
