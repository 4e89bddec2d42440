"""Everything that ``wp.launch`` takes gives what ``wp.launch`` gives, or is refused with the reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import warp as wp

from treadle.launch import LaunchError, StaleArgumentError

from . import support
from .support import N, buffer, same_bits, zeros

DTYPES = [
    wp.int8,
    wp.uint8,
    wp.int16,
    wp.uint16,
    wp.int32,
    wp.uint32,
    wp.int64,
    wp.uint64,
    wp.float16,
    wp.float32,
    wp.float64,
    wp.vec3,
    wp.vec4h,
    wp.mat22,
    wp.mat33d,
    wp.quat,
    wp.transform,
    wp.spatial_vector,
]


@wp.kernel
def twice(x: wp.array[Any], out: wp.array[Any]):
    i = wp.tid()
    out[i] = out[i] + x[i] + x[i]


@wp.kernel
def rank2(x: wp.array2d[float], out: wp.array2d[float]):
    i, j = wp.tid()
    out[i, j] = 2.0 * out[i, j] + x[j, i]


@wp.kernel
def rank3(x: wp.array3d[float], out: wp.array3d[float]):
    i, j, k = wp.tid()
    out[i, j, k] = 2.0 * out[i, j, k] + x[k, j, i]


@wp.kernel
def rank4(x: wp.array4d[float], out: wp.array4d[float]):
    i, j, k, m = wp.tid()
    out[i, j, k, m] = 2.0 * out[i, j, k, m] + x[m, k, j, i]


@wp.kernel
def logic(x: wp.array[wp.bool], flip: wp.bool, out: wp.array[wp.bool]):
    i = wp.tid()
    out[i] = x[i] != flip


@wp.kernel
def move(t: wp.transform, q: wp.quat, m: wp.mat33, v: wp.vec4h, out: wp.array[wp.vec3]):
    p = wp.transform_point(t, wp.quat_rotate(q, m * wp.vec3(1.0, 2.0, 3.0)))
    out[0] = out[0] + p + wp.vec3(float(v[0]), float(v[3]), 0.0)


@wp.kernel
def lanes(out: wp.array[float]):
    i, j, lane = wp.tid()
    wp.atomic_add(out, i * 2 + j, float(lane + 1))


@wp.kernel
def square(x: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    out[i] = x[i] * x[i]


@wp.struct
class Leaf:
    values: wp.array[float]
    weight: wp.float64


@wp.struct
class Branch:
    left: Leaf
    right: Leaf
    turn: wp.mat22


@wp.struct
class Tree:
    branch: Branch
    extra: wp.array2d[float]


@wp.kernel
def climb(tree: Tree, out: wp.array[float]):
    i = wp.tid()
    left, right = tree.branch.left, tree.branch.right
    out[i] = 0.5 * out[i] + left.values[i] * float(left.weight) + right.values[i] * tree.branch.turn[0, 1]
    if tree.extra:
        out[i] = out[i] + tree.extra[i, 0]


def compare(device, program, make, contract="checked"):
    """Run a program with ``wp.launch`` and with a cache, on its own output; return the cache."""
    expected, actual = make(), make()
    program(support.eager_launch(device), expected)
    cache = support.cache(device, contract)
    program(cache.launch, actual)
    assert same_bits(expected, actual)
    return cache


@pytest.mark.parametrize("contract", ["checked", "debug"])
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.__name__)
def test_dtypes(device, dtype, contract):
    size = getattr(dtype, "_length_", 1)
    first, second = (
        wp.array(np.arange(N * size).reshape(-1, *dtype._shape_) % 50 + start, dtype=dtype, device=device)
        if size > 1
        else wp.array(np.arange(N) + start, dtype=dtype, device=device)
        for start in (1, 7)
    )

    def program(launch, out):
        for x in (first, first, second, second):
            launch(twice, N, [x], [out], site=None if contract == "checked" else id(x))

    compare(device, program, lambda: wp.zeros(N, dtype=dtype, device=device), contract)


@pytest.mark.parametrize(("kernel", "rank"), [(rank2, 2), (rank3, 3), (rank4, 4)])
def test_ranks_and_views(device, kernel, rank):
    shape = (2, 3, 4, 5)[:rank]
    size = int(np.prod(shape))
    values = np.arange(size, dtype=np.float32).reshape(shape[::-1])
    first = wp.array(values, dtype=float, device=device)
    second = wp.array(np.repeat(values, 2, axis=0) + 0.5, dtype=float, device=device)[::2]

    def program(launch, out):
        for x in (first, first, second, second):
            launch(kernel, shape, [x], [out])
        launch(kernel, (1,) * rank, [first], [out])
        launch(kernel, (1,) * (rank - 1) + (0,), [first], [out])

    compare(device, program, lambda: wp.zeros(shape, dtype=float, device=device))


def test_bool_arrays(device):
    x = wp.array([True, False] * 4, dtype=wp.bool, device=device)

    def program(launch, out):
        for flip in (False, True, np.bool_(True), wp.bool(False)):
            launch(logic, N, [x, flip], [out])
            launch(logic, N, [out, flip], [out], site=2)

    compare(device, program, lambda: zeros(device, dtype=wp.bool))


def test_composite_values(device):
    def program(launch, out):
        t, q = wp.transform((1.0, 2.0, 3.0), wp.quat_identity()), wp.quat(0.5, 0.5, 0.5, 0.5)
        m, v = wp.mat33(*range(9)), wp.vec4h(1.0, 2.0, 3.0, 4.0)
        for _ in range(2):
            launch(move, 1, [t, q, m, v], [out])
        t.p, q[0], m[1, 1], v[3] = wp.vec3(7.0, 8.0, 9.0), -0.5, 50.0, 60.0
        launch(move, 1, [t, q, m, v], [out])
        launch(move, 1, [wp.transform(), (0.0, 0.0, 0.0, 1.0), m, (0, 0, 0, 1)], [out])

    compare(device, program, lambda: wp.zeros(1, dtype=wp.vec3, device=device))


def make_tree(device):
    tree = Tree()
    tree.branch.left.values, tree.branch.left.weight = buffer(device), 2.0
    tree.branch.right.values, tree.branch.turn = buffer(device, 5.0), wp.mat22(0.0, 3.0, 0.0, 0.0)
    return tree


def test_structs_in_structs(device):
    def program(launch, out):
        tree = make_tree(device)
        for _ in range(2):
            launch(climb, N, [tree], [out])
        tree.branch.left.weight = 9.0
        launch(climb, N, [tree], [out])
        tree.branch.left.values = buffer(device, 70.0)
        launch(climb, N, [tree], [out])
        tree.branch.turn = wp.mat22(0.0, -1.0, 0.0, 0.0)
        launch(climb, N, [tree], [out])
        tree.extra = wp.full((N, 2), 4.0, dtype=float, device=device)
        launch(climb, N, [tree], [out])

    compare(device, program, lambda: zeros(device))


def test_debug_looks_into_structs_in_structs(device):
    cache, tree, out = support.cache(device, "debug"), make_tree(device), zeros(device)
    cache.launch(climb, N, [tree], [out])
    tree.branch.right.values = buffer(device)
    with pytest.raises(StaleArgumentError, match="argument 'tree'"):
        cache.launch(climb, N, [tree], [out])


def test_two_arrays_get_gradients_at_once(device):
    x, out, adj = buffer(device), zeros(device), zeros(device)
    cache = support.cache(device)
    cache.launch(support.add, N, [x, 1.0], [out])
    x.requires_grad = out.requires_grad = True
    cache.launch(support.add, N, [x, 2.0], [out])
    params = cache.records[0].command.params
    assert (params[1].grad, params[3].grad) == (x.grad.ptr, out.grad.ptr)
    out.grad = adj
    cache.launch(support.add, N, [x, 2.0], [out])
    assert cache.records[0].command.params[3].grad == out.grad.ptr
    assert cache.stats.total("patched") == 2


def test_overloads(device):
    wp.overload(twice, [wp.array[wp.vec2], wp.array[wp.vec2]])
    x = wp.array(np.ones((N, 2)), dtype=wp.vec2, device=device)

    def program(launch, out):
        for _ in range(3):
            launch(twice, N, [x], [out])

    cache = compare(device, program, lambda: wp.zeros(N, dtype=wp.vec2, device=device))
    assert cache.stats.total("recorded") == 1


@pytest.mark.parametrize("block_dim", [None, 4, 0])
def test_tiled_launches(device, block_dim):
    cache, out, expected = support.cache(device), zeros(device), zeros(device)
    for _ in range(3):
        cache.launch_tiled(lanes, (2, 2), [], [out], block_dim=block_dim)
        wp.launch_tiled(lanes, dim=(2, 2), inputs=[expected], block_dim=block_dim, device=device)
    assert same_bits(out, expected)
    assert (cache.stats.total("recorded"), cache.stats.total("replayed")) == (1, 2)
    with pytest.raises(LaunchError, match="up to three extents"):
        cache.launch_tiled(lanes, (1, 1, 1, 1), [], [out], block_dim=4)


def test_tiled_launches_with_threads_on_the_cpu(monkeypatch):
    device = wp.get_device("cpu")
    monkeypatch.setattr(wp.config, "enable_cpu_blocks", True)
    cache, out, expected = support.cache(device), zeros(device), zeros(device)
    for _ in range(3):
        cache.launch_tiled(lanes, (2, 2), [], [out], block_dim=4)
        wp.launch_tiled(lanes, dim=(2, 2), inputs=[expected], block_dim=4, device=device)
    assert same_bits(out, expected)
    assert out.numpy()[0] == 30.0
    with pytest.raises(ValueError, match="block_dim must be at most 1024"):
        cache.launch_tiled(lanes, (2, 2), [], [out], block_dim=2000)


@pytest.mark.parametrize("contract", ["checked", "trusted", "debug"])
def test_adjoint_launches_are_launched_by_warp(device, contract):
    cache = support.cache(device, contract)
    x, out, adj_out = buffer(device), zeros(device), wp.full(N, 1.0, dtype=float, device=device)
    grads = [zeros(device), zeros(device)]
    for launch, grad in ((wp.launch, grads[0]), (cache.launch, grads[1])):
        options = {"device": device} if launch is wp.launch else {}
        launch(square, N, inputs=[x], outputs=[out], **options)
        for _ in range(3):
            launch(square, N, [x], [out], adj_inputs=[grad], adj_outputs=[adj_out], adjoint=True, **options)
            adj_out.fill_(1.0)
    assert same_bits(*grads)
    assert grads[0].numpy()[1] == 3 * 2 * 1.25
    assert (cache.stats.total("recorded"), cache.stats.total("eager")) == (1, 3)


def test_adjoint_launches_in_a_graph(device):
    scope = support.scope(device)
    x, out, adj_out, grad = buffer(device), zeros(device), wp.full(N, 1.0, dtype=float, device=device), zeros(device)

    def stage():
        scope.launches.launch(square, N, [x], [out])
        wp.copy(adj_out, x)
        scope.launches.launch(square, N, [x], [out], adj_inputs=[grad], adj_outputs=[adj_out], adjoint=True)

    for _ in range(5):
        scope.graphs.run("stage", stage)
    assert scope.graphs.has_graph("stage")
    np.testing.assert_array_equal(grad.numpy(), 5 * 2 * x.numpy() ** 2)


def test_a_launch_that_the_tape_is_not_to_see(device):
    cache, x = support.cache(device), wp.full(N, 2.0, dtype=float, device=device, requires_grad=True)
    out = wp.zeros(N, dtype=float, device=device, requires_grad=True)
    with wp.Tape() as tape:
        cache.launch(square, N, [x], [out], record_tape=False)
        cache.launch(square, N, [x], [out])
    assert len(tape.launches) == 1


class Interface:
    """An array of another library, known by its interface alone."""

    def __init__(self, array):
        self.array = array

    def __getattr__(self, name):
        if name in ("__array_interface__", "__cuda_array_interface__"):
            return getattr(self.array, name)
        raise AttributeError(name)


def test_arrays_of_other_libraries(device):
    source = torch.arange(float(2 * N), device=str(device))
    kinds = {
        "torch": lambda: source[:N],
        "interface": lambda: Interface(source[:N] if device.is_cuda else source.numpy()[:N]),
        "dlpack": lambda: wp.from_dlpack(source[N:]),
    }

    def program(launch, out):
        for make in kinds.values():
            x = make()
            for _ in range(2):
                launch(support.add, N, [x, 1.0], [out])
            source.add_(1.0)
            launch(support.add, N, [x, 1.0], [out])
        source.copy_(torch.arange(float(2 * N), device=str(device)))

    compare(device, program, lambda: zeros(device))


@pytest.mark.parametrize("kind", ["torch", "numpy"])
def test_arrays_of_other_libraries_keep_a_stage_out_of_graphs_on_the_cpu(kind):
    device = wp.get_device("cpu")
    scope, out, expected = support.scope(device), zeros(device), zeros(device)
    x = torch.ones(N) if kind == "torch" else np.ones(N, dtype=np.float32)
    bound = scope.launches.bind(support.add, N, [x, 1.0], [out])
    for _ in range(4):
        scope.graphs.run("cached", lambda: scope.launches.launch(support.add, N, [x, 1.0], [out]))
        scope.graphs.run("bound", bound)
        for _ in range(2):
            wp.launch(support.add, N, [x, 1.0, expected], device=device)
    assert same_bits(out, expected)
    for key in ("cached", "bound"):
        assert "argument 'x' of kernel 'add' is a" in scope.graphs.reason(key)
        assert "arrays of Warp only" in scope.graphs.reason(key)


@pytest.mark.parametrize("contract", ["checked", "trusted", "debug"])
@pytest.mark.parametrize("how", ["options", "unload"])
def test_a_module_that_changes_is_recorded_again(device, contract, how):
    @wp.kernel(module="unique")
    def grow(out: wp.array[float]):
        i = wp.tid()
        out[i] = out[i] * 1.1 + 0.1

    cache, scope, out, expected = (
        support.cache(device, contract),
        support.scope(device, contract),
        *(zeros(device) for _ in range(2)),
    )
    bound = cache.bind(grow, N, [], [out])

    def run(calls):
        for _ in range(calls):
            cache.launch(grow, N, [], [out])
            bound()
            scope.graphs.run("graph", lambda: scope.launches.launch(grow, N, [], [out]))
            for _ in range(3):
                wp.launch(grow, N, [expected], device=device)

    run(3)
    before = [record.command.module_exec for record in cache.records]
    if how == "options":
        wp.set_module_options({"fuse_fp": not wp.get_module_options(grow.module)["fuse_fp"]}, module=grow.module)
    else:
        grow.module.unload()
    run(3)
    assert same_bits(out, expected)
    assert not {id(exe) for exe in before} & {id(record.command.module_exec) for record in cache.records}
    assert cache.stats.total("recorded") == 4
    assert scope.stats.graph_total("captures") == 2


def test_another_kernel_in_the_module_is_no_change(device):
    cache, out = support.cache(device), zeros(device)
    for _ in range(2):
        cache.launch(support.count, 1, [], [out])
    (record,) = cache.records
    record.module.hashers = {}  # as if something had been added to the module
    for _ in range(2):
        cache.launch(support.count, 1, [], [out])
    assert cache.records == [record]
    assert record.module.hashers is record.module.module.hashers
    assert out.numpy()[0] == 4.0


@pytest.mark.parametrize("contract", ["checked", "trusted", "debug"])
def test_arguments_that_can_be_read_once(device, contract):
    cache, x, out, expected = support.cache(device, contract), buffer(device), zeros(device), zeros(device)
    for dim in (N, N, 4, N):
        cache.launch(support.add, dim, iter([x, 1.0]), iter([out]))
        wp.launch(support.add, dim, [x, 1.0, expected], device=device)
    assert same_bits(out, expected)


def test_two_caches_of_one_device(device):
    caches, outs = [support.cache(device) for _ in range(2)], [zeros(device) for _ in range(2)]
    for _ in range(3):
        for cache, out in zip(caches, outs, strict=True):
            cache.launch(support.count, 1, [], [out])
    assert [out.numpy()[0] for out in outs] == [3.0, 3.0]
    assert [cache.stats.total("recorded") for cache in caches] == [1, 1]


@pytest.mark.gpu
@support.needs_cpu_kernels
def test_two_devices():
    caches = [support.cache(wp.get_device(name)) for name in ("cpu", "cuda:0")]
    outs = [zeros(cache.device) for cache in caches]
    for _ in range(3):
        for cache, out in zip(caches, outs, strict=True):
            cache.launch(support.count, 1, [], [out])
    assert [out.numpy()[0] for out in outs] == [3.0, 3.0]


@pytest.mark.parametrize("dim", [1, N, 0])
def test_max_blocks(device, dim):
    cache, x, out, expected = support.cache(device), buffer(device), zeros(device), zeros(device)
    for max_blocks in (0, 1, 1, 2):
        cache.launch(support.add, dim, [x, 1.0], [out], max_blocks=max_blocks)
        wp.launch(support.add, dim, [x, 1.0, expected], device=device, max_blocks=max_blocks)
    assert same_bits(out, expected)


def test_deterministic_mode(device):
    @wp.kernel(module="unique", module_options={"deterministic": wp.DeterministicMode.RUN_TO_RUN})
    def gather_all(x: wp.array[float], out: wp.array[float]):
        i = wp.tid()
        wp.atomic_add(out, i % 2, x[i] * 0.1)

    n = 1000
    x, y = buffer(device, n=n), buffer(device, 3.0, n)
    cache, out, expected = support.cache(device), zeros(device), zeros(device)
    for value, dim in ((x, n), (x, n), (y, n), (y, n // 2)):
        cache.launch(gather_all, dim, [value], [out])
        wp.launch(gather_all, dim, [value, expected], device=device)
    assert same_bits(out, expected)
    assert cache.stats.total("recorded") == 1
