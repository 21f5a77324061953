"""The real window of the factor model, without a display: what the user does, and what is then shown."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QMimeData, QPoint, QPointF, QRectF, QSettings, Qt, QUrl
from PySide6.QtGui import QColor, QDragEnterEvent, QDropEvent, QGuiApplication, QImage
from PySide6.QtWidgets import (  # fmt: skip
    QApplication,
    QDialogButtonBox,
    QFileDialog,
    QInputDialog,
    QMessageBox,
    QPushButton,
    QTextBrowser,
    QWidget,
)
from pytestqt.qtbot import QtBot

from desktop.core.factor_model import ModelFit
from desktop.data.tables import Selection
from desktop.progress import Progress
from desktop.resources import example_table
from desktop.ui.frame import Frame
from desktop.ui.model.actions import MODEL_COMMANDS
from desktop.ui.model.dialogs import AddRuns, AssignColumns
from desktop.ui.model.sheets import SheetView
from desktop.ui.model_page import ModelPage
from desktop.ui.plots.chart import Chart
from desktop.ui.settings import Settings
from desktop.ui.theme import DARK, LIGHT
from desktop.ui.trace_page import TracePage
from desktop.ui.windows import Windows
from desktop.workbench import modelling
from desktop.workbench.model import KeptTable, ModelSettings
from desktop.workbench.modelling import ModelBench
from tests.inline import Inline
from tests.ui.scene import alone, beside

# A tool tip raises its window, which the offscreen platform cannot.
pytestmark = [
    pytest.mark.usefixtures("own_places"),
    pytest.mark.qt_log_ignore("propagateSizeHints", "does not support raise"),
]


@pytest.fixture(scope="module", autouse=True)
def each_fit_is_made_once() -> Iterator[None]:
    """Of one table and one setting, which most tests open: what a fit is stands in the tests of the model."""
    fits, known = modelling._fits, {}

    def once(selection: Selection, settings: ModelSettings, job: Progress) -> dict[str, Any]:
        asked = pickle.dumps((selection, settings))
        if asked not in known:
            known[asked] = fits(selection, settings, job)
        return dict(known[asked])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(modelling, "_fits", once)
        yield


def page_of(settings: Settings) -> ModelPage:
    """Whose bench does everything where it is asked."""
    frame = Frame(settings)
    return beside(
        ModelPage,
        frame.trace,
        ModelBench(executors={"fit": Inline(), "more": Inline()}, history=frame.history),
    )


@pytest.fixture
def window(qtbot: QtBot, settings: Settings) -> Iterator[ModelPage]:
    made = page_of(settings)
    qtbot.addWidget(made.frame)
    made.frame.use_theme(LIGHT)
    made.frame.resize(1280, 720)
    made.frame.show()
    yield made
    made.frame.close()
    delete(made)


def delete(window: QWidget) -> None:
    """At once: a theme goes to every widget that is still there."""
    window.deleteLater()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


@pytest.fixture
def opened(window: ModelPage) -> ModelPage:
    """As the paper has it: t', 1/p + 1/sqrt(p)."""
    window.bench.open_record(KeptTable(example_table(), settings=ModelSettings()))
    assert window.bench.snapshot.problem == ""
    return window


def fit_of(window: ModelPage) -> ModelFit:
    fit = window.bench.snapshot.fit
    assert fit is not None
    return fit


def trigger(window: ModelPage, command: str) -> None:
    action = window.actions_by_id[command]
    assert action.isEnabled(), command
    action.trigger()


def child(window: QWidget, kind: type, name: str = ""):
    found = window.findChild(kind, name) if name else window.findChild(kind)
    assert found is not None, (kind, name)
    return found


def click_point(qtbot: QtBot, chart: Chart, key: int, held=Qt.KeyboardModifier.NoModifier) -> None:
    for at, series in enumerate(chart.content.series):
        keys = list(np.asarray(series.keys))
        if series.kind == "points" and key in keys:
            place = chart.place_of((at, keys.index(key))).toPoint()
            qtbot.mouseClick(chart.viewport(), Qt.MouseButton.LeftButton, held, place)
            return
    raise AssertionError(f"no point {key}")


def column(view: SheetView, title: str) -> list[str]:
    model = view.model()
    heads = [model.headerData(k, Qt.Orientation.Horizontal) for k in range(model.columnCount())]
    titles = [head.split("\n")[0] for head in heads]
    at = titles.index(title)
    return [model.index(row, at).data() for row in range(model.rowCount())]


def press(holder: QWidget, text: str) -> None:
    next(button for button in holder.findChildren(QPushButton) if button.text() == text).click()


def answer_dialog(window: ModelPage, text: str) -> None:
    dialog = child(window, QInputDialog, "reason")
    dialog.setTextValue(text)
    dialog.accept()


# --- opening ---


def test_the_start_says_what_to_do_and_the_example_opens(qtbot: QtBot, window: ModelPage) -> None:
    shown = [b for b in window.findChildren(QPushButton) if b.isVisibleTo(window) and b.text()]
    texts = {b.text(): b for b in shown}
    assert {"Open a table…", "Paste a table", "Open the bundled example"} <= set(texts)
    assert not window.plots.isVisible() and not window.actions_by_id["exclude"].isEnabled()
    texts["Open the bundled example"].click()
    assert window.measured.isVisible() and window.measured.model().rowCount() == 116
    assert window.windowTitle().startswith("npb_class_a_constructed.csv")
    for part in ("N = 116", "14 parameters", "by AICc: 1/p + 1/sqrt(p), fitted to log t'", "Next: 1/p + 1"):
        assert part.replace("'", "&#x27;") in window.summary.text(), part
    assert window.settings_pane.best.isChecked()
    window.settings_pane.response.setCurrentIndex(window.settings_pane.response.findData("t'"))
    for part in ("130.276", "0.99065", "0.93283", "F(18, 84) = 6.94", "the form is lacking", "Note:"):
        assert part in window.summary.text(), part
    assert column(window.tables.parameters, "Value")[1] == "0.3706"
    assert window.settings.recent == [example_table()]


def test_a_table_goes_to_a_page_from_wherever_it_comes(
    qtbot: QtBot, qapp: QApplication, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, str(tmp_path))
    QSettings.setDefaultFormat(QSettings.Format.IniFormat)
    curve = tmp_path / "curve.csv"
    curve.write_text("time,busy\n0,1\n1,2\n2,0\n", encoding="utf-8")
    windows = Windows(qapp)
    windows.open([example_table(), curve])
    try:
        assert [type(frame.current) for frame in windows._open] == [ModelPage, TracePage]
        main = windows._open[1].trace
        qtbot.waitUntil(lambda: not main.workbench.busy, timeout=60_000)
        main.open_path(example_table())
        main.actions_by_id["factor_model"].trigger()
        assert len(windows._open) == 2, "a table goes to a page of the window"
        (last,) = main.frame.of_kind("model")
        assert isinstance(last, ModelPage)
        qtbot.waitUntil(lambda: last.bench.snapshot.fit is not None, timeout=60_000)
        last.frame.choose_theme("dark")
        main.frame.go_to(main)
        assert main._theme is DARK
    finally:
        windows.quit()
        QSettings.setDefaultFormat(QSettings.Format.NativeFormat)
    assert windows._open == []


def test_a_table_is_kept_in_the_project_of_its_window(
    qtbot: QtBot, qapp: QApplication, settings: Settings
) -> None:
    windows = Windows(qapp, settings)
    first, other = windows.open([example_table()]), windows.open()
    try:
        model = first.open_model()
        qtbot.waitUntil(lambda: not model.bench.busy, timeout=60_000)
        assert not first.trace.desk.projects.workspace.tables, "only if it is asked for"
        model.actions_by_id["to_project"].trigger()
        assert [one.name for one in first.trace.desk.projects.workspace.tables] == [example_table().name]
        assert not other.trace.desk.projects.workspace.tables
        assert "Kept in project" in first.statusBar().currentMessage()
    finally:
        for window in windows._open[:]:
            window.close_unasked()


def test_drop_and_paste(qtbot: QtBot, window: ModelPage) -> None:
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(example_table()))])
    where, actions = QPoint(300, 300), Qt.DropAction.CopyAction
    none, left = Qt.KeyboardModifier.NoModifier, Qt.MouseButton.LeftButton
    enter = QDragEnterEvent(where, actions, mime, left, none)
    window.frame.dragEnterEvent(enter)
    assert enter.isAccepted()
    window.frame.dropEvent(QDropEvent(QPointF(where), actions, mime, left, none))
    assert fit_of(window).n == 116
    rows = "\n".join(f"a\t{s}\t{p}\t{k * 10 / p + 1}" for k, s in ((1, "x"), (2, "y")) for p in (1, 2, 4, 8))
    QGuiApplication.clipboard().setText("code\tsystem\tcores\ttime [ms]\n" + rows)
    window.measured.setFocus()
    qtbot.keyClick(window.measured, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
    assert window.measured.model().rowCount() == 8 and fit_of(window).kind == "individual"
    assert window.settings_pane.kind.currentText() == "Every cell by itself"
    QGuiApplication.clipboard().setText("")
    trigger(window, "paste")
    assert fit_of(window).n == 8


def test_columns_without_known_headings_are_asked_for(window: ModelPage, tmp_path: Path) -> None:
    path = tmp_path / "foreign.csv"
    rows = "".join(f"{c};{s};{p};{1e3 / p + 5}\n" for c in "ab" for s in "xy" for p in (1, 2, 4, 8))
    path.write_text("Anwendung;Rechner;Kerne;Dauer\n" + rows, encoding="utf-8")
    window.open_path(path)
    dialog = child(window, AssignColumns)
    ok = dialog.buttons.button(QDialogButtonBox.StandardButton.Ok)
    assert not ok.isEnabled() and "code, system, p, the time or t'" in dialog._need.text()
    for role, heading in (("code", "Anwendung"), ("system", "Rechner"), ("p", "Kerne"), ("time", "Kerne")):
        dialog.headings[role].setCurrentText(heading)
    assert not ok.isEnabled() and "Kerne cannot have two meanings" in dialog._need.text()
    dialog.headings["time"].setCurrentText("Dauer")
    dialog.units["time"].setCurrentText("ms")
    ok.click()
    assert fit_of(window).data.time[0] == pytest.approx(1.005) and fit_of(window).n == 16
    trigger(window, "columns")
    again = window.findChildren(AssignColumns)[-1]
    again.reject()
    assert window.bench.snapshot.unassigned is None and fit_of(window).n == 16


def test_a_bad_table_is_one_sentence_and_leaves_what_is_open(opened: ModelPage, tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("code,system,p,time\na,b,none,1\n", encoding="utf-8")
    opened.open_path(bad)
    assert (
        opened.frame.problem_bar.isVisible()
        and "must be a positive whole number" in opened.frame.problem_bar.sentence
    )
    assert fit_of(opened).n == 116
    press(opened.frame.problem_bar, "Dismiss")
    assert not opened.frame.problem_bar.isVisible() and opened.bench.snapshot.problem == ""


def test_names_that_look_alike_are_offered_to_be_merged(window: ModelPage) -> None:
    rows = [f"a,{s},{p},{1 / p}" for s in ("SP2", "SP2", "sp 2", "T3D") for p in (1, 2)]
    window.bench.open("code,system,p,time\n" + "\n".join(rows))
    assert window.frame.notice_bar.isVisible() and "“SP2” and “sp 2”" in window.frame.notice_bar.sentence
    assert fit_of(window).data.systems == ("SP2", "sp 2", "T3D")
    press(window.frame.notice_bar, "Merge names")
    assert fit_of(window).data.systems == ("SP2", "T3D") and not window.frame.notice_bar.isVisible()
    trigger(window, "undo")
    assert window.frame.notice_bar.isVisible()
    press(window.frame.notice_bar, "Dismiss")
    assert not window.frame.notice_bar.isVisible() and len(fit_of(window).data.systems) == 3


# --- rows and points ---


def test_a_click_on_a_residual_selects_its_row_everywhere_and_it_is_excluded(
    qtbot: QtBot, opened: ModelPage
) -> None:
    opened.plots.show_tab("Residuals")
    chart = opened.plots.residuals
    lines = opened.bench.snapshot.selection.lines  # type: ignore[union-attr]  # it is open
    k = 60
    click_point(qtbot, chart, lines[k])
    shown = opened.bench.snapshot
    assert shown.view.lines == {lines[k]} and chart.content.selected == {lines[k]}
    data = fit_of(opened).data
    assert opened.plots.code.currentText() == data.codes[data.code[k]]
    assert opened.plots.system.currentText() == data.systems[data.system[k]]
    assert opened.measured.selected_rows() == [k]
    told = chart.name_of(chart.mark_at(chart.place_of((0, k))))
    assert f"line {lines[k]}" in told and f"p = {data.p[k]:.0f}" in told
    before = fit_of(opened)
    trigger(opened, "exclude")
    answer_dialog(opened, "another compiler")
    assert fit_of(opened).n == 115 and fit_of(opened).sse != before.sse
    assert column(opened.measured, "Excluded because")[k] == "another compiler"
    assert "115, 1 excluded" in opened.summary.text()
    opened.plots.show_tab("Scaling")
    labels = [series.label for series in opened.plots.scaling.content.series]
    assert "Excluded" in labels and "Before the last exclusion" in labels
    assert opened.actions_by_id["undo"].text() == f"Undo exclude row {lines[k]}"
    trigger(opened, "undo")
    assert fit_of(opened).sse == pytest.approx(before.sse, rel=1e-12)
    trigger(opened, "redo")
    assert fit_of(opened).n == 115
    buttons = opened._exclude.text(), opened._include.text()
    named = [opened.actions_by_id[name].text().split()[0] for name in ("exclude", "include")]
    assert [text.split()[0].rstrip("…") for text in buttons] == named, "as the menu calls them"
    trigger(opened, "include")
    assert fit_of(opened).n == 116


def test_ctrl_click_selects_several_and_escape_none(qtbot: QtBot, opened: ModelPage) -> None:
    lines = opened.bench.snapshot.selection.lines  # type: ignore[union-attr]  # it is open
    opened.plots.show_tab("Quantile-quantile")
    for line in lines[10:13]:
        click_point(qtbot, opened.plots.quantiles, line, Qt.KeyboardModifier.ControlModifier)
    assert opened.bench.snapshot.view.lines == set(lines[10:13])
    assert opened.measured.selected_rows() == [10, 11, 12]
    assert "3 selected" in opened._count.text()
    trigger(opened, "nothing")
    assert opened.bench.snapshot.view.lines == frozenset() and opened.measured.selected_rows() == []


def test_selected_rows_are_ringed_in_the_plots(qtbot: QtBot, opened: ModelPage) -> None:
    opened.measured.selectRow(4)
    line = int(opened.measured.frames.key(4))
    assert opened.bench.snapshot.view.lines == {line}
    assert opened.plots.scaling.content.selected == {line}


def test_the_table_sorts_by_any_column_and_keeps_what_is_selected(opened: ModelPage) -> None:
    opened.measured.selectRow(100)
    opened.measured.sortByColumn(8, Qt.SortOrder.DescendingOrder)
    values = [float(text.replace("−", "-")) for text in column(opened.measured, "Studentized")]
    assert values == sorted(values, reverse=True)
    row = opened.measured.selected_rows()
    assert len(row) == 1 and int(opened.measured.frames.order[row[0]]) == 100
    opened.measured.sortByColumn(1, Qt.SortOrder.AscendingOrder)
    assert column(opened.measured, "Code") == sorted(column(opened.measured, "Code"))
    opened.measured.sortByColumn(-1, Qt.SortOrder.AscendingOrder)
    assert opened.measured.frames.order.tolist() == list(range(116))


def test_rows_that_stand_out_are_selected_on_demand(window: ModelPage) -> None:
    rows = [f"{c},{s},{p},{100 / p + 1}" for c in "ab" for s in "xy" for p in (1, 2, 4, 8, 16, 32)]
    rows[7] = "a,y,2,93.0"
    window.bench.open("code,system,p,time\n" + "\n".join(rows))
    trigger(window, "suspects")
    assert 9 in window.bench.snapshot.view.lines
    said = window.frame.statusBar().currentMessage()
    assert said.endswith(" selected. Worth a look: line 9"), said
    window.plots.show_tab("Residuals")
    labelled = {
        window.plots.residuals.content.series[0].name(k).split("\n")[0]
        for k in window.plots.residuals.content.series[0].labels
    }
    assert "a on y, p = 2" in labelled


def test_copy_is_tab_separated_with_headings(
    qtbot: QtBot, opened: ModelPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened.measured.selectRow(2)
    opened.measured.setFocus()
    qtbot.keyClick(opened.measured, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    lines = [line.split("\t") for line in QGuiApplication.clipboard().text().splitlines()]
    assert len(lines) == 2 and lines[0][:5] == ["Line", "Code", "System", "p", "t'"]
    assert lines[1][:4] == ["7", "BT", "IBM SP2", "9"]
    assert float(lines[1][5]) == fit_of(opened).fitted[2], "copied with every digit"
    trigger(opened, "copy_table")
    assert len(QGuiApplication.clipboard().text().splitlines()) == 117
    out = tmp_path / "parameters.csv"
    opened.tables.show_tab("Parameters")
    monkeypatch.setattr(QFileDialog, "getSaveFileName", staticmethod(lambda *_: (str(out), "")))
    opened.tables.parameters.ask_export()
    assert out.read_text(encoding="utf-8").splitlines()[2].startswith("speed,Intel Paragon,1/p,0.37")
    out = tmp_path / "no" / "folder.csv"
    opened.tables.parameters.ask_export()
    assert "cannot be written" in child(opened, QMessageBox).text()
    child(opened, QMessageBox).close()


def test_a_hundred_thousand_rows_stay_fluent(window: ModelPage, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    n = 100_000
    p = 2 ** rng.integers(0, 11, n)
    t = (100.0 / p + 1.0) * rng.lognormal(sigma=0.05, size=n)
    rows = [f"c{k % 4},s{k % 3},{a},{b:.6g}" for k, (a, b) in enumerate(zip(p, t, strict=True))]
    file = tmp_path / "many.csv"
    file.write_text("code,system,p,time\n" + "\n".join(rows) + "\n")
    # One fit of few cells: it is the table that is tried here.
    window.bench.open_record(KeptTable(file, settings=ModelSettings(("1/p", "1"), joint=False)))
    assert window.measured.model().rowCount() == n and fit_of(window).n == n

    def seconds(act) -> float:
        # Of the processor, so that other work on the machine does not count.
        begun = time.process_time()
        act()
        QApplication.processEvents()
        return time.process_time() - begun

    # Far above what it takes (hundredths of a second), far below what a widget for every cell would take.
    assert seconds(lambda: window.measured.sortByColumn(4, Qt.SortOrder.DescendingOrder)) < 2
    assert seconds(window.measured.scrollToBottom) < 1
    assert seconds(lambda: window.bench.pick(range(2, 20_000))) < 3
    assert len(window.measured.selected_rows()) == 19_998
    window.plots.show_tab("Residuals")
    assert seconds(window.plots.residuals.grab) < 3


# --- settings ---


def test_functions_are_chosen_and_the_last_one_stays(opened: ModelPage) -> None:
    boxes = opened.settings_pane._boxes
    assert [text for text, box in boxes.items() if box.isChecked()] == ["1/p", "1/sqrt(p)"]
    boxes["1/sqrt(p)"].click()
    boxes["1"].click()
    assert fit_of(opened).functions == ("1/p", "1")
    assert fit_of(opened).sse == pytest.approx(141.9980, abs=1e-4)
    boxes["1"].click()
    boxes["1/p"].click()
    assert fit_of(opened).functions == ("1/p",) and boxes["1/p"].isChecked()
    assert opened.actions_by_id["undo"].text() == "Undo fit 1/p" and not opened.settings_pane.best.isChecked()
    opened.settings_pane.best.click()
    assert opened.bench.snapshot.project.settings.functions == ()
    assert [text for text, box in boxes.items() if box.isChecked()] == ["1/p", "1/sqrt(p)"]
    opened.settings_pane.best.click()
    assert opened.bench.snapshot.project.settings.functions == ("1/p", "1/sqrt(p)")


def test_a_function_of_ones_own_and_its_error(qtbot: QtBot, opened: ModelPage) -> None:
    pane = opened.settings_pane
    qtbot.keyClicks(pane.function, "__import__('os')")
    qtbot.keyClick(pane.function, Qt.Key.Key_Return)
    assert pane.fault.isVisible() and "is not understood" in pane.fault.text()
    assert fit_of(opened).functions == ("1/p", "1/sqrt(p)")
    pane.function.clear()
    qtbot.keyClicks(pane.function, "log2(p) / p^0.9")
    assert not pane.fault.isVisible()
    qtbot.keyClick(pane.function, Qt.Key.Key_Return)
    assert fit_of(opened).functions == ("1/p", "1/sqrt(p)", "log2(p)/p^0.9")
    assert pane._boxes["log2(p)/p^0.9"].isChecked()
    trigger(opened, "undo")
    assert "log2(p)/p^0.9" not in pane._boxes


def test_kind_response_reference_and_sign(opened: ModelPage) -> None:
    pane = opened.settings_pane
    whole = fit_of(opened)
    pane.reference.setCurrentText("SP")
    assert fit_of(opened).work[0, 2] == 1 and fit_of(opened).sse == pytest.approx(whole.sse, rel=1e-9)
    pane.response.setCurrentIndex(pane.response.findData("log"))
    assert "of the logarithms" in opened.summary.text()
    trigger(opened, "undo")
    assert pane.response.currentData() == "t'"
    pane.positive.click()
    assert fit_of(opened).n == 116 and opened.actions_by_id["undo"].text() == "Undo keep parameters positive"
    trigger(opened, "individual")
    assert fit_of(opened).kind == "individual" and not pane.reference.isEnabled()
    assert opened.actions_by_id["individual"].isChecked() and not opened.actions_by_id["joint"].isChecked()
    assert len(column(opened.tables.parameters, "Value")) == 32
    opened.plots.show_tab("Speeds and works")
    assert "choose it on the left" in opened.plots.speeds.content.empty


# --- plots, tables, answers ---


def test_every_plot_has_titles_words_and_something_to_see(opened: ModelPage) -> None:
    plots = opened.plots
    opened.bench.leave_cells_out()
    for title, shown in (("Scaling", (plots.scaling,)), ("Residuals", (plots.residuals,)),
                         ("Quantile-quantile", (plots.quantiles,)), ("Shares", (plots.shares,)),
                         ("Speeds and works", (plots.speeds, plots.works))):  # fmt: skip
        plots.show_tab(title)
        for chart in shown:
            assert chart.content.series and chart.accessibleDescription() and chart.content.x.title, title
    plots.show_tab("Cells")
    for measure in ("points", "share", "error", "left out"):
        plots.measure.setCurrentIndex(plots.measure.findData(measure))
        cells = plots.cells.content.cells
        assert cells is not None and np.isfinite(cells.values).all(), measure
    plots.show_tab("Scaling")
    titles = set()
    for k in range(plots.quantity.count()):
        plots.quantity.setCurrentIndex(k)
        for several in range(plots.several.count()):
            plots.several.setCurrentIndex(several)
            drawn = [series for series in plots.scaling.content.series if series.kind == "points"]
            assert len(drawn) == (1, 4, 4)[several]
            titles.add(plots.scaling.content.y.title)
            assert not plots.scaling.grab().isNull()
    assert len(titles) == 4
    plots.log.click()
    assert not plots.scaling.content.x.log


def test_extrapolation_is_dashed_and_p_is_marked(opened: ModelPage) -> None:
    opened.plots.p.setValue(4096)
    content = opened.plots.scaling.content
    assert content.verticals == ((4096.0, "p = 4096"),)
    dashed = [series for series in content.series if series.dashed]
    assert dashed[-1].x[-1] == pytest.approx(4096) and dashed[-1].x[0] == pytest.approx(144)
    solid = next(series for series in content.series if series.label == "Fitted")
    assert not solid.dashed and solid.x[-1] == pytest.approx(144)
    opened.plots.show_tab("Shares")
    assert opened.plots.shares.content.verticals == ((4096.0, "p = 4096"),)


def test_a_cell_of_the_map_a_bar_and_a_prediction_are_looked_at(qtbot: QtBot, opened: ModelPage) -> None:
    opened.plots.show_tab("Cells")
    cells = opened.plots.cells
    place = cells.place_of((2, 3)).toPoint()
    qtbot.mouseClick(cells.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert opened.bench.snapshot.cell == (2, 3) and cells.content.cells.selected == (2, 3)
    opened.plots.show_tab("Speeds and works")
    bars = next(s for s in opened.plots.speeds.content.series if s.kind == "bars")
    place = QRectF(*opened.plots.speeds.current_layout.bars(bars)[0]).center().toPoint()
    qtbot.mouseClick(opened.plots.speeds.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert opened.bench.snapshot.cell == (2, 0)
    opened.tables.show_tab("Predictions")
    opened.tables.predictions.selectRow(7)
    assert opened.bench.snapshot.cell == (1, 3)
    assert opened.tables.predictions.selected_rows() == [7]


def test_all_pairs_and_a_double_click_takes_one(qtbot: QtBot, opened: ModelPage) -> None:
    trigger(opened, "rank")
    view = opened.tables.ranking
    assert column(view, "Functions")[:2] == ["1/p + 1/sqrt(p)", "1/p + 1"] and view.model().rowCount() == 28
    box = view.visualRect(view.model().index(1, 0)).center()
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=box)
    qtbot.mouseDClick(view.viewport(), Qt.MouseButton.LeftButton, pos=box)
    assert fit_of(opened).functions == ("1/p", "1")
    view.setCurrentIndex(view.model().index(0, 0))
    qtbot.keyClick(view, Qt.Key.Key_Return)
    assert fit_of(opened).functions == ("1/p", "1/sqrt(p)")
    assert view.model().rowCount() == 28, "the ranking stays"


def test_negative_parameters_are_coloured_and_named(window: ModelPage) -> None:
    rows = [f"{c},{s},{p},{k * 50 / p - 0.2 + 0.001 * p}" for k, c in ((1, "a"), (2, "b")) for s in "xy"
            for p in (1, 2, 4, 8, 16, 32)]  # fmt: skip
    window.bench.open("code,system,p,time\n" + "\n".join(rows))
    window.bench.set_functions(["1/p", "1"])
    said = column(window.tables.parameters, "Different from zero?")
    row = next(k for k, text in enumerate(said) if "below zero" in text)
    ink = window.tables.parameters.model().index(row, 3).data(Qt.ItemDataRole.ForegroundRole)
    assert ink == QColor(LIGHT.error) and "below zero" in window.summary.text()
    window.plots.show_tab("Speeds and works")
    assert any(s.colour == "error" for s in window.plots.works.content.series)


def test_answers_in_words_follow_cell_and_p(opened: ModelPage) -> None:
    trigger(opened, "answers")
    text = child(opened, QTextBrowser, "answers").toPlainText()
    assert "How long does BT on IBM SP2 take on 256 processors?" in text
    assert "Outside the measured p, 1 to 144" in text and "95 % probability" in text
    assert "SP from p = 30 (95 %:" in text and "SP stops first" in text
    opened.plots.system.setCurrentText("Cray T3D")
    opened.plots.p.setValue(100)
    text = opened.tables.answers.toPlainText()
    assert "BT on Cray T3D take on 100 processors" in text and "Outside" not in text.split("\n")[1]


# --- traces ---


def test_runs_are_added_from_traces(opened: ModelPage, tmp_path: Path) -> None:
    trigger(opened, "add_runs")
    dialog = child(opened, AddRuns)
    assert [dialog.code.itemText(k) for k in range(dialog.code.count())] == ["BT", "LU", "SP", "MG"]
    ok = dialog.buttons.button(QDialogButtonBox.StandardButton.Ok)
    assert not ok.isEnabled() and not dialog.phase.isEnabled()
    path = tmp_path / "run.csv"
    path.write_text("0 2\n3 1\n4 0\n", encoding="utf-8")
    dialog.add_paths([path, path])
    assert dialog.files.count() == 1 and ok.isEnabled()
    ok.click()
    assert "holds t'" in opened.frame.problem_bar.sentence, "times do not go into a table of t'"
    columns = {"code": "code", "system": "system", "p": "p", "time": "time_s_by_eq11"}
    opened.bench.open(example_table(), columns)
    trigger(opened, "add_runs")
    dialog = opened.findChildren(AddRuns)[-1]
    dialog.add_paths([path])
    dialog.measured.setCurrentIndex(1)
    dialog.n.setValue(2)
    dialog.buttons.button(QDialogButtonBox.StandardButton.Ok).click()
    assert column(opened.measured, "Note")[-1] == "phase 1 of 2 (constant)"
    assert column(opened.measured, "Time")[-1] == "3.000" and fit_of(opened).n == 117


# --- looks ---


@pytest.mark.parametrize(("theme", "percent"), [(DARK, 100), (LIGHT, 200)], ids=["dark", "large"])
def test_themes_and_text_sizes_reach_everything(opened: ModelPage, theme, percent: int) -> None:
    opened.frame.choose_text_size(percent)
    opened.frame.choose_theme("dark" if theme.dark else "light")
    QApplication.processEvents()
    image: QImage = opened.plots.scaling.grab().toImage()
    assert image.pixelColor(2, 2).name() == QColor(theme.background).name()
    palette = opened.measured.palette()
    assert palette.color(palette.ColorRole.Base).name() == QColor(theme.background).name()
    assert opened.plots.scaling.width() > 200 and opened.tables.parameters.height() > 40
    names = {w.accessibleName() for w in opened.findChildren(QWidget)}
    assert {"Measurements", "Parameters", "Scaling", "Cells", "Answers", "Processors p"} <= names
    opened.frame.choose_text_size(100)


def test_every_command_has_a_tip_and_its_own_keys() -> None:
    keys = [key for command in MODEL_COMMANDS for key in command.keys]
    assert len(keys) == len(set(keys)) and all(command.tip for command in MODEL_COMMANDS)


def test_keys_are_listed_from_the_table(opened: ModelPage) -> None:
    trigger(opened, "keys")
    text = [t for t in opened.findChildren(QTextBrowser) if t.objectName() != "answers"][-1].toPlainText()
    for command in MODEL_COMMANDS:
        if command.keys:
            assert command.keys[0] in text, command.id


def test_the_window_remembers_its_place(qtbot: QtBot, opened: ModelPage, settings: Settings) -> None:
    opened.frame.resize(780, 640)
    opened.split.setSizes([420, 360])
    size, parts = opened.frame.size(), opened.split.sizes()
    opened.frame.close()
    again = page_of(settings)
    qtbot.addWidget(again.frame)
    again.frame.show()
    again.open_path(example_table())
    QApplication.processEvents()
    assert again.frame.size() == size
    assert again.split.sizes() == pytest.approx(parts, abs=2)
    again.frame.close()
    delete(again)


def test_a_picture_goes_to_the_clipboard(opened: ModelPage) -> None:
    trigger(opened, "copy_picture")
    image = QGuiApplication.clipboard().image()
    assert image.width() == 2 * opened.plots.scaling.width() and image.pixelColor(4, 4).name() == "#ffffff"


def test_real_threads_deliver_and_cancel_acts(qtbot: QtBot, qapp: QApplication, settings: Settings) -> None:
    window = alone(ModelPage, settings)
    qtbot.addWidget(window.frame)
    window.frame.show()
    window.open_example()
    qtbot.waitUntil(lambda: window.bench.snapshot.fit is not None, timeout=60_000)
    window.rank()
    window.frame.task_list.lines[0].cancel.click()
    qtbot.waitUntil(lambda: not window.bench.busy, timeout=60_000)
    assert window.bench.snapshot.task is None and window.bench.snapshot.fit is not None
    window.frame.close()
    delete(window)
