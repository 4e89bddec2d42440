"""Which device is taken."""

from __future__ import annotations

import sys

import pytest
import torch
import warp as wp

from treadle.devices import resolve_device, usable_devices
from treadle.errors import ConfigError


@pytest.fixture
def machine(monkeypatch):
    """Return a function that pretends that Warp and torch see some GPUs."""

    def pretend(warp_gpus: int, torch_gpus: int) -> None:
        devices = ["cpu", *(f"cuda:{i}" for i in range(warp_gpus))]
        monkeypatch.setattr(wp, "get_devices", lambda: devices)
        monkeypatch.setattr(torch.cuda, "is_available", lambda: torch_gpus > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: torch_gpus)

    return pretend


@pytest.mark.parametrize(
    ("warp_gpus", "torch_gpus", "auto"), [(0, 0, "cpu"), (2, 2, "cuda:0"), (1, 0, "cpu"), (0, 1, "cpu")]
)
def test_auto_takes_what_both_can_use(machine, warp_gpus, torch_gpus, auto):
    machine(warp_gpus, torch_gpus)
    assert resolve_device("auto") == auto
    assert resolve_device("cpu") == "cpu"


def test_cuda_is_the_first_gpu(machine):
    machine(2, 2)
    assert (resolve_device("cuda"), resolve_device("cuda:1")) == ("cuda:0", "cuda:1")
    with pytest.raises(ConfigError, match=r"device is 'cuda:2'; allowed here: auto, cpu, cuda:0, cuda:1$"):
        resolve_device("cuda:2")


@pytest.mark.parametrize("device", ["cuda", "cuda:0"])
def test_a_gpu_that_torch_cannot_use_is_said(machine, monkeypatch, device):
    machine(1, 0)
    monkeypatch.setattr(torch.version, "cuda", None)
    message = rf"device is '{device}', which torch .* \(built without CUDA\) can't use; allowed here: auto, cpu$"
    with pytest.raises(ConfigError, match=message):
        resolve_device(device)


def test_without_torch_warp_alone_is_asked(machine, monkeypatch):
    machine(1, 0)
    monkeypatch.setitem(sys.modules, "torch", None)
    assert usable_devices() == ["cpu", "cuda:0"]
