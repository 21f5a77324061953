"""The project of a window: which runs it holds, where it is saved, and what a crash would leave.

Saving is atomic and keeps the version before. Between savings, what has changed is kept for recovery in the
state folder of the user, under the number of this process; a process that has ended without discarding its
file has crashed.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Literal, TypeVar

from desktop.data.atomic import WorkFolder, into_place, remove_stale_folders
from desktop.errors import ProjectError, TraceFormatError
from desktop.workbench import model
from desktop.workbench.bench import changed
from desktop.workbench.bundling import Outside, outside, pack
from desktop.workbench.experimenting import ExperimentBench
from desktop.workbench.history import Branch, History
from desktop.workbench.jobs import Deliver, Executor, Job, Lane, at_once
from desktop.workbench.model import (
    Comparison,
    KeptExperiment,
    KeptRun,
    KeptTable,
    Matched,
    Project,
    Recovery,
    TraceId,
    View,
    Workspace,
)
from desktop.workbench.modelling import ModelBench
from desktop.workbench.tracing import stamp_of
from desktop.workbench.workbench import Document, Snapshot, Workbench

#: Seconds between two savings for recovery.
AUTOSAVE = 120.0
#: Levels of folders below the project's, and files, to which a moved trace is searched for.
DEPTH, LOOKED_AT = 3, 20_000

Kind = Literal["runs", "experiments", "tables"]
Lent = Literal["experiments", "tables"]
#: Records of experiments and tables, and the benches that edit them.
FileRecord = KeptExperiment | KeptTable
RecordBench = ExperimentBench | ModelBench
Record = KeptRun | FileRecord
R = TypeVar("R", KeptRun, KeptExperiment, KeptTable)
#: Of a file, see `stamp_of`.
_Stamp = tuple[int, int] | None


def bench_for(record: FileRecord, deliver: Deliver, history: History) -> RecordBench:
    """An empty bench of the kind that a record needs."""
    kind = ExperimentBench if isinstance(record, KeptExperiment) else ModelBench
    return kind(deliver, history=history)


class Loan:
    """Passes changes on the bench of a record to the project, as long as the bench shows the record's file.

    What changes while the file is opened does not count.
    """

    def __init__(self, projects: ProjectStore, number: int, record: FileRecord, bench: RecordBench) -> None:
        self.bench = bench
        self._projects, self._number = projects, number
        self._about = _file(record)
        self._record = bench.record()
        bench.subscribe(self._follow)

    def end(self) -> None:
        """Stop passing changes on; the bench is closed unless it has other users."""
        self.bench.release(self._follow)

    def _follow(self, old: object, new: object) -> None:
        if all(
            getattr(old, name, None) is getattr(new, name, None) for name in ("project", "pinned", "saved")
        ):
            return
        now = self.bench.record()
        if now is None or _file(now) != self._about:
            if self._record is not None:
                self._projects.end_loan(self._number)
            return
        if self._record is not None and now != self._record:
            self._projects.keep(self._number, now)
        self._record = now


def _file(record: FileRecord) -> tuple[Path | None, str]:
    return record.path, getattr(record, "text", "")


@dataclass(frozen=True)
class _Contents:
    """What a step of undo changes: the records of the project, by their numbers, and pairs of phases matched
    by hand."""

    runs: tuple[int, ...] = ()
    experiments: tuple[int, ...] = ()
    tables: tuple[int, ...] = ()
    matched: tuple[Matched, ...] = ()


class ProjectStore:
    """The project that the trace in a workbench belongs to; every window has one, saved or not.

    Adding and removing records is undone with the steps of the shown trace, in the order in which all were
    made. Runs, experiments and tables keep their settings when they are taken out and put back.

    Parameters
    ----------
    locate : asks where a trace is that is not where it was; None: it stays missing.
    tell : is called with sentences for the user.
    changed : is called when `title`, `path` or `modified` may have changed.
    folder : where recoveries are kept; None: in the user's state folder.
    make_bench : an empty bench for an experiment or table, see `bench`.
    """

    def __init__(
        self,
        bench: Workbench,
        locate: Callable[[TraceId], Path | None],
        tell: Callable[[str], None],
        changed: Callable[[], None],
        deliver: Deliver = at_once,
        folder: Path | None = None,
        executor: Executor | None = None,
        make_bench: Callable[[FileRecord], RecordBench] | None = None,
    ) -> None:
        self._bench, self._locate, self._notify, self._changed = bench, locate, tell, changed
        self._lane = Lane("keep", latest=True, deliver=deliver, executor=executor)
        self._make_bench = make_bench or (lambda record: bench_for(record, deliver, bench.history))
        self._loans: dict[int, Loan] = {}
        self._recovery = (folder or recovery_folder()) / f"{os.getpid()}-{secrets.token_hex(4)}.phasewright"
        self._records: dict[int, Record] = {}
        self._numbers = count()
        self._contents: Branch[_Contents] = bench.history.branch(_Contents(), self._turn)
        self._comparison = Comparison()
        self._branches: dict[int, Branch[Project]] = {}  # of runs that were shown before
        self._current: int | None = None  # the run that is open
        self._awaited: int | None = None  # the run that is being opened
        self._last_run: int | None = None  # the run that was open last
        self._open_runs: list[int] = []  # runs that were opened, in the order in which they were
        #: what the plots show of the run that is shown, kept with it when another takes its place
        self.seen: Callable[[], View | None] = lambda: None
        self._saved: Workspace | None = Workspace()
        self._autosaved: Workspace | None = None  # for recovery, last
        self._writing = threading.Lock()  # of the recovery, by the lane or by the window
        self._stamp: _Stamp = None  # of the file as it was read or written last
        self.path: Path | None = None
        self._unpacked: Path | None = None  # of a bundle: the project in it
        bench.subscribe(self._follow)

    # ---- what there is

    @property
    def workspace(self) -> Workspace:
        """Everything as it is now."""
        contents = self._contents.value
        return Workspace(
            tuple(self._run(k) for k in contents.runs),
            tuple(self._record(k, KeptExperiment) for k in contents.experiments),
            tuple(self._record(k, KeptTable) for k in contents.tables),
            contents.runs.index(self._last_run) if self._last_run in contents.runs else 0,
            replace(self._comparison, matched=contents.matched),
        )

    def _run(self, number: int) -> KeptRun:
        """A run as it is now."""
        snapshot = self._bench.snapshot
        if number == self._current and snapshot.document is not None:
            return KeptRun(_identity(snapshot.document), snapshot.project)
        return self._record(number, KeptRun)

    def _record(self, number: int, kind: type[R]) -> R:
        record = self._records[number]
        assert isinstance(record, kind)
        return record

    @property
    def modified(self) -> bool:
        """Whether something but views has changed since it was saved or opened."""
        return self._saved is None or _without_views(self.workspace) != self._saved

    @property
    def by_hand(self) -> bool:
        """Whether it holds work by hand: more than the number and model of phases."""
        contents = self._contents.value
        more = contents.experiments or contents.tables or len(contents.runs) > 1 or contents.matched
        return bool(more) or any(
            run.project.annotations
            or run.project.views
            or run.project.names
            or run.project.rules is not None
            or (run.project.phases.breaks is not None and not run.project.phases.suggested)
            or run.project.phases.locked
            or run.project.limit is not None
            for run in self.workspace.runs
        )

    @property
    def current(self) -> int | None:
        """The run that is shown, by its place in the workspace; None where it is none of the project's."""
        runs = self._contents.value.runs
        return runs.index(self._current) if self._current in runs else None

    @property
    def open_runs(self) -> tuple[int, ...]:
        """The runs that were opened and not put aside again, by their places in the workspace."""
        runs = self._contents.value.runs
        return tuple(runs.index(number) for number in self._open_runs if number in runs)

    def reopen(self, runs: Sequence[int]) -> None:
        """Mark runs, by their places, as open, before those that are."""
        all_runs = self._contents.value.runs
        numbers = [all_runs[k] for k in dict.fromkeys(runs) if 0 <= k < len(all_runs)]
        self._open_runs = [*numbers, *(number for number in self._open_runs if number not in numbers)]
        self._changed()

    def put_aside(self, index: int) -> None:
        """Mark a run as not open; if it is shown, another open one takes its place. The last one stays."""
        number = self._contents.value.runs[index]
        remaining = [one for one in self._open_runs if one != number and one in self._contents.value.runs]
        if remaining:
            at = self._open_runs.index(number) if number in self._open_runs else 0
            self._open_runs = [one for one in self._open_runs if one != number]
            if number == self._current:
                self._open_run(remaining[min(at, len(remaining) - 1)])
            self._changed()

    @property
    def busy(self) -> bool:
        return self._lane.busy

    # ---- opening

    def open(self, path: Path) -> None:
        """Open a project or a bundle, and show the run that was shown."""

        def work(job: Job) -> tuple[Path | None, Workspace, _Stamp]:
            from desktop.data import project_file

            if not project_file.is_bundle(path):
                stamp = stamp_of(path)  # before it is read, as others may save it meanwhile
                return None, read_workspace(path), stamp
            # A stranger's bundle has no place of its own yet: saving asks for one.
            place = _unpacked(path, job)
            return place, read_workspace(place, closed=True), None

        def done(result: tuple[Path | None, Workspace, _Stamp]) -> None:
            unpacked, workspace, stamp = result
            place = path.absolute() if unpacked is None else None
            self._take(place, workspace, stamp, saved=True, unpacked=unpacked)

        self._bench.run(f"Opening {path.name}", work, done)

    def recover(self, file: Path, recovery: Recovery) -> None:
        """Restore what a crashed session has left."""
        stamp = None if recovery.of is None else stamp_of(recovery.of)
        if stamp is not None and stamp[0] > recovery.kept * 1e9:
            stamp = None  # it was saved elsewhere since
        self._take(recovery.of, recovery.workspace, stamp, saved=False)
        try:
            self.keep_now()
        except OSError as error:  # the former file is still there
            self._bench.report(error)
        else:
            file.unlink(missing_ok=True)

    def _take(
        self,
        path: Path | None,
        workspace: Workspace,
        stamp: _Stamp,
        *,
        saved: bool,
        unpacked: Path | None = None,
    ) -> None:
        if not workspace.runs:
            self._bench.close_document()
        self._start(workspace)
        self.path, self._unpacked = path, unpacked
        self._stamp = stamp
        self._saved = _without_views(workspace) if saved else None
        self._changed()
        if workspace.runs:
            self.show_run(workspace.shown)
        else:
            self._notify("The project holds no trace; add one with File > Add trace to project.")

    def show_run(self, index: int) -> None:
        """Show another run of the project."""
        self._open_run(self._contents.value.runs[index])

    def _open_run(self, number: int) -> None:
        self._put_away()
        record = self._record(number, KeptRun)
        place = self._find(record.trace)
        if place is None:
            self._bench.report(
                ProjectError(
                    "is not where it was when the project was saved, nor beside the project",
                    file=record.trace.path,
                    hint="press Find in the panel Project and say where it is",
                )
            )
            return
        branch = self._branches.get(number)
        if branch is None or branch.value.without_view != record.project.without_view:
            branch = self._bench.history.branch(record.project, self._bench.turn)
        self._awaited = number
        self._bench.open(place, record.trace.options, branch, record.project.view)

    def _put_away(self) -> None:
        """Remember the run that is shown, before another takes its place."""
        if self._current is not None:
            run, seen = self._run(self._current), self.seen()
            project = run.project if seen is None else replace(run.project, view=seen)
            self._records[self._current] = replace(run, project=project)
            self._branches[self._current] = self._bench.branch

    # ---- what belongs to it

    def add_run(self, path: Path) -> None:
        """Open a trace and add it to the project."""
        self._put_away()
        self._awaited = next(self._numbers)
        self._bench.open(path)

    def add_files(self, *, experiments: tuple[Path, ...] = (), tables: tuple[Path, ...] = ()) -> None:
        """Add experiments and tables of measurements, by their files."""
        ours = (KeptExperiment(p) for p in dict.fromkeys(p.absolute() for p in experiments))
        self.add(*ours, *(KeptTable(p) for p in dict.fromkeys(p.absolute() for p in tables)))

    def add(self, *records: KeptExperiment | KeptTable) -> None:
        """Add experiments and tables with their settings; files that the project has stay as they are."""
        contents = self._contents.value
        ours: tuple[FileRecord, ...] = (*self.workspace.experiments, *self.workspace.tables)
        paths = {one.path for one in ours} - {None}
        records = tuple(one for one in records if one.path not in paths)
        if not records:
            return
        new = {next(self._numbers): one for one in records}
        self._records.update(new)
        experiments = tuple(k for k, one in new.items() if isinstance(one, KeptExperiment))
        self._edit(
            f"add {records[0].name}" if len(records) == 1 else f"add {len(records)} files",
            experiments=contents.experiments + experiments,
            tables=contents.tables + tuple(k for k in new if k not in experiments),
        )

    def remove(self, kind: Kind, index: int) -> None:
        """Take something out of the project; the last run stays. Of the shown run, the next is shown."""
        numbers = getattr(self._contents.value, kind)
        if kind != "runs" or len(numbers) > 1:
            self._put_away()
            label = f"take {self._name(numbers[index])} out"
            self._edit(label, **{kind: numbers[:index] + numbers[index + 1 :]})

    def relocate(self, kind: Kind, index: int, path: Path) -> None:
        """Set where the file of a record is now."""
        numbers = getattr(self._contents.value, kind)
        old, new = numbers[index], next(self._numbers)
        record = self._records[old]
        if isinstance(record, KeptRun):
            record = replace(record, trace=replace(record.trace, path=path.absolute()))
        else:
            record = replace(record, path=path.absolute())
        self._records[new] = record
        if old in self._branches:
            self._branches[new] = self._branches[old]
        self._open_runs = [new if one == old else one for one in self._open_runs]
        label = f"find {self._name(old)} elsewhere"
        self._edit(label, **{kind: (*numbers[:index], new, *numbers[index + 1 :])})

    def keep(self, number: int, record: FileRecord) -> None:
        """Replace the record of an experiment or table, by its number."""
        self._records[number] = record
        self._changed()

    def numbers(self, kind: Kind) -> tuple[int, ...]:
        """The numbers of runs, experiments or tables, valid while this project is open."""
        numbers: tuple[int, ...] = getattr(self._contents.value, kind)
        return numbers

    def bench(self, kind: Lent, index: int) -> RecordBench:
        """The bench of an experiment or table, opened from its record: one for all pages and panels, which
        share and release it. Its steps are undone with those of the trace."""
        number = self.numbers(kind)[index]
        if number not in self._loans:
            record = self._records[number]
            assert not isinstance(record, KeptRun)
            bench = self._make_bench(record)
            self._loans[number] = Loan(self, number, record, bench)
            match bench, record:  # a bench is made for its record
                case ExperimentBench(), KeptExperiment():
                    bench.open_record(record)
                case ModelBench(), KeptTable():
                    bench.open_record(record)
        return self._loans[number].bench

    def work_on(self, kind: Lent, index: int, bench: RecordBench, record: FileRecord) -> None:
        """Use a bench on which an experiment or table is open already, with this record."""
        number = self.numbers(kind)[index]
        bench.share()
        previous, self._loans[number] = self._loans.get(number), Loan(self, number, record, bench)
        if previous is not None:
            previous.end()
        self.keep(number, record)

    def end_loan(self, number: int) -> None:
        """Stop following the bench of a record."""
        if number in self._loans:
            self._loans.pop(number).end()
            self._changed()

    def _end_loans(self) -> None:
        ended, self._loans = self._loans, {}
        for loan in ended.values():
            loan.end()

    def _name(self, number: int) -> str:
        record = self._records[number]
        return str(record.trace.title if isinstance(record, KeptRun) else record.name)

    def compare(self, comparison: Comparison) -> None:
        """Set how runs are compared; a change of pairs matched by hand is a step of undo."""
        self._comparison = comparison
        if comparison.matched != self._contents.value.matched:
            self._edit("match phases otherwise", matched=comparison.matched)
        else:
            self._changed()

    def find(self, trace: TraceId) -> Path | None:
        """Where a trace is now, without asking."""
        return find_trace(trace, self.path)

    def _edit(self, label: str, **changes: object) -> None:
        self._bench.seal()
        contents = changed(self._contents.value, changes)
        self._contents.edit(label, contents)
        self._turn(contents)

    def _turn(self, contents: _Contents) -> None:
        """Show changed contents; if the shown run is not among them, show another."""
        if self._current is not None and self._current not in contents.runs:
            if contents.runs:
                self._open_run(contents.runs[-1])
            else:
                self._put_away()
                self._current = None
                self._bench.close_document()
        self._changed()

    def _find(self, trace: TraceId) -> Path | None:
        place = find_trace(trace, self.path)
        if place is None:
            return self._locate(trace)
        if place != trace.path:
            self._notify(f"{trace.title} has moved and was found in {place.parent}.")
        return place

    def _follow(self, old: Snapshot, new: Snapshot) -> None:
        if new.document is not old.document:
            if new.document is None:
                if self._current is not None:
                    self._start(Workspace())
            else:
                self._arrived(new.document, new.project)
        if new.project is not old.project or new.document is not old.document:
            self._changed()
        if old.opening is not None and new.opening is None:
            self._awaited = None

    def _arrived(self, document: Document, project: Project) -> None:
        number, self._awaited = self._awaited, None
        run = KeptRun(_identity(document), project)
        if number is None:
            self._start(Workspace((run,)))
            (self._current,) = self._contents.value.runs
            self._open_runs = [self._current]
            return
        previous = self._record(number, KeptRun) if number in self._records else None
        self._records[number] = run
        self._current = self._last_run = number
        if number not in self._open_runs:
            self._open_runs.append(number)
        if previous is None:
            self._edit(f"add {run.trace.title}", runs=(*self._contents.value.runs, number))
            return
        then, now = previous.trace, run.trace
        if then.sha256 and (then.sha256, then.size) != (now.sha256, now.size):
            self._notify(
                f"{now.title} is not as it was when the project was saved ({then.size} bytes then, "
                f"{now.size} now, other content): breakpoints, annotations and views may not fit any more."
            )
        elif project.limit != previous.project.limit:
            self._notify(f"The limit of the analysis lies outside of {now.name} and was left out.")
        elif project.phases != previous.project.phases:
            self._notify(f"Breakpoints that lie outside of {now.name} were left out.")

    def _start(self, workspace: Workspace) -> None:
        self._discard_recovery()
        self._end_loans()
        self._records = dict(enumerate((*workspace.runs, *workspace.experiments, *workspace.tables)))
        self._numbers = count(len(self._records))
        numbers = iter(self._records)
        parts = (workspace.runs, workspace.experiments, workspace.tables)
        runs, experiments, tables = (tuple(next(numbers) for _ in part) for part in parts)
        self._comparison = workspace.comparison
        history = self._bench.history
        history.forget(self._contents, parked=True)
        contents = _Contents(runs, experiments, tables, workspace.comparison.matched)
        self._contents = history.branch(contents, self._turn)
        self.path, self._unpacked, self._saved = None, None, _without_views(workspace)
        self._branches, self._open_runs = {}, []
        self._current, self._last_run = None, workspace.shown if workspace.runs else None

    # ---- saving

    def save(self, path: Path | None = None, view: View | None = None) -> None:
        """Save the project, at another place if `path` is given; `view` is what is seen now.

        Raises
        ------
        OSError : it cannot be written; the file is as it was.
        ProjectError : its file was changed by others in the meantime, and no `path` is given.
        """
        from desktop.data import project_file

        target = path or self.path
        assert target is not None
        if path is None and target.exists() and stamp_of(target) != self._stamp:
            raise ProjectError(
                "was changed by another window or program since it was opened here",
                file=target,
                hint="save under another name, or over it with Save as",
            )
        content = _with_view(self.workspace, view)
        project_file.write(target, content)
        self._bench.seal()  # or the next turn of a wheel would fold into the step that is saved
        self.path, self._saved = target.absolute(), _without_views(content)
        self._stamp = stamp_of(target)
        self._discard_recovery()
        self._changed()

    def autosave(self, view: View | None = None) -> None:
        """Keep what has changed for recovery, beside the window; to be called every `AUTOSAVE` seconds."""
        content = _with_view(self.workspace, view)
        if not self.modified or content == self._autosaved:
            return

        def failed(error: BaseException) -> None:
            if self._autosaved is content:
                self._autosaved = None  # to be tried again, such as when there is room on the disk
            self._bench.report(error)

        self._autosaved = content
        self._lane.submit("Keeping for recovery", lambda job: self._keep(content), lambda _: None, failed)

    def keep_now(self, view: View | None = None) -> None:
        """Keep everything for recovery before this returns.

        Raises
        ------
        OSError : it cannot be written.
        ProjectError : see `desktop.data.project_file.write`.
        """
        self._autosaved = content = _with_view(self.workspace, view)
        try:
            self._keep(content)
        except BaseException:
            self._autosaved = None
            raise

    def _keep(self, content: Workspace) -> None:
        """Write the recovery, unless later contents are to be written."""
        from desktop.data import project_file

        with self._writing:
            if content is self._autosaved:
                self._recovery.parent.mkdir(parents=True, exist_ok=True)
                recovery = Recovery(content, self.path, *_this_process(), kept=time.time())
                project_file.write(self._recovery, recovery, project_file.RECOVERY, backup=False)

    def _discard_recovery(self) -> None:
        self._lane.cancel()
        self._autosaved = None
        self._lane.submit("", lambda job: self._discard(), lambda _: None, lambda _: None)

    def _discard(self) -> None:
        with self._writing:
            if self._autosaved is None:
                self._recovery.unlink(missing_ok=True)

    def close(self) -> None:
        """End, and delete the recovery."""
        self._records = {}
        self._end_loans()
        self._lane.close()
        with suppress(OSError):
            self._recovery.unlink(missing_ok=True)

    # ---- bundles

    def find_outside(self, done: Callable[[tuple[Outside, ...]], None]) -> None:
        """Which files the project names that are not in its own folder."""
        content, folder = self._located(), self.folder
        self._bench.run("Checking what the bundle will hold", lambda job: outside(content, folder, job), done)

    def export_bundle(
        self, target: Path, done: Callable[[Path], None], allowed: frozenset[Path] = frozenset()
    ) -> None:
        """Pack project, stores, experiments and tables into one file; of the files outside of the project's
        folder those in `allowed`, by `Outside.real`."""
        content, folder = self._located(), self.folder

        def work(job: Job) -> Path:
            pack(content, target, folder, allowed, job)
            return target

        self._bench.run(f"Packing {target.name}", work, done)

    def _located(self) -> Workspace:
        """Everything as it is now, each trace where it is found."""
        content = self.workspace
        traces = (replace(run.trace, path=self.find(run.trace) or run.trace.path) for run in content.runs)
        runs = (replace(run, trace=trace) for run, trace in zip(content.runs, traces, strict=True))
        return replace(content, runs=tuple(runs))

    @property
    def folder(self) -> Path | None:
        """The project's own folder; None if it was never saved."""
        place = self.path or self._unpacked
        return None if place is None else place.resolve().parent


def read_workspace(path: Path, *, closed: bool = False) -> Workspace:
    """What a project file holds; `closed`: one that was unpacked from a bundle.

    Raises
    ------
    ProjectError : see `desktop.data.project_file.read`.
    """
    from desktop.data import project_file

    return project_file.read(path, Workspace, model.names(), closed=closed)


def _without_views(workspace: Workspace) -> Workspace:
    """The contents without views, to be compared for changes."""
    runs = tuple(replace(run, project=run.project.without_view) for run in workspace.runs)
    return replace(workspace, runs=runs, shown=0)


def _with_view(workspace: Workspace, view: View | None) -> Workspace:
    """With the `view` of the run that is shown."""
    if view is None or not workspace.runs:
        return workspace
    runs, k = list(workspace.runs), workspace.shown
    runs[k] = replace(runs[k], project=replace(runs[k].project, view=view))
    return replace(workspace, runs=tuple(runs))


def _identity(document: Document) -> TraceId:
    source, importer = document.info["source"], document.info["importer"]
    return TraceId(
        document.source.absolute(),
        source["name"],
        source["size"],
        source["sha256"],
        importer["name"],
        importer["version"],
        document.options,
    )


def find_trace(trace: TraceId, project: Path | None) -> Path | None:
    """Where a trace is: where it was, or one of its name in the folder of the project or below.

    Of several, one whose file has the right size.
    """
    if trace.path.exists() or project is None:
        return trace.path if trace.path.exists() else None
    folder = project.absolute().parent
    candidates = []
    looked_at = 0
    for place, folders, files in os.walk(folder):
        directory = Path(place)
        if len(directory.relative_to(folder).parts) >= DEPTH:
            folders.clear()
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        looked_at += len(files)
        if trace.path.name in files or trace.path.name in folders:
            candidates.append(directory / trace.path.name)
        if looked_at > LOOKED_AT:
            break
    candidates.sort(key=lambda path: not path.is_file() or path.stat().st_size != trace.size)
    return candidates[0] if candidates else None


def trace_of(
    trace: TraceId,
    project: Path | None,
    hint: str = "open the project in the window, say where the trace is, and save",
) -> Path:
    """Where a trace is, as `find_trace`. ProjectError: it cannot be found."""
    place = find_trace(trace, project)
    if place is None:
        raise ProjectError(f"its trace {trace.name} is not at {trace.path}", file=project, hint=hint)
    return place


def compared_trace(trace: TraceId, project: Path | None) -> Path:
    """`trace_of` a run that is compared."""
    return trace_of(trace, project, "open that run and say where it is, or leave it out of the comparison")


# ---- recovery


def recovery_folder() -> Path:
    from platformdirs import user_state_path

    return user_state_path("phasewright", appauthor=False) / "recovery"


def recoveries(folder: Path | None = None) -> list[tuple[Path, Recovery]]:
    """What sessions on this machine have left that ended without saving or discarding; the latest first.

    What cannot be read stays where it is.
    """
    from desktop.data import project_file

    unfinished = []
    for file in sorted((folder or recovery_folder()).glob("*.phasewright")):
        try:
            left = json.loads(file.read_bytes())["tree"]
            if left["machine"] != platform.node() or _lives(left["process"], left["started"]):
                continue
            unfinished.append((file, project_file.read(file, Recovery, model.names(), project_file.RECOVERY)))
        except (OSError, ValueError, LookupError, TypeError, ProjectError, RecursionError):
            continue
    return sorted(unfinished, key=lambda one: -one[1].kept)


def _this_process() -> tuple[int, float, str]:
    return os.getpid(), _begin(os.getpid()), platform.node()


def _lives(process: int, started: float) -> bool:
    import psutil

    try:
        same = abs(_begin(process) - started) < 1
        return same and psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, ValueError, OverflowError):
        return False


def _begin(process: int) -> float:
    """When a process began (s). On Linux since the start of the system: the time of that start, which psutil
    adds, moves whenever the clock is set."""
    import psutil

    booted = psutil.boot_time()  # first, as psutil up to 7.0 adds what it found last
    begin = psutil.Process(process).create_time()
    return float(begin - booted if psutil.LINUX else begin)


# ---- bundles


def _unpacked(bundle: Path, job: Job) -> Path:
    """The project of a bundle, unpacked into the user's data folder, once for each content."""
    from platformdirs import user_data_path

    from desktop.data import project_file

    with bundle.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()[:16]
    folder = user_data_path("phasewright", appauthor=False) / "bundles" / f"{bundle.stem[:60]}-{digest}"
    remove_stale_folders(folder)  # also of a process killed when all was in place
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with WorkFolder(folder) as work:
            inside = work / "unpacked"
            inside.mkdir()
            project = project_file.unpack_bundle(bundle, inside, job)
            if not project.is_file():
                raise TraceFormatError("is an archive without a project", file=bundle)
            try:
                into_place(inside, folder)
            except OSError:
                if not folder.exists():  # else another process was faster
                    raise
    return folder / project_file.BUNDLED


__all__ = [
    "AUTOSAVE",
    "ProjectStore",
    "Recovery",
    "find_trace",
    "read_workspace",
    "recoveries",
    "recovery_folder",
]
