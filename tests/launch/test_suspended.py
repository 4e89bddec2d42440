"""Functions whose call runs nothing: generators and coroutines."""

from __future__ import annotations

from functools import partial

import pytest

from treadle.launch import LaunchError, Stage

from . import support
from .support import zeros


def generator(scope=None, out=None):
    yield


async def coroutine(scope=None, out=None):
    pass


async def async_generator(scope=None, out=None):
    yield


class Callable:
    def __call__(self):
        yield


SUSPENDED = [generator, coroutine, async_generator, partial(generator, None), Callable()]


@pytest.mark.parametrize("fn", SUSPENDED)
def test_a_stage_that_would_not_run_is_refused(fn):
    with pytest.raises(LaunchError, match=r"stage 'walk': .*generator or a coroutine, .*plain function"):
        Stage("walk", fn)


@pytest.mark.parametrize("fn", SUSPENDED)
@pytest.mark.parametrize("capture", [True, False, None])
@pytest.mark.parametrize("mode", ["eager", "auto"])
def test_a_stage_that_returns_one_is_refused(device, fn, capture, mode):
    pipeline = support.scope(device, mode=mode).pipeline([Stage("walk", lambda: fn(), capture)])
    for _ in range(3):
        with pytest.raises(LaunchError, match="generator or a coroutine") as raised:
            pipeline.run()
        assert any("stage 'walk'" in note for note in raised.value.__notes__)


@pytest.mark.parametrize("mode", ["eager", "auto"])
@pytest.mark.parametrize("after", [0, 1])
def test_a_graph_of_one_is_refused(device, mode, after):
    scope, out, calls = support.scope(device, mode=mode), zeros(device), []

    def function():
        calls.append(1)
        if len(calls) > after:
            return generator()
        return scope.launches.launch(support.count, 1, [], [out])

    for _ in range(after):
        scope.graphs.run("k", function)
    for fn in (function, function):
        with pytest.raises(LaunchError, match=r"the function .*function .*generator or a coroutine"):
            scope.graphs.run("k", fn)
    assert out.numpy()[0] == after
