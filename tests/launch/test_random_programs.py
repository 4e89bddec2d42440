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

MODES = ["eager", "replay", "graph", "auto"]
ALL = ("x", "s", "out")
"""Arguments of ``support.add``, all of which a program may change."""
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
    st.tuples(st.just("bound_dim"), st.sampled_from(DIMS)),
    st.tuples(st.just("kind"), st.sampled_from([float, int, wp.float64])),
)
EVENTS = st.sampled_from(
    [None] * 6 + ["invalidate", "invalidate part", "rebind", "own capture", "tape", "refused", "fails", "works", *MODES]
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
        self.bound_gain, self.bound_dim = 1.0, N
        self.numbers = {kind: wp.full(N, 3, dtype=kind, device=device) for kind in (float, int, wp.float64)}
        self.kind: type = float
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
        elif what == "bound_dim":
            self.bound_dim = value
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
            self.kind,
        ]

    def scalars(self, launch, site=None):
        site = self.site if site is None else (site, self.site)
        options = {"block_dim": self.block_dim, "dynamic": ALL}
        launch(support.add, self.dim, [self.x, self.gain], [self.out], site=site, **options)
        launch(
            support.vectors,
            1,
            [self.vector, wp.mat22(1.0, 0.0, 0.0, float(len(self.vector)))],
            [self.out],
            dynamic=("v", "m", "out"),
        )

    def structures(self, launch):
        launch(support.structured, N, [self.params], [self.out], dynamic="params")
        launch(support.gather, 4, [self.view], [self.out], dynamic="x")
        launch(support.add, N, [self.arrays[0], 0.5], [self.out], site="steady")
        given = self.x if self.gain != 1.0 else None
        launch(support.optional, N, [given], [self.out], site=given is None, dynamic="x")
        launch(support.generic, N, [self.numbers[self.kind], self.kind(5)], [self.out], site=self.kind)

    def tiles(self, launch_tiled):
        launch_tiled(tiled, 1, [self.arrays[1]], [self.out], block_dim=32)


@wp.kernel
def tiled(x: wp.array[float], out: wp.array[float]):
    start = wp.tid() * N
    wp.tile_store(out, wp.tile_load(x, shape=N, offset=start) + wp.tile_load(out, shape=N, offset=start), offset=start)


class Program:
    """A world that a pipeline works on."""

    def __init__(self, device: wp.Device, mode: str, contract: str):
        self.world, self.contract = World(device), contract
        self.open(mode)

    def open(self, mode):
        """Go on in another scope, perhaps in another mode."""
        world, device = self.world, self.world.device
        self.scope = support.scope(device, self.contract, mode)
        self.part = self.scope.child("part")
        self.bound = self.part.launches.bind(support.add, N, [world.arrays[1], world.bound_gain], [world.out])
        self.bound.set_dim(world.bound_dim)
        launch = self.scope.launches.launch
        self.pipeline = self.scope.pipeline(
            [
                Stage("scalars", self.scalars, inputs=world.read_inputs),
                Stage("structures", lambda: world.structures(self.part.launches.launch), inputs=world.read_inputs),
                Stage("bound", self.bound),
                Stage("unsure", lambda: world.scalars(launch, "unsure"), capture=None, inputs=world.read_inputs),
                Stage("tiled", lambda: world.tiles(self.scope.launches.launch_tiled)),
                Stage("gap", lambda: None, capture="what the others declare is not declared of the next one"),
                Stage("nested", lambda: self.part.graphs.run("inside", self.nested, inputs=world.read_inputs)),
            ]
        )

    def nested(self):
        self.world.scalars(self.part.launches.launch, "nested")

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
        elif event == "refused":
            with pytest.raises(ValueError, match="convert"):
                refused = [[1.0, 2.0], wp.mat22()], [self.world.out]
                self.scope.launches.launch(support.vectors, (1, 1), *refused, dynamic=("v", "m"))
        elif event in ("fails", "works"):
            self.world.fails = event == "fails"
            if self.contract == "debug":  # it raises where a function that has a graph can't be captured any more
                self.scope.invalidate("captured otherwise")
        elif event in MODES:
            self.scope.close()
            self.open(event)

    def step(self, changes, event):
        for what, value in changes:
            self.world.change(what, value)
            if what == "bound":
                self.bound.set("s", value)
            elif what == "bound_dim":
                self.bound.set_dim(value)
        self.happen(event)
        if event == "tape":
            with wp.Tape():
                self.pipeline.run()
            return
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
    launch(support.add, world.bound_dim, [world.arrays[1], world.bound_gain], [world.out])
    world.scalars(launch)
    wp.launch_tiled(tiled, dim=1, inputs=[world.arrays[1]], outputs=[world.out], block_dim=32, device=world.device)
    world.scalars(launch)


@pytest.mark.filterwarnings("ignore::treadle.launch.CaptureWarning")
@pytest.mark.parametrize("contract", ["checked", "debug"])
@pytest.mark.parametrize("mode", MODES)
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=STEPS)
def test_a_program_equals_eager(device, mode, contract, steps):
    program, world = Program(device, mode, contract), World(device)
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
