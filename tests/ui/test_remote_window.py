"""A trace on another machine in the window: asked for, shown, kept in a project, and a line that is lost."""

from __future__ import annotations

import shlex
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtWidgets import QDialogButtonBox
from pytestqt.qtbot import QtBot

from desktop.core.changes import Changes
from desktop.data import coarse, remote
from desktop.data.opening import open_trace
from desktop.data.statistics import Statistics
from desktop.data.store import TraceStore
from desktop.data.utilization import build
from desktop.data.whatif import Rerun
from desktop.errors import StoreError
from desktop.remote import RemotePath, hosts, listeners, named
from desktop.ui.frame import Frame
from desktop.ui.opening import RemoteDialog
from desktop.ui.settings import Settings
from desktop.ui.trace_page import TracePage

SAMPLE = Path(__file__).parents[2] / "resources" / "samples" / "cholesky_16" / "traces.otf2"


@pytest.fixture
def page(
    qtbot: QtBot, settings: Settings, own_places: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[TracePage]:
    script = tmp_path / "ssh"
    script.write_text('#!/bin/sh\nexec sh -c "$2"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PHASEWRIGHT_SSH", str(script))
    monkeypatch.setenv("PHASEWRIGHT_REMOTE_COMMAND", f"exec {sys.executable} -m desktop serve")
    monkeypatch.setattr(remote, "AGAIN", 0.2)
    made = Frame(settings).trace
    qtbot.addWidget(made.frame)
    made.frame.show()
    yield made
    made.frame.close()
    assert not listeners


def test_open_remote_shows_the_trace_keeps_its_place_and_goes_on_after_a_lost_line(
    page: TracePage, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = tmp_path / "far.h5"
    open_trace(SAMPLE, output=far).close()
    asked_in = []
    ask = remote.Line.ask

    def noted(self, *args, **more):
        asked_in.append(threading.current_thread())
        return ask(self, *args, **more)

    monkeypatch.setattr(remote.Line, "ask", noted)

    # the dialog
    page.actions_by_id["open_remote"].trigger()
    dialog = next(one for one in page.findChildren(RemoteDialog) if one.isVisible())
    button = dialog.findChild(QDialogButtonBox).button(QDialogButtonBox.StandardButton.Open)
    assert not button.isEnabled()
    dialog.host.setCurrentText("-oProxyCommand=x")
    dialog.path.setCurrentText(str(far))
    assert not button.isEnabled()
    dialog.host.setCurrentText("me@cluster")
    dialog.command.setText("~/bin/phasewright serve")
    assert button.isEnabled()
    button.click()
    bench = page.workbench
    qtbot.waitUntil(lambda: bench.snapshot.document is not None)
    document = bench.snapshot.document
    assert isinstance(document.source, RemotePath) and str(document.source) == f"ssh://me@cluster{far}"
    assert page.settings.recent[0] == document.source and isinstance(page.settings.recent[0], RemotePath)
    assert (page.settings.remote_command, hosts()) == ("~/bin/phasewright serve", ["me@cluster"])
    with open_trace(far) as store:
        from desktop.data.info import info

        assert document.info["totals"] == info(store)["totals"]

    # n follows without the line
    line = remote.Line._all["me@cluster"]
    before = len(asked_in)
    bench.set_n(5)
    qtbot.waitUntil(lambda: bench.snapshot.fit is not None and bench.snapshot.fit.n == 5)
    qtbot.waitUntil(lambda: not page.timeline.busy)

    # who waited for whom is found where the events are: they do not come for it
    bench.watch("test", frozenset({"accounts"}))
    qtbot.waitUntil(lambda: bench.snapshot.statistics.path is not None, timeout=60_000)
    found = bench.snapshot.statistics
    assert found.replayed and found.remote and found.words is not None and not found.waits
    assert found.causality is None and bench._causality is None and not bench._tracing_waits.busy
    with open_trace(far) as store:
        own = Statistics(store).causes(found.run.utilization).path_line(found.run.utilization)
    assert np.array_equal(found.path.begin, own.begin)

    # so is what would help, and what the run would last
    bench.watch("test", frozenset({"whatif"}))
    qtbot.waitUntil(lambda: bool(bench.snapshot.what_if.helps), timeout=60_000)
    bench.ask_what_if(Changes(phases=((0, 2.0),)))
    qtbot.waitUntil(lambda: bench.snapshot.what_if.drawn is not None, timeout=60_000)
    what_if = bench.snapshot.what_if
    assert what_if.prediction.duration_s < what_if.prediction.recorded_s and what_if.regions
    assert bench._causality is None and not bench._tracing_waits.busy
    with open_trace(far) as store:
        breaks = bench.snapshot.fit.breaks[1:-1].tolist()
        again = Rerun(store, found.run.utilization, breakpoints=breaks).predict(what_if.changes)
    assert again.duration_s == what_if.prediction.duration_s
    bench.ask_what_if(None)
    bench.watch("test", frozenset())

    # the line is lost; what is looked at then comes as soon as it is there again
    line._process.kill()
    line._process.wait(30)
    store = bench._store
    store.elsewhere._state[:] = 0  # as in a large trace, of which little is here
    rows = [(0, int(store.places("events").sum(0)[1]))]
    thread = threading.Thread(
        target=lambda: store.bring("events", rows, ["time", "kind", "region"]), daemon=True
    )
    thread.start()
    texts: list[str] = []

    def over() -> bool:
        texts.append(str(page.frame.main._own_tasks))
        return not thread.is_alive()

    qtbot.waitUntil(over)
    thread.join(30)
    assert line.connections == 2 and len(asked_in) > before
    assert any("The line to cluster is lost, trying again in 1 s" in text for text in texts)
    qtbot.waitUntil(lambda: "line" not in page.frame.main._own_tasks)
    assert threading.main_thread() not in asked_in  # the window itself never waits for the line

    # a project names it
    project = tmp_path / "far.phasewright"
    page.desk.projects.save(project, None)
    assert f'"ssh://me@cluster{far}"' in project.read_text()
    bench.close_document()
    page.desk.open(project)
    qtbot.waitUntil(lambda: bench.snapshot.document is not None)
    assert bench.snapshot.document.source == document.source


def test_a_coarse_curve_is_in_hand_until_the_exact_one_has_come(
    page: TracePage, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = tmp_path / "far.h5"
    open_trace(SAMPLE, output=far).close()
    with open_trace(far) as store:
        exact = build(store).curve()
    monkeypatch.setattr(coarse, "FEW", 100)
    held, wanted = threading.Event(), threading.Event()
    bring = TraceStore.bring

    def slow(self, table, spans, names):
        if table == "utilization" and self.elsewhere is not None:
            wanted.set()
            assert held.wait(30)
        bring(self, table, spans, names)

    monkeypatch.setattr(TraceStore, "bring", slow)
    monkeypatch.setattr(TraceStore, "brought", lambda *_: False)  # so little comes with the first answer
    bench, page.settings.remote_command = page.workbench, ""
    bench.watch("test", frozenset({"accounts", "whatif"}))
    try:
        bench.open(named(f"ssh://me@cluster{far}"))
        qtbot.waitUntil(lambda: bench.snapshot.fit is not None and wanted.is_set(), timeout=60_000)
        shown = bench.snapshot
        assert shown.run.coarse and not np.array_equal(shown.run.curve.level, exact.level)
        qtbot.waitUntil(lambda: "The exact curve" in str(page.tasks))  # it says what it waits for
        assert "Coarse" in page.curve_view.accessibleDescription()
        assert not page.actions_by_id["report"].isEnabled()
        assert not bench._counting.busy and not bench.snapshot.statistics.stats  # nothing is found out of it

        # n follows the hand
        bench.set_n(5)
        qtbot.waitUntil(lambda: bench.snapshot.fit.n == 5 and not bench.snapshot.refining)
        assert bench.snapshot.run is shown.run and bench.snapshot.fit.breaks.size == 6

        # rules that are changed, and given up: it goes on
        bench.set_repaired(not bench.snapshot.document.repaired)
        bench.cancel_opening()
        assert bench.snapshot.run is shown.run and bench._sharpening.busy
        held.set()
        qtbot.waitUntil(lambda: not bench.snapshot.run.coarse, timeout=60_000)
        now = bench.snapshot
        assert np.array_equal(now.run.curve.level, exact.level) and now.run.structure is not None
        assert now.project.phases.n == 5  # as it was asked for
        qtbot.waitUntil(lambda: bench.snapshot.fit is not None and bench.snapshot.fit.n == 5)
        assert "Coarse" not in page.curve_view.accessibleDescription()
        assert page.actions_by_id["report"].isEnabled()
        qtbot.waitUntil(lambda: bench.snapshot.statistics.replayed, timeout=60_000)
        qtbot.waitUntil(lambda: "exact" not in bench.running_fits)

        # of one that nobody has touched the suggestion is that of the exact curve
        bench.close_document()
        for kept in (tmp_path / "CACHE").rglob("*.h5"):
            kept.unlink()
        held.clear()
        wanted.clear()
        bench.open(named(f"ssh://me@cluster{far}"))
        qtbot.waitUntil(lambda: bench.snapshot.fit is not None and wanted.is_set(), timeout=60_000)
        assert bench.snapshot.run.coarse
        held.set()
        qtbot.waitUntil(lambda: not bench.snapshot.run.coarse, timeout=60_000)
        assert bench.snapshot.as_suggested and not bench.history.done
    finally:
        held.set()


def test_an_exact_curve_that_was_stopped_or_failed_is_asked_for_again_and_a_chosen_n_stays(
    page: TracePage, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = tmp_path / "far.h5"
    open_trace(SAMPLE, output=far).close()
    monkeypatch.setattr(coarse, "FEW", 100)
    monkeypatch.setattr(coarse, "STEPS", 8)  # of so few steps another n is suggested
    few = "from desktop.data import coarse; coarse.STEPS = 8; from desktop import cli; cli.run(['serve'])"
    monkeypatch.setenv("PHASEWRIGHT_REMOTE_COMMAND", f"exec {sys.executable} -c {shlex.quote(few)}")
    held, wanted, broken = threading.Event(), threading.Event(), [False]
    bring = TraceStore.bring

    def slow(self, table, spans, names):
        if table == "utilization" and self.elsewhere is not None:
            wanted.set()
            assert held.wait(30)
            if broken[0]:
                raise StoreError("is not there any more")
        bring(self, table, spans, names)

    monkeypatch.setattr(TraceStore, "bring", slow)
    monkeypatch.setattr(TraceStore, "brought", lambda *_: False)
    bench, again = page.workbench, page.actions_by_id["exact_curve"]
    page.settings.remote_command, chosen = "", []
    phases: Any = page.panel("phases")

    def opened() -> None:
        """With the coarse curve; the exact one is on its way, and held."""
        bench.close_document()
        for kept in (tmp_path / "CACHE").rglob("*.h5"):
            kept.unlink()
        held.clear()
        wanted.clear()
        bench.open(named(f"ssh://me@fewer{far}"))  # a line of its own, with another program there
        qtbot.waitUntil(lambda: bench.snapshot.fit is not None and wanted.is_set(), timeout=60_000)
        assert bench.snapshot.run.coarse and bench.snapshot.as_suggested and again.isEnabled()
        chosen[:] = [bench.snapshot.project.phases.n]

    def exact() -> None:
        held.set()
        qtbot.waitUntil(lambda: not bench.snapshot.run.coarse, timeout=60_000)
        qtbot.waitUntil(lambda: bench.snapshot.suggestion is not None and bench.snapshot.fit is not None)
        assert bench.snapshot.suggestion.n != chosen[0]
        assert not again.isEnabled()

    assert not again.isEnabled()
    try:
        # stopped, and asked for again; nobody has chosen n
        opened()
        bench.cancel_exact()
        held.set()
        qtbot.waitUntil(lambda: "exact" not in bench.running_fits)
        assert bench.snapshot.run.coarse
        again.trigger()
        assert bench._sharpening.busy
        exact()
        assert bench.snapshot.as_suggested and not bench.history.done

        # failed; n was chosen, as it was suggested
        opened()
        broken[0] = True
        phases.n.setValue(chosen[0] + 1)
        phases.n.setValue(chosen[0])
        held.set()
        qtbot.waitUntil(lambda: bench.snapshot.problem is not None, timeout=60_000)
        assert "Exact curve asks for it again" in bench.snapshot.problem.sentence
        assert bench.snapshot.run.coarse and not bench._sharpening.busy
        broken[0] = False
        again.trigger()
        exact()
        assert bench.snapshot.project.phases.n == chosen[0] and not bench.snapshot.as_suggested

        # chosen, and given back to the suggestion
        opened()
        phases.n.setValue(chosen[0] + 1)
        qtbot.waitUntil(lambda: bench.snapshot.suggestion is not None)
        page.actions_by_id["suggested"].trigger()
        exact()
        assert bench.snapshot.as_suggested
    finally:
        held.set()
