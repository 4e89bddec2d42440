"""Torch code inside a captured stage: never lost."""

from __future__ import annotations

import pytest
import torch
import warp as wp

from treadle.launch import Stage, torch_stream

from . import support
from .support import N, buffer, same_bits, zeros


class Program:
    """Warp launches with torch code between them, which counts how often it took effect."""

    def __init__(self, device, code, mode="auto"):
        self.device = device
        self.scope = support.scope(device, mode=mode)
        self.x, self.out, self.expected = buffer(device), zeros(device), zeros(device)
        self.view, self.view_expected = wp.to_torch(self.out), wp.to_torch(self.expected)
        self.code = code
        self.pipeline = self.scope.pipeline([Stage("before", self.before), Stage("torch", self.stage)])

    def before(self):
        self.scope.launches.launch(support.add, N, [self.x, 2.0], [self.out], site="before")

    def stage(self):
        self.scope.launches.launch(support.add, N, [self.x, 1.0], [self.out])
        self.code(self.view)

    def run(self, calls):
        for _ in range(calls):
            with torch_stream(self.device):
                self.pipeline.run()
            torch_synchronize(self.device)
            for s in (2.0, 1.0):
                wp.launch(support.add, N, [self.x, s, self.expected], device=self.device)
            wp.synchronize_device(self.device)
            self.code(self.view_expected)
            torch_synchronize(self.device)
        assert same_bits(self.out, self.expected)


def torch_synchronize(device):
    if device.is_cuda:
        torch.cuda.synchronize()


def swallowing(view):
    try:
        view.add_(1.0)
    except Exception:
        pass


def through_numpy(view):
    view.numpy()[:] += 1.0


def through_list(view):
    for i, value in enumerate(view.tolist()):
        view.data_ptr()
        wp.from_torch(view).numpy()[i] = value + 1.0


CODE = {
    "in place": (lambda view: view.add_(1.0), "aten.add_.Tensor"),
    "item": (
        lambda view: view.__setitem__(0, 1.0 if view[1].item() > 2.0 else 2.0),
        "aten._local_scalar_dense.default",
    ),
    "of a view": (lambda view: view[2:].mul_(0.5), "aten.mul_.Tensor"),
    "out of place": (lambda view: view.copy_(view * 0.5 + 1.0), "aten.mul.Tensor"),
    "swallowed": (swallowing, "aten.add_.Tensor"),
    "numpy": (through_numpy, "Tensor.numpy"),
    "list": (through_list, "Tensor.tolist"),
}


@pytest.mark.parametrize("code", CODE)
def test_on_the_cpu_it_takes_the_stage_out_of_its_island(code):
    device = wp.get_device("cpu")
    run, operation = CODE[code]
    program = Program(device, run)
    program.run(6)
    assert program.scope.graphs.has_graph(("before",))
    assert program.pipeline.describe() == (
        f"before: graph\ntorch: no graph: torch operation {operation} inside a captured stage: "
        "it would run once, at the capture, and never again"
    )


def test_views_and_pointers_are_no_computation(device):
    scope, out, tensor = support.scope(device), zeros(device), torch.ones(2 * N, device=str(device))

    def stage():
        scope.launches.launch(support.add, N, [wp.from_torch(tensor[N:].detach()), 1.0], [out])

    for _ in range(4):
        scope.graphs.run("stage", stage)
    assert scope.graphs.has_graph("stage")


def test_a_tensor_of_the_host_in_a_graph_of_the_device(device):
    counter = torch.zeros(1)
    program = Program(device, lambda view: counter.add_(1.0))
    program.run(5)
    assert counter.item() == 10.0
    assert "torch operation aten.add_.Tensor" in program.pipeline.describe()


@pytest.mark.gpu
@pytest.mark.parametrize("stream", ["legacy", "side"])
@pytest.mark.parametrize("code", ["in place", "of a view", "out of place"])
def test_on_cuda_it_is_part_of_the_graph(code, stream):
    device = wp.get_device("cuda:0")
    torch.zeros(1, device="cuda:0")  # torch has to know the device before a capture
    with torch.cuda.stream(torch.cuda.Stream() if stream == "side" else torch.cuda.default_stream()):
        program = Program(device, CODE[code][0])
        torch.cuda.synchronize()
        program.run(6)
    assert program.pipeline.describe() == "before + torch: graph"


@pytest.mark.gpu
def test_memory_of_a_captured_temporary_is_given_to_nobody_else():
    device = wp.get_device("cuda:0")
    torch.zeros(1, device="cuda:0")
    program = Program(device, lambda view: view.copy_(view * 0.5 + 1.0))
    program.run(3)
    torch.cuda.empty_cache()
    others = []
    for value in range(200):
        others.append((value, torch.full((N,), float(value), device="cuda:0")))
        program.run(1)
    torch.cuda.synchronize()
    assert all(bool((tensor == float(value)).all()) for value, tensor in others)


@pytest.mark.gpu
def test_capture_and_destroy_with_torch_keeps_memory_constant():
    device = wp.get_device("cuda:0")
    torch.zeros(1, device="cuda:0")

    def cycle():
        program = Program(device, lambda view: view.copy_(view * 0.5 + 1.0))
        program.run(3)
        program.scope.close()

    for _ in range(5):
        cycle()
    torch.cuda.synchronize()
    reserved = torch.cuda.memory_reserved()
    for _ in range(50):
        cycle()
    torch.cuda.synchronize()
    assert torch.cuda.memory_reserved() <= reserved


@pytest.mark.gpu
def test_a_read_back_on_cuda_leaves_everything_usable():
    device = wp.get_device("cuda:0")
    torch.zeros(1, device="cuda:0")
    program = Program(device, CODE["item"][0])
    program.run(6)
    assert "torch: no graph" in program.pipeline.describe()
    torch.ones(4, device="cuda:0").sum().item()
    again = Program(device, CODE["in place"][0])
    again.run(5)
    assert again.pipeline.describe() == "before + torch: graph"
