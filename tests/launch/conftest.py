"""Fixtures of the launch layer's tests."""

from __future__ import annotations

import gc

import pytest


@pytest.fixture(autouse=True, scope="session")
def _small_collections():
    """Each capture collects garbage: spare it the objects of the imported libraries, a tenth of a second each time."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
