"""What torch may do while Warp captures a graph."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Iterator
from typing import Any

import warp as wp

from treadle.launch.errors import LaunchError

__all__ = ["TorchGuard"]

_READ_BACKS = ("__array__", "numpy", "tolist")
"""Methods of a tensor that give its data to Python or NumPy without a torch operation."""


class TorchGuard:
    """Keeps torch code in a captured function from being lost.

    A graph knows what Warp launched, and on CUDA whatever else was issued on the stream that is captured. So

    * on the CPU each torch operation but a view is refused: it would run at the capture and never again;
    * on CUDA torch works on the captured stream, and what it allocates comes from a memory pool of its own
      (``torch.cuda.MemPool``), which lives as long as the graph does: a freed temporary is never given to somebody
      else while a graph still writes it. Only operations on CPU tensors are refused.

    Torch is never imported here: what is not imported can't have been called.
    """

    def __init__(self, device: wp.Device):
        self.device = device
        self.refused: str | None = None
        """The first operation that was refused; the function may have swallowed the error."""
        self.pool: Any = None
        """Torch's memory pool of this capture; whoever keeps the graph keeps the pool."""

    @contextlib.contextmanager
    def watching(self, stream: wp.Stream | None) -> Iterator[None]:
        """Watch torch, and on CUDA make it work on the captured stream.

        Raises:
            LaunchError: An operation was refused, whether or not the function let the error pass.
        """
        torch = sys.modules.get("torch")
        if torch is None or not hasattr(torch, "overrides"):  # absent, or half imported
            yield
            return
        dispatch_mode, function_mode = _modes()
        with self._on_stream(torch, stream), function_mode(self), dispatch_mode(self):
            yield
        if self.refused is not None:
            raise LaunchError(self.refused)

    def refuse(self, operation: str) -> None:
        """Fail the capture.

        Raises:
            LaunchError: Always.
        """
        reason = "it would run once, at the capture, and never again"
        self.refused = self.refused or f"torch operation {operation} inside a captured stage: {reason}"
        raise LaunchError(self.refused)

    @contextlib.contextmanager
    def _on_stream(self, torch: Any, stream: wp.Stream | None) -> Iterator[None]:
        if stream is None or not torch.cuda.is_initialized():
            yield
            return
        self.pool = torch.cuda.MemPool()
        ordinal = self.device.ordinal
        with torch.cuda.stream(wp.stream_to_torch(stream)), torch.cuda.use_mem_pool(self.pool, device=ordinal):
            yield


@functools.cache
def _modes() -> tuple[type, type]:
    """Return the modes that see operations, and what is none. A class lives until it is collected: make two, once."""
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    class DispatchMode(TorchDispatchMode):
        """Sees each operation, those inside of other operations included."""

        def __init__(self, guard: TorchGuard):
            super().__init__()
            self.guard = guard

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            if func.is_view:
                return func(*args, **kwargs)
            if self.guard.device.is_cpu or _is_on_host((*args, *kwargs.values())):
                self.guard.refuse(str(func))
            result = func(*args, **kwargs)
            if _is_on_host(result):
                self.guard.refuse(str(func))
            return result

    class FunctionMode(TorchFunctionMode):
        """Sees what is no operation: giving the data to NumPy or Python."""

        def __init__(self, guard: TorchGuard):
            super().__init__()
            self.guard = guard

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = getattr(func, "__name__", None)
            if name in _READ_BACKS:
                self.guard.refuse(f"Tensor.{name}")
            return func(*args, **(kwargs or {}))

    return DispatchMode, FunctionMode


def _is_on_host(value: Any) -> bool:
    """Return whether a value is, or a list of them holds, a tensor of the CPU."""
    if isinstance(value, list | tuple):
        return any(map(_is_on_host, value))
    return isinstance(value, sys.modules["torch"].Tensor) and value.device.type == "cpu"
