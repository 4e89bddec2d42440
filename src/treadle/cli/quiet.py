"""Starting Warp without its greeting."""

from __future__ import annotations

import os
import sys
import tempfile

from treadle.errors import ConfigError

__all__ = ["start_warp"]

_NO_DRIVER = b"Could not find or load the NVIDIA CUDA driver"


def start_warp() -> None:
    """Initialize Warp, once, with nothing but warnings and errors.

    A machine without a GPU is no reason for a warning, but Warp's library writes one, past Python and whatever the log
    level is. So what it writes while it starts is read, and passed on without that line.

    Raises:
        ConfigError: There is no place for Warp's kernels.
    """
    import warp as wp

    wp.config.log_level = max(wp.config.log_level, wp.LOG_WARNING)
    try:
        kept = os.dup(2)
    except OSError:  # stderr is closed, so nobody reads it
        _init()
        return
    sys.stderr.flush()
    with tempfile.TemporaryFile() as written:
        os.dup2(written.fileno(), 2)
        try:
            _init()
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)
            written.seek(0)
            lines = written.read().splitlines(keepends=True)
            os.write(2, b"".join(line for line in lines if _NO_DRIVER not in line))


def _init() -> None:
    import warp as wp

    try:
        wp.init()
    except OSError as error:
        raise ConfigError(
            f"Warp cannot make its directory of compiled kernels: {error.filename}: {error.strerror}; "
            "set WARP_CACHE_PATH to a directory that can be written"
        ) from error
