"""What phases are made of, in the real window: numbers, sentences, profile and matrix follow phase and n."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QModelIndex, QPointF, Qt, QUrl
from PySide6.QtGui import QGuiApplication

from desktop import resources
from desktop.core.accounts import Account
from desktop.data.events import Activity
from desktop.data.opening import open_trace
from desktop.data.root_causes import explain
from desktop.data.statistics import Statistics
from desktop.data.utilization import build
from desktop.ui.frame import Frame
from desktop.ui.panels.phases import Why
from desktop.ui.panels.statistics import METRICS
from desktop.ui.theme import DARK, LIGHT
from desktop.ui.trace_page import TracePage

pytestmark = pytest.mark.usefixtures("own_cache")

TIMEOUT = 30_000


@pytest.fixture(scope="module")
def sample() -> Path:
    """The bundled Cholesky trace."""
    return next(s.path for s in resources.samples() if "cholesky" in str(s.path))


@pytest.fixture
def window(qtbot, settings, no_thread_left, sample):
    """The sample open."""
    made = Frame(settings).trace
    qtbot.addWidget(made.frame)
    made.frame.resize(1500, 950)
    made.frame.show()
    made.open_path(sample)
    qtbot.waitUntil(
        lambda: made.workbench.snapshot.fit is not None and not made.workbench.busy, timeout=TIMEOUT
    )
    yield made
    made.frame.close_unasked()


def settled(qtbot, window: TracePage, panel: str) -> None:
    window.show_panel(panel)
    qtbot.waitUntil(
        lambda: (
            bool(window.workbench.snapshot.statistics.scopes)
            and not window.workbench.snapshot.statistics.outdated
            and not window.workbench.busy
        ),
        timeout=TIMEOUT,
    )


def test_nothing_is_computed_while_nobody_looks(qtbot, window):
    """At first only the panel of phases is looked at, which says why time is lost."""
    qtbot.waitUntil(lambda: window.workbench.snapshot.statistics.words is not None, timeout=TIMEOUT)
    explained = window.workbench.snapshot.statistics
    assert explained.calls == () and explained.iterations is None and explained.changes is None
    window._docks["phases"].hide()
    window.workbench.set_n(5)
    qtbot.waitUntil(lambda: not window.workbench.busy, timeout=TIMEOUT)
    assert window.workbench.snapshot.statistics.fit is explained.fit


def test_statistics_agree_with_the_store_and_follow_n(qtbot, window, sample):
    settled(qtbot, window, "statistics")
    panel = window.panel("statistics")
    for n in (3, 5):
        window.workbench.set_n(n)
        settled(qtbot, window, "statistics")
        found = window.workbench.snapshot.statistics
        assert [scope.label for scope in found.scopes] == ["Whole run", *(f"Phase {k + 1}" for k in range(n))]
        assert panel.model.columnCount() == n + 2
        accounts = {one for stats in found.stats for one, _ in stats.account_parts()}
        plain = [metric for metric in METRICS if not metric.name.endswith("_account_part")]
        assert panel.model.rowCount() == len(plain) + len(accounts - {Account.COMPUTING})
    with open_trace(sample) as store:
        ranges = [(scope.start_s, scope.end_s) for scope in found.scopes]
        for mine, theirs in zip(found.stats, Statistics(store).ranges(ranges), strict=True):
            assert mine.parallel_efficiency == pytest.approx(theirs.parallel_efficiency)
            assert mine.load_balance == pytest.approx(theirs.load_balance)
    row = next(i for i, metric in enumerate(METRICS) if metric.title == "Parallel efficiency")
    shown = panel.model.index(row, 1).data()
    assert shown == f"{100 * found.stats[0].parallel_efficiency:.1f} %"


def test_details_follow_phase_and_selection(qtbot, window):
    settled(qtbot, window, "profile")
    window.workbench.set_n(4)
    window.workbench.select_phase(1)
    settled(qtbot, window, "profile")
    found = window.workbench.snapshot.statistics
    assert found.scopes[found.focus].key == "phase 1"
    window.workbench.select((0.1, 0.3))
    settled(qtbot, window, "profile")
    found = window.workbench.snapshot.statistics
    assert found.scopes[found.focus].key == "selection"
    assert "Selection" in window.panel("profile").about.text()


def test_profile_is_a_tree_that_can_be_searched_sorted_and_copied(qtbot, window):
    settled(qtbot, window, "profile")
    panel = window.panel("profile")
    calls = window.workbench.snapshot.statistics.calls
    model = panel.view.model()
    assert sum(1 for row in calls if row.depth == 0) == model.rowCount()
    name = next(row.name for row in calls if row.name.startswith("MPI_"))
    panel.search.setText(name.lower())
    shown = []

    def walk(parent):
        for row in range(model.rowCount(parent)):
            index = model.index(row, 0, parent)
            shown.append(index.data())
            walk(index)

    walk(QModelIndex())
    assert name in shown and len(shown) < len(calls)
    panel.search.clear()
    panel.kind.setCurrentIndex(panel.kind.findData("flat"))
    panel.kind.activated.emit(panel.kind.currentIndex())
    shares = [panel.view.model().index(i, 1).data() for i in range(panel.view.model().rowCount())]
    assert len(shares) == len(window.workbench.snapshot.statistics.flat)
    panel.view.setFocus()
    qtbot.keyClick(panel.view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    copied = QGuiApplication.clipboard().text().splitlines()
    assert copied[0].split("\t")[:2] == ["Region", "Share [%]"] and len(copied) == len(shares) + 1


def test_messages_show_who_sends_to_whom(qtbot, window):
    settled(qtbot, window, "messages")
    panel = window.panel("messages")
    talk = window.workbench.snapshot.statistics.stats[0].messages
    assert panel.model.rowCount() == talk.sender.size
    assert f"{int(talk.count.sum()):,}".replace(",", "\N{NO-BREAK SPACE}") in panel.about.text()
    matrix = panel.matrix
    matrix.grab()
    size = len(window.workbench.snapshot.statistics.names)
    k = int(talk.bytes.argmax())
    pair = talk.sender[k], talk.receiver[k]
    laid, cell = matrix.current_layout, matrix.current_layout.width / size
    place = QPointF(laid.left + (pair[1] + 0.5) * cell, laid.top + (pair[0] + 0.5) * cell)
    assert matrix.cell_at(place) == pair
    names = window.workbench.snapshot.statistics.names
    assert matrix.name_of(pair).startswith(f"{names[pair[0]]} to {names[pair[1]]}: ")


def test_what_changed_is_said_for_every_break_and_a_click_selects(qtbot, window):
    window.workbench.set_n(4)
    settled(qtbot, window, "changes")
    panel = window.panel("changes")
    text = panel.text.toPlainText()
    assert text.count("Breakpoint ") >= 3 and "Breakpoint 1 at" in text
    changes = window.workbench.snapshot.statistics.changes
    assert set(changes) == {0, 1, 2} and any(changes.values())
    assert next(c for c in changes.values() if c)[0].sentence in text.replace("\n", " ")
    panel.text.anchorClicked.emit(QUrl("2"))
    assert window.workbench.snapshot.project.view.phase == 2
    assert panel.text.toPlainText().startswith("Breakpoint 3 at")


def test_show_of_a_waiting_master_shows_the_master(qtbot):
    with open_trace(Path(__file__).parents[1] / "data" / "otf2" / "mpt_farm_6_dilated.tar.gz") as store:
        use = build(store)
        told = explain(Statistics(store), use, [0.0, use.curve().duration])
    why = Why()
    qtbot.addWidget(why)
    why.show_words(told)
    assert why.toPlainText().startswith("Rank 0 only serves the others") and 0 not in told.causes[0].locations
    with qtbot.waitSignal(why.placeAsked) as asked:
        why.anchorClicked.emit(QUrl("cause:0"))
    assert asked.args[3] == 0


def test_why_time_is_lost_is_said_first_and_a_link_shows_the_place(qtbot, window):
    window.show_panel("phases")
    why = window.panel("phases").why
    qtbot.waitUntil(lambda: "A chain of messages" in why.toPlainText(), timeout=TIMEOUT)
    told = window.workbench.snapshot.statistics.words
    text = why.toPlainText().replace("\n", " ")
    assert text.startswith(told.causes[0].sentence) and told.level in text
    assert [f"Phase {k + 1}" in text for k in range(len(told.phases))] == [True] * len(told.phases)
    for theme in (DARK, LIGHT):
        window.frame.use_theme(theme)
        assert f"color:{theme.accent}" in why.document().toHtml(), "links are read on this ground"
    top = why.mapTo(window, why.rect().topLeft()).y()
    assert top < window.panel("phases").n.mapTo(window, why.rect().topLeft()).y()
    cause = told.causes[1]
    why.anchorClicked.emit(QUrl("cause:1"))
    assert window.workbench.snapshot.project.view.phase == cause.phase >= 0
    a, b = window.curve_view.visible_range()
    assert a <= cause.start_s < cause.end_s <= b < 2 * cause.end_s
    why.anchorClicked.emit(QUrl("phase:0"))
    assert window.workbench.snapshot.project.view.phase == 0
    window.workbench.set_n(2)
    assert why.toPlainText().startswith(told.causes[0].sentence[:20])  # until there is something new
    qtbot.waitUntil(
        lambda: getattr(window.workbench.snapshot.statistics.words, "phases", ())[2:] == (), timeout=TIMEOUT
    )
    qtbot.waitUntil(lambda: "Phase 3" not in why.toPlainText(), timeout=TIMEOUT)


def test_what_takes_a_pass_is_computed_without_being_asked_for(qtbot, window):
    """Serialisation, transfer, waits and accounts of the run and all phases, after what takes none."""
    settled(qtbot, window, "statistics")
    panel = window.panel("statistics")
    seen = []
    window.workbench.subscribe(lambda _, new: seen.append(new.statistics.replayed))
    window.workbench.set_computing(frozenset({Activity.COMPUTING, Activity.IO}))  # other rules: all anew
    qtbot.waitUntil(lambda: False in seen and window.workbench.snapshot.statistics.replayed, timeout=TIMEOUT)
    found = window.workbench.snapshot.statistics
    stats = found.stats[0]
    assert all(one.replayed is not None and one.accounts is not None for one in found.stats)
    rows = {panel.model.index(k, 0).data(): k for k in range(panel.model.rowCount())}
    assert panel.model.index(rows["Absent"], 1).data() == "1.0 %" and "Wait at scan" not in rows
    panel.picture.setCurrentIndex(panel.picture.findData("accounts"))
    panel.picture.activated.emit(panel.picture.currentIndex())
    assert "Late sender" in panel.chart.content.y.categories
    # Others phases cost no other pass.
    kept = found.causality
    window.workbench.set_n(4)
    qtbot.waitUntil(
        lambda: len(window.workbench.snapshot.statistics.stats) == 5 and not window.workbench.busy,
        timeout=TIMEOUT,
    )
    now = window.workbench.snapshot.statistics
    assert now.replayed and now.causality is kept
    # Serialisation times transfer is communication efficiency (POP).
    if stats.transfer_efficiency is not None:
        product = stats.serialisation_efficiency * stats.transfer_efficiency
        assert product == pytest.approx(stats.communication_efficiency)


def test_closing_while_statistics_are_computed_is_quiet(qtbot, window):
    window.show_panel("profile")
    window.workbench.set_n(6)
    window.workbench.close_document()
    qtbot.waitUntil(lambda: not window.workbench.busy, timeout=TIMEOUT)
    assert not window.workbench._watched, window.workbench._watched
    assert window.workbench.snapshot.statistics.scopes == ()
    assert window.panel("statistics").model.rowCount() == 0
