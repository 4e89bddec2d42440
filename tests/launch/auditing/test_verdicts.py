"""Each kind of call site is told from the others."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
import warp as wp

from treadle.launch import LaunchCache, audit
from treadle.launch.auditing import SiteReport, Verdict
from treadle.launch.auditing.build import _notes
from treadle.launch.auditing.events import Event, Place, Recording, Step

from . import programs
from .programs import N, Program, add, step_of

FILE = Path(programs.__file__)


@functools.cache
def report_of(name: str):
    return audit(step_of(name)[1], steps=4 if name == "kernel" else 8, warmup=2 if name != "kernel" else 0)


def site_of(name: str) -> SiteReport:
    (site,) = {site.kernel: site for site in report_of(name).sites}.values()
    return site


@pytest.mark.parametrize(
    ("name", "verdict", "changed"),
    [
        ("stable", Verdict.STABLE, []),
        ("ping_pong", Verdict.ALTERNATING, ["x", "out"]),
        ("two_sets", Verdict.ALTERNATING, ["out"]),
        ("scalar", Verdict.SCALAR, ["s"]),
        ("struct", Verdict.SCALAR, ["gains.bias"]),
        ("carried", Verdict.POINTER, ["x", "out"]),
        ("pointer", Verdict.POINTER, ["x"]),
        ("view", Verdict.VIEW, ["x"]),
        ("dim", Verdict.DIM, []),
        ("kernel", Verdict.KERNEL, []),
        ("conditional", Verdict.CONDITIONAL, []),
        ("tiled", Verdict.STABLE, []),
        ("tape", Verdict.TAPE, []),
        ("adjoint", Verdict.TAPE, []),
        ("replayed", Verdict.REPLAYED, []),
    ],
)
def test_verdict(name, verdict, changed):
    site = site_of(name)
    assert site.verdict is verdict
    assert [change.name for change in site.changes] == changed
    assert site.owner == "user"


@pytest.mark.parametrize(
    ("name", "also", "changed", "obstacle"),
    [
        ("replayed", (), [], None),
        ("replayed_scalar", (Verdict.SCALAR,), ["s"], "scalar changes: s; a graph would freeze it"),
        ("replayed_swap", (Verdict.ALTERNATING,), ["x", "out"], "2 argument sets (x, out) alternate from step to step"),
        ("bound_dim", (Verdict.DIM,), [], "changing dim"),
    ],
)
def test_replayed_sites_keep_what_is_in_the_way_of_a_graph(name, also, changed, obstacle):
    site, report = site_of(name), report_of(name)
    assert (site.verdict, site.also, site.patched) == (Verdict.REPLAYED, also, ())
    assert [change.name for change in site.changes] == changed
    assert [obstacle in line for line in report.graph_breaks] == ([True] if obstacle else [])
    assert site.code == ()


@pytest.mark.parametrize(
    ("name", "also", "patched", "edit"),
    [
        ("unstable_scalar", (Verdict.SCALAR,), ("s",), ", dynamic=('s',), site='a')"),
        (
            "unstable_sets",
            (Verdict.ALTERNATING,),
            ("out",),
            "-> self.launches.launch(add, N, [self.x, 0.5], [target], ",
        ),
        ("unstable_swap", (Verdict.ALTERNATING, Verdict.SCALAR), ("x", "out"), ", dynamic=('s',), site=self.x.ptr)"),
        ("unstable_view", (Verdict.VIEW,), ("x",), "-> self.launches.launch(add, N, [self.wide[1], 0.5], [self.out])"),
        ("unstable_dim", (Verdict.DIM,), ("dim",), "-> bound = self.launches.bind(add, self.count, "),
    ],
)
def test_unstable_sites_are_flagged_with_the_argument(name, also, patched, edit):
    """What the launch cache calls unstable, the audit does as well, and says what to write instead."""
    program, step = step_of(name)
    report = audit(step, steps=10)
    (site,) = report.sites
    assert [stats.unstable for stats in program.launches.stats.sites.values()] == [True]
    assert (site.verdict, site.also, site.patched) == (Verdict.UNSTABLE, also, patched)
    assert f"unstable ({', '.join(patched)} patched at each call)" in str(report)
    assert any(edit in line for line in site.code), site.code
    assert site.edit and not site.edit.startswith("replay it")
    assert bool(report.graph_breaks) == (name not in ("unstable_sets", "unstable_view"))


@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize(
    "name",
    ["stable", "ping_pong", "scalar", "carried", "view", "dim", "transient", "kernel", "replayed_scalar", "tape"],
)
def test_few_steps_tell_facts_only(name, steps):
    report = audit(step_of(name)[1], steps=steps, warmup=1)
    fact = {"replayed_scalar": Verdict.REPLAYED, "tape": Verdict.TAPE}.get(name, Verdict.UNKNOWN)
    for site in report.sites:
        assert site.verdict is fact
        assert set(site.also) <= {Verdict.UNKNOWN}
        assert not site.replayable and not site.edit and not site.code
        assert all(change.verdict is Verdict.UNKNOWN for change in site.changes)
    if name == "scalar" and steps > 1:
        (line,) = report.graph_breaks
        assert "add: too few steps to tell; seen to change: s" in line


def test_four_steps_are_enough_for_two_buffers_that_change_places():
    (site,) = audit(step_of("ping_pong")[1], steps=4).sites
    assert site.verdict is Verdict.ALTERNATING


def test_a_replay_whose_number_changes_is_not_said_to_be_cheap():
    """Patching a number costs about what launching a small kernel does."""
    (changing,), (stable,) = report_of("scalar").sites, report_of("stable").sites
    assert changing.replay_us > 1.5 * stable.replay_us
    assert ("saves nothing" in changing.edit) == (changing.replay_us > 0.9 * changing.host_us)


def test_patching_counts_as_host_time():
    stable = audit(step_of("replayed_swap")[1], steps=40).host_us_per_step
    patched = audit(step_of("unstable_sets")[1], steps=40)
    assert patched.host_us_per_step > 1.5 * 2 * stable, "two launches in a step"
    assert patched.edited_us_per_step < patched.host_us_per_step


@pytest.mark.parametrize("name", ["replayed_scalar", "unstable_sets", "unstable_view", "bound_dim"])
def test_results_of_replays_are_unchanged_to_the_bit(name):
    (audited, step), (plain, plain_step) = step_of(name), step_of(name)
    audit(step, steps=5, warmup=2)
    for _ in range(7):
        plain_step()
    assert audited.out.numpy().tobytes() == plain.out.numpy().tobytes()
    sites, expected = audited.launches.stats.sites.values(), plain.launches.stats.sites.values()
    assert [(s.recorded, s.replayed, s.patched) for s in sites] == [
        (s.recorded, s.replayed, s.patched) for s in expected
    ]


def test_a_call_of_a_launch_cache_may_have_iterators_and_mistakes():
    program, plain = Program(), Program()
    audit(lambda: program.launches.launch(add, N, iter([program.x, 0.5]), outputs=iter([program.out])), steps=2)
    for _ in range(4):
        plain.stable()
    assert program.out.numpy().tobytes() == plain.out.numpy().tobytes()
    with pytest.raises(TypeError, match="dim"):
        audit(lambda: program.launches.launch(add))


def test_places_are_exact():
    site = site_of("scalar")
    assert site.file == str(FILE)
    assert "0.01 * self.count" in FILE.read_text().splitlines()[site.line - 1]
    assert site.function == "Program.scalar"
    assert site.kernel == "add"
    assert site.calls_per_step == 1


def test_transient_arrays_are_told_by_name_and_line():
    first, second = sorted(report_of("transient").sites, key=lambda site: site.line)
    line = 1 + next(i for i, text in enumerate(FILE.read_text().splitlines()) if "scratch = wp.zeros" in text)
    for site, name in ((first, "out"), (second, "x")):
        assert site.verdict is Verdict.TRANSIENT
        ((change),) = site.changes
        assert (change.name, change.allocated_at) == (name, f"{FILE}:{line}")
        assert any("scratch = wp.zeros" in text for text in site.code)


def test_an_array_that_is_allocated_once_is_not_transient():
    program = Program()

    def step():
        if not hasattr(program, "late") and program.count == 4:
            program.late = wp.zeros(N, dtype=float)
        program.count += 1
        wp.launch(add, N, inputs=[program.x, 0.5], outputs=[getattr(program, "late", program.out)])

    (site,) = audit(step, steps=10, warmup=0).sites
    assert site.verdict in (Verdict.ALTERNATING, Verdict.POINTER)
    assert site.changes[0].allocated_at is None


def test_sets_are_counted():
    assert site_of("ping_pong").sets == 2
    assert not site_of("ping_pong").steady
    assert site_of("two_sets").sets == 2
    assert site_of("two_sets").steady


def test_graphs_are_told_apart():
    report = report_of("graph_launch")
    (site,) = report.sites
    assert site.verdict is Verdict.GRAPH
    assert site.graph_launches == 2
    assert report.launches_per_step == 0
    assert report.sureness == "all 8 steps have the same 1 graph"
    assert report.graph_us_per_step == pytest.approx(report.host_us_per_step)


def test_launches_that_are_captured_in_the_step():
    by_verdict = {site.verdict: site for site in report_of("captured").sites}
    assert set(by_verdict) == {Verdict.CAPTURED, Verdict.GRAPH}
    assert "capture once" in by_verdict[Verdict.CAPTURED].edit


def test_synchronizations_are_listed_with_their_line():
    program = Program()

    def step():
        program.stable()
        wp.synchronize()
        program.stable()
        program.out.numpy()
        wp.synchronize_device("cpu")

    report = audit(step, steps=4)
    assert [(sync.what, sync.per_step) for sync in report.syncs] == [
        ("wp.synchronize()", 1.0),
        ("wp.array.numpy()", 1.0),
        ("wp.synchronize_device()", 1.0),
    ]
    lines = Path(__file__).read_text().splitlines()
    assert "wp.synchronize()" in lines[report.syncs[0].line - 1]
    assert len(report.graph_breaks) == 3


def test_what_a_library_launches_is_its_own(tmp_path, monkeypatch):
    package = tmp_path / "site-packages" / "somelib"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("import warp as wp\n\ndef go(k, n, *args):\n    wp.launch(k, n, list(args))\n")
    monkeypatch.syspath_prepend(package.parent)
    import somelib

    program = Program()
    report = audit(lambda: somelib.go(add, N, program.x, 0.5, program.out), steps=4)
    (site,) = report.sites
    assert (site.owner, site.line, site.replayable) == ("somelib", 4, False)
    assert site.via is not None and site.via[0] == __file__
    assert "use a graph" in site.edit
    assert report.edited_us_per_step == report.host_us_per_step
    assert "somelib: 1 site, 1 launch" in str(report)


def _launches_on(*streams: int | None, device: str = "cuda:0") -> list[str]:
    place = Place("sim.py", 1, "step", "user", "add")
    recording = Recording([Event(place, 0, device=device, stream=stream) for stream in streams])
    return _notes(recording, [Step(0, len(streams))], True, 0.0, 0.0)


def test_several_streams_are_noted():
    assert _launches_on(1, 1) == []
    (note,) = _launches_on(1, 2)
    assert "2 streams" in note


def test_a_busy_device_is_noted():
    recording = Recording([Event(Place("sim.py", 1, "step", "user", "add"), 0, device="cuda:0", stream=1)])
    (note,) = _notes(recording, [Step(0, 1)], False, 100.0, 60.0)
    assert "device is busy" in note
    assert _notes(recording, [Step(0, 1)], False, 100.0, 10.0) == []


def test_kernels_are_no_host_time():
    """The CPU runs the kernel within the launch: a large one must not look like a saving."""
    n = 2_000_000
    x, out = wp.zeros(n, dtype=float), wp.zeros(n, dtype=float)
    report = audit(lambda: wp.launch(add, n, inputs=[x, 0.5], outputs=[out]), steps=12)
    assert report.kernel_us > report.host_us_per_step
    assert report.between_us < report.kernel_us


def test_graphs_of_the_cpu_run_their_kernels():
    n = 2_000_000
    x, out = wp.zeros(n, dtype=float), wp.zeros(n, dtype=float)
    wp.launch(add, n, inputs=[x, 0.5], outputs=[out])
    with wp.ScopedCapture(device="cpu") as capture:
        wp.launch(add, n, inputs=[x, 0.5], outputs=[out])
    report = audit(lambda: wp.capture_launch(capture.graph), steps=6)
    assert report.kernel_us > report.host_us_per_step


def test_edits_can_be_made():
    """What is suggested for a site is a call that the launch cache takes, and it does the same."""
    for name in ("stable", "scalar", "transient", "two_sets", "tiled", "view"):
        for site in report_of(name).sites:
            *refills, line = [text.removeprefix("-> ") for text in site.code if text.startswith("->")]
            assert len(refills) == (name == "transient"), "an array that is kept needs its first values again"
            program, plain = Program(), Program()
            program.count = 1
            scratch, target = wp.zeros(N, dtype=float), program.out
            launches = LaunchCache("cpu", mode="replay", contract="checked")
            context = {"self": program, "scratch": scratch, "target": target, "launches": launches}
            for _ in range(2):
                exec(line, vars(programs) | context)
            assert launches.stats.total("recorded") == 1
            assert launches.stats.total("replayed") == 1
            if name == "stable":
                plain.stable()
                plain.stable()
                assert program.out.numpy().tobytes() == plain.out.numpy().tobytes()
