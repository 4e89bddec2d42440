"""A key stands for one function."""

from __future__ import annotations

from functools import partial

import pytest

from treadle.launch import LaunchError
from treadle.launch.identity import function_identity, function_name

from . import support
from .support import zeros


class Part:
    def step(self):
        pass

    def other(self):
        pass


def first():
    pass


def second():
    pass


def wrapped(fn):
    return lambda: fn()


def with_data(data):
    return lambda: data


def with_defaults(data, fn=first):
    return lambda data=data, *, fn=fn: fn()


def looped():
    def fn():
        return fn

    return fn


PART, PARTS = Part(), [Part(), Part()]
SAME = [
    (first, first),
    (with_data(1), with_data([2])),
    (with_defaults(1), with_defaults(2.0)),
    (wrapped(first), wrapped(first)),
    (PART.step, PART.step),
    (partial(first), partial(first)),
    (partial(PART.step, 1, x=2), partial(PART.step, 3, x=4)),
    (looped(), looped()),
    (print, print),
]
OTHER = [
    (first, second),
    (first, lambda: None),
    (wrapped(first), wrapped(second)),
    (with_defaults(1, first), with_defaults(1, second)),
    (PARTS[0].step, PARTS[1].step),
    (PART.step, PART.other),
    (partial(first), first),
    (partial(first), partial(second)),
    (partial(PARTS[0].step), partial(PARTS[1].step)),
    (partial(print, first), partial(print, second)),
    (wrapped(PARTS[0].step), wrapped(PARTS[1].step)),
    (print, repr),
]


@pytest.mark.parametrize(("one", "two"), SAME)
def test_one_function(one, two):
    assert function_identity(one) == function_identity(two)


@pytest.mark.parametrize(("one", "two"), OTHER)
def test_two_functions(one, two):
    assert function_identity(one) != function_identity(two)


def test_names():
    assert function_name(first) == function_name(partial(first)) == "first (test_graph_keys.py:24)"
    assert function_name(print) == "print"


@pytest.mark.parametrize("mode", ["eager", "replay", "auto"])
@pytest.mark.parametrize("calls", [1, 2, 3])
def test_another_function_is_refused(device, mode, calls):
    scope, out = support.scope(device, mode=mode), zeros(device)

    def one():
        scope.launches.launch(support.count, 1, [], [out])

    def ten():
        for i in range(10):
            scope.launches.launch(support.count, 1, [], [out], site=i)

    for _ in range(calls):
        scope.graphs.run("k", one)
    with pytest.raises(LaunchError, match=r"owner: key 'k' stands for .*one .* can't run .*ten .*forget\('k'\)"):
        scope.graphs.run("k", ten)
    assert out.numpy()[0] == calls
    scope.graphs.forget("k")
    scope.graphs.run("k", ten)
    assert out.numpy()[0] == calls + 10
    scope.invalidate("another function")
    scope.graphs.run("k", one)
    assert out.numpy()[0] == calls + 11
