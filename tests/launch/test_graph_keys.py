"""A key stands for one function."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import warp as wp

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


def with_object(part):
    return lambda: part.step()


def with_object_default(part):
    return lambda *, part=part: part.step()


PART, PARTS = Part(), [Part(), Part()]
ARRAYS = [wp.zeros(1, device="cpu"), wp.zeros(1, device="cpu")]
CURRENT = PARTS[0]


def of_a_global():
    return lambda: CURRENT.step()


def of_another_global(monkeypatch):
    one = function_identity(of_a_global())
    monkeypatch.setitem(globals(), "CURRENT", PARTS[1])
    return one, function_identity(of_a_global())


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
    (with_object(PART), with_object(PART)),
    (with_data(ARRAYS[0]), with_data(ARRAYS[1])),
    (with_data(np.zeros(1)), with_data(np.zeros(1))),
    (with_data({"k": PARTS[0]}), with_data({"k": PARTS[1]})),
    (with_data(support.Params()), with_data(support.Params())),
    (with_data(support.add), with_data(support.count)),
    (of_a_global(), of_a_global()),
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
    (with_object(PARTS[0]), with_object(PARTS[1])),
    (with_object_default(PARTS[0]), with_object_default(PARTS[1])),
    (partial(Part.step, PARTS[0]), partial(Part.step, PARTS[1])),
]


@pytest.mark.parametrize(("one", "two"), SAME)
def test_one_function(one, two):
    assert function_identity(one) == function_identity(two)


@pytest.mark.parametrize(("one", "two"), OTHER)
def test_two_functions(one, two):
    assert function_identity(one) != function_identity(two)


def test_an_object_under_a_global_name_counts(monkeypatch):
    one, other = of_another_global(monkeypatch)
    assert one != other


def test_an_object_that_is_gone_is_no_other_one():
    part = Part()
    pairs = [[function_identity(fn(part)) for _ in range(2)] for fn in (lambda part: part.step, with_object)]
    assert all(one == again for one, again in pairs)
    del part  # held weakly: its address may be given to another object
    assert all(one != again for one, again in pairs)


@pytest.mark.parametrize("mode", ["replay", "auto"])
def test_a_lambda_over_several_objects_is_refused(device, mode):
    scope, outs = support.scope(device, mode=mode), [zeros(device) for _ in range(3)]
    owners = [SimpleNamespace(step=partial(scope.launches.launch, support.count, 1, [], [out])) for out in outs]

    def run(owner):
        scope.graphs.run("step", lambda: owner.step())

    for owner in owners[1:]:
        run(owners[0])
        with pytest.raises(LaunchError, match=r"stands for .*lambda.* of another object as well"):
            run(owner)
    assert [out.numpy()[0] for out in outs] == [2.0, 0.0, 0.0]


def test_a_graph_of_an_object_that_is_gone_runs_for_no_other(device):
    scope, out = support.scope(device), zeros(device)

    class Owner:
        def step(self):
            scope.launches.launch(support.count, 1, [], [out])

    owner = Owner()
    for _ in range(3):
        scope.graphs.run("step", owner.step)
    address, kept = id(owner), []
    del owner
    for _ in range(1000):
        kept.append(Owner())
        if id(kept[-1]) == address:
            break
    with pytest.raises(LaunchError, match="of another object"):
        scope.graphs.run("step", kept[-1].step)
    assert out.numpy()[0] == 3.0


def test_names():
    assert function_name(first) == function_name(partial(first)) == "first (test_graph_keys.py:27)"
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
