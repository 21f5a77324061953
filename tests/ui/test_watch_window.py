"""The page of a run that goes on, and the same in a terminal, over a folder of records that grows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from desktop import cli
from desktop.commands.watch import picture, summary
from desktop.data.following import Followed
from desktop.data.recording import Recorded
from desktop.progress import Progress
from desktop.ui.frame import Frame
from desktop.ui.plots.chart import Chart
from desktop.ui.plots.curve_view import CurveView
from desktop.ui.plots.raster import Raster
from desktop.ui.settings import Settings
from desktop.ui.watch_page import WatchPage
from desktop.workbench import watching
from desktop.workbench.jobs import INTERVAL
from tests.data_layer.recordings import written

pytestmark = pytest.mark.usefixtures("own_places")

CLOCK = {"tick1": 10**8, "monotonic1": 10**8, "size": 3}
MS = 1_000_000


def grow(folder: Path, calls: int, *, done: bool = False) -> None:
    """Three ranks that first compute half of the time, then a tenth of it."""
    for rank in range(3):
        records: list[tuple[int, ...]] = [(100, MS, 0, 0, -1, 0, 0)]
        for k in range(calls):
            part = 5 if k < 100 else 9
            records.append(((10 * k + 10 - part + 2) * MS, (part - 1) * MS, 2, 0, 0, 7, 8))
        written(folder, records, rank=rank, state=int(done), **CLOCK)


@pytest.fixture
def page(qtbot: QtBot, settings: Settings, no_thread_left: None, tmp_path: Path) -> Iterator[WatchPage]:
    frame = Frame(settings)
    qtbot.addWidget(frame)
    frame.resize(1366, 768)
    frame.show()
    grow(tmp_path / "run", 60)
    frame.watch(tmp_path / "run", None)
    made = frame.current
    assert isinstance(made, WatchPage)
    qtbot.waitUntil(lambda: made.snapshot.fit is not None, timeout=30_000)
    yield made
    frame.close_unasked()


def test_a_run_is_watched_until_it_is_a_trace(qtbot: QtBot, page: WatchPage, tmp_path: Path) -> None:
    frame, first = page.frame, page.snapshot.followed
    assert first.curve is not None and first.curve.mean == pytest.approx(1.8, abs=0.1)
    assert page.snapshot.fit is not None and page.phases.frames.rowCount() == page.snapshot.fit.n
    assert "MPI_Recv" in page.accounts.text()
    assert not page.stop.isVisible(), "a program that others run"
    grow(tmp_path / "run", 300)
    qtbot.waitUntil(lambda: page.snapshot.followed.latest_s > 2.9, timeout=30_000)
    assert page.curve.visible_range()[1] > 2.9  # who sees all goes on seeing all
    fit = page.snapshot.fit
    assert fit is not None and fit.n == 2
    # The hand on n, by the keyboard; what was suggested comes back.
    page.slider.setFocus()
    qtbot.keyClick(page.slider, Qt.Key.Key_Right)
    assert page.snapshot.n == 3 and page.number.text() == "3 (chosen)"
    page.actions_by_id["suggested"].trigger()
    assert page.snapshot.n is None and page.number.text() == "2 (suggested)"
    # Who looks back, or pauses, is left where he is.
    page.curve.zoom_to(0.5, 1.5)
    page.actions_by_id["pause"].trigger()
    grow(tmp_path / "run", 330)
    page.watcher.look()
    qtbot.waitUntil(lambda: not page.watcher._looks.busy, timeout=30_000)
    assert page.snapshot.followed.latest_s < 3.1
    page.actions_by_id["pause"].trigger()
    grow(tmp_path / "run", 400)
    qtbot.waitUntil(lambda: page.snapshot.followed.latest_s > 3.9, timeout=30_000)
    assert page.curve.visible_range() == (0.5, 1.5)
    grow(tmp_path / "run", 401, done=True)
    # The picture stays until that of the trace is there.
    qtbot.waitUntil(lambda: page.snapshot.over, timeout=30_000)
    assert frame.current is page and "its trace is being opened" in page._selected.text()
    qtbot.waitUntil(lambda: frame.current is frame.trace, timeout=60_000)
    assert frame.trace.workbench.snapshot.run is not None
    qtbot.waitUntil(lambda: page not in frame.all_pages and not frame.trace.busy, timeout=60_000)
    run = frame.trace.workbench.snapshot.run
    assert run is not None and run.curve.duration == pytest.approx(4.01, abs=0.02)


def test_before_the_first_calls_there_is_an_empty_page(
    qtbot: QtBot, settings: Settings, no_thread_left: None, tmp_path: Path
) -> None:
    frame = Frame(settings)
    qtbot.addWidget(frame)
    frame.resize(1366, 768)
    frame.show()
    (tmp_path / "run").mkdir()
    frame.watch(tmp_path / "run", None)
    made = frame.current
    assert isinstance(made, WatchPage)
    qtbot.waitUntil(lambda: not made.watcher._looks.busy, timeout=30_000)
    painted = QImage(made.curve.viewport().size(), QImage.Format.Format_RGB32)
    painted.fill(Qt.GlobalColor.red)
    made.curve.viewport().render(painted)
    reds = (levels(painted)[..., :3] == (0, 0, 255)).all(axis=2)
    assert not reds.any(), "every pixel is painted"
    assert "first calls" in made.curve._without
    frame.close_unasked()


def test_what_is_done_before_the_program_runs_is_said(
    qtbot: QtBot, settings: Settings, no_thread_left: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = Event()

    def recorded(_command: list[str], folder: Path, job: Progress) -> Recorded:
        job.step(0, 1, "compiling the recorder")
        assert go.wait(60)
        grow(folder, 60, done=True)
        for _ in range(4):
            job.step(0, 0, "")
            Event().wait(INTERVAL)
        return Recorded(folder, 0)

    monkeypatch.setattr(watching, "record", recorded)
    frame = Frame(settings)
    qtbot.addWidget(frame)
    frame.show()
    frame.watch(tmp_path / "run", ["a.out"])
    made = frame.current
    assert isinstance(made, WatchPage)
    qtbot.waitUntil(lambda: made._selected.text() == "compiling the recorder, once", timeout=30_000)
    go.set()
    qtbot.waitUntil(lambda: "compiling" not in made._selected.text(), timeout=30_000)
    qtbot.waitUntil(lambda: frame.current is frame.trace and not frame.trace.busy, timeout=60_000)
    frame.close_unasked()


def test_what_nobody_sees_is_looked_at_less_often(page: WatchPage, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[bool] = []
    page._timer.stop()
    monkeypatch.setattr(page.watcher, "look", lambda: looks.append(page.isVisible()))

    def ticks(many: int) -> list[bool]:
        looks.clear()
        for _ in range(many):
            page._look()
        return looks

    assert ticks(10) == [True] * 10
    page.frame.hide()
    assert ticks(10) == [False] * 2 and ticks(3) == []
    page.frame.show()
    assert ticks(1) == [True], "at once when it is seen again"


def test_damaged_records_are_said(qtbot: QtBot, page: WatchPage, tmp_path: Path) -> None:
    written(tmp_path / "run", [], rank=2, version=9)
    qtbot.waitUntil(lambda: "version 9" in page.snapshot.problem, timeout=30_000)
    assert any("version 9" in told.sentence for told in page.messages.values())


def test_in_a_terminal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    grow(tmp_path / "run", 300, done=True)
    assert cli.run(["watch", "--text", str(tmp_path / "run")]) == 0
    said = capsys.readouterr().out
    assert "3 of 3 processes" in said and "on average" in said
    assert cli.run(["watch", "--text", "-o", "x", str(tmp_path / "run")]) == 1
    assert "leave out --output" in capsys.readouterr().err
    assert cli.run(["watch", "--text"]) == 1
    assert "there is no command" in capsys.readouterr().err


def test_a_picture_of_characters_is_the_curve() -> None:
    from desktop.core.curve import StepCurve

    curve = StepCurve(np.arange(41) * 0.1, np.repeat([8.0, 2.0], 20), 8.0)
    seen = Followed(curves={"computing": curve}, names=("a\x1b[31m",), processes=1, expected=1)
    lines = picture(seen, 46, 13)
    assert lines[0].endswith("█" * 20 + " " * 20) and lines[7].endswith("█" * 40)
    assert lines[8].strip().startswith("|1") and lines[8][6 + 20 : 6 + 22] == "|2"
    assert "8, 2" in lines[9] and "5 of 8 processors" in summary(seen)


def levels(image: QImage) -> np.ndarray:
    """(height, width, 4) of an image's bytes."""
    image = image.convertToFormat(QImage.Format.Format_RGB32)
    return np.array(image.constBits()).reshape(image.height(), image.width(), 4).astype(int)


def test_the_residual_stays_where_it_is_in_the_legend(qtbot: QtBot, page: WatchPage, tmp_path: Path) -> None:
    page._timer.stop()
    view, words, middle = page.curve, set(), None
    for calls, n in ((70, 1), (110, 3), (210, 12), (420, None)):
        qtbot.waitUntil(lambda: not page.watcher._looks.busy, timeout=30_000)
        grow(tmp_path / "run", calls)
        page.watcher.look()
        qtbot.waitUntil(lambda: not page.watcher._looks.busy, timeout=30_000)
        page.watcher.choose(n=n)
        view.viewport().grab()
        described = view.description()
        assert described is not None
        words.add(tuple(entry.words for entry in described.legend))
        middle = middle or next(r for r, key in view._legend._places if key == "residual lane").center()
        qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=middle.toPoint())
        assert view.residual_first
        view.set_residual_first(False)
    assert len({len(" ".join(texts)) for texts in words}) > 1, "the legend got longer meanwhile"


def test_what_is_painted_in_parts_is_the_whole_picture(
    qtbot: QtBot, page: WatchPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page._timer.stop()
    parts: list[int] = []
    put = Raster.put
    monkeypatch.setattr(Raster, "put", lambda *args: (parts.append(args[2]), put(*args))[1])
    frame, whole = page.frame, []
    for calls in (75, 80, 90, 91, 100, 130, 140, 180, 185, 186, 260):
        qtbot.waitUntil(lambda: not page.watcher._looks.busy, timeout=30_000)
        grow(tmp_path / "run", calls)
        if calls == 91:
            page.watcher.choose(n=3)
        if calls == 185:  # the legend says no extremes, another look of the lanes
            page.watcher.choose(n=1, model="constant")
        if calls == 100:  # asked for in the legend, instead of the overview
            assert not page.curve._residual.rect.height()
            page.curve.set_residual_first(True)
            QApplication.processEvents()
            assert page.curve._residual.rect.height() > 0
        end = page.curve.navigation.end
        page.watcher.look()
        since = calls / 100 - 0.02
        qtbot.waitUntil(lambda since=since: page.snapshot.followed.latest_s > since, timeout=30_000)
        qtbot.waitUntil(lambda: not page.watcher._looks.busy, timeout=30_000)
        QApplication.processEvents()
        window = frame.screen().grabWindow(frame.winId()).toImage()
        shown, seen = page.snapshot, page.snapshot.followed
        assert seen.curve is not None and shown.fit is not None
        curve, rows = CurveView(one_beside=True), Chart("")
        curve.set_residual_first(page.curve.residual_first)
        for made, like in ((curve, page.curve), (rows, page.rows)):
            qtbot.addWidget(made)
            made.setFont(like.font())
            made.set_theme(frame.theme)
            made.resize(like.size())
        curve.grow(seen.curve, seen.curves, shown.fit, seen.until_s)
        rows.set_content(page.rows.content)
        for made, like in ((curve, page.curve), (rows, page.rows)):
            at = QRect(like.viewport().mapTo(frame, QPoint(0, 0)), like.viewport().size())
            painted = made.viewport().grab().toImage()
            # A gradient may differ by rounding where it stands elsewhere.
            assert np.abs(levels(window.copy(at)) - levels(painted)).max() <= 1, (type(made).__name__, calls)
        whole.append(end != page.curve.navigation.end)
    assert whole.count(True) >= 4 and whole.count(False) >= 6 and len(parts) >= 6
