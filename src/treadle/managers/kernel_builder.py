"""Generating one readable kernel from the functions of many terms."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import linecache
import os
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import warp as wp

from treadle.errors import ConfigError
from treadle.launch import BoundLaunch, LaunchScope
from treadle.managers.source_text import wrapped

__all__ = ["FusedKernel", "KernelBuilder", "compile_kernel", "load_kernels", "type_name"]


_LOCALS = frozenset("wp env thread i k step x y rng lag draw weight value holds is_terminal is_time_out".split())
"""Names that generated lines use for themselves."""
_numbers = itertools.count()
"""Tells the texts of kernels apart, several of which may be equal."""
_MOST_BYTES = 32_764
"""Arguments that a kernel may take on GPUs from Volta on, with CUDA 12.1 or later; 4 KiB before."""
_DECORATOR = '@wp.kernel(module="unique", enable_backward=False)'


class KernelBuilder:
    """Collects the arguments and the lines of a kernel with one thread per environment, or several.

    Args:
        name: Name of the kernel.
        doc: First line of its docstring.
        threads: Threads per environment, whose number is ``thread``; 0 for a single one without a number.
    """

    def __init__(self, name: str, doc: str, threads: int = 0):
        self.name = name
        self._threads = threads
        self._doc = doc
        self._values: dict[str, Any] = {}
        self._late: dict[str, Callable[[], Any]] = {}
        self._annotations: dict[str, str] = {}
        self._names: dict[int, str] = {}
        self._functions: dict[str, Any] = {}
        self._locals: set[str] = set()
        self._lines: list[str] = []
        self._indent = 1
        self._kept: list[Any] = []

    @property
    def is_empty(self) -> bool:
        """Whether no line was added."""
        return not self._lines

    def line(self, text: str = "") -> None:
        """Add a line at the current indentation."""
        self._lines.append("    " * self._indent + text if text else "")

    def comment(self, text: str) -> None:
        """Add a blank line and a comment."""
        if self._lines and not self._lines[-1].rstrip().endswith(":"):
            self.line()
        self.line(f"# {text}")

    @contextlib.contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Add a line such as ``if x:`` and indent what follows within the context."""
        self.line(head)
        self._indent += 1
        try:
            yield
        finally:
            self._indent -= 1

    def argument(self, name: str, value: Any) -> str:
        """Return the name under which the kernel takes an array, a struct or a number.

        Args:
            name: Suggestion; another one is found where it is taken by another value.
            value: The value. The same object is the same argument.
        """
        if id(value) in self._names:
            return self._names[id(value)]
        name = self._free_name(name)
        self._names[id(value)] = name
        self._values[name] = value
        self._annotations[name] = self._annotation(value)
        return name

    def local(self, name: str) -> str:
        """Return the name of a new variable.

        Args:
            name: Suggestion; another one is found where it is taken.
        """
        name = self._free_name(name)
        self._locals.add(name)
        return name

    def type(self, dtype: Any) -> str:
        """Return the name under which the kernel constructs a vector or a matrix."""
        return type_name(dtype, self._functions)

    def params(self, params: Any) -> str:
        """Return the name of the array of a :class:`DeviceParams`, which is read when the kernel is built."""
        if id(params) not in self._names:
            name = self._free_name(params.name)
            self._names[id(params)] = name
            self._kept.append(params)
            self._late[name] = lambda: params.array
            self._annotations[name] = "wp.array[float]"
        return self._names[id(params)]

    def function(self, func: wp.Function) -> str:
        """Return the name under which the kernel calls a Warp function."""
        name = base = func.key.rpartition(".")[2].lstrip("_") or "term"
        number = 1
        taken = {*self._annotations, *self._locals, *_LOCALS}
        while self._functions.get(name, func) is not func or name in taken:
            number += 1
            name = f"{base}_{number}"
        self._functions[name] = func
        return name

    def source(self) -> str:
        """Return the text of the kernel."""
        arguments = "".join(f"    {name}: {annotation},\n" for name, annotation in self._annotations.items())
        lines = ["", *self._lines] if self._lines and self._lines[0].lstrip().startswith("#") else self._lines
        body = "\n".join(text for line in lines for text in wrapped(line))
        index = "env, thread" if self._threads else "env"
        head = f'{_DECORATOR}\ndef {self.name}(\n{arguments}):\n    """{self._doc}"""'
        return f"{head}\n    {index} = wp.tid()\n{body}\n"

    def build(self, scope: LaunchScope, num_envs: int) -> FusedKernel:
        """Return the kernel, which is compiled and bound when it is first launched.

        Raises:
            ConfigError: The arguments are larger than a GPU takes.
        """
        values = [self._late[name]() if name in self._late else self._values[name] for name in self._annotations]
        if (size := sum(map(_size, values))) > _MOST_BYTES:
            raise ConfigError(
                f"kernel {self.name} has {len(values)} arguments of {size} B; allowed: {_MOST_BYTES} B, so fewer terms "
                f"that have selections and buffers of their own"
            )
        dim = (num_envs, self._threads) if self._threads else num_envs
        return FusedKernel(self.name, self.source(), self._functions, values, scope, dim)

    def _free_name(self, name: str) -> str:
        base, number = name, 1
        taken = {*self._annotations, *self._functions, *self._locals, *_LOCALS}
        while name in taken:
            number += 1
            name = f"{base}_{number}"
        return name

    def _annotation(self, value: Any) -> str:
        if isinstance(value, wp.array):
            rank = "" if value.ndim == 1 else f"{value.ndim}d"
            return f"wp.array{rank}[{type_name(value.dtype, self._functions)}]"
        if (struct := getattr(value, "_cls", None)) is not None:
            name = str(struct.cls.__name__)
            self._functions[name] = struct
            return name
        return {bool: "wp.bool", int: "int", float: "float"}.get(type(value)) or type_name(type(value), self._functions)


class FusedKernel:
    """A generated kernel with its arguments.

    Args:
        name: Name of the kernel.
        source: Its text.
        functions: Warp functions and structs that the text names.
        values: Its arguments.
        scope: Owner of the launch.
        dim: Number of threads: environments, or environments times threads of each.
    """

    def __init__(
        self,
        name: str,
        source: str,
        functions: dict[str, Any],
        values: list[Any],
        scope: LaunchScope,
        dim: int | tuple[int, int],
    ):
        self.name = name
        self.source = source
        self._functions = functions
        self._kernel: wp.Kernel | None = None
        self._values = values
        self.scope = scope
        self._dim = dim
        self._bound: BoundLaunch | None = None

    @property
    def kernel(self) -> wp.Kernel:
        """What the text was compiled to."""
        if self._kernel is None:
            self._kernel = compile_kernel(self.name, self.source, self._functions, self)
        return self._kernel

    def is_like(self, other: FusedKernel) -> bool:
        """Return whether another kernel has the same text and arguments."""
        same = len(self._values) == len(other._values) and all(
            a is b or (isinstance(a, int | float) and a == b) for a, b in zip(self._values, other._values, strict=True)
        )
        return same and self.source == other.source and self._functions == other._functions

    def launch(self) -> None:
        """Launch the kernel."""
        if self._bound is None:
            self._bound = self.scope.launches.bind(self.kernel, self._dim, self._values)
        self._bound()


def _size(value: Any) -> int:
    """Return the size of an argument of a kernel [B]."""
    if isinstance(value, bool | int | float):
        return 8
    plain = value._ctype if hasattr(value, "_cls") else value.__ctype__() if isinstance(value, wp.array) else value
    return ctypes.sizeof(plain)


def load_kernels(kernels: Iterable[FusedKernel], device: wp.DeviceLike) -> None:
    """Compile kernels, several at a time, and load them, so that the first step does not wait for that.

    Raises:
        ConfigError: Warp refuses a kernel, as it does where a term's function returns another type than it says.
    """
    kernels = list(kernels)
    try:
        modules = [kernel.kernel.module for kernel in kernels]
        wp.force_load(device, modules=modules, max_workers=_workers(device, len(modules)))
    except Exception as error:
        name = next((kernel.name for kernel in kernels if _is_refused(kernel, device)), "unknown")
        raise ConfigError(f"Warp refuses the generated kernel {name}: {error}") from error


def _is_refused(kernel: FusedKernel, device: wp.DeviceLike) -> bool:
    """Return whether Warp refuses this kernel, of those that were to be loaded together."""
    try:
        wp.force_load(device, modules=[kernel.kernel.module], max_workers=0)
    except Exception:
        return True
    return False


def _workers(device: wp.DeviceLike, count: int) -> int:
    """Return how many threads load modules. On the CPU each would leave a folder of precompiled headers behind."""
    return 0 if wp.get_device(device).is_cpu else min(count, os.cpu_count() or 1)


def compile_kernel(name: str, source: str, functions: dict[str, Any], owner: Any = None) -> wp.Kernel:
    """Return the kernel of a text, whose lines tracebacks and Warp's code generation can read.

    Args:
        name: Name of the kernel.
        source: Definition of the kernel, decorator included.
        functions: Warp functions and structs that the text names.
        owner: Object with which the lines go; ``None`` keeps them.
    """
    filename = f"<treadle kernel {name} {next(_numbers)}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    if owner is not None:
        weakref.finalize(owner, linecache.cache.pop, filename, None).atexit = False
    namespace: dict[str, Any] = {"wp": wp, "__name__": f"treadle.generated.{name}", **functions}
    exec(compile(source, filename, "exec"), namespace)
    kernel: wp.Kernel = namespace[name]
    return kernel


def type_name(dtype: Any, namespace: dict[str, Any]) -> str:
    """Return the name of a Warp type in generated text, and put a type of no public name into its namespace."""
    name = str(getattr(dtype, "__name__", dtype))
    if dtype in (int, float, bool, wp.int32, wp.float32):
        return name.removesuffix("32")
    if getattr(wp, name, None) is dtype:
        return f"wp.{name}"
    if (shape := getattr(dtype, "_shape_", None)) is not None:
        name = ("vec" if len(shape) == 1 else "mat") + "x".join(str(size) for size in shape)
    namespace[name] = dtype
    return name
