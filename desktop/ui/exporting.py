"""Handing results over from the window: the picture of a plot, a figure in a file, a report.

The dialogs read the store anew in a thread of their own, so that the window stays free; what they write is
there whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from PySide6.QtCore import QSize, Qt, QTimer
from PySide6.QtGui import QGuiApplication, QPixmap, QResizeEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialogButtonBox,
    QDoubleSpinBox,
    QFormLayout,
    QGroupBox,
    QLabel,
    QLineEdit,
    QProgressBar,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from desktop.core.labels import FIGURES, GROUNDS, REPORTS, STYLES, TABLES
from desktop.core.units import instant
from desktop.data.message_filter import MessageFilter
from desktop.data.naming import file_stem
from desktop.errors import sentence
from desktop.ui.dialogs import Dialog
from desktop.ui.guard import guarded
from desktop.ui.pages import (
    PathField,
    asked_path,
    button,
    choices,
    fill_layout,
    form,
    group,
    lay_out,
    quiet,
    refill,
    row,
    scrolled,
    set_up,
    stacked,
    together,
)
from desktop.ui.sizes import fitting
from desktop.ui.theme import LIGHT
from desktop.ui.workers import MainThread
from desktop.workbench import presenting
from desktop.workbench.jobs import Deliver, Job, Lane, Task
from desktop.workbench.model import ReportChoices
from desktop.workbench.workbench import Snapshot

if TYPE_CHECKING:
    from desktop.core.contrast import Contrast
    from desktop.core.critical_path import PathLine
    from desktop.data.chart import Content
    from desktop.data.material import Bars, Material
    from desktop.data.report import Looks
    from desktop.progress import Progress
    from desktop.ui.figures import Look
    from desktop.ui.settings import Settings

#: Kinds of files a figure can be.
FORMATS = {"svg": "SVG (drawing, editable text)", "pdf": "PDF (drawing)", "png": "PNG (pixels)"}


def material_of(snapshot: Snapshot) -> Material | None:
    """The material of figures in a snapshot, without reading the store; None while nothing is fitted."""
    from desktop.data.material import Material

    if snapshot.run is None or snapshot.fit is None or snapshot.document is None:
        return None
    return Material(
        title=snapshot.document.title,
        curve=snapshot.run.curve,
        stack=snapshot.run.stack,
        fit=snapshot.fit,
        rows=snapshot.rows,
        sweep=snapshot.sweep,
        suggestion=snapshot.suggestion and snapshot.suggestion.called(snapshot.project.names),
        marks=presenting.marks(snapshot.project.annotations, snapshot.document.locations),
        locked=snapshot.project.phases.locked,
        doubt=snapshot.document.doubt.short if snapshot.document.doubt else "",
        tracks=tuple(curve for _, curve in snapshot.tracks),
        predicted=presenting.prediction_of(snapshot.what_if, snapshot.project.names),
        firm=snapshot.firm,
        boundaries=snapshot.boundaries,
    )


def read_bars(
    snapshot: Snapshot,
    job: Job,
    span: tuple[float, float] | None,
    by_region: bool = False,
    messages: MessageFilter | None = None,
    path: PathLine | None = None,
) -> Bars | None:
    """The timeline of a fitted run, read from its store; the rest as of `bars`."""
    from desktop.data.material import bars

    document, run, fit = snapshot.document, snapshot.run, snapshot.fit
    assert document is not None and run is not None and fit is not None
    inner, names = fit.breaks[1:-1].tolist(), snapshot.project.names
    with document.open_again() as store:
        return bars(
            store, run.rules, run.curve, job, span=span, breakpoints=inner, by_region=by_region, names=names,
            messages=messages, path=path,
        )  # fmt: skip


def home_of(snapshot: Snapshot) -> Path:
    """The path that begins the names offered for files about a run."""
    assert snapshot.document is not None
    source = snapshot.document.source
    folder = source.parent if source.parent.is_dir() else Path.home()
    return folder / file_stem(source, snapshot.document.options.member)


T = TypeVar("T")


class ExportDialog(Dialog):
    """A dialog with a lane for its work, a line with its progress, and buttons.

    Derived classes connect `save`; `home` begins the names of the files that it offers.
    """

    def __init__(self, home: Path, deliver: Deliver, parent: QWidget | None, name: str, title: str) -> None:
        super().__init__(parent, name, title)
        self._home = home
        self.lane = Lane("export", latest=True, deliver=deliver)
        lines = 2 * self.fontMetrics().lineSpacing()
        self.status = quiet(minimumHeight=lines, textFormat=Qt.TextFormat.PlainText)
        self.progress = set_up(QProgressBar(), accessibleName="Progress", visible=False)
        self.stop = button("Cancel", self._stopped, visible=False)
        self.buttons = QDialogButtonBox()
        self.save = self.buttons.addButton("Save…", QDialogButtonBox.ButtonRole.AcceptRole)
        self.buttons.addButton(QDialogButtonBox.StandardButton.Close)
        self.buttons.rejected.connect(self.reject)

    def _foot(self) -> QVBoxLayout:
        return fill_layout(QVBoxLayout(), row((self.status, 1), self.progress, self.stop), self.buttons)

    def _ask_file(self, title: str, word: str, kind: str) -> Path | None:
        """Ask where to write a file of that kind, which is also its suffix; `word` ends the offered name."""
        home = self._home
        start = str(home.with_name(f"{home.name}-{word}.{kind}"))
        path = asked_path(self, title, start, f"{kind.upper()} (*.{kind})", mode="save")
        ends = path is None or path.suffix.lower() == f".{kind}"
        return path if path is None or ends else path.with_name(f"{path.name}.{kind}")

    def _begin(self, title: str, work: Callable[[Job], T], done: Callable[[T], None]) -> None:
        """Do `work` in the lane, and show its progress."""

        def ended(result: T) -> None:
            self._busy(False)
            done(result)

        def failed(error: BaseException) -> None:
            self._busy(False)
            inside = f"something went wrong inside the program ({type(error).__name__}: {error})"
            self.status.setText(f"Nothing was written: {sentence(error) or inside}")

        self._busy(True)
        self.status.setText(title)
        self.lane.submit(title, work, ended, failed, self._show_task)

    def _show_task(self, task: Task) -> None:
        self.status.setText(f"{task.title}: {task.text}" if task.text else task.title)
        part = task.fraction
        self.progress.setRange(0, 0 if part is None else 1000)
        self.progress.setValue(round(1000 * (part or 0)))

    def _busy(self, busy: bool) -> None:
        self.progress.setRange(0, 0)
        self.progress.setVisible(busy)
        self.stop.setVisible(busy)
        self.save.setEnabled(not busy)

    def _stopped(self) -> None:
        self.lane.cancel()
        self._busy(False)
        self.status.setText("Stopped, nothing was written.")

    def _finish(self) -> None:
        self.lane.close(wait=False)  # a slide that is being drawn would hold up the window


class SheetDialog(ExportDialog):
    """Asks for kind of file, size, text size, style and texts of a figure on paper, with a preview. Derived
    classes say what is drawn."""

    def __init__(
        self, home: Path, deliver: Deliver, parent: QWidget | None, name: str, title: str, **look: Any
    ) -> None:
        """`look`: fields of `desktop.ui.figures.Look` that the dialog has no fields for."""
        super().__init__(home, deliver, parent, name, title)
        self._look = look
        self.save.clicked.connect(self._choose)
        self.format, self.style_box = choices(FORMATS), choices(STYLES)
        self.wide = _spin(160, 40, 1000, " mm")
        self.high = _spin(90, 30, 1000, " mm")
        self.points = _spin(9, 4, 48, " pt")
        self.dpi = _spin(300, 50, 1200, " dpi")
        self.with_csv = QCheckBox("Also write the data behind it as CSV")
        self._words: dict[str, QLineEdit] = {}
        self._texts = QFormLayout()
        texts = set_up(QGroupBox("Texts"), layout=self._texts)
        self._form = form(
            ("For&mat", self.format), ("&Width", self.wide), ("&Height", self.high),
            ("Text &size", self.points), ("&Resolution", self.dpi), ("St&yle", self.style_box), self.with_csv,
        )  # fmt: skip
        left = fill_layout(QVBoxLayout(), self._form, (scrolled(texts), 1))
        self.preview = set_up(QLabel(), accessibleName="Preview", alignment=Qt.AlignmentFlag.AlignCenter)
        self.preview.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Ignored)
        em = self.fontMetrics().height()
        self.preview.setMinimumSize(QSize(32 * em, 20 * em))
        body = row(left, (self.preview, 1))
        lay_out(self, (body, 1), self._foot())
        self.resize(fitting(self, 54, 44))
        copy = self.buttons.addButton("Copy picture", QDialogButtonBox.ButtonRole.ActionRole)
        copy.clicked.connect(self.copy)
        self._later = set_up(QTimer(self), singleShot=True, interval=60, timeout=self._show_preview)
        for combo in (self.format, self.style_box):
            combo.currentIndexChanged.connect(self._changed)
        for spin in (self.wide, self.high, self.points):
            spin.valueChanged.connect(self._changed)

    # ---- what is drawn

    def _file_word(self) -> str:
        """The word that ends the name of the file."""
        raise NotImplementedError

    def _all_words(self) -> dict[str, str]:
        """The texts that may be replaced, by key."""
        raise NotImplementedError

    def _drawn(self) -> tuple[str, Material | Content]:
        """What is drawn, as `desktop.ui.figures` takes it."""
        raise NotImplementedError

    # ---- what all have in common

    def _show_texts(self) -> None:
        while self._texts.rowCount():
            self._texts.removeRow(0)
        self._words = {}
        for key, text in self._all_words().items():
            line = set_up(QLineEdit(text), textChanged=self._changed, cursorPosition=0)
            self._words[key] = line
            self._texts.addRow(key.capitalize(), line)
        self._changed()

    def _changed(self) -> None:
        self.dpi.setEnabled(self.format.currentData() == "png")
        self._later.start()

    def look(self) -> Look:
        """The look that the fields say."""
        from desktop.ui.figures import Look

        return Look(
            width=self.wide.value(),
            height=self.high.value(),
            points=self.points.value(),
            style=self.style_box.currentData(),
            **self._look,
            words={key: line.text() for key, line in self._words.items()},
        )

    def _show_preview(self) -> None:
        from desktop.ui import figures

        look, dpr = self.look(), self.devicePixelRatioF()
        room = self.preview.size() * dpr
        dpi = 25.4 * min(room.width() / look.width, room.height() / look.height)
        image = figures.image(*self._drawn(), look, dpi)
        image.setDevicePixelRatio(dpr)
        self.preview.setPixmap(QPixmap.fromImage(image))

    @guarded
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._later.start()

    def copy(self) -> None:
        """Copy the figure to the clipboard, at twice a screen's resolution."""
        from desktop.ui import figures

        QGuiApplication.clipboard().setImage(figures.image(*self._drawn(), self.look(), 192))
        self.status.setText("The picture is on the clipboard.")

    def _choose(self) -> None:
        path = self._ask_file(self.windowTitle(), self._file_word(), self.format.currentData())
        if path is not None:
            self.save_to(path)

    def save_to(self, path: Path) -> None:
        """Write the figure, and its data beside it if that is ticked."""

        def done(written: list[Path]) -> None:
            names = ", ".join(file.name for file in written)
            self.status.setText(f"Written to {path.parent}: {names}")

        drawn, look, kind = self._drawn(), self.look(), self.format.currentData()
        dpi, data = self.dpi.value(), self.with_csv.isChecked()

        def work(job: Job) -> list[Path]:
            return export(*drawn, look, path, kind=kind, dpi=dpi, data=data, progress=job)

        self._begin("Writing", work, done)


class FigureDialog(SheetDialog):
    """Export one figure of a run, see `SheetDialog`.

    `contrast`: a comparison of the run with others, whose figure is then chosen first. Of the timeline:
    `by_region`: regions at first; `messages` and critical `path` that it shows. `look`: that of the window.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        deliver: Deliver,
        span: tuple[float, float],
        parent: QWidget | None = None,
        contrast: Contrast | None = None,
        /,
        *,
        by_region: bool = False,
        messages: MessageFilter | None = None,
        path: PathLine | None = None,
        **look: Any,
    ) -> None:
        super().__init__(home_of(snapshot), deliver, parent, "export_figure", "Export figure", **look)
        self._snapshot, self._messages, self._path = snapshot, messages, path
        material = material_of(snapshot)
        assert material is not None
        self._material = replace(material, contrast=contrast)
        # The timeline of each range, by activities and by regions, as far as it was asked for.
        self._bars: dict[tuple[tuple[float, float] | None, bool], Bars | None] = {}
        self.figure, self.range = QComboBox(), QComboBox()
        self.states = states_box(by_region)
        self._fill_figures()
        if contrast is not None:
            self.choose("comparison")
        # The part of the view that is analysed; all of the run, if none is.
        curve, label = material.curve, "What is in view"
        a, b = max(span[0], curve.start), min(span[1], curve.start + curve.duration)
        if a < b:
            label += f" ({' – '.join(instant(t, b - a, curve.start, curve.duration) for t in (a, b))})"
        self.range.addItem("Whole run", None)
        self.range.addItem(label, (a, b) if a < b else None)
        self._form.insertRow(0, "&Figure", self.figure)
        last = self._form.rowCount() - 1
        self._form.insertRow(last, "&Colours", self.states)
        self._form.insertRow(last, "&Time", self.range)
        self.figure.currentIndexChanged.connect(self._other_figure)
        for combo in (self.range, self.states):
            combo.currentIndexChanged.connect(self._other_bars)
        self._other_figure()
        self._read_timeline()

    def _file_word(self) -> str:
        return str(self.figure.currentData())

    def _all_words(self) -> dict[str, str]:
        from desktop.ui.figures import texts

        return texts(self._file_word(), self._material)

    def look(self) -> Look:
        return replace(super().look(), span=self.range.currentData(), phase=self._snapshot.project.view.phase)

    def _drawn(self) -> tuple[str, Material | Content]:
        return self._file_word(), self._material

    def _fill_figures(self) -> None:
        current = self.figure.currentData()
        refill(self.figure, {key: FIGURES[key] for key in self._material.figures()}, current)

    def choose(self, figure: str) -> None:
        """Show another figure, if there is such a one."""
        self.figure.setCurrentIndex(max(0, self.figure.findData(figure)))

    def _read_timeline(self) -> None:
        span, by_region = key = self.range.currentData(), bool(self.states.currentData())

        def work(job: Job) -> Bars | None:
            return read_bars(self._snapshot, job, span, by_region, self._messages, self._path)

        def done(bars: Bars | None) -> None:
            self.status.setText("")
            self._bars[key] = bars
            self._material = replace(self._material, bars=bars)
            self._fill_figures()
            if self.figure.currentData() == "timeline":
                self._show_texts()

        if key in self._bars:
            done(self._bars[key])
        else:
            self._begin("Reading the timeline", work, done)

    def _other_figure(self) -> None:
        self.states.setEnabled(self.figure.currentData() == "timeline")
        self._show_texts()
        self._other_bars()

    def _other_bars(self) -> None:
        """For another range or other colours; only a timeline has to be read again."""
        if self.figure.currentData() == "timeline":
            self._read_timeline()
        self._changed()


class ChartDialog(SheetDialog):
    """Export a chart of the window, see `SheetDialog`; at first in the proportions that it has there.

    `name`: its name; `size`: of the chart in the window, logical pixels.
    """

    def __init__(self, content: Content, name: str, size: QSize, parent: QWidget) -> None:
        theme = getattr(parent, "_theme", LIGHT)
        folder = getattr(getattr(parent.window(), "settings", None), "folder", "")
        home = Path(folder or Path.home())
        named = "export_chart", "Export chart"
        super().__init__(home / "chart", MainThread().deliver, parent, *named, colours=theme.colours)
        self._content, self._name = content, name
        self.high.setValue(self.wide.value() * max(size.height(), 1) / max(size.width(), 1))
        self._show_texts()

    def _file_word(self) -> str:
        return "-".join("".join(c if c.isalnum() else " " for c in self._name.lower()).split()) or "chart"

    def _all_words(self) -> dict[str, str]:
        from desktop.data.chart import words

        return words(self._content)

    def _drawn(self) -> tuple[str, Material | Content]:
        return "", self._content


def export(
    figure: str,
    material: Material | Content,
    look: Look,
    path: Path,
    *,
    kind: str,
    dpi: float = 300,
    data: bool = False,
    progress: Progress | None = None,
) -> list[Path]:
    """Write a figure, or a chart (`kind` of `FORMATS`); with `data` also what it is drawn from, as CSV files
    beside it.

    Returns
    -------
    All files that were written.

    Raises
    ------
    OSError : the folder cannot be written.
    """
    from desktop.data import chart
    from desktop.data.atomic import write_bytes
    from desktop.data.material import Material, tables
    from desktop.printing import as_csv
    from desktop.progress import Progress
    from desktop.ui import figures

    progress = progress or Progress()
    progress.step(0, 0, path.name)
    files = [(path, figures.file(figure, material, look, kind, dpi))]
    data_tables: Mapping[str, Iterable[Iterable[object]]] = {}
    if data and isinstance(material, Material):
        data_tables = tables(material, figure, look.span)
    elif data:
        data_tables = {"data": chart.table(cast("Content", material))}
    for name, rows in data_tables.items():
        parts = []
        for part in as_csv(rows):
            progress.step(0, 0, f"{name}.csv")
            parts.append(part)
        files.append((path.with_name(f"{path.stem}-{name}.csv"), "".join(parts).encode()))
    for place, content in files:
        write_bytes(place, content)
    return [place for place, _ in files]


def states_box(by_region: bool) -> QComboBox:
    """The choice of what a timeline shows: activities or regions."""
    box = choices({False: "Activity", True: "Region"}, by_region)
    return set_up(box, toolTip="What the colours of the timeline stand for")


def _spin(value: float, low: float, high: float, suffix: str) -> QDoubleSpinBox:
    box = set_up(QDoubleSpinBox(), range=(low, high), decimals=1 if suffix == " pt" else 0, suffix=suffix)
    box.setValue(value)
    return box


class ReportDialog(ExportDialog):
    """Asks for the kind of file of a report on the run, its figures and tables.

    It begins with the choices of the last report in the project; `remember` gets those of this one. `colours`
    is the window's set; `by_region`: whether its timeline shows regions, the default before a first report.
    `settings` keep the user's own template and style sheet.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        deliver: Deliver,
        parent: QWidget | None = None,
        *,
        remember: Callable[[ReportChoices], None] | None = None,
        colours: str = "soft",
        by_region: bool = False,
        settings: Settings | None = None,
    ) -> None:
        from desktop.ui.reporting import USER_FILES

        super().__init__(home_of(snapshot), deliver, parent, "report", "Report")
        assert snapshot.document is not None
        self._snapshot = snapshot
        self.save.clicked.connect(self._choose)
        self._remember, self._colours, self._settings = remember, colours, settings
        self.user_files = {
            kind: PathField(title, USER_FILES[kind][1], getattr(settings, USER_FILES[kind][0], ""))
            for kind, title in (("pptx", "Template of slides"), ("html", "Style sheet"))
        }
        last = snapshot.project.report
        self.title = QLineEdit(snapshot.document.title)
        self.format, self.style_box = choices(REPORTS, last.kind), choices(STYLES, last.style)
        self.ground = choices(GROUNDS, last.theme)
        self.states = states_box(last.by_region or (by_region and last == ReportChoices()))
        self.figures = {key: QCheckBox(title) for key, title in FIGURES.items()}
        self.tables = {key: QCheckBox(title) for key, title in TABLES.items()}
        for key, check in self._parts().items():
            check.setChecked(key not in last.without)
        self.statistics = QCheckBox("Statistics of each phase, and what changed (reads all events once)")
        self.statistics.setChecked(last.statistics)
        self.appendix = QCheckBox("Add an appendix with the other ticked items")
        self.appendix.setChecked(last.appendix)
        fields = form(
            ("&Title", self.title), ("For&mat", self.format), ("St&yle", self.style_box),
            ("Slides &on", self.ground), ("T&emplate of slides", self.user_files["pptx"]),
            ("Style s&heet of HTML", self.user_files["html"]), ("&Colours of the timeline", self.states),
        )  # fmt: skip
        figures = group("Figures (if the run has them)", *self.figures.values(), None, spacing=3)
        tables = tuple(self.tables.values())
        half = -(-len(tables) // 2)  # one below the other they would be too high for a small screen
        columns = (stacked(*some, None, spacing=3) for some in (tables[:half], tables[half:]))
        self._group = group("Tables (slides: in the appendix)", row(*columns))
        parts = scrolled(together(figures, self._group))
        lay_out(self, fields, (parts, 1), self.statistics, self.appendix, self._foot())
        self.resize(fitting(self, 54, 46))
        command = self.buttons.addButton("Copy as command", QDialogButtonBox.ButtonRole.ActionRole)
        words = "The command that makes this report in a terminal"
        set_up(command, toolTip=words, clicked=self.copy_command)
        self.format.currentIndexChanged.connect(self._other_format)
        self.user_files["pptx"].changed.connect(self._other_format)
        self.appendix.toggled.connect(self._other_format)
        self._other_format()

    def _parts(self) -> dict[str, QCheckBox]:
        """All parts that can be left out, by their keys in `ReportChoices.without`."""
        return self.figures | {f"table {key}": check for key, check in self.tables.items()}

    def _other_format(self) -> None:
        slides, live = (self.format.currentData() == kind for kind in ("pptx", "live"))
        self.ground.setEnabled(slides and not self.user_files["pptx"].value)
        for kind, field in self.user_files.items():
            field.setEnabled(kind == self._ending)
        self.appendix.setEnabled(slides)
        for widget in (self.style_box, self.states, self.statistics, *self.figures.values()):
            widget.setEnabled(not live)  # such a page always holds all that it can
        self._group.setEnabled(not live and (not slides or self.appendix.isChecked()))  # the story has none

    @property
    def _ending(self) -> str:
        kind: str = self.format.currentData()
        return "html" if kind == "live" else kind

    @property
    def _user_file(self) -> Path | None:
        field = self.user_files.get(self._ending)
        return Path(field.value).expanduser() if field is not None and field.value else None

    @property
    def choices(self) -> ReportChoices:
        """The choices that the fields say."""
        return ReportChoices(
            kind=self.format.currentData(),
            style=self.style_box.currentData(),
            theme=self.ground.currentData(),
            without=frozenset(key for key, check in self._parts().items() if not check.isChecked()),
            statistics=self.statistics.isChecked(),
            appendix=self.appendix.isChecked(),
            by_region=bool(self.states.currentData()),
        )

    @property
    def _looks(self) -> Looks:
        from desktop.data.report import Looks

        if self.choices.kind == "live":
            return Looks(colours=self._colours, user_file=self._user_file)
        return Looks(self.choices.style, self._colours, self.choices.theme, self._user_file)

    def _choose(self) -> None:
        path = self._ask_file("Save report", "report", self._ending)
        if path is not None:
            self.save_to(path)

    def _command(self, output: str) -> str:
        from desktop.data.report import Contents, command_line

        assert self._snapshot.document is not None
        title = "" if self.title.text() == self._snapshot.document.title else self.title.text()
        source = str(self._snapshot.document.source)
        subject = presenting.subject(self._snapshot.project, None, title)
        live = self.choices.kind == "live"
        contents = Contents() if live else presenting.contents_of(self.choices)
        words = command_line(source, subject, contents, output, title, looks=self._looks)
        return f"{words} --live" if live else words

    def _keep(self) -> None:
        if self._remember is not None:
            self._remember(self.choices)
        if self._settings is not None:
            files = (self.user_files[kind].value for kind in ("pptx", "html"))
            self._settings.template, self._settings.css = files

    def copy_command(self) -> None:
        """Copy the command that writes the same report."""
        words = self._command(f"report.{self._ending}")
        QGuiApplication.clipboard().setText(words)
        self._keep()
        self.status.setText("The command is on the clipboard.")

    def save_to(self, path: Path) -> None:
        """Write the report."""
        from desktop.data.report import compose
        from desktop.progress import Share
        from desktop.ui.reporting import write, write_live

        snapshot, title, options, looks = self._snapshot, self.title.text(), self.choices, self._looks
        contents, command = presenting.contents_of(options), self._command(path.name)
        document = snapshot.document
        assert document is not None
        self._keep()

        def work(job: Job) -> Path:
            with document.open_again() as store:
                subjects = [replace(presenting.subject(snapshot.project, store, title), firm=snapshot.firm)]
                if options.kind == "live":
                    write_live(subjects[0], path, looks, command, job)
                    return path
                report = compose(
                    subjects, contents, command=command, progress=Share(job, 0, 0.7), stop=job.stop
                )
                write(report, path, looks, Share(job, 0.7, 1))
            return path

        self._begin("Making the report", work, lambda _: self.status.setText(f"Written to {path}"))
