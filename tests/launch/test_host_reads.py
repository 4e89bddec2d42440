"""Arrays that a captured stage reads on the host: never stale."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch
import warp as wp

from treadle.launch import CaptureWarning, LaunchError, Stage

from . import support
from .support import buffer, zeros

WATCHED = ("numpy", "list", "__array_interface__", "__dlpack__")


def swallowing(array):
    try:
        return array.numpy()[0]
    except LaunchError:
        return np.nan


READS = {
    "numpy": (lambda array: array.numpy()[0], ".numpy()"),
    "list": (lambda array: array.list()[0], ".list()"),
    "asarray": (lambda array: np.asarray(array)[0], "NumPy"),
    "dlpack": (lambda array: np.from_dlpack(array)[0], "DLPack"),
    "text": (lambda array: float(str(array).strip("[]").split()[0]), ".numpy()"),
    "swallowed": (swallowing, ".numpy()"),
}


class Program:
    """A stage that remembers what it reads, after one that does not read."""

    def __init__(self, device, read, capture=True, mode="auto"):
        self.out, self.seen, self.read = zeros(device), [], read
        self.scope = support.scope(device, mode=mode)
        stages = [Stage("count", self.count), Stage("read", self.stage, capture=capture)]
        self.pipeline = self.scope.pipeline(stages)

    def count(self):
        self.scope.launches.launch(support.count, 1, [], [self.out])

    def stage(self):
        self.count()
        value = float(self.read(self.out))
        if not np.isnan(value):
            self.seen.append(value)


@pytest.mark.parametrize("capture", [True, None])
@pytest.mark.parametrize("read", READS)
def test_a_read_takes_the_stage_out_of_the_graphs(read, capture):
    function, how = READS[read]
    program = Program(wp.get_device("cpu"), function, capture)
    for call in range(1, 7):
        program.pipeline.run()
        assert program.seen[-1] == 2.0 * call
    assert program.scope.graphs.has_graph(("count",))
    text = program.pipeline.describe().splitlines()[1]
    assert text.startswith(f"read: no graph: reads an array on the host ({how}) in ")
    assert "(test_host_reads.py:" in text or read == "text"


def test_it_is_warned_about_where_graphs_were_asked_for(device):
    program = Program(device, lambda array: array.numpy()[0], mode="graph")
    program.pipeline.run()
    with pytest.warns(CaptureWarning, match=r"stage 'read' runs without a graph: reads an array on the host"):
        program.pipeline.run()
    program.pipeline.run()
    assert program.seen[-1] == 6.0


def test_views_of_torch_and_copies_between_arrays_are_no_reads(device):
    scope, out, other = support.scope(device), zeros(device), zeros(device)

    def stage():
        scope.launches.launch(support.count, 1, [], [out])
        wp.to_torch(out)
        torch.from_dlpack(out)
        wp.copy(other, out)

    wp.to_torch(out)
    for _ in range(4):
        scope.graphs.run("stage", stage)
    assert scope.graphs.has_graph("stage")
    assert other.numpy()[0] == 4.0


def test_warp_is_as_before_after_a_capture_that_failed_too(device):
    before = {name: vars(wp.array)[name] for name in WATCHED}
    program = Program(device, lambda array: array.numpy()[0])
    for _ in range(3):
        program.pipeline.run()
    assert {name: vars(wp.array)[name] for name in WATCHED} == before


def test_other_threads_may_read_meanwhile(device):
    scope, out, x, read = support.scope(device), zeros(device), buffer(wp.get_device("cpu")), []

    def stage():
        scope.launches.launch(support.count, 1, [], [out])
        thread = threading.Thread(target=lambda: read.append((x.numpy()[0], x.list()[0], np.asarray(x)[0])))
        thread.start()
        thread.join()

    for _ in range(3):
        scope.graphs.run("stage", stage)
    assert scope.graphs.has_graph("stage")
    assert read == [(1.0, 1.0, 1.0)] * 2


def test_debug_finds_a_read_that_comes_later(device):
    scope, out, reads = support.scope(device, "debug"), zeros(device), []

    def stage():
        scope.launches.launch(support.count, 1, [], [out])
        if reads:
            out.numpy()

    for _ in range(2):
        scope.graphs.run("stage", stage)
    reads.append(True)
    with pytest.raises(LaunchError, match=r"can't be captured any more: reads an array on the host \(\.numpy\(\)\)"):
        scope.graphs.run("stage", stage)
