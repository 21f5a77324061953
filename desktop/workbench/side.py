"""What side panels show of the experiments and tables of the project, beside the trace.

Nothing is opened or computed before a panel is on top. The results are those of the one bench on which a
record is worked on (`desktop.workbench.keeping.ProjectStore.bench`), so that pages and panels show the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Generic, Literal, TypeVar, cast

from desktop.data.naming import file_stem
from desktop.workbench.bench import Bench
from desktop.workbench.experimenting import ExperimentBench, ExperimentSnapshot
from desktop.workbench.jobs import Deliver, Executor, Job, at_once
from desktop.workbench.keeping import ProjectStore
from desktop.workbench.model import KeptTable
from desktop.workbench.modelling import ModelBench, ModelSnapshot
from desktop.workbench.pinning import PinnedFactor, PinnedTrace, pin_phases
from desktop.workbench.workbench import Document, Snapshot, Workbench

if TYPE_CHECKING:
    from desktop.data.tables import Row
    from desktop.workbench.phase_statistics import PhaseStatistics


@dataclass(frozen=True, eq=False)
class SideSnapshot:
    """`names`: of the project's experiments, or tables; `index`: of the chosen one, -1 if there is none;
    `content`: what its bench shows, None while no panel is on top."""

    names: tuple[str, ...] = ()
    index: int = -1
    content: ExperimentSnapshot | ModelSnapshot | None = None


T = TypeVar("T", bound=SideSnapshot)
B = TypeVar("B", ExperimentBench, ModelBench)


class Side(Bench[T], Generic[T, B]):
    """One of the project's records of a kind, on its bench while a panel shows it (`watch`)."""

    KIND: ClassVar[Literal["experiments", "tables"]]
    #: What is shown at first.
    EMPTY: ClassVar[SideSnapshot]

    def __init__(
        self,
        workbench: Workbench,
        projects: ProjectStore,
        deliver: Deliver = at_once,
        executor: Executor | None = None,
    ) -> None:
        super().__init__(cast("T", self.EMPTY), deliver, {"side": executor} if executor else None)
        self._finding = self._lane("side")
        self.workbench = workbench
        self._projects = projects
        self._numbers: tuple[int, ...] = ()
        self._number = -1  # of the chosen record
        self._watched = self._closed = False
        self._bench: B | None = None
        workbench.subscribe(self._follow)

    def close(self) -> None:
        super().close()
        self.workbench.unsubscribe(self._follow)
        self._closed = True
        self._leave()

    @property
    def bench(self) -> B | None:
        """The bench of the chosen record, while it is shown."""
        return self._bench

    @property
    def busy(self) -> bool:
        return super().busy or (self._bench is not None and self._bench.busy)

    def watch(self, on_top: bool) -> None:
        """Whether a panel that shows this is visible."""
        if on_top != self._watched and not self._closed:
            self._watched = on_top
            self._take()

    def choose(self, place: int) -> None:
        """Choose a record by its place."""
        self._number = self._numbers[place]
        self._take()

    def refresh(self) -> None:
        """Follow the records of the project; a new one is shown."""
        numbers = self._projects.numbers(self.KIND)
        new = [number for number in numbers if number not in self._numbers]
        if self._numbers and new:
            self._number = new[-1]
        elif self._number not in numbers:
            self._number = numbers[0] if numbers else -1
        self._numbers = numbers
        self._take()

    def read_again(self) -> None:
        """Read the chosen record again, after it could not be read."""
        place = self._place
        if self._bench is not None and place >= 0:
            self._bench.open_record(getattr(self._projects.workspace, self.KIND)[place])

    # ---- inside

    @property
    def _place(self) -> int:
        return self._numbers.index(self._number) if self._number in self._numbers else -1

    def _selected_bench(self) -> B | None:
        """The bench of the chosen record, opened if need be."""
        bench = self._projects.bench(self.KIND, self._place) if self._place >= 0 else None
        return cast("B | None", bench)  # as `KIND` says

    def _leave(self) -> None:
        if self._bench is not None:
            self._bench.unsubscribe(self._changed)
            self._bench = None

    def _take(self) -> None:
        """Subscribe to the bench of the chosen record, if a panel shows it."""
        bench = self._selected_bench() if self._watched else None
        if bench is not self._bench:
            self._leave()
            self._bench = bench
            if bench is not None:
                bench.subscribe(self._changed)
        names = tuple(one.name for one in getattr(self._projects.workspace, self.KIND))
        content = None if bench is None else bench.snapshot
        now = self.snapshot
        if (names, self._place) != (now.names, now.index) or content is not now.content:
            self._show(names=names, index=self._place, content=content)
            self._arrived()

    def _changed(self, _: object, new: object) -> None:
        self._show(content=new)
        self._arrived()

    def _arrived(self) -> None:
        """The content has changed."""

    def _follow(self, old: Snapshot, new: Snapshot) -> None:
        """The trace has changed."""


# ---- effects


@dataclass(frozen=True, eq=False)
class EffectsSnapshot(SideSnapshot):
    """`pinned`: the regions in the phases of the shown trace, None where that has none or before its
    statistics are there; `places`: where the factors of the selected effect are in it."""

    content: ExperimentSnapshot | None = None
    pinned: PinnedTrace | None = None
    places: tuple[PinnedFactor, ...] = ()


class EffectsSide(Side[EffectsSnapshot, ExperimentBench]):
    """The effects of an experiment, and where they are in the shown trace: its statistics say that."""

    KIND, EMPTY = "experiments", EffectsSnapshot()
    _statistics: PhaseStatistics | None = None  # of which the regions were asked for last
    _marked: tuple[str, ...] | None = None  # as was asked for last; None: to be asked for again

    def select(self, term: str) -> None:
        """Mark an effect everywhere, and its regions in the trace."""
        if self._bench is not None:
            self._marked = None
            self._bench.select(term)
            self._arrived()

    def pin_to(self, factor: str, region: str) -> None:
        """Say which region a factor is; "": the one that is called like it."""
        if self._bench is not None:
            self._bench.pin_to(factor, region)

    def _arrived(self) -> None:
        self._pin()
        now = self.snapshot
        if now.content is None:
            return
        places: tuple[PinnedFactor, ...] = ()
        if now.pinned is not None and now.content.selected:
            places = now.content.pinned_factors(now.pinned)
        if places != now.places:
            self._show(places=places)
        names = tuple(dict.fromkeys(place.region for place in places if place.region))
        if names != self._marked:
            self._marked = names
            self.workbench.mark_regions(names)

    def _follow(self, old: Snapshot, new: Snapshot) -> None:
        if new.document is not old.document:
            self._finding.cancel()
            self._statistics = self._marked = None
            self._show(pinned=None, places=())
        if new.statistics is not old.statistics:
            self._pin()

    def _pin(self) -> None:
        """Ask for the regions in the phases, once for the statistics that are there."""
        now = self.workbench.snapshot
        statistics, document = now.statistics, now.document
        if not self._watched or self.snapshot.content is None or document is None or not statistics.stats:
            return
        if statistics is self._statistics or statistics.outdated:
            return
        self._statistics = statistics
        regions = [region.name for region in document.regions]
        phases = [
            (s.phase, one) for s, one in zip(statistics.scopes, statistics.stats, strict=True) if s.phase >= 0
        ]

        def work(job: Job) -> PinnedTrace:
            return pin_phases(document.source, regions, [k for k, _ in phases], [s for _, s in phases], job)

        def done(pinned: PinnedTrace) -> None:
            self._show(pinned=pinned)
            self._arrived()

        if phases and regions:
            self._finding.submit("Regions in phases", work, done, self.workbench.report)


# ---- factor model


@dataclass(frozen=True, eq=False)
class ModelSideSnapshot(SideSnapshot):
    """`rows`: rows of the table that come from the shown trace."""

    content: ModelSnapshot | None = None
    rows: tuple[Row, ...] = field(default=())


class ModelSide(Side[ModelSideSnapshot, ModelBench]):
    """The factor model of a table of run times, to which the run of the shown trace can be added."""

    KIND, EMPTY = "tables", ModelSideSnapshot()

    def names_of_run(self) -> tuple[str, str]:
        """Code and system by which the shown run is best added: called as its trace without its p, and as
        the system of the rows that came from traces last, else the only one of the table."""
        now, content = self.workbench.snapshot, self.snapshot.content
        if now.document is None or now.run is None:
            return "", ""
        code = file_stem(now.document.source, now.document.options.member)
        code = re.sub(rf"[-_. ]?(?<!\d)0*{now.run.whole.curve.capacity:g}$", "", code) or code
        table = None if content is None else content.project.table
        if table is None or not table.rows:
            return code, "this system"
        added = [] if self._bench is None else [row.system for row in self._bench.added if row.trace]
        return code, added[-1] if added else table.rows[-1].system or "this system"

    def rows_of_run(self, code: str, system: str, *, phases: bool) -> tuple[Row, ...]:
        """Measurements of the shown run, and of its phases, that the table does not have yet."""
        return self._new_rows(self._bench, code, system, phases)

    def _new_rows(self, bench: ModelBench | None, code: str, system: str, phases: bool) -> tuple[Row, ...]:
        from desktop.data.trace_rows import TracedRun

        now = self.workbench.snapshot
        if now.run is None or now.document is None or not (code.strip() and system.strip()):
            return ()
        run = TracedRun(now.run.whole.curve, now.document.title, trace_key(now.document))
        rows: tuple[Row, ...] = (run.whole(code, system),)
        if phases and now.fit is not None:
            rows += run.phases(code, system, now.fit, now.run.limit)
        existing = {(row.code, row.system, row.note) for row in self._trace_rows(bench)}
        return tuple(row for row in rows if (row.code, row.system, row.note) not in existing)

    def add_run(self, code: str, system: str, *, phases: bool) -> None:
        """Add the shown run to the chosen table, or to a new one if the project has none: one step."""
        from desktop.data.tables import TableEdits

        if self._place < 0:
            rows = self._new_rows(None, code, system, phases)
            if rows:
                self._projects.add(KeptTable(edits=TableEdits(added=rows)))
            return
        bench = self._selected_bench()
        assert bench is not None
        bench.add_rows(self._new_rows(bench, code, system, phases), look=True)

    def _trace_rows(self, bench: ModelBench | None) -> tuple[Row, ...]:
        """The rows of a table that come from the shown trace."""
        document = self.workbench.snapshot.document
        if document is None or bench is None:
            return ()
        key = trace_key(document)
        return tuple(row for row in bench.added if row.trace == key)

    def _arrived(self) -> None:
        rows = self._trace_rows(self._bench)
        if rows != self.snapshot.rows:
            self._show(rows=rows)

    def _follow(self, old: Snapshot, new: Snapshot) -> None:
        if new.document is not old.document:
            self._arrived()


def trace_key(document: Document) -> str:
    """The key by which rows of a table name an open trace, see `desktop.data.tables.Row`."""
    return str(document.info["source"]["sha256"]) + (document.options.member or "")
