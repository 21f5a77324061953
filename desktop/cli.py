"""The command line: the same functions that the window uses, without a window.

Words, keys and exit codes are a contract: scripts rely on them. Nothing heavy is
imported before a command needs it.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import math
import os
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from desktop import __version__, stopping
from desktop.core.units import si
from desktop.errors import sentence
from desktop.printing import Printed, TerminalProgress, as_csv, printable
from desktop.progress import Cancelled

if TYPE_CHECKING:
    from desktop.core.curve import StepCurve
    from desktop.core.phase_stats import PhaseRow
    from desktop.core.phases import PhaseFit
    from desktop.data.statistics import RangeStats, Statistics
    from desktop.data.store import TraceStore
    from desktop.data.utilization import Utilization

DONE, FAILED, USAGE, LOSSY = 0, 1, 2, 3
_CLEAR = "\r\033[K"  # the line on the terminal
MODELS = ("constant", "linear", "quadratic", "mixed", "budget")
COMMANDS = (
    "import",
    "info",
    "phases",
    "compare",
    "stats",
    "report",
    "record",
    "snapshot",
    "model",
    "spt",
    "desktop",
    "warm-up",
)
DEFAULT_MODEL = "mixed"


@contextlib.contextmanager
def _progress() -> Iterator[TerminalProgress]:
    progress = TerminalProgress()
    try:
        yield progress
    finally:
        progress.clear()


def run(argv: list[str]) -> int:
    """Do what the words say; returns the exit code.

    0 done; 3 done, but part of the input was lost; 1 not done, one sentence on standard error; 2 the
    words are wrong; 128 and the number of a signal (130 Ctrl-C, 143 SIGTERM, 129 SIGHUP): asked to end before
    it was done.
    """
    words = [word for word in argv if word != "--debug"]
    with stopping.listening(), _for_people():
        if words[:1] and words[0] in COMMANDS:
            stopping.complete.clear()
            stopping.leave_no(run, _say_stopped)
        try:
            return _run(words, debug=len(words) < len(argv))
        finally:
            stopping.left(run)


@contextlib.contextmanager
def _for_people() -> Iterator[None]:
    """What is printed comes from strangers' files in part: a terminal shows it and obeys none of it."""
    before = sys.stdout, sys.stderr
    # A program without a terminal (a frozen one on Windows) may have no streams.
    sys.stdout, sys.stderr = (
        stream if stream is None or isinstance(stream, Printed) else Printed(stream) for stream in before
    )
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _run(words: list[str], debug: bool) -> int:
    try:
        if words[:1] and words[0] in COMMANDS:
            options = _parser().parse_args(words)
            stopping.check()
            return int(options.command(options))
        return _window(words)
    except SystemExit as stop:  # argparse: 0 after --help, 2 after wrong words
        return stop.code if isinstance(stop.code, int) else USAGE
    except BrokenPipeError:  # the reader of our output has gone, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except (Cancelled, KeyboardInterrupt) as stopped:
        print(f"phasewright: {_sentence(stopped)}", file=sys.stderr)
        return stopping.code()
    except Exception as error:
        if debug:
            raise
        print(f"phasewright: {_sentence(error)}", file=sys.stderr)
        return FAILED


def _say_stopped() -> None:
    """Said by another thread, while this one may hold standard error or wait in it."""
    kept = printable(_kept(), 2000)
    line = f"{_CLEAR if sys.stderr.isatty() else ''}phasewright: stopped{kept and f', {kept}'}\n"
    os.write(2, line.encode("utf-8", "replace"))


def _kept() -> str:
    """What this command has written before it was stopped, in words; "" if nothing."""
    there = [str(path) for path in stopping.complete if path.exists()]
    more = f" and {len(there) - 5} more" if len(there) > 5 else ""
    return f"complete {'is' if len(there) == 1 else 'are'} {', '.join(there[:5])}{more}" if there else ""


def _sentence(error: BaseException) -> str:
    if isinstance(error, Cancelled | KeyboardInterrupt):
        return f"stopped, {str(error) or _kept() or 'nothing was written'}"
    said = sentence(error)
    if said:
        return said
    return (
        f"an error of the program itself ({type(error).__name__}: {' '.join(str(error).split())}), "
        "repeat with --debug and report what it prints"
    )


def _parser() -> argparse.ArgumentParser:
    from desktop.commands import compare, integration, record, report, spt, warm_up
    from desktop.commands import model as factor_model
    from desktop.data.importers import FORMATS

    parser = argparse.ArgumentParser(
        prog="phasewright",
        description="Explain why a parallel program is slow: traces become phases. Without a command the "
        "window opens, one for each file named.",
        epilog="examples: phasewright traces.otf2 | phasewright phases traces.otf2 -n 5 --model linear | "
        "phasewright import run.trf -o run.h5",
    )
    parser.add_argument("--version", action="version", version=f"phasewright {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    _window_words(parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, function: Any, text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(command=function)
        return sub

    def formats(sub: argparse.ArgumentParser, *, csv_too: bool) -> None:
        group = sub.add_mutually_exclusive_group()
        group.add_argument("--json", action="store_true", help="one JSON object on standard output")
        if csv_too:
            group.add_argument("--csv", action="store_true", help="comma-separated rows on standard output")

    def span(sub: argparse.ArgumentParser) -> None:
        sub.add_argument(
            "--start",
            type=float,
            metavar="S",
            help="analyse from this second on (else: as a project says)",
        )
        sub.add_argument("--end", type=float, metavar="S", help="analyse up to this second")

    def window(sub: argparse.ArgumentParser) -> None:
        sub.add_argument("--model", choices=MODELS, help=f"default {DEFAULT_MODEL}")
        span(sub)
        sub.add_argument("--as-recorded", action="store_true", help="do not repair contradicting clocks")

    sub = command("import", _import, "import traces into HDF5")
    sub.add_argument(
        "sources", nargs="+", metavar="SOURCE", type=Path, help="a trace, an archive, or a folder of them"
    )
    sub.add_argument("-o", "--output", type=Path, metavar="OUT.h5", help="where to (default: the cache)")
    sub.add_argument("--format", choices=FORMATS, help="do not look at the content")
    sub.add_argument(
        "--time-unit",
        choices=("s", "ms", "us", "ns"),
        default="s",
        help="of a curve file, or of a trace that says none",
    )
    sub.add_argument("--force", action="store_true", help="import anew and replace what is there")
    sub.add_argument(
        "--scheduler", metavar="ADDRESS", help="read on a dask.distributed cluster, such as tcp://host:8786"
    )
    part = sub.add_argument_group("a part of one trace, as a trace of its own (needs -o)")
    part.add_argument("--start", type=float, metavar="S", help="begin of the part, seconds")
    part.add_argument("--end", type=float, metavar="S", help="end of the part, seconds")
    part.add_argument("--ranks", metavar="LIST", help="of these ranks only, such as 0-3,8")
    formats(sub, csv_too=False)

    sub = command("info", _info, "what a trace holds")
    sub.add_argument("file", metavar="FILE", type=Path)
    formats(sub, csv_too=False)

    sub = command("phases", _phases, "fit phases to the processor-utilization curve")
    sub.add_argument("file", metavar="FILE", type=Path)
    which = sub.add_mutually_exclusive_group()
    which.add_argument("-n", type=_positive, metavar="N", help="phases (with budget: parameters)")
    which.add_argument("--max-n", type=_positive, metavar="N", help="all n up to N, and which to take")
    window(sub)
    formats(sub, csv_too=True)

    sub = command("compare", _compare, "the phases of two or more runs beside each other")
    compare.add_words(sub)
    sub.add_argument("-n", type=_positive, metavar="N", help="phases of every run (default: as suggested)")
    sub.add_argument("--model", choices=MODELS, help=f"default {DEFAULT_MODEL}")
    formats(sub, csv_too=True)

    sub = command("stats", _stats, "what the run and its phases are made of")
    sub.add_argument("file", metavar="FILE", type=Path)
    sub.add_argument("-n", type=_positive, metavar="N", help="also of each phase (with budget: parameters)")
    window(sub)
    formats(sub, csv_too=True)

    sub = command("report", _report, "a report for others: HTML, PDF or slides")
    report.add_words(sub)
    sub.add_argument("-n", type=_positive, metavar="N", help="phases (default: the suggested number)")
    sub.add_argument("--model", choices=MODELS, help=f"default {DEFAULT_MODEL}; a project says it itself")
    span(sub)

    spt.add_words(command("spt", _spt, "experiments with artificial delays"))

    sub = command("model", _model, "fit the factor model to a table of run times")
    factor_model.add_words(sub)
    formats(sub, csv_too=True)

    integration.add_words(command("desktop", _desktop, "put the program into the menus of a Linux desktop"))

    warm_up.add_words(
        command("warm-up", _warm_up, "compile now what the first trace of each format waits for")
    )

    record.add_words(command("record", _record, "run an MPI program and record it"))

    sub = command("snapshot", _snapshot, "render the window into a picture, without a display")
    sub.add_argument("file", metavar="FILE", type=Path)
    sub.add_argument("-o", "--output", type=Path, required=True, metavar="OUT.png")
    sub.add_argument("-n", type=_positive, metavar="N", help="phases (default: the suggested number)")
    sub.add_argument("--model", choices=MODELS, help=f"default {DEFAULT_MODEL}")
    span(sub)
    sub.add_argument("--size", type=_size, default=(1600, 1000), metavar="WxH")
    sub.add_argument("--theme", choices=("light", "dark"), default="light")
    return parser


def _positive(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 on")
    return value


def _size(text: str) -> tuple[int, int]:
    width, _, height = text.lower().partition("x")
    if not (
        width.isdigit() and height.isdigit() and 320 <= int(width) <= 16384 and 240 <= int(height) <= 16384
    ):
        raise argparse.ArgumentTypeError(f"{text!r} is no size such as 1600x1000 (320x240 to 16384x16384)")
    return int(width), int(height)


def _window(words: list[str]) -> int:
    """No command: the window, on the files named."""
    own = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    _window_words(own)
    own.add_argument("files", nargs="*")
    how, unknown = own.parse_known_args(words)
    if unknown:
        parser = _parser()
        parser.parse_known_args([unknown[0], "info", ""])  # --help and --version end here
        parser.error(f"there is no option {unknown[0]}")
    files = how.files
    # A word that is no file is more likely a mistyped command than a trace: say both.
    missing = [name for name in files if not Path(name).exists()]
    if missing:
        print(
            f"phasewright: {missing[0]}: there is no such file or command, "
            f"name a trace or one of {', '.join(COMMANDS)}",
            file=sys.stderr,
        )
        return FAILED if os.sep in missing[0] or "." in missing[0] else USAGE
    from desktop.display import obstacle

    reason = obstacle()
    if reason:
        print(
            f"phasewright: {reason}, use 'phasewright snapshot FILE -o OUT.png' or one of the other commands",
            file=sys.stderr,
        )
        return FAILED
    notice = _reset_settings() if how.reset_settings else ""
    from desktop.ui.app import Start
    from desktop.ui.app import run as run_window

    stopping.check()
    return run_window(files, Start(how.safe_mode, how.log_level, how.log_file, notice))


def _window_words(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the window")
    group.add_argument(
        "--safe-mode",
        action="store_true",
        help="settings as at first, nothing reopened, no settings or logs written",
    )
    group.add_argument(
        "--reset-settings", action="store_true", help="put the settings aside and start with those at first"
    )
    group.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="info")
    group.add_argument("--log-file", type=Path, metavar="FILE", help="log there, not into the log folder")


def _reset_settings() -> str:
    """Put the settings aside; a sentence that says where they are."""
    from desktop.ui.settings import put_settings_aside

    kept = put_settings_aside("backup")
    said = f"The former settings are in {kept}." if kept else "There were no settings to be reset."
    print(f"phasewright: {said[0].lower()}{said[1:-1]}", file=sys.stderr)
    return said


def _outcome(store: TraceStore) -> int:
    """0 or 3, saying on standard error what was lost."""
    for finding in store.report:
        if finding.severity in ("loss", "error"):
            where = f" ({finding.where})" if finding.where else ""
            print(
                f"phasewright: {store.source.name}: {finding.count} x {finding.text}{where}", file=sys.stderr
            )
    return LOSSY if store.report.lossy else DONE


def _print_doubt(store: TraceStore) -> None:
    """Say at the numbers of a curve how much of them may be wrong."""
    from desktop.data.consistency import doubt

    found = doubt(store)
    if found is not None:
        print(found.sentence)


def _open(path: Path, **options: Any) -> TraceStore:
    from desktop.data.opening import open_trace

    with _progress() as progress:
        return open_trace(path, progress, **options)


def _settle(options: argparse.Namespace) -> None:
    """Where FILE is a project, take the run in it that was shown, and what the words leave open from there.

    `options.trace` is then the trace, `options.phases` the `PhaseSettings`, `options.rules` the rules, and
    `options.kept` what the project says of the run.
    """
    from desktop.data.project_file import is_project
    from desktop.workbench.model import PhaseSettings, Project

    n, model = getattr(options, "n", None), getattr(options, "model", None)
    free = PhaseSettings(model or DEFAULT_MODEL, n or 1)
    options.trace, options.rules, options.phases, options.project = options.file, None, free, False
    options.kept = Project()
    if not is_project(options.file):
        return
    from desktop.errors import ProjectError
    from desktop.workbench.keeping import find_trace, read_workspace

    workspace = read_workspace(options.file)
    if not workspace.runs:
        raise ProjectError("holds no trace", file=options.file)
    run = workspace.runs[workspace.shown]
    trace = find_trace(run.trace, options.file)
    if trace is None:
        raise ProjectError(
            f"its trace {run.trace.name} is not at {run.trace.path}",
            file=options.file,
            hint="open the project in the window, say where the trace is, and save",
        )
    options.trace, options.rules, options.project = trace, run.project.rules, True
    options.kept = run.project
    if n is None and model is None:
        options.phases = run.project.phases
    elif n is None:
        options.phases = PhaseSettings(free.model, run.project.phases.n)
    elif model is None:
        options.phases = PhaseSettings(run.project.phases.model, n)


def _import(options: argparse.Namespace) -> int:
    from desktop.data.info import info
    from desktop.data.opening import import_all
    from desktop.data.sources import expand
    from desktop.data.store import open_store

    how = {
        "format_id": options.format,
        "force": options.force,
        "time_unit": options.time_unit,
        "scheduler": options.scheduler,
    }
    if (options.start, options.end, options.ranks) != (None, None, None):
        return _import_part(options, how)
    with _progress() as progress:
        found = expand(options.sources, progress)
        folder = options.output and options.output.is_dir()
        if options.output and len(found.paths) > 1 and not folder:
            raise ValueError("several sources need a folder after -o, which exists")
        places = [options.output / f"{name}.h5" if folder else options.output for _, name in found.paths]
        sources = [path for path, _ in found.paths]
        outcomes = import_all(list(zip(sources, places, strict=True)), progress, **how)
    codes, results = [], []
    left = sum(isinstance(outcome, Cancelled) for outcome in outcomes)
    for source, outcome in zip(sources, outcomes, strict=True):
        if isinstance(outcome, Exception):
            if len(sources) == 1:
                raise outcome
            stopped = isinstance(outcome, Cancelled)
            error = "stopped" if stopped else _sentence(outcome)
            results.append({"source": {"name": source.name}, "error": error})
            if not stopped:
                print(f"phasewright: {error}", file=sys.stderr)
                codes.append(FAILED)
            continue
        if left:
            results.append({"source": {"name": source.name}, "store": str(outcome)})
            if not options.json:
                print(f"{source}: kept in {outcome}")
            continue
        with open_store(outcome) as store:
            facts = info(store)
            codes.append(_outcome(store))
        results.append({"store": str(outcome), **facts})
        if not options.json:
            print(
                f"{source}: {facts['totals']['events']} events of {len(facts['locations'])} locations, "
                f"kept in {outcome}"
            )
    if found.strange:
        names = [str(path) for path in found.strange]
        more = f" and {len(names) - 10} more" if len(names) > 10 else ""
        print(f"phasewright: not recognised as traces: {', '.join(names[:10])}{more}", file=sys.stderr)
    if options.json:
        several = {"imports": results, "not_recognised": [str(path) for path in found.strange]}
        _print_json(results[0] if len(results) == 1 else several)
    if left:
        raise Cancelled(
            f"{sum(isinstance(one, Path) for one in outcomes)} of {len(outcomes)} sources are imported"
        )
    # Of several sources, those that failed are input that was refused.
    return FAILED if set(codes) == {FAILED} else LOSSY if any(codes) else DONE


def _import_part(options: argparse.Namespace, how: dict[str, Any]) -> int:
    from desktop.data.info import info
    from desktop.data.store import open_store
    from desktop.data.trim import of_ranks, trim

    if len(options.sources) > 1 or options.output is None or options.output.is_dir():
        raise ValueError("a part is made of one trace, and needs a file after -o")
    source = options.sources[0]
    start, end = (
        given if given is not None else limit
        for given, limit in ((options.start, -math.inf), (options.end, math.inf))
    )
    with _open(source, **how) as store:
        named = options.ranks
        locations = None if named is None else of_ranks([at.rank for at in store.locations], named)
        with _progress() as progress:
            trim(store, options.output, start, end, locations, progress)
    with open_store(options.output) as part:
        facts = info(part)
        if options.json:
            _print_json({"store": str(options.output), **facts})
        else:
            print(
                f"{facts['source']['name']}: {facts['totals']['events']} events of "
                f"{len(facts['locations'])} locations, kept in {options.output}"
            )
        return _outcome(part)


def _info(options: argparse.Namespace) -> int:
    from desktop.data.info import info

    _settle(options)
    with _open(options.trace) as store:
        facts = info(store)
        if options.json:
            _print_json(facts)
        else:
            _print_info(facts)
            _print_doubt(store)
        return _outcome(store)


def _print_info(facts: dict[str, Any]) -> None:
    source, use, clock = facts["source"], facts["utilization"], facts["clock"]
    name = printable(source["name"])
    print(f"{name}  {facts['format']}, {source['size']} bytes, sha256 {source['sha256'][:16]}...")
    print(f"duration        {si(facts['duration_s'])}s, {facts['ticks_per_second']:g} ticks per second")
    totals = facts["totals"]
    print("events          " + ", ".join(f"{value} {key.replace('_', ' ')}" for key, value in totals.items()))
    print(
        f"utilization     mean {use['mean']:.4g}, max {use['max']:g} of {use['processors']} processors, "
        f"{use['segments']} segments, {use['integral_s']:.6g} processor-seconds"
    )
    print(
        f"clocks          {clock['violations_before']} of {clock['checked']} checks contradict, "
        f"{clock['violations_after']} after repair ({clock['repair']})"
        + (f", by {si(clock['most_before_s'])}s at most as recorded" if clock["violations_before"] else "")
    )
    if facts["locations"]:
        print(
            f"{'location':>12} {'kind':<12}{'events':>10}{'computing':>12}{'overhead':>12}{'idle':>12}  name"
        )
    kinds = ("computing_s", "overhead_s", "idle_s")
    shown = [_column([place[kind] for place in facts["locations"]]) for kind in kinds]
    for number, place in enumerate(facts["locations"]):
        times = "".join(f"{column[number]:>11}s" for column in shown)
        head = f"{place['id']:>12}{place['rank']:>6} {place['kind']:<12}{place['events']:>10}"
        print(f"{head}{times}  {printable(place['name'])}")
    for finding in facts["report"]:
        said = f"{finding['severity']}: {finding['count']} x {finding['text']} {finding['where']}"
        print(printable(said, 2000))


def _use(store: TraceStore, options: argparse.Namespace) -> Utilization:
    from desktop.data.utilization import Rules, build

    rules = options.rules or Rules()
    with _progress() as progress:
        return build(store, replace(rules, repaired=False) if options.as_recorded else rules, progress)


def _window_of(curve: StepCurve, options: argparse.Namespace) -> StepCurve:
    """The part that was asked for, or else that a project limits the analysis to. Of breaks that the project
    has by hand or locked, those inside of it are left in `options.phases`."""
    from desktop.workbench.limiting import limited

    kept, ends = options.kept, (curve.start, curve.start + curve.duration)
    limit = _span(options, ends) or kept.limit
    if limit is None:
        return curve
    part = curve.window(*limit)
    if limit != kept.limit and options.phases is kept.phases:
        options.phases = limited(kept, (part.start, part.start + part.duration), ends).phases
    return part


def _span(options: argparse.Namespace, ends: tuple[float, float]) -> tuple[float, float] | None:
    """--start and --end, one of which may be left out; None where both are."""
    if options.start is None and options.end is None:
        return None
    return (
        ends[0] if options.start is None else options.start,
        ends[1] if options.end is None else options.end,
    )


def _fit(curve: StepCurve, options: argparse.Namespace) -> PhaseFit:
    """The phases asked for."""
    from desktop.core.phases import fit, fit_breaks

    phases = options.phases
    if phases.breaks is not None:
        return fit_breaks(curve, phases.breaks, phases.model, degrees=phases.degrees)
    return fit(curve, phases.n, phases.model, locked=phases.locked)


def _check_budget(model: str, n: int | None) -> None:
    if model == "budget" and n is not None and n < 2:
        raise ValueError("a budget of fewer than 2 parameters holds no phase, ask for -n 2 or more")


def _phases(options: argparse.Namespace) -> int:
    from desktop.data.info import in_doubt

    _settle(options)
    if options.n is None and options.max_n is None and not options.project:
        print("phasewright phases: say how many, -n N, or --max-n N for all up to N", file=sys.stderr)
        return USAGE
    _check_budget(options.phases.model, options.max_n or options.phases.n)
    with _open(options.trace) as store:
        curve = _window_of(_use(store, options).curve(), options)
        if options.max_n:
            _print_sweep(curve, options, in_doubt(store))
        else:
            _print_phases(curve, options, in_doubt(store))
        if not (options.json or options.csv):
            _print_doubt(store)
        return _outcome(store)


def _print_sweep(curve: StepCurve, options: argparse.Namespace, in_doubt_s: float | None) -> None:
    from desktop.core.selection import search

    model = options.phases.model
    result, suggestion = search(curve, model, to=options.max_n)
    rows = [
        {"n": fit.requested, "epsilon": fit.epsilon, "breaks_s": fit.breaks.tolist()}
        for fit in result.fits
        if fit.requested <= options.max_n
    ]
    suggested = result.fit(suggestion.n)
    if options.json:
        _print_json(
            {
                "model": model,
                "sweep": rows,
                "suggested_n": suggestion.n,
                "suggested_breaks_s": suggested.breaks.tolist(),
                "reason": suggestion.reason,
                "limit_reached": suggestion.limit_reached,
                "in_doubt_s": in_doubt_s,
            }
        )
    elif options.csv:
        _print_csv(
            ("n", "epsilon", "breaks_s"),
            ((row["n"], row["epsilon"], " ".join(map(repr, row["breaks_s"]))) for row in rows),
        )
    else:
        print(f"{'n':>4} {'epsilon':>14}  breaks (s)")
        for row in rows:
            mark = "*" if row["n"] == suggestion.n else " "
            print(
                f"{row['n']:>3}{mark} {row['epsilon']:>14.6g}  "
                + " ".join(f"{x:.6g}" for x in row["breaks_s"][1:-1])
            )
        if suggestion.n > options.max_n:
            print(f"{suggestion.n} would be suggested, more than asked for: {suggestion.reason}")
        else:
            print(f"* suggested: {suggestion.reason}")


#: Columns of a phase in JSON and CSV; attributes of `desktop.core.phase_stats.PhaseRow`.
PHASE_COLUMNS = (
    "start_s",
    "end_s",
    "degree",
    "coefficients",
    "error",
    "mean",
    "min",
    "max",
    "efficiency",
    "work_s",
)


def _print_phases(curve: StepCurve, options: argparse.Namespace, in_doubt_s: float | None) -> None:
    from desktop.core.phase_stats import phase_table

    model = _fit(curve, options)
    phases = phase_table(curve, model)
    rows = [{name: getattr(phase, name) for name in PHASE_COLUMNS} for phase in phases]
    if options.json:
        _print_json(
            {
                "model": model.model,
                "n": model.n,
                "epsilon": model.epsilon,
                "sse": model.sse,
                "equidistribution": model.equidistribution,
                "evaluations": model.evaluations,
                "breaks_s": model.breaks.tolist(),
                "break_ranges_s": list(zip(model.break_low.tolist(), model.break_high.tolist(), strict=True)),
                "note": model.note,
                "in_doubt_s": in_doubt_s,
                "phases": rows,
            }
        )
    elif options.csv:
        for row in rows:
            powers = [float(value) for value in row.pop("coefficients")]
            row.update(zip(("c0", "c1", "c2"), powers + [0.0] * (3 - len(powers)), strict=True))
        _print_csv(tuple(rows[0]), (row.values() for row in rows))
    else:
        _print_phase_table(model, phases)


def _print_phase_table(model: PhaseFit, phases: Sequence[PhaseRow]) -> None:
    """The phases as a person reads them."""
    asked = f" of {model.requested} parameters" if model.model == "budget" else ""
    print(
        f"{model.model}{asked}, n = {model.n}: epsilon {model.epsilon:.6g} processors*sqrt(s), "
        f"total squared error {model.sse:.6g} processors^2*s, "
        f"smallest/largest local error {model.equidistribution:.4g}"
    )
    if model.note:
        print(model.note)
    if model.model == "mixed":
        print("its epsilon weights the error of a constant by sqrt(2), of a line by sqrt(4/3) (section 5.1)")
    heads = ("", "start", "end", "length", "degree", "mean", "efficiency", "work proc*s", "error")
    print("{:>3}{:>11}{:>11}{:>11}  {:<10}{:>8}{:>12}{:>13}{:>11}".format(*heads))
    columns = [
        _column(values)
        for values in (
            [row.start_s for row in phases],
            [row.end_s for row in phases],
            [row.end_s - row.start_s for row in phases],
        )
    ]
    for index, row in enumerate(phases, 1):
        times = "".join(f"{column[index - 1]:>10}s" for column in columns)
        degree = ("constant", "linear", "quadratic")[row.degree]
        print(
            f"{index:>3}{times}  {degree:<10}{row.mean:>8.4g}{100 * row.efficiency:>11.1f}%"
            f"{row.work_s:>13.4g}{row.error:>11.4g}"
        )


def _spt(options: argparse.Namespace) -> int:
    result, lines = options.part(options)
    if options.json:
        _print_json(result)
    elif getattr(options, "csv", False):
        rows = options.rows(result)
        _print_csv(tuple(rows[0]), (row.values() for row in rows))
    else:
        print("\n".join(lines))
    if result.get("stopped"):
        return stopping.code()
    return LOSSY if result.get("missing_runs") or result.get("given_up") else DONE


def _model(options: argparse.Namespace) -> int:
    from desktop.commands import model as factor_model

    with _progress() as progress:
        result, found, chosen = factor_model.run(options, progress)
    if options.json:
        _print_json(result)
    elif options.csv:
        rows = result["pairs"] if options.all_pairs else result["parameters"]
        plain = [{k: " ".join(v) if k == "functions" else v for k, v in row.items()} for row in rows]
        _print_csv(tuple(plain[0]), (row.values() for row in plain))
    else:
        for line in factor_model.told(result, found, chosen):
            print(line)
    for row in chosen.excluded:
        print(f"phasewright: {options.table}: line {row.line} is left out: {row.reason}", file=sys.stderr)
    return LOSSY if chosen.excluded else DONE


def _compare(options: argparse.Namespace) -> int:
    from desktop.commands import compare

    _check_budget(options.model, options.n)
    codes: list[int] = []
    with _progress() as progress:
        result = compare.run(options, progress, lambda store: codes.append(_outcome(store)))
    if options.json:
        _print_json(result)
    elif options.csv:
        _print_csv(compare.COLUMNS, (cell.values() for cell in result["cells"]))
    else:
        print("\n".join(compare.told(result, si)))
    return max(codes)


def _stats(options: argparse.Namespace) -> int:
    """JSON: ``source``, ``model``, ``n``, ``breaks_s``, ``in_doubt_s``, and ``ranges``, the whole (``name``
    "run" or "window") before its phases (``name`` "phase 1", ...), each with ``level`` (mean of the fitted
    polynomial) and the keys of `desktop.data.explain.explained`."""
    from desktop.data.explain import explained, single
    from desktop.data.info import in_doubt
    from desktop.data.statistics import Statistics

    _settle(options)
    by_phase = options.project or options.n is not None
    _check_budget(options.phases.model, options.phases.n if by_phase else None)
    with _open(options.trace) as store:
        use = _use(store, options)
        curve = _window_of(use.curve(), options)
        end = curve.start + curve.duration
        names, ranges = ["run" if curve is use.curve() else "window"], [(curve.start, end)]
        levels, breaks = [curve.mean], [curve.start, end]
        if by_phase:
            model = _fit(curve, options)
            breaks = model.breaks.tolist()
            ranges += itertools.pairwise(breaks)
            names += [f"phase {i}" for i in range(1, model.n + 1)]
            levels += model.coefficients[:, 0].tolist()
        kept = Statistics(store)
        with _progress() as progress:
            found = kept.ranges(ranges, use, progress, replay=True)
        if options.json:
            before = [None, None, *found[1:-1]]
            told = [
                {"name": name, "level": level, **explained(store, kept, use, found[0], stats, former)}
                for name, level, stats, former in zip(names, levels, found, before, strict=False)
            ]
            model_id = options.phases.model if by_phase else None
            how = {"model": model_id, "n": len(found) - 1, "breaks_s": breaks, "in_doubt_s": in_doubt(store)}
            _print_json({"source": store.source.name, **how, "ranges": told})
        elif options.csv:
            rows = [
                {"name": name, "level": level, **single(stats)}
                for name, level, stats in zip(names, levels, found, strict=True)
            ]
            _print_csv(tuple(rows[0]), (row.values() for row in rows))
        else:
            _print_stats(kept, use, names, found)
            _print_doubt(store)
        return _outcome(store)


def _print_stats(
    kept: Statistics, use: Utilization, names: Sequence[str], found: Sequence[RangeStats]
) -> None:
    """The ranges as a person reads them, within 100 columns."""
    heads = ("start", "length", "computing", "par.eff", "balance", "comm", "serial", "transfer", "messages")
    print("{:<10}{:>11}{:>11}{:>10}{:>9}{:>9}{:>9}{:>9}{:>10}{:>10}".format("", *heads))
    begins, lengths = _column([one.start_s for one in found]), _column([one.duration_s for one in found])
    for name, stats, begin, long in zip(names, found, begins, lengths, strict=True):
        parts = (
            stats.parallel_efficiency,
            stats.load_balance,
            stats.communication_efficiency,
            stats.serialisation_efficiency,
            stats.transfer_efficiency,
        )
        told = ["-" if part is None or math.isnan(part) else f"{100 * part:.1f}%" for part in parts]
        count = "-" if stats.messages is None else f"{stats.messages.sent.sum()}"
        print(
            f"{name:<10}{begin:>10}s{long:>10}s{stats.computing:>10.4g}"
            f"{told[0]:>9}{told[1]:>9}{told[2]:>9}{told[3]:>9}{told[4]:>10}{count:>10}"
        )
    for name, stats in zip(names, found, strict=True):
        print(f"\n{name}")
        if stats.is_processor.any():
            ends = [
                f"{printable(kept.name(i))} ({100 * stats.utilization[i]:.1f}%)"
                for i in (int(stats.most_loaded(1)[0]), int(stats.idlest(1)[0]))
            ]
            print(f"  computing most of the time {ends[0]}, least {ends[1]}")
        rows = kept.flat(stats, use)[:5]
        own, whole = _column([row.exclusive_s for row in rows]), _column([row.inclusive_s for row in rows])
        for row, exclusive, inclusive in zip(rows, own, whole, strict=True):
            name = printable(row.name, 32)
            print(
                f"  {name:<32}{100 * row.share:>7.1f}%{exclusive:>10}s exclusive"
                f"{inclusive:>10}s inclusive{row.calls:>10} calls"
            )
        replayed = stats.replayed
        if replayed is not None and replayed.waiting_s is not None and replayed.transfer_s is not None:
            print(
                f"  waiting for partners {replayed.waiting_s.sum():.4g} processor-seconds, "
                f"other communication {replayed.transfer_s.sum():.4g} processor-seconds"
            )
        notes = [stats.note, *((replayed.ideal_note, replayed.waiting_note) if replayed else ())]
        for note in filter(None, notes):
            print(textwrap.fill(note, 98, initial_indent="  ", subsequent_indent="  "))
    for number, (left, right) in enumerate(itertools.pairwise(found[1:]), 1):
        print(f"\nwhat changed from phase {number} to phase {number + 1}")
        for change in kept.changes(found[0], left, right, 5):
            print(textwrap.fill(change.sentence, 98, initial_indent="  ", subsequent_indent="    "))


def _report(options: argparse.Namespace) -> int:
    from desktop.commands import report

    _check_budget(options.model, options.n)
    with _progress() as progress:
        result, stores = report.run(options, progress)
    if options.json:
        _print_json(result)
    else:
        print("\n".join(report.told(result)))
    codes = []
    for store in stores:
        with store:
            codes.append(_outcome(store))
    return max(codes)


def _desktop(options: argparse.Namespace) -> int:
    from desktop.commands import integration

    print("\n  ".join(integration.run(options)))
    return DONE


def _warm_up(options: argparse.Namespace) -> int:
    from desktop.commands import warm_up

    with _progress() as progress:
        said = warm_up.run(options, progress)
    print("\n".join(said))
    return DONE


def _record(options: argparse.Namespace) -> int:
    from desktop.commands import record

    with _progress() as progress:
        runs, facts = record.run(options, progress)
    if options.json:
        _print_json(facts)
    for line in () if options.json else record.lines(runs, facts):
        print(line)
    if any(run.code for run in runs):
        codes = ", ".join(str(run.code) for run in runs if run.code)
        print(f"phasewright: the program ended with exit code {codes}", file=sys.stderr)
        return FAILED
    if options.json or options.no_open:
        return DONE
    return _window([str(run.folder) for run in runs]) if record.can_show() else DONE


def _snapshot(options: argparse.Namespace) -> int:
    os.environ["QT_QPA_PLATFORM"] = "offscreen"  # the same pixels as on a screen, and none is needed
    from desktop.core.phase_stats import phase_table
    from desktop.ui.snapshot import snapshot

    _settle(options)
    with _open(options.trace) as store:
        curve, model = snapshot(
            options.file if options.project else store,
            options.output,
            n=options.n,
            model=options.model,
            span=_span(options, (-math.inf, math.inf)),
            size=options.size,
            theme=options.theme,
        )
        print(
            f"The window, {options.size[0]}x{options.size[1]}, is in {options.output}; the phases it shows:"
        )
        _print_phase_table(model, phase_table(curve, model))
        return _outcome(store)


def _print_json(value: Any) -> None:
    json.dump(_plain(value), sys.stdout, indent=1, allow_nan=False)
    print()


def _plain(value: Any) -> Any:
    """Numbers of numpy become numbers of Python, what is not a number becomes null."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _print_csv(header: tuple[str, ...], rows: Any) -> None:
    def lines() -> Iterator[Any]:
        yield header
        for row in rows:
            stopping.check()
            yield _plain(list(row))

    sys.stdout.writelines(as_csv(lines()))


def _column(values: Sequence[float]) -> list[str]:
    """As `si`, with one prefix for all: that of the largest."""
    most = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    return [si(value, largest=most) for value in values]
