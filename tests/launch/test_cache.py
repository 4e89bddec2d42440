"""``checked`` never replays a stale argument: each kind of argument, changed in each way, against ``wp.launch``."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import warp as wp

from treadle.launch import LaunchError, StaleArgumentError

from . import support
from .support import N, buffer, eager_launch, same_bits, zeros


def run_both(device, program, *, dtype=float, contract="checked"):
    """Run a program through ``wp.launch`` and through a cache; return the cache once both wrote the same bits."""
    expected, actual = zeros(device, dtype=dtype), zeros(device, dtype=dtype)
    program(eager_launch(device), expected)
    cache = support.cache(device, contract)
    program(cache.launch, actual)
    assert same_bits(expected, actual), (expected.numpy(), actual.numpy())
    return cache


@pytest.mark.parametrize("calls", [1, 2, 3, 5])
@pytest.mark.parametrize("contract", ["checked", "trusted", "debug"])
def test_the_first_call_executes_and_so_does_each_other(device, contract, calls):
    x = buffer(device)

    def program(launch, out):
        for _ in range(calls):
            launch(support.add, N, [x, 2.0], [out])

    cache = run_both(device, program, contract=contract)
    assert cache.stats.total("recorded") == 1
    assert cache.stats.total("replayed") == calls - 1
    assert cache.stats.total("patched") == 0


def test_an_eager_cache_records_nothing(device):
    cache, out = support.cache(device, mode="eager"), zeros(device)
    for _ in range(3):
        cache.launch(support.count, 1, [], [out])
    assert out.numpy()[0] == 3.0
    assert cache.stats.total("eager") == 3
    assert not cache.records


def test_another_array_is_patched(device):
    x, y = buffer(device), buffer(device, 7.0)

    def program(launch, out):
        for value in (x, y, y, x):
            launch(support.add, N, [value, 2.0], [out])

    cache = run_both(device, program)
    assert (cache.stats.total("recorded"), cache.stats.total("patched")) == (1, 2)


def test_array_gets_a_gradient(device):
    x = buffer(device)
    cache, out = support.cache(device), zeros(device)
    cache.launch(support.add, N, [x, 1.0], [out])
    x.requires_grad = True
    cache.launch(support.add, N, [x, 1.0], [out])
    assert cache.stats.total("patched") == 1
    assert cache.records[0].command.params[1].grad == x.grad.ptr
    cache.launch(support.add, N, [x, 1.0], [out])
    assert cache.stats.total("patched") == 1


@pytest.mark.parametrize("how", ["data", "set_", "other"])
def test_torch_tensor_moves(device, how):
    def program(launch, out):
        x = torch.ones(N, device=str(device))
        launch(support.add, N, [x, 1.0], [out])
        other = torch.full((2 * N,), 3.0, device=str(device))
        if how == "data":
            x.data = other
        elif how == "set_":
            x.set_(other)
        else:
            x = other
        launch(support.add, N, [x, 1.0], [out])
        launch(support.add, N, [x, 1.0], [out])

    assert run_both(device, program).stats.total("patched") == 1


def test_another_tensor_with_the_same_storage_is_no_change(device):
    storage = torch.ones(N, device=str(device))

    def program(launch, out):
        for _ in range(3):
            launch(support.add, N, [storage[:], 1.0], [out])

    assert run_both(device, program).stats.total("patched") == 0


def test_numpy_array():
    device = wp.get_device("cpu")
    x, y = np.arange(N, dtype=np.float32), np.full(N, 3.0, dtype=np.float32)

    def program(launch, out):
        x[:] = np.arange(N)
        launch(support.add, N, [x, 1.0], [out])
        x[:] = 5.0
        launch(support.add, N, [x, 1.0], [out])
        launch(support.add, N, [y, 1.0], [out])
        launch(support.add, N, [y[::-1], 1.0], [out])

    assert run_both(device, program).stats.total("patched") == 2


SCALAR_PAIRS = [
    ("f32", 1.0, 2.0, True),
    ("f32", math.nan, math.nan, False),
    ("f32", 0.0, -0.0, True),
    ("f32", 1, True, False),
    ("f32", 1, 1.0, False),
    ("f32", 0.1, float(np.float32(0.1)), False),
    ("f32", np.float32(0.5), np.float32(0.5), False),
    ("f32", np.float32(0.5), 0.75, True),
    ("f32", wp.float32(0.5), wp.float32(0.75), True),
    ("f64", 0.1, float(np.float32(0.1)), True),
    ("f64", np.float64(0.1), 0.1, False),
    ("f16", 1.0, 1.5, True),
    ("f16", wp.float16(1.0), wp.float16(1.5), True),
    ("i32", 3, 4, True),
    ("i32", np.int32(3), 3, False),
    ("i32", 3, np.int64(-4), True),
    ("i64", 2**40, 2**40 + 1, True),
    ("u8", 255, 254, True),
    ("u8", np.uint8(7), np.uint8(9), True),
    ("flag", True, False, True),
    ("flag", np.bool_(False), True, True),
    ("flag", 1, True, False),
]


@pytest.mark.parametrize(("name", "first", "second", "changes"), SCALAR_PAIRS)
def test_scalars(device, name, first, second, changes):
    values = {"f32": 1.0, "f64": 1.0, "f16": 1.0, "i32": 1, "i64": 1, "u8": 1, "flag": True}

    def program(launch, out):
        for value in (first, second, second):
            launch(support.scalars, 1, [*(values | {name: value}).values()], [out])

    cache = run_both(device, program, dtype=wp.float64)
    assert cache.stats.total("recorded") == 1
    assert cache.stats.total("patched") == int(changes)


def test_a_warp_scalar_changed_in_place(device):
    def program(launch, out):
        s = wp.float32(1.0)
        launch(support.add, N, [buffer(device), s], [out])
        s.value = 2.0
        launch(support.add, N, [buffer(device), s], [out])

    run_both(device, program)


@pytest.mark.parametrize("bad", [1.0, "1", None, wp.float32(1.0)])
def test_what_warp_refuses_is_refused_by_a_replay_too(device, bad):
    cache, out = support.cache(device), zeros(device, dtype=wp.float64)
    good = [1.0, 1.0, 1.0, 1, 1, 1, True]
    cache.launch(support.scalars, 1, good, [out])
    with pytest.raises(RuntimeError, match="unable to pack"):
        cache.launch(support.scalars, 1, [*good[:3], bad, *good[4:]], [out])
    cache.launch(support.scalars, 1, good, [out])
    assert out.numpy()[3] == 2.0


@pytest.mark.parametrize("make", [list, tuple, np.array, torch.tensor, wp.vec3], ids=lambda make: make.__name__)
def test_vectors_of_all_kinds(device, make):
    def program(launch, out):
        v, m = make([1.0, 2.0, 3.0]), wp.mat22(1.0, 2.0, 3.0, 4.0)
        for _ in range(2):
            launch(support.vectors, 1, [v, m], [out])
        if make is not tuple:
            v[1] = 7.0
        m[0, 1] = -1.0
        launch(support.vectors, 1, [v, m], [out])
        launch(support.vectors, 1, [make([9.0, 8.0, 7.0]), wp.mat22(m)], [out])
        launch(support.vectors, 1, [make([9.0, 8.0, 7.0]), wp.mat22(m)], [out])

    cache = run_both(device, program)
    # Vectors of the declared type are read in place, so that only the other object is a patch.
    in_place = make in (tuple, wp.vec3)
    assert cache.stats.total("patched") == (1 if in_place else 2)


def test_rows_of_a_tuple_change(device):
    rows = ([1.0, 2.0], [3.0, 4.0])

    def program(launch, out):
        rows[0][0] = 1.0
        launch(support.vectors, 1, [wp.vec3(), rows], [out])
        rows[0][0] = 9.0
        launch(support.vectors, 1, [wp.vec3(), rows], [out])

    run_both(device, program)


def test_structs(device):
    def program(launch, out):
        params = support.Params()
        params.gain, params.inner.scale, params.inner.values = 1.0, 2.0, buffer(device)
        launch(support.structured, N, [params], [out])
        params.gain = 5.0
        params.offset = wp.vec3(0.0, 3.0, 0.0)
        params.inner.scale = 7.0
        launch(support.structured, N, [params], [out])
        params.inner.values = buffer(device, 20.0)
        launch(support.structured, N, [params], [out])
        other = support.Params()
        other.inner.values = buffer(device, 40.0)
        launch(support.structured, N, [other], [out])
        params.gain = -100.0
        launch(support.structured, N, [other], [out])

    assert run_both(device, program).stats.total("patched") == 1


def test_indexed_array_changes(device):
    def program(launch, out):
        x = buffer(device)
        first = wp.array([0, 2, 4, 6], dtype=int, device=device)
        second = wp.array([1, 3, 5, 7], dtype=int, device=device)
        view = wp.indexedarray(x, [first])
        launch(support.gather, 4, [view], [out])
        view.indices[0] = second
        launch(support.gather, 4, [view], [out])
        launch(support.gather, 4, [wp.indexedarray(buffer(device, 9.0), [first])], [out])
        second.assign([7, 6, 5, 4])
        launch(support.gather, 4, [view], [out])

    run_both(device, program)


def test_no_array_and_an_array(device):
    x = buffer(device)

    def program(launch, out):
        for value in (None, None, x, x, None):
            launch(support.optional, N, [value], [out])

    cache = run_both(device, program)
    assert cache.stats.total("recorded") == 3
    assert cache.stats.total("rerecorded") == 2


@pytest.mark.parametrize(
    "dims", [[8, 4, 8], [4, 0, 0, 8, 4], [(8,), 8, [8], np.int64(8)], [0, 8], [(2, 4), (8,), (1, 0), (4, 2)]], ids=str
)
def test_dims(device, dims):
    x = buffer(device)

    def program(launch, out):
        for dim in dims:
            launch(support.add, dim, [x, 1.0], [out])

    run_both(device, program)


def test_a_list_of_extents_changed_in_place(device):
    x = buffer(device)

    def program(launch, out):
        dim = [8]
        launch(support.add, dim, [x, 1.0], [out])
        dim[0] = 4
        launch(support.add, dim, [x, 1.0], [out])

    assert run_both(device, program).stats.total("patched") == 1


def test_spellings_of_one_dim_are_no_patch(device):
    cache, x, out = support.cache(device), buffer(device), zeros(device)
    for dim in (8, (8,), [8], np.array([8]), np.int32(8), iter([8])):
        cache.launch(support.add, dim, [x, 1.0], [out])
    assert cache.stats.total("patched") == 0


@pytest.mark.parametrize("dim", [-1, (0, -1), (1, 1, 1, 1, 1), (0, 1, 1, 1, 1)])
def test_a_bad_dim_is_refused_as_by_warp(device, dim):
    cache, x, out = support.cache(device), buffer(device), zeros(device)
    with pytest.raises(ValueError):
        cache.launch(support.add, dim, [x, 1.0], [out])
    cache.launch(support.add, 8, [x, 1.0], [out])
    with pytest.raises(ValueError):
        cache.launch(support.add, dim, [x, 1.0], [out])
    assert all(record.dim == 8 for record in cache.records)


def test_two_dimensional_arrays(device):
    def program(launch, out):
        for width in (2, 4, 1):
            x = wp.full((2, width), float(width), dtype=float, device=device)
            launch(support.add_grid, x.shape, [x], [out[: 2 * width].reshape((2, width))])

    run_both(device, program)


def test_block_dim_records_again(device):
    x = buffer(device)

    def program(launch, out):
        for block_dim in (None, 64, 64, 32):
            launch(support.add, N, [x, 1.0], [out], block_dim=block_dim)

    assert run_both(device, program).stats.total("recorded") == 3


def test_generic_kernels_follow_the_types(device):
    def program(launch, out):
        floats = buffer(device)
        ints = wp.array(range(N), dtype=int, device=device)
        for x, s in ((floats, 3.0), (floats, 3), (ints, 3), (ints, 3.0), (ints, 3.0), (floats, 4.0)):
            launch(support.generic, N, [x, s], [out])

    cache = run_both(device, program)
    assert cache.stats.total("recorded") == 5
    assert cache.stats.total("patched") == 0


def test_argument_count_is_refused(device):
    cache, x, out = support.cache(device), buffer(device), zeros(device)
    cache.launch(support.add, N, [x, 1.0], [out])
    for args in ([x], [x, 1.0, out]):
        with pytest.raises(RuntimeError, match="arguments but kernel requires"):
            cache.launch(support.add, N, args, [out])
    cache.launch(support.add, N, [x, 1.0], [out])
    assert cache.stats.total("recorded") == 1


def test_a_wrong_dtype_is_refused_and_leaves_the_record_usable(device):
    cache, x, out = support.cache(device), buffer(device), zeros(device)
    expected = zeros(device)
    cache.launch(support.add, N, [x, 1.0], [out])
    with pytest.raises(RuntimeError, match="dtype"):
        cache.launch(support.add, N, [zeros(device, dtype=int), 1.0], [out])
    cache.launch(support.add, N, [x, 1.0], [out])
    for _ in range(2):
        wp.launch(support.add, N, [x, 1.0, expected], device=device)
    assert same_bits(out, expected)


def test_an_object_that_warp_converts_is_converted_at_each_call():
    class Convertible:
        def __init__(self):
            self.values = np.zeros(N, dtype=np.float32)

        def __array__(self):
            return self.values

    def program(launch, out):
        x = Convertible()
        launch(support.add, N, [x, 1.0], [out])
        x.values = np.ones(N, dtype=np.float32)
        launch(support.add, N, [x, 1.0], [out])

    run_both(wp.get_device("cpu"), program)


def test_sites_are_separate(device):
    cache, out = support.cache(device), zeros(device)
    x, y = buffer(device), buffer(device, 5.0)
    for _ in range(10):
        cache.launch(support.add, N, [x, 1.0], [out], site="x")
        cache.launch(support.add, N, [y, 1.0], [out], site="y")
    assert (cache.stats.total("recorded"), cache.stats.total("patched")) == (2, 0)
    assert not cache.stats.unstable_sites()


def test_trusted_compares_only_the_dim(device):
    cache, x, y, out = support.cache(device, "trusted"), buffer(device), buffer(device, 9.0), zeros(device)
    cache.launch(support.add, N, [x, 1.0], [out])
    cache.launch(support.add, N, [y, 1.0], [out])
    expected = zeros(device)
    for _ in range(2):
        wp.launch(support.add, N, [x, 1.0, expected], device=device)
    assert same_bits(out, expected)
    cache.launch(support.add, 4, [y, 1.0], [out])
    wp.launch(support.add, 4, [y, 1.0, expected], device=device)
    assert same_bits(out, expected)


def test_debug_names_everything(device):
    cache, x, out = support.cache(device, "debug"), buffer(device), zeros(device)
    cache.launch(support.add, N, [x, 1.0], [out], site="here")
    cache.launch(support.add, N, [x, True], [out], site="here")  # the same bits
    other = buffer(device)
    with pytest.raises(StaleArgumentError) as raised:
        cache.launch(support.add, N, [other, 1.0], [out], site="here")
    error = raised.value
    assert (error.owner, error.kernel, error.site, error.argument) == ("owner", "add", "here", "x")
    message = str(error)
    for part in ("owner", "'add'", "'here'", "'x'", hex(x.ptr), hex(other.ptr), "site=", "invalidate()", "eager"):
        assert part in message
    with pytest.raises(StaleArgumentError, match=r"argument 's'.*recorded 1\.0, received 2\.0"):
        cache.launch(support.add, N, [x, 2.0], [out], site="here")
    with pytest.raises(StaleArgumentError, match="count"):
        cache.launch(support.add, N, [x, 2.0, x], [out], site="here")
    cache.launch(support.add, 0, [None, 2.0], [out], site="here")
    cache.launch(support.add, N, [x, 1.0], [out], site="here")


def test_debug_sees_inside_structs_and_gradients(device):
    cache, out = support.cache(device, "debug"), zeros(device)
    params = support.Params()
    params.inner.values = buffer(device)
    cache.launch(support.structured, N, [params], [out])
    params.inner.scale = 3.0
    with pytest.raises(StaleArgumentError, match=r"'params'.*scale: 3\.0"):
        cache.launch(support.structured, N, [params], [out])
    x = buffer(device)
    cache.launch(support.add, N, [x, 1.0], [out])
    x.requires_grad = True
    with pytest.raises(StaleArgumentError, match=r"received .*gradient at"):
        cache.launch(support.add, N, [x, 1.0], [out])


def test_a_new_kernel_of_the_same_name_is_a_new_entry(device):
    def make(factor):
        @wp.kernel(module="unique")
        def scale(out: wp.array[float]):
            i = wp.tid()
            out[i] = out[i] + wp.static(factor)

        return scale

    cache, out = support.cache(device), zeros(device)
    for factor in (1.0, 10.0):
        kernel = make(factor)
        cache.launch(kernel, N, [], [out])
        cache.launch(kernel, N, [], [out])
    assert out.numpy()[0] == 22.0


def test_tape_sees_the_launches(device):
    x = wp.array([1.0] * N, dtype=float, device=device, requires_grad=True)
    out = wp.zeros(N, dtype=float, device=device, requires_grad=True)
    cache = support.cache(device)
    bound = cache.bind(support.add, N, [x, 3.0], [out])
    for _ in range(2):
        cache.launch(support.add, N, [x, 3.0], [out])
        bound()
    replayed = cache.stats.total("replayed")
    with wp.Tape() as tape:
        cache.launch(support.add, N, [x, 3.0], [out])
        bound()
    assert len(tape.launches) == 2
    assert cache.stats.total("replayed") == replayed
    tape.backward(grads={out: wp.full(N, 1.0, dtype=float, device=device)})
    np.testing.assert_allclose(x.grad.numpy(), 3.0 + 0.5 * 3.0)
    cache.launch(support.add, N, [x, 3.0], [out])
    assert cache.stats.total("replayed") == replayed + 1


def test_a_cache_under_the_users_own_capture(device):
    cache, out = support.cache(device), zeros(device)
    bound = cache.bind(support.count, 1, [], [out])
    cache.launch(support.count, 1, [], [out])
    with wp.ScopedCapture(device) as capture:
        cache.launch(support.count, 1, [], [out])
        cache.launch(support.count, 1, [], [out], site="recorded inside")
        bound()
    assert out.numpy()[0] == 1.0
    for _ in range(2):
        wp.capture_launch(capture.graph)
    assert out.numpy()[0] == 7.0


def test_invalidate_records_again(device):
    cache, x, out = support.cache(device, "debug"), buffer(device), zeros(device)
    cache.launch(support.add, N, [x, 1.0], [out])
    cache.invalidate()
    assert not cache.records
    cache.launch(support.add, N, [buffer(device, 3.0), 1.0], [out])
    assert cache.stats.total("recorded") == 2


def test_no_such_device():
    with pytest.raises((LaunchError, ValueError, RuntimeError)):
        support.cache("nowhere")
