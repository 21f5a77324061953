"""What can be read in the main window goes through the translator: all but data and sentences on them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from PySide6.QtCore import QTranslator
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QAbstractButton, QApplication, QDockWidget, QGroupBox, QLabel, QMenu, QWidget
from pytestqt.qtbot import QtBot

from desktop.resources import samples
from desktop.ui.compare_page import ComparePage
from desktop.ui.experiment_page import ExperimentPage
from desktop.ui.frame import Frame
from desktop.ui.model_page import ModelPage
from desktop.ui.page import Page
from desktop.ui.preferences import Preferences
from desktop.ui.settings import Settings
from desktop.ui.trace_page import TracePage


class Marked(QTranslator):
    """A language in which every text is as in English, in brackets."""

    def translate(self, context: str, text: str, disambiguation: str | None = None, n: int = -1) -> str:
        return f"⟦{text}⟧" if text else ""

    def isEmpty(self) -> bool:
        return False


@pytest.fixture
def marked(qapp: QApplication) -> Iterator[None]:
    translator = Marked()
    qapp.installTranslator(translator)
    yield
    qapp.removeTranslator(translator)


def texts(window: QWidget) -> Iterator[str]:
    """What can be read in it, and what is read aloud."""
    for action in window.findChildren(QAction):
        yield from (action.text(), action.statusTip())
    for widget in window.findChildren(QWidget):
        yield from (widget.toolTip(), widget.accessibleName(), widget.accessibleDescription())
        if isinstance(widget, QLabel | QAbstractButton):
            yield widget.text()
        if isinstance(widget, QGroupBox | QMenu):
            yield widget.title()
        if isinstance(widget, QDockWidget):
            yield widget.windowTitle()


def unmarked(text: str) -> str:
    """The words that did not go through the translator; units and file names are no words."""
    left, before = unescape(re.sub("<.*?>", "", text)), ""
    while left != before:  # what was put into a translated text may be one itself
        left, before = re.sub("⟦[^⟦⟧]*⟧", "", left), left
    return text if re.search(r"[^\W\d_]{4,}", re.sub(r"\S*/\S*|proc[·²]\S*", "", left)) else ""


def test_the_main_window_and_its_preferences_go_through_the_translator(
    qtbot: QtBot, marked: None, own_places: None, settings: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "curve.txt"
    file.write_text("0 1\n1 4\n2 2\n3 0\n")
    window = Frame(settings).trace
    qtbot.addWidget(window.frame)
    window.open_path(file)
    bench = window.workbench
    qtbot.waitUntil(lambda: bench.snapshot.suggestion is not None and not window.busy, timeout=120_000)
    window.actions_by_id["preferences"].trigger()
    dialog = window.frame.findChild(Preferences)
    assert dialog is not None
    # Data, and sentences of the workbench about them.
    known = {text for sample in samples() for text in (sample.title, sample.text)}
    known |= {"Phasewright", bench.snapshot.suggestion.reason}
    found = {text for one in (window.frame, dialog) for text in map(unmarked, texts(one)) if text}
    window.frame.close_unasked()
    assert {text for text in found if not any(text.endswith(one) for one in known)} == set()


@pytest.mark.parametrize("kind", [TracePage, ExperimentPage, ModelPage, ComparePage])
def test_commands_of_every_window_go_through_the_translator(kind: type[Page], marked: None) -> None:
    for command in kind.COMMANDS:
        assert command.text.startswith("⟦") and command.tip.startswith("⟦") and "⟦" in command.obstacle
