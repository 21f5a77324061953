"""All settings of the user: one frozen tree of plain values, which project files save.

Each class says by `problem` what would be wrong with its values in a file, or nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from desktop.core import bases
from desktop.core.arrays import Bytes
from desktop.core.labels import ACTIVITIES, DEFAULT_MODEL, GROUNDS, MIXING, MODELS, OWN_BASIS, REPORTS, STYLES
from desktop.data.message_filter import ALL_MESSAGES, MessageFilter
from desktop.data.naming import run_name
from desktop.workbench.levels import AT_FIRST, Levels

if TYPE_CHECKING:  # brings numba, which the window loads only after it is on screen
    from desktop.core.changes import Changes
    from desktop.core.curve import StepCurve
    from desktop.core.effect_limits import Threshold
    from desktop.core.effects import Error, Inner, Members
    from desktop.core.landmarks import Landmarks
    from desktop.core.phases import PhaseFit
    from desktop.core.spaces import Basis
    from desktop.data.tables import Repeats, TableEdits
    from desktop.data.utilization import Rules

#: Units of time in a curve file.
UNITS = ("s", "ms", "us", "ns")
#: Views that can be kept, by their keys 1 to 9.
VIEWS = 9
#: Colours of annotations.
COLOURS = 8
#: Curves that are drawn below the one that is fitted, at most.
TRACKS = 8
#: Axes on which runs are compared, see `desktop.core.contrast.AXES`.
AXES = ("absolute", "start", "normalised", "phases")
#: What a factor model was made of before the functions were chosen by AICc; projects may not name it.
DEFAULT_FUNCTIONS = ("1/p", "1/sqrt(p)")


@dataclass(frozen=True)
class OpenOptions:
    """How a trace is opened, see `desktop.data.opening.open_trace`."""

    format_id: str | None = None
    time_unit: str = "s"
    force: bool = False
    workers: int | None = None
    scheduler: str | None = None
    member: str | None = None

    def again(self) -> OpenOptions:
        """The options without those of a single opening, to open the trace again."""
        return replace(self, force=False, workers=None, scheduler=None)

    def problem(self) -> str:
        from desktop.data.importers import FORMATS

        if self != self.again():
            return "force, workers and scheduler are the user's to say, not a file's"
        if self.format_id not in (None, *FORMATS):
            return f"format_id is {self.format_id}, allowed are {', '.join(FORMATS)}"
        return (
            ""
            if self.time_unit in UNITS
            else f"time_unit is {self.time_unit}, allowed are {', '.join(UNITS)}"
        )


#: The format is detected from the content.
DETECT = OpenOptions()


@dataclass(frozen=True)
class PhaseSettings:
    """Settings of the fit.

    `n` counts phases, for the model ``"budget"`` parameters. `locked` are times (s) that have to be
    breakpoints, sorted. `breaks` (n+1,) in seconds are set by hand and hold until another fit is asked for;
    None lets the algorithm find them. `degrees` (n,) are those of the phases between `breaks` where the model
    has phases of several, so that a phase keeps its own while others are changed; None, or -1 for one: by the
    rule of `desktop.core.phases.fit_breakpoints`. `suggested`: the breakpoints are those suggested, not set
    by hand. `pure`: fits and suggestion by the curve alone, without the run's structure events. `seconds`:
    the period or time constant of the models that have one, None: as searched. `also`: the model of a space
    (`desktop.core.bases`) that the models that mix degrees may choose too.
    """

    model: str = DEFAULT_MODEL
    n: int = 1
    locked: tuple[float, ...] = ()
    breaks: tuple[float, ...] | None = None
    degrees: tuple[int, ...] | None = None
    suggested: bool = False
    pure: bool = False
    seconds: float | None = None
    also: str = ""

    @property
    def basis(self) -> Basis | str | None:
        """Functions beside polynomials, their kind alone where period or time constant are to be searched;
        None where the model says all."""
        from desktop.core.spaces import Basis

        return (self.also or None) if self.seconds is None else Basis.of(self.space_model, self.seconds)

    @property
    def space_model(self) -> str:
        """The model of the space that phases may be of, else ""."""
        return self.model if self.model in OWN_BASIS else self.also

    @property
    def scale(self) -> bases.RateScale | None:
        """What `seconds` are, where phases have such."""
        space = bases.space_of(self.space_model)
        return space and space.scale

    @property
    def most(self) -> int:
        """The highest degree that a phase may have."""
        return bases.degree_of(self.also) if bases.space_of(self.also) else 2

    def free(self) -> PhaseSettings:
        """The same without breakpoints set by hand; locked ones stay."""
        return replace(self, breaks=None, degrees=None, suggested=False)

    def taking(self, n: int, breakpoints: tuple[float, ...] | None) -> PhaseSettings:
        """With a suggested number and its breakpoints; None: those of the best fit."""
        return replace(self.free(), n=max(1, n), breaks=breakpoints, suggested=breakpoints is not None)

    @property
    def by_ends(self) -> list[tuple[float, float, int]]:
        """Start, end and degree of the phases set by hand."""
        breakpoints = self.breaks or ()
        return [(*ends, k) for ends, k in zip(pairwise(breakpoints), self.degrees or (), strict=False)]

    def by_hand(self, ends: Sequence[float], phases: Iterable[tuple[float, float, int]]) -> PhaseSettings:
        """With breakpoints set by hand; `ends` (n+1,) of all phases. Those among `phases` (start, end,
        degree) keep their degree, others get one by the rule; n counts phases but in the model
        ``"budget"``."""
        degree_of = {(start, end): degree for start, end, degree in phases}
        degrees = None
        if self.model in MIXING:
            degrees = tuple(degree_of.get(phase, -1) for phase in pairwise(ends))
        n = self.n if self.model == "budget" else len(ends) - 1
        return replace(self, n=n, breaks=tuple(ends), degrees=degrees, suggested=False)

    def fit(
        self,
        curve: StepCurve,
        landmarks: Landmarks | None = None,
        *,
        like: PhaseFit | None = None,
        stop: Bytes | None = None,
    ) -> PhaseFit:
        """The phases asked for; of equally good breakpoints those at structure events (`landmarks`), where
        these count. `like` and `stop` as of `desktop.core.phases`."""
        from desktop.core.phases import AS_SUGGESTED, fit, fit_breakpoints
        from desktop.core.selection import at_events

        if self.breaks is not None:
            fitted = fit_breakpoints(
                curve, self.breaks, self.model, degrees=self.degrees, like=like, basis=self.basis
            )
            return replace(fitted, note=AS_SUGGESTED) if self.suggested else fitted
        fitted = fit(curve, self.n, self.model, locked=self.locked, stop=stop, basis=self.basis)
        return at_events(curve, fitted, None if self.pure else landmarks, self.locked)

    def problem(self) -> str:
        if self.model not in MODELS:
            return f"model is {self.model}, allowed are {', '.join(MODELS)}"
        if self.also and not (self.model in MIXING and self.also in OWN_BASIS):
            return f"also is {self.also}, allowed are {' and '.join(OWN_BASIS)} for {' and '.join(MIXING)}"
        if self.seconds is not None and not (self.scale and 0 < self.seconds < math.inf):
            scaled = " and ".join(space.model for space in bases.TABLE if space.scale)
            return f"seconds is {self.seconds}, allowed are times above 0 for {scaled}"
        if not 1 <= self.n <= 999:
            return f"n is {self.n}, allowed are 1 to 999"
        if self.breaks is not None and len(self.breaks) < 2:
            return "breaks are fewer than two"
        for name, times in (("locked", self.locked), ("breaks", self.breaks or ())):
            if any(a >= b for a, b in pairwise(times)):
                return f"{name} are not in order of time"
        if self.degrees is not None:
            if self.breaks is None or len(self.degrees) != len(self.breaks) - 1:
                return "degrees are not one for each phase between breakpoints"
            if not all(-1 <= degree <= self.most for degree in self.degrees):
                return "degrees are not 0 to 2, or -1"
        return ""


@dataclass(frozen=True)
class View:
    """What the window shows of a trace: saved with it, but no step of undo. Times in seconds, `phase` from 0.

    `span` is the range of time that was in sight when the project was saved, `order` that of the timeline's
    rows; None and "" as they are at first. `messages`: which of them the timeline shows; `critical_path`:
    whether it shows that. `levels`: the vertical range of the curve.
    """

    selection: tuple[float, float] | None = None
    phase: int | None = None
    shown: frozenset[str] = frozenset(ACTIVITIES)
    span: tuple[float, float] | None = None
    order: str = ""
    messages: MessageFilter = ALL_MESSAGES
    levels: Levels = AT_FIRST
    critical_path: bool = False

    def problem(self) -> str:
        if not self.shown <= set(ACTIVITIES):
            return f"shown has other classes than {', '.join(ACTIVITIES)}"
        if any(ends is not None and ends[0] > ends[1] for ends in (self.selection, self.span)):
            return "a range ends before it begins"
        return "phase is negative" if self.phase is not None and self.phase < 0 else ""


def marks_of(annotations: Iterable[Annotation]) -> tuple[tuple[float, str], ...]:
    """Times (s) and texts of what the user marked on all locations, in order."""
    marked = (a for a in annotations if a.location is None)
    return tuple(sorted({(t, a.text) for a in marked for t in (a.start_s, a.end_s) if t is not None}))


@dataclass(frozen=True)
class NamedView:
    """A view that was kept under a number (1 to `VIEWS`)."""

    number: int
    name: str
    view: View

    def problem(self) -> str:
        return "" if 1 <= self.number <= VIEWS else f"number is {self.number}, allowed are 1 to {VIEWS}"


@dataclass(frozen=True)
class Annotation:
    """A remark on an instant (`end_s` None) or a range, in seconds; on a location (its index) or on all."""

    start_s: float
    text: str
    end_s: float | None = None
    colour: int = 0
    location: int | None = None
    hidden: bool = False

    def problem(self) -> str:
        if not 0 <= self.colour < COLOURS:
            return f"colour is {self.colour}, allowed are 0 to {COLOURS - 1}"
        return "it ends before it begins" if self.end_s is not None and self.end_s < self.start_s else ""

    def location_name(self, locations: Sequence[str]) -> str:
        """The name of its location; "" if it is on all."""
        if self.location is None:
            return ""
        # The trace may be another one by now.
        exists = 0 <= self.location < len(locations)
        return locations[self.location] if exists else f"location number {self.location}"

    def text_at(self, locations: Sequence[str]) -> str:
        """Its text, after the name of its location if it is on one."""
        name = self.location_name(locations)
        return f"{name}: {self.text}" if name else self.text


@dataclass(frozen=True)
class ReportChoices:
    """What was chosen for the last report.

    `without`: figures and tables that are left out, by their keys in `desktop.core.labels` (``table`` and a
    key of `TABLES`), so that what a later version adds is in.
    """

    kind: str = "html"
    style: str = "colour"
    theme: str = "light"
    without: frozenset[str] = frozenset()
    statistics: bool = True
    appendix: bool = False
    by_region: bool = False

    def problem(self) -> str:
        for name, allowed in (("kind", REPORTS), ("style", STYLES), ("theme", GROUNDS)):
            if getattr(self, name) not in allowed:
                return f"{name} is {getattr(self, name)}, allowed are {', '.join(allowed)}"
        return ""


@dataclass(frozen=True)
class SetAside:
    """What a limit of the analysis keeps from being applied, see `desktop.workbench.limiting`: breakpoints
    `locked` outside of it, and all `breaks` by hand as they were before it, with their `degrees`."""

    locked: tuple[float, ...] = ()
    breaks: tuple[float, ...] | None = None
    degrees: tuple[int, ...] | None = None

    def problem(self) -> str:
        return PhaseSettings(locked=self.locked, breaks=self.breaks, degrees=self.degrees).problem()


@dataclass(frozen=True)
class PhaseName:
    """What the user calls the phase that lies at a time (s)."""

    at_s: float
    text: str


@dataclass(frozen=True)
class SpeakerNote:
    """What a speaker wants to say of the phase that lies at a time (s); None: of the run."""

    text: str
    at_s: float | None = None


@dataclass(frozen=True)
class Project:
    """All settings for one trace. `rules` None: those of the store.

    `views` by rising number, `annotations` as they were made, one after the other. `names`: what regions
    are called instead. `limit`: the only range of time (seconds) that is analysed, None for the whole run;
    `phases` are then those of this range, and `aside` what the whole run has beside them. `report`: what was
    chosen for the last one. `phase_names`: what the user calls phases, each by a time inside of it. `curve`:
    the one that is fitted, and `tracks`: those drawn below it, as `desktop.data.curves` has them. `what_if`:
    with what changes the run is predicted, None: with none. `spoken`: a speaker's own notes.
    """

    phases: PhaseSettings = PhaseSettings()
    rules: Rules | None = None
    view: View = View()
    annotations: tuple[Annotation, ...] = ()
    views: tuple[NamedView, ...] = ()
    names: dict[str, str] = field(default_factory=dict)
    limit: tuple[float, float] | None = None
    aside: SetAside | None = None
    report: ReportChoices = ReportChoices()
    phase_names: tuple[PhaseName, ...] = ()
    curve: str = "computing"
    tracks: tuple[str, ...] = ()
    what_if: Changes | None = None
    spoken: tuple[SpeakerNote, ...] = ()

    def problem(self) -> str:
        if not all((self.curve, *self.tracks)):
            return "a curve has no name"
        if len(self.tracks) > TRACKS or len(set(self.tracks)) < len(self.tracks):
            return f"tracks are more than {TRACKS}, or two are the same"
        if self.limit is not None and not self.limit[0] < self.limit[1]:
            return "limit ends before it begins"
        if self.limit is None and self.aside is not None:
            return "aside is allowed only with a limit"
        numbers = [view.number for view in self.views]
        return "two views have the same number" if len(set(numbers)) < len(numbers) else ""

    @property
    def next_colour(self) -> int:
        """The colour of the next annotation, unless another is chosen."""
        return (self.annotations[-1].colour + 1) % COLOURS if self.annotations else 0

    @property
    def user_names(self) -> list[tuple[float, str]]:
        """Times (s) and names of phases that the user has named."""
        return [(name.at_s, name.text) for name in self.phase_names]

    @property
    def speaker_notes(self) -> list[tuple[float | None, str]]:
        """Times (s; None: of the run) and texts of the speaker's notes."""
        return [(note.at_s, note.text) for note in self.spoken]

    @property
    def without_view(self) -> Project:
        """The project without its view, which does not count as a change."""
        return replace(self, view=View())


@dataclass(frozen=True)
class TraceId:
    """Identity of a trace: where it was, and what to recognise it by; size in bytes of all its files."""

    path: Path
    name: str
    size: int
    sha256: str
    importer: str
    version: str
    options: OpenOptions = DETECT

    @property
    def title(self) -> str:
        """What it is called where people read it; `name` is that of its file."""
        return run_name(self.path, self.options.member)


@dataclass(frozen=True)
class KeptRun:
    """A trace and its settings."""

    trace: TraceId
    project: Project = Project()


@dataclass(frozen=True)
class AnalysisSettings:
    """How the trials are read. `terms` None: all that can be told apart. `half`: show half effects.
    `transform`: power of the response, 0 its logarithm. `inner`: what counts of repeats of a treatment in one
    replicate. `covariate`: noted beside the trials, the response is adjusted for it; "" for none."""

    response: str | None = None
    error: Error | None = None
    threshold: Threshold = "t"
    blocks: bool = True
    half: bool = False
    terms: tuple[Members, ...] | None = None
    transform: float = 1.0
    inner: Inner = "each"
    covariate: str = ""

    def problem(self) -> str:
        terms = self.terms or ()
        good = all(term and term[0] >= 0 and all(a < b for a, b in pairwise(term)) for term in terms)
        if not -2 <= self.transform <= 2:
            return f"a power of the response lies from -2 to 2, not at {self.transform:g}"
        return "" if good and self.terms != () else "terms are not sets of factors, counted from 0"


@dataclass(frozen=True)
class KeptComparison:
    """A table of effects to compare with; `processors` and `delay` it was measured with, 0 if not said."""

    path: Path
    processors: float = 0.0
    delay: float = 0.0


@dataclass(frozen=True)
class KeptExperiment:
    """An experiment (its folder) or a table of runs, and how its trials are read.

    `sha256`: of the description or table when it was last opened, "" before. `where` and `left_out`: rows of
    a table, see `desktop.workbench.experimenting.ImportedTrials`. `trace`: where effects are pinned to
    regions; `regions`: factor -> region that the user says it is.
    """

    path: Path
    sha256: str = ""
    settings: AnalysisSettings = AnalysisSettings()
    where: tuple[tuple[str, str], ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    compared: tuple[KeptComparison, ...] = ()
    trace: Path | None = None
    regions: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.path.name


@dataclass(frozen=True)
class ModelSettings:
    """Settings of the factor model. `functions` none, `response` "auto": the best by AICc. `joint`: work over
    speed over all cells; else every cell by itself. `reference`: system or code whose parameters are 1, None
    the first system."""

    functions: tuple[str, ...] = DEFAULT_FUNCTIONS
    joint: bool = True
    response: str = "t'"
    reference: str | None = None
    repeats: Repeats = "points"
    positive: bool = False

    def problem(self) -> str:
        from desktop.core.characteristic import characteristic

        try:
            for text in self.functions:
                characteristic(text)
        except ValueError as error:
            return str(error)
        return ""


@dataclass(frozen=True)
class KeptTable:
    """A table of run times, the edits in it, and the settings of its model.

    `path` None: `text` was pasted, or all rows are `edits.added`. `columns` and `units`: as its headings were
    assigned, see `desktop.data.tables.read_table`. `settings` None: it was not opened yet.
    """

    path: Path | None = None
    sha256: str = ""
    text: str = ""
    columns: dict[str, str] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    edits: TableEdits | None = None
    settings: ModelSettings | None = None

    @property
    def name(self) -> str:
        if self.path is not None:
            return self.path.name
        return "pasted table" if self.text else "runs of traces"


@dataclass(frozen=True)
class Matched:
    """Phases of a run that were matched by hand with those of a reference; both runs by `run_keys`.

    `pairs` (phase of the reference, own phase), from 0; -1 in place of either: the other has no partner. They
    hold while the reference has `of` phases and the run `phases`.
    """

    reference: str
    run: str
    of: int
    phases: int
    pairs: tuple[tuple[int, int], ...]

    def problem(self) -> str:
        if not all(-1 <= i < self.of and -1 <= j < self.phases for i, j in self.pairs):
            return "a pair names a phase that is not there"
        return "two pairs contradict each other" if contradict(self.pairs) else ""


def contradict(pairs: Sequence[tuple[int, int]]) -> bool:
    """Whether pairs cannot hold together: two of them name the same phase, or cross each other."""
    named = [[pair[k] for pair in pairs if pair[k] != -1] for k in (0, 1)]
    both = sorted(pair for pair in pairs if -1 not in pair)
    crossing = any(a[1] > b[1] for a, b in pairwise(both))
    return crossing or any(len(set(phases)) < len(phases) for phases in named)


@dataclass(frozen=True)
class Comparison:
    """How the runs of a project are compared. Runs are named by `run_keys`.

    `reference` "": the first that is shown. `hidden`: those left out. `share`: heights in parts of each run's
    processors. `relative`: differences in percent of the reference. `systems`: what runs ran on, of those
    of which it is said.
    """

    reference: str = ""
    hidden: frozenset[str] = frozenset()
    axis: str = "start"
    side_by_side: bool = False
    share: bool = False
    relative: bool = False
    matched: tuple[Matched, ...] = ()
    systems: tuple[tuple[str, str], ...] = ()

    def problem(self) -> str:
        return "" if self.axis in AXES else f"axis is {self.axis}, allowed are {', '.join(AXES)}"


@dataclass(frozen=True)
class Workspace:
    """All that a project file holds. `shown`: the run that was open, by its place."""

    runs: tuple[KeptRun, ...] = ()
    experiments: tuple[KeptExperiment, ...] = ()
    tables: tuple[KeptTable, ...] = ()
    shown: int = 0
    comparison: Comparison = Comparison()

    def problem(self) -> str:
        return (
            "" if 0 <= self.shown < max(len(self.runs), 1) else f"shown is {self.shown}, there is no such run"
        )


def run_keys(runs: tuple[KeptRun, ...]) -> tuple[str, ...]:
    """A key for each run, wherever its trace is: of its content, numbered where several have the same."""
    counts: dict[str, int] = {}
    keys = []
    for run in runs:
        content = run.trace.sha256[:16] or run.trace.name
        counts[content] = counts.get(content, 0) + 1
        keys.append(content if counts[content] == 1 else f"{content}#{counts[content]}")
    return tuple(keys)


@dataclass(frozen=True)
class Recovery:
    """What an unfinished session leaves: its workspace, the project file it belongs to (None: not saved yet),
    and the process that keeps it, by number, start (seconds, on Linux since that of the system) and
    machine."""

    workspace: Workspace
    of: Path | None
    process: int
    started: float
    machine: str
    kept: float


def names() -> dict[str, object]:
    """The classes that the annotations here name but this module does not load."""
    from desktop.core.changes import Changes
    from desktop.core.effect_limits import Threshold
    from desktop.core.effects import Error, Inner, Members
    from desktop.data.tables import Repeats, Row, TableEdits
    from desktop.data.utilization import Rules

    return {
        "Changes": Changes, "Threshold": Threshold, "Error": Error, "Inner": Inner, "Members": Members,
        "Repeats": Repeats, "Row": Row, "TableEdits": TableEdits, "Rules": Rules,
    }  # fmt: skip
