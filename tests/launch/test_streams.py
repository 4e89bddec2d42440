"""One stream for Warp and torch."""

from __future__ import annotations

import torch
import warp as wp

from treadle.launch import torch_stream

from . import support
from .support import N, zeros


def test_writes_of_both_libraries_are_ordered(device):
    scope, out, x = support.scope(device), zeros(device), zeros(device)
    view, result = wp.to_torch(x), wp.to_torch(out)
    expected, ramp = torch.zeros(N, device=view.device), torch.arange(float(N), device=view.device)
    with torch_stream(device):
        for i in range(1000):
            view.fill_(float(i % 7))
            scope.graphs.run("stage", lambda: scope.launches.launch(support.add, N, [x, 1.0], [out]))
            expected = expected * 0.5 + float(i % 7) + ramp
            if i % 100 == 0:
                assert torch.equal(result, expected)
    assert torch.equal(result, expected)


def test_stream_of_a_call_is_not_remembered(device):
    cache, out = support.cache(device), zeros(device)
    if not device.is_cuda:
        for _ in range(2):
            cache.launch(support.count, 1, [], [out], stream=None)
        return
    first, second = wp.Stream(device), wp.Stream(device)
    cache.launch(support.count, 1, [], [out], stream=first)
    wp.synchronize_device(device)
    with wp.ScopedStream(second), wp.ScopedCapture(stream=second) as capture:
        cache.launch(support.count, 1, [], [out])
    wp.capture_launch(capture.graph)
    assert out.numpy()[0] == 2.0
