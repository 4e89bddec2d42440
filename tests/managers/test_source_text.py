"""Long lines of generated kernels break where a reader would break them, and mean the same."""

from __future__ import annotations

import ast

import pytest

from treadle.managers.source_text import wrapped

LONG = ", ".join(f"argument_{i}" for i in range(9))
LONGER = ", ".join(f"argument_{i}" for i in range(20))


def test_a_short_line_stays():
    assert wrapped("    x = f(env, y)") == ["    x = f(env, y)"]


def test_arguments_stay_on_one_line_where_they_fit():
    assert wrapped(f"    value = function({LONG})") == ["    value = function(", f"        {LONG}", "    )"]


def test_else_each_has_a_line():
    lines = wrapped(f"    function({LONGER}, wp.vec2f(p[0], p[1]), a[env, 0:2])")
    assert lines[:2] == ["    function(", "        argument_0,"]
    assert lines[-3:] == ["        wp.vec2f(p[0], p[1]),", "        a[env, 0:2],", "    )"]


def test_the_call_with_the_longest_arguments_breaks():
    assert wrapped(f"value = short(a) * weight[env] + function({LONG}) * other(b)")[0] == (
        "value = short(a) * weight[env] + function("
    )


def test_a_call_within_a_call_breaks_too():
    lines = wrapped(f"value = wp.where(inner({LONGER}), 1.0, 0.0)")
    assert lines[:3] == ["value = wp.where(", "    inner(", "        argument_0,"]
    assert lines[-4:] == ["    ),", "    1.0,", "    0.0,", ")"]


def test_a_sum_breaks_before_its_operators():
    text = "y = " + " + ".join(f"policy_params[{i}] * past[env, 5 * i + {i}]" for i in range(5))
    assert wrapped(text)[:3] == [
        "y = (",
        "    policy_params[0] * past[env, 5 * i + 0]",
        "    + policy_params[1] * past[env, 5 * i + 1]",
    ]


def test_a_comment_breaks_at_words():
    lines = wrapped("    # " + "word " * 40)
    assert len(lines) == 2
    assert all(line.startswith("    # word") and len(line) <= 120 for line in lines)


@pytest.mark.parametrize(
    "text",
    [
        f"value = wp.where(inner({LONGER}), f(a)[0], -0.0) + g({LONG})",
        "y = " + " + ".join(f"policy_params[{i}] * past[env, 5 * i + {i}] - (a + {i})" for i in range(5)),
        "holds = " + " or ".join(f"some_flag_of_number_{i}[env]" for i in range(8)),
        f"a[env] = b[env] or not function({LONG}, key=value, out=policy[env, 0:2])",
    ],
)
def test_the_meaning_stays(text):
    assert len(wrapped(text)) > 1
    assert ast.dump(ast.parse("\n".join(wrapped(text)))) == ast.dump(ast.parse(text))
