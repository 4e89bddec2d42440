"""A function of Warp that is defined again, as a notebook does."""

from __future__ import annotations

import gc
import linecache
import sys
import weakref
from types import ModuleType

import pytest
import warp as wp

from treadle.launch import recorder

from . import support
from .support import N, zeros

FUNCTION = """
import warp as wp
@wp.func
def shift(x: float):
    return x + {}
"""
KERNEL = """
@wp.kernel
def apply(y: wp.array[float]):
    y[wp.tid()] = shift(1.0)
"""


@pytest.fixture
def notebook(request):
    """Return a function that runs the source of a cell in one module."""
    module = ModuleType(
        f"notebook_{request.function.__name__}_{request.node.callspec.id.replace('-', '_').replace(':', '_')}"
    )
    sys.modules[module.__name__] = module
    files = []

    def run(source):
        files.append(f"<{module.__name__} {len(files)}>")
        linecache.cache[files[-1]] = (len(source), None, source.splitlines(True), files[-1])
        exec(compile(source, files[-1], "exec"), module.__dict__)
        return module

    yield run
    del sys.modules[module.__name__]
    for file in files:
        del linecache.cache[file]


@pytest.mark.parametrize("contract", ["checked", "trusted", "debug"])
def test_a_redefined_function_reaches_records_and_graphs(device, contract, notebook):
    notebook(FUNCTION.format("1.0"))
    kernel = notebook(KERNEL).apply
    scope, outs, expected = support.scope(device, contract), [zeros(device) for _ in range(3)], zeros(device)
    launch = scope.launches.launch
    bound = scope.launches.bind(kernel, N, [], [outs[1]])

    def run():
        launch(kernel, N, [], [outs[0]], site="record")
        bound()
        scope.graphs.run("graph", lambda: launch(kernel, N, [], [outs[2]], site="graph"))
        return [float(out.numpy()[0]) for out in outs]

    for _ in range(3):
        assert run() == [2.0] * 3
    notebook(FUNCTION.format("5.0"))
    for _ in range(3):
        assert run() == [6.0] * 3
    wp.launch(kernel, N, outputs=[expected], device=device)
    assert expected.numpy()[0] == 6.0


def test_kernels_that_are_defined_again_do_not_pile_up(device, notebook, monkeypatch):
    monkeypatch.setattr(recorder, "_MOST_NAMESAKES", 2)
    cache, out = support.cache(device), []
    for number in range(4):
        cell = notebook(
            f"import warp as wp\n@wp.kernel\ndef apply(y: wp.array[float]):\n    y[wp.tid()] = {number}.0\n"
        )
        y = zeros(device)
        cache.launch(cell.apply, N, [], [y])
        assert y.numpy()[0] == number
        out.append(weakref.ref(y))
        del y
    gc.collect()
    assert len(cache.records) == len(cache.stats.sites) == 2
    assert sum(array() is not None for array in out) == 2


def test_kernels_of_one_name_may_take_turns(device, notebook):
    make = notebook(
        "import warp as wp\n"
        "def make(number):\n"
        "    @wp.kernel\n"
        "    def apply(y: wp.array[float]):\n"
        "        y[wp.tid()] = y[wp.tid()] + float(number)\n"
        "    return apply\n"
    ).make
    cache, y, kernels = support.cache(device), zeros(device), [make(wp.constant(1 + number)) for number in range(3)]
    for _ in range(4):
        for kernel in kernels:
            cache.launch(kernel, N, [], [y])
    assert y.numpy()[0] == 24.0
    assert cache.stats.total("recorded") == 3
