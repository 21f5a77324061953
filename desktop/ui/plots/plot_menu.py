"""What a right click (or the menu key) offers on every plot: its picture, its data, all of it, what it shows.

A plot says by `table` which numbers it shows, and by `picture` how it looks on white. It may have `show_all`,
`axis_options` with `choose_axis` (the ranges and scales of its axes), `grid` with `set_grid`,
`pictureRequested` (who listens copies a picture of more than it), `FIGURE` (a key of
`desktop.data.material.FIGURES`, drawn by the window's export), `content` (a `desktop.data.chart.Content`,
which is exported as a drawing) and `HELP` (a place in the handbook; else the window says it).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from PySide6.QtCore import QByteArray, QPoint, QPointF, Qt
from PySide6.QtGui import QContextMenuEvent, QGuiApplication, QImageWriter
from PySide6.QtWidgets import QFileDialog, QMenu, QMessageBox, QWidget

from desktop.ui.pages import passing_menu
from desktop.ui.plots.axis_dialog import AxisDialog, AxisOption
from desktop.ui.tables import comma_separated, tab_separated

__all__ = ["AxisOption", "finish", "plot_menu", "popup", "texts"]

#: A row of what a plot shows; the first is that of headings, with units.
Row = Sequence[Any]
#: Steps of a curve that are copied one by one at most; of more, the columns that are drawn.
MOST = 100_000


def page_of(widget: QWidget) -> Any:
    """The page that a widget stands on: what can show the handbook; None if there is none."""
    parent: QWidget | None = widget
    while parent is not None and not hasattr(parent, "show_help"):
        parent = parent.parentWidget()
    return parent


def texts(rows: Iterable[Row]) -> list[list[str]]:
    """Cells as text, numbers in full; what is not there is empty."""

    def text(value: Any) -> str:
        if value is None or (isinstance(value, (float, np.floating)) and not np.isfinite(value)):
            return ""
        if isinstance(value, (float, np.floating)):
            return repr(float(value))
        return str(int(value)) if isinstance(value, np.integer) else str(value)

    return [[text(value) for value in row] for row in rows]


def finish(menu: QMenu, plot: Any) -> QMenu:
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
    """A mnemonic of its own for each command; the one that it asks for if that is free."""
    taken: set[str] = set()
    for action in menu.actions():
        if action.isSeparator():
            continue
        wish, text = action.text().partition("&")[2][:1].lower(), action.text().replace("&", "")
        letters = [c for c in text.lower() if c.isalnum() and c not in taken]
        key = wish if wish and wish not in taken else next(iter(letters), "")
        taken.add(key)
        at = text.lower().find(key) if key else -1
        action.setText(text if at < 0 else f"{text[:at]}&{text[at:]}")


def plot_menu(plot: Any) -> QMenu:
    """The menu of a plot that has no commands of its own."""
    return finish(passing_menu(plot), plot)


def popup(plot: Any, event: QContextMenuEvent) -> None:
    """Open the menu of a plot at the pointer; by the key, within the plot."""
    by_key = event.reason() == QContextMenuEvent.Reason.Keyboard
    place = plot.rect().center() if by_key else event.pos()
    made = plot.menu_at(QPointF(place)) if hasattr(plot, "menu_at") else plot_menu(plot)
    made.popup(plot.mapToGlobal(QPoint(place)))
    event.accept()


def _copy(text: str) -> None:
    QGuiApplication.clipboard().setText(text)


def _copy_picture(plot: Any) -> None:
    if hasattr(plot, "pictureRequested"):
        plot.pictureRequested.emit()
    else:
        QGuiApplication.clipboard().setImage(plot.picture())


def export(plot: Any) -> None:
    """The page's figure of it where there is one, else its picture in a file."""
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


def ask_axes(plot: Any) -> None:
    """Ask for the ranges and scales of a plot's axes."""
    AxisDialog(plot).open()


def explain(plot: Any) -> None:
    """Open the handbook at what it says of the plot."""
    page = page_of(plot)
    if page is not None:
        page.show_help(getattr(plot, "HELP", "") or page.place_about(plot))
