"""Settings and fixtures of all tests."""

from __future__ import annotations

import os
import signal
import threading

# Before Warp and Treadle are imported. Tests that are about another contract ask for it.
os.environ.setdefault("TREADLE_LAUNCH_CONTRACT", "debug")

import pytest
import warp as wp

wp.config.log_level = wp.LOG_ERROR


# Jobs in the background of a script inherit ignored signals, and Treadle leaves ignored signals ignored.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(params=["cpu", pytest.param("cuda:0", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> wp.Device:
    """Each device that tests run on."""
    if request.param != "cpu" and not wp.is_cuda_available():
        pytest.skip("no CUDA device")
    return wp.get_device(request.param)
