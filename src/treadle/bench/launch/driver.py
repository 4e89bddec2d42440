"""The floor below Warp: ``cuLaunchKernel``, called from Python. Only ``cuda.bindings`` is needed.

``driver`` does without Warp: its kernel, which NVRTC compiles, is a like one. It has the same number of arguments,
array arguments as large as Warp's (56 bytes), and adds the same terms. Its parameters are packed beforehand.

``driver_warp`` launches Warp's own kernel. A recorded ``wp.Launch`` holds all that the call takes, in attributes that
have no underscore and no documentation: ``hooks.forward`` is the ``CUfunction``, ``params_addr`` points to the packed
parameters.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import warp as wp

from treadle.bench.launch.modes import ModeStep, NotAvailableError
from treadle.bench.launch.workload import Workload

__all__ = ["compile_kernel", "driver_step", "driver_warp_step", "grid_of", "kernel_source"]

_BLOCK = 256
_MOST_GRID_X = 2**24
"""Threads along the first extent of a grid: more, and Warp spreads the blocks over three."""

_PRELUDE = """
struct Array { unsigned int* data; unsigned int* grad; int shape[4]; int strides[4]; int ndim; };
struct Terms { Array a, b, c; };
struct Bounds { int shape[4]; int ndim; unsigned long long size; };
"""


class _Array(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("grad", ctypes.c_void_p),
        ("shape", ctypes.c_int * 4),
        ("strides", ctypes.c_int * 4),
        ("ndim", ctypes.c_int),
    )


class _Terms(ctypes.Structure):
    _fields_ = (("a", _Array), ("b", _Array), ("c", _Array))


class _Bounds(ctypes.Structure):
    _fields_ = (("shape", ctypes.c_int * 4), ("ndim", ctypes.c_int), ("size", ctypes.c_ulonglong))


def driver_step(workload: Workload, launches: int) -> ModeStep:
    """Return a step of ``cuLaunchKernel`` calls.

    Raises:
        NotAvailableError: ``cuda.bindings`` is missing or does not work here, or the kernel uses tiles.
    """
    if workload.tiled:
        raise NotAvailableError("a tiled kernel has no like kernel in plain CUDA")
    try:
        driver, nvrtc = (importlib.import_module(f"cuda.bindings.{name}") for name in ("driver", "nvrtc"))
    except ImportError:
        raise NotAvailableError("cuda.bindings is not installed") from None
    try:
        image = compile_kernel(nvrtc, kernel_source(workload), workload.device.arch)
        loaded = _load(driver, image, workload.device.ordinal)
    except (RuntimeError, AttributeError, TypeError) as error:
        raise NotAvailableError(f"cuda.bindings does not work here: {error}") from None
    total = workload.new_total()
    packs = [_pack(workload, site + 1, total) for site in range(launches)]
    stream = _stream(driver, workload.device)
    blocks = -(-workload.dim // _BLOCK)
    calls = [(loaded.function, blocks, 1, 1, _BLOCK, 1, 1, 0, stream, address, 0) for address, _ in packs]
    return ModeStep(_runner(driver, calls, packs), total, close=loaded.close)


def driver_warp_step(workload: Workload, launches: int) -> ModeStep:
    """Return a step of ``cuLaunchKernel`` calls of Warp's own kernel.

    Raises:
        NotAvailableError: ``cuda.bindings`` is missing or does not work here, or this Warp launches in another way.
    """
    try:
        driver = importlib.import_module("cuda.bindings.driver")
    except ImportError:
        raise NotAvailableError("cuda.bindings is not installed") from None
    total = workload.new_total()
    commands = [workload.record(*workload.arguments(site + 1, total)) for site in range(launches)]
    try:
        release = _enter_context(driver, workload.device.ordinal)
        stream = _stream(driver, workload.device)
        calls = [_call_of(driver, command, stream) for command in commands]
    except (RuntimeError, AttributeError, TypeError) as error:
        raise NotAvailableError(f"the handles of Warp's kernel can't be used here: {error}") from None
    return ModeStep(_runner(driver, calls, commands), total, close=release)


def grid_of(command: Any) -> tuple[int, int]:
    """Return blocks, and threads of a block, of a recorded launch, as Warp's native code computes them.

    Raises:
        RuntimeError: The launch needs more than a plain grid of one extent.
    """
    threads = command.block_dim if command.block_dim > 0 else _BLOCK
    blocks = -(-command.bounds.size // threads)
    if command.cluster_dim > 1 or command.max_blocks > 0 or blocks * threads > _MOST_GRID_X:
        raise RuntimeError("the launch has clusters, a limit of blocks, or a grid of more than one extent")
    return max(blocks, 1), threads


def _call_of(driver: Any, command: Any, stream: Any) -> tuple[Any, ...]:
    """Return the arguments of ``cuLaunchKernel`` for a recorded launch, which must live as long as they are used."""
    blocks, threads = grid_of(command)
    function = driver.CUfunction(int(command.hooks.forward))
    shared, address = command.hooks.forward_smem_bytes, ctypes.addressof(command.params_addr)
    return function, blocks, 1, 1, threads, 1, 1, shared, stream, address, 0


def kernel_source(workload: Workload) -> str:
    """Return the CUDA source of a kernel like the workload's."""
    inputs = ["Terms terms"] if workload.name == "struct" else [f"Array a{k}" for k in range(workload.array_count - 1)]
    read = ("terms.a", "terms.b", "terms.c") if workload.name == "struct" else [word.split()[1] for word in inputs]
    terms = [f"{name}.data[i]" for name in read] or ["1"]
    parameters = ", ".join(["Bounds bounds", *inputs, "unsigned int weight", "Array total"])
    added = " + ".join([f"weight * {terms[0]}", *terms[1:]])
    return (
        f'{_PRELUDE}extern "C" __global__ void add({parameters}) {{\n'
        "    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;\n"
        f"    if (i < bounds.size) total.data[i] += {added};\n}}\n"
    )


def compile_kernel(nvrtc: Any, source: str, arch: int) -> bytes:
    """Compile to machine code.

    Args:
        nvrtc: The module ``cuda.bindings.nvrtc``.
        source: CUDA source.
        arch: Compute capability as Warp writes it, such as 90.

    Raises:
        RuntimeError: NVRTC refuses.
    """
    program = _call(nvrtc.nvrtcCreateProgram(source.encode(), b"add.cu", 0, [], []))
    options = [f"--gpu-architecture=sm_{arch}".encode()]
    _call(nvrtc.nvrtcCompileProgram(program, len(options), options))
    image = b" " * _call(nvrtc.nvrtcGetCUBINSize(program))
    _call(nvrtc.nvrtcGetCUBIN(program, image))
    _call(nvrtc.nvrtcDestroyProgram(program))
    return image


def _load(driver: Any, image: bytes, ordinal: int) -> SimpleNamespace:
    """Load the kernel into the device's primary context, which is Warp's."""
    release = _enter_context(driver, ordinal)
    module = _call(driver.cuModuleLoadData(image))
    function = _call(driver.cuModuleGetFunction(module, b"add"))

    def close() -> None:
        _call(driver.cuModuleUnload(module))
        release()

    return SimpleNamespace(function=function, close=close)


def _enter_context(driver: Any, ordinal: int) -> Callable[[], None]:
    """Make the device's primary context the current one; return what lets go of it."""
    _call(driver.cuInit(0))
    device = _call(driver.cuDeviceGet(ordinal))
    _call(driver.cuCtxSetCurrent(_call(driver.cuDevicePrimaryCtxRetain(device))))
    return lambda: _call(driver.cuDevicePrimaryCtxRelease(device))


def _pack(workload: Workload, weight: int, total: wp.array) -> tuple[int, Any]:
    """Return the address of a launch's parameters, and what keeps them alive."""
    arrays = list(workload.inputs)
    if workload.name == "struct":
        terms = arrays[0]
        inputs: list[Any] = [_Terms(_array(terms.a), _array(terms.b), _array(terms.c))]
    else:
        inputs = [_array(array) for array in arrays]
    bounds = _Bounds((workload.dim, 0, 0, 0), 1, workload.dim)
    values = [bounds, *inputs, ctypes.c_uint(weight), _array(total)]
    pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
    return ctypes.addressof(pointers), (values, pointers)


def _array(array: wp.array) -> _Array:
    return _Array(array.ptr, None, (array.shape[0], 0, 0, 0), (array.strides[0], 0, 0, 0), 1)


def _stream(driver: Any, device: wp.Device) -> Any:
    handle = device.stream.cuda_stream
    return driver.CUstream(getattr(handle, "value", handle))


def _runner(driver: Any, calls: list[tuple[Any, ...]], alive: object) -> Callable[[], None]:
    """Return a function that makes the calls. What they point to is kept alive."""
    launch = driver.cuLaunchKernel

    def run(alive: object = alive) -> None:
        for call in calls:
            (error,) = launch(*call)
            if error:
                raise RuntimeError(f"cuLaunchKernel: {error}")

    return run


def _call(result: tuple[Any, ...]) -> Any:
    """Return what a call of the CUDA libraries returns beside its status.

    Raises:
        RuntimeError: The status is an error.
    """
    error, *values = result
    if int(error):
        raise RuntimeError(str(error))
    return values[0] if values else None
