"""What a graph can't see: its function passes something else. The ``debug`` contract runs the function again."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import warp as wp

from treadle.launch import LaunchError, Stage, StaleArgumentError

from . import support
from .support import N, buffer, same_bits, zeros


class Owner:
    """A stage that reads what it passes from attributes; ``runs`` counts how often its Python code ran."""

    def __init__(self, device, contract="debug", inputs=()):
        self.device, self.runs = device, 0
        self.a, self.gain, self.dim, self.out = buffer(device), 1.0, N, zeros(device)
        self.kernel, self.more, self.fails = support.add, 0, False
        self.scope = support.scope(device, contract)
        self.bound = self.scope.launches.bind(support.count, 1, [], [self.out])
        self.pipeline = self.scope.pipeline([Stage("s", self.stage, inputs=inputs)])

    def stage(self):
        self.runs += 1
        launch = self.scope.launches.launch
        launch(self.kernel, self.dim, [self.a, self.gain], [self.out], site="here")
        self.bound()
        for i in range(self.more):
            launch(support.count, 1, [], [self.out], site=i)
        if self.fails:
            raise ValueError("broken")

    def run(self, calls):
        for _ in range(calls):
            self.pipeline.run()


CHANGES = {
    "array": (lambda o: setattr(o, "a", buffer(o.device)), "'add', site 'here': argument 'a|x'"),
    "scalar": (lambda o: setattr(o, "gain", 2.0), r"argument 's' .*recorded 1\.0 in a captured graph, received 2\.0"),
    "dim": (lambda o: setattr(o, "dim", 4), r"argument 'dim' .*recorded 8 .*received 4"),
    "kernel": (lambda o: setattr(o, "kernel", support.generic), "'add'.*received launch of 'generic' at site 'here'"),
    "one more": (lambda o: setattr(o, "more", 1), "recorded no launch .*received launch of 'count' at site 0"),
    "bound": (lambda o: setattr(o, "bound", lambda: None), "recorded launch of 'count' .*received no launch"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_debug_notices_what_the_function_passes_now(device, change):
    owner = Owner(device)
    owner.run(2)
    apply, text = CHANGES[change]
    apply(owner)
    before = owner.out.numpy().copy()
    with pytest.raises(StaleArgumentError, match=text) as raised:
        owner.run(1)
    assert "Stage(inputs=...)" in str(raised.value) and "invalidate()" in str(raised.value)
    assert (owner.out.numpy() == before).all()
    owner.scope.invalidate("as the message says")
    owner.run(3)


def test_debug_looks_at_the_next_call_and_now_and_then(device):
    owner = Owner(device)
    owner.run(2)
    assert owner.runs == 2
    owner.run(64)
    assert owner.runs == 3
    owner.run(1)
    assert owner.runs == 4
    owner.gain = 2.0
    with pytest.raises(StaleArgumentError):
        owner.run(64)
    assert owner.scope.stats.graph_total("captures") == 1


def test_a_look_has_no_effect(device):
    owner, expected = Owner(device), zeros(device)
    owner.run(70)
    for _ in range(70):
        wp.launch(support.add, N, [owner.a, 1.0, expected], device=device)
        wp.launch(support.count, 1, [expected], device=device)
    assert same_bits(owner.out, expected)
    stats = owner.scope.stats
    assert (stats.total("recorded"), stats.total("patched")) == (2, 0)
    assert stats.graph_total("launches") == 69


def test_other_contracts_do_not_look(device):
    for contract in ("checked", "trusted"):
        owner = Owner(device, contract)
        owner.run(2)
        owner.gain = 2.0
        owner.run(70)
        assert owner.runs == 2


def test_declared_inputs_are_the_way_out(device):
    box = SimpleNamespace(gain=1.0)
    owner = Owner(device, "checked", inputs=lambda: [box.gain])
    expected = zeros(device)
    for gain in (1.0, 1.0, 1.0, 2.0, 2.0):
        box.gain = owner.gain = gain
        owner.run(1)
        wp.launch(support.add, N, [owner.a, gain, expected], device=device)
        wp.launch(support.count, 1, [expected], device=device)
    assert same_bits(owner.out, expected)


def test_a_function_that_fails_when_it_is_looked_at(device):
    owner = Owner(device)
    owner.run(2)
    owner.fails = True
    with pytest.raises(LaunchError, match="runs from a graph, and its function can't be captured any more: ValueError"):
        owner.run(1)


def test_arguments_that_the_function_makes_itself_are_compared_by_what_they_refer_to(device):
    scope, out = support.scope(device, "debug"), zeros(device)
    x = buffer(device, n=2 * N)
    for _ in range(5):
        scope.graphs.run(
            "view", lambda: scope.launches.launch(support.vectors, 1, [[1.0, 2.0, 3.0], wp.mat22()], [out])
        )
    bound = scope.launches.bind(support.generic, N, [x, 3], [out])
    for _ in range(5):
        scope.graphs.run("generic", bound)


def test_a_look_at_a_function_that_sets_what_it_launches_does_not_outdate_its_graph(device):
    scope, x, out, expected = support.scope(device, "debug"), buffer(device), zeros(device), zeros(device)
    bound, gain = scope.launches.bind(support.add, N, [x, 1.0], [out]), SimpleNamespace(value=2.0)

    def stage():
        bound.set("s", gain.value)
        bound()

    for _ in range(140):
        scope.graphs.run("s", stage)
        wp.launch(support.add, N, [x, 2.0, expected], device=device)
    assert same_bits(out, expected)
    assert scope.graphs.reason("s") is None
    assert scope.stats.graph_total("captures") == 1
    gain.value = 3.0
    with pytest.raises(StaleArgumentError, match=r"argument 's' .*recorded 2\.0 .* received 3\.0"):
        for _ in range(64):
            scope.graphs.run("s", stage)
