"""The table of the terms is what their docstrings say, and has all of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support.term_cases import library

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "terms.md"


def test_the_page_is_up_to_date() -> None:
    script = ROOT / "scripts" / "term_reference.py"
    run = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_each_term_has_a_row_with_a_description() -> None:
    rows = [line.split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    described = {row[0].strip("| `") for row in rows if len(row[-1].strip("| ")) > 10}
    assert sorted({path.rpartition(":")[2] for path in library()} - described) == []


def test_there_are_sections_of_what_runs_on_the_host_and_notes_on_what_no_task_uses() -> None:
    text = PAGE.read_text(encoding="utf-8")
    parts = {part.partition("\n")[0]: part for part in text.split("\n## ")[1:]}
    assert "| `modify_reward_weight` | `term_name, weight, num_steps` |" in parts["Curriculum"]
    assert "f(env, env_mask, old_value, **modify_params)" in parts["Curriculum"]
    assert "| `InitialStateRecorder` |" in parts["Recorders"]
    assert "No task of Treadle is made of them yet" not in parts["Terms of `treadle.tasks.cartpole`"]
