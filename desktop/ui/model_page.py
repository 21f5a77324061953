"""The page of the factor model: a table of run times, the model fitted to it, its plots and predictions."""

from __future__ import annotations

from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QLabel, QScrollArea, QStackedWidget, QWidget

from desktop import resources
from desktop.core.units import count
from desktop.data.atomic import write_bytes
from desktop.data.tables import ALIKE
from desktop.ui import theme as themes
from desktop.ui.guard import guarded
from desktop.ui.model.actions import MODEL_COMMANDS, MODEL_MENUS, MODEL_MOUSE
from desktop.ui.model.dialogs import AddRuns, AssignColumns
from desktop.ui.model.plot_pane import PlotPane
from desktop.ui.model.settings_pane import SettingsPane
from desktop.ui.model.sheets import SheetView
from desktop.ui.model.table_pane import TablePane
from desktop.ui.page import Page
from desktop.ui.pages import ask_text, button, divided, first_page, quiet, row, scrolled, set_up, stacked
from desktop.ui.tables import tab_separated
from desktop.ui.workers import MainThread
from desktop.workbench import model_results as results
from desktop.workbench.model_results import EMPTY
from desktop.workbench.modelling import ModelBench, ModelSnapshot

if TYPE_CHECKING:
    from desktop.ui.frame import Frame

_TITLE = "Factor model – Phasewright"
#: Parts of the splitters in percent: left and right, on the right above and below.
_ACROSS, _DOWN = (42, 58), (58, 42)


class _FitSummary(QScrollArea):
    """As high as its text, but never more than a quarter of the window, so that plots have room."""

    def __init__(self, label: QLabel) -> None:
        super().__init__()
        self._label = label
        set_up(
            self, widget=label, widgetResizable=True, frameShape=QScrollArea.Shape.NoFrame,
            horizontalScrollBarPolicy=Qt.ScrollBarPolicy.ScrollBarAlwaysOff,
            accessibleName="Summary of the fit",
        )  # fmt: skip

    def fit(self) -> None:
        height = self._label.heightForWidth(max(self.viewport().width(), 1))
        self.setFixedHeight(max(0, min(height, self.window().height() // 4)))

    @guarded
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit()


class ModelPage(Page):
    """Shows the snapshots of its bench, and passes on the user's actions."""

    KIND = NAME = "model"
    COMMANDS = MODEL_COMMANDS
    MENUS = MODEL_MENUS
    MOUSE = MODEL_MOUSE
    PAGE = "factor-model.md"

    bench: ModelBench

    def __init__(self, frame: Frame, bench: ModelBench | None = None) -> None:
        super().__init__(frame)
        self.bench = bench or ModelBench(MainThread().deliver, history=frame.main.history)
        if bench is not None:
            bench.share()
        self._merged: set[tuple[str, ...]] = set()
        self.setWindowTitle(_TITLE)
        self._make_centre()
        self._make_actions()
        self.measured.addActions([self.actions_by_id[name] for name in ("exclude", "include")])
        self.reset_layout()
        self.bench.subscribe(self._show_snapshot)
        self._begin()
        self._show_snapshot(ModelSnapshot(), self.bench.snapshot)

    # ---- building

    def _make_centre(self) -> None:
        self._pages = QStackedWidget()
        self.setCentralWidget(self._pages)
        self._pages.addWidget(scrolled(self._start_page()))
        self.settings_pane = SettingsPane(self.bench)
        self.measured = set_up(SheetView("Measurements"), picked=lambda keys: self.bench.pick(sorted(keys)))
        self._count = QLabel()
        self._exclude = button("Exclude…", self.ask_reason)
        self._include = button("Include again", self.include_again)
        below = row((self._count, 1), self._exclude, self._include, margins=(8, 2, 8, 4))
        left_side = stacked(self.settings_pane, (self.measured, 1), below, spacing=2)
        self.summary = quiet(objectName="summary", contentsMargins=(8, 4, 8, 2))
        self._summary_area = _FitSummary(self.summary)
        self.plots = PlotPane(self.bench)
        self.tables = TablePane(self.bench)
        self._down = divided(Qt.Orientation.Vertical, (self.plots, 0), (self.tables, 0), objectName="down")
        self._down.setChildrenCollapsible(True)
        right_side = stacked(self._summary_area, (self._down, 1), spacing=2)
        self.split = divided(Qt.Orientation.Horizontal, (left_side, 0), (right_side, 0), objectName="across")
        self._pages.addWidget(self.split)
        self._last_sheet = self.measured

    def _start_page(self) -> QWidget:
        text = quiet(
            "Separates, in the run times of several codes on several systems, what belongs to the code and "
            "what to the system, and says what happens at larger p.\n\n"
            "It needs a table with one run in every row: a code, a system, the number of processors p, and "
            "the time. Operations of the codes and peak rates of the systems may be in it or be added."
        )
        example = ("NPB class A, 4 codes on 4 systems: constructed values that "
                   "reproduce the tables of UTK-CS-97-354, no measurements")  # fmt: skip
        table = "CSV, TSV, spreadsheet (.xlsx), NPB listing; or drop it here"
        return first_page(
            "Factor model",
            text,
            ("Open a table…", table, self.choose_table),
            ("Paste a table", "Cells copied from a spreadsheet (Ctrl+V)", self.paste),
            ("Add runs from imported traces…", "Run times, or durations of a phase", self.ask_runs),
            ("Open the bundled example", example, self.open_example),
        )

    # ---- showing

    def _show_snapshot(self, old: ModelSnapshot, new: ModelSnapshot) -> None:
        """Draw what differs."""
        table = new.project.table
        self._pages.setCurrentIndex(0 if table is None else 1)
        self._show_title(new)
        self.settings_pane.show_snapshot(old, new)
        if new.sheet is not old.sheet:
            self.measured.show_sheet(new.sheet or EMPTY)
        if new.view.lines != old.view.lines or new.sheet is not old.sheet:
            self.measured.select_keys(new.view.lines)
        if table is not old.project.table or new.view.lines != old.view.lines:
            self._show_count(new)
        if (new.fit, new.selection, new.choice) != (old.fit, old.selection, old.choice):
            self._show_summary(new)
        self.plots.show_snapshot(old, new)
        self.tables.show_snapshot(old, new)
        if new.task is not old.task:
            self.show_task("task", new.task, self.bench.cancel)
        if new.problem != old.problem:
            self.tell_problem(new.problem, self.bench.dismiss_problem)
        if table is not old.project.table:
            self._offer_merge(new)
        if new.unassigned is not None and new.unassigned is not old.unassigned:
            self._ask_columns(new)
        self._refresh_actions()

    def _show_title(self, new: ModelSnapshot) -> None:
        table = new.project.table
        self.setWindowTitle(_TITLE if table is None else f"{Path(table.source).name} – {_TITLE}")
        if isinstance(new.source, Path) and self.windowFilePath() != str(new.source):
            self.setWindowFilePath(str(new.source))
            self.settings.add_recent(new.source)

    def _show_count(self, new: ModelSnapshot) -> None:
        table, lines = new.project.table, new.view.lines
        if table is None:
            return
        out = sum(bool(row.reason) for row in table.rows)
        excluded, selected = f", {out} excluded" if out else "", f", {len(lines)} selected" if lines else ""
        self._count.setText(f"{count(len(table.rows), 'row')}{excluded}{selected}")
        self._exclude.setEnabled(bool(lines))
        self._include.setEnabled(any(row.reason for row in table.rows if row.line in lines))

    def _show_summary(self, new: ModelSnapshot) -> None:
        lines: list[str] = []
        if new.fit is not None:
            out = 0 if new.selection is None else len(new.selection.excluded)
            summary = results.fit_summary(new.fit, out, new.choice)
            first, *more = map(escape, new.headline)
            lines = [" ".join([f"<b>{first}</b>", *more]), *map(escape, summary)]
        lines += [
            f"<span style='color: {self._theme.warning}'>Note:</span> {escape(text)}"
            for text in results.warnings(new.fit, new.selection)
        ]
        self.summary.setText("<br>".join(lines))
        self._summary_area.fit()

    @property
    def snapshot(self) -> ModelSnapshot:
        return self.bench.snapshot

    @property
    def name(self) -> str:
        table = self.snapshot.project.table
        return "" if table is None else Path(table.source).name

    @property
    def source(self) -> Path | None:
        return self.snapshot.source.absolute() if isinstance(self.snapshot.source, Path) else None

    # ---- names that look alike

    def _alike(self) -> tuple[str, ...] | None:
        table = self.bench.snapshot.project.table
        similar = () if table is None else table.similar
        return next((names for names in similar if names not in self._merged), None)

    def _offer_merge(self, new: ModelSnapshot) -> None:
        names = self._alike()
        quoted = " and ".join(f"“{name}”" for name in names or ())
        self.tell(
            "alike", "notice", quoted and f"{quoted} {ALIKE}. Are they the same?",
            action="Merge names", act=self._merge, dismissed=self._keep_apart,
            settled=True,
        )  # fmt: skip

    def _merge(self) -> None:
        names, table = self._alike(), self.bench.snapshot.project.table
        if names is not None and table is not None:
            used = [name for row in table.rows for name in (row.code, row.system) if name in names]
            self.bench.merge_names(names, max(names, key=used.count))

    def _keep_apart(self) -> None:
        names = self._alike()
        if names is not None:
            self._merged.add(names)
            self._offer_merge(self.bench.snapshot)

    # ---- files

    def open_path(self, path: Path) -> None:
        """Open a table of run times, or a folder of NPB listings."""
        self.bench.open(path)

    def open_example(self) -> None:
        self.bench.open(resources.example_table())

    def choose_table(self) -> None:
        self.ask_path("Open a table of run times", self.open_path)

    def choose_report(self) -> None:
        """Ask for a file, and write the model, its tables and charts into it."""
        self.ask_path("Write a report", self.write_report, "Reports (*.html *.pdf *.pptx)", mode="save")

    def write_report(self, path: Path) -> None:
        """Write it in the background; by its suffix it is HTML, a PDF document or slides."""
        from desktop.data.report import Looks
        from desktop.ui.model.report import compose
        from desktop.ui.reporting import write

        snapshot, name = self.snapshot, self.name
        looks = Looks(user_file=self.settings.user_file(path.suffix.lower()[1:]))
        self.bench.write_beside(path, lambda job: write(compose(snapshot, name), path, looks, job), self.say)

    def choose_folder(self) -> None:
        self.ask_path("Open a folder of NPB listings", self.open_path, mode="folder")

    def choose_values(self, role: Literal["work", "peak"]) -> None:
        """Ask for a table of operations (`role` "work") or of peak rates, and add it to the runs."""
        values = "operations of codes" if role == "work" else "peak rates of systems"
        self.ask_path(f"Add {values}", lambda path: self.bench.add_values(path, role))

    def paste(self) -> None:
        """Open the text on the clipboard as a table of run times."""
        text = QGuiApplication.clipboard().text()
        if text.strip():
            self.bench.open(text)
        else:
            self.say("There is no text on the clipboard")

    def open_paths(self, paths: list[Path]) -> None:
        """Open the first here, as there is one table; the others on pages or in windows of their own."""
        self.open_path(paths[0])
        if paths[1:]:
            self.frame.main.trace.open_paths(paths[1:])

    def _ask_columns(self, new: ModelSnapshot) -> None:
        unassigned = new.unassigned
        assert unassigned is not None
        set_up(
            AssignColumns(unassigned, self), assigned=partial(self.bench.open, unassigned.source),
            rejected=self.bench.dismiss_columns,
        ).open()  # fmt: skip

    def ask_runs(self) -> None:
        """Ask for files of further runs, and add them."""
        table = self.bench.snapshot.project.table
        rows = () if table is None else table.rows
        codes, systems = ([*dict.fromkeys(getattr(row, name) for row in rows)] for name in ("code", "system"))
        dialog = AddRuns(codes, systems, self.settings.folder, self)
        set_up(dialog, chosen=self.bench.add_runs).open()

    # ---- rows

    def ask_reason(self) -> None:
        """Ask why the selected rows are to be excluded."""
        lines = sorted(self.bench.snapshot.view.lines)
        if not lines:
            return
        ask_text(
            self, f"Exclude {count(len(lines), 'row')}", "Why? The reason is kept in the table.", "outlier",
            lambda reason: self.bench.exclude(lines, reason), name="reason",
        )  # fmt: skip

    def include_again(self) -> None:
        """Include the selected runs again."""
        self.bench.include(sorted(self.bench.snapshot.view.lines))

    def select_suspects(self) -> None:
        """Select the rows that stand out, or say that none does."""
        sheet = self.bench.snapshot.sheet
        lines = [] if sheet is None else sorted(int(sheet.keys[k]) for k in sheet.alarming)
        self.bench.pick(lines)
        snapshot = self.bench.snapshot
        odd = results.standing_out(snapshot.fit, snapshot.selection)
        self.say(f"{count(len(lines), 'row')} selected. {odd}" if odd else "No row stands out")

    # ---- more

    def rank(self) -> None:
        """Fit all pairs of the characteristic functions, and show them ranked."""
        self.tables.show_tab("All pairs")
        self.bench.rank()

    def search_forms(self) -> None:
        """Search a normal form for every cell, and show them."""
        self.tables.show_tab("Normal forms")
        self.bench.search_forms()

    def leave_cells_out(self) -> None:
        """Predict every cell from a fit to all others, and show how well."""
        self.plots.show_tab("Cells")
        self.plots.leave_out.click()

    def show_answers(self) -> None:
        self.tables.show_tab("Answers")
        self.tables.answers.setFocus()

    def _sheet_in_use(self) -> SheetView:
        """The table that has the focus, or had it last."""
        focus = self.focusWidget()
        if isinstance(focus, SheetView):
            self._last_sheet = focus
        return self._last_sheet

    def copy_table(self) -> None:
        """Copy all rows of the table in front, separated by tabs."""
        view = self._sheet_in_use()
        view.copy(tab_separated, everything=True)
        self.say(f"{view.accessibleName()}: the table is on the clipboard")

    def export_table(self) -> None:
        """Ask for a file, and write the table in front to it."""
        self._sheet_in_use().ask_export()

    def copy_picture(self) -> None:
        """Copy the plot in front as an image, as it is on the screen."""
        QGuiApplication.clipboard().setImage(self.plots.picture())
        self.say("The picture is on the clipboard")

    def save_picture(self) -> None:
        """Ask for a PNG file, and write the plot in front to it."""
        self.ask_path("Save picture", self._write_picture, "PNG (*.png)", mode="save")

    def _write_picture(self, path: Path) -> None:
        from desktop.ui.figures import png

        try:
            write_bytes(path, png(self.plots.picture()))
        except OSError as error:
            self.bench.complain(f"{path}: cannot be written ({error.strerror}), choose another place")

    # ---- looks

    def _show_theme(self, theme: themes.Theme) -> None:
        super()._show_theme(theme)
        self._show_summary(self.bench.snapshot)

    def show_anew(self) -> None:
        snapshot = self.bench.snapshot
        self.plots.show_snapshot(ModelSnapshot(), snapshot)
        self.tables.show_snapshot(ModelSnapshot(), snapshot)

    # ---- layout

    def reset_layout(self) -> None:
        """Divide the page as at first."""
        for splitter, parts in ((self.split, _ACROSS), (self._down, _DOWN)):
            set_up(splitter, sizes=[10 * part for part in parts])

    def _end(self) -> None:
        self.bench.release(self._show_snapshot)
