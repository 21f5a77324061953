"""The table of phases: sorted, with fewer columns, copied; a row is the phase that it says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from desktop import resources
from desktop.core.curve import StepCurve
from desktop.core.phase_stats import phase_table
from desktop.core.phases import fit
from desktop.core.quantity import CurveQuantity
from desktop.ui.frame import Frame
from desktop.ui.panels.table import COLUMNS, TablePanel, phase_sheet
from desktop.ui.settings import Settings
from desktop.ui.tables import comma_separated, latex, markdown, tab_separated
from desktop.ui.trace_page import TracePage

MEAN = next(k for k, column in enumerate(COLUMNS) if column.title == "Mean")
SORT, DOWN = Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder


@pytest.fixture
def window(qtbot: QtBot, own_places: None, settings: Settings, no_thread_left: None) -> Iterator[TracePage]:
    made = Frame(settings).trace
    qtbot.addWidget(made.frame)
    made.frame.resize(1366, 768)
    made.frame.show()
    made.open_path(Path(resources.samples()[0].path))
    qtbot.waitUntil(lambda: not made.busy, timeout=60_000)
    made.workbench.set_n(6)
    qtbot.waitUntil(lambda: not made.busy and len(made.workbench.snapshot.rows) == 6, timeout=60_000)
    yield made
    made.frame.close_unasked()


def test_rates_are_told_per_second_whatever_their_size() -> None:
    """A rate is no time: its mean, its deviation and its fit stay in one unit."""
    rate = CurveQuantity("Power", "Power", "J/s", "J/s", counted=False, physical=True)
    curve = StepCurve([0.0, 1.0, 2.0], [1e-3, 3e-3], unit=1e-3, quantity=rate)
    found = fit(curve, 1, "constant")
    heads, cells = phase_sheet(phase_table(curve, found), found, rate)
    told = {head.split()[0]: (head, cell) for head, cell in zip(heads, cells, strict=True)}
    for name, number in (("Mean", 2e-3), ("R.m.s.", 1e-3)):
        head, cell = told[name]
        assert "J/s" in head and float(cell) == pytest.approx(number)
    assert "ms" in told["Duration"][0]


def numbers(panel: TablePanel) -> list[int]:
    """The phases in the order of their rows, as the first column says."""
    return [int(panel.model.text(row, 0)) for row in range(panel.model.rowCount())]


def press(qtbot: QtBot, panel: TablePanel, column: int) -> None:
    header = panel.view.horizontalHeader()
    place = QPoint(header.sectionViewportPosition(column) + 12, header.height() // 2)
    qtbot.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=place)


def test_a_click_on_a_heading_sorts_and_rows_stay_their_phases(qtbot: QtBot, window: TracePage) -> None:
    panel: TablePanel = window.panel("table")
    rows = window.workbench.snapshot.rows
    by_mean = sorted(range(6), key=lambda k: rows[k].mean)
    assert numbers(panel) == [1, 2, 3, 4, 5, 6]
    window.workbench.select_phase(2)
    press(qtbot, panel, MEAN)
    assert numbers(panel) == [k + 1 for k in by_mean]
    assert panel.view.selectionModel().currentIndex().row() == by_mean.index(2)
    # a click on a row selects the phase that it says, which is not that of its place
    place = panel.view.visualRect(panel.model.index(0, MEAN)).center()
    qtbot.mouseClick(panel.view.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert window.workbench.snapshot.project.view.phase == by_mean[0] != 0
    press(qtbot, panel, MEAN)
    assert numbers(panel) == [k + 1 for k in reversed(by_mean)]
    # another number of phases is sorted as well
    window.workbench.set_n(4)
    qtbot.waitUntil(lambda: not window.busy and len(window.workbench.snapshot.rows) == 4, timeout=60_000)
    rows = window.workbench.snapshot.rows
    assert numbers(panel) == [k + 1 for k in sorted(range(4), key=lambda k: -rows[k].mean)]
    press(qtbot, panel, MEAN)  # the third time
    assert numbers(panel) == [1, 2, 3, 4]


def test_columns_are_left_out_and_stay_so(qtbot: QtBot, window: TracePage) -> None:
    panel: TablePanel = window.panel("table")
    menu = panel.view.columns_menu()
    found = {action.text(): action for action in menu.actions()}
    assert "#" not in found and found["Mean"].isChecked()
    found["Mean"].trigger()
    assert panel.view.isColumnHidden(MEAN)
    panel.view.copy(tab_separated, everything=True)
    heads = [
        head.partition(" [")[0] for head in QGuiApplication.clipboard().text().splitlines()[0].split("\t")
    ]
    assert "Mean" not in heads and heads[0] == "#"
    # what is only copied is so still
    assert {column.title for column in COLUMNS if not column.shown} <= set(heads)
    other = Frame(window.settings).trace
    qtbot.addWidget(other.frame)
    try:
        assert other.panel("table").view.isColumnHidden(MEAN)
    finally:
        other.frame.close_unasked()
    action = next(a for a in panel.view.columns_menu().actions() if a.text() == "&Reset columns")
    action.trigger()
    assert not panel.view.isColumnHidden(MEAN) and window.settings.hidden_columns is None


def test_names_are_seen_whole_and_take_the_room_that_is_left(window: TracePage) -> None:
    view = window.panel("table").view
    name = next(k for k, column in enumerate(COLUMNS) if column.title == "Name")
    window.workbench.name_phase(0, "Factorization of the leading panel")
    text = view.frames.text(0, name)
    assert text.startswith("Factorization")
    for width in (500, 2600):
        view.resize(width, 200)
        header = view.horizontalHeader()
        assert header.sectionSize(name) > view.fontMetrics().horizontalAdvance(text)
    assert header.length() == view.viewport().width()
    numbers = {header.sectionSize(k) for k, column in enumerate(COLUMNS) if k > name and column.shown}
    assert len(numbers) == 1 and numbers.pop() < header.sectionSize(name) / 2
    view.set_hidden(["Mean"])
    assert header.length() == view.viewport().width()


def test_it_is_copied_in_all_forms_as_it_is_sorted(qtbot: QtBot, window: TracePage) -> None:
    panel: TablePanel = window.panel("table")
    panel.view.sortByColumn(MEAN, DOWN)
    order = numbers(panel)
    panel.view.clearSelection()
    copied = {}
    for form in (tab_separated, comma_separated, markdown, latex):
        panel.view.copy(form, everything=True)
        copied[form] = QGuiApplication.clipboard().text().splitlines()
    assert [int(line.split("\t")[0]) for line in copied[tab_separated][1:]] == order
    assert [int(line.split(",")[0]) for line in copied[comma_separated][1:]] == order
    assert [int(line.split("|")[1]) for line in copied[markdown][2:]] == order
    tex = copied[latex]
    columns = copied[tab_separated][0].count("\t") + 1
    assert tex[0] == rf"\begin{{tabular}}{{rl{'r' * (columns - 2)}}}" and tex[-1] == r"\end{tabular}"
    body = [line for line in tex[1:-1] if line != r"\hline"]
    assert [int(line.split(" & ")[0]) for line in body[1:]] == order
    assert all(line.endswith(r" \\") and line.count(" & ") == columns - 1 for line in body)
    assert body[0].startswith(r"\# & Name & Start [ms] & ") and "%" not in body[0].replace(r"\%", "")


def test_latex_takes_nothing_for_a_command() -> None:
    text = latex([["a_b", r"\input{x}"], ["50 %", "&"], ["$x$", "~^#"]])
    assert r"a\_b & \textbackslash{}input\{x\}" in text
    assert r"50 \% & \&" in text and r"\$x\$ & \textasciitilde{}\textasciicircum{}\#" in text
