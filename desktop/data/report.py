"""A report as data: sections of text, tables and figures, from which HTML, PDF and slides are made.

`compose` asks a store for everything that a reader needs who was not there: the findings in sentences, the
phases with their formulas, epsilon and its certificate, the statistics of each phase, what changed at each
breakpoint, the source file, the repair of its clocks, all options, and the command that makes the
report again.

Texts of blocks are raw, as in the trace. Writers make them `printable` and escape them: `to_html` here,
`desktop.data.slides` for slides.
"""

from __future__ import annotations

import math
import os
import platform
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from html import escape
from importlib import metadata
from itertools import islice, pairwise
from pathlib import Path
from string import Template
from typing import TypeAlias, TypeVar

import numpy as np

import desktop
from desktop import resources
from desktop.core import bases
from desktop.core.accounts import Account
from desktop.core.arrays import Bytes
from desktop.core.charges import Charges, RunCosts
from desktop.core.contrast import Cell, Contrast, Phased, table
from desktop.core.envelope import envelope
from desktop.core.explanation import CauseText, Explanation, explanation
from desktop.core.firmness import over_runs
from desktop.core.labels import ACCOUNTS, DEGREES, FIGURES, TABLES
from desktop.core.phase_stats import Firm, PhaseRow
from desktop.core.phases import AS_SUGGESTED, PhaseFit
from desktop.core.plain import JSON
from desktop.core.quantity import PROCESSORS
from desktop.core.root_causes import STRENGTH
from desktop.core.run_difference import explain_differences, run_costs
from desktop.core.ticks import time_unit
from desktop.core.units import capital, mean_number, percent, quantity, seconds, tenth, trimmed, unbroken
from desktop.core.units import format_number as _number
from desktop.data.causes import Delay
from desktop.data.chart import Content
from desktop.data.consistency import doubt
from desktop.data.curves import DEFAULT
from desktop.data.events import Activity
from desktop.data.helping import Help, would_help
from desktop.data.material import Material, Subject, gather
from desktop.data.naming import location_name
from desktop.data.root_causes import charged, names_in_costs, naming
from desktop.data.speaking import notes
from desktop.data.statistics import Change, RangeStats, RegionRow, Statistics
from desktop.data.style_sheet import POLICY
from desktop.data.utilization import Rules
from desktop.printing import printable
from desktop.progress import Progress, Share

# Rows of a table of regions, locations or changes; longer ones are only in the window.
_REGIONS, _CHANGES, _SHIFTS, _ACCOUNTS, _DELAYS, _HELPS, _BOUNDS = 4, 5, 64, 7, 3, 3, 2
#: Repairs of clocks in words.
_REPAIRS = {
    "none": "none",
    "shift": "a constant shift for each process",
    "linear": "a shift and a rate for each process, as their clocks drift",
    "impossible": "neither shifts nor rates of the clocks repair that",
}
#: Strength of the evidence for a cause.
_STRENGTHS = "Evidence: " + "; ".join(f"{word}: {meaning}" for word, meaning in STRENGTH.items()) + "."
#: Slides in the story including the title; rows of its tables and lines of its texts.
STORY = 8
#: Meaning of the interval of a breakpoint over repeats.
REPEATED = (
    "Over repeats: the interval contains the median position of the breakpoint with the stated probability."
)
_STORY_ROWS, _STORY_REGIONS, _STORY_CHANGES = 16, 8, 8
# Most rows of a table that is kept on one page.
_SHORT = 12
# Longest text and longest cell, whatever their source; longer ones are cut.
_LONGEST, _LONGEST_CELL = 4000, 400


@dataclass(frozen=True)
class Paragraph:
    """One or more sentences. `part`: the key of `TABLES` to which it belongs."""

    text: str
    part: str = ""


@dataclass(frozen=True)
class Points:
    """A list of sentences."""

    items: tuple[str, ...]
    part: str = ""


@dataclass(frozen=True)
class ReportCommand:
    """A command for a terminal."""

    text: str
    part: str = ""


@dataclass(frozen=True)
class ReportTable:
    """Cells of text under headings; the first `left` columns are words, the others numbers."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: int = 1
    note: str = ""
    part: str = ""


@dataclass(frozen=True)
class Picture:
    """A figure (a key of `FIGURES`, or the name of a chart) and its finding in one sentence. `number` counts
    from 1."""

    figure: str
    number: int
    finding: str
    material: Material | Content

    @property
    def part(self) -> str:
        return self.figure


Block = Paragraph | Points | ReportCommand | ReportTable | Picture


@dataclass(frozen=True)
class Section:
    """Blocks under a heading; `level` 1 starts a run."""

    title: str
    blocks: tuple[Block, ...]
    level: int = 2


@dataclass(frozen=True)
class Slide:
    """A sentence and what shows it; `notes` are for the speaker."""

    title: str
    block: Picture | ReportTable | Points
    notes: str = ""


@dataclass(frozen=True)
class Report:
    """A whole report. `facts`: plain values about its runs, as printed by ``report --json``.

    `finding`: the report in one sentence. `story`: its slides, at most `STORY` - 1 besides the title, which
    has the speaker's `notes`; `appendix`: whether everything else follows on slides.
    """

    title: str
    subtitle: str
    date: datetime
    sections: tuple[Section, ...]
    facts: tuple[JSON, ...]
    finding: str = ""
    story: tuple[Slide, ...] = ()
    appendix: bool = False
    notes: str = ""

    @property
    def pictures(self) -> tuple[Picture, ...]:
        return tuple(b for section in self.sections for b in section.blocks if isinstance(b, Picture))


@dataclass(frozen=True)
class Contents:
    """What a report contains: `figures` and `tables` by key, and whether the statistics, which read all
    events once. `appendix`: on slides, all outside the story. `by_region`: the timeline shows regions."""

    figures: tuple[str, ...] = tuple(FIGURES)
    statistics: bool = True
    tables: tuple[str, ...] = tuple(TABLES)
    appendix: bool = False
    by_region: bool = False


@dataclass(frozen=True)
class Looks:
    """How a report looks: `style` of its figures, their set of `colours`, `theme`: ground of slides, and the
    user's template of slides or style sheet of HTML."""

    style: str = "colour"
    colours: str = "soft"
    theme: str = "light"
    user_file: Path | None = None


def today() -> datetime:
    """The current minute, or ``SOURCE_DATE_EPOCH``, so that a report can be reproduced byte for byte."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    if fixed.isdecimal():
        return datetime.fromtimestamp(int(fixed), UTC)
    return datetime.now(UTC).replace(second=0, microsecond=0)


def command_line(
    source: str,
    subject: Subject | None,
    contents: Contents,
    output: str = "report.html",
    title: str = "",
    span: tuple[float, float] | None = None,
    looks: Looks = Looks(),
    base: tuple[Contents, Looks] = (Contents(), Looks()),
) -> str:
    """The command that makes the report of `source` again: of a trace, whose run is `subject`, or (None) of a
    project, which has all settings of its runs except a different `span`. `base`: what the report
    contains and how it looks by default, which a project may also set."""
    default, default_looks = base
    words = ["phasewright", "report", source, "-o", output]
    if subject is not None:
        words += _fit_words(subject)
        span = subject.limit
    for word, end in zip(("--start", "--end"), span or (), strict=False):
        if math.isfinite(end):
            words += [word, repr(float(end))]
    if contents.figures != default.figures:
        words += ["--plots", ",".join(contents.figures)]
    if contents.tables != default.tables:
        words += ["--tables", ",".join(contents.tables) or "none"]
    if contents.statistics != default.statistics:
        words.append("--no-statistics")
    slides = output.lower().endswith(".pptx")
    selected = slides and bool({"--plots", "--tables"} & set(words))
    if contents.appendix != (default.appendix or selected):
        words.append("--appendix" if contents.appendix else "--no-appendix")
    if contents.by_region != default.by_region:
        words += ["--timeline", "region" if contents.by_region else "activity"]
    for name in ("style", "colours", "theme"):
        if (value := getattr(looks, name)) != getattr(default_looks, name):
            words += [f"--{name}", value]
    if looks.user_file is not None:
        words += ["--template" if slides else "--css", str(looks.user_file)]
    if title:
        words += ["--title", title]
    return shlex.join(words)


def _fit_words(subject: Subject) -> list[str]:
    rules, words = subject.rules, ["--model", subject.model]
    basis = subject.basis
    kind = basis if isinstance(basis, str) else "" if basis is None else basis.model
    if kind not in ("", subject.model):
        words += ["--also", kind]
    if basis is not None and not isinstance(basis, str) and basis.scale:
        words += ["--seconds", repr(basis.seconds)]
    degrees = subject.degrees or ()
    if subject.breaks is not None:
        words += [word for t in subject.breaks for word in ("--break", repr(float(t)))]
        if degrees and min(degrees) >= 0:
            words += ["--degrees", ",".join(map(str, degrees))]
        elif not subject.breaks:
            words += ["-n", "1"]
    elif subject.n is not None:
        words += ["-n", str(subject.n)]
    words += [word for t in subject.locked for word in ("--lock", repr(float(t)))]
    if rules.repaired is not None:
        words.append("--repaired" if rules.repaired else "--as-recorded")
    if subject.curve != DEFAULT:
        words += ["--curve", subject.curve]
    words += [word for track in subject.tracks for word in ("--track", track)]
    if rules.computing != Rules().computing:
        words += ["--computing", ",".join(a.name.lower() for a in sorted(rules.computing))]
    for region, activity in rules.overrides.items():
        words += ["--classify", f"{region}={activity.name.lower()}"]
    return words


def compose(
    subjects: Sequence[Subject],
    contents: Contents | None = None,
    *,
    title: str = "",
    command: str = "",
    date: datetime | None = None,
    progress: Progress | None = None,
    stop: Bytes | None = None,
    compare: Callable[[Sequence[Phased]], Contrast | None] | None = None,
) -> Report:
    """The report of one or several runs, one after the other.

    Parameters
    ----------
    title : of the report; by default that of its only run.
    command : the command line that makes it again, see `command_line`.
    stop : array of one byte; a fit ends soon after it becomes nonzero.
    compare : compares the runs; None if they are not comparable.

    Raises
    ------
    ValueError : no run, an unknown figure, or an impossible n.
    Cancelled : by `progress` or `stop`.
    """
    progress, contents = progress or Progress(), contents or Contents()
    for kind, keys, available in (("figure", contents.figures, FIGURES), ("table", contents.tables, TABLES)):
        unknown = [key for key in keys if key not in available]
        if unknown:
            raise ValueError(f"there is no {kind} {unknown[0]!r}")
    if not subjects:
        raise ValueError("there is no run to report on")
    sections: list[Section] = []
    phased: list[Phased] = []
    runs: list[_Run] = []
    stories: list[list[Slide]] = []
    pictures, several, finding = 0, len(subjects) > 1, ""
    for k, subject in enumerate(subjects):
        of = Share(progress, k / len(subjects), (k + 1) / len(subjects))
        run = _Run(subject, contents, of, stop)
        runs.append(run)
        of_run = run.sections(pictures)
        sections += [Section(subject.title, (), 1), *of_run] if several else of_run
        stories.append(run.story(of_run, f"{subject.title}: " if several else ""))
        pictures += sum(isinstance(block, Picture) for section in of_run for block in section.blocks)
        program = frozenset(region.name for region in run.store.regions)
        curve = run.material.curve
        costs = run.costs() if compare is not None and several else None
        called = names_in_costs(subject.names)
        phased.append(Phased(subject.title, curve, run.material.fit, program, costs=costs, called=called))
        finding = finding or run.finding()
        run.forget()
    contrast = compare(phased) if compare is not None and len(phased) > 1 else None
    beside: list[Slide] = []
    if contrast is not None:
        compared, beside = _compared(contrast, run.material, contents, pictures + 1)
        sections += compared
        if contents.statistics and "scaling" in contents.tables:
            over_p = _over_p(runs, phased, contrast, pictures + 2, progress)
            sections += over_p
            drawn = (b for one in over_p for b in one.blocks if isinstance(b, Picture))
            beside += [Slide(b.finding, b) for b in islice(drawn, 1)]
        finding = beside[0].title
    date = date or today()
    sections.append(provenance(command))
    parts = (replace(one, blocks=_wanted(one.blocks, contents)) for one in sections)
    sections = [one for one in parts if one.blocks or one.level == 1]
    name = title or (subjects[0].title if len(subjects) == 1 else f"{len(subjects)} runs")
    subtitle = f"Phasewright {desktop.__version__}, {date:%Y-%m-%d %H:%M} UTC"
    story = _interleaved(beside, stories)
    spoken = [(run.subject.title, run.notes[0]) for run in runs if run.notes[0]]
    notes = "\n\n".join(f"{called}: {text}" if several else text for called, text in spoken)
    facts = tuple(run.facts() for run in runs)
    return Report(name, subtitle, date, tuple(sections), facts, finding, story, contents.appendix, notes)


def _wanted(blocks: Iterable[Block], contents: Contents) -> tuple[Block, ...]:
    """The selected blocks."""
    return tuple(b for b in blocks if isinstance(b, Picture) or not b.part or b.part in contents.tables)


def _interleaved(beside: list[Slide], stories: list[list[Slide]]) -> tuple[Slide, ...]:
    """One story of several runs: first how they compare, then each run in turn with what matters most, as far
    as there is space; the slides of a run follow each other."""
    room = STORY - 1 - len(beside)
    take = [0] * len(stories)
    for depth in range(STORY):
        for k, story in enumerate(stories):
            if depth < len(story) and sum(take) < room:
                take[k] = depth + 1
    return (*beside, *(slide for story, most in zip(stories, take, strict=True) for slide in story[:most]))


_Row = TypeVar("_Row")
#: A column of a table: its heading, and the function that gives its cell in a row.
_Column: TypeAlias = tuple[str, Callable[[_Row], str]]
#: Rows: a phase with its number before it, the statistics of a range with its name before them.
_Phase: TypeAlias = tuple[int, PhaseRow]
_Range: TypeAlias = tuple[str, RangeStats]


def _table(
    title: str,
    columns: Iterable[_Column[_Row]],
    rows: Iterable[_Row],
    left: int = 1,
    note: str = "",
    part: str = "",
) -> ReportTable:
    heads, cells = zip(*columns, strict=True)
    return ReportTable(
        title, heads, tuple(tuple(cell(row) for cell in cells) for row in rows), left, note, part
    )


def _compared(
    contrast: Contrast, material: Material, contents: Contents, number: int
) -> tuple[list[Section], list[Slide]]:
    """How the runs differ, phase by phase, and on slides how they differ as a whole. Of `material` only the
    figure is used."""
    alignment, cells = contrast.alignment, table(contrast.alignment)
    reference = alignment.runs[alignment.reference].name
    findings = explain_differences(alignment)
    blocks: list[Block] = [Points(tuple(findings), "summary")]
    slides = []
    if "comparison" in contents.figures:
        picture = Picture("comparison", number, findings[0], replace(material, contrast=contrast))
        blocks.append(picture)
        slides.append(Slide(findings[0], picture))
    factor, unit = time_unit(max(run.curve.duration for run in alignment.runs))
    columns: list[_Column[Cell]] = [
        ("Row", lambda cell: cell.label),
        ("Run", lambda cell: cell.run),
        ("Phase", lambda cell: "–" if cell.phase is None else str(cell.phase or "all")),
        (f"Start ({unit})", lambda cell: _number(cell.start_s / factor)),
        (f"Length ({unit})", lambda cell: _number(cell.duration_s / factor)),
        ("× Length", lambda cell: _number(cell.duration_ratio)),
        ("Mean", lambda cell: _number(cell.mean)),
        ("× Mean", lambda cell: _number(cell.mean_ratio)),
        ("Efficiency", lambda cell: tenth(cell.efficiency)),
        (f"Work (proc·{unit})", lambda cell: _number(cell.work_s / factor)),
        ("× Work", lambda cell: _number(cell.work_ratio)),
        ("Alike", lambda cell: tenth(cell.alike)),
    ]
    over = f"× is the run over {reference}."
    note = f"{over} Phases are matched by order and shape; alike says how well."
    blocks.append(_table(TABLES["comparison"], columns, cells, 2, note, "comparison"))
    columns = [columns[1], (f"Takes ({unit})", columns[4][1]), *columns[5:7], *columns[8:11]]
    whole = [cell for cell in cells if cell.phase == 0][:_STORY_ROWS]
    title = f"What the runs take, against {reference}" if slides else findings[0]
    slides.append(Slide(title, _table("Runs", columns, whole, note=over)))
    firm = over_runs(alignment, alignment.reference)
    if any(firm):
        places = alignment.runs[alignment.reference].fit.breaks[1:-1].tolist()
        breaks: list[_Column[tuple[int, float, Firm | None]]] = [
            ("Breakpoint", lambda row: f"{row[0]}"),
            ("Time (s)", lambda row: f"{row[1]:.9g}"),
            ("over the runs", lambda row: "–" if row[2] is None else row[2].words),
        ]
        rows = zip(range(1, len(places) + 1), places, firm, strict=True)
        blocks.append(_table(f"Breakpoints of {reference}", breaks, rows, note=REPEATED, part="breaks"))
    return [Section("Comparison", (), 1), Section(f"Runs compared with {reference}", tuple(blocks))], slides


def _over_p(
    runs: Sequence[_Run], phased: Sequence[Phased], contrast: Contrast, number: int, progress: Progress
) -> list[Section]:
    """How the phases scale, if the compared runs have enough different numbers of processors."""
    from desktop.core.phase_model import FEWEST
    from desktop.core.phase_systems import model_runs
    from desktop.data import phase_scaling_words as scaling_words
    from desktop.data.phase_scaling import OpenRun, measured

    aligned = contrast.alignment.runs
    systems = {id(run.curve): run.system for run in aligned}
    selected = [k for k, one in enumerate(phased) if id(one.curve) in systems]
    if len({phased[k].curve.capacity for k in selected}) < FEWEST:
        return []
    complete = bool((contrast.alignment.rows >= 0).all())
    open_runs = [
        OpenRun(
            phased[k].name, phased[k].curve, runs[k].store, runs[k].use,
            tuple(phased[k].fit.breaks.tolist()) if complete else None, systems[id(phased[k].curve)],
        )
        for k in selected
    ]  # fmt: skip
    try:
        gathered = measured(open_runs, progress).runs
        fitted = model_runs(gathered)
    except ValueError as why:
        return [Section("Phases over p", (Paragraph(f"The phases have no model over p: {why}."),))]
    at, each = scaling_words.further(fitted), scaling_words.by_system(fitted)
    factor, unit = time_unit(float(gathered.duration.sum(axis=1).max()))
    columns: list[_Column[JSON]] = [
        *([("System", lambda row: str(row["system"]))] if gathered.systems else []),
        ("Phase", lambda row: str(row["phase"])),
        ("p", lambda row: scaling_words.whole(row["p"])),
        (f"Predicted ({unit})", lambda row: _number(row["predicted"] / factor)),
        ("95 % from", lambda row: _number(row["low"] / factor)),
        ("to", lambda row: _number(row["high"] / factor)),
        (f"Measured ({unit})", lambda row: _number(row["measured"] / factor)),
        ("Of run", lambda row: tenth(row["part"])),
        ("Efficiency", lambda row: tenth(row["global"])),
    ]
    note = "Of one new run, with 95 %; efficiency is the global one. Laws (how probable): "
    note += "; ".join(
        f"on {name}, {one}" if name else one for name, m in each for one in scaling_words.law_lines(m)
    )
    statements = *scaling_words.sentences(fitted), *scaling_words.speed_lines(fitted)
    blocks: list[Block] = [Points((*statements, *scaling_words.warnings(fitted, at)), "scaling")]
    for name, model in each:
        on = f" on {name}" if name else ""
        findings = [f"On {name}: {one}" if name else one for one in scaling_words.sentences(model)]
        drawn: list[tuple[str, str, scaling_words.Quantity]] = [("phases", findings[0], "time")]
        drawn += [("efficiency", findings[-1], "efficiency")] if model.parts else []
        for noun, finding, of in drawn:
            blocks.append(Picture(f"{noun} over p{on}", number, finding, scaling_words.chart(model, of)))
            number += 1
    rows = scaling_words.table(fitted, at).to_dict("records")
    blocks.append(_table("Phases over p", columns, rows, note=f"{note}.", part="scaling"))
    return [Section("Phases over p", tuple(blocks))]


def provenance(command: str) -> Section:
    """The versions used to make a report, and the command line that makes it again, if there is one."""
    versions = [("Phasewright", desktop.__version__), ("Python", platform.python_version())]
    versions += [(name, metadata.version(name)) for name in ("numpy", "numba", "h5py", "scipy")]
    blocks: list[Block] = []
    if command:
        blocks += [
            Paragraph("This command makes the report again:", "origin"),
            ReportCommand(command, "origin"),
        ]
    blocks.append(ReportTable("Versions", ("Program", "Version"), tuple(versions), 2, part="origin"))
    return Section("How to make this report again", tuple(blocks))


class _Run:
    """One run and everything the report says about it. Results that need its events, else empty: `stats` of
    the run, then of each phase (None if it is shorter than a tick), in `ranges` the existing ones with their
    names; `words` about why time is lost, `helps` about what would help most."""

    def __init__(self, subject: Subject, contents: Contents, progress: Progress, stop: Bytes | None) -> None:
        gathered = gather(subject, Share(progress, 0, 0.5), stop, by_region=contents.by_region)
        assert subject.store is not None  # or there is no material
        self.subject, self.contents, self.store = subject, contents, subject.store
        self.material, self.use = gathered
        self.statistics = Statistics(subject.store)
        self.stats: list[RangeStats | None] = []
        self.ranges: list[tuple[str, RangeStats]] = []
        self.words, self.helps = Explanation(), tuple[Help, ...]()
        self._charges: list[Charges] = []
        if contents.statistics:
            self._ask(Share(progress, 0.5, 1))

    def forget(self) -> None:
        """Free what has been used."""
        self.statistics, self.stats, self.ranges = Statistics(self.store), [], []
        self._charges = []

    def costs(self) -> RunCosts | None:
        """Where the time goes, if statistics are in the report."""
        return run_costs(self._charges[0], naming(self.store, {})) if self._charges else None

    def name(self, location: int) -> str:
        return location_name(self.store.locations[location])

    @property
    def _scale(self) -> tuple[float, str]:
        """The unit of times in all tables of the run, as a factor and a name."""
        return time_unit(self.material.curve.duration)

    def facts(self) -> JSON:
        fit, store = self.material.fit, self.store
        return {
            "title": self.subject.title,
            "source": {"name": store.source.name, "size": store.source.size, "sha256": store.source.sha256},
            "importer": {"name": store.importer.id, "version": store.importer.version},
            "duration_s": self.material.curve.duration,
            "start_s": self.material.curve.start,
            "limited": self.subject.limit is not None,
            "model": fit.model,
            "n": fit.n,
            "epsilon": fit.epsilon,
            "lower": fit.lower,
            "upper": fit.upper,
            "breaks_s": fit.breaks.tolist(),
        }

    def sections(self, drawn: int) -> list[Section]:
        """The sections, after `drawn` figures of other runs."""
        with_statistics = self.contents.statistics
        keys = [key for key in self.contents.figures if key in self.material.figures()]
        pictures = [
            Picture(key, drawn + k, f"{self._finding(key)}{self._doubt(key)}", self.material)
            for k, key in enumerate(keys, 1)
        ]
        parts: dict[str, Iterable[Block]] = {
            "Why time is lost": self._why_lost(),
            "Summary": (Points(tuple(self._summary()), "summary"),),
            "Figures": pictures,
            "Phases": self._phases(),
            "Phase statistics": self._made_of() if with_statistics else (),
            "What changed at each breakpoint": self._changes() if with_statistics else (),
            "The file": self._file(),
            "Options": (self._options(),),
        }
        return [Section(title, tuple(blocks)) for title, blocks in parts.items()]

    def _why_lost(self) -> Iterator[Block]:
        causes = tuple(text for text, _ in self.words.texts)
        phases = tuple(phase.sentence for phase in self.words.phases if len(self.words.phases) > 1)
        yield from (Points(texts, "why") for texts in (causes, phases) if texts)
        if causes or phases:
            yield Paragraph(_STRENGTHS, "why")

    # ---- the story

    def finding(self) -> str:
        """The run in one sentence, with what was lost of it."""
        first = self.words.headline if self.words.level else self._finding("curve")
        return " ".join(filter(None, (first, self._lossy())))

    def story(self, sections: Sequence[Section], name: str) -> list[Slide]:
        """The run in a few slides, the most important first: the curve with its phases, why time is lost,
        what would help, activities, the phases in numbers, what limits them, what changes, where the time
        goes, and why there are so many phases. Titles start with `name`."""
        pictures = {b.figure: b for section in sections for b in section.blocks if isinstance(b, Picture)}

        def shown(figure: str) -> list[tuple[str, Picture]]:
            picture = pictures.get(figure)
            return [] if picture is None else [(picture.finding, picture)]

        phases = "\n".join(
            text if text.startswith(f"Phase {k}") else f"Phase {k}: {text}"
            for k, text in enumerate(self.notes[1:], 1)
            if text
        )
        causes = "\n".join(cause.sentence for cause in self.words.causes[:_STORY_REGIONS])
        slides: list[tuple[str, Iterable[tuple[str, Picture | ReportTable | Points]]]] = [
            (phases, shown("curve")),
            (causes, self._lost()),
            ("\n".join(one.sentence for one in self.helps[:_HELPS]),
             ((self.helps[0].sentence, table) for table in self._helps())),
            (self._extent(), shown("timeline")),
            (" ".join(self._summary()),
             [(self._table_finding(), self._phases_short())]),
            ("", self._why() if self.stats else shown("stack")),
            ("", self._where() if self.stats else ()),
            ("", shown("epsilon")),
        ]  # fmt: skip
        return [Slide(name + title, block, spoken) for spoken, blocks in slides for title, block in blocks]

    @cached_property
    def notes(self) -> list[str]:
        """Speaker's notes about the run, then about each phase."""
        breakpoints = self.material.fit.breaks.tolist()
        return notes(self.words, breakpoints, self.subject.marks, self.subject.spoken)

    def _phases_short(self) -> ReportTable:
        """The phases in a table short enough for a slide; if there are very many, the longest ones."""
        factor, unit = self._scale
        curve, rows = self.material.curve, list(enumerate(self.material.rows, 1))
        work = sum(row.work_s for _, row in rows) or math.nan
        most = _STORY_ROWS if len(rows) <= _STORY_ROWS else _STORY_ROWS - 1
        longest = sorted(rows, key=lambda row: row[1].start_s - row[1].end_s)
        columns: list[_Column[_Phase]] = [
            ("Phase", lambda row: _called(*row)),
            (f"From ({unit})", lambda row: _number(row[1].start_s / factor)),
            (f"Length ({unit})", lambda row: _number(_length(row[1]) / factor)),
            ("of the run", lambda row: tenth(_length(row[1]) / curve.duration)),
            ("Kind", lambda row: DEGREES[row[1].degree]),
            ("Mean", lambda row: _number(row[1].mean)),
            ("Efficiency", lambda row: tenth(row[1].efficiency)),
            ("of all work", lambda row: tenth(row[1].work_s / work)),
        ]
        table = _table("Phases", columns, sorted(longest[:most], key=lambda row: row[0]))
        left = [row for _, row in longest[most:]]
        if not left:
            return table
        length, did = sum(map(_length, left)), sum(row.work_s for row in left)
        mean = did / length
        of = tenth(mean / curve.capacity) if curve.capacity and curve.quantity.counted else "–"
        last_row = (f"{len(left)} more", "–", _number(length / factor), tenth(length / curve.duration),
                "–", _number(mean), of, tenth(did / work))  # fmt: skip
        return replace(table, rows=(*table.rows, last_row))

    def _lost(self) -> Iterator[tuple[str, ReportTable]]:
        """Why time is lost: the first cause, and all causes worth a line."""
        causes = [cause for cause in self.words.causes if cause.part >= 0.005][:_STORY_REGIONS]
        columns: list[_Column[CauseText]] = [
            ("Cause", lambda cause: cause.title),
            ("Where", lambda cause: cause.region),
            ("Who", lambda cause: cause.names),
            ("Lost (proc·s)", lambda cause: _number(cause.lost_s)),
            ("of what is lost", lambda cause: percent(cause.part)),
            ("Evidence", lambda cause: cause.strength),
        ]
        note = f"{self.words.level} {_STRENGTHS}"
        if causes:
            yield self.words.headline, _table("Causes of lost time", columns, causes, 3, note)

    def _why(self) -> Iterator[tuple[str, ReportTable | Points]]:
        """What limits each phase, and what changes."""
        if not self.ranges or not self.ranges[0][1].is_processor.any():
            return
        yield self._limits(), self._limits_table()
        changes = self._largest_changes()
        if changes is not None:
            yield changes

    def _where(self) -> Iterator[tuple[str, ReportTable]]:
        """Where the time goes."""
        run = self.stats[0]
        regions = self.statistics.flat(run, self.use) if run is not None and run.is_processor.any() else []
        if regions:
            table = self._regions("Regions of the run", [("Run", regions)], _STORY_REGIONS)
            rows = tuple(row[1:] for row in table.rows)
            yield self._region_words(regions), replace(table, heads=table.heads[1:], rows=rows, left=2)

    def _limits(self) -> str:
        """Which factor of the parallel efficiency costs most, and in which phase the efficiency is least."""
        run = self.ranges[0][1]
        causes = _causes(run)
        cause, value = min(causes, key=lambda one: one[1])
        text = f"{cause} limits the run: {percent(value)}, of a parallel efficiency of "
        text += percent(run.parallel_efficiency)
        phases = [(name, s) for name, s in self.ranges[1:] if math.isfinite(s.parallel_efficiency)]
        if len(phases) < 2:
            return f"{text}."
        name, worst = min(phases, key=lambda one: one[1].parallel_efficiency)
        least, part = min(_causes(worst), key=lambda one: one[1])
        return (
            f"{text}; {name.lower()} has the least, {percent(worst.parallel_efficiency)} "
            f"({least.lower()} {percent(part)})."
        )

    def _limits_table(self) -> ReportTable:
        longest = sorted(range(1, len(self.ranges)), key=lambda k: -self.ranges[k][1].duration_s)[
            : _STORY_ROWS - 1
        ]
        rows = [self.ranges[k] for k in (0, *sorted(longest))]
        ideal = any(s.transfer_efficiency is not None for _, s in rows)
        columns = self._efficiencies[: None if ideal else -2]
        note = "Parallel efficiency = load balance × communication"
        note += " = load balance × serialisation × transfer." if ideal else "."
        if len(self.ranges) > len(rows):
            note += f" {len(self.ranges) - len(rows)} shorter phases are not shown."
        return _table(TABLES["efficiencies"], columns, rows, note=note)

    @property
    def _efficiencies(self) -> list[_Column[_Range]]:
        """Columns for a range (its name, its statistics)."""
        factor, unit = self._scale
        return [
            ("Range", lambda row: row[0]),
            (f"Length ({unit})", lambda row: _number(row[1].duration_s / factor)),
            ("Computing", lambda row: _number(row[1].computing)),
            ("Parallel efficiency", lambda row: tenth(row[1].parallel_efficiency)),
            ("Load balance", lambda row: tenth(row[1].load_balance)),
            ("Communication", lambda row: tenth(row[1].communication_efficiency)),
            ("Serialisation", lambda row: tenth(row[1].serialisation_efficiency)),
            ("Transfer", lambda row: tenth(row[1].transfer_efficiency)),
        ]

    def _largest_changes(self) -> tuple[str, ReportTable] | None:
        """The largest difference between neighbouring phases, and the largest ones in order of time; None if
        none is known."""
        differences = [(c.seconds, k, c) for k, changes in self._changed(2) for c in changes]
        most = sorted(differences, key=lambda item: -item[0])[:_STORY_CHANGES]
        if not most:
            return None
        names = self.subject.names
        at = {k: seconds(self.material.rows[k].start_s) for _, k, _ in most}
        _, first, largest = most[0]
        title = f"Most changes from phase {first} to {first + 1}, at {at[first]}: {largest.called(names)}"
        columns: list[_Column[tuple[float, int, Change]]] = [
            ("Phases", lambda row: f"{row[1]} to {row[1] + 1}"),
            ("At", lambda row: at[row[1]]),
            ("What changes", lambda row: row[2].called(names)),
        ]
        return title, _table("Largest changes", columns, sorted(most, key=lambda row: (row[1], -row[0])), 3)

    def _named(self, region: str) -> str:
        """The name of a region for the reader."""
        return self.subject.names.get(region, region)

    def _region_words(self, regions: Sequence[RegionRow]) -> str:
        first, *others = [(self._named(row.name), percent(row.share)) for row in regions[:2]]
        text = f"{first[0]} takes most of all processors' time, {first[1]}"
        return f"{text}{''.join(f', then {name}, {share}' for name, share in others)}."

    def _regions(
        self, title: str, ranges: Iterable[tuple[str, Sequence[RegionRow]]], most: int
    ) -> ReportTable:
        """The first regions of each range, and the total of all others."""
        factor, unit = self._scale
        rows = []
        for name, regions in ranges:
            rows += [(name, row) for row in regions[:most]]
            others = regions[most:]
            if others:
                share, seconds = sum(row.share for row in others), sum(row.exclusive_s for row in others)
                calls = sum(row.calls for row in others)
                together = replace(others[0], activity=None, share=share, exclusive_s=seconds, calls=calls)
                rows.append((name, replace(together, name=f"({len(others)} more)")))
        columns: list[_Column[tuple[str, RegionRow]]] = [
            ("Range", lambda row: row[0]),
            ("Region", lambda row: self._named(row[1].name)),
            ("Activity", lambda row: "–" if row[1].activity is None else row[1].activity.name.lower()),
            ("Share", lambda row: percent(row[1].share)),
            (f"Exclusive time (proc·{unit})", lambda row: _number(row[1].exclusive_s / factor)),
            ("Calls", lambda row: f"{row[1].calls}"),
        ]
        note = "Over all processors, in processor-seconds; the share is of all their time."
        return _table(title, columns, rows, 3, note, "regions")

    def _ask(self, progress: Progress) -> None:
        """Compute what needs the events of the run."""
        fit, use, names = self.material.fit, self.use, self.subject.names
        breakpoints = fit.breaks.tolist()
        ranges = [(breakpoints[0], breakpoints[-1]), *pairwise(breakpoints)]
        whole = [np.rint(b / use.unit) > np.rint(a / use.unit) or self.store.has("curve") for a, b in ranges]
        requested = [r for r, inside in zip(ranges, whole, strict=True) if inside]
        answers = iter(self.statistics.ranges(requested, use, progress, replay=True))
        self.stats = [next(answers) if inside else None for inside in whole]
        called = ["Run", *(f"Phase {k}" for k in range(1, len(self.stats)))]
        self.ranges = [(name, s) for name, s in zip(called, self.stats, strict=True) if s is not None]
        helps = would_help(self.statistics, use, breakpoints, self.subject.limit, progress)
        self.helps = tuple(one.called(names) for one in helps)
        phases = fit.names
        try:
            self._charges = charged(self.statistics, use, breakpoints, progress)
        except ValueError:  # a phase without a tick of the curve
            self._charges, phases = charged(self.statistics, use, breakpoints[:: fit.n], progress), ()
        self.words = explanation(self._charges, phases, naming(self.store, names))

    # ---- sentences

    def _summary(self) -> list[str]:
        fit = self.material.fit
        figures = ["curve", "epsilon"]
        if self.material.bars is not None and self.stats:
            figures.append("timeline")
        findings = (self._finding(figure) for figure in figures)
        # That breakpoints are as suggested stands in the finding of the figure.
        note = "" if fit.note == AS_SUGGESTED else capital(fit.note)
        return [self._extent(), *findings, *filter(None, (self._lossy(), note))]

    def _extent(self) -> str:
        """How long the run is, and which part of it is analysed."""
        curve = self.material.curve
        on = f"on {_number(self.use.curve().capacity)} processors"
        if self.subject.limit is None:
            return f"The run takes {seconds(curve.duration)} {on}."
        whole = self.use.curve()
        part = percent(curve.duration / whole.duration)
        return (
            f"The run takes {seconds(whole.duration)} {on}. Only {seconds(curve.duration)} of it ({part}) "
            f"are analysed here, from {' to '.join(map(seconds, curve.span))}; "
            f"everything stated about the run refers to this part."
        )

    def _lossy(self) -> str:
        lost = [f for f in self.store.report if f.severity in ("loss", "error")]
        if not lost:
            return ""
        doubtful = doubt(self.store)
        sentence = doubtful.sentence if doubtful else "Part of the input was lost."
        return f"{sentence} Findings: {sum(f.count for f in lost)}, listed under “The file”."

    def _doubt(self, figure: str) -> str:
        """The doubtful share of a curve, for the figures that show it."""
        doubtful = doubt(self.store) if figure in ("curve", "stack") else None
        return f" {doubtful.sentence}" if doubtful else ""

    def _finding(self, figure: str) -> str:
        """The finding of a figure, in one sentence."""
        material = self.material
        curve, fit, rows = material.curve, material.fit, material.rows
        share = f" ({100 * curve.mean / curve.capacity:.0f} %)" if curve.capacity else ""
        mean = mean_number(curve.mean, curve.capacity)
        overall = f"{capital(mean)} of {_number(curve.capacity)} processors compute on average{share}"
        of = curve.quantity
        if of != PROCESSORS:
            overall = f"{of.name}: on average {_number(curve.mean)} {of.unit}".rstrip()
        if figure == "curve":
            if fit.n == 1:
                return f"{overall}; one {DEGREES[rows[0].degree]} phase describes the whole run."
            low = min(range(fit.n), key=lambda k: rows[k].mean)
            part = (rows[low].end_s - rows[low].start_s) / curve.duration
            least = f"has the least: {_number(rows[low].mean)}"
            if of == PROCESSORS:
                mean = mean_number(rows[low].mean, curve.capacity)
                least = f"is the least busy: {mean} processor{'' if mean == '1' else 's'}"
            return f"{overall}; of {fit.n} phases, phase {low + 1} {least} for {percent(part)} of the time."
        if figure == "stack":
            parts = {
                name: level.integral / (curve.duration * curve.capacity)
                for name, level in material.stack.items()
                if name != "computing" and curve.capacity
            }
            most = max(parts, key=lambda name: parts[name], default="")
            if not most:
                return f"{overall}."
            names = {"io": "I/O", "unmeasured": "no measurement"}
            share = f"{names.get(most, most)}: {percent(parts[most])} of all time"
            return f"{overall}; most of the rest is {share}."
        if figure == "residual":
            return self._least_well()
        if figure == "epsilon":
            text = f"{fit.requested} {'parameters' if fit.model == 'budget' else 'phases'} are shown"
            text = text.replace("1 phases are", "1 phase is") if fit.requested == 1 else text
            if material.suggestion is None:
                return f"{text}; the largest error is {_number(fit.epsilon)} {of.of_error}."
            suggested = material.suggestion
            if suggested.n == fit.requested:
                return f"{text}, as many as are suggested: {suggested.reason}."
            return f"{text}; {suggested.n} would be suggested, as {suggested.reason}."
        if figure == "timeline":
            return self._loads()
        return self._table_finding()

    def _least_well(self) -> str:
        rows = self.material.rows
        worst = self.material.fit.worst
        return (
            f"Phase {worst + 1} has the largest error: the curve is off by {_number(rows[worst].rms)} "
            f"{self.material.curve.quantity.unit} (root of the mean square) there."
        )

    def _table_finding(self) -> str:
        rows = self.material.rows
        longest = max(range(len(rows)), key=lambda k: rows[k].end_s - rows[k].start_s)
        row = rows[longest]
        return (
            f"Phase {longest + 1} is the longest: {seconds(row.end_s - row.start_s)}, "
            f"{percent((row.end_s - row.start_s) / self.material.curve.duration)} of the run."
        )

    def _loads(self) -> str:
        stats = self.stats[0] if self.stats else None
        if stats is None or not stats.is_processor.any():
            return "Which processors compute when."
        most, least = int(stats.most_loaded(1)[0]), int(stats.idlest(1)[0])
        high, low = (percent(float(stats.utilization[i])) for i in (most, least))
        if most == least:
            return f"{capital(self.name(most))} computes {high} of the time."
        return (
            f"{capital(self.name(most))} computes most, {high} of the time, {self.name(least)} "
            f"least, {low}; the load balance is {percent(stats.load_balance)}."
        )

    # ---- tables

    def _phases(self) -> Iterable[Block]:
        fit, of = self.material.fit, self.material.curve.quantity
        factor, unit = self._scale
        mean, work = "Mean", f"Work (proc·{unit})"
        if of != PROCESSORS:
            mean = f"Mean ({of.unit})" if of.unit else "Mean"
            work = f"Integral ({of.per('proc·s')})".removesuffix(" ()")
        means = [(c.quantity, envelope(c).columns(fit.breaks).mean.tolist()) for c in self.material.tracks]
        columns: list[_Column[_Phase]] = [
            ("Phase", lambda row: _called(*row)),
            (f"Start ({unit})", lambda row: _number(row[1].start_s / factor, 6)),
            (f"End ({unit})", lambda row: _number(row[1].end_s / factor, 6)),
            (f"Length ({unit})", lambda row: _number(_length(row[1]) / factor, 6)),
            ("Kind", lambda row: DEGREES[row[1].degree]),
            (mean, lambda row: _number(row[1].mean)),
            ("Min", lambda row: _number(row[1].min)),
            ("Max", lambda row: _number(row[1].max)),
            ("Efficiency", lambda row: tenth(row[1].efficiency)),
            (work, lambda row: _number(row[1].work_s / (factor if of == PROCESSORS else 1))),
            ("RMS", lambda row: _number(row[1].rms)),
            (f"Error ({of.per('proc·√s')})", lambda row: _number(row[1].error)),
        ]
        for q, track in means:
            head = f"{q.name}, mean{q.unit and f' ({q.unit})'}"
            columns.append((head, partial(_mean_of, track)))
        rows = list(enumerate(self.material.rows, 1))
        note = ("Mean, least, largest and work are the curve's own. RMS is the root of the mean square of "
                "curve minus fit; the error is RMS times the root of the length.")  # fmt: skip
        yield _table("Phases", columns, rows, note=note, part="phases")
        columns = [
            ("Phase", lambda row: f"{row[0]}"),
            ("From (s)", lambda row: f"{row[1].start_s:.9g}"),
            ("To (s)", lambda row: f"{row[1].end_s:.9g}"),
            (
                f"{'Processors computing' if of == PROCESSORS else of.name} at t (s)",
                lambda row: _formula(row[1]),
            ),
        ]
        yield _table(
            TABLES["formulas"],
            columns,
            rows,
            note=_rate_in_words(fit, isinstance(self.subject.basis, str | None)),
            part="formulas",
        )
        if fit.n > 1:
            ends: list[_Column[int]] = [
                ("Breakpoint", str),
                ("Time (s)", lambda k: f"{fit.breaks[k]:.9g}"),
            ]
            note, firm = "", self.material.firm
            if fit.searched:
                ends += [
                    ("may lie from (s)", lambda k: f"{fit.breakpoint_low[k]:.9g}"),
                    ("to (s)", lambda k: f"{fit.breakpoint_high[k]:.9g}"),
                ]
                note = "A breakpoint can move within its range, the others following it, without changing ε."
            if any(firm):
                note = f"{note} {REPEATED}".lstrip()
                ends.append(("over repeats", lambda k: "–" if (one := firm[k - 1]) is None else one.words))
            yield _table("Breakpoints", ends, range(1, fit.n), note=note, part="breaks")
        yield Paragraph(self._certificate(), "certificate")

    def _certificate(self) -> str:
        """How large the error is, and what proves that no partition is better."""
        fit = self.material.fit
        of = self.material.curve.quantity
        squares = "processors²·s" if of == PROCESSORS else of.of_squares
        text = f"{self._least_well()} The largest local error is ε = {fit.epsilon:.6g} {of.of_error}"
        text += f", the total squared error {fit.sse:.6g} {squares}"
        text += f", the least over the largest local error {fit.equidistribution:.4g}. "
        if fit.model == "mixed":
            text += "These errors are weighted: that of a constant by √2, of a line by √(4/3). "
        if not fit.searched:
            low, high = (
                (fit.lower, fit.upper) if self.material.sweep is None else self.material.sweep.bounds(fit)
            )
            whose = "those that are suggested" if fit.note == AS_SUGGESTED else "set by hand"
            count = f"{fit.requested} parameters" if fit.model == "budget" else f"{fit.n} phases"
            count = count.replace("1 phases", "1 phase") if fit.n == 1 else count
            return text + (
                f"The breakpoints are {whose}. The least ε that is possible with {count} lies between "
                f"{low:.6g} and {high:.6g}."
            )
        if fit.model == "mixed":
            return text + (
                f"No tolerance below {fit.lower:.6g}, the least possible with as many quadratic phases, "
                "would do."
            )
        every = "as many parameters" if fit.model == "budget" else "as many phases"
        return text + (
            f"The least ε that is possible lies between {fit.lower:.6g} and {fit.upper:.6g}: of any "
            f"partition with {every}, the least local error is at most, the largest at least that."
        )

    def _made_of(self) -> Iterable[Block]:

        def sent(row: _Range, name: str) -> str:
            return "–" if row[1].messages is None else f"{int(getattr(row[1].messages, name).sum())}"

        columns: list[_Column[_Range]] = [
            *self._efficiencies,
            ("Messages", lambda row: sent(row, "sent")),
            ("Bytes sent", lambda row: sent(row, "bytes_sent")),
        ]
        note = " ".join(sorted({note for _, s in self.ranges for note in _notes(s)}))
        yield _table(TABLES["efficiencies"], columns, self.ranges, note=note, part="efficiencies")
        if any(stats.seconds.any() for _, stats in self.ranges):
            yield self._activities()
            yield self._accounts()
            yield from self._delays()
            yield from self._helps()
            yield self._processors()
        regions = [(name, self.statistics.flat(stats, self.use)) for name, stats in self.ranges]
        if any(rows for _, rows in regions):
            yield self._regions(TABLES["regions"], regions, _REGIONS)

    def _activities(self) -> ReportTable:
        seen = [a for a in Activity if any(stats.by_activity[a] for _, stats in self.ranges)]
        rows = []
        for name, stats in self.ranges:
            whole = stats.seconds.sum() or math.nan
            rows.append((name, *(tenth(stats.by_activity[a] / whole) for a in seen)))
        heads = ("Range", *(capital(a.name.lower()) for a in seen))
        return ReportTable(
            "Activities, as parts of all processors' time", heads, tuple(rows), part="activities"
        )

    def _accounts(self) -> ReportTable:
        parts = [(name, dict(stats.account_parts())) for name, stats in self.ranges]
        most = {one: max(by_account.get(one, 0.0) for _, by_account in parts) for one in Account}
        seen = sorted(sorted(filter(most.get, Account), key=lambda one: -most[one])[:_ACCOUNTS])
        heads = ["Range", *(ACCOUNTS[one.name.lower()][0] for one in seen)]
        rows = [[name, *(tenth(by_account.get(one, 0.0)) for one in seen)] for name, by_account in parts]
        if len(seen) < sum(part > 0 for part in most.values()):
            heads.append("Others")
            for row, (_, by_account) in zip(rows, parts, strict=True):
                row.append(tenth(sum(part for one, part in by_account.items() if one not in seen)))
        return ReportTable(
            "Accounts: what length × processors was spent on", tuple(heads), tuple(map(tuple, rows)),
            note=" ".join(f"{title}: {what[0].lower()}{what[1:]}." for title, what in
                          (ACCOUNTS[one.name.lower()] for one in seen)),
            part="accounts",
        )  # fmt: skip

    def _delays(self) -> Iterator[ReportTable]:
        rows = [
            (name, delay, stats.caused.path_s[delay.location] / stats.duration_s)
            for name, stats in self.ranges
            if stats.caused
            for delay in stats.caused.delays[:_DELAYS]
        ]
        columns: list[_Column[tuple[str, Delay, float]]] = [
            ("Range", lambda row: row[0]),
            ("Processor", lambda row: self.name(row[1].location)),
            ("In", lambda row: self._named(row[1].name)),
            ("Those who wait for it", lambda row: _number(row[1].short_s)),
            ("Others behind", lambda row: _number(row[1].long_s)),
            ("Critical path", lambda row: tenth(row[2])),
        ]
        note = (
            "Waiting, at any time, that delays of the range caused, in processor-seconds (delay costs as "
            "Scalasca defines them), and the part of the range in which the critical path of the run is on "
            "that processor."
        )
        if rows:
            yield _table(TABLES["delays"], columns, rows, 3, note, "delays")

    def _helps(self) -> Iterator[ReportTable]:
        if self.helps:
            columns: list[_Column[Help]] = [
                ("Change", lambda one: one.label),
                ("If", lambda one: one.assumption),
                ("Saves, s", lambda one: _number(one.saved_s)),
                ("Of the run", lambda one: tenth(one.share)),
            ]
            bounds = [one for one in self.helps if one.bound][:_BOUNDS]
            rows = [*[one for one in self.helps if not one.bound][:_HELPS], *bounds]
            note = "One change at a time, in a replay of the run."
            note += " A bound is the most that can be gained." if bounds else ""
            yield _table(TABLES["helps"], columns, rows, 2, note, "helps")

    def _processors(self) -> ReportTable:
        rows = []
        for name, stats in self.ranges:
            ends = [int(v[0]) for v in (stats.most_loaded(1), stats.idlest(1)) if v.size]
            cells = [cell for i in ends for cell in (self.name(i), tenth(float(stats.utilization[i])))]
            rows.append((name, *(cells or ["–"] * 4)))
        heads = ("Range", "Computes most", "of the time", "Computes least", "of the time")
        return ReportTable("Most and least loaded processors", heads, tuple(rows), part="loads")

    def _changed(self, most: int) -> Iterator[tuple[int, list[Change]]]:
        """Numbers of phases, and the largest differences between each and the next, where there are any."""
        for k, (left, right) in enumerate(pairwise(self.stats[1:]), 1):
            run = self.stats[0]
            if run is None or left is None or right is None:
                continue
            if changes := self.statistics.changes(run, left, right, most):
                yield k, changes

    def _changes(self) -> Iterable[Block]:
        changed = list(self._changed(_CHANGES))
        for k, changes in changed:
            at = seconds(self.material.rows[k].start_s)
            yield Paragraph(f"From phase {k} to phase {k + 1}, at {at}:", "changes")
            yield Points(tuple(change.called(self.subject.names) for change in changes), "changes")
        if not changed:
            yield Paragraph("Nothing that is known of the phases differs." if self.material.fit.n > 1
                            else "There is one phase, so nothing changes.", "changes")  # fmt: skip

    def _file(self) -> Iterable[Block]:
        store, clock = self.store, self.store.clock
        source, rate = store.source, store.ticks_per_second
        facts = [
            ("Name", source.name),
            ("Size", f"{source.size} bytes"),
            ("SHA-256", source.sha256 or "–"),
            ("Importer", f"{store.importer.id}, version {store.importer.version}"),
            ("Clock", f"{rate:g} ticks per second"),
            (
                "Locations",
                f"{len(store.locations)}, of them {_number(self.use.processors)} processors with events",
            ),
            ("Events", f"{sum(location.records for location in store.locations)}"),
            ("Steps of the curve", f"{self.material.curve.segments}"),
        ]
        yield ReportTable("Identity", ("What", "Value"), tuple(facts), 2, part="file")
        rules = self.use.rules
        applied = rules.repairs(store)
        yield Paragraph(
            f"Clocks: {clock.checked} messages and collectives were checked, {clock.violations_before} "
            f"contradict the clocks as recorded, {clock.violations_after} after the repair "
            f"({_REPAIRS.get(clock.repair, clock.repair)}). "
            + ("The repair is applied." if applied else "Times are as recorded, the repair is not applied."),
            "file",
        )
        shifted = [
            (
                self.name(i),
                trimmed(x.shift / rate, 9),
                trimmed(x.drift * 1e6, 4),
                f"{x.half_width / rate:.3g}" if math.isfinite(x.half_width) else "not known",
            )
            for i, x in enumerate(store.locations)
            if x.shift or x.drift
        ]  # fmt: skip
        if shifted and applied:
            more = f"{len(shifted) - _SHIFTS} more are not listed." if len(shifted) > _SHIFTS else ""
            heads = ("Location", "Shift (s)", "Rate (µs/s)", "May be off by (s)")
            yield ReportTable("Repair of clocks", heads, tuple(shifted[:_SHIFTS]), note=more, part="file")
        findings = [(f.severity, f"{f.count}", f.text, f.where) for f in store.report]
        if findings:
            yield ReportTable(
                "Import report", ("Severity", "Count", "What", "Where"), tuple(findings), 4, part="import"
            )
        else:
            yield Paragraph("The import found nothing to report.", "import")

    def _analysed(self) -> str:
        if self.subject.limit is None:
            return "the whole run"
        return "from {:.9g} to {:.9g}".format(*self.material.curve.span)

    def _options(self) -> ReportTable:
        subject, fit, rules = self.subject, self.material.fit, self.use.rules
        free = subject.n is None and subject.breaks is None
        number = "suggested" if free or subject.suggested else "as asked"
        by_hand = () if subject.suggested else subject.breaks or ()
        rows = [
            ("Model", fit.model),
            ("Parameters" if fit.model == "budget" else "Phases", f"{fit.requested} ({number})"),
            ("Analysed (s)", self._analysed()),
            ("Locked breakpoints (s)", ", ".join(f"{t:.9g}" for t in subject.locked) or "none"),
            ("Breakpoints set by hand (s)", ", ".join(f"{t:.9g}" for t in by_hand) or "none"),
            ("Counts as computing", ", ".join(a.name.lower() for a in sorted(rules.computing))),
            ("Clock repair", {None: "as the format recommends", True: "yes", False: "no"}[rules.repaired]),
        ]
        rows += [(f"Class of {region}", a.name.lower()) for region, a in rules.overrides.items()]
        rows += [(f"Region {region}", f"called {name}") for region, name in subject.names.items()]
        for mark in subject.marks:
            until = "" if mark.end_s is None else f" to {seconds(mark.end_s)}"
            on = f" on {mark.where}" if mark.where else ""
            rows.append((f"Annotation at {seconds(mark.start_s)}{until}{on}", mark.text))
        return ReportTable("Options", ("Option", "Value"), tuple(rows), 2, part="options")


def _causes(stats: RangeStats) -> list[tuple[str, float]]:
    """The factors of a parallel efficiency, as detailed as they are known."""
    factors = [("Load balance", stats.load_balance)]
    if stats.transfer_efficiency is not None and stats.serialisation_efficiency is not None:
        factors += [
            ("Serialisation", stats.serialisation_efficiency),
            ("Transfer", stats.transfer_efficiency),
        ]
    else:
        factors.append(("Communication", stats.communication_efficiency))
    return [(name, value) for name, value in factors if math.isfinite(value)] or [("Load balance", math.nan)]


def _notes(stats: RangeStats) -> list[str]:
    replayed = stats.replayed
    notes = [stats.note, *((replayed.ideal_note, replayed.waiting_note) if replayed else ())]
    return [note for note in notes if note]


def _length(row: PhaseRow) -> float:
    return row.end_s - row.start_s


def _mean_of(track: Sequence[float], row: _Phase) -> str:
    """The mean of a track in a phase."""
    return _number(track[row[0] - 1])


def _called(k: int, row: PhaseRow) -> str:
    """A phase by its number and name."""
    return f"{k} {row.name}" if row.name else f"{k}"


def _rate_in_words(fit: PhaseFit, searched: bool) -> str:
    """The meaning of the letter in the formulas if phases are made of other functions, and whether its search
    ended at a limit."""
    scale = None if fit.basis is None else fit.basis.space.scale
    if fit.basis is None or scale is None:
        return ""
    limit = f" ({fit.limit})" if searched and fit.limit else ""
    seconds = quantity(fit.basis.seconds, "s", 5)
    rate = f"{scale.letter} = {scale.formula} = {fit.basis.rate:.9g} per second"
    return f"{rate}, of a {scale.name} of {seconds}{limit}."


def _formula(row: PhaseRow) -> str:
    """The function of a phase: a polynomial in the paper's powers of the time since its start, or another."""
    words, since = "", f"(t − {row.start_s:.9g})"
    terms = bases.TABLE[row.degree - bases.FIRST].factors if row.degree >= bases.FIRST else ("{t}²",)
    factors = ["", since, *(factor.format(t=since) for factor in terms)]
    for power, value in enumerate(row.coefficients):
        sign = " − " if value < 0 else " + "
        if power == 0:
            sign = "−" if value < 0 else ""
        factor = f" {factors[power]}" if power else ""
        words += f"{sign}{abs(value):.7g}{factor}"
    return words


# ------------------------------------------------------------------ HTML


def to_html(
    report: Report, draw: Callable[[Picture], str], style: str = "screen.css", own_style: str = ""
) -> str:
    """One HTML document that contains its style and figures; `draw` gives the markup of a figure.

    It needs no network and no script, and forbids both. `own_style`: from `style_sheet`, added at the end.
    """
    home = resources.folder() / "report"
    body = "".join(_section(section, draw) for section in report.sections)
    return Template((home / "report.html").read_text(encoding="utf-8")).substitute(
        title=_h(report.title),
        subtitle=_h(report.subtitle),
        style=(home / style).read_text(encoding="utf-8") + own_style,
        policy=POLICY if own_style else "",
        body=body,
        version=_h(desktop.__version__),
    )


def _section(section: Section, draw: Callable[[Picture], str]) -> str:
    title = f"<h{section.level}>{_h(section.title)}</h{section.level}>\n"
    return title + "".join(_block(block, draw, section.title) for block in section.blocks)


def _block(block: Block, draw: Callable[[Picture], str], above: str) -> str:
    if isinstance(block, Paragraph):
        lead = ' class="lead"' if block.text.endswith(":") else ""
        return f"<p{lead}>{_prose(block.text)}</p>\n"
    if isinstance(block, Points):
        return "<ul>" + "".join(f"<li>{_prose(item)}</li>" for item in block.items) + "</ul>\n"
    if isinstance(block, ReportCommand):
        return f"<pre>{_h(block.text)}</pre>\n"
    if isinstance(block, Picture):
        caption = f"<b>Figure {block.number}.</b> {_prose(block.finding)}"
        return f'<div class="figure">{draw(block)}<p class="caption">{caption}</p></div>\n'
    heads = "".join(f"<th{_side(k, block)}>{_h(head)}</th>" for k, head in enumerate(block.heads))
    rows = "".join(
        "<tr>"
        + "".join(f"<td{_side(k, block)}>{_h(cell, _LONGEST_CELL)}</td>" for k, cell in enumerate(row))
        + "</tr>\n"
        for row in block.rows
    )
    note = f'<p class="note">{_h(block.note)}</p>\n' if block.note else ""
    title = "" if block.title == above else f"<h3>{_h(block.title)}</h3>\n"
    short = " short" if len(block.rows) <= _SHORT else ""  # kept on one sheet of paper
    return (
        f'{title}<div class="wide{short}"><table width="100%" cellspacing="0" cellpadding="3">'
        f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n{note}"
    )


def _side(column: int, table: ReportTable) -> str:
    """Words left, numbers right; as attributes, which Qt's documents support too."""
    return ' align="left"' if column < table.left else ' align="right"'


def _prose(text: str) -> str:
    return unbroken(_h(text))


def _h(text: str, most: int = _LONGEST) -> str:
    return escape(printable(text, most))
