"""Starting Warp without its greeting."""

from __future__ import annotations

import os
import sys
import tempfile

__all__ = ["start_warp"]

_NO_DRIVER = b"Could not find or load the NVIDIA CUDA driver"


def start_warp() -> None:
    """Initialize Warp, once, with nothing but warnings and errors.

    A machine without a GPU is no reason for a warning, but Warp's library writes one, past Python and whatever the log
    level is. So what it writes while it starts is read, and passed on without that line.
    """
    import warp as wp

    wp.config.log_level = max(wp.config.log_level, wp.LOG_WARNING)
    try:
        kept = os.dup(2)
    except OSError:  # stderr is closed, so nobody reads it
        wp.init()
        return
    sys.stderr.flush()
    with tempfile.TemporaryFile() as written:
        os.dup2(written.fileno(), 2)
        try:
            wp.init()
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)
            written.seek(0)
            lines = written.read().splitlines(keepends=True)
            os.write(2, b"".join(line for line in lines if _NO_DRIVER not in line))
