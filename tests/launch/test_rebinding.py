"""Bound launches follow an owner whose arguments were replaced: all of them, or none."""

from __future__ import annotations

import re

import pytest
import torch
import warp as wp

from treadle.launch import LaunchError

from . import support
from .support import N, buffer, same_bits, zeros


class Owner:
    """Two bound launches, of a scope and of a child, and one that a function gives its arguments."""

    def __init__(self, device, contract="checked", mode="auto"):
        self.device, self.scope = device, support.scope(device, contract, mode)
        self.x, self.out, self.passed = buffer(device), zeros(device), buffer(device, 2.0)
        self.first = self.scope.launches.bind(support.add, N, [self.x, 2.0], [self.out])
        self.second = self.scope.child("part").launches.bind(support.add, N, [self.x, 3.0], [self.out])

    def run(self):
        self.scope.graphs.run("stage", self.stage)

    def stage(self):
        self.first()
        self.second()
        self.scope.launches.launch(support.add, N, [self.passed, 1.0], [self.out])

    def expect(self, expected, x):
        for array, s in ((x, 2.0), (x, 3.0), (self.passed, 1.0)):
            wp.launch(support.add, N, [array, s, expected], device=self.device)


WRONG = {
    "dtype": (lambda o: (o.x, zeros(o.device, dtype=int)), "'add'.*'x'"),
    "rank": (lambda o: (o.x, zeros(o.device, n=(N, 1))), r"argument 'x' has shape \(8,\) and the new one has \(8, 1\)"),
    "size": (
        lambda o: (o.x, buffer(o.device, n=4)),
        r"pair 1: kernel 'add': argument 'x' has shape \(8,\) .*\(4,\).*BoundLaunch.set\(name, value, dim=\.\.\.\)",
    ),
    "None": (lambda o: (o.x, None), "pair 1: kernel 'add': argument 'x' can't become None here"),
    "number": (lambda o: (o.x, 1.0), "'add'.*'x'"),
    "of nobody": (lambda o: (buffer(o.device), o.x), "pair 1: no bound launch has this array"),
    "passed by a function": (lambda o: (o.passed, o.x), "the function itself has to pass anew"),
    "a name": (lambda o: ("x", o.x), r"pair 1: 'x' has no identity; .*BoundLaunch.set\(name, value\)"),
    "an old number": (lambda o: (2.0, 4.0), r"pair 1: 2\.0 has no identity"),
}


@pytest.mark.parametrize("mode", ["eager", "auto"])
@pytest.mark.parametrize("wrong", WRONG)
def test_a_pair_that_is_wrong_changes_nothing(device, wrong, mode):
    pair, text = WRONG[wrong]
    owner, expected = Owner(device, mode=mode), zeros(device)
    y = buffer(device, 5.0, N)
    for _ in range(3):
        owner.run()
        owner.expect(expected, owner.x)
    before = owner.scope.pointers()
    with pytest.raises(LaunchError, match=f"owner: nothing was rebound: .*{text}"):
        owner.scope.rebind([pair(owner), (owner.out, y)])
    assert owner.scope.pointers() == before
    assert list(owner.scope.invalidations) == []
    assert owner.scope.graphs.has_graph("stage") == (mode == "auto")
    owner.run()
    owner.expect(expected, owner.x)
    assert same_bits(owner.out, expected)


def test_all_that_is_wrong_is_told_at_once(device):
    owner = Owner(device)
    with pytest.raises(LaunchError) as raised:
        owner.scope.rebind([(owner.x, zeros(device, dtype=int)), (owner.out, None), ("x", 1), (owner.passed, owner.x)])
    for text in ("pair 2:", "pair 3:", "pair 4:", "int32"):
        assert text in str(raised.value)
    with pytest.raises(LaunchError, match="pair 2: the same array is to be replaced by two different ones"):
        owner.scope.rebind([(owner.x, buffer(device)), (owner.x, buffer(device))])


@pytest.mark.parametrize("form", ["a bare pair", "an array", "a text", "a number", "a mapping"])
def test_what_is_no_list_of_pairs(device, form):
    owner = Owner(device)
    y = buffer(device)
    replaced = {
        "a bare pair": (owner.x, y),
        "an array": y,
        "a text": "xy",
        "a number": 3,
        "a mapping": {owner.x: y},
    }[form]
    with pytest.raises(LaunchError, match=re.escape("owner: rebind takes a list of pairs, [(old, new), ...]")):
        owner.scope.rebind(replaced)


@pytest.mark.parametrize("contract", ["checked", "trusted", "debug"])
def test_bound_launches_and_their_graphs_follow(device, contract):
    owner, expected = Owner(device, contract), zeros(device)
    y = buffer(device, 5.0)
    for x in (owner.x, y):
        for _ in range(3):
            owner.run()
            owner.expect(expected, x)
        if x is not y:
            pointers = owner.scope.rebind((pair for pair in [(owner.x, y)]), reason="hard reset")
            assert {pointer.address for pointer in pointers} == {y.ptr, owner.out.ptr}
    assert same_bits(owner.out, expected)
    assert list(owner.scope.invalidations) == ["hard reset"]


def test_buffers_can_be_exchanged_and_tensors_replaced(device):
    scope, x, y, out, expected = (
        support.scope(device),
        buffer(device),
        buffer(device, 5.0),
        zeros(device),
        zeros(device),
    )
    t, u = torch.ones(N, device=str(device)), torch.full((N,), 2.0, device=str(device))
    bound = [scope.launches.bind(support.add, N, [value, 1.0], [out]) for value in (x, y, t)]
    for values in ((x, y, t), (y, x, u)):
        for launch, value in zip(bound, values, strict=True):
            launch()
            wp.launch(support.add, N, [value, 1.0, expected], device=device)
        scope.rebind([(x, y), (y, x), (t, u)] if values[2] is t else [])
    assert same_bits(out, expected)


def test_a_closed_scope_is_not_rebound(device):
    owner = Owner(device)
    owner.scope.close()
    with pytest.raises(LaunchError, match="owner is closed"):
        owner.scope.rebind([(owner.x, buffer(device))])


def test_a_struct_with_an_array_of_another_shape_is_refused(device):
    scope, old, new = support.scope(device), support.Params(), support.Params()
    old.inner.values, new.inner.values = buffer(device), buffer(device, n=2)
    bound = scope.launches.bind(support.structured, N, [old], [zeros(device)])
    with pytest.raises(LaunchError, match=r"'params' has shape \(8,\) in inner\.values and the new one has \(2,\)"):
        scope.rebind([(old, new)])
    assert bound.call.args[0] is old
