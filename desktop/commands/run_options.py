"""Common to commands on one run: their arguments, and the run, curve and phases that these name."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from desktop import stopping
from desktop.commands.terminal import terminal_progress
from desktop.core import bases
from desktop.core.labels import DEFAULT_MODEL, MODELS, OWN_BASIS
from desktop.remote import named

if TYPE_CHECKING:
    from desktop.core.curve import StepCurve
    from desktop.core.landmarks import Landmarks
    from desktop.core.phases import PhaseFit
    from desktop.data.store import TraceStore
    from desktop.data.utilization import Utilization
    from desktop.workbench.model import PhaseSettings, Project


def adder(parser: argparse._ActionsContainer) -> Callable[..., None]:
    """Adds arguments to a parser, by words as ``"-o --output OUT.h5"``, ``"files FILE"``, ``"--force"``."""

    def add(words: str, text: str | None = None, **more: Any) -> None:
        *names, last = words.split()
        if not names or last.startswith("-"):
            names.append(last)
        else:
            more["metavar"] = last
        if names[-1].startswith("-") and not more:
            more["action"] = "store_true"
        parser.add_argument(*names, help=text, **more)

    return add


def add_templates(add: Callable[..., None]) -> None:
    """Arguments for the user's own template and style sheet of reports; `add`: from `adder`."""
    add("--template FILE", "of your own for slides: .potx or .pptx", type=Path)
    add("--css FILE", "style sheet of your own for HTML", type=Path)


def template_of(options: argparse.Namespace, kind: str) -> Path | None:
    """The user's template or style sheet for a report of this `kind`.

    Raises
    ------
    ValueError : such a report can have none of this sort.
    """
    from desktop.ui.reporting import USER_FILES

    for of, (word, _) in USER_FILES.items():
        if getattr(options, word) is not None and of != kind:
            raise ValueError(f"--{word} is for .{of}, not for .{kind}")
    file: Path | None = options.template or options.css
    return file


def add_run(
    parser: argparse.ArgumentParser, n: str = "", *, curve: bool = False, csv: bool = True, also: bool = False
) -> None:
    """Arguments of commands on one run and its phases: the file, the model (-n, if `n` says what it is;
    `also`: with --seconds and --also, of periodic phases), the curve, the span, whether clocks are repaired,
    the form."""
    add = adder(parser)
    add("file FILE", type=named)
    add_model(parser, n, seconds=also)
    if curve:
        add_curve(parser)
    add_span(parser)
    add("--as-recorded", "do not repair contradicting clocks")
    add_formats(parser, csv=csv)


def add_formats(parser: argparse.ArgumentParser, *, csv: bool) -> None:
    add = adder(parser.add_mutually_exclusive_group())
    add("--json", "one JSON object on standard output")
    if csv:
        add("--csv", "comma-separated rows on standard output")


def add_model(parser: argparse.ArgumentParser, n: str = "", more: str = "", *, seconds: bool = False) -> None:
    """-n, if `n` says what it is, --model, and with `seconds` --seconds and --also."""
    if n:
        adder(parser)("-n N", n, type=positive)
    adder(parser)("--model", f"default {DEFAULT_MODEL}{more}", choices=MODELS)
    if seconds:
        scales = ", ".join(f"{space.scale.name} of {space.model}" for space in bases.TABLE if space.scale)
        words = f"{scales}, in s (default: searched)"
        adder(parser)("--seconds S", words, type=float)
        beside = "what mixed and budget may choose beside polynomials"
        adder(parser)("--also", beside, choices=OWN_BASIS)


def add_span(parser: argparse.ArgumentParser) -> None:
    add = adder(parser)
    add("--start S", "analyse from this second on (else: as a project says)", type=float)
    add("--end S", "analyse up to this second", type=float)


def add_curve(parser: argparse.ArgumentParser) -> None:
    adder(parser)("--curve KIND[:NAME]", "the curve that is fitted, as info lists them (else: computing)")


def pairs(words: list[str], form: str = "NAME=VALUE") -> dict[str, str]:
    for word in words:
        if "=" not in word:
            raise ValueError(f"{word!r} should read {form}")
    return {name: value for name, _, value in (word.partition("=") for word in words)}


def positive(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return value


def open_file(path: Path, **options: Any) -> TraceStore:
    """`open_trace` with these words of its own, and with progress on the terminal."""
    from desktop.data.opening import open_trace

    with terminal_progress() as progress:
        return open_trace(path, progress, **options)


def open_settled(options: argparse.Namespace) -> TraceStore:
    """The trace of options that `settle` has completed, opened as the project says."""
    return open_file(options.trace, **asdict(options.opening))


def settle(options: argparse.Namespace, shown: Project | None = None) -> None:
    """Where FILE is a project, take the run in it that was shown, and what the options leave open from there.

    `options.trace` is then the trace, `options.opening` how it is opened, `options.phases` the
    `PhaseSettings`, `options.rules` the rules, and `options.settings` what the project says of the run
    (`shown`: what a window asks of FILE, which is a trace then).
    """
    from desktop.data.project_file import is_project
    from desktop.workbench.model import DETECT, Project

    options.trace, options.opening = options.file, DETECT
    if is_project(options.file):
        from desktop.errors import ProjectError
        from desktop.workbench.keeping import read_workspace, trace_of

        workspace = read_workspace(options.file)
        if not workspace.runs:
            raise ProjectError("holds no trace", file=options.file)
        run = workspace.runs[workspace.shown]
        options.trace, options.opening = trace_of(run.trace, options.file), run.trace.options
        shown = run.project
    options.project, options.settings = shown is not None, shown or Project()
    options.rules = options.settings.rules
    options.phases = phase_settings(options, options.settings.phases)


def phase_settings(options: argparse.Namespace, project_phases: PhaseSettings) -> PhaseSettings:
    """Settings of -n, --model, --seconds and --also; where these are not given, those of `project_phases`,
    whose locked breakpoints stay in any case.

    Raises
    ------
    ValueError : they do not go together.
    """
    from desktop.core.phases import least_n

    values = {name: getattr(options, name, None) for name in ("n", "model", "seconds", "also")}
    given = {name: value for name, value in values.items() if value is not None}
    if not given:
        return project_phases
    if "model" in given:
        given = {"also": "", "seconds": None} | given
    elif given.get("also", project_phases.also) != project_phases.also:
        given = {"seconds": None} | given
    settings = replace(project_phases.free(), **given)
    if "n" not in given:
        settings = replace(settings, n=max(settings.n, least_n(settings.model, settings.locked)))
    if (settings.also or settings.seconds is not None) and settings.problem():
        raise ValueError(f"--{settings.problem()}")
    return settings


def utilization(store: TraceStore, options: argparse.Namespace) -> Utilization:
    from desktop.data.utilization import Rules, build

    rules = options.rules or Rules()
    with terminal_progress() as progress:
        return build(store, replace(rules, repaired=False) if options.as_recorded else rules, progress)


@dataclass
class CommandRun:
    """A run that is open, its utilization, and the part of the curve that the options name; `limit`: its
    ends, None for the whole."""

    options: argparse.Namespace
    store: TraceStore
    use: Utilization
    curve: StepCurve

    @property
    def limit(self) -> tuple[float, float] | None:
        return None if self.curve.duration == self.use.curve().duration else self.curve.span

    @cached_property
    def landmarks(self) -> Landmarks | None:
        """The structure events in it; None with --curve-only or such settings."""
        from desktop.data.presence import structure
        from desktop.workbench.model import marks_of

        if self.options.phases.pure or getattr(self.options, "curve_only", False):
            return None
        with terminal_progress() as progress:
            events = structure(self.store, self.use, progress)
        return events.landmarks(self.curve, marks_of(self.options.settings.annotations))

    def fit(self, *, suggested: bool = False) -> PhaseFit:
        """The phases of the options or the project; of equally good breakpoints those at structure events, as
        in the window. `suggested`: the suggested number where neither says one."""
        phases: PhaseSettings = self.options.phases
        if suggested and not self.options.project and self.options.n is None:
            return self.suggested()[0]
        return phases.fit(self.curve, self.landmarks if phases.breaks is None else None)

    def suggested(self) -> tuple[PhaseFit, str]:
        """The suggested phases, and why so many."""
        from desktop.core.selection import search

        phases = self.options.phases
        sweep, suggestion = search(self.curve, phases.model, landmarks=self.landmarks, basis=phases.basis)
        return suggestion.fit(self.curve, sweep), suggestion.called(self.options.settings.names).reason

    def names(self, model: PhaseFit) -> tuple[str, ...]:
        """What the phases are called: by the user, or after what happens in them."""
        from desktop.core.phase_names import phase_names
        from desktop.data.presence import structure

        settings = self.options.settings
        doings = structure(self.store, self.use).doings(self.use.curve().window(*self.curve.span))
        return phase_names(doings, model.breaks, settings.user_names, settings.names)


@contextmanager
def open_run(options: argparse.Namespace) -> Iterator[CommandRun]:
    """The run of a command whose options `settle` has completed."""
    with open_settled(options) as store:
        use = utilization(store, options)
        yield CommandRun(options, store, use, curve_of(store, use, options))


def curve_of(store: TraceStore, use: Utilization, options: argparse.Namespace) -> StepCurve:
    """The curve of --curve, else of the project, within the part of --start and --end, else of its limit.

    Raises
    ------
    CurveError : there is no such curve; it says which there are.
    """
    from desktop.data.curves import build_curve

    options.curve = getattr(options, "curve", None) or options.settings.curve
    with terminal_progress() as progress:
        return window_of(build_curve(store, use, options.curve, progress), options)


def window_of(curve: StepCurve, options: argparse.Namespace) -> StepCurve:
    """The part of --start and --end, else that a project limits the analysis to. Of the project's breakpoints
    by hand or locked, those inside of it are left in `options.phases`."""
    from desktop.workbench.limiting import limited

    settings = options.settings
    limit = span_of(options, curve.span) or settings.limit
    if limit is None:
        return curve
    part = curve.window(*limit)
    if limit != settings.limit:
        asked = options.phases
        phases = limited(replace(settings, phases=asked), part.span, curve.span).phases
        options.phases = phases if asked is settings.phases else replace(phases.free(), n=asked.n)
    return part


def span_of(options: argparse.Namespace, ends: tuple[float, float]) -> tuple[float, float] | None:
    """--start and --end, one of which may be left out; None where both are."""
    if options.start is None and options.end is None:
        return None
    return (
        ends[0] if options.start is None else options.start,
        ends[1] if options.end is None else options.end,
    )


def check_budget(model: str, n: int | None) -> None:
    if model == "budget" and n is not None and n < 2:
        raise ValueError("a budget of fewer than 2 parameters holds no phase, ask for -n 2 or more")


def agree(options: argparse.Namespace, folder: Path, commands: Sequence[str]) -> None:
    """Show the commands and ask whether to run them, unless --yes. ValueError: not agreed to."""
    if options.yes:
        return
    print(f"This experiment runs, in {folder}:", file=sys.stderr)
    for command in commands[:20]:
        print(f"  {command}", file=sys.stderr)
    if len(commands) > 20:
        print(f"  ... and {len(commands) - 20} more of the kind", file=sys.stderr)
    if not sys.stdin.isatty():
        raise ValueError("nothing was run: read the commands above and say --yes")
    with stopping.prompting():
        answer = input("Run them? [y/N] ")
    if answer.strip().lower() not in ("y", "yes"):
        raise ValueError("nothing was run")
