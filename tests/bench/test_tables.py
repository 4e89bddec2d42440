"""Tables and the blocks of pages."""

from __future__ import annotations

import json

import pytest

from treadle.bench.tables import Table, replace_block, write_json

TABLE = Table("Title", ["kernel", "eager", "raw"], [["a", "10.5", "2"], ["longer-name", "9", "33.33"]])


def test_text_is_aligned():
    assert TABLE.text().splitlines() == [
        "Title",
        "kernel       eager    raw",
        "a             10.5      2",
        "longer-name      9  33.33",
    ]


def test_markdown():
    assert TABLE.markdown().splitlines()[2:5] == [
        "| kernel | eager | raw |",
        "| --- | ---: | ---: |",
        "| a | 10.5 | 2 |",
    ]


def test_a_block_is_replaced_and_nothing_else():
    page = "# Page\n\n<!-- begin x -->\nold\n<!-- end x -->\n\nafter\n"
    changed = replace_block(page, "x", "\nnew\n")
    assert changed == "# Page\n\n<!-- begin x -->\nnew\n<!-- end x -->\n\nafter\n"
    assert replace_block(changed, "x", "new") == changed


@pytest.mark.parametrize("page", ["", "<!-- begin x -->", "<!-- begin y -->\n<!-- end y -->"])
def test_a_page_without_the_block_is_refused(page):
    with pytest.raises(ValueError, match="no block between"):
        replace_block(page, "x", "new")


def test_json_has_a_line_per_entry(tmp_path):
    report = {"benchmark": "x", "notes": ["µs"], "groups": [{"a": 1}, {"a": 2}], "empty": []}
    path = tmp_path / "new" / "x.json"
    write_json(path, report)
    assert json.loads(path.read_text()) == report
    assert len(path.read_text().splitlines()) == 9
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(path, {"a": float("nan")})
