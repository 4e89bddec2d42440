"""The floor below Warp: ``cuLaunchKernel``, called from Python, for a kernel that NVRTC compiles.

Warp does not hand out the handles of its kernels, so the kernel here is a like one: it has the same number of
arguments, array arguments as large as Warp's (56 bytes), and adds the same terms. Its parameters are packed
beforehand. Only ``cuda.bindings`` is needed.
"""

from __future__ import annotations

import ctypes
import importlib
from types import SimpleNamespace
from typing import Any

import warp as wp

from treadle.bench.launch.modes import ModeStep, NotAvailableError
from treadle.bench.launch.workload import Workload

__all__ = ["compile_kernel", "driver_step", "kernel_source"]

_BLOCK = 256

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
    run = _runner(driver, loaded.function, workload, packs)
    return ModeStep(run, total, close=loaded.close)


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
    _call(driver.cuInit(0))
    device = _call(driver.cuDeviceGet(ordinal))
    _call(driver.cuCtxSetCurrent(_call(driver.cuDevicePrimaryCtxRetain(device))))
    module = _call(driver.cuModuleLoadData(image))
    function = _call(driver.cuModuleGetFunction(module, b"add"))

    def close() -> None:
        _call(driver.cuModuleUnload(module))
        _call(driver.cuDevicePrimaryCtxRelease(device))

    return SimpleNamespace(function=function, close=close)


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


def _runner(driver: Any, function: Any, workload: Workload, packs: list[tuple[int, Any]]) -> Any:
    launch, blocks, device = driver.cuLaunchKernel, -(-workload.dim // _BLOCK), workload.device
    handle = device.stream.cuda_stream
    stream = driver.CUstream(getattr(handle, "value", handle))

    def run() -> None:
        for address, _ in packs:
            (error,) = launch(function, blocks, 1, 1, _BLOCK, 1, 1, 0, stream, address, 0)
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
