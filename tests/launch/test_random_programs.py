"""Programs over everything that may change, made up by hypothesis, against ``wp.launch``."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import warp as wp
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from treadle.launch import Stage

from . import support
from .support import N, buffer, same_bits, zeros

MODES = ["eager", "replay", "auto"]
SCALARS = [0.0, -0.0, 1, True, 1.0, 0.1, float(np.float32(0.1)), float("nan"), -float("nan"), np.float32(2.5), 2**30]
DIMS = [0, 1, 4, N, (N,), (2, 4), [N], (0, 3)]
TENSOR = 3

CHANGES = st.one_of(
    st.tuples(st.just("x"), st.sampled_from([0, 1, 2, TENSOR])),
    st.tuples(st.just("gain"), st.sampled_from(SCALARS)),
    st.tuples(st.just("gain"), st.floats(width=32, allow_infinity=False)),
    st.tuples(st.just("dim"), st.sampled_from(DIMS)),
    st.tuples(st.just("vector"), st.tuples(st.integers(0, 2), st.sampled_from(SCALARS[:7]))),
    st.tuples(st.just("struct"), st.sampled_from(SCALARS[:7])),
    st.tuples(st.just("repoint"), st.integers(0, 2)),
    st.tuples(st.just("indices"), st.integers(0, 1)),
    st.tuples(st.just("tensor"), st.integers(0, 3)),
    st.tuples(st.just("block_dim"), st.sampled_from([None, 32])),
    st.tuples(st.just("site"), st.sampled_from([None, "a", ("b", 1)])),
    st.tuples(st.just("bound"), st.sampled_from(SCALARS)),
)
EVENTS = st.sampled_from(
    [None] * 6 + ["invalidate", "invalidate part", "rebind", "own capture", "fails", "works", *MODES]
)
STEPS = st.lists(st.tuples(st.lists(CHANGES, max_size=2), EVENTS), min_size=3, max_size=14)


class World:
    """State of one run: what the launches read."""

    def __init__(self, device: wp.Device):
        self.device = device
        self.out = zeros(device)
        self.arrays = [buffer(device, float(i)) for i in range(3)]
        self.tensor = torch.arange(float(N), device=str(device))
        self.x, self.gain, self.dim, self.block_dim, self.site = self.arrays[0], 1.0, N, None, None
        self.vector, self.params = [1.0, 2.0, 3.0], support.Params()
        self.params.inner.values = self.arrays[1]
        self.indices = [wp.array(order, dtype=int, device=device) for order in ([0, 1, 2, 3], [7, 5, 3, 1])]
        self.view = wp.indexedarray(self.arrays[2], [self.indices[0]])
        self.bound_gain = 1.0
        self.fails = False

    def change(self, what, value):
        if what == "x":
            self.x = self.tensor if value == TENSOR else self.arrays[value]
        elif what == "vector":
            self.vector[value[0]] = value[1]
        elif what == "struct":
            self.params.gain = value
        elif what == "repoint":
            self.params.inner.values = self.arrays[value]
        elif what == "indices":
            self.view.indices[0] = self.indices[value]
        elif what == "tensor":
            self.tensor.data = torch.full((N,), float(value), device=str(self.device))
        elif what == "bound":
            self.bound_gain = value
        else:
            setattr(self, what, value)

    def read_inputs(self):
        dim = self.dim if isinstance(self.dim, int) else list(self.dim)
        return [
            self.x,
            self.gain,
            dim,
            self.vector,
            self.params,
            self.view,
            self.tensor,
            self.block_dim or 0,
            self.site,
        ]

    def scalars(self, launch):
        launch(support.add, self.dim, [self.x, self.gain], [self.out], block_dim=self.block_dim, site=self.site)
        launch(support.vectors, 1, [self.vector, wp.mat22(1.0, 0.0, 0.0, float(len(self.vector)))], [self.out])

    def structures(self, launch):
        launch(support.structured, N, [self.params], [self.out])
        launch(support.gather, 4, [self.view], [self.out])
        launch(support.add, N, [self.arrays[0], 0.5], [self.out], site="steady")
        launch(support.optional, N, [self.x if self.gain != 1.0 else None], [self.out])


class Program:
    """A world that a pipeline works on."""

    def __init__(self, device: wp.Device, mode: str):
        self.world = World(device)
        self.open(mode)

    def open(self, mode):
        """Go on in another scope, perhaps in another mode."""
        world, device = self.world, self.world.device
        self.scope = support.scope(device, mode=mode)
        self.part = self.scope.child("part")
        self.bound = self.part.launches.bind(support.add, N, [world.arrays[1], world.bound_gain], [world.out])
        self.pipeline = self.scope.pipeline(
            [
                Stage("scalars", self.scalars, inputs=world.read_inputs),
                Stage("structures", lambda: world.structures(self.part.launches.launch), inputs=world.read_inputs),
                Stage("bound", self.bound),
            ]
        )

    def scalars(self):
        if self.world.fails and self.world.device.is_capturing:
            raise RuntimeError("injected")
        self.world.scalars(self.scope.launches.launch)

    def happen(self, event):
        if event == "invalidate":
            self.scope.invalidate("by chance")
        elif event == "invalidate part":
            self.part.invalidate("by chance")
        elif event == "rebind":
            assert not [pointer for pointer in self.scope.rebind() if pointer.stale]
        elif event in ("fails", "works"):
            self.world.fails = event == "fails"
        elif event in MODES:
            self.scope.close()
            self.open(event)

    def step(self, changes, event):
        for what, value in changes:
            self.world.change(what, value)
            if what == "bound":
                self.bound.set("s", value)
        self.happen(event)
        on_host = self.world.device.is_cpu and self.world.x is self.world.tensor
        if event != "own capture" or self.world.fails or on_host:
            self.pipeline.run()
            return
        with wp.ScopedCapture(self.world.device) as capture:
            self.pipeline.run()
        wp.capture_launch(capture.graph)


def eagerly(world, launch):
    world.scalars(launch)
    world.structures(launch)
    launch(support.add, N, [world.arrays[1], world.bound_gain], [world.out])


@pytest.mark.parametrize("mode", MODES)
@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=STEPS)
def test_a_program_equals_eager(device, mode, steps):
    program, world = Program(device, mode), World(device)
    launch = support.eager_launch(device)
    for number, (changes, event) in enumerate(steps):
        for change in changes:
            world.change(*change)
        eagerly(world, launch)
        program.step(changes, event)
        if not same_bits(world.out, program.world.out):
            note(f"step {number}: {program.pipeline.describe()}")
        assert same_bits(world.out, program.world.out)
    program.scope.close()
