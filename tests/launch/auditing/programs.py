"""Step functions, each with one kind of call site."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import warp as wp

from treadle.launch import LaunchCache

N = 16


@wp.struct
class Gains:
    gain: float
    bias: float


@wp.kernel
def add(x: wp.array[float], s: float, out: wp.array[float]):
    i = wp.tid()
    out[i] = out[i] * 0.5 + x[i] * s + float(i)


@wp.kernel
def add_structured(gains: Gains, out: wp.array[float]):
    i = wp.tid()
    out[i] = out[i] * gains.gain + gains.bias


@wp.kernel
def add_tiled(x: wp.array[float], out: wp.array[float]):
    i, _lane = wp.tid()
    out[i] = out[i] + x[i]


def buffer(start: float = 1.0) -> wp.array:
    return wp.array([start + 0.25 * i for i in range(N)], dtype=float)


class Program:
    """Buffers, and steps that use them; ``out`` is the result."""

    def __init__(self) -> None:
        self.x, self.y, self.out = buffer(), buffer(2.0), buffer(3.0)
        self.wide = wp.zeros((4, N), dtype=float)
        self.pool = [buffer() for _ in range(40)]
        self.count = 0
        self.graph: Any = None
        self.bound: Any = None

    def stable(self) -> None:
        wp.launch(add, N, inputs=[self.x, 0.5], outputs=[self.out])

    def ping_pong(self) -> None:
        wp.launch(add, N, inputs=[self.x, 0.5], outputs=[self.y])
        self.x, self.y = self.y, self.x

    def two_sets(self) -> None:
        for target in (self.y, self.out):
            wp.launch(add, N, inputs=[self.x, 0.5], outputs=[target])

    def scalar(self) -> None:
        self.count += 1
        wp.launch(add, N, inputs=[self.x, 0.01 * self.count], outputs=[self.out])

    def struct(self) -> None:
        self.count += 1
        gains = Gains()
        gains.gain, gains.bias = 0.5, float(self.count)
        wp.launch(add_structured, N, inputs=[gains, self.out])

    def transient(self) -> None:
        scratch = wp.zeros(N, dtype=float)
        wp.launch(add, N, inputs=[self.x, 0.5], outputs=[scratch])
        wp.launch(add, N, inputs=[scratch, 0.5], outputs=[self.out])

    def carried(self) -> None:
        """What a step allocates, the next one uses."""
        wp.launch(add, N, inputs=[self.x, 0.5], outputs=[self.y])
        self.x, self.y = self.y, wp.zeros(N, dtype=float)

    def pointer(self) -> None:
        """More arrays, all of them older than the audit, than it has steps."""
        wp.launch(add, N, inputs=[self.pool[self.count], 0.5], outputs=[self.out])
        self.count += 1

    def view(self) -> None:
        wp.launch(add, N, inputs=[self.wide[1], 0.5], outputs=[self.out])

    def dim(self) -> None:
        self.count += 1
        wp.launch(add, self.count, inputs=[self.x, 0.5], outputs=[self.out])

    def kernel(self) -> None:
        self.count += 1
        factor = wp.constant(float(self.count))

        @wp.kernel(module="unique", enable_backward=False)
        def scale(out: wp.array[float]):
            i = wp.tid()
            out[i] = factor * out[i]

        wp.launch(scale, N, inputs=[self.out])

    def conditional(self) -> None:
        self.count += 1
        for _ in range(self.count % 3):
            wp.launch(add, N, inputs=[self.x, 0.5], outputs=[self.out])

    def tiled(self) -> None:
        wp.launch_tiled(add_tiled, dim=[1], inputs=[self.x], outputs=[self.out], block_dim=1)

    def captured(self) -> None:
        with wp.ScopedCapture(device="cpu") as capture:
            self.stable()
        wp.capture_launch(capture.graph)

    def graph_launch(self) -> None:
        if self.graph is None:
            with wp.ScopedCapture(device="cpu") as capture:
                self.stable()
                self.stable()
            self.graph = capture.graph
        wp.capture_launch(self.graph)

    def tape(self) -> None:
        with wp.Tape():
            wp.launch(add, N, inputs=[self.x, 0.5], outputs=[self.out])

    def adjoint(self) -> None:
        wp.launch(
            add,
            N,
            inputs=[self.x, 0.5],
            outputs=[self.out],
            adj_inputs=[self.y, 0.0],
            adj_outputs=[self.y],
            adjoint=True,
        )

    def replayed(self) -> None:
        if self.graph is None:
            self.graph = LaunchCache("cpu", mode="replay", contract="checked")
        self.graph.launch(add, N, [self.x, 0.5], [self.out])

    @property
    def launches(self) -> LaunchCache:
        if self.graph is None:
            self.graph = LaunchCache("cpu", mode="replay", contract="checked")
        return self.graph

    def replayed_scalar(self) -> None:
        self.count += 1
        self.launches.launch(add, N, [self.x, 0.01 * self.count], [self.out], dynamic=("s",))

    def replayed_swap(self) -> None:
        self.launches.launch(add, N, [self.x, 0.5], [self.y], site=self.x.ptr)
        self.x, self.y = self.y, self.x

    def unstable_scalar(self) -> None:
        self.count += 1
        self.launches.launch(add, N, [self.x, 0.01 * self.count], [self.out], site="a")

    def unstable_sets(self) -> None:
        for target in (self.y, self.out):
            self.launches.launch(add, N, inputs=[self.x, 0.5], outputs=[target], site="both")

    def unstable_swap(self) -> None:
        self.count += 1
        self.launches.launch(add, N, [self.x, 0.01 * self.count], [self.y], dynamic=("s",))
        self.x, self.y = self.y, self.x

    def unstable_view(self) -> None:
        self.launches.launch(add, N, [self.wide[1], 0.5], [self.out])

    def unstable_dim(self) -> None:
        self.count += 1
        self.launches.launch(add, self.count, [self.x, 0.5], [self.out])

    def bound_dim(self) -> None:
        self.count += 1
        if self.bound is None:
            self.bound = self.launches.bind(add, N, [self.x, 0.5], [self.out])
        self.bound.set_dim(self.count)
        self.bound()


def step_of(name: str) -> tuple[Program, Callable[[], None]]:
    program = Program()
    return program, getattr(program, name)
