"""The timeline in the real window: one time with the curve, rows as asked, states as the events have them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QGuiApplication, QImage, QMouseEvent, QPainter, QRegion, QWheelEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from desktop.core import density, gantt
from desktop.data.clock import check_clocks
from desktop.data.events import Activity, Importer, Location, Region
from desktop.data.matching import links_of
from desktop.data.message_filter import MessageFilter
from desktop.data.store import Source, StoreWriter, open_store
from desktop.data.timeline import open_timeline
from desktop.data.utilization import keep
from desktop.errors import StoreError
from desktop.progress import Progress
from desktop.ui.exporting import material_of
from desktop.ui.frame import Frame
from desktop.ui.panels.views import NoteDialog
from desktop.ui.plots import timeline_tiles, timeline_view
from desktop.ui.plots.message_form import MessageForm
from desktop.ui.plots.notes import COLOURS
from desktop.ui.plots.plot_menu import AxisDialog
from desktop.ui.plots.timeline_pane import describe
from desktop.ui.plots.timeline_view import TimelineView, region_classes
from desktop.ui.settings import Settings
from desktop.ui.trace_page import TracePage
from desktop.workbench.model import Annotation
from tests.digests import TIMELINE

IMPORTER = Importer("made", "Made for tests", "1", lambda p, h: True, lambda p, s, g: None, lambda p: [p])
SPAN = 1_000_000  # ticks of a microsecond each: one second
RANKS, THREADS = 4, 2
#: One write to a file, far shorter than a pixel, on rank 2.
WRITE = 400_123


def write(path: Path, communicators: dict[str, str] | None = None) -> None:
    """Four ranks of two threads: main for all of the time, in it a receive in every tenth of it."""
    names = ("main", "MPI_Recv", "MPI_File_write", "MPI_Send", "MPI_Barrier")
    with StoreWriter(path, Source(str(path), path.name), IMPORTER, TIMELINE) as writer:
        writer.describe(ticks_per_second=1e6, notes={"communicator_names": communicators})
        for name in names:
            writer.region(Region(name, paradigm="mpi" if name.startswith("MPI") else ""))
        barrier = writer.text("Barrier")
        for rank in range(RANKS):
            for thread in range(THREADS):
                name = f"rank {rank} thread {thread}"
                writer.location(Location(10 * rank + thread, name, rank, thread, process=f"process {rank}"))
        for rank in range(RANKS):
            for thread in range(THREADS):
                index = rank * THREADS + thread
                first, idle = 10_000 * rank, 20_000 * (1 + rank) * (1 - thread)
                rows = [(first, 0, 0)]
                for k in range(10):
                    at = k * SPAN // 10 + 50_000
                    if idle:
                        rows += [(at, 0, 1), (at + min(idle, 49_000), 1, 1)]
                if (rank, thread) == (2, 0):
                    rows += [(WRITE, 0, 2), (WRITE + 3, 1, 2)]
                rows = sorted([*rows, (SPAN, 1, 0)])
                time, kind, region = (np.array(v) for v in zip(*rows, strict=True))
                writer.append("events", index, time=time, kind=kind.astype(np.uint8), region=region)
                if thread == 0:
                    ends = {"peer": 1, "communicator": 0, "tag": 7, "bytes": 2048, "request": 0}
                    if rank in (0, 1):
                        mine = ends | {"peer": THREADS * (1 - rank)}
                        at, what = (60_000, 0) if rank == 0 else (90_000, 3)
                        row = {"time": at, "kind": what} | mine
                        writer.append("messages", index, **{k: np.array([v]) for k, v in row.items()})
                    meeting = {"begin": 700_000, "end": 701_000, "operation": barrier, "communicator": 5}
                    meeting |= {"root": -1, "sent": 0, "received": 0}
                    writer.append("collectives", index, **{k: np.array([v]) for k, v in meeting.items()})
        writer.complete()
        with links_of(writer) as links:
            check_clocks(writer, Progress(), links.add)
        keep(writer, Progress())


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("timeline") / "made.h5"
    write(path)
    return path


@pytest.fixture
def window(qtbot: QtBot, own_places: None, settings: Settings, no_thread_left: None) -> Iterator[TracePage]:
    made = Frame(settings).trace
    qtbot.addWidget(made.frame)
    made.frame.resize(1280, 860)
    made.frame.show()
    yield made
    made.frame.close_unasked()


def settle(qtbot: QtBot, window: TracePage) -> None:
    qtbot.waitUntil(lambda: not window.busy, timeout=60_000)
    window.grab()
    qtbot.waitUntil(lambda: not window.busy, timeout=60_000)


def test_a_trace_in_the_place_of_another_is_seen_when_it_is_opened(
    qtbot: QtBot, window: TracePage, tmp_path: Path
) -> None:
    """``import --force -o`` replaces the file of a trace that a window shows."""
    path = tmp_path / "made.h5"
    write(path)
    window.open_path(path)
    settle(qtbot, window)
    before, first = window.workbench.snapshot, window.timeline._timeline
    assert before.document is not None and first is not None
    write(path, {"5": "another"})
    with pytest.raises(StoreError, match="has been replaced by another trace"):
        before.document.open_again()
    window.workbench.open(path)
    settle(qtbot, window)
    after, shown = window.workbench.snapshot.document, window.timeline._timeline
    assert after is not None and shown is not None
    assert shown.store.identity == after.identity != first.store.identity
    after.open_again().close()


@pytest.fixture
def opened(qtbot: QtBot, window: TracePage, trace: Path) -> TracePage:
    window.open_path(trace)
    settle(qtbot, window)
    assert window.workbench.snapshot.problem is None
    assert window.timeline.isVisible()
    return window


def send(
    view: TimelineView,
    kind: QEvent.Type,
    p: QPointF,
    button: Qt.MouseButton = Qt.MouseButton.LeftButton,
    modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier,
) -> None:
    held = Qt.MouseButton.NoButton if kind == QEvent.Type.MouseButtonRelease else button
    QApplication.sendEvent(
        view.viewport(), QMouseEvent(kind, p, view.mapToGlobal(p), button, held, modifiers)
    )


def drag(view: TimelineView, a: QPointF, b: QPointF) -> None:
    send(view, QEvent.Type.MouseButtonPress, a)
    for share in (0.4, 0.8, 1.0):
        send(view, QEvent.Type.MouseMove, a + share * (b - a))
    send(view, QEvent.Type.MouseButtonRelease, b)


def click(view: TimelineView, p: QPointF) -> None:
    send(view, QEvent.Type.MouseButtonPress, p)
    send(view, QEvent.Type.MouseButtonRelease, p)


def wheel(view: TimelineView, p: QPointF, turn: int, modifiers: Qt.KeyboardModifier) -> None:
    event = QWheelEvent(
        p, view.mapToGlobal(p), QPoint(), QPoint(0, turn), Qt.MouseButton.NoButton, modifiers,
        Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(view.viewport(), event)


def place(view: TimelineView, time_s: float, row: int) -> QPointF:
    return QPointF(view._map().x(time_s), view._y(row + 0.5))


def labels(window: TracePage) -> list[str]:
    rows = window.timeline.view.rows
    assert rows is not None
    return [("  " if row.level else "") + row.label for row in rows.rows]


def colour_at(window: TracePage, time_s: float, row: int) -> QColor:
    """In the upper half of a row, where no stripe is."""
    view = window.timeline.view
    image = view.grab().toImage()
    at = place(view, time_s, row)
    return image.pixelColor(round(at.x()), round(view._y(row + 0.3)))


def pixels(image: QImage) -> np.ndarray:
    """(height, width) the pixels of a picture."""
    plain = image.convertToFormat(QImage.Format.Format_RGB32)
    return np.frombuffer(plain.constBits(), np.uint32).reshape(image.height(), -1).copy()


def test_the_timeline_stands_on_the_axis_of_the_curve(qtbot: QtBot, opened: TracePage) -> None:
    curve, view = opened.curve_view, opened.timeline.view
    left = [
        w.mapTo(opened, QPoint(round(m.left), 0)).x() for w, m in ((curve, curve._map()), (view, view._map()))
    ]
    assert left[0] == left[1] and curve._map().width == view._map().width
    assert curve.visible_range() == view.visible_range()
    view.zoom_to(0.25, 0.5)
    assert curve.visible_range() == (0.25, 0.5)
    curve.zoom_to(0.1, 0.2)
    assert view.visible_range() == (0.1, 0.2)
    opened.actions_by_id["show_all"].trigger()
    assert view.visible_range() == curve.visible_range() == (0.0, 1.0)
    view.back()
    assert curve.visible_range() == (0.1, 0.2)
    opened.actions_by_id["percent"].trigger()
    settle(qtbot, opened)
    assert curve._map().width == view._map().width
    # With the mouse as in the curve: zoom at the pointer, move by Shift+wheel and middle drag.
    view.show_all()
    at = place(view, 0.4, 1)
    wheel(view, at, 120, Qt.KeyboardModifier.NoModifier)
    a, b = curve.visible_range()
    assert b - a == pytest.approx(0.8) and (0.4 - a) / (b - a) == pytest.approx(0.4, abs=0.01)
    wheel(view, at, -120, Qt.KeyboardModifier.ShiftModifier)
    assert curve.visible_range() == pytest.approx((a + 0.08, b + 0.08))
    dialog = AxisDialog(view)
    qtbot.addWidget(dialog)
    (form,) = dialog.forms
    form.free.setChecked(False)
    form.low.setText("0.125")
    form.high.setText("0.375")
    assert dialog.apply() and view.visible_range() == curve.visible_range() == (0.125, 0.375)


def test_selection_cursor_and_phases_are_shared(qtbot: QtBot, opened: TracePage) -> None:
    curve, view = opened.curve_view, opened.timeline.view
    drag(view, place(view, 0.3, 2), place(view, 0.6, 2))
    assert opened.workbench.snapshot.project.view.selection == pytest.approx((0.3, 0.6), abs=2e-3)
    assert curve._selection == view._selection is not None
    send(view, QEvent.Type.MouseMove, place(view, 0.45, 3), Qt.MouseButton.NoButton)
    assert curve._cursor == view._cursor == pytest.approx(0.45, abs=2e-3)
    assert "at this instant" in opened._cursor_text.text()
    opened.workbench.set_n(4)
    opened.workbench.select_phase(1)
    settle(qtbot, opened)
    fit = opened.workbench.snapshot.fit
    assert fit is not None and view._over.fit is fit and view._over.phase == 1
    # The breaks run through the rows, at the same columns as in the curve.
    opened.workbench.select(None)
    opened.workbench.select_phase(None)
    send(view, QEvent.Type.MouseMove, QPointF(-5, -5), Qt.MouseButton.NoButton)
    settle(qtbot, opened)
    image = view.grab().toImage()
    for t in fit.breaks[1:-1]:
        x = int(view._map().x(t))
        y = round(view._y(2.3))
        assert QColor(view._theme.breakpoint) in [image.pixelColor(x + d, y) for d in (-1, 0, 1)]


def test_rows_say_what_their_locations_do(qtbot: QtBot, opened: TracePage) -> None:
    view = opened.timeline.view
    assert labels(opened) == [label for r in "0123" for label in (r, f"  {r}.0", f"  {r}.1")]
    theme = view._theme
    computing, idle = QColor(theme.computing), QColor(theme.idle)
    view.zoom_to(0.04, 0.12)
    settle(qtbot, opened)
    assert colour_at(opened, 0.045, 1) == computing
    assert colour_at(opened, 0.065, 1) == idle  # rank 0 receives for 20 ms
    assert colour_at(opened, 0.075, 1) == computing
    assert colour_at(opened, 0.075, 4) == idle  # rank 1 for 40 ms
    assert colour_at(opened, 0.065, 2) == computing  # the other thread never does
    view.set_by_region(True)
    settle(qtbot, opened)
    colours = view._colours()
    assert colour_at(opened, 0.065, 1) == colours[view._classes[1 + 1]]
    assert colour_at(opened, 0.075, 1) == colours[view._classes[0 + 1]]
    # Before its first event a location is not there.
    view.show_all()
    settle(qtbot, opened)
    assert colour_at(opened, 0.01, 10) == QColor(theme.background)


def test_a_rare_state_shows_as_a_stripe(qtbot: QtBot, opened: TracePage) -> None:
    view = opened.timeline.view
    view.show_all()
    settle(qtbot, opened)
    image = view.grab().toImage()
    row = 7  # the first thread of rank 2
    x = int(view._map().x(WRITE / 1e6))
    top, bottom = round(view._y(row)), round(view._y(row + 1)) - 2
    column = [image.pixelColor(x, y) for y in range(top, bottom)]
    assert column[0] == QColor(view._theme.computing)
    assert column[-1] == QColor(view._theme.io)
    send(view, QEvent.Type.MouseMove, QPointF(x + 0.5, view._y(row + 0.5)), Qt.MouseButton.NoButton)
    assert any("also in this column: I/O" in line for line in view._tip)


def test_hover_and_click_ask_the_events(qtbot: QtBot, opened: TracePage) -> None:
    view = opened.timeline.view
    send(view, QEvent.Type.MouseMove, place(view, 0.065, 4), Qt.MouseButton.NoButton)
    qtbot.waitUntil(lambda: any("MPI_Recv" in line for line in view._tip))
    tip = "\n".join(view._tip)
    assert "MPI_Recv: idle" in tip and "lasts 40.00 ms from 50 ms" in tip and "call depth 2" in tip
    assert "message from rank 0: 2.048 kB" in tip and "30.00 ms on its way" in tip
    send(view, QEvent.Type.MouseMove, place(view, 0.7005, 4), Qt.MouseButton.NoButton)
    qtbot.waitUntil(lambda: any("Barrier in communicator 5" in line for line in view._tip))
    click(view, place(view, 0.065, 4))
    qtbot.waitUntil(lambda: view._stack is not None)
    assert view._stack is not None
    lines = view._stack[2]
    assert lines[0].startswith("process 1 – rank 1 thread 0 at 6")
    assert lines[1].startswith("main: 990.0 ms from") and lines[2].strip().startswith("MPI_Recv: 40.00 ms")
    opened.actions_by_id["nothing"].trigger()
    assert view._stack is None
    send(view, QEvent.Type.MouseMove, place(view, 0.065, 3), Qt.MouseButton.NoButton)
    assert any("2 threads in one row" in line for line in view._tip)


def test_messages_and_collectives_are_drawn(qtbot: QtBot, opened: TracePage, monkeypatch: Any) -> None:
    view = opened.timeline.view

    def legend() -> list[str]:
        plot = view.description()
        return [] if plot is None else [entry.words for entry in plot.legend]

    view.zoom_to(0.04, 0.12)
    settle(qtbot, opened)
    marks = view.tiles.marks
    assert marks is not None and marks.messages is not None
    assert (marks.messages.sent_s.tolist(), marks.messages.received_s.tolist()) == ([0.06], [0.09])
    rows = view.rows
    assert (rows.row_of(0), rows.row_of(2)) == (1, 4)
    image = view.grab().toImage()
    middle = place(view, 0.075, 1) + (place(view, 0.075, 4) - place(view, 0.075, 1)) / 2
    ink = [image.pixelColor(round(middle.x()), round(middle.y()) + d) for d in (-2, -1, 0, 1, 2)]
    assert QColor(view._theme.text) in ink
    assert "Message" in legend()
    view.zoom_to(0.6, 0.8)
    settle(qtbot, opened)
    marks = view.tiles.marks
    assert marks is not None and [c.operation for c in marks.collectives] == ["Barrier"] * RANKS
    monkeypatch.setattr(density, "DRAWN", -1)
    view.zoom_to(0.04, 0.13)
    settle(qtbot, opened)
    marks = view.tiles.marks
    assert marks is not None and marks.messages is None and marks.count == 1
    assert marks.density is not None and marks.density.max() == 1
    assert "Messages, 1 to 1 at a point" in legend()


def crowd(path: Path, count: int = 30_000) -> None:
    """Two ranks; the first sends many messages of rising sizes, all with one of two tags in one of two
    communicators, to the second, which is five milliseconds later each time (the last one fifty)."""
    with StoreWriter(path, Source(str(path), path.name), IMPORTER, TIMELINE) as writer:
        writer.describe(ticks_per_second=1e6)
        writer.region(Region("main"))
        for rank in range(2):
            writer.location(Location(rank, f"rank {rank}", rank, 0, process=f"process {rank}"))
        k = np.arange(count)
        sent = 100_000 + k * 800_000 // count
        flight = np.where(k == count - 1, 50_000, 5_000)
        for rank in range(2):
            events = {
                "time": np.array([0, SPAN]),
                "kind": np.array([0, 1], np.uint8),
                "region": np.zeros(2, int),
            }
            writer.append("events", rank, **events)
            writer.append(
                "messages", rank, time=sent + rank * flight, kind=np.full(count, 3 * rank, np.uint8),
                peer=np.full(count, 1 - rank), communicator=k % 2, tag=k % 3 % 2, bytes=k, request=0 * k,
            )  # fmt: skip
        writer.complete()
        with links_of(writer) as links:
            check_clocks(writer, Progress(), links.add)
        keep(writer, Progress())


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("crowd") / "crowd.h5"
    crowd(path)
    return path


def seen(qtbot: QtBot, window: TracePage) -> tuple[int, set[int]]:
    """How many messages are in view, and the colours between the two rows."""
    settle(qtbot, window)
    view = window.timeline.view
    image = view.grab().toImage()
    y = round(view._y(1.0))
    columns = range(round(view._plot.left()) + 5, round(view._plot.right()) - 5, 3)
    marks = view.tiles.marks
    assert marks is not None
    return marks.count, {image.pixel(x, y) for x in columns}


def test_many_messages_are_drawn_as_density_and_leave_the_states_to_be_seen(
    qtbot: QtBot, window: TracePage, crowded: Path
) -> None:
    window.open_path(crowded)
    view = window.timeline.view
    count, colours = seen(qtbot, window)
    assert count == 30_000
    marks = view.tiles.marks
    assert marks is not None and marks.messages is None and marks.density is not None
    # Each line crosses the border of the rows in one place.
    border = round(view._plot.height() * 0 + view._row_height)
    assert marks.density[border].sum() >= count
    assert QColor(view._theme.text).rgb() not in colours  # not blackened
    window.timeline.show_messages(False)
    hidden = seen(qtbot, window)
    assert hidden[0] == 0 and len(hidden[1]) < len(colours)
    assert "messages are hidden" in view._note()
    window.timeline.show_messages(True)
    assert seen(qtbot, window) == (count, colours)
    # A few of them are lines again.
    view.zoom_to(0.5, 0.5 + 10 * 800_000 / 30_000 * 1e-6)
    seen(qtbot, window)
    marks = view.tiles.marks
    assert marks is not None and marks.messages is None  # 190 are on their way at any time
    window.timeline.set_message_filter(MessageFilter(least_s=0.01))
    view.show_all()
    assert seen(qtbot, window)[0] == 1
    marks = view.tiles.marks
    assert marks is not None and marks.messages is not None and marks.messages.bytes.tolist() == [29_999]


def test_messages_are_shown_by_what_they_are(qtbot: QtBot, window: TracePage, crowded: Path) -> None:
    window.open_path(crowded)
    settle(qtbot, window)
    k = np.arange(30_000)
    form = window.timeline.message_form
    for field, text, want in (
        ("least_bytes", "20 kB", (k >= 20_000).sum()),
        ("least_bytes", "16 KiB", (k >= 16_384).sum()),
        ("least_s", "10 ms", 1),
        ("least_s", "5 ms", 30_000),
        ("communicator", "1", (k % 2 == 1).sum()),
        ("communicator", "7", 0),
        ("tag", "1", (k % 3 == 1).sum()),
        ("partner", "1", 30_000),
        ("partner", "2", 0),
    ):
        form.fields[field].setText(text)
        assert seen(qtbot, window)[0] == want, (field, text)
        assert "meet the filter" in window.timeline.view._note()
        assert window.timeline.messages.text() == "Messages (filtered)"
        form.fields[field].clear()
    assert seen(qtbot, window)[0] == 30_000
    form.fields["communicator"].setText("0")
    form.fields["tag"].setText("1")
    assert seen(qtbot, window)[0] == ((k % 2 == 0) & (k % 3 == 1)).sum()
    form.fields["tag"].setText("x")
    assert not form.problem.isHidden() and "not a whole number" in form.problem.text()
    assert seen(qtbot, window)[0] == ((k % 2 == 0) & (k % 3 == 1)).sum()  # as it was
    form.reset.click()
    assert seen(qtbot, window)[0] == 30_000 and form.fields["tag"].text() == ""


def test_communicators_are_called_by_their_names(qtbot: QtBot, tmp_path: Path) -> None:
    """In what the pointer rests on, and in the field that filters messages by them."""
    path = tmp_path / "named.h5"
    write(path, {"5": "halo", "6": "rows"})
    with open_store(path) as store:
        timeline = open_timeline(store)
        assert timeline is not None
        told = describe(timeline, 0, 700_500e-6, 1e-6, lambda region: store.regions[region].name)
        assert any(line.startswith("Barrier in halo, sends") for line in told)
        form = MessageForm()
        qtbot.addWidget(form)
        form.set_communicators(timeline.communicators)
    said: list[MessageFilter] = []
    form.changed.connect(said.append)
    field = form.fields["communicator"]
    for text in ("ha", "halo", "6"):
        field.setText(text)
        assert form.problem.isHidden() == (text != "ha")
    assert [one.communicator for one in said] == [5, 6]
    form.show_filter(said[-1])
    assert field.text() == "rows"


def test_a_key_hides_messages_and_a_project_keeps_which_are_shown(
    qtbot: QtBot, window: TracePage, crowded: Path, tmp_path: Path
) -> None:
    window.open_path(crowded)
    settle(qtbot, window)
    action = window.actions_by_id["messages"]
    assert [keys.toString() for keys in action.shortcuts()] == ["M"] and action.isChecked()
    action.trigger()
    assert seen(qtbot, window)[0] == 0
    assert not action.isChecked() and not window.timeline.messages.isChecked()
    window.timeline.messages.click()
    assert action.isChecked() and seen(qtbot, window)[0] == 30_000
    wanted = MessageFilter(least_bytes=12_345, least_s=1e-3, communicator=1, partner=0, tag=0)
    window.timeline.set_message_filter(wanted)
    window.desk.keep_view(3)
    window.timeline.set_message_filter(MessageFilter())
    window.desk.show_view(3)
    assert window.timeline.message_filter == wanted
    path = tmp_path / "kept.phasewright"
    assert window.desk._save(path)
    other = Frame(window.settings).trace
    qtbot.addWidget(other.frame)
    other.frame.show()
    try:
        other.open_path(path)
        qtbot.waitUntil(lambda: not other.busy and other.timeline.view.timeline is not None, timeout=60_000)
        assert other.timeline.message_filter == wanted
        assert other.timeline.message_form.fields["least_bytes"].text() == "12345"
    finally:
        other.frame.close_unasked()


def test_processes_close_and_rows_are_sorted(qtbot: QtBot, opened: TracePage) -> None:
    view, pane = opened.timeline.view, opened.timeline
    click(view, QPointF(20, view._y(0.5)))
    assert labels(opened)[:3] == ["0", "1", "  1.0"]
    view._open_all(False)
    assert labels(opened) == ["0", "1", "2", "3"]
    settle(qtbot, opened)
    # One row for all threads: what most of them do, and the rest is not lost.
    tile = view.tiles._detail
    assert tile is not None and len(tile.tile.starts) == RANKS + 1
    held = np.bitwise_or.reduce(tile.tile.hidden[2])
    assert held >> int(Activity.IO) & 1 and held >> int(Activity.IDLE) & 1
    pane._order.setCurrentIndex(2)
    assert labels(opened) == ["0", "1", "2", "3"]  # rank r begins at r * 10 ms
    pane._order.setCurrentIndex(1)
    assert labels(opened) == ["0", "1", "2", "3"]  # rank r waits longer than rank r - 1
    drag(view, QPointF(20, view._y(0.5)), QPointF(20, view._y(2.5)))
    assert labels(opened) == ["1", "2", "0", "3"]
    assert pane._order.currentText() == "By hand"
    send(view, QEvent.Type.MouseMove, place(view, 0.5, 3), Qt.MouseButton.NoButton)
    view.setFocus()
    qtbot.keyClick(view, Qt.Key.Key_Up, Qt.KeyboardModifier.AltModifier)
    assert labels(opened) == ["1", "2", "3", "0"]
    # The same one again, as long as the pointer rests.
    qtbot.keyClick(view, Qt.Key.Key_Up, Qt.KeyboardModifier.AltModifier)
    assert labels(opened) == ["1", "3", "2", "0"]
    # While a row is dragged, a line shows where it will be: below what it goes past, or above.
    for begin, end, line in ((0.5, 2.5, 3), (2.5, 0.5, 0)):
        send(view, QEvent.Type.MouseButtonPress, QPointF(20, view._y(begin)))
        send(view, QEvent.Type.MouseMove, QPointF(20, view._y(end)))
        assert view._drag is not None and view._landing(view._drag) == view._y(line)
        send(view, QEvent.Type.MouseButtonRelease, QPointF(20, view._y(end)))
    pane._order.setCurrentIndex(0)
    assert labels(opened) == ["0", "1", "2", "3"]


# The completer's list is a window of its own, of which the offscreen platform has its doubts.
@pytest.mark.qt_log_ignore("This plugin does not support")
def test_finding_a_region_goes_from_one_to_the_next(qtbot: QtBot, opened: TracePage) -> None:
    view, pane = opened.timeline.view, opened.timeline
    opened.actions_by_id["find"].trigger()
    assert pane._search.hasFocus()
    qtbot.keyClicks(pane._search, "file_w")
    assert pane._result.text() == "in 1 of 8 locations"
    assert view._marked_rows == {4}
    view.zoom_to(0.1, 0.2)
    qtbot.keyClick(pane._search, Qt.Key.Key_Return)
    settle(qtbot, opened)
    assert view._occurrence == (4, pytest.approx(WRITE / 1e6), pytest.approx((WRITE + 3) / 1e6))
    a, b = view.visible_range()
    assert a < WRITE / 1e6 < b and b - a == pytest.approx(0.1)
    opened.actions_by_id["find_next"].trigger()
    settle(qtbot, opened)
    assert pane._result.text() == "none after here"
    pane._search.setText("MPI_Recv")
    view.show_all()
    seen = []
    for _ in range(5):
        opened.actions_by_id["find_next"].trigger()
        settle(qtbot, opened)
        assert view._occurrence is not None
        seen.append((view._occurrence[0], round(view._occurrence[1], 9)))
    assert seen == [(0, 0.05), (2, 0.05), (4, 0.05), (6, 0.05), (0, 0.15)]
    opened.actions_by_id["find_previous"].trigger()
    settle(qtbot, opened)
    assert view._occurrence is not None and view._occurrence[:2] == (6, pytest.approx(0.05))
    pane._search.setText("nothing like it")
    assert pane._result.text() == "no such region is entered"
    # What begins with the run is found too, from where nothing is before it.
    pane._search.setText("main")
    opened.actions_by_id["find_next"].trigger()
    settle(qtbot, opened)
    assert view._occurrence == (0, 0.0, 1.0)


@pytest.mark.qt_log_ignore("This plugin does not support")
def test_return_finds_while_the_list_of_names_is_open(qtbot: QtBot, opened: TracePage) -> None:
    """The keys go to the open list first, as on a real screen."""
    view, pane = opened.timeline.view, opened.timeline

    def press(key: Qt.Key, shift: bool = False) -> None:
        with_shift = Qt.KeyboardModifier.ShiftModifier if shift else Qt.KeyboardModifier.NoModifier
        qtbot.keyClick(QApplication.activePopupWidget() or pane._search, key, with_shift)
        settle(qtbot, opened)

    def type_in(words: str) -> None:
        pane._search.clear()
        qtbot.keyClicks(pane._search, words)
        assert QApplication.activePopupWidget() is pane._search.completer().popup()

    opened.actions_by_id["find"].trigger()
    view.zoom_to(0.2, 0.3)
    type_in("recv")
    press(Qt.Key.Key_Return)
    assert QApplication.activePopupWidget() is None
    assert view._occurrence is not None and view._occurrence[:2] == (0, pytest.approx(0.25))
    type_in("recv")
    press(Qt.Key.Key_F3, shift=True)
    assert view._occurrence[:2] == (6, pytest.approx(0.25))  # the last before the end of the view
    type_in("recv")
    press(Qt.Key.Key_Return, shift=True)
    assert view._occurrence[:2] == (6, pytest.approx(0.25))
    press(Qt.Key.Key_Return, shift=True)
    assert view._occurrence[:2] == (4, pytest.approx(0.25))
    type_in("file")
    press(Qt.Key.Key_Down)
    press(Qt.Key.Key_Return)
    assert pane._search.text() == "MPI_File_write" and view._occurrence[0] == 4
    type_in("rec")
    press(Qt.Key.Key_Escape)
    assert pane._search.text() == "rec"
    press(Qt.Key.Key_Escape)
    assert pane._search.text() == "" and opened.focusWidget() is view


@pytest.mark.qt_log_ignore("This plugin does not support")
def test_what_is_found_is_centred_and_told_as_by_a_click(qtbot: QtBot, opened: TracePage) -> None:
    view, pane = opened.timeline.view, opened.timeline
    send(view, QEvent.Type.MouseMove, QPointF(-5, -5), Qt.MouseButton.NoButton)
    view._height = 60.0  # so that some rows are out of view
    view.rows_changed()
    view.zoom_to(0.3, 0.36)
    settle(qtbot, opened)
    pane._search.setText("MPI_File_write")
    opened.actions_by_id["find_next"].trigger()
    settle(qtbot, opened)
    a, b = view.visible_range()
    assert (a + b) / 2 == pytest.approx(WRITE / 1e6) and b - a == pytest.approx(0.06)
    first, last = view._in_view()
    assert first < view.rows.row_of(4) < last - 1
    assert view._stack is not None and view._stack[:2] == (4, pytest.approx(WRITE / 1e6))
    assert view._stack[2][0].startswith("process 2 – rank 2 thread 0 at 400.1")
    assert [row.strip().split(":")[0] for row in view._stack[2][1:]] == ["main", "MPI_File_write"]
    assert pane._result.text().endswith("process 2 – rank 2 thread 0")
    opened.actions_by_id["nothing"].trigger()
    assert view._stack is None and view._occurrence is not None


def test_the_row_that_is_pointed_at_or_clicked_is_searched_first(qtbot: QtBot, opened: TracePage) -> None:
    view, pane = opened.timeline.view, opened.timeline
    rows = view.rows
    assert rows is not None

    def found(action: str) -> tuple[int, float]:
        opened.actions_by_id[action].trigger()
        settle(qtbot, opened)
        assert view._occurrence is not None
        return view._occurrence[0], round(view._occurrence[1], 9)

    pane._search.setText("MPI_Recv")
    view.show_all()
    # From the clicked state on, in its row.
    click(view, place(view, 0.32, rows.row_of(4)))
    send(view, QEvent.Type.MouseMove, QPointF(-5, -5), Qt.MouseButton.NoButton)
    assert view.chosen_row == (4,)
    settle(qtbot, opened)
    assert [found("find_next") for _ in range(3)] == [(4, 0.35), (4, 0.45), (4, 0.55)]
    assert found("find_previous") == (4, 0.45)
    # The row under the pointer comes before it; of a process it is all of them.
    send(view, QEvent.Type.MouseMove, place(view, 0.1, rows.row_of(2)), Qt.MouseButton.NoButton)
    assert [found("find_next") for _ in range(2)] == [(2, 0.55), (2, 0.65)]
    send(view, QEvent.Type.MouseMove, place(view, 0.1, rows.row_of(6) - 1), Qt.MouseButton.NoButton)
    assert view.chosen_row == (6, 7)
    assert found("find_next") == (6, 0.65)
    # What is not in the row any more is looked for in all.
    pane._search.setText("MPI_File_write")
    view.show_all()
    assert found("find_next") == (4, round(WRITE / 1e6, 9))
    view.leaveEvent(QEvent(QEvent.Type.Leave))
    opened.actions_by_id["nothing"].trigger()
    assert view.chosen_row == ()


def test_a_long_search_says_so_and_the_last_one_wins(
    qtbot: QtBot, opened: TracePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    view, pane = opened.timeline.view, opened.timeline
    assert view.timeline is not None
    go_on, find = threading.Event(), view.timeline.find

    def slow(*words: Any, progress: Progress, **rest: Any) -> Any:
        assert threading.current_thread() is not threading.main_thread()
        while not go_on.wait(0.01):
            progress.step(0, 0)
        return find(*words, progress=progress, **rest)

    monkeypatch.setattr(view.timeline, "find", slow)
    pane._search.setText("MPI_Recv")
    opened.actions_by_id["find_next"].trigger()
    qtbot.waitUntil(lambda: pane._result.text() == "looking…")
    pane._search.setText("MPI_File_write")
    opened.actions_by_id["find_next"].trigger()
    go_on.set()
    settle(qtbot, opened)
    assert view._occurrence is not None and view._occurrence[:2] == (4, pytest.approx(WRITE / 1e6))
    assert pane._result.text().startswith("MPI_File_write")
    qtbot.wait(500)
    assert pane._result.text().startswith("MPI_File_write")


def test_find_next_without_a_name_asks_for_one(qtbot: QtBot, opened: TracePage) -> None:
    opened.set_timeline_shown(False)
    opened.actions_by_id["find_next"].trigger()
    settle(qtbot, opened)
    assert opened.timeline.isVisible() and opened.timeline._search.hasFocus()


def test_rows_are_scaled_and_scrolled(qtbot: QtBot, opened: TracePage) -> None:
    view = opened.timeline.view
    every = view._row_height
    wheel(view, place(view, 0.5, 5), 600, Qt.KeyboardModifier.ControlModifier)
    assert view._row_height > 2 * every
    settle(qtbot, opened)
    assert view._bar.isVisible()
    first, last = view._in_view()
    assert last - first < len(labels(opened))
    view.setFocus()
    for _ in range(20):
        qtbot.keyClick(view, Qt.Key.Key_PageDown)
    settle(qtbot, opened)
    assert view._in_view()[1] == len(labels(opened))
    wheel(view, QPointF(10, view._plot.center().y()), 1200, Qt.KeyboardModifier.NoModifier)
    settle(qtbot, opened)
    assert view._in_view()[0] == 0
    view.fit_rows()
    settle(qtbot, opened)
    assert view._row_height == every and not view._bar.isVisible()


def test_rows_lower_than_a_pixel_are_joined(qtbot: QtBot, opened: TracePage) -> None:
    view = opened.timeline.view
    view._height = 0.25
    view.rows_changed()
    settle(qtbot, opened)
    assert view._per == 4 and view._bands == 3
    assert view._note() == "12 locations in 3 rows: neighbours share a row"
    send(
        view,
        QEvent.Type.MouseMove,
        QPointF(view._map().x(0.4), view._plot.top() + 0.5),
        Qt.MouseButton.NoButton,
    )
    assert any("4 rows in one" in line for line in view._tip)


def test_other_rules_recolour_and_the_window_remembers(
    qtbot: QtBot, opened: TracePage, settings: Settings, trace: Path
) -> None:
    view = opened.timeline.view
    by_hand = [row.process for row in view.rows.rows]
    view.rows.move(by_hand[-1], by_hand[0])
    moved, former = [row.process for row in view.rows.rows], view.rows
    opened.workbench.set_activity("MPI_Recv", Activity.OVERHEAD)
    settle(qtbot, opened)
    assert view.rows is not former and view.rows.order == "hand"
    assert [row.process for row in view.rows.rows] == moved != by_hand
    view.rows.sort("trace")
    view.rows_changed()
    view.zoom_to(0.04, 0.12)
    settle(qtbot, opened)
    assert colour_at(opened, 0.075, 4) == QColor(view._theme.overhead)
    opened.actions_by_id["timeline"].trigger()
    assert not opened.timeline.isVisible() and not settings.timeline_shown
    opened.actions_by_id["timeline"].trigger()
    assert opened.timeline.isVisible()
    opened._plots.setSizes([400, 400])
    opened._keep_timeline_share()
    assert settings.timeline_share == pytest.approx(0.5, abs=0.1)
    opened.workbench.close_document()
    settle(qtbot, opened)
    assert view.timeline is None and not opened.timeline.isVisible()


def test_a_curve_has_no_timeline(qtbot: QtBot, window: TracePage, tmp_path: Path) -> None:
    file = tmp_path / "curve.csv"
    file.write_text("".join(f"{k},{k % 5}\n" for k in range(60)), encoding="utf-8")
    window.open_path(file)
    settle(qtbot, window)
    assert window.workbench.snapshot.run is not None
    assert not window.timeline.isVisible()


def test_large_pictures_are_made_beside_the_window(
    qtbot: QtBot, opened: TracePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same picture whether it is made while painting or by a job; panning never waits."""
    view = opened.timeline.view
    view.zoom_to(0.3, 0.5)
    settle(qtbot, opened)
    inline = view.tiles._detail
    assert inline is not None
    monkeypatch.setattr(timeline_tiles, "INLINE", 0)
    view.rows_changed()
    settle(qtbot, opened)
    beside = view.tiles._detail
    assert beside is not None and beside is not inline and view.tiles._overview is not None
    assert np.array_equal(beside.tile.dominant, inline.tile.dominant)
    assert np.array_equal(beside.tile.hidden, inline.tile.hidden)
    for k in range(30):
        view.zoom_to(0.3 + 0.02 * k, 0.35 + 0.02 * k)
        QApplication.processEvents()
    settle(qtbot, opened)
    assert view.tiles._detail is not None and view.tiles._detail.tile.a <= 0.88 <= view.tiles._detail.tile.b


def test_what_is_painted_in_parts_is_as_what_is_painted_whole(qtbot: QtBot, opened: TracePage) -> None:
    """The heading of the rows stands above them whole, and what changes is painted wherever it changed."""
    view = opened.timeline.view
    opened.frame.resize(1280, 1400)  # rows so high that nothing of theirs reaches above them
    settle(qtbot, opened)
    # The heading has the ink of its words.
    image, plot, line = view.grab().toImage(), view._plot, view.fontMetrics().tightBoundingRect("Ranks")
    ground = QColor(view._theme.background)
    inked = [
        y
        for y in range(int(plot.top()) - 1)
        if any(image.pixelColor(x, y) != ground for x in range(int(plot.left()) - 8))
    ]
    assert len(inked) >= line.height() - 1, inked

    class Painted(QObject):
        region = QRegion()

        def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
            if event.type() == QEvent.Type.Paint:
                self.region = self.region.united(event.region())  # type: ignore[attr-defined]
            return False

    port, watch = view.viewport(), Painted()
    port.installEventFilter(watch)
    rows = view.rows
    assert rows is not None
    acts = (
        lambda: view.set_marked(frozenset({0})),
        lambda: view.set_marked(frozenset()),
        lambda: view.set_by_region(not view.by_region),
        lambda: view._open_all(True),
        lambda: view.scale_rows(4.0, plot.center().y()),
        lambda: view.scroll_rows(2),
        lambda: view.fit_rows(),
        lambda: view.zoom_to(0.2, 0.4),
    )
    for act in acts:
        QApplication.processEvents()
        before = port.grab().toImage()
        watch.region = QRegion()
        act()
        settle_unseen(qtbot, opened)
        parts, after = watch.region, port.grab().toImage()
        with QPainter(before) as painter:
            painter.setClipRegion(parts)
            painter.drawImage(0, 0, after)
        assert before == after
    port.removeEventFilter(watch)


def settle_unseen(qtbot: QtBot, window: TracePage) -> None:
    """Wait until all is painted that is to be, by the window alone."""
    for _ in range(2):
        qtbot.waitUntil(lambda: not window.busy, timeout=60_000)
        qtbot.wait(250)  # what moves is drawn exactly when it rests


def test_legend_entries_switch_classes(qtbot: QtBot, opened: TracePage) -> None:
    curve = opened.curve_view
    opened.grab()
    places = {key: place for place, key in curve._legend._places}
    assert {"computing", "idle"} <= places.keys()
    qtbot.mouseClick(curve.viewport(), Qt.MouseButton.LeftButton, pos=places["idle"].center().toPoint())
    assert "idle" not in opened.workbench.snapshot.project.view.shown
    opened.grab()
    places = {key: place for place, key in curve._legend._places}
    qtbot.mouseClick(curve.viewport(), Qt.MouseButton.LeftButton, pos=places["idle"].center().toPoint())
    assert "idle" in opened.workbench.snapshot.project.view.shown


def test_heavy_regions_never_share_a_colour() -> None:
    names = [f"region {k}" for k in range(40)]
    weights = np.concatenate([[0.0], np.arange(40.0)])
    classes = region_classes(names, weights)
    assert classes[0] == gantt.NO_REGION
    assert len(set(classes[29:].tolist())) == 12  # those of most time
    few = region_classes(names[:1], np.array([0.0, 1.0]))
    assert few[1] == region_classes([names[0], "x"], np.array([0.0, 5.0, 1.0]))[1]


def test_the_copied_picture_holds_the_timeline_as_it_is_seen(
    opened: TracePage, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice as large as both plots, the rows in the screen's own pixels doubled; nothing is made anew."""
    view, curve = opened.timeline.view, opened.curve_view
    qtbot.waitUntil(lambda: not opened.busy)
    view.setFocus()
    seen = view.grab().toImage()
    made: list[object] = []
    monkeypatch.setattr(opened.timeline._timeline, "tile", lambda *words: made.append(words))
    opened.actions_by_id["copy_picture"].trigger()
    image = QGuiApplication.clipboard().image()
    assert (image.width(), image.height()) == (2 * curve.width(), 2 * (curve.height() + view.height()))
    top = 2 * curve.height()
    plot = view._plot.toRect().adjusted(1, 1, -1, -1)
    places = [
        (x, y) for x in range(plot.left(), plot.right(), 7) for y in range(plot.top(), plot.bottom(), 5)
    ]
    alike = [image.pixel(2 * x, top + 2 * y) == seen.pixel(x, y) for x, y in places]
    assert np.mean(alike) > 0.97, "all but breakpoints and messages, which are drawn finer"
    assert len({seen.pixel(*place) for place in places}) > 3
    QApplication.processEvents()
    assert view.grab().toImage() == seen, "the window is as it was"
    assert not made

    opened.set_timeline_shown(False)
    opened.actions_by_id["copy_picture"].trigger()
    assert QGuiApplication.clipboard().image().height() == 2 * curve.height()


def test_what_is_painted_while_panning_is_what_a_new_picture_shows(
    qtbot: QtBot, opened: TracePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Labels and legend stay, and tiles are not painted where others cover them: nobody sees a difference."""
    view = opened.timeline.view
    monkeypatch.setattr(timeline_tiles, "INLINE", 0)
    monkeypatch.setattr(timeline_tiles, "ROOMY", 0)  # tiles reach no further than the view
    opened.workbench.set_n(4)
    view.rows_changed()
    view.zoom_to(0.2, 0.6)
    settle_unseen(qtbot, opened)  # the tile of a view comes once it rests
    monkeypatch.setattr(view.tiles, "_make", lambda view: None)  # no sharper ones come
    whole = timeline_view._uncovered
    covered: list[int] = []

    def watched(layers: list[Any]) -> list[Any]:
        found = whole(layers)
        covered[:] = [int(np.sum(x[2][1] != y[2][1])) for x, y in zip(layers, found, strict=True)]
        return found

    for a, notes in ((0.22, ()), (0.3, (Annotation(0.6999, "at the rim"),)), (0.41, ()), (0.43, ())):
        monkeypatch.setattr(timeline_view, "_uncovered", watched)
        view.set_annotations(notes)
        view.zoom_to(a, a + 0.4)
        quick = view.grab().toImage()
        assert len(covered) == 2 and covered[0] > 300 and covered[1] == 0
        monkeypatch.setattr(timeline_view, "_uncovered", lambda layers: layers)
        view._around = ()
        view._redraw()
        slow = view.grab().toImage()
        edge = round(view._map().x(0.6))  # there columns of the one tile have neighbours in the other
        differ = np.flatnonzero((pixels(slow) != pixels(quick)).any(axis=0))
        assert np.all(np.abs(differ - edge) <= 2)


def test_a_view_that_moves_is_not_painted_for_what_it_has_left(
    qtbot: QtBot, opened: TracePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer for where the view was brings no paint of its own; the one for where it is does."""
    view, tiles = opened.timeline.view, opened.timeline.view.tiles
    monkeypatch.setattr(timeline_tiles, "INLINE", 0)
    monkeypatch.setattr(timeline_tiles, "ROOMY", 0)
    view.rows_changed()
    settle(qtbot, opened)
    asked: list[bool] = []
    fits, changed = tiles._fits, tiles._changed

    def told() -> None:
        assert tiles._view is not None and tiles._detail is not None
        asked.append(fits(tiles._detail, tiles._view))
        changed()

    monkeypatch.setattr(tiles, "_changed", told)
    for k in range(8):
        view.zoom_to(0.1 + 0.05 * k, 0.3 + 0.05 * k)
        view.grab()
    settle(qtbot, opened)
    assert asked and all(asked)
    assert tiles._detail is not None and tiles._detail.tile.a == pytest.approx(0.45)


def test_exact_rows_are_made_only_when_the_view_rests(qtbot: QtBot, opened: TracePage) -> None:
    """However many times exact rows were asked for at once before."""
    view, tiles = opened.timeline.view, opened.timeline.view.tiles
    tiles._rest_timer.start(0)  # as after the first part of many rows
    settle(qtbot, opened)
    view.zoom_to(0.3, 0.5)
    view.grab()
    assert tiles._rest_timer.isActive() and tiles._rest_timer.interval() == timeline_tiles.REST
    settle(qtbot, opened)
    assert not tiles._rest_timer.isActive()


def note_dialog(window: TracePage) -> NoteDialog:
    (found,) = [d for d in window.findChildren(NoteDialog) if d.isVisible()]
    return found


def painted(view: TimelineView, row: int, time_s: float, colour: int) -> bool:
    """Whether the line of an annotation crosses a row."""
    image = view.grab().toImage()
    x, y = round(view._map().x(time_s)), round(view._y(row + 0.8))
    return any(image.pixelColor(x + d, y) == QColor(COLOURS[colour]) for d in (-1, 0, 1))


def test_a_remark_on_one_location_is_in_its_row_only(qtbot: QtBot, opened: TracePage) -> None:
    view, bench, rows = opened.timeline.view, opened.workbench, opened.timeline.view.rows
    assert rows is not None
    row = rows.row_of(4)
    click(view, place(view, 0.32, row))
    settle(qtbot, opened)
    assert view._stack is not None
    opened.actions_by_id["annotate_location"].trigger()
    assert view._stack is None, "it would stick out from under the dialog"
    note_dialog(opened).reject()
    menu = view.menu_at(place(view, 0.32, row))
    menu.actions()[1].trigger()
    dialog = note_dialog(opened)
    assert dialog.location.currentText() == "rank 2" and dialog.location.itemText(0) == "All locations"
    dialog.text.setPlainText("<b>late</b>")
    dialog.accept()
    (note,) = bench.snapshot.project.annotations
    assert (note.location, note.end_s) == (4, None) and note.start_s == pytest.approx(0.32, abs=2e-3)
    send(view, QEvent.Type.MouseMove, QPointF(-5, -5), Qt.MouseButton.NoButton)
    settle(qtbot, opened)
    crossed = [painted(view, k, note.start_s, note.colour) for k in range(len(rows.rows))]
    assert [k for k, found in enumerate(crossed) if found] == [row]
    # What is written by strangers is no markup, whoever shows it.
    (flag,) = view._notes._flags
    assert flag.text == "<b>late</b>" and view._row_box(4) == flag.row
    send(view, QEvent.Type.MouseMove, flag.box.center(), Qt.MouseButton.NoButton)
    assert view.toolTip() == "<p>rank 2: &lt;b&gt;late&lt;/b&gt;</p>"
    opened.curve_view.grab()
    assert [f.text for f in opened.curve_view._notes._flags] == ["rank 2: <b>late</b>"]
    panel = opened.panel("views")
    assert panel.note_table.model().index(0, 0).data() == "rank 2: <b>late</b>"
    material = material_of(bench.snapshot)
    assert material is not None and [mark.located_text for mark in material.marks] == ["rank 2: <b>late</b>"]
    # It goes with its row, and out of view.
    rows.sort("busy")
    rows.move(3, 0)
    view.rows_changed()
    settle(qtbot, opened)
    assert rows.row_of(4) != row and painted(view, rows.row_of(4), note.start_s, note.colour)
    view._height = 80.0
    view.rows_changed()
    settle(qtbot, opened)
    view._scroll_to(0)
    settle(qtbot, opened)
    if rows.row_of(4) >= view._in_view()[1]:
        assert view._notes._flags == []
    # Of all locations again, as one step that can be undone.
    view.fit_rows()
    opened.show_panel("views")
    panel.note_table.select_key(0)
    panel.edit_note()
    dialog = note_dialog(opened)
    assert dialog.location.currentText() == "rank 2"
    dialog.location.setCurrentIndex(0)
    dialog.accept()
    assert bench.snapshot.project.annotations[0].location is None
    assert panel.note_table.model().index(0, 0).data() == "<b>late</b>"
    settle(qtbot, opened)
    assert all(painted(view, k, note.start_s, note.colour) for k in range(3, len(rows.rows)))
    opened.actions_by_id["undo"].trigger()
    assert bench.snapshot.project.annotations[0].location == 4


def test_a_remark_on_a_location_by_keys(qtbot: QtBot, opened: TracePage) -> None:
    """On what is pointed at, else on the state that was clicked or found."""
    view, rows = opened.timeline.view, opened.timeline.view.rows
    assert rows is not None
    view.setFocus()
    send(view, QEvent.Type.MouseMove, QPointF(-5, -5), Qt.MouseButton.NoButton)
    qtbot.keyClick(view, Qt.Key.Key_I, Qt.KeyboardModifier.ShiftModifier)
    assert "Point at a row" in opened.frame.statusBar().currentMessage()
    opened.timeline._search.setText("MPI_File_write")
    opened.actions_by_id["find_next"].trigger()
    settle(qtbot, opened)
    view.setFocus()
    qtbot.keyClick(view, Qt.Key.Key_I, Qt.KeyboardModifier.ShiftModifier)
    dialog = note_dialog(opened)
    assert dialog.location.currentText() == "rank 2"
    assert float(dialog.start.text()) == pytest.approx(WRITE / 1e6)
    dialog.reject()
    send(view, QEvent.Type.MouseMove, place(view, 0.5, rows.row_of(7)), Qt.MouseButton.NoButton)
    qtbot.keyClick(view, Qt.Key.Key_I, Qt.KeyboardModifier.ShiftModifier)
    dialog = note_dialog(opened)
    assert dialog.location.currentText() == "rank 3 thread 1"
    assert float(dialog.start.text()) == pytest.approx(0.5, abs=2e-3)
    dialog.text.setPlainText("here")
    dialog.accept()
    assert [n.location for n in opened.workbench.snapshot.project.annotations] == [7]
    # A trace that has become another one may have fewer locations.
    opened.workbench.change_annotation(0, location=99)
    settle(qtbot, opened)
    assert view._notes._flags == []
    panel = opened.panel("views")
    panel.note_table.select_key(0)
    panel.edit_note()
    dialog = note_dialog(opened)
    assert dialog.location.currentText() == "location number 99"
    dialog.accept()
    assert opened.workbench.snapshot.project.annotations[0].location == 99


def test_the_exported_figure_has_the_messages_of_the_window(
    qtbot: QtBot, window: TracePage, crowded: Path, tmp_path: Path
) -> None:
    from desktop.data.material import bars
    from desktop.data.store import open_store
    from desktop.ui import figures

    window.open_path(crowded)
    settle(qtbot, window)
    run, made = window.workbench.snapshot.run, material_of(window.workbench.snapshot)
    assert run is not None and made is not None
    look = figures.Look(width=120, height=60)
    found = {}
    for name, wanted in (
        ("all", MessageFilter()),
        ("one", MessageFilter(least_s=0.01)),
        ("none", MessageFilter(shown=False)),
    ):
        with open_store(crowded) as store:
            known = bars(store, run.rules, run.curve, messages=wanted)
        assert known is not None
        material = replace(made, bars=known)
        image = figures.image("timeline", material, look, 150)
        found[name] = known.messages, figures.svg("timeline", material, look), image
    drawn, svg, image = found["all"]
    assert drawn is not None and drawn.count == 30_000 and drawn.density is not None
    middle = drawn.density.shape[0] // 2
    assert drawn.density[middle].sum() >= 30_000
    assert "data:image/png;base64," in svg and ">Messages, 1 to " in svg
    drawn, one, _ = found["one"]
    assert drawn is not None and drawn.lines[:, 1::2].tolist() == [[0.5, 1.5]]
    assert "base64" not in one and ">Message<" in one
    assert found["none"][0] is None and "Message" not in found["none"][1]
    assert image != found["none"][2]
