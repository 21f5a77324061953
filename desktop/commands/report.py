"""``phasewright report``: a run and its phases as HTML, PDF or slides, for those who were not there."""

from __future__ import annotations

import argparse
import hashlib
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from desktop.commands.run_options import (
    add_curve,
    add_model,
    add_span,
    add_templates,
    adder,
    check_budget,
    phase_settings,
    span_of,
    template_of,
)
from desktop.commands.terminal import DONE, outcome, picked, show, terminal_progress, without_display
from desktop.core import bases
from desktop.core.labels import ACTIVITIES, FIGURES, GROUNDS, STYLES, TABLES
from desktop.core.plain import JSON
from desktop.progress import Progress, Share
from desktop.remote import named

if TYPE_CHECKING:
    from desktop.core.contrast import Contrast, Phased
    from desktop.data.events import Activity
    from desktop.data.material import Subject
    from desktop.data.report import Looks, Report
    from desktop.data.store import TraceStore
    from desktop.data.utilization import Rules
    from desktop.workbench.model import ReportChoices, Workspace

_Compare = Callable[["Sequence[Phased]"], "Contrast | None"]
COLOURS = ("soft", "okabe-ito", "tol")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    add = adder(parser)
    add("file FILE", "a trace, an imported file or a project", type=named)
    add("-o --output OUT", "ends in .html, .pdf or .pptx", type=Path, required=True)
    add("--live", "one HTML page in which its reader chooses the number of phases", action="store_true")
    add("--title TITLE", "default: what the run is called", default="")
    add("--plots P,P", f"of {', '.join(FIGURES)}")
    add("--tables T,T", f"none, or of {', '.join(TABLES)}")
    add("--style", "of the plots; default colour", choices=STYLES)
    add("--colours", "set of colours; default soft", choices=COLOURS, default="soft")
    add_templates(add)
    add("--theme", "ground of slides; default light", choices=GROUNDS)
    add("--timeline", "what its colours stand for; default activity", choices=("activity", "region"))
    add("--no-statistics", "leave out the statistics of phases")
    appendix = adder(parser.add_mutually_exclusive_group())
    behind = "slides: an appendix with everything else; also where --plots or --tables choose"
    only = "slides: the story only; the default"
    appendix("--appendix", behind, action="store_true", default=None)
    appendix("--no-appendix", only, dest="appendix", action="store_false")
    add("--lock S", "a breakpoint to keep", action="append", default=[], type=float)
    add("--break S", "all inner breakpoints, by hand", dest="breaks", action="append", default=[], type=float)
    degrees = ", ".join(f"{k}: {space.model}" for k, space in enumerate(bases.TABLE, bases.FIRST))
    by_hand = f"of the phases between the breakpoints by hand, where the model mixes them ({degrees})"
    add("--degrees D,D", by_hand, type=_degrees)
    add("--computing A,A", f"what counts, of {', '.join(ACTIVITIES)}")
    add("--classify REGION=ACTIVITY", "e.g. MPI_Wait=idle", action="append", default=[])
    clocks = adder(parser.add_mutually_exclusive_group())
    clocks("--as-recorded", "do not repair contradicting clocks")
    clocks("--repaired", "repair them whatever the format")
    add("--json", "one JSON object on standard output")
    add_model(parser, "phases (default: the suggested number)", "; a project says it itself", seconds=True)
    add_curve(parser)
    add("--track KIND[:NAME]", "a curve to be drawn below (repeat it)", action="append", default=[])
    add_span(parser)


def _degrees(text: str) -> tuple[int, ...]:
    if not re.fullmatch("[0-4](,[0-4])*", text):
        raise argparse.ArgumentTypeError(f"{text!r} should read like 0,2,1: a degree for each phase")
    return tuple(map(int, text.split(",")))


def run(options: argparse.Namespace, progress: Progress) -> tuple[JSON, list[TraceStore]]:
    """Write the report as the options say; what it holds as plain values, and the stores it is about.

    Raises
    ------
    ValueError, DesktopError, OSError : options that do not go together; a source or output that fails.
    """
    from desktop.data.atomic import place_of
    from desktop.data.project_file import is_project
    from desktop.data.report import Looks, command_line, compose
    from desktop.errors import FileError
    from desktop.ui.reporting import kind_of, write
    from desktop.workbench import presenting
    from desktop.workbench.keeping import read_workspace
    from desktop.workbench.model import ReportChoices

    kind = kind_of(options.output)
    if options.live and (kind != "html" or options.plots or options.tables):
        raise ValueError("--live makes one .html with all that it can hold, leave out --plots and --tables")
    figures = _listed("--plots", options.plots, FIGURES)
    tables = _listed("--tables", options.tables, TABLES)
    if not options.output.absolute().parent.is_dir():
        raise FileError("there is no such folder", file=options.output.parent)
    place_of(options.output)
    without_display()
    workspace, opening = None, Share(progress, 0, 0.3)
    span = span_of(options, (-math.inf, math.inf))
    if is_project(options.file):
        workspace = read_workspace(options.file)
        subjects, compare, choices, current = _of_project(workspace, options, span, opening)
    else:
        subjects, compare = [_of_trace(options, span, opening)], None
        choices, current = ReportChoices(), 0
    base = presenting.contents_of(choices)
    selected = kind == "pptx" and (figures is not None or tables is not None)
    given = Looks(choices.style, theme=choices.theme)
    looks = Looks(
        options.style or given.style, options.colours, options.theme or given.theme,
        template_of(options, kind),
    )  # fmt: skip
    contents = replace(
        base,
        figures=base.figures if figures is None else figures,
        tables=base.tables if tables is None else tables,
        statistics=base.statistics and not options.no_statistics,
        appendix=base.appendix or selected if options.appendix is None else options.appendix,
        by_region=base.by_region if options.timeline is None else options.timeline == "region",
    )
    subject, output = subjects[0] if workspace is None else None, options.output.name
    words = command_line(
        str(options.file), subject, contents, output, options.title, span, looks, (base, given)
    )
    if options.live:
        if not subjects:
            raise ValueError("--live is the page of a run, and the project holds none")
        return _live(options.output, subjects[current], looks, words + " --live", progress)
    report, part = None, Share(progress, 0.3, 0.7)
    if subjects:
        about = {"title": options.title, "command": words}
        report = compose(subjects, contents, progress=part, compare=compare, **about)
    if workspace is not None and (report is None or "model" in contents.tables):
        report = _with_models(report, workspace, options, words, Share(progress, 0.7, 0.8))
    assert report is not None
    write(report, options.output, looks, Share(progress, 0.8, 1))
    facts = {"title": report.title, "date": report.date.isoformat(timespec="seconds"), "command": words}
    drawn = [picked(one, "figure number finding") for one in report.pictures]
    stores = [subject.store for subject in subjects if subject.store is not None]
    return {**_of_file(options.output), **facts, "figures": drawn, "runs": list(report.facts)}, stores


def _live(
    output: Path, subject: Subject, looks: Looks, command: str, progress: Progress
) -> tuple[JSON, list[TraceStore]]:
    """As `run`, for the page in which its reader chooses n."""
    from desktop.data.report import today
    from desktop.ui.reporting import write_live

    material = write_live(subject, output, looks, command, Share(progress, 0.3, 1))
    facts = {"title": material.title, "date": today().isoformat(timespec="seconds"), "command": command}
    stores = [] if subject.store is None else [subject.store]
    return {**_of_file(output), **facts, "figures": [], "runs": []}, stores


def _of_file(path: Path) -> JSON:
    """Path, kind, size and digest of a report that was written."""
    content = path.read_bytes()
    facts = {"output": str(path), "kind": path.suffix.lower()[1:]}
    return {**facts, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def _listed(word: str, text: str | None, allowed: Iterable[str]) -> tuple[str, ...] | None:
    """The names that an option lists; None if it is not given. ValueError: one is not `allowed`."""
    if text is None:
        return None
    names = [] if text == "none" else text.split(",")
    if not set(names) <= set(allowed):
        raise ValueError(f"{word} {text}: choose of {', '.join(allowed)}")
    return tuple(names)


def _of_project(
    workspace: Workspace, options: argparse.Namespace, span: tuple[float, float] | None, progress: Progress
) -> tuple[list[Subject], _Compare | None, ReportChoices, int]:
    """All runs of a project with its settings, how it compares them, the choices of the last report of the
    run that was shown, and its number."""
    from desktop.data.opening import open_trace
    from desktop.errors import ProjectError
    from desktop.workbench.keeping import trace_of
    from desktop.workbench.limiting import limited
    from desktop.workbench.model import ReportChoices
    from desktop.workbench.presenting import subject
    from desktop.workbench.run_comparison import contrast, labels_of

    words = "n model lock breaks computing classify curve track degrees as_recorded repaired seconds also"
    if any(getattr(options, word) for word in words.split()):
        raise ValueError("a project sets its own fits and rules, leave out these options")
    runs = workspace.runs
    if span is not None:
        whole = -math.inf, math.inf
        runs = tuple(replace(run, project=limited(run.project, span, whole)) for run in runs)
    names = labels_of(runs)
    if not runs:
        if not workspace.tables:
            raise ProjectError("holds no run to report on", file=options.file)
        return [], None, ReportChoices(), 0
    subjects = []
    for k, run in enumerate(runs):
        share = Share(progress, k / len(runs), (k + 1) / len(runs))
        store = open_trace(trace_of(run.trace, options.file), share, **asdict(run.trace.options))
        subjects.append(subject(run.project, store, names[k]))
    return subjects, partial(contrast, workspace), runs[workspace.shown].project.report, workspace.shown


def _with_models(
    report: Report | None, workspace: Workspace, options: argparse.Namespace, command: str, progress: Progress
) -> Report:
    """The report with the factor models of the project's tables, or of these alone.

    Raises
    ------
    ProjectError : there is nothing else, and they have no model either.
    """
    from desktop.data.report import STORY
    from desktop.errors import ProjectError
    from desktop.ui.model.report import compose, sections
    from desktop.workbench.modelling import model_of

    why = "holds no run to report on"
    for table in workspace.tables:
        snapshot = model_of(table, progress)
        if snapshot.fit is None:
            why = f"holds a table without a model, {table.name}: {snapshot.problem}"
        elif report is None:
            alone = compose(snapshot, table.name, command)
            report = replace(alone, title=options.title or alone.title)
        else:
            more, slides = sections(snapshot, table.name, len(report.pictures) + 1)
            every = (*report.sections[:-1], *more, report.sections[-1])  # how it is made stays the end
            report = replace(report, sections=every, story=(*report.story, *slides)[: STORY - 1])
    if report is None:
        raise ProjectError(why, file=options.file)
    return report


def _of_trace(options: argparse.Namespace, span: tuple[float, float] | None, progress: Progress) -> Subject:
    from desktop.data.curves import DEFAULT
    from desktop.data.material import Subject
    from desktop.data.naming import run_name
    from desktop.data.opening import open_trace
    from desktop.workbench.model import PhaseSettings

    phases = len(options.breaks) + 1
    if (options.breaks or options.degrees) and options.n is not None:
        raise ValueError("--break and --degrees say where and what all phases are, leave out -n")
    if options.degrees is not None and (named := len(options.degrees)) != phases:
        raise ValueError(f"--degrees names {named} phases, with the breakpoints given there are {phases}")
    settings = phase_settings(options, PhaseSettings("mixed"))
    if max(options.degrees or (0,)) > settings.most:
        raise ValueError("--degrees above 2 are those of --also")
    rules = _rules(options)
    store = open_trace(options.file, progress)
    return Subject(
        store=store,
        title=options.title or run_name(options.file),
        rules=rules,
        model=settings.model,
        basis=settings.basis,
        n=options.n,
        locked=tuple(sorted(options.lock)),
        breaks=tuple(sorted(options.breaks)) or (None if options.degrees is None else ()),
        degrees=options.degrees,
        limit=span,
        curve=options.curve or DEFAULT,
        tracks=tuple(options.track),
    )


def _rules(options: argparse.Namespace) -> Rules:
    from desktop.data.utilization import Rules

    overrides = {}
    for word in options.classify:
        region, _, activity = word.rpartition("=")
        if not region:
            raise ValueError(f"{word!r} should read REGION=ACTIVITY")
        overrides[region] = _activity(activity)
    computing = Rules().computing
    if options.computing:
        computing = frozenset(_activity(name) for name in options.computing.split(","))
    repaired = False if options.as_recorded else True if options.repaired else None
    return Rules(overrides, computing, repaired)


def _activity(name: str) -> Activity:
    from desktop.data.events import Activity

    if name not in ACTIVITIES:
        raise ValueError(f"{name!r} is no activity, choose of {', '.join(ACTIVITIES)}")
    return Activity[name.upper()]


def result_lines(result: JSON) -> list[str]:
    """The outcome as lines for a person."""
    lines = [f"{result['title']}: {result['size']} bytes of {result['kind'].upper()} in {result['output']}"]
    lines += [f"Figure {f['number']}. {f['finding']}" for f in result["figures"]]
    return lines


def main(options: argparse.Namespace) -> int:
    check_budget(options.model, options.n)
    with terminal_progress() as progress:
        result, stores = run(options, progress)
    show(options, result, list, lambda: result_lines(result))
    codes = []
    for store in stores:
        with store:
            codes.append(outcome(store))
    return max(codes, default=DONE)
