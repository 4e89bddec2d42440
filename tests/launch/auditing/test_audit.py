"""The audit changes nothing, restores what it wraps, and its figures make sense."""

from __future__ import annotations

import functools
import json
import threading

import pytest
import warp as wp
from warp import launch as held_launch

from treadle.launch import AuditReport, BoundLaunch, LaunchCache, LaunchError, audit

from .programs import N, Program, add, step_of

WRAPPED = (
    wp.launch,
    wp.Launch.launch,
    wp.array.__init__,
    wp.array.numpy,
    wp.array.list,
    wp.synchronize,
    wp.synchronize_device,
    wp.synchronize_stream,
    wp.synchronize_event,
    wp.capture_begin,
    wp.capture_end,
    wp.capture_launch,
    LaunchCache.launch,
    BoundLaunch.__call__,
)
ORIGINAL = [(f, f.__code__, f.__defaults__, f.__kwdefaults__) for f in WRAPPED]


def assert_restored() -> None:
    for function, code, defaults, kwdefaults in ORIGINAL:
        assert function.__code__ is code
        assert function.__defaults__ is defaults
        assert function.__kwdefaults__ is kwdefaults


@pytest.mark.parametrize(
    "name", ["stable", "ping_pong", "scalar", "struct", "transient", "carried", "view", "tiled", "graph_launch", "tape"]
)
def test_results_are_unchanged_to_the_bit(name):
    (audited, step), (plain, plain_step) = step_of(name), step_of(name)
    audit(step, steps=5, warmup=2)
    for _ in range(7):
        plain_step()
    for array in ("x", "y", "out", "wide"):
        assert getattr(audited, array).numpy().tobytes() == getattr(plain, array).numpy().tobytes()


def test_a_tape_is_the_same():
    program = Program()
    tapes = []

    def step():
        with wp.Tape() as tape:
            wp.launch(add, N, [program.x, 0.5], [program.out])
        tapes.append(tape)

    step()
    audit(step, steps=1, warmup=0)
    first, second = (tape.launches[0] for tape in tapes)
    assert first[:7] == second[:7]


def test_inputs_may_be_iterators():
    program, plain = Program(), Program()
    audit(lambda: wp.launch(add, N, iter([program.x, 0.5]), outputs=iter([program.out])), steps=1, warmup=0)
    plain.stable()
    assert program.out.numpy().tobytes() == plain.out.numpy().tobytes()


def test_everything_is_restored():
    audit(Program().stable, steps=1)
    assert_restored()


def test_everything_is_restored_after_an_error():
    def step():
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        audit(step)
    assert_restored()
    audit(Program().stable, steps=1)


def test_a_wrong_launch_says_what_warp_says():
    with pytest.raises(RuntimeError, match="passed 1 arguments but kernel requires 3"):
        audit(lambda: wp.launch(add, N, inputs=[0.5]))
    with pytest.raises(TypeError, match="dim"):
        audit(lambda: wp.launch(add))
    assert_restored()


def test_references_from_before_are_seen():
    program = Program()
    partial = functools.partial(held_launch, add, N)

    def step():
        held_launch(add, N, inputs=[program.x, 0.5], outputs=[program.out])
        partial(inputs=[program.x, 0.5], outputs=[program.out])

    assert audit(step, steps=2).launches_per_step == 2


def test_audits_are_not_nested():
    def step():
        audit(Program().stable)

    with pytest.raises(LaunchError, match="can't be nested"):
        audit(step)
    assert_restored()


def test_no_audit_inside_of_a_capture_or_tape():
    with wp.Tape(), pytest.raises(LaunchError, match=r"inside a graph capture or a wp\.Tape"):
        audit(Program().stable)
    with wp.ScopedCapture(device="cpu"), pytest.raises(LaunchError, match="inside a graph capture"):
        audit(Program().stable)
    with pytest.raises(LaunchError, match="steps is 0"):
        audit(Program().stable, steps=0)


def test_other_threads_are_counted_only():
    program = Program()

    def step():
        program.stable()
        thread = threading.Thread(target=program.stable)
        thread.start()
        thread.join()

    report = audit(step, steps=3, warmup=0)
    assert report.launches_per_step == 1
    assert any("3 launches of other threads" in note for note in report.notes)


def test_figures():
    report = audit(Program().stable, steps=20)
    (site,) = report.sites
    assert site.replayable
    assert 0 < report.graph_us_per_step <= report.host_us_per_step
    assert report.replay_us_per_step <= report.host_us_per_step
    assert report.host_us_per_step == site.host_us
    assert report.replay_us_per_step == report.edited_us_per_step == site.replay_us


def test_the_audit_does_not_count_itself():
    """Without that, looking at 200 arguments would cost more than the launch."""
    plain = audit(Program().stable, steps=30).step_us
    program = Program()
    arrays = [wp.zeros(1, dtype=float) for _ in range(100)]

    def step():
        program.stable()
        for array in arrays:
            array.shape  # noqa: B018

    assert audit(step, steps=30).step_us < 20 * plain


def test_report_is_text_and_json():
    program = Program()

    def step():
        program.scalar()
        program.transient()
        program.stable()
        program.out.numpy()

    report = audit(step, steps=4)
    text = str(report)
    assert max(map(len, text.splitlines())) <= 120
    for expected in (
        "a call of test_report_is_text_and_json.<locals>.step; all 4 steps have the same 4 launches",
        "scalar changes: s",
        "allocated in step: out",
        "wp.array.numpy() reads or waits on the host",
        "-> launches.launch(add, N, [self.x, 0.5], [self.out])",
        "-> launches.launch(add, N, [self.x, 0.01 * self.count], [self.out], dynamic=('s',))",
    ):
        assert expected in text
    loaded = json.loads(report.to_json())
    assert {site["verdict"] for site in loaded["sites"]} == {"changing scalar", "transient array", "stable"}
    assert loaded["host_us_per_step"] == pytest.approx(report.host_us_per_step, abs=0.01)
    assert isinstance(report, AuditReport)


def test_steps_without_launches():
    report = audit(lambda: None)
    assert report.sites == ()
    assert "no launch was seen" in str(report)


def test_steps_that_differ_are_said_to():
    assert "steps have the same" in audit(step_of("conditional")[1], steps=6).sureness
    assert not audit(step_of("conditional")[1], steps=6).sureness.startswith("all")
