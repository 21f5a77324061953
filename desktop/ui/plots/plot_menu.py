"""The context menu of every plot: view all, axes, grid, copy and export of picture and data, help.

A plot has `table` (the numbers that it shows) and `picture` (itself on white). It may have `show_all`,
`axis_options` with `choose_axis` (the ranges and scales of its axes), `grid` with `set_grid`,
`pictureRequested` (whoever is connected copies a larger picture), `FIGURE` (a key of
`desktop.core.labels.FIGURES`, drawn by the window's export), `content` (a `desktop.data.chart.Content`,
which is exported as a drawing) and `HELP` (a place in the handbook; else the page knows it).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from PySide6.QtCore import QByteArray, QPoint, QPointF, Qt
from PySide6.QtGui import QContextMenuEvent, QGuiApplication, QImageWriter
from PySide6.QtWidgets import (
    QCheckBox,
    QDialogButtonBox,
    QFileDialog,
    QGroupBox,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QMenu,
    QMessageBox,
    QWidget,
)

from desktop.data.chart import AxisChoice
from desktop.ui.dialogs import Dialog
from desktop.ui.pages import lay_out, passing_menu, set_up
from desktop.ui.tables import comma_separated, tab_separated

#: A widget that also has `table()` and `picture()` or `pictureRequested`; no type of Python says both.
Plot: TypeAlias = Any
#: A row of what a plot shows; the first is that of headings, with units.
Row = Sequence[object]
#: Steps of a curve that are copied one by one at most; of more, the columns that are drawn.
MOST_STEPS = 100_000


@runtime_checkable
class ShowsHelp(Protocol):
    """What plots need of `desktop.ui.page.Page`, which they cannot import: it imports them."""

    def show_help(self, place: str = "") -> None: ...

    def place_about(self, widget: QWidget | None) -> str: ...


def page_of(widget: QWidget) -> ShowsHelp | None:
    """The page that a widget stands on; None if there is none."""
    parent: QWidget | None = widget
    while parent is not None and not isinstance(parent, ShowsHelp):
        parent = parent.parentWidget()
    return parent


def texts(rows: Iterable[Row]) -> list[list[str]]:
    """Cells as text, numbers in full; None and NaN are empty."""

    def text(value: object) -> str:
        if value is None or (isinstance(value, (float, np.floating)) and not np.isfinite(value)):
            return ""
        if isinstance(value, (float, np.floating)):
            return repr(float(value))
        return str(int(value)) if isinstance(value, np.integer) else str(value)

    return [[text(value) for value in row] for row in rows]


def finish(menu: QMenu, plot: Plot) -> QMenu:
    """Add what every plot offers to its own commands."""
    if menu.actions():
        menu.addSeparator()
    if hasattr(plot, "show_all"):
        menu.addAction("View &all", plot.show_all).setObjectName("plot_all")
    if hasattr(plot, "axis_options"):
        options = menu.addAction("&Axis options…", lambda: ask_axes(plot))
        options.setObjectName("plot_axes")
        options.setEnabled(bool(plot.axis_options()))
    if hasattr(plot, "set_grid"):
        lines = menu.addAction("&Grid")
        lines.setObjectName("plot_grid")
        lines.setCheckable(True)
        lines.setChecked(plot.grid)
        lines.toggled.connect(plot.set_grid)
    if hasattr(plot, "axis_options") or hasattr(plot, "set_grid"):
        menu.addSeparator()
    menu.addAction("&Copy picture", lambda: _copy_picture(plot)).setObjectName("plot_picture")
    menu.addAction("&Export…", lambda: export(plot)).setObjectName("plot_export")
    for name, title, form in (
        ("plot_tsv", "Copy &data", tab_separated),
        ("plot_csv", "Copy data as CS&V", comma_separated),
    ):
        action = menu.addAction(title, lambda form=form: _copy(form(texts(plot.table()))))
        action.setObjectName(name)
    menu.addSeparator()
    menu.addAction("&What does this show?", lambda: explain(plot)).setObjectName("plot_help")
    _give_keys(menu)
    return menu


def _give_keys(menu: QMenu) -> None:
    """A different mnemonic for each command; the one that its text proposes if that is free."""
    used: set[str] = set()
    for action in menu.actions():
        if action.isSeparator():
            continue
        wish, text = action.text().partition("&")[2][:1].lower(), action.text().replace("&", "")
        letters = [c for c in text.lower() if c.isalnum() and c not in used]
        key = wish if wish and wish not in used else next(iter(letters), "")
        used.add(key)
        k = text.lower().find(key) if key else -1
        action.setText(text if k < 0 else f"{text[:k]}&{text[k:]}")


def plot_menu(plot: Plot) -> QMenu:
    """The menu of a plot that has no commands of its own."""
    return finish(passing_menu(plot), plot)


def popup(plot: Plot, event: QContextMenuEvent) -> None:
    """Open the menu of a plot at the pointer; by the key, within the plot."""
    by_key = event.reason() == QContextMenuEvent.Reason.Keyboard
    place = plot.rect().center() if by_key else event.pos()
    menu = plot.menu_at(QPointF(place)) if hasattr(plot, "menu_at") else plot_menu(plot)
    menu.popup(plot.mapToGlobal(QPoint(place)))
    event.accept()


def _copy(text: str) -> None:
    QGuiApplication.clipboard().setText(text)


def _copy_picture(plot: Plot) -> None:
    if hasattr(plot, "pictureRequested"):
        plot.pictureRequested.emit()
    else:
        QGuiApplication.clipboard().setImage(plot.picture())


def export(plot: Plot) -> None:
    """Export the page's figure of a plot where there is one, else its picture."""
    page, figure = page_of(plot), getattr(plot, "FIGURE", "")
    if page is not None and figure and hasattr(page, "export_figure"):
        page.export_figure(figure)
        return
    if hasattr(plot, "content"):
        from desktop.ui.exporting import ChartDialog

        ChartDialog(plot.content, plot.accessibleName(), plot.size(), plot).open()
        return
    name, _ = QFileDialog.getSaveFileName(plot, "Export picture", "", "PNG (*.png)")
    if name and not QImageWriter(name, QByteArray(b"png")).write(plot.picture()):
        text = f"{name} cannot be written, choose another place"
        box = QMessageBox(QMessageBox.Icon.Warning, "Phasewright", text, parent=plot)
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        box.open()


def ask_axes(plot: Plot) -> None:
    """Ask for the ranges and scales of a plot's axes."""
    AxisDialog(plot).open()


def explain(plot: Plot) -> None:
    """Open the handbook at the section on the plot."""
    page = page_of(plot)
    if page is not None:
        page.show_help(getattr(plot, "HELP", "") or page.place_about(plot))


# ------------------------------------------------------------------ ranges and scales of axes


@dataclass(frozen=True)
class AxisOption:
    """The state of an axis: its ends in its own unit, whether they follow the values (`free`), and whether it
    is logarithmic (None: it cannot be)."""

    axis: Literal["x", "y"]
    title: str
    low: float
    high: float
    free: bool
    log: bool | None


class AxisDialog(Dialog):
    """Asks for the ranges and scales of a plot's axes (`axis_options`), and sets them by `choose_axis`."""

    def __init__(self, plot: Plot) -> None:
        super().__init__(plot, "axis_options", "Axis options")
        self._plot = plot
        self.forms = [_AxisForm(option, self) for option in plot.axis_options()]
        self.words = set_up(QLabel(), wordWrap=True)
        buttons = QDialogButtonBox()
        buttons.addButton(QDialogButtonBox.StandardButton.Ok).clicked.connect(self.accept)
        buttons.addButton(QDialogButtonBox.StandardButton.Apply).clicked.connect(self.apply)
        buttons.addButton(QDialogButtonBox.StandardButton.Cancel).clicked.connect(self.reject)
        lay_out(self, *self.forms, self.words, buttons)

    def apply(self) -> bool:
        """Set the axes as entered; False, with the problem shown, if an entry cannot be used."""
        for form in self.forms:
            problem = form.problem()
            if problem:
                self.words.setText(problem)
                return False
        for form in self.forms:
            if form.changed:
                self._plot.choose_axis(form.option.axis, form.choice)
                form.take()
        self.words.setText("")
        return True

    def accept(self) -> None:
        if self.apply():
            super().accept()


class _AxisForm(QGroupBox):
    """One axis."""

    def __init__(self, option: AxisOption, parent: Dialog) -> None:
        title = option.title or ("Horizontal" if option.axis == "x" else "Vertical")
        super().__init__(title.replace("&", "&&"), parent)
        self.option = option
        self.free = set_up(QCheckBox("Automatic range"), checked=option.free)
        self.low, self.high = (QLineEdit(text) for text in _texts(option.low, option.high))
        self.log = set_up(QCheckBox("Logarithmic"), checked=bool(option.log), visible=option.log is not None)
        row = QHBoxLayout()
        for text, line in (("From", self.low), ("to", self.high)):
            label = set_up(QLabel(text), buddy=line)
            line.setAccessibleName(f"{title}: {text}")
            row.addWidget(label)
            row.addWidget(line)
        lay_out(self, self.free, row, self.log)
        self.free.toggled.connect(self._other_way)
        self._other_way(option.free)
        self.take()

    def take(self) -> None:
        """Remember the fields as applied."""
        self._applied = self._entered

    @property
    def changed(self) -> bool:
        """Whether the fields were changed; compared as text, as numbers are rounded for reading."""
        return self._applied != self._entered

    @property
    def _entered(self) -> tuple[bool, str, str, bool]:
        return self.free.isChecked(), self.low.text(), self.high.text(), self.log.isChecked()

    def _other_way(self, free: bool) -> None:
        for line in (self.low, self.high):
            line.setEnabled(not free)

    def _ends(self) -> tuple[float, float]:
        try:
            return float(self.low.text().replace("−", "-")), float(self.high.text().replace("−", "-"))
        except ValueError:
            return math.nan, math.nan

    @property
    def choice(self) -> AxisChoice:
        low, high = (None, None) if self.free.isChecked() else self._ends()
        return AxisChoice(low, high, None if self.option.log is None else self.log.isChecked())

    def problem(self) -> str:
        """Why this cannot be shown."""
        if self.free.isChecked():
            return ""
        low, high = self._ends()
        if not (math.isfinite(low) and math.isfinite(high)):
            return f"{self.title()}: the ends of the range must be numbers."
        if not low < high:
            return f"{self.title()}: the range must end above where it begins."
        if self.log.isChecked() and self.option.log is not None and low <= 0:
            return f"{self.title()}: a logarithmic axis begins above zero."
        return ""


def _texts(low: float, high: float) -> tuple[str, str]:
    """The ends of a range with as many digits as tell parts of it apart.

    >>> _texts(0.0, 2.5), _texts(1000.0, 1000.00001)
    (('0', '2.5'), ('1000', '1000.00001'))
    """
    size, span = max(abs(low), abs(high)), high - low
    digits = min(17, max(6, math.ceil(math.log10(size / span)) + 5)) if span > 0 and size > 0 else 6
    return f"{low:.{digits}g}", f"{high:.{digits}g}"
