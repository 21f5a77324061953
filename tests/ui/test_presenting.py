"""Showing results to others from the real window: pictures, exported figures, reports, the presentation."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QFontMetricsF, QGuiApplication, QImage, QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QApplication, QLabel, QSlider, QWidget
from pytestqt.qtbot import QtBot

from desktop.data.chart import Content
from desktop.data.material import Material
from desktop.resources import samples
from desktop.ui import figures
from desktop.ui.exporting import ExportDialog, FigureDialog, ReportDialog
from desktop.ui.frame import Frame
from desktop.ui.presentation import KEYS, Presentation
from desktop.ui.settings import Settings
from desktop.ui.theme import DARK
from desktop.ui.trace_page import TracePage
from desktop.workbench.jobs import Job
from desktop.workbench.model import NamedView, ReportChoices, View

LEVELS = (2.0, 7.0, 4.0, 8.0)
STEPS = 50


@pytest.fixture
def window(
    qtbot: QtBot, own_places: None, settings: Settings, no_thread_left: None, tmp_path: Path
) -> Iterator[TracePage]:
    """A window with a curve of four levels, a second each."""
    rng = np.random.default_rng(7)
    level = np.repeat(LEVELS, STEPS) + rng.choice([0.0, 1.0], 4 * STEPS, p=[0.8, 0.2])
    file = tmp_path / "four levels.csv"
    times = np.arange(4 * STEPS + 1) / STEPS
    file.write_text("".join(f"{t:.6f},{h:g}\n" for t, h in zip(times, [*level, 0.0], strict=True)))
    made = Frame(settings).trace
    qtbot.addWidget(made.frame)
    made.frame.resize(1280, 720)
    made.frame.show()
    made.open_path(file)
    settle(qtbot, made)
    yield made
    made.frame.close()
    QApplication.processEvents()


def settle(qtbot: QtBot, window: TracePage) -> None:
    qtbot.waitUntil(lambda: not window.busy, timeout=60_000)


def trigger(window: TracePage, command: str) -> None:
    action = window.actions_by_id[command]
    assert action.isEnabled(), command
    action.trigger()


def dialog(qtbot: QtBot, window: TracePage, command: str, kind: type[ExportDialog]) -> Any:
    trigger(window, command)
    found = window.findChild(kind)
    assert found is not None
    qtbot.waitUntil(lambda: not found.lane.busy, timeout=30_000)
    return found


def test_a_copied_picture_is_white_and_twice_as_fine_whatever_the_theme(window: TracePage) -> None:
    window.frame.use_theme(DARK)
    window.show_panel("phases")
    window.frame.activateWindow()
    for chosen in (window.curve_view, window.panel("phases").epsilon_plot):
        chosen.setFocus()
        assert window.focusWidget() is chosen
        trigger(window, "copy_picture")
        image = QGuiApplication.clipboard().image()
        assert image.width() == pytest.approx(2 * chosen.width(), abs=1)
        assert image.pixelColor(1, image.height() // 2).lightness() > 250
        assert chosen._theme is DARK, "the window keeps its own"


def test_a_figure_is_exported_with_its_data(qtbot: QtBot, window: TracePage, tmp_path: Path) -> None:
    made: FigureDialog = dialog(qtbot, window, "export_figure", FigureDialog)
    made.choose("curve")
    made.wide.setValue(120)
    made.high.setValue(60)
    made.points.setValue(7)
    made._words["title"].setText("Edited <title>")
    made.style_box.setCurrentIndex(made.style_box.findData("patterns"))
    assert not made.with_csv.isChecked(), "what nobody asked for is not written"
    made.with_csv.setChecked(True)

    def twice_as_wide() -> bool:
        shown = made.preview.pixmap().size()
        return shown.height() > 0 and abs(shown.width() / shown.height() - 2) < 0.02

    qtbot.waitUntil(twice_as_wide)
    for kind in ("svg", "pdf", "png"):
        made.format.setCurrentIndex(made.format.findData(kind))
        assert made.dpi.isEnabled() == (kind == "png")
        made.save_to(tmp_path / f"figure.{kind}")
        qtbot.waitUntil(lambda: not made.lane.busy, timeout=30_000)
        assert "figure-curve.csv" in made.status.text()
    svg = (tmp_path / "figure.svg").read_text(encoding="utf-8")
    assert 'width="120mm" height="60mm"' in svg and "Edited &lt;title&gt;" in svg
    assert (tmp_path / "figure.pdf").read_bytes()[:5] == b"%PDF-"
    image = QImage(str(tmp_path / "figure.png"))
    assert (image.width(), image.height()) == (round(120 / 25.4 * 300), round(60 / 25.4 * 300))
    with (tmp_path / "figure-phases.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["mean"]) for row in rows] == [row.mean for row in window.workbench.snapshot.rows]
    made.copy()
    assert QGuiApplication.clipboard().image().width() == round(120 / 25.4 * 192)
    made.save_to(tmp_path / "no folder" / "figure.svg")
    qtbot.waitUntil(lambda: not made.lane.busy, timeout=30_000)
    assert "Nothing was written" in made.status.text()
    made.close()


def test_a_report_is_made_and_told_as_a_command(qtbot: QtBot, window: TracePage, tmp_path: Path) -> None:
    window.workbench.set_model("constant")
    window.workbench.set_n(3)
    settle(qtbot, window)
    made: ReportDialog = dialog(qtbot, window, "report", ReportDialog)
    made.copy_command()
    words = QGuiApplication.clipboard().text()
    assert words.startswith("phasewright report") and words.endswith("--model constant -n 3")
    made.figures["residual"].setChecked(False)
    assert all(check.isChecked() for check in made.tables.values())
    made.tables["formulas"].setChecked(False)
    boxes = made.tables["formulas"].isEnabled
    assert boxes()
    made.format.setCurrentIndex(made.format.findData("pptx"))
    assert (made.appendix.isChecked(), boxes()) == (False, False), (
        "slides are the story, which has no use for it"
    )
    made.appendix.click()
    assert boxes()
    for kind, head in (("html", b"<!DOCTYPE html>"), ("pdf", b"%PDF-"), ("pptx", b"PK")):
        made.save_to(tmp_path / f"r.{kind}")
        qtbot.waitUntil(lambda: not made.lane.busy, timeout=60_000)
        assert (tmp_path / f"r.{kind}").read_bytes().startswith(head), made.status.text()
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 3 and "--plots curve,stack,epsilon,timeline,phases" in page
    assert "Formulas" not in page and "<h3>Breakpoints</h3>" in page
    # The page in which n is chosen holds all that it can, and says the words that make it again.
    made.format.setCurrentIndex(made.format.findData("live"))
    assert not boxes() and not made.figures["curve"].isEnabled()
    made.save_to(tmp_path / "live.html")
    qtbot.waitUntil(lambda: not made.lane.busy, timeout=60_000)
    live = (tmp_path / "live.html").read_text(encoding="utf-8")
    assert "DecompressionStream" in live and "-o live.html --model constant -n 3 --live</pre>" in live
    made.format.setCurrentIndex(made.format.findData("pptx"))
    made.copy_command()
    # A template is the user's, for all projects; one that cannot be used is named.
    made.user_files["pptx"].setValue(str(tmp_path / "r.html"))
    made.copy_command()
    assert QGuiApplication.clipboard().text().endswith(f"--template {tmp_path / 'r.html'}")
    assert window.settings.template == str(tmp_path / "r.html") and not made.ground.isEnabled()
    made.save_to(tmp_path / "own.pptx")
    qtbot.waitUntil(lambda: not made.lane.busy, timeout=60_000)
    assert "r.html: is no template of slides" in made.status.text() and not (tmp_path / "own.pptx").exists()
    made.user_files["pptx"].setValue("")
    made.copy_command()
    # What was chosen is the project's, and what the next dialog begins with.
    kept = window.workbench.snapshot.project.report
    assert kept == ReportChoices("pptx", without=frozenset({"residual", "table formulas"}), appendix=True)
    again = ReportDialog(window.workbench.snapshot, lambda call: call(), window)
    assert again.choices == kept and not again.tables["formulas"].isChecked()
    again.close()
    # Closing in the midst of it ends the work and leaves no file.
    made.save_to(tmp_path / "late.pptx")
    made.close()
    QApplication.processEvents()
    assert not [p for p in tmp_path.iterdir() if p.name.startswith("late") and p.suffix != ".pptx"]


@pytest.fixture
def presentation(qtbot: QtBot, window: TracePage) -> Iterator[Presentation]:
    trigger(window, "present")
    shown = window.presentation
    assert shown is not None and shown.isFullScreen()
    shown.showNormal()  # offscreen, the screen is smaller than any projector
    yield shown
    if window.presentation is not None:
        window.presentation.close()
        QApplication.processEvents()


def keys(qtbot: QtBot, shown: Presentation, *words: Any) -> None:
    for word in words:
        if isinstance(word, str):
            qtbot.keyClicks(shown, word)
        else:
            qtbot.keyClick(shown, word)


@pytest.mark.parametrize("size", [(1920, 1080), (1280, 720)])
def test_it_is_read_from_the_back_of_a_room(
    qtbot: QtBot, presentation: Presentation, size: tuple[int, int]
) -> None:
    presentation.resize(*size)
    assert QFontMetricsF(presentation._font()).capHeight() >= size[1] / 40
    look = presentation._look("all")
    # The figure's smallest text is that size too, and none is drawn smaller than its em.
    em = look.points * 25.4 / 72 * size[1] / 190
    capital = QFontMetricsF(presentation._font()).capHeight() / presentation._font().pixelSize()
    assert em * capital >= size[1] / 40 - 0.5
    ink = figures.ink(look)
    assert (ink.ground, ink.text) == ("#ffffff", "#000000")
    picture = presentation.grab().toImage()
    assert picture.pixelColor(2, 2).name() == "#ffffff"
    fit = [
        (x, y)
        for x in range(0, size[0], 8)
        for y in range(size[1] // 4, size[1], 2)
        if picture.pixelColor(x, y).name() == ink.fit
    ]
    assert len(fit) > size[0] / 8, "the fit runs over the screen, more than two pixels thick"
    presentation.close()


def test_n_and_phases_are_in_the_speakers_hand(
    qtbot: QtBot, window: TracePage, presentation: Presentation
) -> None:
    bench = window.workbench
    n = bench.snapshot.project.phases.n
    presentation.resize(1280, 720)
    keys(qtbot, presentation, "]", "]", "[")
    assert bench.snapshot.project.phases.n == n + 1
    before = presentation.grab().toImage()
    wheel = QWheelEvent(
        QPointF(300, 300), QPointF(300, 300), QPoint(), QPoint(0, 240), Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(presentation, wheel)
    settle(qtbot, window)
    assert bench.snapshot.project.phases.n == n + 3
    assert presentation.grab().toImage() != before
    keys(qtbot, presentation, Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Left)
    assert bench.snapshot.project.view.phase == 0
    assert "Phase 1 of" in presentation.phase_text()
    keys(qtbot, presentation, Qt.Key.Key_PageDown)
    assert bench.snapshot.project.view.phase == 1, "without views, pages are phases"
    keys(qtbot, presentation, "z")
    row = bench.snapshot.rows[1]
    assert presentation.span is not None
    assert presentation.span[0] < row.start_s < row.end_s < presentation.span[1]
    keys(qtbot, presentation, Qt.Key.Key_Home, "n")
    assert presentation.span is None
    assert bench.snapshot.suggestion is not None
    assert bench.snapshot.project.phases.n == bench.snapshot.suggestion.n
    settle(qtbot, window)


def move(shown: Presentation, x: float, y: float, buttons: Qt.MouseButton = Qt.MouseButton.NoButton) -> None:
    place = QPointF(x, y)
    kind = QEvent.Type.MouseMove
    event = QMouseEvent(kind, place, place, Qt.MouseButton.NoButton, buttons, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(shown, event)


def test_the_slider_comes_with_the_mouse_and_goes(
    qtbot: QtBot, window: TracePage, presentation: Presentation
) -> None:
    slider = presentation.findChild(QSlider, "presented_n")
    assert slider is not None and not slider.isVisible()
    move(presentation, 200, 200)
    assert slider.isVisible() and slider.value() == window.workbench.snapshot.project.phases.n
    slider.setValue(7)
    assert window.workbench.snapshot.project.phases.n == 7
    presentation._idle.setInterval(1)
    move(presentation, 210, 200)
    qtbot.waitUntil(lambda: not slider.isVisible())
    assert presentation.cursor().shape() == Qt.CursorShape.BlankCursor
    settle(qtbot, window)


def test_the_pointer_follows_while_it_is_held(qtbot: QtBot, presentation: Presentation) -> None:
    presentation.resize(1280, 720)
    plain = presentation.grab().toImage()
    qtbot.keyPress(presentation, Qt.Key.Key_P)
    move(presentation, 500, 300)
    move(presentation, 600, 320)
    pointed = presentation.grab().toImage()
    assert pointed.pixelColor(600, 320).name() == "#e6003c"
    assert pointed.pixelColor(500, 300) != plain.pixelColor(500, 300), "it leaves a trail"
    qtbot.waitUntil(lambda: len(presentation._trail) == 1)
    qtbot.keyRelease(presentation, Qt.Key.Key_P)
    assert presentation.grab().toImage() == plain
    qtbot.mousePress(presentation, Qt.MouseButton.LeftButton, pos=QPoint(400, 200))
    assert presentation.grab().toImage().pixelColor(400, 200).name() == "#e6003c"
    qtbot.mouseRelease(presentation, Qt.MouseButton.LeftButton, pos=QPoint(400, 200))
    assert not presentation._pointing


def test_views_are_stepped_by_pages_and_numbers(
    qtbot: QtBot, window: TracePage, presentation: Presentation
) -> None:
    views = (
        NamedView(2, "The start", View(span=(0.0, 1.5))),
        NamedView(5, "The end", View(span=(2.5, 4.0), phase=1)),
    )
    bench = window.workbench
    bench._show(project=replace(bench.snapshot.project, views=views))
    keys(qtbot, presentation, Qt.Key.Key_PageDown)
    assert presentation.span == (0.0, 1.5)
    keys(qtbot, presentation, Qt.Key.Key_PageDown, Qt.Key.Key_PageDown)
    assert presentation.span == (2.5, 4.0) and bench.snapshot.project.view.phase == 1
    keys(qtbot, presentation, Qt.Key.Key_PageUp)
    assert presentation.span == (0.0, 1.5)
    keys(qtbot, presentation, "5")
    assert presentation.span == (2.5, 4.0)
    keys(qtbot, presentation, "7")
    assert presentation.span == (2.5, 4.0), "there is no view 7"
    bench._show(project=replace(bench.snapshot.project, views=()))
    presentation.grab()


def test_figures_ground_and_keys(qtbot: QtBot, window: TracePage, presentation: Presentation) -> None:
    presentation.resize(1280, 720)
    seen = []
    for _ in range(3):
        seen.append(presentation.figure)
        presentation.grab()
        keys(qtbot, presentation, Qt.Key.Key_Down)
    assert seen == ["curve", "residual", "epsilon"] and presentation.figure == "curve"
    plain = presentation.grab().toImage()
    keys(qtbot, presentation, "?")
    assert presentation.grab().toImage() != plain
    keys(qtbot, presentation, "?", "d")
    assert presentation.grab().toImage().pixelColor(2, 2).lightness() < 60
    told = " ".join(key for key, _ in KEYS)
    assert all(key in told for key in ("[", "Page", "Esc", "F11", "P,", "B", "S", "Z", "N", "D", "?"))


TWO_SCREENS = """
import sys
from pathlib import Path
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from desktop.ui.app import application
from desktop.ui.frame import Frame
from desktop.ui.settings import Settings
from desktop.ui.snapshot import _settle

application()
frame = Frame(Settings.passing())
page = frame.trace
frame.show()
page.open_path(Path(sys.argv[1]))
_settle(page)
page.actions_by_id["present"].trigger()
_settle(page)
shown, speaker = page.presentation, page.presentation.speaker
assert frame.screen().name() == speaker.screen().name() == "desk" and speaker.isVisible()
assert shown.screen().name() == "projector" and shown.isFullScreen()
assert shown.geometry() == shown.screen().geometry()
assert all(pane.width() > 400 and pane.height() > 100 for pane in speaker._panes)
suggested = speaker.notes.toPlainText()
QTest.keyClick(QApplication.focusWidget(), "]")  # as it comes up, keys are the presentation's
_settle(page)
assert page.workbench.snapshot.project.phases.n == page.workbench.snapshot.suggestion.n + 1
assert speaker.notes.toPlainText() == suggested and not page.workbench.snapshot.project.spoken
shown.begun -= 600
for shows in (None, "desk"):  # never where the audience is
    QTest.keyClick(shown, "s")
    _settle(page)
    speaker = shown.speaker
    assert shows == (None if speaker is None else speaker.screen().name())
assert speaker.clock.text().startswith("10:")  # since the presentation began
QTest.keyClick(shown, "s")
QApplication.instance().screenAdded.emit(shown.screen())  # as when a projector is there again
_settle(page)
speaker = shown.speaker
assert speaker.screen().name() == "desk" and shown.screen().name() == "projector" and shown.isFullScreen()
phases = []
for key in (Qt.Key.Key_PageDown, Qt.Key.Key_PageDown, Qt.Key.Key_PageUp):  # of a clicker
    QTest.keyClick(speaker.notes, key)
    _settle(page)
    phases.append(page.workbench.snapshot.project.view.phase)
    assert f"Phase {phases[-1] + 1} of" in speaker.words.text() and speaker.notes.toPlainText()
assert phases == [0, 1, 0], phases
shown.close()
_settle(page)
assert page.presentation is None
frame.close_unasked()
print("both screens")
"""


def test_of_two_screens_the_audience_has_one_and_the_speaker_the_other(tmp_path: Path) -> None:
    screens = [
        {"name": name, "x": x, "y": 0, "width": width, "height": height, "dpr": 1}
        | dict.fromkeys(("logicalDpi", "logicalBaseDpi"), 96)
        for name, x, width, height in (("desk", 0, 1366, 768), ("projector", 1366, 1920, 1080))
    ]
    (tmp_path / "screens.json").write_text(json.dumps({"screens": screens}))
    told = os.environ | {"QT_QPA_PLATFORM": f"offscreen:configfile={tmp_path / 'screens.json'}"}
    told |= {f"XDG_{name}_HOME": str(tmp_path / name) for name in ("STATE", "CONFIG")}
    words = [sys.executable, "-c", TWO_SCREENS, str(samples()[0].path)]
    done = subprocess.run(words, env=told, capture_output=True, text=True, timeout=240)
    assert done.stdout == "both screens\n", done.stderr


@pytest.mark.parametrize("key", [Qt.Key.Key_Escape, Qt.Key.Key_F11])
def test_it_is_left_by_a_key(
    qtbot: QtBot, window: TracePage, presentation: Presentation, key: Qt.Key
) -> None:
    assert window.actions_by_id["present"].isChecked()
    keys(qtbot, presentation, key)
    assert window.presentation is None and not window.actions_by_id["present"].isChecked()
    QApplication.processEvents()
    trigger(window, "present")
    assert window.presentation is not None
    window.workbench.close_document()
    assert window.presentation is None, "without a run there is nothing to present"


def test_the_dialog_says_what_it_is_for(qtbot: QtBot, window: TracePage) -> None:
    made = dialog(qtbot, window, "export_figure", FigureDialog)
    assert made.preview.accessibleName() == "Preview"
    labels = {label.text().replace("&", "") for label in made.findChildren(QLabel)}
    assert {"Figure", "Format", "Width", "Height", "Text size", "Style"} <= labels
    made.close()


def test_a_timeline_is_exported_for_a_range_and_by_region(
    qtbot: QtBot, own_places: None, settings: Settings, no_thread_left: None, tmp_path: Path
) -> None:
    """As the window shows it: the range, the set of colours, and what its colours stand for."""
    settings.colours = "tol"
    made = Frame(settings).trace
    qtbot.addWidget(made.frame)
    made.frame.resize(1280, 720)
    made.frame.show()
    made.open_path(samples()[-1].path)
    settle(qtbot, made)
    qtbot.waitUntil(lambda: not made.timeline.busy, timeout=60_000)
    made.timeline.view.set_by_region(True)
    nav = made.curve_view.navigation
    third = (nav.end - nav.start) / 3
    nav.show(nav.start + third, nav.end - third)
    shown: FigureDialog = dialog(qtbot, made, "export_figure", FigureDialog)
    assert shown.states.currentData() is True and not shown.states.isEnabled()
    shown.choose("timeline")
    shown.range.setCurrentIndex(1)
    qtbot.waitUntil(lambda: not shown.lane.busy, timeout=30_000)
    assert shown.states.isEnabled() and shown.look().colours == "tol"
    bars = shown._material.bars
    assert bars is not None and bars.shades
    assert bars.times[0] == pytest.approx(nav.a, abs=2 * bars.unit)
    assert bars.times[-1] == pytest.approx(nav.b, abs=2 * bars.unit)
    shown._words["title"].setText("Mine")
    shown.with_csv.setChecked(True)
    shown.save_to(tmp_path / "t.svg")
    qtbot.waitUntil(lambda: not shown.lane.busy, timeout=30_000)
    assert (tmp_path / "t-timeline.csv").read_text().startswith("row,processors,start_s,end_s,region,time_s")
    shown.states.setCurrentIndex(0)
    qtbot.waitUntil(lambda: not shown.lane.busy, timeout=30_000)
    assert shown._material.bars is not None and shown._material.bars.classes[0] == "computing"
    shown.close()
    begin = (round(nav.a / bars.unit) + 0.1) * bars.unit
    nav.show(begin, begin + 0.2 * bars.unit)
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)  # type: ignore[call-overload]  # of the first
    between: FigureDialog = dialog(qtbot, made, "export_figure", FigureDialog)
    qtbot.waitUntil(lambda: not between.lane.busy, timeout=30_000)
    between.choose("timeline")
    between.range.setCurrentIndex(1)
    qtbot.waitUntil(lambda: not between.lane.busy, timeout=30_000)
    assert between.status.text().startswith(f"Nothing was written: the range {begin:.9g} s to ")
    assert between.status.text().endswith("holds no tick of the trace, show more of it")
    between.close()
    presented_with_locations(qtbot, made)
    made.frame.close_unasked()
    QApplication.processEvents()


def presented_with_locations(qtbot: QtBot, window: TracePage) -> None:
    """Timeline and accounts follow n and the chosen phase, and are read only where they are shown."""
    trigger(window, "present")
    shown, bench = window.presentation, window.workbench
    assert shown is not None and shown._bars is None
    shown.showNormal()
    shown.resize(1280, 720)
    figure = lambda: shown.grab().toImage()  # noqa: E731
    keys(qtbot, shown, Qt.Key.Key_Home, Qt.Key.Key_Down)
    assert shown.figure == "timeline"
    for n in (2, 3):
        bench.set_n(n)
        qtbot.waitUntil(
            lambda: shown.drawn(shown.figure) is not None and not bench.snapshot.refining, timeout=60_000
        )
        drawn = shown.drawn(shown.figure)
        assert isinstance(drawn, Material) and drawn.bars is not None
        ends = bench.snapshot.fit.breaks
        off = np.abs(drawn.bars.times[:, None] - ends).min(axis=0)
        assert off.max() <= drawn.bars.unit, "columns end where phases do"
    keys(qtbot, shown, Qt.Key.Key_Down)
    assert shown.figure == "accounts"
    bench.select_phase(None)
    seen = []
    for phase in (None, 1):
        bench.select_phase(phase)
        qtbot.waitUntil(lambda: shown.drawn(shown.figure) is not None, timeout=60_000)
        drawn = shown.drawn(shown.figure)
        assert isinstance(drawn, Content) and 99 < sum(drawn.series[0].y) < 100.001
        seen.append((drawn.series[0].label, figure()))
    assert seen[0][0] == "Whole run" and "2" in seen[1][0] and seen[0][1] != seen[1][1]
    notes_for_the_speaker_alone(qtbot, window, shown)
    shown.close()
    assert shown.speaker is None, "it goes with the presentation"


def notes_for_the_speaker_alone(qtbot: QtBot, window: TracePage, shown: Presentation) -> None:
    """Sentences of the phase at first, then what was written; the audience sees neither."""
    bench = window.workbench
    qtbot.waitUntil(lambda: bench.snapshot.statistics.words is not None and not bench.snapshot.refining)
    start, end = bench.snapshot.fit.breaks[1:3].tolist()
    bench.annotate("Look at the halo", (start + end) / 2)
    before = shown.grab().toImage()
    keys(qtbot, shown, "s")
    view = shown.speaker
    assert view is not None
    view.resize(1280, 720)
    said = bench.snapshot.statistics.words.phases[1].sentence
    assert view.notes.toPlainText().startswith(said) and "Look at the halo" in view.notes.toPlainText()
    assert shown.grab().toImage() == before
    for name in ("curve", "timeline", "accounts"):
        qtbot.waitUntil(lambda: shown.drawn(name) is not None, timeout=60_000)  # noqa: B023
        pane = view.findChild(QWidget, f"speaker_{name}")
        picture = pane.grab().toImage()
        width, height = picture.width(), picture.height()
        spots = ((x, y) for x in range(0, width, 4) for y in range(0, height, 4))
        assert len({picture.pixelColor(*spot).name() for spot in spots}) > 4, f"{name} is drawn"
    view.notes.setPlainText("Say <this>")
    qtbot.keyClick(view.notes, Qt.Key.Key_PageDown)
    assert bench.snapshot.project.view.phase == 2 and "this" not in view.notes.toPlainText()
    keys(qtbot, view, Qt.Key.Key_Left)
    assert view.notes.toPlainText() == "Say <this>"
    assert [note.text for note in bench.snapshot.project.spoken] == ["Say <this>"]
    bench.select_phase(None)
    qtbot.waitUntil(lambda: bench.snapshot.statistics.words is not None, timeout=60_000)
    assert view.notes.toPlainText().startswith(bench.snapshot.statistics.words.paragraph)
    bench.select_phase(1)
    view.suggested.click()
    assert bench.snapshot.project.spoken == () and view.notes.toPlainText().startswith(said)
    for key in ("b", "."):
        keys(qtbot, view, key)
        assert (
            shown.grab().toImage().pixelColor(300, 300).name() == "#000000" and "black" in view.words.text()
        )
        keys(qtbot, view, key)
        assert shown.grab().toImage().pixelColor(2, 2).name() == "#ffffff"
    keys(qtbot, view, "s")
    assert shown.speaker is None and window.presentation is shown
    keys(qtbot, shown, "s")


def test_a_presentation_that_ends_while_it_reads_is_freed_in_the_windows_thread(
    qtbot: QtBot, window: TracePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, go = threading.Event(), threading.Event()

    def read(_snapshot: object, job: Job, _span: object) -> None:
        started.set()
        assert go.wait(10)
        job.step(0, 1)

    monkeypatch.setattr("desktop.ui.presentation.read_bars", read)
    window.present()
    shown = window.presentation
    shown.figure = "timeline"
    shown._redraw()
    assert started.wait(10)
    freed: list[threading.Thread] = []
    weakref.finalize(shown, lambda: freed.append(threading.current_thread()))
    shown.close()
    del shown
    qtbot.wait(100)  # Qt frees its part
    go.set()
    qtbot.waitUntil(lambda: bool(freed))
    assert freed == [threading.main_thread()]
