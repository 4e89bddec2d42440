"""One stream for Warp and torch."""

from __future__ import annotations

import contextlib

import pytest
import torch
import warp as wp

from treadle.launch import torch_stream

from . import support
from .support import N, zeros

BIG = 1 << 20


def cuda():
    if not wp.is_cuda_available():
        pytest.skip("no CUDA device")
    return wp.get_device("cuda:0")


@contextlib.contextmanager
def torch_working_on(kind):
    """Make a legacy or a side stream torch's current one."""
    if not torch.cuda.is_available():
        yield
        return
    stream = torch.cuda.default_stream() if kind == "legacy" else torch.cuda.Stream()
    with torch.cuda.stream(stream):
        yield
    torch.cuda.synchronize()


on_each_stream = pytest.mark.parametrize("kind", ["legacy", pytest.param("side", marks=pytest.mark.gpu)])


@on_each_stream
@pytest.mark.parametrize("mode", ["replay", "auto"])
def test_write_replay_read(device, kind, mode):
    """Torch writes, Warp computes, torch reads, a thousand times: inside of the context and outside of it."""
    n = BIG if device.is_cuda else N
    with torch_working_on(kind):
        scope = support.scope(device, mode=mode)
        x, out = zeros(device, n), zeros(device, n)
        view, result = wp.to_torch(x), wp.to_torch(out)
        ramp = torch.arange(float(n), device=view.device)
        expected, wrong = torch.zeros(n, device=view.device), torch.zeros((), device=view.device)
        for i in range(1000):
            value = float(i % 7)
            if i % 2:
                view.fill_(value)
            with torch_stream(device):
                if i % 2 == 0:
                    view.fill_(value)
                scope.graphs.run("stage", lambda: scope.launches.launch(support.add, n, [x, 1.0], [out]))
                if i % 3 == 0:
                    result.mul_(0.5)
            expected = expected * 0.5 + value + ramp
            if i % 3 == 0:
                expected.mul_(0.5)
            wrong += (result != expected).sum()
        assert wrong.item() == 0
        assert scope.graphs.has_graph("stage") is (mode == "auto")


@on_each_stream
def test_memory_that_is_freed_while_work_is_pending(device, kind):
    """Arrays of Warp and tensors of torch that go away right after they are used."""
    n = BIG if device.is_cuda else N
    rows = 100
    with torch_working_on(kind):
        sums = torch.zeros(rows, device=str(device))
        for i in range(rows):
            source = torch.full((n,), float(i), device=str(device))
            with torch_stream(device):
                temporary = wp.empty(n, dtype=float, device=device)
                wp.copy(temporary, wp.from_torch(source))
                del source
                copy = wp.to_torch(temporary).clone()
                del temporary
                wp.full(n, -1.0, dtype=float, device=device)
                torch.full((n,), -2.0, device=str(device))
            sums[i] = copy.mean()
            del copy
        assert sums.tolist() == [float(i) for i in range(rows)]


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["legacy", "side"])
def test_contexts_nest_and_go_back(kind):
    device = cuda()
    with torch_working_on(kind):
        before = device.stream
        with torch_stream(device):
            inside = device.stream
            with torch_stream(device):
                assert device.stream is inside
                assert torch.cuda.current_stream().cuda_stream == (inside.cuda_stream or 0)
            with pytest.raises(KeyError), torch_stream(device):
                raise KeyError
            assert device.stream is inside
        assert device.stream is before


@pytest.mark.gpu
def test_warp_leaves_its_stream_for_a_legacy_stream_only():
    device = wp.get_device("cuda:0")
    own = device.stream
    with torch_working_on("legacy"), torch_stream(device):
        assert not device.stream.cuda_stream
    with torch_working_on("side"):
        side = torch.cuda.current_stream()
        with torch_stream(device):
            assert device.stream is own
            assert torch.cuda.current_stream().cuda_stream == own.cuda_stream
        assert torch.cuda.current_stream() == side


@pytest.mark.gpu
def test_stream_of_a_call_is_not_remembered():
    device = cuda()
    cache, out = support.cache(device), zeros(device)
    first, second = wp.Stream(device), wp.Stream(device)
    cache.launch(support.count, 1, [], [out], stream=first)
    wp.synchronize_device(device)
    with wp.ScopedStream(second), wp.ScopedCapture(stream=second) as capture:
        cache.launch(support.count, 1, [], [out])
    wp.capture_launch(capture.graph)
    assert out.numpy()[0] == 2.0
