"""What is read on a laptop: windows of 1366x768 and 1280x800, with text of 100 and of 150 %."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QApplication, QLineEdit, QTabBar
from pytestqt.qtbot import QtBot

from desktop.resources import folder, samples
from desktop.ui.compare_page import ComparePage
from desktop.ui.experiment.compare import CompareStep
from desktop.ui.experiment.design import DesignStep
from desktop.ui.experiment_page import ExperimentPage
from desktop.ui.exporting import ExportDialog
from desktop.ui.frame import Frame
from desktop.ui.pages import titled
from desktop.ui.panels.phases import _lines
from desktop.ui.settings import Settings
from desktop.ui.tables import FrameView
from desktop.ui.trace_page import TracePage
from tests.ui.scene import SPT

SIZES = [(1366, 768, 100), (1280, 800, 100), (1366, 768, 150)]
IDS = ["1366x768", "1280x800", "150 %"]


@pytest.fixture
def small(
    qtbot: QtBot, own_cache: None, settings: Settings, no_thread_left: None, request: pytest.FixtureRequest
) -> Iterator[TracePage]:
    """A trace in a window of a size, with text of a size."""
    width, height, percent = request.param
    settings.text_size = percent
    frame = Frame(settings)
    qtbot.addWidget(frame)
    frame.resize(width, height)
    frame.show()
    page = frame.trace
    page.open_path(samples()[0].path)
    qtbot.waitUntil(lambda: not page.busy and page.snapshot.suggestion is not None)
    assert (frame.width(), frame.height()) == (width, height)
    yield page
    frame.choose_text_size(100)
    frame.close_unasked()


on_all = pytest.mark.parametrize("small", SIZES, ids=IDS, indirect=True)


def test_all_of_the_first_window_has_the_chosen_size_of_text(
    qtbot: QtBot, own_places: None, settings: Settings, qapp: QApplication
) -> None:
    settings.text_size = 150
    frame = Frame(settings)
    qtbot.addWidget(frame)
    frame.show()
    sizes = [w.font().pointSizeF() for w in (frame.menuBar(), frame.strip, frame.task_list, frame.trace)]
    assert sizes == [1.5 * float(qapp.property("base_font_size"))] * 4
    frame.choose_text_size(100)
    frame.close_unasked()


@on_all
def test_the_selected_phase_is_in_sight_in_the_statistics(qtbot: QtBot, small: TracePage) -> None:
    small.workbench.set_n(9)
    small.show_panel("statistics")
    table = small.panel("statistics").table
    for phase in (7, 3):
        small.workbench.select_phase(phase)
        qtbot.waitUntil(lambda: not small.busy)
        title = f"Phase {phase + 1}"
        column = [one.title for one in table.frames.columns].index(title)
        left, width = table.columnViewportPosition(column), table.columnWidth(column)
        assert left >= 0 and left + width <= table.viewport().width(), title
        assert table.columnViewportPosition(0) == 0
    order = [table.horizontalHeader().logicalIndex(k) for k in range(table.frames.columnCount())]
    assert sorted(order) == list(range(11)) and order[3:] == sorted(order[3:]), "the others as they were"
    small.workbench.select_phase(None)
    qtbot.waitUntil(lambda: not small.busy)
    assert [table.horizontalHeader().logicalIndex(k) for k in range(11)] == list(range(11))


@on_all
def test_tabs_of_panels_show_their_names_whole(small: TracePage) -> None:
    bars = small.findChildren(QTabBar, options=Qt.FindChildOption.FindDirectChildrenOnly)
    names = 0
    for bar in (bar for bar in bars if bar.isVisible()):
        for k in range(bar.count()):
            assert bar.tabRect(k).width() > bar.fontMetrics().horizontalAdvance(bar.tabText(k)) + 10
        names += bar.count()
    assert names == len(small._docks)


@on_all
def test_no_figure_of_a_fit_ends_within_a_word(qtbot: QtBot, small: TracePage) -> None:
    panel = small.panel("phases")
    for n in (1, 4):
        small.workbench.set_n(n)
        qtbot.waitUntil(lambda: not small.busy)
        shown = {name: value.text() for name, value in panel._values.items()}
        assert all(text and "…" not in text for text in shown.values()), shown
        for value in panel._values.values():
            begun = value.text().replace("\n", " ")
            assert value.full_text.startswith(begun)
            assert begun == value.full_text or value.full_text in value.toolTip().replace("\n", " ")
            assert value.text().count("\n") < value._lines
            assert all(
                value.fontMetrics().horizontalAdvance(line) <= value.width()
                for line in value.text().split("\n")
            )


@on_all
def test_a_comparison_shows_its_curves_and_its_table(qtbot: QtBot, small: TracePage) -> None:
    for sample in samples()[1:3]:
        small.desk.projects.add_run(sample.path)
        qtbot.waitUntil(lambda: not small.desk.projects.busy and not small.busy)
    frame = small.frame
    size = frame.size()
    frame.show_kind("compare")
    page = frame.current
    assert isinstance(page, ComparePage)
    qtbot.waitUntil(lambda: not page.bench.busy and page.answer.isVisible())
    page.view.grab()
    em = page.fontMetrics().height()
    assert frame.size() == size, "it does not grow"
    assert page.view._lanes[0].rect.height() >= 3 * em
    table = page.table
    assert table.viewport().height() // table.rowHeight(0) >= (8 if em < 20 else 4)
    assert "… and" not in page.answer.text()
    assert not re.search(r"\d [mµ]?s\b", page.answer.text()), "no line breaks before a unit"


@on_all
def test_the_last_number_of_an_axis_is_whole(small: TracePage) -> None:
    """It stands at the right end of the axis, beside which there is room for a letter or two."""
    small.curve_view.zoom_to(0.999, 1.0)
    view = small.curve_view
    image = view.grab().toImage()
    box = view._axis
    rows = range(round(box.top()) + 6, round(box.top()) + view.fontMetrics().height())
    last = image.width() - 2  # before the frame of the focus
    ink = [
        {image.pixel(x, y) for y in rows} != {image.pixel(last, rows[0] - 1)}
        for x in range(last - 30, last + 1)
    ]
    assert any(ink) and not ink[-1], "a number, and background beside it"


def experiment_page(qtbot: QtBot, page: TracePage, path: Path) -> ExperimentPage:
    """The page of an experiment in the window of a trace."""
    opened = page.frame.open_experiment(path)
    qtbot.waitUntil(lambda: not opened.bench.busy and opened.bench.snapshot.project is not None)
    page.frame.go_to(opened)
    return opened


def in_view(table: FrameView) -> bool:
    """Whether all columns are."""
    return table.horizontalHeader().length() <= table.viewport().width()


@on_all
def test_designs_that_fit_count_treatments_and_are_in_sight(qtbot: QtBot, small: TracePage) -> None:
    page = experiment_page(qtbot, small, folder() / "examples" / "quicksort")
    page.steps.setCurrentIndex(1)
    step = page.findChild(DesignStep)
    assert step is not None
    qtbot.waitUntil(lambda: step.offers.frames.rowCount() > 0)
    columns = [one.title for one in step.offers.frames.columns]
    assert columns[0] == "Treatments" and "Runs" not in columns
    large = page.fontMetrics().height() > 20
    assert step.offers.viewport().height() // step.offers.rowHeight(0) >= 4
    assert in_view(step.offers) or large
    trials, treatments = (columns.index(name) for name in ("Trials", "Treatments"))
    for row in range(step.offers.frames.rowCount()):
        texts = [step.offers.frames.index(row, k).data() for k in (treatments, trials)]
        assert int(texts[1]) == int(texts[0]) * step.replicates.value()


@on_all
def test_compared_effects_have_their_unit(qtbot: QtBot, small: TracePage) -> None:
    page = experiment_page(qtbot, small, SPT / "measured_2026-11-21_screen_2p6m2.csv")
    page.steps.setCurrentIndex(4)
    step = page.findChild(CompareStep)
    assert step is not None
    qtbot.waitUntil(lambda: step.single.frames.rowCount() == 6 and step.tables.frames.rowCount() == 1)
    heads = lambda table: [cells.head for cells in table.frames.cells]  # noqa: E731 - for two tables
    assert heads(step.tables)[-1] == "Base [s]" and "Delay [units]" in heads(step.tables)
    assert in_view(step.tables) or page.fontMetrics().height() > 20
    assert heads(step.single) == ["Quantity", "Half effect [s]", "SE [s]", "Meaning"]
    assert all(box.text().endswith(" s") for box in (step.cost, step.cost_se))
    page.bench.set_analysis("take logarithms", transform=0.0)
    qtbot.waitUntil(lambda: heads(step.single)[1] == "Half effect [ln]")
    assert heads(step.tables)[-1] == "Base [s]" and step.cost.text().endswith(" ln")


@on_all
def test_names_of_regions_have_room_beside_their_activities(qtbot: QtBot, small: TracePage) -> None:
    small.show_panel("classes")
    panel = small.panel("classes")
    QApplication.processEvents()
    table = panel.table
    name = table.fontMetrics().horizontalAdvance("backward_solve")
    assert table.columnWidth(0) > name and in_view(table)
    panel.search.setText("point2point")
    assert table.frames.rowCount() == 2, "also by a role that is not in sight"


@on_all
@pytest.mark.parametrize("command", ["report", "export_figure"])
def test_large_dialogs_fit_the_screen(qtbot: QtBot, small: TracePage, command: str) -> None:
    """All of them down to their buttons, at 768 pixels less the bar of the desktop; the rest scrolls."""
    small.actions_by_id[command].trigger()
    dialog = small.findChild(ExportDialog)
    assert dialog is not None and dialog.isVisible()
    QApplication.processEvents()
    assert dialog.minimumSizeHint().height() < 680
    dialog.resize(dialog.width(), 680)
    QApplication.processEvents()
    assert dialog.height() == 680 and dialog.rect().contains(dialog.buttons.geometry())
    dialog.reject()


@on_all
def test_labels_of_fields_are_whole_beside_their_letter(small: TracePage) -> None:
    """Qt draws the underlined letter apart from its neighbours, which is wider than the word, and nothing
    beyond the label: with room for more, the same is drawn."""
    for text in ("&Trace", "T&emplate of slides"):
        field = QLineEdit(small)
        label = titled(text, field)
        label.setParent(small)
        label.setFont(QApplication.font())
        pictures = []
        for more in (0, 20):
            label.resize(label.sizeHint() + QSize(more, 0))
            image = label.grab().toImage()
            ground = image.pixel(0, 0)
            columns = range(image.width())
            drawn = [x for x in columns if any(image.pixel(x, y) != ground for y in range(image.height()))]
            pictures.append(max(drawn))
        assert pictures[0] == pictures[1], text
        label.deleteLater()
        field.deleteLater()


def test_a_line_that_just_fits_is_not_cut(qapp: QApplication) -> None:
    """For every width, words are wrapped and nothing of them is lost where there are lines enough."""
    text = "n = 4: misfit 5.2 higher, with 282.2 ms (sending of messages of 512 to 1024 B begins on 13 of 16)"
    for width in range(120, 700):
        lines = _lines(text, qapp.font(), width, 12)
        assert " ".join(lines) == text, width
