"""Opening with options: what is said of a trace reaches its import, and one of several can be chosen."""

from __future__ import annotations

import importlib.util
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QDialogButtonBox, QFileDialog
from pytestqt.qtbot import QtBot

from desktop.ui.frame import Frame
from desktop.ui.opening import ChoiceDialog, OpenDialog
from desktop.ui.settings import Settings
from desktop.ui.trace_page import TracePage
from desktop.ui.windows import Windows
from desktop.workbench.model import DETECT, OpenOptions

CURVE = "0 1\n1 4\n2.5 0\n3 0\n"


@pytest.fixture(autouse=True)
def as_at_first(own_places: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OpenDialog, "last", DETECT)


@pytest.fixture
def window(qtbot: QtBot, settings: Settings, no_thread_left: None) -> Iterator[TracePage]:
    made = Frame(settings).trace
    qtbot.addWidget(made.frame)
    made.frame.show()
    yield made
    made.frame.close()


@pytest.fixture
def curve(tmp_path: Path) -> Path:
    file = tmp_path / "curve.txt"
    file.write_text(CURVE)
    return file


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    file = tmp_path / "two.zip"
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr("a/run.csv", CURVE)
        packed.writestr("b/run.csv", CURVE.replace("3 0", "4.5 0"))
    return file


def dialog_of(window: TracePage, kind: type) -> OpenDialog | ChoiceDialog | None:
    return next((found for found in window.findChildren(kind) if found.isVisible()), None)


def ask(window: TracePage) -> OpenDialog:
    window.actions_by_id["open_with"].trigger()
    found = dialog_of(window, OpenDialog)
    assert isinstance(found, OpenDialog)
    return found


def opens(dialog: OpenDialog) -> bool:
    box = dialog.findChild(QDialogButtonBox)
    assert isinstance(box, QDialogButtonBox)
    return box.button(QDialogButtonBox.StandardButton.Open).isEnabled()


def duration(qtbot: QtBot, window: TracePage) -> float:
    qtbot.waitUntil(lambda: not window.workbench.busy, timeout=60_000)
    assert window.workbench.snapshot.problem is None
    run = window.workbench.snapshot.run
    assert run is not None
    return run.curve.duration


def test_what_is_said_reaches_the_import_and_is_remembered(
    qtbot: QtBot, window: TracePage, curve: Path
) -> None:
    dialog = ask(window)
    assert not opens(dialog)
    dialog.source.setText(str(curve.parent / "nothing"))
    assert not opens(dialog)
    dialog.source.setText(str(curve))
    assert opens(dialog)
    dialog.unit.setCurrentText("ms")
    dialog.workers.setValue(1)
    dialog.force.setChecked(True)
    dialog.accept()
    assert duration(qtbot, window) == pytest.approx(0.003)
    document = window.workbench.snapshot.document
    assert document is not None
    assert document.options == OpenOptions(time_unit="ms"), "what is needed to open it again"

    window.workbench.close_document()
    again = ask(window)
    assert again.options() == OpenOptions(time_unit="ms", workers=1), "but not that it is imported anew"
    again.kind.setCurrentIndex(again.kind.findData("picl"))
    assert not again.unit.isEnabled() and again.options().time_unit == "s", "PICL has its own unit"
    again.source.setText(str(curve))
    again.accept()
    qtbot.waitUntil(lambda: not window.workbench.busy, timeout=60_000)
    problem = window.workbench.snapshot.problem
    assert problem is not None and curve.name in problem.sentence and "\n" not in problem.sentence


def test_without_the_cluster_package_the_field_says_what_to_install(
    window: TracePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = importlib.util.find_spec

    def without(name: str, *words: str) -> object:
        return None if name == "distributed" else there(name, *words)

    monkeypatch.setattr(OpenDialog, "last", OpenOptions(scheduler="tcp://host:8786"))
    monkeypatch.setattr(importlib.util, "find_spec", without)
    dialog = ask(window)
    assert not dialog.scheduler.isEnabled()
    assert "phasewright[cluster]" in dialog.scheduler.placeholderText()
    assert dialog.options().scheduler is None


def test_an_address_that_does_not_answer_is_one_sentence(
    qtbot: QtBot, window: TracePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed", reason="the extra cluster is not installed")
    from desktop.data import farm
    from desktop.resources import samples

    monkeypatch.setattr(farm, "ANSWER", 0.3)
    dialog = ask(window)
    dialog.source.setText(str(next(sample.path for sample in samples() if sample.path.suffix == ".otf2")))
    dialog.scheduler.setText("tcp://127.0.0.1:9")
    dialog.accept()
    qtbot.waitUntil(lambda: not window.workbench.busy, timeout=60_000)
    problem = window.workbench.snapshot.problem
    assert problem is not None and "no scheduler answers at tcp://127.0.0.1:9" in problem.sentence


def test_one_of_several_traces_in_an_archive_is_chosen(
    qtbot: QtBot, window: TracePage, archive: Path
) -> None:
    window.open_path(archive)
    qtbot.waitUntil(lambda: dialog_of(window, ChoiceDialog) is not None, timeout=60_000)
    problem = window.workbench.snapshot.problem
    assert problem is not None and "a/run.csv, b/run.csv" in problem.sentence
    dialog = dialog_of(window, ChoiceDialog)
    assert isinstance(dialog, ChoiceDialog)
    dialog.list.setFocus()
    qtbot.keyClick(dialog.list, Qt.Key.Key_Down)
    qtbot.keyClick(dialog.list, Qt.Key.Key_Return)
    assert duration(qtbot, window) == 4.5
    document = window.workbench.snapshot.document
    assert document is not None and document.options.member == "b/run.csv"
    assert dialog_of(window, ChoiceDialog) is None


def test_a_window_in_use_gets_another_beside_it(
    qtbot: QtBot, qapp: QApplication, curve: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    windows = Windows(qapp)
    windows.open()
    (frame,) = windows._open
    first = frame.trace
    try:
        monkeypatch.setattr(QFileDialog, "getOpenFileNames", lambda *_: ([str(curve)], ""))
        first.choose_file()
        first.choose_file()
        first.open_with(archive, OpenOptions(member="a/run.csv"))
        assert len(windows._open) == 3, "each in a window of its own, and all of them at work"
        assert [duration(qtbot, one.trace) for one in windows._open] == [3.0, 3.0, 3.0]
    finally:
        windows.quit()
    assert not windows._open
