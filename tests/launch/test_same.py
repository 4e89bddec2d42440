"""The comparison by identity that a replay starts with."""

from __future__ import annotations

import pytest
import warp as wp

from treadle.launch.same import never_same, same_arguments

from . import support
from .support import buffer, zeros


@pytest.mark.parametrize("count", [0, 1, 2, 13, 60])
def test_each_argument_and_each_descriptor_counts(count):
    args = [wp.zeros(1, device="cpu") if index % 3 else float(index) + 0.5 for index in range(count)]
    arrays = tuple(index for index in range(count) if index % 3)
    known = (*args, *(args[index].__ctype__() for index in arrays))
    assert all(args[index].ctype is known[count + n] for n, index in enumerate(arrays))
    same = same_arguments(count, arrays)
    assert same(args, known) and same(tuple(args), known)
    assert not same([*args, 1.0], known)
    for index in range(count):
        other = wp.zeros(1, device="cpu") if index in arrays else float(str(args[index]))  # equal, and another object
        assert not same([*args[:index], other, *args[index + 1 :]], known)
    for index in arrays:
        args[index].requires_grad = True
        assert not same(args, known)
        args[index].ctype = known[count + arrays.index(index)]
    assert same(args, known)
    assert not never_same(args, known)


@pytest.mark.parametrize(("recorded", "received"), [(1.0, 1), (1.0, True), (0.0, -0.0), (2.0, float("nan"))])
def test_equal_is_not_the_same(device, recorded, received):
    cache, x, out = support.cache(device), buffer(device), zeros(device)
    cache.launch(support.add, 8, [x, recorded], [out])
    (record,) = cache.records
    assert record.same([x, recorded, out], record.objects)
    assert not record.same([x, received, out], record.objects)
