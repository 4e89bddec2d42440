"""Every cached pointer of an owner can be listed, and follows the owner."""

from __future__ import annotations

import pytest
import torch
import warp as wp

from treadle.launch import LaunchError

from . import support
from .support import N, buffer, same_bits, zeros


class Owner:
    def __init__(self, device):
        self.device, self.scope = device, support.scope(device, "checked")
        self.part = self.scope.child("part")
        self.params = support.Params()
        self.reset()
        self.bound = self.part.launches.bind(support.add, N, [self.x, 2.0], [self.out], site="bound")

    def reset(self):
        """Make all buffers anew, as a hard reset does."""
        self.x, self.out = buffer(self.device), zeros(self.device)
        self.params.inner.values = buffer(self.device, 3.0)
        self.tensor = torch.ones(N, device=str(self.device))
        self.indices = wp.array([0, 1, 2, 3], dtype=int, device=self.device)
        self.view = wp.indexedarray(self.x, [self.indices])

    def stage(self):
        self.scope.launches.launch(support.add, N, [self.x, 1.0], [self.out])
        self.bound()

    def run(self):
        self.scope.graphs.run("stage", self.stage)
        launch = self.part.launches.launch
        launch(support.structured, N, [self.params], [self.out])
        launch(support.add, N, [self.tensor, 1.0], [self.out], site="tensor")
        launch(support.gather, 4, [self.view], [self.out])

    @property
    def addresses(self):
        arrays = (self.x, self.out, self.params.inner.values, self.indices)
        return {array.ptr for array in arrays} | {self.tensor.data_ptr()}


def test_pointers_are_listed(device):
    owner = Owner(device)
    assert owner.scope.pointers() == []
    for _ in range(3):
        owner.run()
    pointers = owner.scope.pointers()
    assert {pointer.address for pointer in pointers} == owner.addresses
    assert not [pointer for pointer in pointers if pointer.stale]
    names = {(p.owner, p.place, p.kernel, p.site, p.argument) for p in pointers}
    assert {
        ("owner", "record", "add", None, "x"),
        ("owner/part", "bound", "add", "bound", "out"),
        ("owner/part", "graph", "add", "bound", "x"),
        ("owner/part", "record", "structured", None, "params.inner.values"),
        ("owner/part", "record", "add", "tensor", "x"),
        ("owner/part", "record", "gather", None, "x.indices[0]"),
    } <= names


def test_stale_pointers_show(device):
    owner = Owner(device)
    for _ in range(3):
        owner.run()
    owner.tensor.data = torch.zeros(N, device=str(device))
    owner.x.requires_grad = True
    stale = {(p.place, p.argument) for p in owner.scope.pointers() if p.stale}
    assert ("record", "x") in stale  # the tensor's
    assert ("record", "x.grad") in stale and ("graph", "x.grad") not in stale
    owner.scope.rebind()
    for _ in range(3):
        owner.run()
    assert not [p for p in owner.scope.pointers() if p.stale]
    assert {owner.x.grad.ptr, owner.tensor.data_ptr()} <= {p.address for p in owner.scope.pointers()}


def test_rebind_follows_a_hard_reset(device):
    owner, expected = Owner(device), zeros(device)
    for _ in range(3):
        owner.run()
    old = owner.x, owner.out
    before = owner.addresses
    owner.reset()
    pointers = owner.scope.rebind([(old[0], owner.x), (old[1], owner.out)], reason="hard reset")
    assert owner.scope.invalidations == ["hard reset"]
    assert {p.address for p in pointers} == {owner.x.ptr, owner.out.ptr}
    assert {p.place for p in pointers} == {"bound"}
    for _ in range(4):
        owner.run()
        for s in (1.0, 2.0):
            wp.launch(support.add, N, [owner.x, s, expected], device=device)
        wp.launch(support.structured, N, [owner.params, expected], device=device)
        wp.launch(support.add, N, [owner.tensor, 1.0, expected], device=device)
        wp.launch(support.gather, 4, [owner.view, expected], device=device)
    assert same_bits(owner.out, expected)
    pointers = owner.scope.pointers()
    assert {p.address for p in pointers} == owner.addresses
    assert not [p for p in pointers if p.stale]
    kept = {array.ptr for array in old}  # the old buffers are alive here, so their addresses can't be used again
    assert not kept & {p.address for p in pointers} and kept <= before


def test_rebind_inside_a_capture_is_refused(device):
    owner = Owner(device)
    owner.run()
    with wp.ScopedCapture(device):
        with pytest.raises(LaunchError, match="while a graph is being captured"):
            owner.scope.rebind()
        wp.launch(support.count, 1, [owner.out], device=device)
