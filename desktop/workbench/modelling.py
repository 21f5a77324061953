"""The factor model in the window: a table, the settings of the model, and its fits.

As in `desktop.workbench.workbench`: edits replace one frozen tree, snapshots come out, work runs beside the
window and the last request wins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar, cast

from desktop.core.characteristic import characteristic
from desktop.data.tables import (
    Repeats,
    Row,
    Selection,
    Table,
    TableEdits,
    headings,
    measurements,
    missing_roles,
    read_table,
    recognise,
    with_values,
)
from desktop.errors import DesktopError
from desktop.progress import Progress
from desktop.workbench.bench import EditBench, changed
from desktop.workbench.history import History
from desktop.workbench.jobs import Deliver, Executor, Job, Task, at_once
from desktop.workbench.model import KeptTable, ModelSettings

if TYPE_CHECKING:
    from desktop.core.factor_answers import CellCheck, FactorChoice, Ranking
    from desktop.core.factor_model import ModelFit
    from desktop.core.normal_form import NormalForms
    from desktop.data.trace_rows import Quantity
    from desktop.workbench.model_results import ResultSheet


@dataclass(frozen=True)
class ModelProject:
    """What can be undone: the table with its exclusions and names, and the settings."""

    table: Table | None = None
    settings: ModelSettings = field(default_factory=ModelSettings)


@dataclass(frozen=True)
class ModelView:
    """What is looked at, no step of undo: a cell (names of code and system), p, selected table lines."""

    code: str = ""
    system: str = ""
    p: float = 64.0
    lines: frozenset[int] = frozenset()


@dataclass(frozen=True)
class UnassignedColumns:
    """A table whose headings do not say what its columns mean. `roles`: role -> heading as far as they do;
    `missing`: roles that are still to be named."""

    source: Path | str
    headings: tuple[str, ...]
    roles: dict[str, str]
    missing: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class ModelSnapshot:
    """What is to be shown. `fit`: as the settings say; `choice`: among what it was chosen, where the settings
    leave something to choose; `headline`: what the fit says, in a few sentences; `previous`: the fit before
    rows were last excluded or included again, so that both stay visible; `sheet`: the table beside the fit.
    `unassigned`: what was opened last needs columns to be named. `problem`: one sentence."""

    project: ModelProject = ModelProject()
    view: ModelView = ModelView()
    selection: Selection | None = None
    fit: ModelFit | None = None
    headline: tuple[str, ...] = ()
    choice: FactorChoice | None = None
    previous: ModelFit | None = None
    ranking: Ranking | None = None
    checks: tuple[CellCheck, ...] = ()
    forms: NormalForms | None = None
    sheet: ResultSheet | None = None
    source: Path | str | None = None
    unassigned: UnassignedColumns | None = None
    task: Task | None = None
    problem: str = ""

    @property
    def cell(self) -> tuple[int, int] | None:
        """Places of the chosen code and system in the fit's data, the first where they are not in it."""
        if self.fit is None:
            return None
        codes, systems = self.fit.data.codes, self.fit.data.systems
        return (
            codes.index(self.view.code) if self.view.code in codes else 0,
            systems.index(self.view.system) if self.view.system in systems else 0,
        )


class ModelBench(EditBench[ModelSnapshot, ModelProject]):
    """One table and its models. `deliver` and `executors` ("fit", "more") as in `Workbench`."""

    def __init__(
        self,
        deliver: Deliver = at_once,
        executors: dict[str, Executor] | None = None,
        history: History | None = None,
    ) -> None:
        super().__init__(ModelSnapshot(), ModelProject(), deliver, executors, history)
        self._fitting, self._more = self._lane("fit", "model"), self._lane("more", "model-more")
        #: while a table is being read: rows to be added to it, and whether they are then looked at
        self._later: list[tuple[tuple[Row, ...], bool]] | None = None
        self._of_fit = False  # what the second lane does is worth nothing without the fit it began with
        #: the table as it was read, and what it takes to read it again
        self._read: Table | None = None
        self._origin = KeptTable()

    # ---- the table

    def open(
        self, source: Path | str, columns: dict[str, str] | None = None, units: dict[str, str] | None = None
    ) -> None:
        """A file, a folder of listings, or pasted text; what was open stays if it cannot be read.

        Headings that do not say enough end in `ModelSnapshot.unassigned`, to be answered by opening again
        with `columns`, or by `dismiss_columns`.
        """
        name = source.name if isinstance(source, Path) else "pasted text"

        def work(_: Job) -> tuple[Table, KeptTable] | UnassignedColumns:
            if columns is None:
                unassigned = _unassigned(source)
                if unassigned is not None and unassigned.missing:
                    return unassigned
            table = read_table(source, columns=columns, units=units)
            return table, _origin(source, columns, units)

        def done(result: tuple[Table, KeptTable] | UnassignedColumns) -> str | None:
            if isinstance(result, UnassignedColumns):
                self._show(unassigned=result, task=None)
                return None
            self._begin(*result, source)
            return ""

        self._open(name, work, done)

    def _open(self, name: str, work: Callable[[Job], T], done: Callable[[T], str | None]) -> None:
        """Read a table; `done` says what is wrong with it once it is open, None where it is not."""

        def finish(table: T) -> None:
            later, self._later = self._later, None
            problem = done(table)
            if problem is not None:
                for rows, look in later or ():
                    self.add_rows(rows, look=look)
            if problem:
                self._show(problem=problem)

        self._later = []
        self._show(task=Task(f"Opening {name}"), problem="", unassigned=None)
        self._fitting.submit(f"Opening {name}", work, finish, self._failed)

    def open_record(self, record: KeptTable) -> None:
        """A table of a project: read again, changed as it was, and modelled as it was.

        If the table has changed since, `ModelSnapshot.problem` says so.
        """
        source = record.path or record.text or None

        def work(_: Job) -> tuple[Table, Table, KeptTable]:
            origin = KeptTable() if source is None else _origin(source, record.columns, record.units)
            return *_read_again(record), origin

        def done(tables: tuple[Table, Table, KeptTable]) -> str | None:
            read, table, origin = tables
            if not table.rows:
                self._show(task=None, problem=f"the project holds no rows of {record.name}")
                return None
            self._begin(read, origin, source, table, record.settings)
            if record.sha256 in ("", origin.sha256):
                return ""
            return (
                f"{record.name} is not as it was when the project was saved: rows that were excluded, and "
                "names, may not fit any more"
            )

        self._open(record.name, work, done)

    def record(self) -> KeptTable | None:
        """The record that a project saves; None where no table is open."""
        project = self.project
        if project.table is None or self._read is None:
            return None
        edits = TableEdits.between(self._read, project.table)
        return replace(self._origin, edits=edits, settings=project.settings)

    def _begin(
        self,
        read: Table,
        origin: KeptTable,
        source: Path | str | None,
        changed: Table | None = None,
        settings: ModelSettings | None = None,
    ) -> None:
        """Another table: nothing of the old one stays. `changed`: as it was, with `settings`."""
        self._more.cancel()
        self._read, self._origin = read, origin
        table = changed or read
        largest = max((row.p for row in table.rows if not row.reason), default=1.0)
        self._restart(ModelProject(table, settings or self._settings_for(table)))
        self._publish(ModelSnapshot(project=self.project, view=ModelView(p=largest), source=source))
        self._fit()

    def assign(self) -> None:
        """Say anew what the columns of the open table mean."""
        source = self.snapshot.source
        unassigned = None if source is None else _unassigned(source)
        if unassigned is None:
            self._show(problem="this table has no headings that could be assigned")
        else:
            self._show(unassigned=unassigned)

    def dismiss_columns(self) -> None:
        self._show(unassigned=None)

    def add_runs(self, paths: Sequence[Path], code: str, system: str, quantity: Quantity) -> None:
        """Measurements from traces, below those of the table that is open or as a table of their own."""
        if not self._takes_times():
            return

        def work(job: Job) -> tuple[Row, ...]:
            from desktop.data.trace_rows import trace_rows

            return trace_rows(paths, code, system, quantity, job)

        def done(rows: tuple[Row, ...]) -> None:
            self._show(task=None)
            self.add_rows(rows)

        self._beside("Reading traces", work, done)

    def add_rows(self, rows: tuple[Row, ...], *, look: bool = False) -> None:
        """Measurements below those of the table that is open, or as a table of their own; below those of one
        that is being read when it is there. `look` at the first of them."""
        if self._later is not None:
            self._later.append((rows, look))
            return
        if not rows or not self._takes_times():
            return
        if self.project.table is None:
            self._begin(_no_table(), KeptTable(), None, _no_table().with_rows(rows))
        else:
            self._edit_table(f"add {_rows(rows)}", lambda old: old.with_rows(rows))
        if look:
            self.pick([self.added[-len(rows)].line])

    def _takes_times(self) -> bool:
        """Whether times can be added; False with a problem if the table holds none."""
        table = self.project.table
        if table is not None and table.transformed:
            self._show(problem="the table holds t' and traces give times: open a table of times for them")
            return False
        return True

    @property
    def added(self) -> tuple[Row, ...]:
        """The rows that were added to the table since it was read from its file."""
        table = self.project.table
        return () if table is None or self._read is None else table.rows[len(self._read.rows) :]

    def _settings_for(self, table: Table) -> ModelSettings:
        """Joint where there are two or more codes and systems."""
        rows = [row for row in table.rows if not row.reason]
        joint = min(len({row.code for row in rows}), len({row.system for row in rows})) > 1
        return ModelSettings((), joint, "auto")

    def exclude(self, lines: Sequence[int], reason: str) -> None:
        """Exclude rows, for a reason; they stay in the table."""
        if reason.strip():
            self._edit_table(f"exclude {_rows(lines)}", lambda table: table.exclude(lines, reason))

    def include(self, lines: Sequence[int]) -> None:
        """Include rows again."""
        self._edit_table(f"include {_rows(lines)} again", lambda table: table.exclude(lines, ""))

    def merge_names(self, names: Sequence[str], into: str) -> None:
        """Call codes or systems by one name."""
        self._edit_table(f"rename to {into}", lambda table: table.rename(names, into))

    def add_values(self, source: Path, role: Literal["work", "peak"]) -> None:
        """Work of codes, or peak of systems, from a table of its own."""
        try:
            self._edit_table(f"add {role}", lambda table: with_values(table, source, role))
        except (DesktopError, OSError) as error:
            self._show(problem=str(error))

    # ---- settings

    def set_functions(self, functions: Sequence[str]) -> None:
        """None: the best by AICc. Refused with a sentence if one is no function of p."""
        try:
            names = tuple(dict.fromkeys(characteristic(text).text for text in functions))
        except ValueError as error:
            self._show(problem=str(error))
            return
        self._set(f"fit {' + '.join(names)}" if names else "fit the best functions", functions=names)

    def check_function(self, text: str) -> str:
        """Why a text is no function of p, in a sentence; "" if it is one."""
        try:
            characteristic(text)
        except ValueError as error:
            return str(error)
        return ""

    def set_joint(self, joint: bool) -> None:
        self._set("fit all cells together" if joint else "fit every cell by itself", joint=joint)

    def set_response(self, response: str) -> None:
        self._set("fit the best response" if response == "auto" else f"fit {response}", response=response)

    def set_reference(self, name: str | None) -> None:
        self._set(f"refer to {name}", reference=name)

    def set_repeats(self, repeats: Repeats) -> None:
        self._set("join repeats" if repeats != "points" else "keep repeats apart", repeats=repeats)

    def set_positive(self, positive: bool) -> None:
        self._set("keep parameters positive" if positive else "let parameters be negative", positive=positive)

    # ---- looking

    def look(self, **changes: object) -> None:
        """Change the view: code, system (names), p, lines."""
        view = changed(self.snapshot.view, changes)
        if view != self.snapshot.view:
            self._show(view=view)

    def pick(self, lines: Sequence[int]) -> None:
        """Select rows; the cell of a single one is looked at."""
        table = self.project.table
        row = next((r for r in table.rows if r.line == lines[0]), None) if table and len(lines) == 1 else None
        cell = {} if row is None else {"code": row.code, "system": row.system}
        self.look(lines=frozenset(lines), **cell)

    # ---- more work

    def rank(self) -> None:
        """All pairs of the characteristic functions."""
        selection, settings, fit = self.snapshot.selection, self._settings, self.snapshot.fit
        if selection is None:
            return
        response = settings.response if settings.response != "auto" else fit.response.kind if fit else "t'"

        def work(job: Job) -> Ranking:
            from desktop.core.factor_answers import known_functions, rank_pairs

            return rank_pairs(
                selection.data,
                "joint" if settings.joint else "individual",
                response,
                known_functions(selection.data),
                reference=settings.reference,
                positive=settings.positive,
                progress=job,
            )

        self._ask("Fitting all pairs", "ranking", work)

    def leave_cells_out(self) -> None:
        """Predict every cell from the others."""
        fit = self.snapshot.fit
        if fit is None or fit.kind != "joint":
            return

        def work(job: Job) -> tuple[CellCheck, ...]:
            from desktop.core.factor_answers import leave_cells_out

            return leave_cells_out(fit, job)

        self._ask("Leaving cells out", "checks", work)

    def search_forms(self) -> None:
        """A normal form for every cell."""
        selection = self.snapshot.selection
        if selection is None:
            return

        def work(job: Job) -> NormalForms:
            from desktop.core.normal_form import search_forms

            return search_forms(selection.data, job)

        self._ask("Searching normal forms", "forms", work)

    def write_beside(self, path: Path, write: Callable[[Job], None], tell: Callable[[str], None]) -> None:
        """Write a file about what is shown, beside the window, and tell that."""

        def done(_: None) -> None:
            self._show(task=None)
            tell(f"Wrote {path.name}")

        self._beside(f"Writing {path.name}", write, done)

    def cancel(self) -> None:
        """Cancel work beside the window, but for fits, which are short."""
        self._more.cancel()
        if self._later is not None:
            self._fitting.cancel()
            self._later = None
        self._show(task=None)

    # ---- inside

    @property
    def _settings(self) -> ModelSettings:
        return self.project.settings

    def _set(self, label: str, **changes: object) -> None:
        settings = changed(self._settings, changes)
        if settings != self._settings:
            self._edit(label, replace(self.project, settings=settings))

    def _edit_table(self, label: str, edit: Callable[[Table], Table]) -> None:
        table = self.project.table
        if table is not None:
            self._edit(label, replace(self.project, table=edit(table)))

    def turn(self, project: ModelProject) -> None:
        previous = self.snapshot.project
        changes: dict[str, object] = {"project": project, "ranking": None, "checks": (), "problem": ""}
        if project.table is not previous.table or project.settings.repeats != previous.settings.repeats:
            changes["forms"] = None
        if project.table is not previous.table:
            changes["previous"] = self.snapshot.fit if _same_but_rows(project.table, previous.table) else None
        same = replace(
            project.settings, functions=previous.settings.functions, reference=previous.settings.reference
        )
        if same == previous.settings and project.table is previous.table:
            # Which pair is best does not depend on the pair that is chosen.
            changes["ranking"] = self.snapshot.ranking
        if self._of_fit and self._more.busy:
            self._more.cancel()
            changes["task"] = None
        self._show(**changes)
        self._fit()

    def _fit(self) -> None:
        project = self.project
        if project.table is None:
            return

        def done(fields: dict[str, object]) -> None:
            self._show(**fields, task=None)

        def failed(error: BaseException) -> None:
            self._show(**_NOTHING)
            self._failed(error)

        self._fitting.submit("Fitting", lambda job: _fit_project(project, job), done, failed)

    def _ask(self, title: str, name: str, work: Callable[[Job], object]) -> None:
        """Compute something about the fit, for the field `name` of the snapshot."""
        self._beside(title, work, lambda result: self._show(**{name: result}, task=None))
        self._of_fit = True

    def _beside(self, title: str, work: Callable[[Job], T], done: Callable[[T], None]) -> None:
        self._of_fit = False
        self._begin_work(self._more, title, work, done)

    def _failed(self, error: BaseException) -> None:
        self._later = None
        super()._failed(error)


T = TypeVar("T")
#: Nothing was fitted, so nothing of an earlier fit may be shown.
_NOTHING: dict[str, object] = {
    "selection": None, "fit": None, "headline": (), "choice": None, "sheet": None,
}  # fmt: skip


def _no_table() -> Table:
    """What rows of traces are added to."""
    return Table("imported traces", (), {}, {"time": "s"})


def _origin(source: Path | str, columns: dict[str, str] | None, units: dict[str, str] | None) -> KeptTable:
    """What it takes to read a source again."""
    from desktop.data.project_file import digest_of

    origin = KeptTable(columns=columns or {}, units=units or {})
    if isinstance(source, str):
        return replace(origin, text=source)
    return replace(origin, path=source.absolute(), sha256=digest_of(source))


def _unassigned(source: Path | str) -> UnassignedColumns | None:
    """What the headings say and what they do not; None where there are none."""
    header = headings(source)
    if not header:
        return None
    roles = {role: header[at] for role, at in recognise(header).items()}
    return UnassignedColumns(source, header, roles, missing_roles(header))


def _fit_project(project: ModelProject, job: Progress) -> dict[str, object]:
    """Fields of the snapshot that follow from a project."""
    from desktop.workbench.model_results import measured_sheet

    assert project.table is not None
    try:
        selection = measurements(project.table, project.settings.repeats)
    except DesktopError as error:
        # The rows stay in sight, to be mended there.
        return _NOTHING | {"sheet": measured_sheet(project.table, None, None), "problem": str(error)}
    fits = _fits(selection, project.settings, job)
    sheet = measured_sheet(project.table, selection, cast("ModelFit | None", fits["fit"]))
    return fits | {"selection": selection, "sheet": sheet}


def model_of(record: KeptTable, progress: Progress) -> ModelSnapshot:
    """A table of a project and its model as it was asked for, without a bench.

    Raises
    ------
    DesktopError, OSError : the table cannot be read.
    """
    project = ModelProject(_read_again(record)[1], record.settings or ModelSettings())
    snapshot = ModelSnapshot(project=project, source=record.path or record.text or None)
    return changed(snapshot, _fit_project(project, progress))


def _read_again(record: KeptTable) -> tuple[Table, Table]:
    """A table of a project as it stands in its source, and as it was changed."""
    source = record.path or record.text or None
    read = _no_table() if source is None else read_table(source, columns=record.columns, units=record.units)
    return read, read if record.edits is None else record.edits.on(read)


def _fits(selection: Selection, settings: ModelSettings, job: Progress) -> dict[str, object]:
    """The fit as asked for, with what it says."""
    from desktop.core.factor_answers import choose
    from desktop.workbench.model_answers import headline

    try:
        choice = choose(
            selection.data, "joint" if settings.joint else "individual", settings.functions,
            "" if settings.response == "auto" else settings.response,
            reference=settings.reference, positive=settings.positive, progress=job,
        )  # fmt: skip
    except ValueError as error:
        return _NOTHING | {"problem": str(error)}
    several = choice if choice.tried > 1 else None
    return {"fit": choice.fit, "choice": several, "headline": headline(choice.fit), "problem": ""}


def _same_but_rows(one: Table | None, other: Table | None) -> bool:
    """The tables differ at most in which rows take part, so that their fits can be compared."""
    if one is None or other is None:
        return False
    names = ("columns", "units", "similar")
    return len(one.rows) == len(other.rows) and all(getattr(one, n) == getattr(other, n) for n in names)


def _rows(rows: Sequence[object]) -> str:
    """Named in the history: one by its line, several by their number."""
    if len(rows) == 1:
        return f"row {rows[0]}" if isinstance(rows[0], int) else "1 row"
    return f"{len(rows)} rows"
