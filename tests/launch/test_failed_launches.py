"""A launch that is refused while its record is being changed leaves no record that is changed in part."""

from __future__ import annotations

import pytest
import warp as wp

from . import support
from .support import N, buffer, same_bits, zeros


@wp.kernel
def scale(v: wp.vec3, x: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    out[i] = out[i] + x[i] * v[0]


@pytest.mark.parametrize("contract", ["checked", "trusted", "debug"])
@pytest.mark.parametrize("first", ["more threads", "smaller arrays"])
def test_a_refused_argument(device, contract, first):
    cache = support.cache(device, contract)
    small, large = (N, zeros(device)), (4 * N, zeros(device, 4 * N))
    (n, x), (other_n, other_x) = (small, large) if first == "more threads" else (large, small)
    out, expected = zeros(device, 4 * N), zeros(device, 4 * N)
    names = ("v", "x")
    cache.launch(scale, n, [[1.0, 2.0, 3.0], x], [out], dynamic=names)
    with pytest.raises(ValueError, match="convert"):
        cache.launch(scale, other_n, [[1.0, 2.0], other_x], [out], dynamic=names)
    for record in cache.records:
        assert record.command.bounds.size <= record.args[1].size
    other_x.fill_(1.0)
    for _ in range(2):  # trusted would launch the record as it was left
        cache.launch(scale, other_n, [[1.0, 2.0, 3.0], other_x], [out], dynamic=names)
        wp.launch(scale, other_n, [[1.0, 2.0, 3.0], other_x, expected], device=device)
    assert same_bits(out, expected)


@pytest.mark.parametrize("contract", ["checked", "trusted", "debug"])
def test_a_refused_dim_of_a_bound_launch(device, contract):
    x, small, out, expected = buffer(device), buffer(device, 5.0, 2), zeros(device), zeros(device)
    bound = support.cache(device, contract).bind(support.add, N, [x, 2.0], [out])
    bound()
    with pytest.raises(ValueError):
        bound.set("x", small, dim=(1, 1, 1, 1, 1))
    assert bound.record is None
    assert bound.call.args[0] is x
    bound()
    bound.set("x", small, dim=2)
    bound()
    for args, dim in (([x, 2.0], N), ([x, 2.0], N), ([small, 2.0], 2)):
        wp.launch(support.add, dim, [*args, expected], device=device)
    assert same_bits(out, expected)
