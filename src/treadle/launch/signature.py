"""What identifies a kernel argument: the one notion of "the same argument" in the launch layer.

The launch cache, the graph cache and the ``debug`` contract all compare :class:`ArgumentSignature` objects.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import warp as wp

__all__ = ["ArgumentSignature", "is_struct", "leaves", "scalar_bits"]


@dataclass(frozen=True)
class ArgumentSignature:
    """Everything about an argument that a recorded launch or a captured graph has baked in."""

    kind: str
    """``array``, ``indexedarray``, ``struct``, ``none``, ``value`` or ``buffer``."""
    content: tuple[Any, ...]
    """Pointers, layout and bits, by kind."""

    @classmethod
    def of(cls, value: Any) -> ArgumentSignature:
        """Return the signature of any argument that ``wp.launch`` takes."""
        if value is None:
            return cls("none", ())
        if isinstance(value, wp.array):
            return cls("array", _array_content(value))
        if isinstance(value, wp.indexedarray):
            indices = tuple(None if i is None else i.ptr for i in value.indices)
            return cls("indexedarray", (*_array_content(value.data), indices, tuple(value.shape)))
        if is_struct(value):
            return cls("struct", _struct_content(value))
        if hasattr(value, "data_ptr"):
            return cls("buffer", (value.data_ptr(), tuple(value.shape), tuple(value.stride()), str(value.dtype)))
        for interface in ("__cuda_array_interface__", "__array_interface__"):
            if hasattr(value, interface) and getattr(value, "shape", ()) != ():
                described = getattr(value, interface)
                content = (described["data"], described["shape"], described.get("strides"), described["typestr"])
                return cls("buffer", content)
        return cls("value", (type(value).__name__, scalar_bits(value)))

    def __str__(self) -> str:
        """Describe the argument for an error message."""
        if self.kind == "none":
            return "None"
        if self.kind in ("array", "indexedarray"):
            pointer, grad, dtype, shape, strides, device, *indices = self.content
            text = f"{self.kind} of {dtype}, shape {shape}, strides {strides}, on {device}, at {_hex(pointer)}"
            return text + (f", gradient at {_hex(grad)}" if grad else "") + (f", indices {indices}" if indices else "")
        if self.kind == "buffer":
            return f"buffer at {self.content[0]}, shape {self.content[1]}, {self.content[3]}"
        if self.kind == "struct":
            return f"struct {self.content[0]} with " + ", ".join(f"{name}: {part}" for name, part in self.content[1:])
        return f"{self.content[0]} {self.content[1]}"


def scalar_bits(value: Any) -> Any:
    """Return the bits of a scalar, vector or matrix value, so that NaN equals itself and -0.0 differs from 0.0."""
    if isinstance(value, bool | int):
        return int(value)
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, ctypes.Array | ctypes.Structure):
        return bytes(value)
    if isinstance(value, list | tuple):
        return tuple(scalar_bits(item) for item in value)
    inner = getattr(value, "value", None)
    if isinstance(inner, bool | int | float):
        return scalar_bits(inner)
    return value.tobytes() if hasattr(value, "tobytes") else repr(value)


def is_struct(value: Any) -> bool:
    """Return whether a value is an instance of a ``@wp.struct``."""
    return hasattr(value, "_ctype") and hasattr(type(value), "_cls")


def leaves(value: Any) -> list[Any]:
    """Return the objects that must stay alive for an argument's pointers to stay valid: itself and its struct fields."""
    if not is_struct(value):
        return [value]
    return [value, *(leaf for name in value._cls.vars for leaf in leaves(getattr(value, name)))]


def _array_content(array: wp.array) -> tuple[Any, ...]:
    grad = array.grad
    return (
        array.ptr,
        None if grad is None else grad.ptr,
        getattr(array.dtype, "__name__", str(array.dtype)),
        tuple(array.shape),
        tuple(array.strides),
        str(array.device),
    )


def _struct_content(value: Any) -> tuple[Any, ...]:
    fields = sorted(value._cls.vars)
    return (value._cls.key, *((name, ArgumentSignature.of(getattr(value, name))) for name in fields))


def _hex(pointer: int | None) -> str:
    return "null" if pointer is None else hex(pointer)
