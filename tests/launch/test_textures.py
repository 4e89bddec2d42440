"""Textures are arguments as any other."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import warp as wp

from treadle.launch import StaleArgumentError

from . import support
from .support import N, same_bits, zeros


@wp.kernel
def sample(texture: wp.Texture2D, out: wp.array[float]):
    i = wp.tid()
    out[i] = out[i] * 0.5 + wp.texture_sample(texture, wp.vec2(0.5, 0.5), dtype=float)


def texture(device, value):
    return wp.Texture2D(np.full((4, 4), value, dtype=np.float32), device=device)


def test_one_texture_is_not_patched(device):
    cache, out, expected, one = support.cache(device), zeros(device), zeros(device), texture(device, 3.0)
    for _ in range(10):
        cache.launch(sample, N, [one], [out])
        wp.launch(sample, N, [one, expected], device=device)
    assert same_bits(out, expected)
    assert (cache.stats.total("replayed"), cache.stats.total("patched")) == (9, 0)
    other = texture(device, 5.0)
    cache.launch(sample, N, [other], [out])
    wp.launch(sample, N, [other, expected], device=device)
    assert same_bits(out, expected)
    assert cache.stats.total("patched") == 1


def test_debug_sees_another_texture(device):
    cache, out, one, other = support.cache(device, "debug"), zeros(device), texture(device, 3.0), texture(device, 5.0)
    for _ in range(3):
        cache.launch(sample, N, [one], [out])
    with pytest.raises(StaleArgumentError, match=r"argument 'texture' .*Texture2D with handle 0x.* received Texture2D"):
        cache.launch(sample, N, [other], [out])


def test_debug_sees_another_texture_of_a_graph(device):
    scope, out, owner = support.scope(device, "debug"), zeros(device), SimpleNamespace(texture=texture(device, 3.0))

    def stage():
        scope.launches.launch(sample, N, [owner.texture], [out])

    for _ in range(2):
        scope.graphs.run("s", stage)
    owner.texture = texture(device, 5.0)
    with pytest.raises(StaleArgumentError, match="argument 'texture'"):
        scope.graphs.run("s", stage)


def test_a_texture_is_an_input(device):
    scope, out, expected = support.scope(device), zeros(device), zeros(device)
    owner = SimpleNamespace(texture=texture(device, 3.0))

    def stage():
        scope.launches.launch(sample, N, [owner.texture], [out])

    for step in range(6):
        if step == 3:
            owner.texture = texture(device, 5.0)
        scope.graphs.run("s", stage, inputs=lambda: [owner.texture])
        wp.launch(sample, N, [owner.texture, expected], device=device)
    assert same_bits(out, expected)
    assert scope.stats.graph_total("captures") == 2
