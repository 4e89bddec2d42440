"""What broke other launch and graph caches, and where it is shown that it does not happen here.

| what happened | test |
|---|---|
| cached bindings still pointed at the old model | test_pointers.py::test_rebind_follows_a_hard_reset |
| an array was replaced, the graph kept reading the old one | test_graph.py::test_inputs_that_move_capture_again_once |
| the same, undeclared | test_graph_probes.py::test_debug_notices_what_the_function_passes_now |
| the garbage collector ran inside a capture | test_graph.py::test_the_garbage_collector |
| odd numbers of substeps lost the ping-pong state | test_pitfalls.py::test_substeps_that_leave_pointers_as_they_were |
| the same, swapped in Python | test_pitfalls.py::test_substeps_that_swap_in_python_are_noticed |
| a warm-up before the capture advanced the live state | test_graph.py::test_runs_exactly_once_per_call |
| modules were loaded or unloaded inside a capture | test_pitfalls.py::test_a_module_that_is_first_used_in_a_capture |
| a broken unrelated kernel failed the capture | test_pitfalls.py::test_a_broken_kernel_elsewhere |
| torch and Warp on different streams raced | test_streams.py::test_write_replay_read |
| memory was freed while work on it was pending | test_streams.py::test_memory_that_is_freed_while_work_is_pending |
| torch code inside a capture was lost | test_torch_guard.py::test_on_the_cpu_it_takes_the_stage_out_of_its_island |
| a host read inside a capture was lost | test_host_reads.py::test_a_read_takes_the_stage_out_of_the_graphs |
| capture and destroy leaked | test_graph_lifetimes.py::test_capture_and_destroy_does_not_grow |
| the same, on the device | test_graph_lifetimes.py::test_capture_and_destroy_keeps_device_memory_constant |
| a failed capture left a sticky error | test_graph.py::test_an_illegal_capture_falls_back_once_and_for_all |
| a failed capture left a half-captured owner | test_pipeline.py::test_a_failing_stage_alone_leaves_its_island |
| a captured term read a lazily evaluated property | test_pitfalls.py::test_a_lazily_evaluated_property_is_noticed |
| endless recaptures, since addresses never settle | test_graph.py::test_inputs_that_never_settle_are_given_up |
| a gain was reported where the device was busy anyway | auditing/test_verdicts.py::test_a_busy_device_is_noted |
| the same, by the benchmark | ../bench/test_launch_report.py::test_completed_times_are_shown_for_cuda |
| no capture was possible after a failed one | test_graph.py::test_an_interrupt_of_a_capture_passes |
| an empty graph was captured without an error | test_graph.py::test_an_empty_graph_is_a_reason |
| the same, for a wrong stream or device | test_pitfalls.py::test_a_graph_that_is_empty_since_all_went_elsewhere |
| a launch on another stream was missing from the graph | test_other_owners.py::test_a_stream_that_is_not_captured |
| a refused argument left new dimensions with old arrays | test_failed_launches.py::test_a_refused_argument |
| a smaller array kept the old dimension | test_bound.py::test_a_smaller_array_needs_a_dim |
| a lazily allocated cache was born inside a capture | test_allocations.py::test_debug_raises_with_what_was_allocated |
| graphs were silently off | test_pipeline.py::test_the_warning_names_the_owner_where_graphs_are_asked_for |
| the mode that really ran was not shown | test_explain.py::test_the_table_without_times |
| one key launched the graph of another function | test_graph_keys.py::test_another_function_is_refused |

Views of torch are counted in ``tests/envs``; whether upstream made ``wp.launch`` faster is for the benchmarks.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import warp as wp

from treadle.launch import StaleArgumentError

from . import support
from .support import N, buffer, same_bits, zeros


def test_the_table_names_tests_that_exist():
    named = re.findall(r"([\w./]*test_\w+\.py)::(test_\w+)", __doc__)
    assert len(named) == __doc__.count("\n| ") - 1
    for file, name in named:
        assert f"def {name}(" in (Path(__file__).parent / file).read_text(), (file, name)


@pytest.mark.parametrize("substeps", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("mode", ["replay", "auto"])
def test_substeps_that_leave_pointers_as_they_were(device, mode, substeps):
    def simulate(launch, state, other):
        for substep in range(substeps):
            source, target = (state, other) if substep % 2 == 0 else (other, state)
            launch(support.add, N, [source, 0.5], [target], site=substep)
        if substeps % 2:
            wp.copy(state, other)

    scope = support.scope(device, "debug", mode)
    states = [(buffer(device), zeros(device)) for _ in range(2)]
    for _ in range(5):
        scope.graphs.run("simulate", lambda: simulate(scope.launches.launch, *states[0]))
        simulate(support.eager_launch(device), *states[1])
    assert same_bits(states[0][0], states[1][0])


@pytest.mark.parametrize("substeps", [1, 2, 3, 4, 6])
def test_substeps_that_swap_in_python_are_noticed(device, substeps):
    scope = support.scope(device, "debug")
    states = [buffer(device), buffer(device)]
    expected = [buffer(device), buffer(device)]

    def simulate(launch, pair):
        for _ in range(substeps):
            launch(support.add, N, [pair[0], 0.5], [pair[1]], dynamic=("x", "out"))
            pair.reverse()

    def eagerly(kernel, dim, inputs, outputs, dynamic):
        wp.launch(kernel, dim, [*inputs, *outputs], device=device)

    def run():
        scope.graphs.run("simulate", lambda: simulate(scope.launches.launch, states))
        simulate(eagerly, expected)

    run()
    run()
    if substeps % 2:
        with pytest.raises(StaleArgumentError, match="argument 'x'"):
            run()
        return
    for _ in range(3):
        run()
    assert same_bits(states[0], expected[0])


def test_a_module_that_is_first_used_in_a_capture(device):
    @wp.kernel(module="unique")
    def late(out: wp.array[float]):
        wp.atomic_add(out, 0, 10.0)

    scope, out = support.scope(device), zeros(device)

    def stage():
        scope.launches.launch(support.count, 1, [], [out])
        if device.is_capturing:
            scope.launches.launch(late, 1, [], [out])

    for _ in range(3):
        scope.graphs.run("stage", stage)
    assert scope.graphs.has_graph("stage")
    assert out.numpy()[0] == 23.0
    late.module.unload()
    scope.graphs.run("stage", stage)
    assert out.numpy()[0] == 34.0


def test_a_broken_kernel_elsewhere(device):
    @wp.kernel(module="unique")
    def broken(out: wp.array[float]):
        out[0] = no_such_name  # noqa: F821

    scope, out = support.scope(device), zeros(device)
    for _ in range(3):
        scope.graphs.run("stage", lambda: scope.launches.launch(support.count, 1, [], [out]))
    assert scope.graphs.has_graph("stage")
    assert out.numpy()[0] == 3.0
    with pytest.raises(Exception, match="no_such_name"):
        scope.launches.launch(broken, 1, [], [out])
    scope.launches.launch(support.count, 1, [], [out])
    assert out.numpy()[0] == 4.0


@pytest.mark.gpu
@pytest.mark.parametrize("where", ["stream", "device"])
def test_a_graph_that_is_empty_since_all_went_elsewhere(where):
    if not wp.is_cuda_available():
        pytest.skip("no CUDA device")
    device = wp.get_device("cuda:0")
    scope, out = support.scope(device if where == "stream" else wp.get_device("cpu"), "checked"), zeros(device)
    stream = wp.Stream(device) if where == "stream" else None

    def stage():
        wp.launch(support.count, 1, outputs=[out], device=device, stream=stream)

    for _ in range(3):
        scope.graphs.run("stage", stage)
    assert "empty" in scope.graphs.reason("stage")
    before = out.numpy()[0]
    scope.graphs.run("stage", stage)
    wp.synchronize_device(device)
    assert out.numpy()[0] == before + 1.0


class Lazy:
    """Derived state behind a flag on the host."""

    def __init__(self, device):
        self.scope = support.scope(device, "debug")
        self.x, self._double, self.out, self.fresh = buffer(device), zeros(device), zeros(device), False

    @property
    def double(self):
        if not self.fresh:
            self.scope.launches.launch(support.add, N, [self.x, 2.0], [self._double], site="derived")
            self.fresh = True
        return self._double

    def stage(self):
        self.scope.launches.launch(support.add, N, [self.double, 1.0], [self.out])


def test_a_lazily_evaluated_property_is_noticed(device):
    lazy = Lazy(device)
    for fresh in (False, True):
        lazy.fresh = fresh
        lazy.scope.graphs.run("stage", lazy.stage)
    lazy.fresh = False
    with pytest.raises(StaleArgumentError, match="launch of 'add' at site 'derived'"):
        lazy.scope.graphs.run("stage", lazy.stage)
