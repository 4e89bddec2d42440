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
    inputs = count // 2
    same = same_arguments(inputs, count, arrays)

    def is_same(args):
        return same(args[:inputs], args[inputs:], known)

    assert is_same(args) and is_same(tuple(args))
    assert not is_same([*args, 1.0]) and not same([*args, 1.0], [], known)
    for index in range(count):
        other = wp.zeros(1, device="cpu") if index in arrays else float(str(args[index]))  # equal, and another object
        assert not is_same([*args[:index], other, *args[index + 1 :]])
    for index in arrays:
        args[index].requires_grad = True
        assert not is_same(args)
        args[index].ctype = known[count + arrays.index(index)]
    assert is_same(args)
    assert not never_same(args, [], known)


@pytest.mark.parametrize("strange", [None, 3, 2.5, wp.vec3()])
def test_what_is_no_list_is_not_the_same(strange):
    same = same_arguments(3, 4, ())
    assert same([1, 2, 3], [4], (1, 2, 3, 4))
    assert not same(strange, [4], (1, 2, 3, 4)) and not same([1, 2, 3], strange, (1, 2, 3, 4))


def test_an_iterator_is_not_used_up():
    inputs = iter([1, 2, 3])
    assert not same_arguments(3, 4, ())(inputs, [4], (1, 2, 3, 4))
    assert list(inputs) == [1, 2, 3]


def test_inputs_and_outputs_may_be_divided_another_way(device):
    cache, x, out = support.cache(device), buffer(device), zeros(device)
    cache.launch(support.add, 8, [x, 1.0], [out])
    (record,) = cache.records
    assert not record.same([x, 1.0, out], [], record.objects)
    cache.launch(support.add, 8, [x, 1.0, out])
    assert record.same([x, 1.0, out], [], record.objects)
    assert (record.stats.patched, record.stats.recorded, record.stats.replayed) == (0, 1, 1)


@pytest.mark.parametrize(("recorded", "received"), [(1.0, 1), (1.0, True), (0.0, -0.0), (2.0, float("nan"))])
def test_equal_is_not_the_same(device, recorded, received):
    cache, x, out = support.cache(device), buffer(device), zeros(device)
    cache.launch(support.add, 8, [x, recorded], [out])
    (record,) = cache.records
    assert record.same([x, recorded], [out], record.objects)
    assert not record.same([x, received], [out], record.objects)
