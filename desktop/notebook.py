"""What ``import phasewright`` offers: the commands' functions on an open run, with tables as DataFrames.

Nothing is computed here. A `Run` calls what the commands call (`desktop.commands.run_options`); its answers
hold what `core` and `data` return, with `Answer.to_frame` and a display for notebooks. Units of the columns
are in ``frame.attrs["units"]``. The page ``python.md`` of the handbook says which names are a contract.
"""

from __future__ import annotations

import itertools
import re
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from desktop.remote import named

if TYPE_CHECKING:
    from pandas import DataFrame
    from PySide6.QtWidgets import QApplication

    from desktop.core.arrays import AnyArray
    from desktop.core.clock_line import Clock
    from desktop.core.curve import StepCurve
    from desktop.core.effects import Effects
    from desktop.core.factor_model import ModelFit
    from desktop.core.phase_stats import PhaseRow
    from desktop.core.phases import PhaseFit
    from desktop.core.plain import JSON
    from desktop.data.events import Location
    from desktop.data.material import Material
    from desktop.data.statistics import RangeStats, Statistics
    from desktop.ui.figures import Look
    from desktop.workbench.model import Project

By = Literal["run", "phase"]
# Bytes of an event or message as a row of a DataFrame.
_ROW = 96
_figures = itertools.count(1)
# The QApplication that was made for figures: without a reference it ends.
_qt: list[QApplication] = []
__all__ = [
    *("Answer", "CauseAnswer", "GateAnswer", "PhaseAnswer", "Run", "RunFigure"),
    *("compare", "effects", "model", "open", "samples"),
]


def _frame(table: str, columns: Mapping[str, object]) -> DataFrame:
    from desktop.core.frames import TABLES, frame

    return frame(TABLES[table], columns)


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """A table, made when it is needed and shown by notebooks."""

    make: Callable[[], DataFrame]

    def to_frame(self) -> DataFrame:
        """The table; units of its columns in ``attrs["units"]``."""
        return self.make()

    def _repr_html_(self) -> str:
        html: str = self.to_frame()._repr_html_()
        return html

    def __repr__(self) -> str:
        return repr(self.to_frame())


@dataclass(frozen=True, eq=False, repr=False)
class PhaseAnswer(Answer):
    """Phases of a `curve`. `fit`: all of it, as `epsilon` and `sse`; `rows`: numbers of each."""

    curve: StepCurve
    fit: PhaseFit
    rows: Sequence[PhaseRow]

    @property
    def n(self) -> int:
        """How many phases there are."""
        return self.fit.n

    @property
    def breaks(self) -> list[float]:
        """Start, breakpoints and end in seconds, (n + 1,)."""
        return [float(t) for t in self.fit.breaks]

    @property
    def names(self) -> tuple[str, ...]:
        """What they are called, (n,)."""
        return tuple(self.fit.names)


@dataclass(frozen=True, eq=False, repr=False)
class CauseAnswer(Answer):
    """Why the run is slow. `sentence`: the causes in words, the largest first (empty of a curve); `phases`: a
    sentence for each phase."""

    sentence: str
    phases: tuple[str, ...]

    def __repr__(self) -> str:
        return "\n\n".join((self.sentence, *self.phases))


@dataclass(frozen=True, eq=False, repr=False)
class GateAnswer(Answer):
    """Runs before and after a change. `failed`: the limit was passed; `verdict`: what came out; `judged`:
    what is called a difference; `result`: all of it, as ``--json`` prints it."""

    failed: bool
    verdict: str
    judged: str
    result: JSON


@dataclass(frozen=True, eq=False, repr=False)
class RunFigure:
    """A figure as in reports. `figure`: its name; `size`: mm. Drawn by Qt without a window or display."""

    figure: str
    material: Material
    span: tuple[float, float] | None = None
    size: tuple[float, float] = (170.0, 80.0)
    more: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<RunFigure {self.figure} of {self.material.title}>"

    def _look(self) -> Look:
        _prepare_qt()
        from desktop.ui.figures import Look

        return Look(width=self.size[0], height=self.size[1], span=self.span, **self.more)

    def svg(self) -> str:
        """The figure as SVG, to stand in a page. ValueError if it is too small to be drawn."""
        look = self._look()
        from desktop.ui.figures import svg

        return svg(self.figure, self.material, look, inline=True, prefix=f"pw{next(_figures)}-")

    def save(self, path: str | Path) -> None:
        """Write the figure; by its ending the file is SVG, PDF or PNG (300 dpi). ValueError for others."""
        target, look = Path(path), self._look()
        kind = target.suffix.lower()[1:]
        if kind not in ("svg", "pdf", "png"):
            raise ValueError(f"{target}: a figure ends in .svg, .pdf or .png")
        from desktop.data.atomic import write_bytes
        from desktop.ui.figures import file

        write_bytes(target, file(self.figure, self.material, look, kind))

    def to_frame(self) -> DataFrame:
        """The numbers that are drawn, as File > Export figure writes them (the first of its tables)."""
        import pandas as pd

        from desktop.data.material import tables

        header, *rows = next(iter(tables(self.material, self.figure, self.span).values()))
        return pd.DataFrame(rows, columns=[str(name) for name in header])

    _repr_svg_ = svg


def _prepare_qt() -> None:
    """Fonts need a QApplication; where the user has none, one without a display."""
    from PySide6.QtWidgets import QApplication

    if QApplication.instance() is None:
        from desktop.ui.app import load_font

        _qt.append(QApplication(["phasewright", "-platform", "offscreen"]))
        load_font(_qt[0])


class Run:
    """An open trace, imported file or project; made by `open`. A context manager; `close` ends it.

    `shown`: what a window asks of the run, with its rules, limit, curve, phases and names.
    """

    def __init__(self, path: str | Path, words: Mapping[str, object], shown: Project | None = None) -> None:
        from desktop.commands.run_options import open_settled, utilization

        self.path = named(path)
        self._words, self._shown = dict(words), shown
        options = self._options()
        self._store = open_settled(options)
        self._use = utilization(self._store, options)
        self._fits: dict[tuple[int | None, str | None], PhaseAnswer] = {}

    def _options(self, n: int | None = None, model: str | None = None) -> Namespace:
        """The options of a command, with the settings of a project."""
        from desktop.commands.run_options import settle

        options = Namespace(**{"file": self.path, "n": n, "model": model, "seconds": None, **self._words})
        settle(options, self._shown)
        return options

    def close(self) -> None:
        """Close the file; tables that were taken stay."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        curve = self._curve()
        return f"<Run {self._title}: {curve.duration:.6g} s on {curve.capacity:g} processors>"

    @property
    def _title(self) -> str:
        from desktop.data.naming import run_name

        return run_name(self.path)

    @cached_property
    def locations(self) -> tuple[str, ...]:
        """Names of all locations, in the order of the trace."""
        return tuple(self._statistics.name(i) for i in range(len(self._store.locations)))

    @cached_property
    def _statistics(self) -> Statistics:
        from desktop.data.statistics import Statistics

        return Statistics(self._store)

    def info(self) -> JSON:
        """What the trace holds, as ``phasewright info --json`` says it."""
        from desktop.data.info import info

        return info(self._store)

    def _curve(self, kind: str | None = None) -> StepCurve:
        from desktop.commands.run_options import curve_of

        options = self._options()
        options.curve = kind or options.curve
        return curve_of(self._store, self._use, options)

    def curve(self, kind: str | None = None) -> Answer:
        """The processor-utilization curve, or another that `info` lists (``"communication"``,
        ``"region:NAME"``, …), one row a step. CurveError if there is none of this kind."""
        curve = self._curve(kind)

        def make() -> DataFrame:
            times = curve.edges * curve.unit
            frame = _frame("curve", {"start_s": times[:-1], "end_s": times[1:], "level": curve.level})
            frame.attrs["units"]["level"] = curve.quantity.short
            return frame

        return Answer(make)

    def phases(self, n: int | None = None, model: str | None = None) -> PhaseAnswer:
        """Fit phases to the curve that the run was opened with.

        Parameters
        ----------
        n : how many (model "budget": parameters); None: as a project says, else as suggested.
        model : "constant", "linear", "quadratic", "mixed" (default), "budget", "periodic", "saturation".

        Raises
        ------
        ValueError : there is no such fit.
        """
        if n is not None and n < 1:
            raise ValueError(f"n is {n}, ask for 1 phase or more")
        if (n, model) not in self._fits:
            from desktop.commands import run_options
            from desktop.core.phase_stats import phase_frame, phase_table

            options = self._options(n, model)
            run_options.check_budget(options.phases.model, n)
            curve = run_options.curve_of(self._store, self._use, options)
            run = run_options.CommandRun(options, self._store, self._use, curve)
            fit = run.fit(suggested=True)
            fit = replace(fit, names=run.names(fit))
            rows = phase_table(curve, fit)

            def make() -> DataFrame:
                frame = phase_frame(rows, fit)
                units = frame.attrs["units"]
                units |= {name: curve.quantity.per(unit) for name, unit in units.items()}
                return frame

            self._fits[n, model] = PhaseAnswer(make, curve, fit, rows)
        return self._fits[n, model]

    def _ranges(self, by: By, n: int | None, model: str | None) -> tuple[list[str], Sequence[RangeStats]]:
        if by not in ("run", "phase"):
            raise ValueError(f"by is {by!r}, it must be 'run' or 'phase'")
        curve = self._curve("computing")
        names, ranges = ["run"], [curve.span]
        if by == "phase":
            ends = self.phases(n, model).breaks
            ranges += itertools.pairwise(ends)
            names += [f"phase {k}" for k in range(1, len(ends))]
        return names, self._statistics.ranges(ranges, self._use, replay=True)

    def statistics(self, by: By = "run", n: int | None = None, model: str | None = None) -> Answer:
        """POP efficiencies, parts of activities, messages and accounts of the run, and (`by` "phase") of each
        phase, one row each; `n`, `model` as of `phases`."""
        from desktop.data.statistics import statistics_frame

        names, ranges = self._ranges(by, n, model)
        return Answer(lambda: statistics_frame(names, ranges))

    def accounts(self, by: By = "run", n: int | None = None, model: str | None = None) -> Answer:
        """What all processor time went into: computing, late senders, imbalance, …; one row a range and
        account, else as `statistics`."""
        from desktop.core.labels import ACCOUNTS

        names, ranges = self._ranges(by, n, model)
        rows = [
            (name, ACCOUNTS[one.name.lower()][0], seconds, seconds / (stats.duration_s * stats.processors))
            for name, stats in zip(names, ranges, strict=True)
            for one, seconds in (stats.account_s or {}).items()
            if seconds > 0
        ]
        keys = ("range", "account", "time", "share")
        return Answer(
            lambda: _frame("accounts", {key: [row[k] for row in rows] for k, key in enumerate(keys)})
        )

    def regions(self, start: float | None = None, end: float | None = None) -> Answer:
        """The profile of the run, or from `start` to `end` (s): one row a region, that with most time of its
        own first."""
        from desktop.data.statistics import profile_frame

        first, last = self._curve("computing").span
        span = first if start is None else start, last if end is None else end
        (stats,) = self._statistics.ranges([span], self._use, replay=True)
        names = self._options().settings.names
        rows = [
            replace(row, name=names.get(row.name, row.name))
            for row in self._statistics.flat(stats, self._use)
        ]
        return Answer(lambda: profile_frame(rows))

    def explain(self, n: int | None = None, model: str | None = None) -> CauseAnswer:
        """Why the run is slow: its causes (phase 0) and those of each phase, in words; `n`, `model` as of
        `phases`."""
        from desktop.core.frames import TABLES
        from desktop.data.root_causes import explain

        phases, called = self.phases(n, model), self._options().settings.names
        explanation = explain(self._statistics, self._use, phases.breaks, phases.names, called)
        of = [explanation.causes, *(phase.causes for phase in explanation.phases)]
        rows = [(k, cause) for k, causes in enumerate(of) for cause in causes]

        def make() -> DataFrame:
            keys = {"lost": "lost_s", "cause": "key", "locations": "names"}
            columns: dict[str, list[object]] = {"phase": [k for k, _ in rows]}
            for name in (one.name for one in TABLES["causes"][1:]):
                columns[name] = [getattr(cause, keys.get(name, name)) for _, cause in rows]
            return _frame("causes", columns)

        return CauseAnswer(make, explanation.paragraph, tuple(phase.sentence for phase in explanation.phases))

    def messages(self) -> Answer:
        """All matched messages, by when they were sent. ValueError if they are too many for the memory that a
        trace may take."""
        import numpy as np

        from desktop.data.timeline import TimelineMessages, open_timeline

        timeline = open_timeline(self._store, self._use.rules)
        messages = timeline.messages() if timeline is not None else TimelineMessages(*[np.zeros(0, int)] * 6)
        if messages is None:
            raise ValueError(f"{self._title} has more messages than fit into memory")
        columns = {name: getattr(messages, name) for name in ("sent_s", "received_s", "bytes", "tag")}
        called = np.array([*self.locations, ""], object)  # -1, the last: not known
        columns |= {"sender": called[messages.sender], "receiver": called[messages.receiver]}
        return Answer(lambda: _frame("message list", columns))

    def events(self, start: float | None = None, end: float | None = None) -> Answer:
        """Enters and leaves from `start` to `end` (s, None: all) on the common clock, location by location.

        Raises
        ------
        ValueError : they are too many for the memory that a trace may take; take a part.
        """
        import numpy as np

        from desktop.data import memory

        store, use = self._store, self._use
        low, high = -np.inf if start is None else start, np.inf if end is None else end
        parts: list[tuple[AnyArray, ...]] = [(np.zeros(0), *[np.zeros(0, int)] * 3)]
        count = 0
        for i, location in enumerate(store.locations):
            for tick, kind, region in store.blocks("events", i, "time", "kind", "region"):
                time = (self._clock(location).common(tick) - use.start) * use.unit
                inside = (time >= low) & (time <= high)
                count += int(inside.sum())
                if count > memory.limit() // _ROW:
                    raise ValueError(
                        f"{self._title} has more events than fit into memory: give start and end"
                    )
                parts.append((time[inside], np.full(int(inside.sum()), i), kind[inside], region[inside]))
        time, where, kind, region = (np.concatenate(column) for column in zip(*parts, strict=True))
        given = self._options().settings.names
        names = np.array([given.get(one.name, one.name) for one in store.regions] or [""], object)
        called = np.array(self.locations or ("",), object)
        kinds = np.array(["enter", "leave"], object)
        columns = {"time_s": time, "location": called[where], "kind": kinds[kind], "region": names[region]}
        return Answer(lambda: _frame("events", columns))

    def _clock(self, location: Location) -> Clock:
        repaired = self._use.rules.repaired
        return location.clock(self._store.repair if repaired is None else repaired)

    def plot(
        self, figure: str = "curve", n: int | None = None, model: str | None = None, **look: Any
    ) -> RunFigure:
        """A figure: "curve" with its phases, "stack" of activities, "residual", "phases" (a table).

        `look`: ``span`` (seconds), ``size`` (mm), and fields of `desktop.ui.figures.Look` such as ``dark``,
        ``style`` ("colour", "grey", "patterns"). ValueError if there is no such figure.
        """
        return self._drawn(figure, self.phases(n, model), look)

    def timeline(
        self, start: float | None = None, end: float | None = None, *, by: str = "activity", **look: Any
    ) -> RunFigure:
        """What each processor does, exactly, in columns of time; `by` "activity" or "region". `look` as of
        `plot`. ValueError if the source is a curve."""
        phases = self.phases()
        ends = phases.breaks[0], phases.breaks[-1]
        span = ends[0] if start is None else start, ends[1] if end is None else end
        return self._drawn("timeline", phases, {"size": (170.0, 95.0), "span": span, **look}, by)

    def _drawn(
        self, figure: str, phases: PhaseAnswer, look: dict[str, Any], by: str = "activity"
    ) -> RunFigure:
        from desktop.core.quantity import PROCESSORS
        from desktop.data.material import Material, bars, stack

        curve, span = phases.curve, look.pop("span", None)
        whole = curve.duration == self._use.curve().duration
        limit = None if whole else curve.span
        material = Material(
            title=self._title,
            curve=curve,
            stack=stack(self._use, limit) if curve.quantity == PROCESSORS else {"computing": curve},
            fit=phases.fit,
            rows=tuple(phases.rows),
        )
        if figure == "timeline":
            lanes = bars(
                self._store, self._use.rules, curve, span=span, by_region=by == "region",
                names=self._options().settings.names,
            )  # fmt: skip
            material = replace(material, bars=lanes)
        if figure not in material.figures():
            raise ValueError(
                f"there is no figure {figure!r} of {self._title}, only {', '.join(material.figures())}"
            )
        return RunFigure(figure, material, span, look.pop("size", (170.0, 80.0)), look)

    def sql(self, query: str, n: int | None = None, model: str | None = None) -> DataFrame:
        """Ask the run in SQL, through DuckDB (``pip install phasewright[sql]``).

        Parameters
        ----------
        query : over ``phases``, ``statistics``, ``accounts`` (by phase), ``regions``, ``causes``,
            ``messages``, ``events``, ``curve``: the tables of these methods. It reads no files.
        n, model : of the phases, as of `phases`.

        Raises
        ------
        ImportError : DuckDB is not installed.
        ValueError : a table is too large for memory.
        duckdb.Error : the query is wrong.
        """
        try:
            import duckdb
        except ImportError as error:
            raise ImportError("SQL needs DuckDB: pip install 'phasewright[sql]'") from error
        tables: dict[str, Callable[[], Answer]] = {
            "phases": lambda: self.phases(n, model),
            "statistics": lambda: self.statistics("phase", n, model),
            "accounts": lambda: self.accounts("phase", n, model),
            "regions": self.regions,
            "causes": lambda: self.explain(n, model),
            "messages": self.messages,
            "events": self.events,
            "curve": self.curve,
        }
        with duckdb.connect(config={"enable_external_access": "false"}) as connection:
            for name, table in tables.items():
                if re.search(rf"\b{name}\b", query, re.IGNORECASE):
                    connection.register(name, table().to_frame())
            answer: DataFrame = connection.sql(query).df()
        return answer


def open(
    path: str | Path,
    *,
    start: float | None = None,
    end: float | None = None,
    curve: str | None = None,
    as_recorded: bool = False,
) -> Run:
    """Open a trace (imported into the cache at first), an imported file or a project.

    Parameters
    ----------
    path : as every command of ``phasewright`` takes it.
    start, end : the part that is analysed (s); None: as a project says, else all.
    curve : the one that phases are fitted to; None: as a project says, else ``"computing"``.
    as_recorded : do not repair clocks that contradict each other.

    Raises
    ------
    DesktopError, OSError : it cannot be read; the message says what, where, and what to do.
    """
    words = {"start": start, "end": end, "curve": curve, "as_recorded": as_recorded}
    return Run(path, words)


def compare(
    base: Sequence[str | Path], new: Sequence[str | Path], *, fail_over: float | None = None,
    n: int | None = None, model: str | None = None, in_order: bool = False,
) -> GateAnswer:  # fmt: skip
    """Repeated runs before and after a change, as ``phasewright compare BASE... --against NEW...``.

    `fail_over` is a part of 1 (0.05: 5 %); `n`, `model`: phases of every run; `in_order`: a steady drift over
    the runs, in the order given, is taken out. Raises as `open`.
    """
    from desktop.commands import compare_gate
    from desktop.core.frames import TABLES
    from desktop.progress import Progress

    words = Namespace(
        files=list(map(named, base)), against=list(map(named, new)), fail_over=fail_over, n=n,
        model=model, in_order=in_order, axis=None, reference=None, match=[], share=False, curve=None,
    )  # fmt: skip
    result = compare_gate.run(words, Progress(), lambda store: None)
    rows, fields = result["differences"], TABLES["differences"]
    return GateAnswer(
        lambda: _frame("differences", {one.name: [row[one.name] for row in rows] for one in fields}),
        result["failed"], result["verdict"], result["judged"], result,
    )  # fmt: skip


def effects(
    runs: str | Path, response: str | None = None, factors: Sequence[str] | None = None, **how: Any
) -> Effects:
    """Effects of a designed experiment (RUNS.csv of ``phasewright spt effects``); has `to_frame`,
    `anova_frame`. `how`: words of `desktop.core.effects.analyse`. Raises as `open`; ValueError."""
    from desktop.core.effects import analyse
    from desktop.data.runs import read_runs

    table = read_runs(Path(runs), response=response, factors=tuple(factors) if factors else None)
    return analyse(table.data, **how)


def model(table: str | Path, functions: Sequence[str] = (), **how: Any) -> ModelFit:
    """The factor model of a table of run times (TABLE of ``phasewright model``); has `to_frame`,
    `cells_frame`. `functions`: as ``("1/p",)``, none: chosen; `how`: words of
    `desktop.core.factor_answers.choose`. Raises as `open`; ValueError."""
    from desktop.core.factor_answers import choose
    from desktop.data.tables import measurements, read_table

    kind = how.pop("kind", "joint")
    response = how.pop("response", "")
    selection = measurements(read_table(Path(table)))
    return choose(selection.data, kind, tuple(functions), response, **how).fit


def samples() -> dict[str, Path]:
    """The traces that come with the program, by the names of their folders."""
    from desktop import resources

    return {sample.path.parent.name: sample.path for sample in resources.samples()}
