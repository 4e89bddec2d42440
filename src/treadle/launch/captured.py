"""What a graph under capture uses, noted by the launch caches of its owner."""

from __future__ import annotations

import ctypes
import itertools
import weakref
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import warp as wp

from treadle.launch.dims import Dim, extents
from treadle.launch.errors import StaleArgumentError
from treadle.launch.exclusive import OPEN_CAPTURE
from treadle.launch.inputs import Inputs, KnownInputs, read_inputs
from treadle.launch.modules import LoadedModule
from treadle.launch.pointers import CachedPointer, captured_pointers
from treadle.launch.signature import ArgumentSignature, is_constant, is_struct, leaves

__all__ = ["CaptureLog", "CapturedLaunches"]


_PASSED_WAYS_OUT = (
    "The graph does not run the function again and can't see what it passes now: declare what may change in "
    "Stage(inputs=...), or in inputs= of GraphCache.run, so that it is captured again, and in dynamic=(...) of its "
    "launch; or call invalidate() after replacing it"
)


@dataclass(frozen=True)
class _CapturedLaunch:
    owner: str
    kernel: wp.Kernel
    site: Hashable
    dim: Dim
    args: list[Any]
    declared: list[Any]
    signatures: list[ArgumentSignature] = field(default_factory=list)

    def compare(self, args: Sequence[Any]) -> Iterator[tuple[str, ArgumentSignature, ArgumentSignature]]:
        """Yield the name of each argument that differs from what was captured, what it was and what it is."""
        for parameter, declared, recorded, arg in zip(
            self.kernel.adj.args, self.declared, self.signatures, args, strict=True
        ):
            received = ArgumentSignature.of(arg, declared)
            if received != recorded and received.comparable:
                yield parameter.label, recorded, received

    def raise_stale(self, argument: str, recorded: object, received: object, ways_out: str | None = None) -> NoReturn:
        raise StaleArgumentError(
            owner=self.owner,
            kernel=self.kernel.key,
            site=self.site,
            argument=argument,
            recorded=f"{recorded} in a captured graph",
            received=str(received),
            ways_out=ways_out or StaleArgumentError.WAYS_OUT,
        )


class CapturedLaunches:
    """The launches that went into one graph. It keeps their arguments alive for as long as the graph lives.

    Args:
        probing: Whether the capture is thrown away: launch caches then only note what they are called with.
        held: What the graph holds that such a capture is compared with. What the function replaces on purpose
            meanwhile, it replaced in the capture of that graph as well.
    """

    def __init__(self, *, probing: bool = False, held: CapturedLaunches | None = None) -> None:
        self.probing = probing
        self.held = held
        self.outdated = False
        """Whether an owner replaced, on purpose, something that the graph has baked in."""
        self._launches: list[_CapturedLaunch] = []
        self._alive: list[Any] = []
        self._sources: set[object] = set()
        self._modules: list[LoadedModule] = []
        self._changeable: dict[int, tuple[Any, Any, object]] = {}
        self._inputs: list[Inputs] = []
        self._known_inputs: list[KnownInputs] = []

    def note(
        self,
        owner: str,
        kernel: wp.Kernel,
        site: Hashable,
        args: Sequence[Any],
        declared: Sequence[Any],
        source: object,
        dim: Dim = 1,
    ) -> None:
        """Remember a launch of the graph.

        Args:
            owner: Name of the launch cache.
            kernel: The kernel.
            site: The site.
            args: The arguments.
            declared: Their types in the kernel.
            source: The launch cache; see :meth:`add_source`.
            dim: Number of threads.
        """
        self._launches.append(_CapturedLaunch(owner, kernel, site, dim, list(args), list(declared)))
        self._alive.extend(leaf for value in args for leaf in leaves(value))
        self.add_source(source)

    @property
    def count(self) -> int:
        """How many launches there are so far."""
        return len(self._launches)

    def since(self, start: int) -> CapturedLaunches:
        """Return the launches from one on, to be compared."""
        part = CapturedLaunches()
        part._launches = self._launches[start:]
        return part

    def seal(self) -> None:
        """Remember the arguments as the capture leaves them: a function may write a struct between two launches."""
        for launch in self._launches:
            pairs = list(zip(launch.args, launch.declared, strict=True))
            launch.signatures.extend(ArgumentSignature.of(*pair) for pair in pairs)
            for value, declared in pairs:
                if type(value) is not wp.array and not is_constant(value):
                    self._changeable[id(value)] = (value, declared, _fingerprint(value, declared))

    def add_inputs(self, inputs: Inputs) -> None:
        """Remember what a run inside the captured function declares: the graph depends on it."""
        if callable(inputs) or len(inputs):
            self._inputs.append(inputs)

    def seal_inputs(self) -> None:
        """Remember the inputs of the runs inside as they are after the capture, which is how they are looked at later.

        Raises:
            LaunchError: One of them can't be compared.
        """
        self._known_inputs = [KnownInputs(read_inputs(inputs)) for inputs in self._inputs]

    @property
    def inputs_changed(self) -> bool:
        """Whether an input of a run inside is another one now."""
        if not self._inputs:
            return False
        for known, inputs in zip(self._known_inputs, self._inputs, strict=True):
            if not known.match(read_inputs(inputs)):
                return True
        return False

    @property
    def inputs_then(self) -> tuple[object, ...]:
        """Signatures of the inputs of the runs inside, as they were at the capture."""
        return tuple(known.signature for known in self._known_inputs)

    @property
    def inputs_now(self) -> tuple[object, ...]:
        """The same as they are now."""
        return tuple(KnownInputs(read_inputs(inputs)).signature for inputs in self._inputs)

    def depends_on(self, module: LoadedModule) -> None:
        """Remember the code that a launch of the graph runs."""
        if not any(module.executable is known.executable for known in self._modules):
            self._modules.append(module)

    @property
    def reloaded(self) -> bool:
        """Whether a module of the graph has other code now: its options changed, or it was unloaded."""
        for module in self._modules:  # a generator would cost as much as the launch of a small graph on the CPU
            if module.changed:
                return True
        return False

    def keep(self, thing: object) -> None:
        """Keep something alive for as long as the graph lives."""
        self._alive.append(thing)

    def pointers(self) -> Iterator[CachedPointer]:
        """Yield the pointers that the graph has baked in."""
        for launch in self._launches:
            pairs = zip(launch.args, launch.declared, strict=True)
            lives = [ArgumentSignature.of(value, declared) for value, declared in pairs]
            yield from captured_pointers(launch.owner, launch.kernel, launch.site, launch.signatures, lives)

    @property
    def kernel_names(self) -> list[str]:
        """Names of the kernels, in launch order."""
        return [launch.kernel.key for launch in self._launches]

    def add_source(self, source: object) -> None:
        """Remember a launch cache or a bound launch that the graph depends on."""
        self._sources.add(source)

    def uses(self, source: object) -> bool:
        """Return whether the graph depends on a launch cache or a bound launch."""
        return source in self._sources

    def moved(self) -> bool:
        """Return whether an argument that can change behind its identity (a struct, a vector, a tensor) did so."""
        for value, kind, known in self._changeable.values():
            if _fingerprint(value, kind) != known:
                return True
        return False

    def compare(self, probe: CapturedLaunches) -> None:
        """Compare what the function launches now with what the graph holds.

        Args:
            probe: What the caches noted when the function ran again.

        Raises:
            StaleArgumentError: The function launches other kernels, or with other arguments or dimensions.
        """
        for held, now in itertools.zip_longest(self._launches, probe._launches):
            if held is None or now is None or (held.kernel, held.site) != (now.kernel, now.site):
                (held or now).raise_stale("(launch)", _described(held), _described(now), _PASSED_WAYS_OUT)
            if extents(held.dim) != extents(now.dim):
                held.raise_stale("dim", held.dim, now.dim, _PASSED_WAYS_OUT)
            for label, recorded, received in held.compare(now.args):
                held.raise_stale(label, recorded, received, _PASSED_WAYS_OUT)

    def verify(self) -> None:
        """Compare the arguments with what the graph has baked in.

        Raises:
            StaleArgumentError: An argument was given other storage, or a struct other content, since the capture.
        """
        for launch in self._launches:
            for label, recorded, received in launch.compare(launch.args):
                launch.raise_stale(label, recorded, received)


class CaptureLog:
    """The graphs that hold launches of one owner and its children. The caches of these share it."""

    def __init__(self) -> None:
        self._captured: weakref.WeakSet[CapturedLaunches] = weakref.WeakSet()

    @property
    def open(self) -> CapturedLaunches | None:
        """Where launches are noted while this thread captures a graph, of whatever owner, or watches a run."""
        return OPEN_CAPTURE.launches

    def add(self, captured: CapturedLaunches) -> None:
        """Remember the launches of a graph for as long as the graph lives."""
        self._captured.add(captured)

    def outdate(self, source: object) -> None:
        """Mark the graphs that depend on a launch cache or a bound launch: what they have baked in is replaced."""
        if not self._captured:
            return
        held = None if self.open is None else self.open.held
        for captured in list(self._captured):
            if captured is not held and captured.uses(source):
                captured.outdated = True


def _fingerprint(value: Any, declared: Any) -> object:
    """Return what a captured argument consists of, as cheaply as can be: it is compared at each launch of the graph."""
    if is_struct(value):
        return bytes(value._ctype)
    if isinstance(value, ctypes.Array | ctypes.Structure):
        return bytes(value)
    return ArgumentSignature.of(value, declared)


def _described(launch: _CapturedLaunch | None) -> str:
    if launch is None:
        return "no launch"
    return f"launch of {launch.kernel.key!r}" + ("" if launch.site is None else f" at site {launch.site!r}")
