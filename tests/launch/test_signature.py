"""What counts as the same argument."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import warp as wp

from treadle.launch import ArgumentSignature
from treadle.launch.signature import is_constant, leaves

from . import support
from .support import N, buffer

of = ArgumentSignature.of


@pytest.mark.parametrize(
    ("declared", "first", "second", "same"),
    [
        (wp.float32, 0.1, float(np.float32(0.1)), True),
        (wp.float64, 0.1, float(np.float32(0.1)), False),
        (wp.float32, math.nan, math.nan, True),
        (wp.float32, 0.0, -0.0, False),
        (wp.float32, 1, True, True),
        (wp.float32, 16777217, 16777216.0, True),
        (wp.int32, 1, 1.0, False),
        (wp.int32, np.int8(1), 1, True),
        (wp.uint8, 1, 257, True),
        (wp.bool, 1, True, True),
        (wp.float16, 1.0, 1.5, False),
        (wp.int32, wp.int32(4), 4, True),
        (wp.int32, wp.int64(4), 4, False),
        (None, 1, True, False),
        (None, 1.0, 1, False),
        (None, math.nan, math.nan, True),
        (wp.vec3, wp.vec3(1.0, 2.0, 3.0), wp.vec3(1.0, 2.0, 3.0), True),
        (wp.vec3, [1.0, 2.0, 3.0], [1.0, 2.0, 4.0], False),
        (wp.vec3, torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 2.0, 3.0]), True),
        (wp.vec3, torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 2.0, 3.0 + 1e-6]), False),
        (wp.vec3, np.array([1.0, 2.0]), np.array([1.0, 2.0]), True),
        (None, np.array([1.0, 2.0]), np.array([1.0, 2.0]), False),
    ],
)
def test_values(declared, first, second, same):
    assert (of(first, declared) == of(second, declared)) is same


def test_arrays(device):
    x = buffer(device)
    assert of(x) == of(wp.array(ptr=x.ptr, shape=x.shape, dtype=x.dtype, device=device))
    others = [buffer(device), x[:4], x.reshape((2, 4)), x[::2], x.view(wp.int32), None]
    assert len({of(x), *map(of, others)}) == 7
    before = of(x)
    x.requires_grad = True
    assert of(x) != before


def test_structs(device):
    params = support.Params()
    params.inner.values = buffer(device)
    signature = of(params)
    assert of(params) == signature
    params.inner.scale = 2.0
    assert of(params) != signature
    signature = of(params)
    params.inner.values = buffer(device)
    assert of(params) != signature
    assert "scale: 2.0" in str(of(params))


def test_indexed_arrays(device):
    x, indices = buffer(device), wp.array([0, 1], dtype=int, device=device)
    view = wp.indexedarray(x, [indices])
    assert of(view) == of(wp.indexedarray(x, [indices]))
    assert of(view) != of(wp.indexedarray(x, [wp.array([0, 1], dtype=int, device=device)]))
    assert "indices" in str(of(view))
    assert of(wp.indexedarray(dtype=float)).kind == "indexedarray"


def test_texts():
    assert str(of(None)) == "None"
    assert str(of(1.5, wp.float32)) == "1.5"
    assert "2.0" in str(of(wp.vec3(1.0, 2.0, 3.0)))
    assert "shape (2,)" in str(of(np.zeros(2)))
    assert str(of(object())) == "object object"


def test_constants():
    constants = [None, 1, 1.0, True, np.float32(1.0), (1, (2.0, None))]
    changeable = [[1], ([1],), wp.float32(1.0), wp.vec3(), np.zeros(2), torch.zeros(2)]
    assert all(map(is_constant, constants))
    assert not any(map(is_constant, changeable))


def test_leaves_hold_what_is_referred_to_now(device):
    params = support.Params()
    params.inner.values = x = buffer(device)
    assert any(leaf is x for leaf in leaves(params))
    tensor = torch.zeros(N)
    pointer = tensor.data_ptr()
    held = leaves(tensor)
    tensor.data = torch.zeros(N)
    assert any(leaf.data_ptr() == pointer for leaf in held)
