"""Calls that are nearly right: the message says what to write instead."""

from __future__ import annotations

import pytest
import torch
import warp as wp

from treadle.launch import CaptureWarning, LaunchError, Stage

from . import support
from .support import N, buffer, same_bits, zeros

CONTRACTS = pytest.mark.parametrize("contract", ["checked", "trusted", "debug"])


@CONTRACTS
def test_one_dynamic_name_may_come_without_a_tuple(device, contract):
    cache, x, out, expected = support.cache(device, contract), buffer(device), zeros(device), zeros(device)
    params, scope = support.Params(), support.scope(device, contract)
    params.inner.values = x
    bound = scope.launches.bind(support.structured, N, [params], [out], dynamic="params")
    for i in range(4):
        params.gain = float(i)
        cache.launch(support.add, N, [x, float(i)], [out], dynamic="s")
        wp.launch(support.add, N, [x, float(i), expected], device=device)
        bound()
        wp.launch(support.structured, N, [params, expected], device=device)
    assert same_bits(out, expected)
    with pytest.raises(LaunchError, match="no argument 'params'; allowed: x, s, out"):
        cache.launch(support.add, N, [x, 1.0], [out], dynamic="params", site="other")
    with pytest.raises(LaunchError, match="no argument 'gain'; allowed: params, out"):
        cache.bind(support.structured, N, [params], [out], dynamic="gain")


@CONTRACTS
def test_a_device_is_refused_at_each_call(device, contract):
    cache, x, out = support.cache(device, contract), buffer(device), zeros(device)
    for _ in range(2):
        with pytest.raises(LaunchError, match=rf"owner: kernel 'add': device='{device}' can't be given .*Leave it out"):
            cache.launch(support.add, N, [x, 1.0], [out], device=device)
        cache.launch(support.add, N, [x, 1.0], [out])
    with pytest.raises(LaunchError, match=f"its own device, {device}"):
        cache.bind(support.add, N, [x, 1.0], [out], device="cpu")


@CONTRACTS
@pytest.mark.parametrize("kind", ["array", "matrix", "number", "tensor", "struct", "text"])
def test_one_argument_in_the_place_of_a_list(device, contract, kind):
    single = {
        "array": zeros(device),
        "matrix": wp.zeros((2, 2), dtype=float, device=device),
        "number": 1.0,
        "tensor": torch.zeros(2),
        "struct": support.Params(),
        "text": "x",
    }[kind]
    cache, out = support.cache(device, contract), zeros(device)
    for launched in range(1 if contract == "trusted" else 2):  # which does not look at the arguments of a replay
        for lists, name in (((single, [out]), "inputs"), (([], single), "outputs")):
            text = rf"kernel 'count': {name} is a list of arguments, received a \w+: write {name}=\[\.\.\.\]"
            with pytest.raises(LaunchError, match=text):
                cache.launch(support.count, 1, *lists)
            with pytest.raises(LaunchError, match=text):
                cache.bind(support.count, 1, *lists)
        cache.launch(support.count, 1, iter([]), (out,))
        assert out.numpy()[0] == launched + 1.0


def test_what_is_no_stage(device):
    scope = support.scope(device)

    def push():
        pass

    with pytest.raises(LaunchError, match=r"item 2 is a function: write Stage\('push', \.\.\.\) around it"):
        scope.pipeline([Stage("move", push), push])
    with pytest.raises(LaunchError, match=r"item 1 is a str$"):
        scope.pipeline(["push"])
    with pytest.raises(LaunchError, match=r"a list of stages, .*received a Stage"):
        scope.pipeline(Stage("push", push))
    with pytest.raises(LaunchError, match="stage 'push': None can't be called"):
        Stage("push", None)


def test_inputs_that_change_at_each_step_belong_in_an_array(device):
    scope, out = support.scope(device, mode="graph"), zeros(device)
    with pytest.warns(CaptureWarning, match="never settle. Keep what changes in a persistent array .* copy each new"):
        for step in range(12):
            scope.graphs.run("count", lambda: scope.launches.launch(support.count, 1, [], [out]), inputs=[step])


def test_debug_refuses_more_threads_than_elements(device):
    x, out, grid = buffer(device), zeros(device), wp.zeros((2, 3), dtype=float, device=device)
    cache = support.cache(device, "debug")
    for launched in range(2):
        bound = cache.bind(support.add, N, [x, 1.0], [out])
        if launched:
            bound()
        with pytest.raises(LaunchError, match=r"'add': dim \(9,\) is more than argument 'x' of shape \(8,\) has"):
            bound.set_dim(N + 1)
        with pytest.raises(LaunchError, match=r"dim \(16,\) is more than argument 'out' of shape \(8,\)"):
            bound.set("x", buffer(device, n=2 * N), dim=2 * N)
        bound.set_dim(2)
        with pytest.raises(LaunchError, match="argument 'x'"):
            bound.set_dim(N + 1)
        bound.set("x", buffer(device, n=4), dim=4)
        with pytest.raises(LaunchError, match=r"argument 'x' of shape \(4,\)"):
            bound.set_dim(5)
        bound()
    cache.launch(support.add_grid, (2, 3), [grid], [grid])
    cache.launch(support.add_grid, (2, 2), [grid], [grid])
    with pytest.raises(LaunchError, match=r"dim \(3, 3\) is more than argument 'x' of shape \(2, 3\)"):
        cache.launch(support.add_grid, (3, 3), [grid], [grid])
    wide = wp.zeros((4, 4), dtype=float, device=device)
    cache.launch(support.add_grid, (4, 4), [wide], [wide], dynamic=("x", "out"))


def test_threads_without_an_element_of_their_own_may_be_any_number(device):
    out = zeros(device)
    bound = support.cache(device, "debug").bind(support.count, 2, [], [out])
    bound()
    bound.set_dim(100)
    bound()
    assert out.numpy()[0] == 102.0


@pytest.mark.parametrize("contract", ["checked", "trusted", "debug"])
def test_a_site_that_is_no_key(device, contract):
    cache, out = support.cache(device, contract), zeros(device)
    for launch in (cache.launch, cache.bind):
        with pytest.raises(LaunchError, match=r"the site \['left'\] can't be hashed: name it with a string"):
            launch(support.count, 1, [], [out], site=["left"])
