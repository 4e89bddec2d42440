"""Fixtures of the launch layer's tests."""

from __future__ import annotations

import gc

import pytest
import warp as wp


@pytest.fixture(autouse=True, scope="session")
def _small_collections():
    """Each capture collects garbage: spare it the objects of the imported libraries, a tenth of a second each time."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def device(device: wp.Device) -> wp.Device:
    """Each device that kernels can be compiled for: of a Warp without LLVM, none for the CPU."""
    if device.is_cpu and not wp.is_cpu_available():
        pytest.skip("this Warp can't compile kernels for the CPU")
    return device
