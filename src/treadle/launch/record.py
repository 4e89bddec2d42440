"""One recorded launch: the command, the arguments that it was recorded with, and how a replay compares them."""

from __future__ import annotations

import ctypes
from collections.abc import Hashable, Sequence
from typing import Any

import warp as wp

from treadle.launch.errors import LaunchError, StaleArgumentError
from treadle.launch.signature import ArgumentSignature, is_struct, scalar_bits
from treadle.launch.stats import SiteStats

__all__ = ["LaunchRecord", "has_zero_extent"]

Dim = int | Sequence[int]


class LaunchRecord:
    """A ``wp.Launch`` with strong references to what it reads and writes."""

    __slots__ = (
        "args",
        "block_dim",
        "command",
        "dim",
        "kernel",
        "max_blocks",
        "signatures",
        "site",
        "stats",
        "volatile",
    )

    def __init__(
        self,
        kernel: wp.Kernel,
        dim: Dim,
        args: list[Any],
        *,
        device: wp.Device,
        site: Hashable,
        stats: SiteStats,
        block_dim: int | None,
        max_blocks: int,
    ):
        self.kernel = kernel
        self.site = site
        self.stats = stats
        self.dim = dim
        self.args = args
        self.block_dim = block_dim
        self.max_blocks = max_blocks
        self.signatures: list[ArgumentSignature] | None = None
        self.volatile: dict[int, ArgumentSignature] = {}
        self.command = wp.launch(
            kernel, dim, args, device=device, block_dim=block_dim, max_blocks=max_blocks, record_cmd=True
        )
        if self.command is None:
            raise LaunchError(f"kernel {kernel.key!r} can't be recorded: Warp returned no command for dim={dim}")
        stats.recorded += 1
        for index, value in enumerate(args):
            self._note_volatile(index, value)

    def matches_layout(self, args: Sequence[Any], block_dim: int | None, max_blocks: int) -> bool:
        """Return whether the command can be patched to these arguments instead of being recorded again."""
        if block_dim != self.block_dim or max_blocks != self.max_blocks or len(args) != len(self.args):
            return False
        return all(new is old or _same_layout(new, old) for new, old in zip(args, self.args, strict=True))

    def refresh(self, args: Sequence[Any], dim: Dim) -> bool:
        """Patch what differs from the recorded arguments into the command; return whether anything did."""
        patched = False
        if dim != self.dim:
            self.command.set_dim(dim)
            self.dim = dim
            patched = True
        for index, (new, old) in enumerate(zip(args, self.args, strict=True)):
            if new is not old and not self._same_value(index, new, old):
                self.patch(index, new)
                patched = True
        for index, signature in self.volatile.items():
            if ArgumentSignature.of(self.args[index]) != signature:
                self.patch(index, self.args[index])
                patched = True
        if patched:
            self.stats.patched += 1
        return patched

    def patch(self, index: int, value: Any) -> None:
        """Replace one argument."""
        self.command.set_param_at_index(index, value)
        self.args[index] = value
        self.signatures = None
        self._note_volatile(index, value)

    def verify(self, owner: str, args: Sequence[Any] | None = None) -> None:
        """Compare everything about the arguments with what was recorded.

        Raises:
            StaleArgumentError: The number of arguments, or anything about one of them, changed.
        """
        if self.signatures is None:
            self.signatures = [ArgumentSignature.of(arg) for arg in self.args]
        received = self.args if args is None else args
        if len(received) != len(self.signatures):
            self._raise_stale(owner, "(count)", len(self.signatures), len(received))
        for parameter, recorded, value in zip(self.kernel.adj.args, self.signatures, received, strict=True):
            signature = ArgumentSignature.of(value)
            if signature != recorded:
                self._raise_stale(owner, parameter.label, recorded, signature)

    def snapshot(self) -> None:
        """Remember the signatures of the recorded arguments, for :meth:`verify`."""
        self.signatures = [ArgumentSignature.of(arg) for arg in self.args]

    def index_of(self, name: str) -> int:
        """Return the position of an argument by its name in the kernel.

        Raises:
            LaunchError: The kernel has no such argument.
        """
        names = [parameter.label for parameter in self.kernel.adj.args]
        if name not in names:
            raise LaunchError(f"kernel {self.kernel.key!r} has no argument {name!r}; allowed: {', '.join(names)}")
        return names.index(name)

    def _note_volatile(self, index: int, value: Any) -> None:
        """Remember the signature of an argument whose identity does not tell that its pointers or values are the same.

        Warp arrays, scalars and tuples can't change behind their identity; the command aliases structs, vectors and matrices.
        A foreign tensor can be given other storage, an indexed array other indices, and a list other items.
        """
        aliased = isinstance(value, ctypes.Array) and type(value) is self.kernel.adj.args[index].type
        if (
            type(value) is wp.array
            or isinstance(value, bool | int | float | tuple)
            or value is None
            or aliased
            or is_struct(value)
        ):
            self.volatile.pop(index, None)
        else:
            self.volatile[index] = ArgumentSignature.of(value)

    def _same_value(self, index: int, new: Any, old: Any) -> bool:
        """Compare two scalars, vectors or matrices by the bits that the kernel receives."""
        if isinstance(new, wp.array) or isinstance(old, wp.array) or new is None or old is None:
            return False
        declared = self.kernel.adj.args[index].type
        if isinstance(new, bool | int | float) and isinstance(old, bool | int | float):
            if new == old and new != 0:
                return True
            return _packed(declared, new) == _packed(declared, old)
        if index in self.volatile:
            return False
        if type(new) is type(old) and isinstance(new, ctypes.Array | tuple):
            return scalar_bits(new) == scalar_bits(old)
        return False

    def _raise_stale(self, owner: str, argument: str, recorded: object, received: object) -> None:
        raise StaleArgumentError(
            owner=owner,
            kernel=self.kernel.key,
            site=self.site,
            argument=argument,
            recorded=str(recorded),
            received=str(received),
        )


def has_zero_extent(dim: Dim) -> bool:
    """Return whether a launch of this dimension runs no thread at all."""
    return dim == 0 if isinstance(dim, int) else any(extent == 0 for extent in dim)


def _same_layout(new: Any, old: Any) -> bool:
    if isinstance(new, wp.array) and isinstance(old, wp.array):
        return new.dtype is old.dtype and new.ndim == old.ndim
    plain = bool | int | float
    return type(new) is type(old) or (isinstance(new, plain) and isinstance(old, plain))


def _packed(declared: Any, value: Any) -> Any:
    ctype = getattr(declared, "_type_", None)
    if declared is float or declared is wp.float32:
        return bytes(ctypes.c_float(value))
    if declared is wp.float64:
        return bytes(ctypes.c_double(value))
    if declared is wp.float16 or ctype is not None:
        return (type(value), scalar_bits(value))
    return scalar_bits(value)
