"""The pointers that recorded launches and graphs have baked in, and whether they are still those of the arguments."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import warp as wp

from treadle.launch.record import LaunchRecord
from treadle.launch.signature import ArgumentSignature

__all__ = ["CachedPointer", "captured_pointers", "recorded_pointers"]


@dataclass(frozen=True)
class CachedPointer:
    """One pointer that is used without being asked for again."""

    owner: str
    """Name of the launch cache."""
    place: str
    """``record``, ``bound`` or ``graph``."""
    kernel: str
    site: Hashable
    argument: str
    """Name of the argument; of a field of a struct ``argument.field``, of a gradient ``argument.grad``."""
    address: int | None
    """What is cached."""
    live: int | None
    """What the argument has now."""

    @property
    def stale(self) -> bool:
        """Whether the argument has another pointer now."""
        return self.address != self.live


def recorded_pointers(owner: str, place: str, record: LaunchRecord) -> Iterator[CachedPointer]:
    """Yield the pointers of a recorded launch."""
    for index, (parameter, value) in enumerate(zip(record.kernel.adj.args, record.args, strict=True)):
        live = dict(_addresses(parameter.label, ArgumentSignature.of(value, record.declared[index])))
        cached = live  # read in place
        if index in record.volatile:
            cached = dict(_addresses(parameter.label, record.volatile[index]))
        elif index in record.known:
            known = record.known[index]
            cached = {name: known.grad if name.endswith(".grad") else known.data for name in live}
        for name in live:
            yield CachedPointer(
                owner, place, record.kernel.key, record.site, name, cached.get(name) or None, live[name] or None
            )


def captured_pointers(
    owner: str, kernel: wp.Kernel, site: Hashable, signatures: list[ArgumentSignature], lives: list[ArgumentSignature]
) -> Iterator[CachedPointer]:
    """Yield the pointers of one launch of a graph."""
    for parameter, signature, live in zip(kernel.adj.args, signatures, lives, strict=True):
        now = dict(_addresses(parameter.label, live))
        for name, address in _addresses(parameter.label, signature):
            yield CachedPointer(owner, "graph", kernel.key, site, name, address, now.get(name))


def _addresses(name: str, signature: ArgumentSignature) -> Iterator[tuple[str, int | None]]:
    """Yield the pointers in a signature by name."""
    content: Any = signature.content
    if signature.kind == "array":
        yield name, content.pointer
        if content.grad is not None:
            yield f"{name}.grad", content.grad
    elif signature.kind == "indexedarray":
        yield name, None if content.data is None else content.data.pointer
        for axis, index in enumerate(content.indices):
            if index is not None:
                yield f"{name}.indices[{axis}]", index
    elif signature.kind == "struct":
        for field, part in content.fields:
            yield from _addresses(f"{name}.{field}", part)
    elif signature.kind == "buffer":
        pointer = content.pointer
        yield name, pointer[0] if isinstance(pointer, tuple) else pointer
