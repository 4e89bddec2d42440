"""Ordering of Warp and torch work on a CUDA device."""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager
from typing import Any

import warp as wp

__all__ = ["torch_stream"]


def torch_stream(device: wp.DeviceLike = None) -> AbstractContextManager[Any]:
    """Return a context in which Warp launches on torch's current stream of the device.

    Work of both libraries is then ordered by the stream, without a host synchronization. On the CPU it does nothing.
    """
    resolved = wp.get_device(device)
    if not resolved.is_cuda:
        return contextlib.nullcontext()
    return wp.ScopedStream(wp.stream_from_torch(_torch_current_stream(resolved.ordinal)))


def _torch_current_stream(ordinal: int) -> Any:
    import torch

    return torch.cuda.current_stream(ordinal)
