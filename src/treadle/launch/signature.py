"""What identifies a kernel argument: the one notion of "the same argument" in the launch layer.

The launch cache, the graph cache and the ``debug`` contract all compare :class:`ArgumentSignature` objects.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import warp as wp

__all__ = ["ArgumentSignature", "is_constant", "is_scalar", "is_struct", "leaves"]

_NUMBERS = (bool, int, float, np.generic)
_HALF_TYPES = (wp.float16, wp.bfloat16)
"""Scalar types whose C type holds bits, not the number."""


class ArrayContent(NamedTuple):
    """What a command holds of an array."""

    pointer: int | None
    grad: int | None
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    device: str


class IndexedContent(NamedTuple):
    """What it holds of an indexed array."""

    data: ArrayContent | None
    indices: tuple[int | None, ...]
    shape: tuple[int, ...]


class StructContent(NamedTuple):
    """What it holds of a struct."""

    name: str
    fields: tuple[tuple[str, ArgumentSignature], ...]


class BufferContent(NamedTuple):
    """What it holds of an array of another library."""

    pointer: Any
    """The address, or what the array interface says: address and whether it is read-only."""
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: str


class TextureContent(NamedTuple):
    """What it holds of a texture."""

    name: str
    handle: int
    device: str


@dataclass(frozen=True)
class ArgumentSignature:
    """Everything about an argument that a recorded launch or a captured graph has baked in."""

    kind: str
    """``array``, ``indexedarray``, ``texture``, ``struct``, ``none``, ``value``, ``buffer`` or ``opaque``."""
    content: tuple[Any, ...]
    """Pointers, layout and bits, by kind."""
    shown: Any = field(default=None, compare=False, repr=False)
    """A value as a message shows it."""

    @classmethod
    def of(cls, value: Any, declared: Any = None) -> ArgumentSignature:
        """Return the signature of any argument that ``wp.launch`` takes.

        Args:
            value: The argument.
            declared: The type that the kernel declares, if it is known: numbers are then compared by the bits that the
                kernel receives, and a NumPy array that is passed for a vector by its values.
        """
        if value is None:
            return cls("none", ())
        if isinstance(value, wp.array):
            return cls("array", _array_content(value))
        if is_scalar(value):
            return cls("value", (_scalar_bits(value, declared),), value if is_constant(value) else str(value))
        if isinstance(value, ctypes.Array | ctypes.Structure):
            return cls("value", (type(value).__name__, bytes(value)), str(value))
        if isinstance(value, list | tuple):
            return cls("value", (type(value).__name__, _nested_bits(value)), str(value))
        if isinstance(value, wp.indexedarray):
            return cls("indexedarray", _indexed_content(value))
        if is_struct(value):
            return cls("struct", _struct_content(value))
        if isinstance(value, wp.Texture):
            return cls("texture", TextureContent(type(value).__name__, value.id, str(value.device)))
        return cls._of_foreign(value, declared)

    @property
    def comparable(self) -> bool:
        """Whether equal signatures mean equal arguments; not so for objects that we know nothing about."""
        return self.kind != "opaque"

    def __str__(self) -> str:
        """Describe the argument for an error message."""
        if self.kind == "none":
            return "None"
        content: Any = self.content
        if self.kind == "array":
            return _array_text(self.kind, content)
        if self.kind == "indexedarray":
            data = "no array" if content.data is None else _array_text(self.kind, content.data)
            return f"{data}, indices {list(content.indices)}, indexed shape {content.shape}"
        if self.kind == "texture":
            return f"{content.name} with handle {_hex(content.handle)}, on {content.device}"
        if self.kind == "buffer":
            return f"buffer at {content.pointer}, shape {content.shape}, {content.dtype}"
        if self.kind == "struct":
            return f"struct {content.name} with " + ", ".join(f"{name}: {part}" for name, part in content.fields)
        if self.kind == "opaque":
            return f"{self.content[0]} object"
        return repr(self.shown) if not isinstance(self.shown, str) else self.shown

    @classmethod
    def _of_foreign(cls, value: Any, declared: Any) -> ArgumentSignature:
        """Return the signature of an object of another library."""
        if isinstance(declared, type) and hasattr(value, "tolist"):
            return cls("value", (type(value).__name__, _nested_bits(value.tolist())), str(value))
        if hasattr(value, "data_ptr"):
            return cls(
                "buffer",
                BufferContent(value.data_ptr(), tuple(value.shape), tuple(value.stride()), str(value.dtype)),
            )
        for interface in ("__cuda_array_interface__", "__array_interface__"):
            described = getattr(value, interface, None)
            if described is not None:
                data, strides = described["data"], described.get("strides")
                return cls("buffer", BufferContent(data, described["shape"], strides, described["typestr"]))
        return cls("opaque", (type(value).__name__, id(value)))


def is_scalar(value: Any) -> bool:
    """Return whether a value is a number of Python, NumPy or Warp."""
    if isinstance(value, _NUMBERS):
        return True
    return isinstance(getattr(value, "value", None), bool | int | float) and hasattr(type(value), "_type_")


def is_constant(value: Any) -> bool:
    """Return whether an object can't change: ``None``, numbers of Python and NumPy, and tuples of them."""
    if isinstance(value, tuple):
        return all(is_constant(item) for item in value)
    return value is None or isinstance(value, _NUMBERS)


def is_struct(value: Any) -> bool:
    """Return whether a value is an instance of a ``@wp.struct``."""
    return hasattr(value, "_ctype") and hasattr(type(value), "_cls")


def leaves(value: Any) -> list[Any]:
    """Return the objects that must stay alive for an argument's pointers to stay valid.

    They are what the argument refers to *now*: a struct can be given other arrays later, and a tensor other storage.
    """
    if is_struct(value):
        return [value, *(leaf for name in value._cls.vars for leaf in leaves(getattr(value, name)))]
    if isinstance(value, wp.array):
        return [value, value.grad]
    if isinstance(value, wp.indexedarray):
        return [value, value.data, *value.indices]
    if hasattr(value, "data_ptr") and hasattr(value, "detach"):
        return [value, value.detach()]
    return [value]


def _scalar_bits(value: Any, declared: Any) -> Any:
    """Return the bits of a number, so that NaN equals itself and -0.0 differs from 0.0."""
    plain = isinstance(value, _NUMBERS)
    number = value if plain else value.value
    ctype: Any = getattr(declared, "_type_", None)
    convertible = ctype is not None and declared not in _HALF_TYPES and not issubclass(declared, ctypes.Array)
    if convertible and (plain or type(value) is declared):
        try:
            return bytes(ctype(number))
        except (TypeError, ValueError, OverflowError):
            pass  # Warp refuses it as well: it has to see it
    return type(value).__name__, number.hex() if isinstance(number, float) else repr(number)


def _nested_bits(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_nested_bits(item) for item in value)
    if isinstance(value, ctypes.Array):
        return type(value).__name__, bytes(value)
    return _scalar_bits(value, None) if is_scalar(value) else (type(value).__name__, repr(value))


def _array_content(array: wp.array) -> ArrayContent:
    grad = array.grad
    return ArrayContent(
        array.ptr,
        None if grad is None else grad.ptr,
        getattr(array.dtype, "__name__", str(array.dtype)),
        tuple(array.shape),
        tuple(array.strides),
        str(array.device),
    )


def _array_text(kind: str, content: ArrayContent) -> str:
    text = f"{kind} of {content.dtype}, shape {content.shape}, strides {content.strides}, on {content.device}"
    grad = f", gradient at {_hex(content.grad)}" if content.grad else ""
    return f"{text}, at {_hex(content.pointer)}{grad}"


def _indexed_content(array: wp.indexedarray) -> IndexedContent:
    indices = tuple(None if index is None else index.ptr for index in array.indices)
    data = None if array.data is None else _array_content(array.data)
    return IndexedContent(data, indices, tuple(array.shape))


def _struct_content(value: Any) -> StructContent:
    fields = sorted(value._cls.vars.items())
    parts = ((name, ArgumentSignature.of(getattr(value, name), var.type)) for name, var in fields)
    return StructContent(value._cls.key, tuple(parts))


def _hex(pointer: int | None) -> str:
    return "null" if pointer is None else hex(pointer)
