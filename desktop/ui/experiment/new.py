"""The dialog for a new experiment: a program, and its places beside their source, hottest first."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from PySide6.QtGui import QFontDatabase, QTextCursor, QTextFormat
from PySide6.QtWidgets import QDialogButtonBox, QLineEdit, QPlainTextEdit, QTextEdit, QWidget

from desktop.core.units import percent
from desktop.data.columns import Column, TableRow
from desktop.data.places import Spot, first_choice
from desktop.data.syntax import read_source
from desktop.data.templates import MOST, TEMPLATES, Request, home_of, variables_in
from desktop.errors import DesktopError
from desktop.ui.dialogs import Dialog
from desktop.ui.pages import asked_path, beside, button, choices, form, lay_out, quiet, row, set_up, titled
from desktop.ui.tables import FrameView
from desktop.workbench.experimenting import ExperimentBench, ExperimentSnapshot

_PLACES = (
    Column("Delay", "Whether a delay is written there, into the copy", check=True),
    Column("Routine"),
    Column("Construct"),
    Column("File"),
    Column("Line"),
    Column("Time", "Of the trace, in the routine itself"),
)


class NewExperimentDialog(Dialog):
    """Asks for a program, its factors and a folder. Accepted once the experiment is made and open."""

    def __init__(self, parent: QWidget, bench: ExperimentBench, folder: str) -> None:
        super().__init__(parent, title="New experiment")
        self.bench, self._start = bench, folder
        self._spots: tuple[Spot, ...] = ()
        self._ticked: set[str] = set()
        self._source: Path | None = None
        self._looked: tuple[Request, str] | None = None  # at the sources, and a trace
        kinds = {one.name: f"{one.name}: {one.text}" for one in TEMPLATES.values()}
        self.kind = choices(kinds, act=lambda _: self.look(), name="Kind of the program")
        self.program = self._line("Program", "Its folder or source; empty: a small example", self.look)
        tip = "Of the program: places are sorted by the time they take there"
        self.trace = self._line("Trace", tip, self.look)
        tip = "As the kind says; {flags} for the compiler, {out} or a product"
        self.build = set_up(self._line("Build command", tip), placeholderText="As the kind says")
        tip = "What the build makes, where it cannot write to {out}"
        self.product = set_up(self._line("Product", tip), placeholderText="If it is not {out}")
        tip = "As the kind says; {out} is the built program"
        self.run_words = self._line("Run command", tip, self._ready)
        tip = "NAME=LOW,HIGH for each that is a factor, as OMP_NUM_THREADS=8,24"
        self.variables = self._line("Variables of the environment", tip, self._ready)
        tip = "It is created; the program is copied into it"
        self.folder = self._line("Folder of the experiment", tip, self._ready)
        self.places = set_up(FrameView("Places"), chosen=self._show_source)
        self.places.frames.toggled.connect(self._toggled)
        self.source = set_up(
            QPlainTextEdit(), readOnly=True, accessibleName="Source of the place",
            lineWrapMode=QPlainTextEdit.LineWrapMode.NoWrap,
            font=QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont),
        )  # fmt: skip
        self.words = quiet()
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        role = QDialogButtonBox.ButtonRole.ActionRole
        self.make = buttons.addButton("&Make the experiment", role)
        set_up(self.make, objectName="make_experiment", clicked=self._make)
        self.in_place = buttons.addButton("&Use prepared sources…", role)
        prepared = "Sources with #ifdef blocks that call spt_delay, in the folder where they are"
        set_up(self.in_place, toolTip=prepared, clicked=self._use_prepared)
        buttons.rejected.connect(self.reject)
        fields = form(
            ("&Kind", self.kind),
            ("&Program", row(self.program, button("Folder…", lambda: self._choose_program(True)),
                             button("File…", lambda: self._choose_program(False)))),
            ("&Trace", row(self.trace, button("Choose…", self._choose_trace))),
            ("&Build", row((self.build, 1), titled("Pro&duct", self.product), (self.product, 1))),
            ("&Run", self.run_words),
            ("&Variables", self.variables),
            ("&Folder", row(self.folder, button("Choose…", self._choose_folder))),
        )  # fmt: skip
        why = quiet(
            "Your program is copied, and the delays are written into the copy: its own files stay as "
            "they are. Nothing is built or run before you have read the commands."
        )
        both = beside(self.places, self.source, 52)
        lay_out(self, why, fields, (both, 1), self.words, buttons)
        self.resize(980, 680)
        bench.subscribe(self._listen)
        self.look()

    def _line(self, name: str, tip: str, act: object = None) -> QLineEdit:
        field = set_up(QLineEdit(), accessibleName=name, placeholderText=tip, toolTip=tip)
        if callable(act):
            field.editingFinished.connect(lambda: act())
        return field

    # ---- what is asked for

    @property
    def request(self) -> Request:
        """The request that the fields make; raises nothing, as problems are reported by `look`."""
        program = self.program.text().strip()
        return Request(
            str(self.kind.currentData()),
            Path(program) if program else None,
            tuple(spot.key for spot in self._spots if spot.key in self._ticked),
            MOST,
            self.build.text().strip(),
            self.product.text().strip(),
            self.run_words.text().strip(),
            variables=self._variables() or None,
        )

    def _variables(self) -> dict[str, tuple[str, str]]:
        try:
            return variables_in(self.variables.text().split())
        except ValueError:
            return {}

    def look(self) -> None:
        """Read the sources, and the trace if one is named, beside the window."""
        request = replace(self.request, places=(), build="", product="", run="", variables=None)
        trace = self.trace.text().strip()
        if (request, trace) == self._looked:
            return
        self._looked = request, trace
        self.words.setText("Reading the sources…")
        self.bench.look_for_places(request, Path(trace) if trace else None, self._take_places)

    def _take_places(self, spots: tuple[Spot, ...]) -> None:
        if self._finished:
            return
        self._spots = spots
        self._ticked = {spot.key for spot in first_choice(spots, MOST)}
        self._show_places()
        first = next((spot.key for spot in spots if spot.key in self._ticked), "")
        self.places.select_key(first)
        self._show_source(first)
        self._ready()

    def _show_places(self) -> None:
        rows = [
            TableRow(
                (
                    spot.key in self._ticked, spot.place.routine, spot.place.construct, spot.place.file,
                    spot.place.line, "" if spot.share is None else percent(spot.share, 1),
                ),
                spot.key,
                "strong" if spot.key in self._ticked else "",
            )
            for spot in self._spots
        ]  # fmt: skip
        self.places.show_rows(_PLACES, rows)

    def _toggled(self, key: str, on: bool) -> None:
        (self._ticked.add if on else self._ticked.discard)(key)
        self._show_places()
        self.places.select_key(key)
        self._ready()

    def _show_source(self, key: str) -> None:
        """The source of a place, its lines marked."""
        spot = next((spot for spot in self._spots if spot.key == key), None)
        if spot is None:
            self.source.clear()
            self._source = None
            return
        path = home_of(self.request) / spot.place.file
        if path != self._source:
            try:
                self.source.setPlainText(read_source(path).decode("utf-8", "replace"))
            except DesktopError as error:
                self.source.setPlainText(str(error))
            self._source = path
        document = self.source.document()
        cursor = QTextCursor(document.findBlockByNumber(spot.place.line - 1))
        self.source.setTextCursor(cursor)
        self.source.centerCursor()
        last = document.findBlockByNumber(min(spot.end, document.blockCount()) - 1)
        cursor.setPosition(last.position() + last.length() - 1, QTextCursor.MoveMode.KeepAnchor)
        mark = QTextEdit.ExtraSelection()
        mark.cursor = cursor
        shade = self.palette().highlight().color()
        shade.setAlpha(50)
        mark.format.setBackground(shade)
        mark.format.setProperty(QTextFormat.Property.FullWidthSelection, True)
        self.source.setExtraSelections([mark])

    def _ready(self) -> None:
        """Say what would be made, and enable the button if that is possible."""
        request, count, folder = self.request, len(self._ticked), self.folder.text().strip()
        typed, varied = self.variables.text().strip(), len(request.variables or ())
        command, example = request.template == "command", request.program is None and not request.run
        possible = bool(varied if command and not example else count or varied or command)
        if typed and not varied:
            text, possible = f"{typed!r} should read NAME=LOW,HIGH, as OMP_NUM_THREADS=8,24.", False
        elif command:
            text = "Variables of the environment are the factors: name those that are to be varied."
            text = f"Factors: {', '.join(request.variables or ())}." if varied else text
        elif not self._spots:
            text = "The sources hold no routine or loop that can be read: "
            text += "name the program's folder or source."
        else:
            text = f"{count} of {len(self._spots)} places get a delay."
        self.words.setText(text if folder else f"{text} Name the folder of the experiment.")
        self.make.setEnabled(bool(folder) and possible)

    # ---- acting

    def _listen(self, old: ExperimentSnapshot, new: ExperimentSnapshot) -> None:
        if new.problem and new.problem != old.problem:
            self.words.setText(new.problem)

    def _choose_program(self, folder: bool) -> None:
        title, mode = ("Folder", "folder") if folder else ("Source", "open")
        self._look_at(self.program, asked_path(self, f"{title} of the program", self._start, mode=mode))

    def _choose_trace(self) -> None:
        self._look_at(self.trace, asked_path(self, "Trace of the program", self._start))

    def _look_at(self, field: QLineEdit, path: Path | None) -> None:
        if path is not None:
            field.setText(str(path))
            self.look()

    def _choose_folder(self) -> None:
        folder = asked_path(self, "Folder of the experiment", self._start, mode="folder")
        if folder is not None:
            self.folder.setText(str(folder / "experiment" if any(folder.iterdir()) else folder))
            self._ready()

    def _make(self) -> None:
        self.bench.make_experiment(Path(self.folder.text().strip()), self.request, self.accept)

    def _use_prepared(self) -> None:
        folder = asked_path(self, "Folder of the prepared program", self._start, mode="folder")
        if folder is not None:
            self.bench.create_in(folder)
            self.accept()

    def _finish(self) -> None:
        self.bench.unsubscribe(self._listen)
