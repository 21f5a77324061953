"""What a window does with its project: open, save, runs, bundles, views, remarks."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QFileDialog, QMenu, QMessageBox

from desktop.data.naming import file_stem
from desktop.data.tables import holds_measurements
from desktop.errors import ProjectError
from desktop.ui.bundle import BundleDialog
from desktop.ui.pages import asked_path, asked_paths, set_up
from desktop.ui.panels.project import ProjectPanel, project_items
from desktop.ui.panels.views import NoteDialog
from desktop.ui.part import PartDialog
from desktop.ui.workers import MainThread
from desktop.workbench.bundling import Outside
from desktop.workbench.experimenting import ExperimentBench
from desktop.workbench.jobs import Deliver
from desktop.workbench.keeping import AUTOSAVE, Kind, ProjectStore, RecordBench, bench_for
from desktop.workbench.model import Annotation, KeptExperiment, KeptTable, TraceId, View
from desktop.workbench.modelling import ModelBench
from desktop.workbench.side import EffectsSide, ModelSide
from desktop.workbench.workbench import Snapshot

if TYPE_CHECKING:
    from desktop.data.exporters import Exported
    from desktop.ui.side_panel import SidePanel
    from desktop.ui.trace_page import TracePage

_log = logging.getLogger("phasewright")
_PROJECTS = "Projects (*.phasewright)"


def is_project_file(path: Path) -> bool:
    """Whether a file is a project or a bundle, by its content."""
    from desktop.data.project_file import is_bundle, is_project

    return path.is_file() and (is_project(path) or is_bundle(path))


class ProjectDesk(QObject):
    """The project of one window. `projects` holds it; this asks the user and shows messages."""

    def __init__(self, window: TracePage, deliver: Deliver) -> None:
        super().__init__(window)
        self._window, self._bench = window, window.workbench
        self.projects = ProjectStore(
            self._bench, self._locate, self._tell, self._show_project, deliver,
            make_bench=lambda record: bench_for(record, MainThread().deliver, self._bench.history),
        )  # fmt: skip
        self.sides: dict[str, EffectsSide | ModelSide] = {
            "effects": EffectsSide(self._bench, self.projects, deliver),
            "model": ModelSide(self._bench, self.projects),
        }
        for name, side in self.sides.items():
            window.when_made(name, partial(self._attach, side))
        self._restoring: Path | None = None  # the project with whose pages the session goes on
        self.projects.seen = self._seen
        self._waiting: list[Path] = []  # traces that are to be added to the project
        self._refused: list[str] = []
        self._bench.subscribe(self._follow)
        self._timer = set_up(QTimer(self), interval=int(1000 * AUTOSAVE), timeout=self.autosave)
        self._timer.start()
        self._panel: ProjectPanel | None = None  # until it is first seen
        window.when_made("project", self._attach_contents)

    def _attach(self, side: EffectsSide | ModelSide, panel: SidePanel[Any, Any]) -> None:
        panel.attach(side)
        look, find = partial(self.open_item, side.KIND), partial(self.find_item, side.KIND)
        set_up(panel, openAsked=look, findAsked=find, addAsked=self.add_files)

    def _attach_contents(self, panel: ProjectPanel) -> None:
        self._panel = set_up(
            panel, openAsked=self.open_item, removeAsked=self.projects.remove, placeAsked=self.find_item,
            traceAsked=self.add_run, fileAsked=self.add_files,
        )  # fmt: skip
        panel.show_contents(project_items(self.projects.workspace, self.projects.current))

    # ---- files

    def open(self, path: Path) -> None:
        """Open a project file, and remember it among the recent files."""
        self._restoring = path.absolute()
        self.projects.open(path)
        self._window.settings.add_recent(path)

    def save(self) -> bool:
        """Save to its file, or ask for one; whether it is saved."""
        return self._save(None) if self.projects.path is not None else self.save_as()

    def save_as(self) -> bool:
        """Ask for a file and save to it; whether it is saved."""
        suggested = self.projects.path or self._suggested(".phasewright")
        path = asked_path(self._window, "Save project", suggested, _PROJECTS, mode="save")
        if path is None:
            return False
        return self._save(path if path.suffix else path.with_suffix(".phasewright"))

    def save_copy(self) -> bool:
        """Ask for a file, by default beside its own, and save a copy; whether that is done."""
        saved = self.projects.path or self._suggested(".phasewright")
        copy = saved.with_name(f"{saved.stem}-copy{saved.suffix}")
        path = asked_path(self._window, "Save a copy", copy, _PROJECTS, mode="save")
        return path is not None and self._save(path)

    def _save(self, path: Path | None) -> bool:
        try:
            self.projects.save(path, self._seen())
        except (OSError, ProjectError) as error:
            self._bench.report(error)
            return False
        assert self.projects.path is not None
        self._window.settings.add_recent(self.projects.path)
        self._window.say(f"Saved as {self.projects.path}")
        return True

    def autosave(self) -> None:
        """Keep what has changed for a recovery."""
        if self.worth_saving:
            self.projects.autosave(self._seen())

    def keep_now(self) -> None:
        """Keep what has changed for a recovery before this returns; what fails is logged."""
        if self.worth_saving:
            try:
                self.projects.keep_now(self._seen())
            except (OSError, ProjectError) as error:
                _log.error("what had changed could not be kept, %s", error)

    @property
    def busy(self) -> bool:
        """Whether panels beside the trace still wait for results."""
        return any(side.busy for side in self.sides.values())

    @property
    def worth_saving(self) -> bool:
        """Whether it changed since it was saved; without a project file, whether it holds manual work."""
        return self.projects.modified and (self.projects.path is not None or self.projects.by_hand)

    def close(self) -> None:
        """End its jobs, and close all runs."""
        self._timer.stop()
        for side in self.sides.values():
            side.close()
        self.projects.close()

    @property
    def name(self) -> str:
        """The name of its file, else the title of the trace."""
        document = self._bench.snapshot.document
        if self.projects.path is not None:
            return self.projects.path.name
        return "project" if document is None else document.title

    def _suggested(self, suffix: str) -> Path:
        document = self._bench.snapshot.document
        folder = Path(self._window.settings.folder or ".")
        if document is None:
            return folder / "project"
        return folder / (file_stem(document.source, document.options.member) + suffix)

    def _seen(self) -> View | None:
        """The view that the plots show now."""
        if self._bench.snapshot.run is None:
            return None
        plot, timeline = self._window.curve_view, self._window.timeline
        order = timeline.view.rows.order
        order = "" if timeline.view.timeline is None or order == "hand" else order
        return replace(
            self._bench.snapshot.project.view, span=plot.visible_range(), order=order,
            messages=timeline.message_filter, levels=plot.levels, critical_path=timeline.view.path_shown,
        )  # fmt: skip

    def _show_project(self) -> None:
        """Show the contents of the project, and in the title whether it is modified."""
        window, document = self._window, self._bench.snapshot.document
        if self._restoring is not None and self.projects.path == self._restoring:
            self._restoring = None
            QTimer.singleShot(0, self, partial(window.frame.main.restore_session, self.projects.path))
        rows = project_items(self.projects.workspace, self.projects.current)
        if self._panel is not None:
            self._panel.show_contents(rows)
        for side in self.sides.values():
            side.refresh()
        window.run_comparison.refresh()
        runs = self.projects.workspace.runs
        window.show_runs({k: runs[k].trace.title for k in self.projects.open_runs}, self.projects.current)
        if document is None and rows:
            window.show_panel("project")
        if document is None and not rows:
            window.setWindowTitle("Phasewright")
            window.setWindowModified(False)
            return
        name = self.name
        if self.projects.path is not None and document is not None and document.title != name:
            name = f"{document.title} – {name}"
        window.setWindowTitle(f"{name}[*] – Phasewright")
        if window.isWindowModified() != self.worth_saving:  # it tells of each call
            window.setWindowModified(self.worth_saving)

    def _tell(self, sentence: str) -> None:
        self._window.tell("notice", "notice", sentence, settled=True)

    def _locate(self, trace: TraceId) -> Path | None:
        title = f"Where is {trace.path.name}? It is not in {trace.path.parent}"
        return asked_path(self._window, title, self.projects.path.parent if self.projects.path else "")

    # ---- runs and parts

    def add_run(self) -> None:
        """Choose more traces for the project."""
        title = "Add traces to the project"
        self.add_runs(asked_paths(self._window, title, self._window.settings.folder))

    def add_runs(self, paths: Iterable[Path]) -> None:
        """Add traces to the project, one after the other; the last of them is shown."""
        self._waiting += paths
        self._add_next()

    def _add_next(self) -> None:
        if self._waiting and self._bench.snapshot.opening is None:
            self.projects.add_run(self._waiting.pop(0))

    def _follow(self, old: Snapshot, new: Snapshot) -> None:
        """Go on with the next trace when one was opened or refused; Cancel gives all of them up."""
        if old.opening is None or new.opening is not None:
            return
        if new.problem is not None:
            self._refused.append(new.problem.sentence)
        elif new.document is old.document:
            self._waiting.clear()
        if self._waiting:
            QTimer.singleShot(0, self, self._add_next)  # all have to hear of this change first
            return
        # The last sentence has a bar of its own, which the next trace would have taken away.
        earlier = self._refused[: -1 if new.problem is not None else None]
        if earlier:
            self._tell(" ".join(earlier))
        self._refused.clear()

    def ask_of_several(self, paths: list[Path], apart: Callable[[], None]) -> None:
        """Ask whether several traces are added to this project, or opened by `apart`."""
        text = f"Open {len(paths)} traces together?"
        box = set_up(
            QMessageBox(QMessageBox.Icon.Question, "Phasewright", text, parent=self._window),
            objectName="several_question", informativeText="Runs of one project are kept together and can "
            "be compared: Analyse > Compare runs.",
        )  # fmt: skip
        together = box.addButton("In one project", QMessageBox.ButtonRole.AcceptRole)
        windows = box.addButton("In separate windows", QMessageBox.ButtonRole.AcceptRole)
        box.addButton(QMessageBox.StandardButton.Cancel)

        def answered() -> None:
            box.deleteLater()
            if box.clickedButton() is together:
                self.add_runs(paths)
            elif box.clickedButton() is windows:
                apart()

        box.finished.connect(answered)
        box.open()

    def add_files(self) -> None:
        """Choose experiments and tables of measurements for the project."""
        from desktop.data.runs import holds_experiment

        title = "Add experiments or tables to the project"
        for path in asked_paths(self._window, title, self._window.settings.folder):
            if holds_measurements(path):
                self.projects.add_files(tables=(path,))
            elif holds_experiment(path):
                # Its description names the folder that holds all of it.
                self.projects.add_files(experiments=(path.parent if holds_experiment(path.parent) else path,))
            else:
                self._tell(f"{path} is neither an experiment nor a table of run times.")

    def open_item(self, kind: Kind, index: int) -> None:
        """Show a trace of the project here, or lend an experiment or table to a page of its own."""
        frame = self._window.frame
        if kind == "runs":
            self.projects.show_run(index)
        elif kind == "experiments":
            frame.open_experiment(cast(ExperimentBench, self.projects.bench(kind, index)))
        else:
            frame.open_model(cast(ModelBench, self.projects.bench(kind, index)))

    def bench_of(self, path: Path) -> RecordBench | None:
        """The bench of the experiment or table of the project at a path; None if there is none."""
        kinds: tuple[Literal["experiments", "tables"], ...] = ("experiments", "tables")
        for kind in kinds:
            for k, record in enumerate(getattr(self.projects.workspace, kind)):
                if record.path == path:
                    return self.projects.bench(kind, k)
        return None

    def find_item(self, kind: Kind, index: int) -> None:
        """Ask for the new place of a file of the project."""
        record = getattr(self.projects.workspace, kind)[index]
        path = record.trace.path if kind == "runs" else record.path
        title = f"Where is {path.name}? It was in {path.parent}"
        folder = kind == "experiments" and not path.suffix  # of its description
        place = asked_path(self._window, title, mode="folder" if folder else "open")
        if place is not None:
            self.projects.relocate(kind, index, place)

    def take_in(self, record: KeptExperiment | KeptTable, bench: RecordBench) -> None:
        """Put the work of another window into the project, in place of its entry of the same file."""
        kind: Literal["experiments", "tables"]
        kind = "experiments" if isinstance(record, KeptExperiment) else "tables"
        paths = [entry.path for entry in getattr(self.projects.workspace, kind)]
        index = paths.index(record.path) if record.path in paths and record.path is not None else len(paths)
        if index == len(paths):
            self.projects.add(record)
        self.projects.work_on(kind, index, bench, record)

    def fill_contents(self, menu: QMenu) -> None:
        """Fill a menu with the contents of the project, the shown run marked."""
        menu.clear()
        runs, current = self.projects.workspace.runs, self.projects.current
        for k, run in enumerate(runs):
            action = menu.addAction(run.trace.title.replace("&", "&&"), partial(self.projects.show_run, k))
            set_up(action, statusTip=str(run.trace.path), checkable=True, checked=k == current)
            action.setEnabled(k != current)
        kinds: dict[Kind, str] = {"experiments": "Experiments", "tables": "Tables of run times"}
        for kind, title in kinds.items():
            records = getattr(self.projects.workspace, kind)
            if records:
                menu.addSection(title)
            for k, one in enumerate(records):
                action = menu.addAction(one.name.replace("&", "&&"), partial(self.open_item, kind, k))
                action.setEnabled(one.path is None or one.path.exists())
        menu.addSeparator()
        menu.addAction(self._window.actions_by_id["add_run"])
        menu.addAction(self._window.actions_by_id["add_files"])
        if len(runs) > 1:
            out = menu.addMenu("Remove from the project")
            for k, run in enumerate(runs):
                remove = partial(self.projects.remove, "runs", k)
                out.addAction(run.trace.title.replace("&", "&&"), remove).setEnabled(k != current)

    def export_bundle(self) -> None:
        """Write the project and its files into one; asks about files outside of its folder."""
        suggested = self._suggested(".phasewright.zip")
        target = asked_path(self._window, "Export bundle", suggested, "Bundles (*.zip)", mode="save")
        if target is not None:
            self.projects.find_outside(partial(self._ask_for_files, target))

    def _ask_for_files(self, target: Path, outside: tuple[Outside, ...]) -> None:
        def pack(allowed: frozenset[Path]) -> None:
            self.projects.export_bundle(target, partial(self._say_where, "The bundle is in"), allowed)

        if outside:
            set_up(BundleDialog(self._window, outside, self.projects.folder), chosen=pack).open()
        else:
            pack(frozenset())

    def _say_where(self, text: str, path: Path) -> None:
        self._window.say(f"{text} {path}", 8000)

    def save_part(self) -> None:
        """Ask for ranks and a file, and save the selection as a trace of its own."""
        span, document = self._window.selected_range(), self._bench.snapshot.document
        if span is None or document is None:
            return

        def save(locations: list[int] | None) -> None:
            title, suggested = "Save selection as new trace", self._suggested("-part.h5")
            path = asked_path(self._window, title, suggested, "Imported traces (*.h5)", mode="save")
            if path is not None:
                self._bench.save_part(path, *span, partial(self._say_where, "The selection is in"), locations)

        ranks = [location["rank"] for location in document.info["locations"]]
        set_up(PartDialog(self._window, ranks, span), chosen=save).open()

    def export_trace(self) -> None:
        """Ask for a new folder, and write the whole trace there in another program's format."""
        titles = {"OTF2 archive in a new folder (*)": "otf2", "Paraver trace in a new folder (*)": "paraver"}
        name, title = QFileDialog.getSaveFileName(
            self._window, "Export trace", str(self._suggested("-export")), ";;".join(titles)
        )

        def done(exported: Exported) -> None:
            lost = "".join(f"; not written: {count} {kind}" for kind, count in exported.left_out.items())
            self._window.say(f"The trace is in {exported.file}{lost}", 8000)

        if name:
            self._bench.export_trace(Path(name), titles.get(title, "otf2"), done)

    # ---- views and annotations

    def keep_view(self, number: int) -> None:
        """Keep the present view under a number."""
        seen = self._seen()
        if seen is not None:
            self._bench.keep_view(number, seen)
        self._window.say(f"Kept as view {number}")

    def show_view(self, number: int) -> None:
        """Show a saved view by its number; the status bar says so if there is none."""
        view = self._bench.show_view(number)
        if view is None:
            self._window.say(f"There is no view {number}; Ctrl+{number} keeps what is seen")
        else:
            self.look_at(view)

    def look_at(self, view: View) -> None:
        """Show a view in the plots."""
        if view.span is not None:
            self._window.curve_view.zoom_to(*view.span)
        if view.order:
            self._window.timeline.set_order(view.order)
        self._window.timeline.set_message_filter(view.messages)
        self._window.show_critical_path(view.critical_path)
        self._window.curve_view.set_levels(view.levels)
        self._window.levels_changed()

    def go_to(self, start_s: float, end_s: float) -> None:
        """Show a range with some room around it; an instant in the middle of a view as long as now."""
        a, b = self._window.curve_view.visible_range()
        room = 0.25 * (end_s - start_s) if end_s > start_s else 0.5 * (b - a)
        self._window.curve_view.zoom_to(start_s - room, end_s + room)

    def annotate(self, time_s: float = math.nan, location: int | None = None) -> None:
        """Ask for a remark over the selection, else at `time_s`, else over the selected phase, else in the
        middle of what is seen; on a location, or on all."""
        selection = self._bench.snapshot.project.view.selection
        a, b = self._window.curve_view.visible_range()
        if selection is None and math.isnan(time_s):
            selection = self._window.selected_range()
            time_s = (a + b) / 2
        start, end = selection or (round(time_s, 9), None)  # a pointer has no more digits
        colour = self._bench.snapshot.project.next_colour
        title = "Annotate the selection" if selection else "Annotate"
        if location is not None:
            title = "Remark on a location"
        document = self._bench.snapshot.document
        names = () if document is None else document.locations

        def keep(note: Annotation) -> None:
            self._bench.annotate(note.text, note.start_s, note.end_s, note.location, note.colour)

        dialog = NoteDialog(self._window, title, Annotation(start, "", end, colour, location), names)
        set_up(dialog, confirmed=keep).open()
        dialog.text.setFocus()
