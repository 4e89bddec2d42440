"""A random launch program: an owner whose launches go through Treadle, and once more through ``wp.launch``."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import warp as wp

from treadle.bench.launch.kernels import Terms, add_struct, add_with_1_array, add_with_4_arrays
from treadle.launch import BoundLaunch, LaunchContract, LaunchScope, Stage

__all__ = ["Program"]

_SIZE = 64
_INPUTS = 5
_SITES = 4
_KEYS = 3


class Program:
    """Does random things with a launch scope. Everything is also done eagerly, to a twin of its sum.

    Args:
        device: Device to launch on.
        mode: Launch mode.
        rng: Where the decisions come from.
    """

    def __init__(self, device: wp.Device, mode: str, rng: random.Random):
        self.done: Counter[str] = Counter()
        """How often each thing was done."""
        self.scope = LaunchScope(device, mode=mode, contract=LaunchContract.CHECKED, name="soak")
        self._device, self._rng = device, rng
        self._total = wp.zeros(_SIZE, dtype=wp.uint32, device=device)
        self._twin = wp.zeros(_SIZE, dtype=wp.uint32, device=device)
        self._inputs = [self._new_input() for _ in range(_INPUTS)]
        self._terms = Terms()
        self._terms.a, self._terms.b, self._terms.c = self._inputs[:3]
        self._weight, self._dim = 1, _SIZE
        self._bound = self._bind()
        self._pipeline = self.scope.pipeline(
            [
                Stage("first", lambda: self._add("first"), inputs=self._declared),
                Stage("struct", self._add_struct),
                Stage("gap", lambda: self._add("gap"), capture="stands for code that can't be"),
                Stage("last", lambda: self._add("last"), inputs=self._declared),
            ]
        )

    def run(self, count: int) -> None:
        """Do a number of random things."""
        actions = list(_ACTIONS)
        for name in self._rng.choices(actions, [_ACTIONS[action] for action in actions], k=count):
            getattr(self, name)()
            self.done[name] += 1

    def settle(self) -> None:
        """Do everything that records or captures, so that the program holds as much as it ever does."""
        for site in range(_SITES):
            self._launch_site(site)
        for _ in range(3):
            self.call_bound()
            self.run_pipeline()
            for key in range(_KEYS):
                self._run_graph(key)

    def difference(self) -> str | None:
        """Return how the sum differs from its eager twin, ``None`` if it does not."""
        total, twin = self._total.numpy(), self._twin.numpy()
        wrong = np.flatnonzero(total != twin)
        if not wrong.size:
            return None
        first = int(wrong[0])
        return f"{wrong.size} of {_SIZE} elements, first at {first}: {total[first]}, eager {twin[first]}"

    def close(self) -> None:
        """Close the scope."""
        self.scope.close()

    # -- the things that a program does ------------------------------------------------------------------------------

    def launch(self) -> None:
        """Launch at one of the sites."""
        self._launch_site(self._rng.randrange(_SITES))

    def change_scalar(self) -> None:
        """Let the next launches add another weight."""
        self._weight = self._rng.randrange(1, 1000)

    def change_arrays(self) -> None:
        """Give the next launches the inputs in another order."""
        self._rng.shuffle(self._inputs)

    def change_dim(self) -> None:
        """Launch with another number of threads from now on."""
        self._dim = self._rng.choice((_SIZE, _SIZE // 2, 1))

    def call_bound(self) -> None:
        """Call the bound launch."""
        self._bound[0]()
        wp.launch(add_with_1_array, self._bound[2], [self._bound[1]], [self._twin], device=self._device)

    def set_bound(self) -> None:
        """Change scalar and threads of the bound launch."""
        launch, weight, dim = self._bound[0], self._rng.randrange(1, 1000), self._rng.choice((_SIZE, 1))
        launch.set("weight", weight)
        launch.set_dim(dim)
        self._bound = (launch, weight, dim)

    def bind_again(self) -> None:
        """Replace the bound launch."""
        self._bound = self._bind()

    def run_pipeline(self) -> None:
        """Run the pipeline."""
        self._pipeline.run()
        for _ in range(3):
            self._add_eagerly()
        wp.launch(add_struct, _SIZE, [self._terms, 5], [self._twin], device=self._device)

    def change_struct(self) -> None:
        """Give the struct other arrays, as its owner may."""
        self._terms.a = self._rng.choice(self._inputs)

    def run_graph(self) -> None:
        """Run one of the graphs, one of which can't be captured."""
        self._run_graph(self._rng.randrange(_KEYS))

    def forget_graph(self) -> None:
        """Drop one of the graphs."""
        self.scope.graphs.forget(self._rng.randrange(_KEYS))

    def replace_inputs(self) -> None:
        """Replace buffers, as a reset of an owner does, and invalidate."""
        self._inputs = [self._new_input() for _ in self._inputs]
        self._terms.a, self._terms.b, self._terms.c = self._inputs[:3]
        self.scope.invalidate("new inputs")

    def use_child(self) -> None:
        """Make a part, launch from it in a graph of its own, and close it."""
        with self.scope.child("part") as part:
            for _ in range(self._rng.randrange(1, 4)):
                part.graphs.run("all", lambda: self._add("child", part), inputs=self._declared)
                self._add_eagerly()

    def drop_child(self) -> None:
        """Make a part, launch from it and from a graph of its own, and let go of it without closing it."""
        part, inputs = self.scope.child("dropped"), [*[self._new_input()] * 3, 1]

        def add() -> None:
            part.launches.launch(add_with_4_arrays, 1, inputs, [self._total])

        for _ in range(3):
            part.graphs.run("all", add)
            wp.launch(add_with_4_arrays, 1, inputs, [self._twin], device=self._device)

    def drop_pipeline(self) -> None:
        """Make another pipeline of the scope, run it, and let go of it."""
        passing = self.scope.pipeline(
            [Stage(name, partial(self._add, name), inputs=self._declared) for name in ("passing", "by")]
        )
        for _ in range(3):
            passing.run()
            self._add_eagerly()
            self._add_eagerly()

    def _launch_site(self, site: int) -> None:
        self._add(site)
        self._add_eagerly()

    def _run_graph(self, key: int) -> None:
        fragile = key == _KEYS - 1

        def body() -> None:
            if fragile and self._device.is_capturing:
                raise RuntimeError("this can't be captured")
            self._add(("graph", key))

        self.scope.graphs.run(key, body, inputs=self._declared)
        self._add_eagerly()

    def _add(self, site: Any, scope: LaunchScope | None = None) -> None:
        launch = (scope or self.scope).launches.launch
        launch(add_with_4_arrays, self._dim, [*self._inputs[:3], self._weight], [self._total], site=site)

    def _add_struct(self) -> None:
        self.scope.launches.launch(add_struct, _SIZE, [self._terms, 5], [self._total])

    def _add_eagerly(self) -> None:
        inputs = [*self._inputs[:3], self._weight]
        wp.launch(add_with_4_arrays, self._dim, inputs, [self._twin], device=self._device)

    def _declared(self) -> list[Any]:
        return [*self._inputs[:3], self._weight, self._dim]

    def _bind(self) -> tuple[BoundLaunch, int, int]:
        launch = self.scope.launches.bind(add_with_1_array, _SIZE, [self._weight], [self._total])
        return launch, self._weight, _SIZE

    def _new_input(self) -> wp.array:
        values = np.array([self._rng.randrange(1, 1000) for _ in range(_SIZE)], dtype=np.uint32)
        return wp.array(values, dtype=wp.uint32, device=self._device)


_ACTIONS = {
    "launch": 10,
    "call_bound": 6,
    "run_pipeline": 12,
    "run_graph": 8,
    "change_scalar": 2,
    "change_arrays": 1,
    "change_dim": 1,
    "change_struct": 1,
    "set_bound": 2,
    "bind_again": 1,
    "forget_graph": 1,
    "replace_inputs": 1,
    "use_child": 1,
    "drop_child": 1,
    "drop_pipeline": 1,
}
"""What a program does, by how often."""
