"""The floor below Warp."""

from __future__ import annotations

import ctypes
import sys
from types import SimpleNamespace

import pytest
import warp as wp

from treadle.bench.launch import driver
from treadle.bench.launch.modes import NotAvailableError
from treadle.bench.launch.workload import Workload


def workload(name: str) -> Workload:
    return Workload(name, wp.get_device("cpu"), 5)


@pytest.mark.parametrize(
    ("name", "expression"),
    [
        ("arrays-1", "weight * 1;"),
        ("arrays-4", "weight * a0.data[i] + a1.data[i] + a2.data[i];"),
        ("struct", "weight * terms.a.data[i] + terms.b.data[i] + terms.c.data[i];"),
    ],
)
def test_the_kernel_is_like_warps(name, expression):
    source = driver.kernel_source(workload(name))
    assert expression in source
    assert source.count("{") == source.count("}")


@pytest.mark.parametrize(("name", "arrays"), [("arrays-1", 1), ("arrays-4", 4), ("arrays-12", 12)])
def test_it_has_as_many_arguments(name, arrays):
    signature = driver.kernel_source(workload(name)).partition("add(")[2].partition(")")[0]
    assert sum(word.startswith("Array ") for word in signature.split(", ")) == arrays


def test_arrays_are_packed_as_large_as_warps():
    array = wp.zeros(3, dtype=wp.uint32, device="cpu")
    assert ctypes.sizeof(driver._Array) == ctypes.sizeof(array.__ctype__())
    packed = driver._array(array)
    assert (packed.data, packed.shape[0], packed.strides[0], packed.ndim) == (array.ptr, 3, 4, 1)


def test_parameters_are_bounds_inputs_weight_total():
    work = workload("arrays-4")
    total = work.new_total()
    _, (values, pointers) = driver._pack(work, 9, total)
    assert len(pointers) == len(values) == 6
    assert values[0].size == 5
    assert values[4].value == 9
    assert values[5].data == total.ptr


def test_reasons_why_it_is_not_available(monkeypatch):
    with pytest.raises(NotAvailableError, match="tiled kernel"):
        driver.driver_step(workload("tiled"), 1)
    monkeypatch.setitem(sys.modules, "cuda", None)
    for build in (driver.driver_step, driver.driver_warp_step):
        with pytest.raises(NotAvailableError, match=r"cuda\.bindings is not installed"):
            build(workload("arrays-4"), 1)


def test_a_status_is_an_error_unless_it_is_zero():
    assert driver._call((0, "value")) == "value"
    assert driver._call((0,)) is None
    with pytest.raises(RuntimeError, match="1"):
        driver._call((1, None))


@pytest.mark.parametrize(
    ("size", "block_dim", "grid"),
    [(1, 256, (1, 256)), (256, 256, (1, 256)), (257, 256, (2, 256)), (640, 64, (10, 64)), (5, 0, (1, 256))],
)
def test_the_grid_of_a_recorded_launch(size, block_dim, grid):
    command = SimpleNamespace(bounds=SimpleNamespace(size=size), block_dim=block_dim, cluster_dim=1, max_blocks=0)
    assert driver.grid_of(command) == grid


@pytest.mark.parametrize("other", [{"cluster_dim": 2}, {"max_blocks": 1}, {"bounds": SimpleNamespace(size=2**24 + 1)}])
def test_a_launch_with_another_grid_is_refused(other):
    plain = {"bounds": SimpleNamespace(size=1), "block_dim": 256, "cluster_dim": 1, "max_blocks": 0}
    with pytest.raises(RuntimeError, match="more than one extent"):
        driver.grid_of(SimpleNamespace(**{**plain, **other}))


def test_a_recorded_launch_has_what_the_driver_takes():
    work = workload("arrays-4")
    command = work.record(*work.arguments(1, work.new_total()))
    for name in ("hooks", "params_addr", "bounds", "block_dim", "cluster_dim", "max_blocks", "grid_stride"):
        assert hasattr(command, name)
    assert hasattr(command.hooks, "forward") and hasattr(command.hooks, "forward_smem_bytes")


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("name", "build"),
    [(name, driver.driver_step) for name in ("arrays-1", "arrays-4", "arrays-12", "struct")]
    + [(name, driver.driver_warp_step) for name in ("arrays-1", "arrays-4", "arrays-12", "struct", "tiled")],
)
def test_it_adds_what_warps_kernel_adds(name, build):
    pytest.importorskip("cuda.bindings")
    if not wp.is_cuda_available():
        pytest.skip("no CUDA device")
    work = Workload(name, wp.get_device("cuda:0"), 1000)
    step = build(work, 3)
    step.run()
    step.run()
    assert (step.total.numpy() == work.expected(6, 12)).all()
    step.close()
