"""The real window of comparisons, without a display: what the user does, and what is then shown and kept."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, QPointF, QSettings, Qt
from PySide6.QtGui import QPainter, QTextDocument
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QFileDialog,
    QLabel,
    QPushButton,
    QToolButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

from desktop import cli
from desktop.core.contrast import AXES, Cell, Phased, align, place
from desktop.core.matching import NONE
from desktop.core.phases import fit
from desktop.core.units import unbroken
from desktop.data.project_file import read
from desktop.data.trace_rows import phase_rows
from desktop.resources import samples
from desktop.ui.compare.runs_view import RunsView, _shares
from desktop.ui.compare.systems_dialog import SystemsDialog
from desktop.ui.compare_page import ComparePage
from desktop.ui.exporting import FigureDialog
from desktop.ui.frame import Frame
from desktop.ui.model_page import ModelPage
from desktop.ui.plots import scales
from desktop.ui.plots.plot_menu import AxisDialog
from desktop.ui.plots.time_plot import TimePlot
from desktop.ui.settings import Settings
from desktop.ui.style import apply
from desktop.ui.theme import DARK, LIGHT
from desktop.ui.trace_page import TracePage
from desktop.ui.windows import Windows
from desktop.workbench import model
from desktop.workbench.model import Workspace
from tests.data_layer.test_phase_scaling import program
from tests.strategies import curves
from tests.ui.scene import beside

# A tool tip raises its window, which the offscreen platform cannot.
pytestmark = [
    pytest.mark.usefixtures("own_places"),
    pytest.mark.qt_log_ignore("propagateSizeHints", "does not support raise", "does not support grabbing"),
]


def curve(path: Path, *parts: tuple[float, float]) -> Path:
    widths, levels = zip(*parts, strict=True)
    times = np.append(0.0, np.cumsum(widths))
    path.write_text("".join(f"{t:g},{h:g}\n" for t, h in zip(times, [*levels, 0], strict=True)))
    return path


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    """The same program on 8 and on 16 processors, with one phase more there."""
    return [
        curve(tmp_path / "small.csv", (4, 8), (6, 2), (5, 6)),
        curve(tmp_path / "large.csv", (3, 16), (5, 4), (2, 9), (4, 12)),
    ]


def settle(qtbot: QtBot, main: TracePage) -> None:
    def quiet() -> bool:
        comparing = main.comparing
        return (
            not main.workbench.busy
            and not main.desk.projects.busy
            and not (comparing and comparing.bench.busy)
        )

    qtbot.waitUntil(quiet, timeout=60_000)
    assert main.workbench.snapshot.problem is None


def add(qtbot: QtBot, main: TracePage, path: Path, n: int) -> None:
    """Another run for the project, with so many constant phases."""
    if main.workbench.snapshot.document is None:
        main.open_path(path)
    else:
        main.desk.projects.add_run(path)
    settle(qtbot, main)
    main.workbench.set_model("constant")
    main.workbench.set_n(n)
    settle(qtbot, main)


@pytest.fixture
def main(qtbot: QtBot, settings: Settings) -> Iterator[TracePage]:
    made = Frame(settings).trace
    qtbot.addWidget(made.frame, before_close_func=Frame.close_unasked)
    made.frame.use_theme(LIGHT)
    made.frame.show()
    yield made
    made.frame.close_unasked()


def compare(qtbot: QtBot, main: TracePage) -> ComparePage:
    window = beside(ComparePage, main)
    qtbot.addWidget(window.frame)
    window.frame.resize(1280, 900)
    window.frame.show()
    settle(qtbot, main)
    return window


@pytest.fixture
def window(qtbot: QtBot, main: TracePage, runs: list[Path]) -> ComparePage:
    add(qtbot, main, runs[0], 3)
    add(qtbot, main, runs[1], 4)
    made = compare(qtbot, main)
    assert made.snapshot.alignment is not None and made.snapshot.problem == ""
    return made


def rows(window: ComparePage) -> list[list[int]]:
    assert window.snapshot.alignment is not None
    return window.snapshot.alignment.rows.tolist()


def choose(window: ComparePage, line: int, phase: int) -> None:
    """In the combo box of a line of the table."""
    window.table.setCurrentIndex(window.table.frames.index(line, 0))
    window.actions_by_id["choose_phase"].trigger()
    box = window.table.findChildren(QComboBox)[-1]  # one that is closed may not be gone yet
    box.setCurrentIndex(box.findText("none" if phase == NONE else str(phase + 1)))
    box.activated.emit(box.currentIndex())
    QApplication.processEvents()


def centre(window: ComparePage, run: int, phase: int) -> QPoint:
    """Of a phase in its strip."""
    view, placement = window.view, window.snapshot.placement
    assert placement is not None
    x = view._map().x(float(placement.spans[run][phase].mean()))
    return QPointF(x, view._strips[run].center().y()).toPoint()


def drag(qtbot: QtBot, view: TimePlot, start: QPoint, end: QPoint) -> None:
    left = Qt.MouseButton.LeftButton
    qtbot.mousePress(view.viewport(), left, pos=start)
    for k in (1, 2, 3):
        qtbot.mouseMove(view.viewport(), start + (end - start) * k / 3)
    qtbot.mouseRelease(view.viewport(), left, pos=end)


# --- what it needs


def test_it_says_what_it_needs_and_offers_to_open(
    qtbot: QtBot, main: TracePage, runs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    window = compare(qtbot, main)
    assert "two runs or more" in window._needs.text() and window.open.text() == "Open…"
    assert not window.actions_by_id["copy_table"].isEnabled() and not window.view.isVisible()
    add(qtbot, main, runs[0], 3)
    assert "has one, small.csv" in window._needs.text()
    monkeypatch.setattr(QFileDialog, "getOpenFileNames", staticmethod(lambda *_: ([str(runs[1])], "")))
    window.open.click()
    settle(qtbot, main)
    assert window.view.isVisible() and len(window.snapshot.entries) == 2
    assert window.windowTitle().startswith("small.csv, large.csv")
    window.bench.show_run(window.snapshot.entries[0].key, False)
    assert not window.view.isVisible() and "choose them under Runs" in window._needs.text()


# --- what is shown


def test_phases_are_matched_with_a_gap_and_the_table_says_the_same_as_the_command(
    window: ComparePage, runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rows(window) == [[0, 0], [1, 1], [NONE, 2], [2, 3]]
    assert window.table.frames.rowCount() == 2 * (1 + 4)
    assert cli.run(["compare", *map(str, runs), "-n", "4", "--model", "constant", "--csv"]) == 0
    printed = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    window.export_to(tmp_path / "t.csv")
    assert list(csv.DictReader((tmp_path / "t.csv").open())) == printed
    window.actions_by_id["copy_table"].trigger()
    lines = QApplication.clipboard().text().splitlines()
    assert len(lines) == 1 + len(printed) and lines[0].split("\t")[4] == "Length [s]"
    for line, cell in zip(lines[1:], printed, strict=True):
        assert line.split("\t")[4] == cell["duration_s"]


def painted(plot: QWidget) -> bytes:
    """What a plot shows; the picture lives until its pixels are copied, which do not keep it."""
    image = plot.grab().toImage()
    return bytes(image.constBits())


def test_every_axis_and_look_is_drawn(qtbot: QtBot, window: ComparePage) -> None:
    pictures = set()
    for axis in ("absolute", "start", "normalised", "phases"):
        box = window.findChild(QComboBox, "axis")
        assert box is not None
        box.setCurrentIndex(box.findData(axis))
        box.activated.emit(box.currentIndex())
        settle(qtbot, window._owner)
        assert window.snapshot.placement is not None and window.snapshot.placement.axis == axis
        assert window.actions_by_id[f"axis_{axis}"].isChecked()
        pictures.add(painted(window.view))
    assert len(pictures) >= 3, "both runs begin at 0, the other axes differ"
    for name in ("side_by_side", "share", "relative"):
        toggle = window.findChild(QCheckBox, name)
        assert toggle is not None
        toggle.click()
        settle(qtbot, window._owner)
        assert getattr(window.snapshot.comparison, name) and toggle.isChecked()
        before = len(pictures)
        pictures.add(painted(window.view))
        assert len(pictures) == before + 1
    assert len(window.view._lanes) == 2
    window.frame.use_theme(DARK)
    pictures.add(painted(window.view))
    white = window.view.picture().pixelColor(2, 2)
    assert white.name() == "#ffffff", "pictures for others are on white"
    dialog = AxisDialog(window.view)
    qtbot.addWidget(dialog)
    upright = dialog.forms[1]
    upright.free.setChecked(False)
    upright.low.setText("0.5")
    upright.high.setText("0.75")
    assert dialog.apply()
    shown = window.view.description()
    assert shown is not None
    for lane in shown.lanes[:2]:  # below them are the differences
        assert (lane.axis.low * lane.axis.factor, lane.axis.high * lane.axis.factor) == (0.5, 0.75)
    assert painted(window.view) not in pictures


def test_one_axis_for_all_and_the_cursor_tells_every_run(qtbot: QtBot, window: ComparePage) -> None:
    window.bench.change(side_by_side=True)
    view = window.view
    view.zoom_to(2.0, 6.0)
    assert view.visible_range() == (2.0, 6.0)
    lines = view.reading(3.5)
    assert lines[1:] == ["small.csv: 8, phase 1", "large.csv: 4, phase 2 (−4)"]
    assert view.reading(14.5)[2] == "large.csv: 0 (−6)", "after its end a run computes nothing"
    view._select(4.0, 6.0)
    assert window._selected.text() == "Selected, processors on average: small.csv 2.000, large.csv 4.000"
    for _ in range(2):
        window.actions_by_id["nothing"].trigger()
    assert view.selection is None and window._selected.text() == ""
    window.actions_by_id["back"].trigger()
    assert view.visible_range() == (0.0, 15.0)


def test_low_lanes_side_by_side_share_the_name_of_their_axis(
    qtbot: QtBot, window: ComparePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []
    draw = scales.level_axis

    def noted(painter: QPainter, lane: scales.LaneBox, *rest: Any, **how: Any) -> None:
        drawn.append(rest[2])
        draw(painter, lane, *rest, **how)

    monkeypatch.setattr(scales, "level_axis", noted)
    window.frame.resize(900, 440)
    window.bench.change(side_by_side=True)
    qtbot.waitUntil(lambda: len(window.view._lanes) == 2)
    drawn.clear()
    window.view.grab()
    assert window.view._lanes[0].rect.height() < 5 * window.view.fontMetrics().height()
    assert drawn.count("Processors") == 1 and drawn.count("") == 1, drawn


def test_the_arrow_to_tools_without_room_is_seen_in_the_dark(
    qtbot: QtBot, qapp: QApplication, window: ComparePage
) -> None:
    try:
        apply(qapp, DARK)
        window.use_theme(DARK)
        window.frame.resize(700, 600)
        arrow = window._bar.findChild(QToolButton, "qt_toolbar_ext_button")
        assert isinstance(arrow, QToolButton)
        qtbot.waitUntil(arrow.isVisible)
        picture = arrow.grab().toImage()
        light = [
            picture.pixelColor(x, y).lightness()
            for x in range(picture.width())
            for y in range(picture.height())
        ]
        assert max(light) - min(light) > 100
    finally:
        apply(qapp, LIGHT)


def test_a_curve_shows_in_its_colour_where_it_is(qtbot: QtBot, window: ComparePage) -> None:
    image = window.view.grab().toImage()
    view, dpr = window.view, window.view.devicePixelRatioF()
    lane, m = view._lanes[0], view._map()
    for run, (t, level) in enumerate([(7.0, 2.0), (4.5, 4.0)]):
        x, y = round(m.x(t) * dpr), lane.y(level) * dpr
        near = {
            image.pixelColor(x + i, round(y) + j).name() for i in range(-14, 15) for j in (-2, -1, 0, 1, 2)
        }
        assert view.colour(run).name() in near
    assert view.colour(0) != view.colour(1)


compared = st.lists(
    st.builds(
        lambda curve, n: Phased("a run", curve, fit(curve, n, "mixed")),
        curves(max_steps=30, unit=1e-6),
        st.integers(1, 12),
    ),
    min_size=2,
    max_size=6,
)


def test_whatever_runs_can_be_painted(qtbot: QtBot) -> None:
    """An exception while painting fails the test, and so does a picture of few colours."""
    view = RunsView()
    qtbot.addWidget(view)
    size = st.integers(330, 1000)

    @settings(deadline=None, max_examples=25)
    @given(compared, st.sampled_from(AXES), st.booleans(), st.booleans(), size, st.floats(0, 8))
    def paint(runs: list[Phased], axis: str, share: bool, flag: bool, size: int, deep: float) -> None:
        view.resize(size, 1330 - size)
        view.set_look(side_by_side=flag, relative=share)
        alignment = align(runs, len(runs) - 1)
        view.set_runs(alignment, place(alignment, axis, share=share))
        view.grab()
        a, b = view.visible_range()
        view.zoom_to(a, a + (b - a) * 10**-deep)
        view.set_cursor(a)
        view.set_row(0)
        image = view.grab().toImage()
        places = ((x, y) for x in range(0, image.width(), 3) for y in range(0, image.height(), 5))
        assert len({image.pixel(x, y) for x, y in places}) > 3
        assert len(view.reading(a)) == 1 + len(runs)

    paint()


# --- correcting a match


def test_a_match_is_corrected_in_the_table_undone_and_made_anew(qtbot: QtBot, window: ComparePage) -> None:
    choose(window, 9, 2)  # the line of large.csv in the row of phase 3
    settle(qtbot, window._owner)
    assert [2, 2] in rows(window) and [NONE, 3] in rows(window)
    told = [(cell.label, cell.run) for cell in window.snapshot.cells]
    line = told.index(("phase 3", "large.csv"))
    assert window.table.frames.index(line, 2).data() == "3 (by hand)"
    assert "match" in window.actions_by_id["undo"].text().lower()
    window.actions_by_id["undo"].trigger()
    settle(qtbot, window._owner)
    assert rows(window) == [[0, 0], [1, 1], [NONE, 2], [2, 3]]
    window.actions_by_id["redo"].trigger()
    settle(qtbot, window._owner)
    assert [2, 2] in rows(window)
    button = next(b for b in window.findChildren(QPushButton) if b.text() == "Match again" and b.isVisible())
    button.click()
    settle(qtbot, window._owner)
    assert rows(window) == [[0, 0], [1, 1], [NONE, 2], [2, 3]] and not window.snapshot.comparison.matched


def test_no_partner_and_a_gap_that_is_filled(qtbot: QtBot, window: ComparePage) -> None:
    choose(window, 5, NONE)  # phase 2 of small.csv has none in large.csv
    settle(qtbot, window._owner)
    assert [1, NONE] in rows(window)
    label = "phase 3 of large.csv"
    line = next(
        k for k, cell in enumerate(window.snapshot.cells) if (cell.label, cell.run) == (label, "small.csv")
    )
    choose(window, line, 1)  # the gap of small.csv is its phase 2 after all
    settle(qtbot, window._owner)
    assert [1, 2] in rows(window)


def test_a_match_is_dragged(qtbot: QtBot, window: ComparePage) -> None:
    window.view.grab()
    drag(qtbot, window.view, centre(window, 1, 2), centre(window, 0, 2))
    settle(qtbot, window._owner)
    assert [2, 2] in rows(window)
    drag(qtbot, window.view, centre(window, 0, 2), centre(window, 1, 3))
    settle(qtbot, window._owner)
    assert [2, 3] in rows(window)
    before = rows(window)
    drag(qtbot, window.view, centre(window, 1, 0), centre(window, 1, 3))
    assert rows(window) == before, "two phases of one run are no match"
    qtbot.mouseClick(window.view.viewport(), Qt.MouseButton.LeftButton, pos=centre(window, 1, 1))
    assert window.table.currentIndex().row() // 2 == 1 + next(k for k, r in enumerate(before) if r[1] == 1)


def test_a_match_waits_for_its_number_of_phases(qtbot: QtBot, window: ComparePage) -> None:
    choose(window, 9, 2)
    settle(qtbot, window._owner)
    window._owner.workbench.set_n(2)
    settle(qtbot, window._owner)
    assert window.snapshot.alignment is not None and window.snapshot.alignment.runs[1].fit.n == 2
    assert window.frame.notice_bar.isVisible() and window.snapshot.outdated == 1
    window._owner.workbench.set_n(4)
    settle(qtbot, window._owner)
    assert not window.frame.notice_bar.isVisible() and [2, 2] in rows(window)


def test_its_figure_is_exported(qtbot: QtBot, window: ComparePage, tmp_path: Path) -> None:
    window.actions_by_id["export_figure"].trigger()
    dialog = window.findChild(FigureDialog)
    assert dialog is not None and dialog.figure.currentData() == "comparison"
    qtbot.waitUntil(lambda: not dialog.lane.busy, timeout=60_000)
    dialog.with_csv.setChecked(True)
    dialog.save_to(tmp_path / "c.svg")
    qtbot.waitUntil(lambda: not dialog.lane.busy, timeout=60_000)
    assert {p.name for p in tmp_path.glob("c[.-]*")} == {
        "c.svg", "c-cells.csv", "c-run1.csv", "c-run2.csv", "c-difference2.csv",
    }  # fmt: skip
    assert "small.csv (reference)" in (tmp_path / "c.svg").read_text()
    dialog.close()


# --- the project, the factor model, real traces


def test_the_project_keeps_it(
    qtbot: QtBot, window: ComparePage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    main, file = window._owner, tmp_path / "p.phasewright"
    choose(window, 9, 2)
    window.bench.change(axis="phases", reference=window.snapshot.entries[1].key)
    settle(qtbot, main)
    main.desk.projects.save(file)
    kept = read(file, Workspace, model.names()).comparison
    assert kept == window.snapshot.comparison and len(kept.matched) == 1
    content = json.loads(file.read_text())
    del content["tree"]["comparison"]
    file.write_text(json.dumps(content))
    assert read(file, Workspace, model.names()).comparison == model.Comparison(), "older files have none"
    main.desk.projects.save(tmp_path / "q.phasewright")
    while main.workbench.snapshot.document is not None:  # the traces that stand in tabs one by one
        main.close_shown()
        settle(qtbot, main)
    assert not window.view.isVisible()
    main.open_path(tmp_path / "q.phasewright")
    settle(qtbot, main)
    window.frame.go_to(window)
    settle(qtbot, main)
    assert window.view.isVisible() and window.snapshot.comparison == kept
    assert window.reference.currentText() == "large.csv"


def test_durations_feed_the_factor_model(
    qtbot: QtBot, qapp: QApplication, runs: list[Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, str(tmp_path))
    QSettings.setDefaultFormat(QSettings.Format.IniFormat)
    windows = Windows(qapp)
    windows.open([runs[0]])
    try:
        main = windows._open[0].trace
        settle(qtbot, main)
        add(qtbot, main, runs[1], 4)
        main.desk.projects.show_run(0)
        settle(qtbot, main)
        main.workbench.set_model("constant")
        main.workbench.set_n(3)
        settle(qtbot, main)
        main.actions_by_id["compare"].trigger()
        settle(qtbot, main)
        comparing = main.comparing
        assert isinstance(comparing, ComparePage)
        main.actions_by_id["compare"].trigger()
        assert len(main.frame.of_kind("compare")) == 1, "one for each project"
        comparing.to_model_button.click()
        table = main.frame.current
        assert isinstance(table, ModelPage)
        qtbot.waitUntil(lambda: not table.bench.busy, timeout=60_000)
        project = table.bench.snapshot.project
        assert project.table is not None
        told = [(row.code, row.system, row.p, row.time, bool(row.reason)) for row in project.table.rows]
        assert told == [
            ("phase 1", "all runs", 8, 4, False), ("phase 1", "all runs", 16, 3, False),
            ("phase 2", "all runs", 8, 6, False), ("phase 2", "all runs", 16, 5, False),
            ("phase 3 of large.csv", "all runs", 16, 2, True),
            ("phase 3", "all runs", 8, 5, False), ("phase 3", "all runs", 16, 4, False),
        ]  # fmt: skip
        table.bench.add_rows(project.table.rows[:1])
        assert table.bench.history.undo_label == "add 1 row"
        table.bench.undo()
        assert table.bench.snapshot.project.table == project.table
        main.frame.choose_theme("dark")
        for page in (main, table):
            main.frame.go_to(page)
            assert page._theme is DARK
        main.frame._leaving = True  # nobody is there to be asked whether to save
        windows.quit()
        assert main.comparing is None, "it closes with its project"
    finally:
        for window in tuple(windows._open):
            window.close()
        QSettings.setDefaultFormat(QSettings.Format.NativeFormat)
    assert windows._open == []


def test_the_first_words_say_why_a_run_takes_longer_as_the_command_does(
    qtbot: QtBot, main: TracePage, capsys: pytest.CaptureFixture[str]
) -> None:
    traces = [s.path for s in samples() if s.path.suffix == ".trf"]
    for path in traces:
        main.open_path(path) if main.workbench.snapshot.document is None else main.desk.projects.add_run(path)
        settle(qtbot, main)
    window = compare(qtbot, main)
    qtbot.waitUntil(lambda: "per processor" in window.answer.text(), timeout=20_000)
    assert cli.run(["compare", *map(str, traces), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["sentences"]
    assert window.answer.text() == unbroken("\n".join(said)) and window.answer.isVisible()
    assert window.answer.textFormat() is Qt.TextFormat.PlainText, "names are of strangers"
    window.bench.change(reference=window.snapshot.keys[1])
    first = said[0].split(" takes ")[0]
    qtbot.waitUntil(
        lambda: f" than {first}" in window.answer.text() and "per processor" in window.answer.text()
    )


def test_names_of_regions_in_the_tip_are_no_markup(qtbot: QtBot, main: TracePage) -> None:
    window = compare(qtbot, main)
    said = ("a takes 1 s", "by f(A &)", "by it's", "by <b>g</b>", "by h")  # more than are shown
    window.bench._show(sentences=said)
    document = QTextDocument()
    document.setHtml(window.answer.toolTip())
    assert document.toPlainText().splitlines() == list(said)


def test_bundled_traces_compare(qtbot: QtBot, main: TracePage) -> None:
    traces = [s.path for s in samples() if s.path.suffix == ".trf"]
    assert len(traces) == 2
    for path in traces:
        main.open_path(path) if main.workbench.snapshot.document is None else main.desk.projects.add_run(path)
        settle(qtbot, main)
    window = compare(qtbot, main)
    alignment, placement = window.snapshot.alignment, window.snapshot.placement
    assert alignment is not None and placement is not None
    assert [run.curve.capacity for run in alignment.runs] == [8, 16]
    areas = placement.areas[1]
    assert areas is not None
    integrals = [run.curve.integral for run in alignment.runs]
    assert areas.signed == pytest.approx(integrals[1] - integrals[0])
    whole = [cell for cell in window.snapshot.cells if cell.label == "run"]
    assert isinstance(whole[1], Cell) and whole[1].work_ratio == pytest.approx(integrals[1] / integrals[0])
    main.workbench.set_n(3)
    settle(qtbot, main)
    alignment = window.snapshot.alignment
    assert alignment is not None and alignment.runs[1].fit.n == 3, "it follows"


@given(
    wanted=st.lists(st.floats(0, 1e3), min_size=1, max_size=6),
    room=st.floats(-10, 3e3),
)
@settings(deadline=None, max_examples=60)
def test_names_share_their_room_so_that_only_long_ones_give_way(wanted: list[float], room: float) -> None:
    shares = _shares(wanted, room)
    assert sum(shares) == pytest.approx(min(sum(wanted), max(room, 0)), abs=1e-6)
    short = [share for share, asked in zip(shares, wanted, strict=True) if share < asked - 1e-9]
    assert all(share >= max(shares) - 1e-6 for share in short)


@pytest.mark.parametrize("part", ["bench", "modeller"])
def test_a_problem_is_shown_until_it_is_dismissed(qtbot: QtBot, window: ComparePage, part: str) -> None:
    """Of the runs, and of their phases over p."""
    of = getattr(window, part)
    of.complain("the file of the second run cannot be read")
    QApplication.processEvents()  # the bar finds its place
    assert window.frame.problem_bar.isVisible()
    said = [label.text() for label in window.frame.problem_bar.findChildren(QLabel)]
    assert any("the second run cannot be read" in text for text in said)
    qtbot.mouseClick(
        next(b for b in window.frame.problem_bar.findChildren(QPushButton) if b.text() == "Dismiss"),
        Qt.MouseButton.LeftButton,
    )
    assert not window.frame.problem_bar.isVisible() and of.snapshot.problem == ""


def test_phases_over_p_are_one_click_away(qtbot: QtBot, main: TracePage, tmp_path: Path) -> None:
    """Three phases of curves on 4, 8, 16, 32 processors: one does not scale, and says so."""
    for p in (4, 8, 16, 32):
        path = curve(tmp_path / f"run_{p}.csv", (2, 1), (160 / p, p), (8 / p + 0.5, p / 2))
        add(qtbot, main, path, 3)
    window = compare(qtbot, main)
    qtbot.mouseClick(window.over_p_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not window.modeller.busy and window.phases.chart.content.shown, timeout=60_000)
    assert window.phases.isVisible() and not window.view.isVisible()
    said = window.phases.words.text()
    assert "Phase 1" in said and "keeps 100 %" in said and "first to stop scaling" in said
    names = [one.label for one in window.phases.chart.content.series if one.kind == "band"]
    assert [name.split(",")[0] for name in names] == ["Phase 1", "Phase 2", "Phase 3"]
    frame = window.phases.table.frames.frame
    assert frame is not None and frame["p"][0] == 64 and frame["low"][0] < frame["high"][0]
    window.phases.p.setValue(1000)
    assert "ten times" not in said and "p = 1 000 is more than 10 times" in window.phases.words.text()
    window.phases.measure.setCurrentIndex(window.phases.measure.findData("cost"))
    assert "Processors × time" in window.phases.chart.content.y.title
    qtbot.mouseClick(window.phases.back, Qt.MouseButton.LeftButton)
    assert window.view.isVisible() and not window.over_p_button.isChecked()


def test_two_sentences_on_each_of_three_runs_are_shown_and_more_are_counted(window: ComparePage) -> None:
    four = tuple(f"{name} takes longer." for name in "abcd")
    window.bench._show(sentences=four)
    assert window.answer.text() == "\n".join(four) and not window.answer.toolTip()
    window.bench._show(sentences=(*four, "e takes longer.", "f as long."))
    assert window.answer.text() == "\n".join((*four, "… and 2 more: point here"))
    assert "e takes longer." in window.answer.toolTip()


def test_why_there_is_no_model_of_phases_stands_on_its_page_only(
    qtbot: QtBot, main: TracePage, tmp_path: Path
) -> None:
    for name, p in (("a", 4), ("b", 8), ("c", 8)):
        add(qtbot, main, curve(tmp_path / f"{name}.csv", (2, 1), (160 / p, p), (8 / p + 0.5, p / 2)), 3)
    window = compare(qtbot, main)
    window.bench.change(hidden=())
    qtbot.mouseClick(window.over_p_button, Qt.MouseButton.LeftButton)
    said = "Phases over p need runs on 3 or more different numbers of processors, these are on 4, 8."
    qtbot.waitUntil(lambda: window.phases.words.text() == said, timeout=60_000)
    assert not window.frame.problem_bar.isVisible()
    qtbot.mouseClick(window.phases.back, Qt.MouseButton.LeftButton)
    assert window.view.isVisible() and not window.frame.problem_bar.isVisible()
    qtbot.mouseClick(window.over_p_button, Qt.MouseButton.LeftButton)
    assert window.phases.words.text() == said


def test_runs_of_two_systems_are_named_in_a_dialog_and_modelled_together(
    qtbot: QtBot, main: TracePage, tmp_path: Path
) -> None:
    """B is twice as fast as A; which run was on which is asked, kept, and said to the factor model."""
    for name, speed in (("a", 1), ("b", 2)):
        for p in (4, 8, 16):
            times = (2 / speed, 1), (160 / p / speed, p), (8 / p / speed + 0.5 / speed, p / 2)
            add(qtbot, main, curve(tmp_path / f"{name}_{p}.csv", *times), 3)
    window = compare(qtbot, main)
    window.choose_systems()
    dialog = window.findChild(SystemsDialog)
    assert dialog is not None and len(dialog.fields) == 6
    for field, name in zip(dialog.fields.values(), "AAABBB", strict=True):
        field.setText(f" {name} ")
    dialog.accept()
    qtbot.waitUntil(lambda: not window.snapshot.refining, timeout=60_000)
    assert [run.system for run in window.snapshot.alignment.runs] == list("AAABBB")
    assert sorted({row.system for row in phase_rows(window.snapshot.alignment)}) == ["A", "B"]
    assert {row.system for row in phase_rows(window.snapshot.alignment, True)} == {"all runs"}
    qtbot.mouseClick(window.over_p_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not window.modeller.busy and window.phases.chart.content.shown, timeout=120_000)
    view = window.phases
    assert "B is 2.0" in view.words.text() and "times as fast as A on 4 processors" in view.words.text()
    assert "Speeds of B over those of A" in view.words.text() and view.system.isVisible()
    frame = view.table.frames.frame
    assert frame is not None and set(frame["system"]) == {"A", "B"}
    assert "On B, " not in view.chart.content.title
    tops = []
    for k in range(2):
        view.system.setCurrentIndex(k)
        view.system.activated.emit(k)
        tops.append([one for one in view.chart.content.series if one.kind == "points"][-1].y)
    assert np.allclose(tops[0], 2 * tops[1], rtol=0.02)
    held = main.desk.projects.workspace.comparison.systems
    assert [name for _, name in held] == list("AAABBB")
    window.choose_systems()
    again = [one for one in window.findChildren(SystemsDialog) if one.isVisible()][-1]
    assert [field.text() for field in again.fields.values()] == list("AAABBB")
    for field in again.fields.values():
        field.clear()
    again.accept()
    qtbot.waitUntil(
        lambda: not window.modeller.busy and "system" not in view.table.frames.frame, timeout=120_000
    )
    assert not view.system.isVisible() and main.desk.projects.workspace.comparison.systems == ()


def test_phases_over_p_of_traces_have_efficiencies_and_fit_a_small_screen(
    qtbot: QtBot, main: TracePage, tmp_path: Path
) -> None:
    for p in (2, 4, 8, 16):
        path = program(tmp_path, p)
        if main.workbench.snapshot.document is None:
            main.open_path(path)
        else:
            main.desk.projects.add_run(path)
        settle(qtbot, main)
    window = compare(qtbot, main)
    window.frame.resize(1366, 768)
    qtbot.mouseClick(window.over_p_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not window.modeller.busy and window.phases.chart.content.shown, timeout=60_000)
    view = window.phases
    assert (
        view.words.text().startswith("<b>Phase 1, input, ") and "same structure events" in view.words.text()
    )
    assert (window.frame.width(), window.frame.height()) == (1366, 768)
    for shown, y in (
        ("time", "Time (s)"), ("share", "Part of the run (%)"), ("cost", "Processors × time (proc·s)"),
        ("efficiency", "Efficiency (%)"),
    ):  # fmt: skip
        view.measure.setCurrentIndex(view.measure.findData(shown))
        content = view.chart.content
        assert (content.x.title, content.y.title) == ("Processors p", y)
    frame = view.table.frames.frame
    assert frame is not None and frame["parallel"].notna().all()
    run = frame[(frame["phase"] == "whole run") & (frame["p"] == 16)].iloc[0]
    # 8 s of sweeps and 0.42 s of one processor alone, which took 1.015 s on 16
    assert run["parallel"] == pytest.approx(8.42 / (16 * 1.015), rel=0.03)
    lines = [one for one in view.chart.content.series if one.kind == "line"]
    assert [one.label for one in lines][:2] == ["Parallel efficiency", "Load balance"] and len(lines) == 5
