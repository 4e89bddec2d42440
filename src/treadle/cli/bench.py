"""``treadle bench``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from treadle.errors import ConfigError, UnknownNameError

__all__ = ["run"]

_INVALID = 1


class _Parser(argparse.ArgumentParser):
    """A parser whose complaints are the command line's."""

    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{self.prog}: {message}")


def run(argv: list[str]) -> int:
    """Run a benchmark.

    Returns:
        0, or 1 where a result is not valid.

    Raises:
        ConfigError: An option is wrong, or something that it needs is missing.
    """
    parser = _parser()
    if not argv:
        parser.print_help()
        return 2
    if not argv[0].startswith("-") and argv[0] not in _BENCHMARKS:
        raise UnknownNameError("benchmark", argv[0], _BENCHMARKS)
    args = parser.parse_args(argv)
    return _BENCHMARKS[args.benchmark](args, ["bench", *argv])


def _parser() -> _Parser:
    parser = _Parser(prog="treadle bench", description="Measure, check, and say where the numbers come from.")
    kinds = parser.add_subparsers(dest="benchmark", required=True, metavar="BENCHMARK", parser_class=_Parser)
    launch = kinds.add_parser("launch", help="host time of each way of launching a kernel")
    launch.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: auto)")
    launch.add_argument("--quick", action="store_true", help="a small part of the matrix")
    launch.add_argument("--kernels", nargs="+", metavar="NAME", help="arrays-1, arrays-4, arrays-12, struct, tiled")
    launch.add_argument("--threads", nargs="+", type=int, metavar="N", help="threads per launch")
    launch.add_argument("--launches", nargs="+", type=int, metavar="N", help="launches per step")
    launch.add_argument("--rounds", type=int, metavar="N", help="rounds, each of which times every mode")
    launch.add_argument("--seed", type=int, metavar="N", help="seed of inputs and confidence intervals (default: 0)")
    launch.add_argument("--out", type=Path, metavar="DIR", help="folder of launch.json, launch.md, launch.svg")
    report = kinds.add_parser("report", help="write again what is made from a launch.json or a soak.json")
    report.add_argument("json_file", type=Path, metavar="JSON", help="a launch.json or a soak.json")
    report.set_defaults(out=None)
    for command in (launch, report):
        command.add_argument("--no-plot", action="store_true", help="write no launch.svg")
        command.add_argument("--update-docs", type=Path, metavar="PAGE", help="rewrite the tables of this page")
    soak = kinds.add_parser("soak", help="run random launch programs and watch for growth")
    soak.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: auto)")
    soak.add_argument("--minutes", type=float, default=30.0, help="how long (default: 30)")
    soak.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the programs (default: 0)")
    soak.add_argument("--out", type=Path, metavar="DIR", help="folder of soak.json")
    for command in (launch, soak):
        command.add_argument("--json", action="store_true", help="print the JSON report instead of tables")
    return parser


def _launch(args: argparse.Namespace, argv: list[str]) -> int:
    from treadle.bench.launch.cfg import LaunchBenchCfg
    from treadle.bench.launch.plot import require_matplotlib
    from treadle.bench.launch.run import invalid_cells, run_launch_bench
    from treadle.bench.tables import write_json

    cfg = LaunchBenchCfg.quick() if args.quick else LaunchBenchCfg()
    given = {name: getattr(args, name) for name in ("device", "kernels", "threads", "launches", "rounds", "seed")}
    cfg = replace(cfg, **{name: value for name, value in given.items() if value is not None})
    cfg.validate()
    if not args.no_plot:
        require_matplotlib()
    _quieten_warp()
    report = run_launch_bench(cfg, argv, progress=_say)
    folder = args.out or _default_folder("launch", report)
    write_json(folder / "launch.json", report)
    _write_views(report, folder, args)
    for problem in invalid_cells(report):
        _say(f"invalid: {problem}")
    return _INVALID if invalid_cells(report) else 0


def _report(args: argparse.Namespace, argv: list[str]) -> int:
    from treadle.bench.launch.plot import require_matplotlib

    try:
        report = json.loads(args.json_file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{args.json_file} can't be read: {error}") from None
    benchmark = report.get("benchmark") if isinstance(report, dict) else None
    if benchmark == "soak":
        from treadle.bench.soak import report as soak_views

        _update_docs(report, soak_views, args.update_docs)
        print(soak_views.text(report))
        return 0
    if benchmark != "launch":
        raise ConfigError(f"{args.json_file} is no report of 'treadle bench launch' or 'treadle bench soak'")
    if not args.no_plot:
        require_matplotlib()
    args.json = False
    _write_views(report, args.json_file.parent, args)
    return 0


def _write_views(report: dict[str, Any], folder: Path, args: argparse.Namespace) -> None:
    """Write and print what is made from the JSON."""
    from treadle.bench.launch import report as views
    from treadle.bench.launch.plot import save_plot

    (folder / "launch.md").write_text(views.markdown(report), encoding="utf-8")
    if not args.no_plot:
        save_plot(report, folder / "launch.svg")
    _update_docs(report, views, args.update_docs)
    print(json.dumps(report, ensure_ascii=False) if args.json else views.text(report))
    _say(f"written to {folder}")


def _update_docs(report: dict[str, Any], views: Any, page: Path | None) -> None:
    """Rewrite the blocks of a page, if one is given, as the views of a benchmark make them."""
    if page is None:
        return
    try:
        text = views.update_page(page.read_text(encoding="utf-8"), report)
    except (OSError, ValueError) as error:
        raise ConfigError(f"--update-docs {page}: {error}") from None
    page.write_text(text, encoding="utf-8")


def _soak(args: argparse.Namespace, argv: list[str]) -> int:
    from treadle.bench.soak.cfg import SoakCfg
    from treadle.bench.soak.report import text
    from treadle.bench.soak.run import run_soak
    from treadle.bench.tables import write_json

    cfg = SoakCfg(device=args.device, minutes=args.minutes, seed=args.seed)
    cfg.validate()
    _quieten_warp()
    report = run_soak(cfg, argv, progress=_say)
    folder = args.out or _default_folder("soak", report)
    write_json(folder / "soak.json", report)
    print(json.dumps(report, ensure_ascii=False) if args.json else text(report))
    _say(f"written to {folder}")
    return _INVALID if report["problems"] else 0


_BENCHMARKS: dict[str, Callable[[argparse.Namespace, list[str]], int]] = {
    "launch": _launch,
    "report": _report,
    "soak": _soak,
}


def _default_folder(benchmark: str, report: dict[str, Any]) -> Path:
    device = report["provenance"]["device"]["alias"].replace(":", "")
    return Path("logs", "bench", f"{benchmark}-{device}-{datetime.now(UTC):%Y-%m-%d_%H-%M-%S}")


def _quieten_warp() -> None:
    import warp as wp

    wp.config.log_level = wp.LOG_WARNING


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
