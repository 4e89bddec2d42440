"""Random programs over everything that may change, against ``wp.launch``."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
import warp as wp

from treadle.launch import Stage

from . import support
from .support import N, buffer, same_bits, zeros

STEPS = 30
EDGE_SCALARS = [0.0, -0.0, 1, True, 1.0, 0.1, float(np.float32(0.1)), float("nan"), np.float32(2.5), 2**30]


class World:
    """State of one run: what the launches read. The same seed changes it in the same way."""

    def __init__(self, device: wp.Device, seed: int):
        self.device, self.random = device, random.Random(seed)
        self.out = zeros(device)
        self.arrays = [buffer(device, float(i)) for i in range(3)]
        self.x, self.gain, self.dim, self.block_dim = self.arrays[0], 1.0, N, None
        self.vector, self.params = [1.0, 2.0, 3.0], support.Params()
        self.params.inner.values = self.arrays[1]
        self.indices = [wp.array(order, dtype=int, device=device) for order in ([0, 1, 2, 3], [7, 5, 3, 1])]
        self.view = wp.indexedarray(self.arrays[2], [self.indices[0]])
        self.tensor = torch.arange(float(N), device=str(device))
        self.fails = False

    def change(self) -> str:
        """Change one thing, or nothing; return what."""
        pick = self.random
        what = pick.choice(
            ["x", "gain", "dim", "vector", "struct", "repoint", "indices", "tensor", "block_dim", "", ""]
        )
        if what == "x":
            self.x = pick.choice([*self.arrays, self.tensor])
        elif what == "gain":
            self.gain = pick.choice(EDGE_SCALARS)
        elif what == "dim":
            self.dim = pick.choice([0, 0, 1, 4, N, (N,), (2, 4), [N]])
        elif what == "vector":
            self.vector[pick.randrange(3)] = float(pick.randrange(5))
        elif what == "struct":
            self.params.gain = float(pick.randrange(4))
        elif what == "repoint":
            self.params.inner.values = pick.choice(self.arrays)
        elif what == "indices":
            self.view.indices[0] = pick.choice(self.indices)
        elif what == "tensor":
            self.tensor.data = torch.full((N,), float(pick.randrange(4)), device=str(self.device))
        elif what == "block_dim":
            self.block_dim = pick.choice([None, 32])
        return what

    def read_inputs(self):
        dim = self.dim if isinstance(self.dim, int) else list(self.dim)
        return [self.x, self.gain, dim, self.vector, self.params, self.view, self.tensor, self.block_dim or 0]

    def scalars(self, launch):
        if self.fails and self.device.is_capturing:
            raise RuntimeError("injected")
        launch(support.add, self.dim, [self.x, self.gain], [self.out], block_dim=self.block_dim)
        launch(support.vectors, 1, [self.vector, wp.mat22(1.0, 0.0, 0.0, float(len(self.vector)))], [self.out])

    def structures(self, launch):
        launch(support.structured, N, [self.params], [self.out])
        launch(support.gather, 4, [self.view], [self.out])
        launch(support.add, N, [self.arrays[0], 0.5], [self.out], site="steady")
        launch(support.optional, N, [self.x if self.gain != 1.0 else None], [self.out])


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("mode", ["eager", "replay", "auto"])
def test_a_random_program_equals_eager(device, mode, seed):
    eager, world = World(device, seed), World(device, seed)
    scope = support.scope(device, mode=mode)
    child = scope.child("part")
    pipeline = scope.pipeline(
        [
            Stage("scalars", lambda: world.scalars(scope.launches.launch), inputs=world.read_inputs),
            Stage("structures", lambda: world.structures(child.launches.launch), inputs=world.read_inputs),
        ]
    )
    chance = random.Random(seed)
    world.fails = seed % 4 == 3
    launch = support.eager_launch(device)
    history = []
    for _ in range(STEPS):
        eager.change()
        history.append(world.change())
        if chance.random() < 0.1:
            history.append("invalidate")
            chance.choice([scope, child]).invalidate("by chance")
        eager.scalars(launch)
        eager.structures(launch)
        pipeline.run()
        assert same_bits(eager.out, world.out), (history, eager.out.numpy(), world.out.numpy())
