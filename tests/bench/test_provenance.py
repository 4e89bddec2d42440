"""Where numbers come from."""

from __future__ import annotations

import json
import platform
import subprocess
from pathlib import Path

import pytest
import warp as wp

import treadle
from treadle.bench import provenance


def test_a_run_is_described():
    source = provenance.collect(["bench", "launch", "--out", "a b"], {"rounds": 2}, "cpu", 7)
    assert source["command"] == "treadle bench launch --out 'a b'"
    assert source["versions"]["treadle"] == treadle.__version__
    assert source["versions"]["warp"] == wp.__version__
    assert source["versions"]["python"] == platform.python_version()
    assert source["seed"] == 7
    assert source["config"] == {"rounds": 2}
    assert source["device"]["alias"] == "cpu"
    assert source["cuda"] is None
    assert source["host"]["cores"] >= source["host"]["usable_cores"] >= 1
    assert len(source["host"]["load_average"]) == 3
    assert source["utc"].endswith("+00:00")
    json.dumps(source, allow_nan=False)


def test_the_digest_is_that_of_the_values():
    digest = provenance.config_digest({"a": 1, "b": (2, 3)})
    assert len(digest) == 64
    assert digest == provenance.config_digest({"b": [2, 3], "a": 1})
    assert digest != provenance.config_digest({"a": 1, "b": (2, 4)})


@pytest.fixture
def checkout(tmp_path):
    """A repository with one committed file."""

    def git(*args: str) -> None:
        who = ["-c", "user.name=A", "-c", "user.email=a@example.com"]
        subprocess.run(["git", "-C", str(tmp_path), *who, *args], check=True, capture_output=True)

    git("init")
    (tmp_path / "__init__.py").write_text("")
    git("add", "__init__.py")
    git("commit", "-m", "Start")
    return tmp_path


def test_revision_and_dirtiness(checkout: Path):
    clean = provenance._git(checkout)
    assert clean is not None
    assert len(clean["revision"]) == 40
    assert clean["dirty"] is False
    (checkout / "__init__.py").write_text("changed")
    assert provenance._git(checkout) == {**clean, "dirty": True}


def test_a_package_that_merely_lies_in_a_checkout_has_no_revision(checkout: Path):
    folder = checkout / "site-packages"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    assert provenance._git(folder) is None
    assert provenance._git(Path("/")) is None
