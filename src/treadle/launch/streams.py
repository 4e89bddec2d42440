"""Ordering of Warp and torch work on a CUDA device."""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

import warp as wp

__all__ = ["torch_stream"]


def torch_stream(device: wp.DeviceLike = None) -> AbstractContextManager[Any]:
    """Return a context in which Warp and torch work on one stream of the device.

    What either library does inside is ordered by the stream, without a host synchronization, and so is what torch does
    before and after. Which stream it is depends on torch's current one:

    * Torch's default stream, or any other that synchronizes with CUDA's legacy stream: Warp works on it. Nothing is
      waited for.
    * A stream of ``torch.cuda.Stream()``: it does not synchronize with the legacy stream, and Warp frees memory in the
      order of the legacy stream, so an array that goes away could be handed out again while work on it is pending. So
      torch works on *Warp's* stream inside the context; an event on the way in and one on the way out order it with
      torch's own. A tensor that is made inside the context and used on yet another stream needs
      ``Tensor.record_stream``, as always.
    * The stream that Warp works on already, as inside of another such context or of a capture: nothing changes.

    On the CPU it does nothing.
    """
    resolved = wp.get_device(device)
    if not resolved.is_cuda:
        return contextlib.nullcontext()
    theirs = wp.stream_from_torch(_torch_current_stream(resolved.ordinal))
    if _handle(theirs) == _handle(resolved.stream):
        return contextlib.nullcontext()
    if _handle(theirs) == 0 or theirs.is_blocking:
        return wp.ScopedStream(theirs)
    return _OnWarpStream(resolved.stream, theirs)


class _OnWarpStream:
    """Makes torch work on Warp's stream, after what is pending on torch's own, which waits for it at the end."""

    def __init__(self, ours: wp.Stream, theirs: wp.Stream):
        self._ours, self._theirs = ours, theirs
        self._scope: AbstractContextManager[Any] = contextlib.nullcontext()

    def __enter__(self) -> wp.Stream:
        import torch

        self._ours.wait_stream(self._theirs)
        self._scope = torch.cuda.stream(wp.stream_to_torch(self._ours))
        self._scope.__enter__()
        return self._ours

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._scope.__exit__(exc_type, exc, traceback)
        self._theirs.wait_stream(self._ours)


def _handle(stream: wp.Stream) -> int:
    return int(stream.cuda_stream or 0)


def _torch_current_stream(ordinal: int) -> Any:
    import torch

    return torch.cuda.current_stream(ordinal)
