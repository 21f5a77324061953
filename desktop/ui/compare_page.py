"""The page of comparisons: the runs of a project over or below each other, their phases matched."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QHideEvent, QShowEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QLabel,
    QMenu,
    QPushButton,
    QSizePolicy,
    QStackedWidget,
    QToolBar,
    QToolButton,
    QWidget,
)

from desktop.core.units import digits, unbroken
from desktop.errors import reason
from desktop.ui.compare.actions import AXES, COMPARE_COMMANDS, COMPARE_MENUS, COMPARE_MOUSE
from desktop.ui.compare.cells import CellsTable
from desktop.ui.compare.phases_view import PhasesView
from desktop.ui.compare.runs_view import RunsView, sums
from desktop.ui.compare.systems_dialog import SystemsDialog
from desktop.ui.exporting import FigureDialog
from desktop.ui.guard import guarded
from desktop.ui.page import Page
from desktop.ui.pages import button, choices, divided, first_page, labelled, quiet, refill, set_up, stacked
from desktop.ui.plots.notes import plain
from desktop.ui.tables import tab_separated
from desktop.workbench.phase_modelling import PhaseModeller, PhaseModelSnapshot
from desktop.workbench.run_comparison import MOST, ComparisonSnapshot

if TYPE_CHECKING:
    from desktop.ui.frame import Frame

#: Sentences on differences above the plots; its tip has all.
SENTENCES = 4
_TITLE = "Compare runs – Phasewright"


class ComparePage(Page):
    """Compares the runs of the project of its frame."""

    KIND = NAME = "compare"
    COMMANDS = COMPARE_COMMANDS
    MENUS = COMPARE_MENUS
    MOUSE = COMPARE_MOUSE
    PAGE = "compare.md"

    def __init__(self, frame: Frame) -> None:
        super().__init__(frame)
        self._owner = owner = frame.main.trace
        self.bench = owner.run_comparison
        self.modeller = PhaseModeller(owner.desk.projects, self._results.deliver)
        self.over_p = False  # phases over p are shown in place of the comparison
        self.setWindowTitle(_TITLE)
        self._make_centre()
        self._make_controls()
        self._make_actions()
        self._selected = set_up(QLabel(), minimumWidth=1)
        self.status = (self._selected,)
        self.bench.subscribe(self._show_snapshot)
        self.modeller.subscribe(self._show_phases)
        owner.comparing = self
        self._begin()
        self._show_snapshot(ComparisonSnapshot(), self.bench.snapshot)

    # ---- building

    def _make_centre(self) -> None:
        self.view = set_up(
            RunsView(), pictureRequested=self.copy_picture, pairDropped=self._pair,
            rowSelected=self._select_row, selectionChanged=lambda _: self._show_selection(),
        )  # fmt: skip
        self.table = set_up(CellsTable(), pairChosen=self._pair, rowSelected=self.view.set_row)
        self.answer = quiet(
            objectName="answer", textFormat=Qt.TextFormat.PlainText, margin=4,
            font=set_up(self.font(), bold=True),
        )  # fmt: skip
        plots = stacked(self.answer, (self.view, 1))
        self.split = divided(
            Qt.Orientation.Vertical, (plots, 2), (self.table, 1), objectName="down", sizes=[620, 380]
        )
        self.phases = PhasesView()
        self.phases.back.clicked.connect(lambda: self.show_over_p(False))
        self.phases.systems.clicked.connect(self.choose_systems)
        self._needs = quiet(objectName="needs")
        self.open = button("Add a trace to the project…", self.add_run, name="open")
        self._pages = QStackedWidget()
        for page in (first_page("Compare runs", self._needs, start=self.open), self.split, self.phases):
            self._pages.addWidget(page)
        self.setCentralWidget(self._pages)

    def _make_controls(self) -> None:
        self.runs = set_up(
            QToolButton(), objectName="runs", text="Runs", toolTip=f"Which runs are compared, {MOST} at most",
            popupMode=QToolButton.ToolButtonPopupMode.InstantPopup,
        )  # fmt: skip
        self._runs_menu = set_up(QMenu(self.runs), aboutToShow=self._fill_runs)
        self.runs.setMenu(self._runs_menu)
        self.reference = choices(
            {}, act=lambda key: self.bench.change(reference=key), narrow=18, objectName="reference",
            toolTip="The run that the others are compared with",
        )  # fmt: skip
        titles = {axis: title for axis, (title, _) in AXES.items()}
        self.axis = choices(titles, act=lambda axis: self.bench.change(axis=axis), objectName="axis")
        for k, (_, tip) in enumerate(AXES.values()):
            self.axis.setItemData(k, tip, Qt.ItemDataRole.ToolTipRole)
        self._toggles: dict[str, QCheckBox] = {}
        self.to_model_button = set_up(
            QPushButton("To the factor model"), objectName="to_model",
            toolTip="The durations of the phases by run, as a table of run times in the factor model",
            clicked=lambda: self.to_model(None),
        )  # fmt: skip
        self.over_p_button = set_up(
            QPushButton("Phases over p"), objectName="over_p", checkable=True,
            toolTip="How each phase scales with the processors, with predictions (M)",
            clicked=lambda on: self.show_over_p(on),
        )  # fmt: skip
        bar = self._bar = set_up(QToolBar("Comparison"), objectName="comparison", movable=False)
        bar.addWidget(self.runs)
        bar.addWidget(labelled("&Reference", self.reference, margins=(6, 0, 6, 0)))
        bar.addWidget(labelled("A&xis", self.axis, margins=(6, 0, 6, 0)))
        for name, text in {
            "side_by_side": "Side by side", "share": "% of all processors", "relative": "Relative difference",
        }.items():  # fmt: skip
            toggle = self._toggles[name] = set_up(QCheckBox(text), objectName=name)
            toggle.clicked.connect(lambda on, name=name: self.bench.change(**{name: on}))
            bar.addWidget(toggle)
        space = set_up(QWidget(), sizePolicy=(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred))
        bar.addWidget(space)
        self._match_again = button("Match again", self.bench.match_again, "Discard manual matches")
        for widget in (self._match_again, self.over_p_button, self.to_model_button):
            bar.addWidget(widget)
        self.addToolBar(bar)

    @guarded
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.bench.watch(True)

    @guarded
    def hideEvent(self, event: QHideEvent) -> None:
        """Stop comparing while the page is hidden."""
        super().hideEvent(event)
        self.bench.watch(False)

    # ---- showing

    @property
    def snapshot(self) -> ComparisonSnapshot:
        return self.bench.snapshot

    def _show_snapshot(self, old: ComparisonSnapshot, new: ComparisonSnapshot) -> None:
        """Draw what differs."""
        comparison = new.comparison
        if new.alignment is not old.alignment or new.placement is not old.placement:
            self._show_answer(new)
        if new.sentences != old.sentences:
            text, more = "\n".join(new.sentences), len(new.sentences) - SENTENCES
            shown = (
                new.sentences if more <= 0 else (*new.sentences[:SENTENCES], f"… and {more} more: point here")
            )
            self.answer.setText(unbroken("\n".join(shown)))
            self.answer.setToolTip(plain(text) if more > 0 else "")
        self.answer.setVisible(bool(new.sentences))
        self.view.set_look(side_by_side=comparison.side_by_side, relative=comparison.relative)
        self._pages.setCurrentIndex(0 if new.alignment is None else 1 + self.over_p)
        self.over_p_button.setEnabled(new.alignment is not None)
        if self.over_p:
            self.modeller.ask(new)
        self._show_needs(new)
        if new.entries != old.entries or new.reference != old.reference:
            entries = {entry.key: entry.name for entry in new.entries if entry.shown}
            refill(self.reference, entries, new.reference)
        self.axis.setCurrentIndex(self.axis.findData(comparison.axis))
        for name, toggle in self._toggles.items():
            toggle.setChecked(getattr(comparison, name))
        self._match_again.setEnabled(bool(comparison.matched))
        self._bar.setVisible(len(new.entries) > 1)
        self.to_model_button.setEnabled(new.alignment is not None)
        self.show_task("task", new.task if new.refining else None, self.bench.cancel)
        if new.problem != old.problem:
            self.tell_problem(new.problem, lambda: self.bench.complain(""))
        if new.outdated != old.outdated:
            waiting = new.outdated and (
                "Matches set by hand apply only to the numbers of phases that they were set for; until then "
                "the phases are matched automatically."
            )
            act = self.bench.match_again
            self.tell("outdated", "notice", waiting or "", action="Match again", act=act, settled=True)
        self._refresh_actions()

    def _show_phases(self, old: PhaseModelSnapshot, new: PhaseModelSnapshot) -> None:
        self.phases.show_snapshot(old, new)
        self.show_task("phases", new.task, self.modeller.cancel)
        if new.problem != old.problem:  # which the phases' own page says in place of the model
            self.tell_problem("" if self.over_p else new.problem, lambda: self.modeller.complain(""))

    def _show_answer(self, new: ComparisonSnapshot) -> None:
        pairs = self.bench.by_hand
        by_hand = {k: frozenset(p for _, p in pairs.get(key, ()) if p >= 0) for k, key in enumerate(new.keys)}
        self.view.set_runs(new.alignment, new.placement, by_hand)
        self.table.show_cells(new.alignment, new.cells, by_hand, self.view.colour)
        names = [] if new.alignment is None else [run.name for run in new.alignment.runs]
        self.setWindowTitle(f"{', '.join(names)} – {_TITLE}" if names else _TITLE)
        self._show_selection()

    def _show_needs(self, new: ComparisonSnapshot) -> None:
        count = len(new.entries)
        if new.refining and new.alignment is None:
            text = "The runs are being read…"
        elif count == 0:
            text = "A comparison needs two runs or more. Open a trace in the main window first."
        elif count == 1:
            text = (
                f"A comparison needs two runs or more, and the project has one, {new.entries[0].name}. "
                "Add another trace: a run on more processors, of another version, or of another input."
            )
        elif sum(entry.shown for entry in new.entries) < 2:
            text = "A comparison needs two runs or more: choose them under Runs, above."
        else:
            text = "There is nothing to compare yet."
        self._needs.setText(text)
        self.open.setText("Open…" if count == 0 else "Add a trace to the project…")

    def _show_selection(self) -> None:
        """Show the means of the runs over the selected range."""
        alignment, placement, span = self.snapshot.alignment, self.snapshot.placement, self.view.selection
        if alignment is None or placement is None or span is None:
            self._selected.setText("")
            return
        unit, factor, percent = ("of all", 100.0, " %") if placement.share else ("processors", 1.0, "")
        length = (span[1] - span[0]) or 1.0
        means = ", ".join(
            f"{run.name} {digits(total / length * factor)}{percent}"
            for run, total in zip(alignment.runs, sums(placement.curves, span), strict=True)
        )
        self._selected.setText(f"Selected, {unit} on average: {means}")

    def _fill_runs(self) -> None:
        self._runs_menu.clear()
        for entry in self.snapshot.entries:
            action = self._runs_menu.addAction(entry.name, partial(self._toggle_run, entry.key, entry.shown))
            set_up(action, checkable=True, checked=entry.shown)
        self._runs_menu.addSeparator()
        self._runs_menu.addAction(self.actions_by_id["add_run"])

    def _toggle_run(self, key: str, shown: bool) -> None:
        if not shown and sum(entry.shown for entry in self.snapshot.entries) == MOST:
            self.bench.complain(f"{MOST} runs at most are compared at once, leave another one out first")
        else:
            self.bench.show_run(key, not shown)

    def show_anew(self) -> None:
        self._show_answer(self.snapshot)

    # ---- commands

    def _pair(self, run: int, reference: int, phase: int) -> None:
        self.bench.pair(self.snapshot.keys[run], reference, phase)

    def _select_row(self, row: int) -> None:
        self.view.set_row(row)
        self.table.select_row(row)

    def open_paths(self, paths: list[Path]) -> None:
        """Add the first trace that was dropped to the project; others get windows of their own."""
        if self.snapshot.entries:
            self._owner.desk.projects.add_run(paths[0])
        else:
            self._owner.open_path(paths[0])
        if paths[1:]:
            self.frame.new_window(paths[1:])

    def add_run(self) -> None:
        """Ask for another trace; the first one is opened."""
        if self.snapshot.entries:
            self._owner.desk.add_run()
        else:
            self._owner.choose_file()

    def show_over_p(self, on: bool) -> None:
        """Show how the phases scale, or the comparison again."""
        self.over_p = on
        self.over_p_button.setChecked(on)
        self._show_snapshot(self.snapshot, self.snapshot)

    def choose_systems(self) -> None:
        """Ask on which system each compared run was."""
        runs = {entry.key: entry.name for entry in self.snapshot.entries if entry.shown}
        systems = self.snapshot.comparison.systems

        def choose(names: dict[str, str]) -> None:
            others = [pair for pair in systems if pair[0] not in runs]
            self.bench.change(systems=(*others, *((k, v.strip()) for k, v in names.items() if v.strip())))

        SystemsDialog(self, runs, dict(systems), choose).open()

    def to_model(self, one_system: bool | None) -> None:
        """Open the durations of the phases as run times on a page of the factor model."""
        from desktop.data.trace_rows import phase_rows

        if self.snapshot.alignment is not None:
            self.frame.open_model(phase_rows(self.snapshot.alignment, one_system))

    def zoom_to_selection(self) -> None:
        if self.view.selection is not None:
            self.view.zoom_to(*self.view.selection)

    def escape(self) -> None:
        """End a drag, else the selection, else the choice of a row."""
        if self.view.cancel_drag():
            return
        if self.view.selection is not None:
            self.view.set_selection(None)
            self._show_selection()
        else:
            self._select_row(-1)

    def copy_table(self) -> None:
        """Copy all rows of the table, separated by tabs."""
        self.table.copy(tab_separated, everything=True)
        self.say("The table is on the clipboard")

    def copy_picture(self) -> None:
        """Copy the plot as an image, as it is on the screen."""
        QGuiApplication.clipboard().setImage(self.view.picture())
        self.say("The picture is on the clipboard")

    def export_figure(self, _figure: str = "") -> None:
        """Ask for a file and size in mm for the comparison as a figure."""
        from desktop.core.contrast import Contrast

        alignment, placement = self.snapshot.alignment, self.snapshot.placement
        main = self._owner.workbench.snapshot
        if alignment is None or placement is None:
            return
        if main.fit is None:
            self.bench.complain("no run is shown yet, wait until a trace is open")
            return
        span = self._owner.curve_view.visible_range()
        FigureDialog(
            main, self._results.deliver, span, self, Contrast(alignment, placement),
            colours=self._theme.colours, how=self.view.how,
        ).open()  # fmt: skip

    def export_table(self) -> None:
        """Ask for a file, CSV or XLSX, and write the table to it."""
        self.ask_path("Export table", self.export_to, "CSV (*.csv);;Spreadsheet (*.xlsx)", mode="save")

    def export_to(self, path: Path) -> None:
        """Write the table with its numbers in full, as ``phasewright compare --csv`` prints it."""
        from desktop.core.contrast import cells_frame
        from desktop.data.frames import write_frame

        try:
            write_frame(path, cells_frame(self.snapshot.cells))
        except OSError as error:
            self.bench.complain(f"{path}: cannot be written ({reason(error)}), choose another place")

    def _end(self) -> None:
        self._owner.comparing = None
        self.bench.unsubscribe(self._show_snapshot)
        self.bench.forget()
        self.modeller.close()
