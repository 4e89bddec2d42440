"""One recorded launch: the command, the arguments that it was recorded with, and how a replay compares them."""

from __future__ import annotations

import ctypes
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import warp as wp

from treadle.launch.dims import Dim, check_dim, covered_arrays, extents
from treadle.launch.errors import LaunchError, StaleArgumentError
from treadle.launch.modules import LoadedModule
from treadle.launch.same import Same, never_same, same_arguments
from treadle.launch.signature import ArgumentSignature, is_constant, is_scalar, is_struct
from treadle.launch.stats import SiteStats

__all__ = ["LaunchCall", "LaunchRecord", "argument_index", "as_names", "check_argument_lists", "check_site", "extents"]


class LaunchCall(NamedTuple):
    """What a launch is called with. Adjoint launches are never recorded."""

    kernel: wp.Kernel
    dim: Dim
    args: list[Any]
    site: Hashable
    stream: wp.Stream | None
    block_dim: int | None
    max_blocks: int
    dynamic: tuple[str, ...] | str = ()
    adjoint: bool = False
    adj_inputs: Sequence[Any] = ()
    adj_outputs: Sequence[Any] = ()
    record_tape: bool = True
    num_inputs: int = 0
    """How many of ``args`` are inputs; the others are outputs."""

    def issue(self, device: wp.Device, *, record_cmd: bool = False) -> wp.Launch | None:
        """Launch through ``wp.launch``, or record there. A recorded launch has no stream: it belongs to one call."""
        return wp.launch(
            self.kernel,
            self.dim,
            self.args,
            device=device,
            stream=None if record_cmd else self.stream,
            block_dim=self.block_dim,
            max_blocks=self.max_blocks,
            adjoint=self.adjoint,
            adj_inputs=self.adj_inputs,
            adj_outputs=self.adj_outputs,
            record_tape=self.record_tape,
            record_cmd=record_cmd,
        )


class LaunchRecord:
    """A ``wp.Launch`` with strong references to what it reads and writes.

    Whether an argument is still what was recorded is told, from cheap to dear, by

    * identity, for objects that can't change;
    * the array's descriptor, which Warp replaces when an array is given a gradient or loses it;
    * nothing at all for structs, vectors and matrices: the command reads them in place;
    * the signature for whatever else can change behind its identity: tensors of other libraries, indexed arrays, lists.
    """

    __slots__ = (
        "args",
        "arrays",
        "block_dim",
        "command",
        "covered",
        "declared",
        "dim",
        "dynamic",
        "dynamic_names",
        "kernel",
        "known",
        "max_blocks",
        "module",
        "num_inputs",
        "objects",
        "same",
        "signatures",
        "site",
        "stats",
        "volatile",
    )

    def __init__(self, call: LaunchCall, device: wp.Device, stats: SiteStats):
        self.kernel = call.kernel
        self.site = call.site
        self.stats = stats
        self.dim = call.dim
        self.args = list(call.args)
        self.num_inputs = call.num_inputs
        self.block_dim = call.block_dim
        self.max_blocks = call.max_blocks
        self.command: Any = call.issue(device, record_cmd=True)
        if self.command is None:
            raise LaunchError(
                f"kernel {call.kernel.key!r} can't be recorded: Warp returned no command for dim={call.dim}"
            )
        self.module = LoadedModule(self.command)
        self.dynamic_names: tuple[str, ...] | str = ()
        self.dynamic: frozenset[int] = frozenset()
        self.declare_dynamic(call.dynamic)
        stats.recorded += 1
        # Of a generic kernel, the command holds the instance for these argument types.
        self.declared = [parameter.type for parameter in self.command.kernel.adj.args]
        self.signatures: list[ArgumentSignature] | None = None
        self.covered: list[int] = []
        self.volatile: dict[int, ArgumentSignature] = {}
        self.arrays: dict[int, wp.array] = {}
        self.known: dict[int, Any] = {}
        self.objects: tuple[Any, ...] = ()
        """The arguments and the descriptors of the arrays, for :attr:`same`."""
        self.same: Same = never_same
        """Tells whether a call has the arguments that are recorded."""
        for index, value in enumerate(self.args):
            self._note(index, value)
        self._note_objects()

    def declare_dynamic(self, names: tuple[str, ...] | str) -> None:
        """Remember the arguments that are meant to change.

        Raises:
            LaunchError: The kernel has no argument of that name.
        """
        if names != self.dynamic_names:
            self.dynamic = frozenset(argument_index(self.kernel, name) for name in as_names(names))
            self.dynamic_names = names

    def matches_layout(self, args: Sequence[Any], block_dim: int | None, max_blocks: int) -> bool:
        """Return whether the command can be patched to these arguments instead of being recorded again."""
        if block_dim != self.block_dim or max_blocks != self.max_blocks or len(args) != len(self.args):
            return False
        generic = self.kernel.is_generic
        return all(new is old or _same_layout(new, old, generic) for new, old in zip(args, self.args, strict=True))

    def takes(self, index: int, value: Any) -> bool:
        """Return whether the command can be patched to one other argument instead of being recorded again."""
        old = self.args[index]
        return value is old or _same_layout(value, old, self.kernel.is_generic)

    def refresh(self, args: Sequence[Any], dim: Dim) -> bool:
        """Patch what differs from the recorded arguments into the command; return whether anything did.

        Where this raises, the command may be patched in part: it must not be launched any more.
        """
        patched = dynamic = False
        for index, (new, old) in enumerate(zip(args, self.args, strict=True)):
            if self._differs(index, new, old):
                self.patch(index, new)
                if index in self.dynamic:
                    dynamic = True
                else:
                    patched = True
        patched |= self.set_dim(dim)
        self.stats.patched += patched
        self.stats.dynamic += dynamic
        return patched or dynamic

    def split(self, num_inputs: int) -> None:
        """Expect so many of the arguments as inputs, and the others as outputs."""
        if num_inputs != self.num_inputs:
            self.num_inputs = num_inputs
            self._note_objects()

    def set_dim(self, dim: Dim) -> bool:
        """Set the number of threads; return whether it is another one."""
        changed = extents(dim) != extents(self.dim)
        if changed:
            self.command.set_dim(dim)
        self.dim = dim
        return changed

    def patch(self, index: int, value: Any) -> None:
        """Replace one argument."""
        self.command.set_param_at_index(index, value)
        self.args[index] = value
        if self.signatures is not None:
            self.signatures[index] = ArgumentSignature.of(value, self.declared[index])
        self._note(index, value)
        self._note_objects()

    def snapshot(self) -> None:
        """Remember the signatures of the arguments and what the threads cover, for :meth:`verify`."""
        self.covered = covered_arrays(self.args, self.dim)
        self.signatures = [ArgumentSignature.of(*pair) for pair in zip(self.args, self.declared, strict=True)]
        self.same = never_same

    def verify(self, owner: str, args: Sequence[Any] | None = None, dim: Dim | None = None) -> None:
        """Compare everything about the arguments with what was recorded.

        Raises:
            LaunchError: There are more threads than elements of an array that had one for each when it was recorded.
            StaleArgumentError: The number of arguments, or anything about one of them, changed.
        """
        if self.signatures is None:
            self.snapshot()
        assert self.signatures is not None
        received = self.args if args is None else args
        if len(received) != len(self.signatures):
            self._raise_stale(owner, "(count)", len(self.signatures), len(received))
        for index, (recorded, value) in enumerate(zip(self.signatures, received, strict=True)):
            if index in self.dynamic:
                continue
            signature = ArgumentSignature.of(value, self.declared[index])
            if signature != recorded:
                self._raise_stale(owner, self.kernel.adj.args[index].label, recorded, signature)
        if dim is not None and dim != self.dim:
            check_dim(self.kernel, received, self.covered, dim)

    def _note(self, index: int, value: Any) -> None:
        """Remember by what a change of an argument is to be told."""
        if is_constant(value) and index not in self.volatile and index not in self.arrays:
            return
        self.volatile.pop(index, None)
        self.arrays.pop(index, None)
        self.known.pop(index, None)
        if type(value) is wp.array:
            self.arrays[index], self.known[index] = value, value.ctype
        elif not (is_constant(value) or is_struct(value) or self._reads_in_place(index, value)):
            self.volatile[index] = ArgumentSignature.of(value, self.declared[index])

    def _note_objects(self) -> None:
        looks = bool(self.volatile) or self.signatures is not None
        self.same = never_same if looks else same_arguments(self.num_inputs, len(self.args), tuple(self.known))
        self.objects = (*self.args, *self.known.values())

    def _reads_in_place(self, index: int, value: Any) -> bool:
        """Return whether the command refers to a vector or matrix itself: Warp copies those that it has to convert."""
        return isinstance(value, ctypes.Array) and type(value) is self.declared[index]

    def _differs(self, index: int, new: Any, old: Any) -> bool:
        """Return whether the command has to be given an argument anew."""
        known = self.volatile.get(index)
        if new is old:
            if known is None:
                return index in self.arrays and self.arrays[index].ctype is not self.known[index]
            return not known.comparable or ArgumentSignature.of(new, self.declared[index]) != known
        if isinstance(new, wp.array) or isinstance(old, wp.array) or is_struct(new):
            return True
        signature = ArgumentSignature.of(new, self.declared[index])
        if known is None:
            known = ArgumentSignature.of(old, self.declared[index])
        if not signature.comparable or signature != known:
            return True
        if index in self.volatile:
            self.args[index] = new  # another object with the same storage: this one keeps it alive now
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


def argument_index(kernel: wp.Kernel, name: str) -> int:
    """Return the position of a kernel's argument.

    Raises:
        LaunchError: The kernel has no argument of that name.
    """
    names = [parameter.label for parameter in kernel.adj.args]
    if name not in names:
        raise LaunchError(f"kernel {kernel.key!r} has no argument {name!r}; allowed: {', '.join(names)}")
    return names.index(name)


def as_names(names: Sequence[str] | str) -> tuple[str, ...]:
    """Return names as a tuple; one name may come as it is."""
    return (names,) if isinstance(names, str) else tuple(names)


def check_argument_lists(kernel: wp.Kernel, **lists: Any) -> None:
    """Refuse a single argument where a list of them belongs.

    Raises:
        LaunchError: One of the lists is an array, a number, or any other single thing.
    """
    for name, values in lists.items():
        if hasattr(values, "shape") or is_struct(values) or isinstance(values, str) or not hasattr(values, "__iter__"):
            raise LaunchError(
                f"kernel {kernel.key!r}: {name} is a list of arguments, received a {type(values).__name__}: write "
                f"{name}=[...] around it"
            )


def check_site(kernel: wp.Kernel, site: Any) -> None:
    """Refuse a site that can't be a key.

    Raises:
        LaunchError: It can't be hashed.
    """
    try:
        hash(site)
    except TypeError:
        raise LaunchError(
            f"kernel {kernel.key!r}: the site {site!r} can't be hashed: name it with a string, a number, or a tuple of "
            f"these"
        ) from None


def _same_layout(new: Any, old: Any, generic: bool) -> bool:
    if not generic and is_scalar(new) and is_scalar(old):
        return True
    if type(new) is not type(old):
        return False
    same_dtype: bool = getattr(new, "dtype", None) == getattr(old, "dtype", None)
    return same_dtype and getattr(new, "ndim", None) == getattr(old, "ndim", None)
