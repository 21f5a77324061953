"""Letters that are underlined: Alt with each leads to one thing. (That none is there twice in any look of any
window, test_accessibility.py holds, which walks through all looks.)"""

from __future__ import annotations

from collections import Counter

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QGroupBox,
    QLabel,
    QMenu,
    QPushButton,
    QStackedWidget,
    QTabBar,
    QVBoxLayout,
    QWidget,
)
from pytestqt.qtbot import QtBot

from desktop.ui.compare_page import ComparePage
from desktop.ui.experiment_page import ExperimentPage
from desktop.ui.frame import Frame
from desktop.ui.mnemonics import letter, letter_menu, lettered, plain, settle
from desktop.ui.model_page import ModelPage
from desktop.ui.page import Page
from desktop.ui.trace_page import TracePage
from desktop.ui.watch_page import WatchPage
from tests.ui.scene import Scene, classes

#: Of the offscreen platform, when a menu opens.
pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints", "This plugin does not support")

KINDS = (TracePage, ComparePage, ModelPage, ExperimentPage, WatchPage)


def marked(root: QWidget) -> list[tuple[str, str]]:
    """Letters and texts of what Alt reaches in a window now: what Qt takes for visible."""
    found = []
    for widget in root.findChildren(QWidget):
        if widget.window() is not root or not widget.isVisible():
            continue
        if (isinstance(widget, QLabel) and widget.buddy() is not None) or isinstance(widget, QAbstractButton):
            found.append(widget.text())
        elif isinstance(widget, QGroupBox):
            found.append(widget.title())
        elif isinstance(widget, QTabBar):
            found += [widget.tabText(k) for k in range(widget.count())]
    if isinstance(root, Frame):
        found += [action.text() for action in root.menuBar().actions()]
    return [(letter(text), text) for text in found if letter(text)]


def doubled(letters: list[tuple[str, str]]) -> list[str]:
    counts = Counter(one for one, _ in letters)
    return sorted(text for one, text in letters if counts[one] > 1)


def test_no_shortcut_takes_a_letter_of_a_window(scene: Scene) -> None:
    for page in scene.pages:
        page.frame.go_to(page)
        own = {key.toString() for one in page.findChildren(QAction) for key in one.shortcuts()}
        for one, text in marked(page.frame):
            assert QKeySequence(f"Alt+{one}").toString() not in own, text


def test_all_kinds_of_pages_are_tried() -> None:
    assert classes(Page) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_alt_and_its_letter_opens_each_menu(qtbot: QtBot, scene: Scene, kind: type[Page]) -> None:
    page = scene.page(kind)
    window = page.frame
    window.show()
    window.activateWindow()
    qtbot.waitUntil(lambda: QApplication.activeWindow() is window)  # and no menu of the page before
    for name in page.MENUS:
        menu = page.menus[name]
        (key,) = letter(menu.title())
        QTest.keyClick(window, Qt.Key(ord(key.upper())), Qt.KeyboardModifier.AltModifier)
        qtbot.waitUntil(menu.isVisible)
        assert QApplication.activePopupWidget() is menu
        menu.close()
        window.menuBar().setActiveAction(None)  # type: ignore[arg-type]  # none, as Esc leaves it


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_letters_are_unique_within_each_menu(scene: Scene, kind: type[Page]) -> None:
    page = scene.page(kind)
    tops = [page.menus[name] for name in page.MENUS]
    for menu in (*tops, *(menu for top in tops for menu in top.findChildren(QMenu))):
        menu.aboutToShow.emit()
        texts = [a.text() for a in menu.actions() if a.isVisible() and not a.isSeparator()]
        letters = [(letter(text), text) for text in texts]
        assert not doubled([one for one in letters if one[0]]), menu.title()
        taken = {one for one, _ in letters}
        for one, text in letters:
            assert one or not {c for c in plain(text).lower() if c.isalnum()} - taken, f"{text} has none"


def test_a_letter_of_a_menu_chooses_its_entry(scene: Scene) -> None:
    main = scene.main
    menu = main.menus["View"]
    menu.aboutToShow.emit()
    before = main.percent
    menu.popup(main.frame.pos())
    key = letter(main.actions_by_id["percent"].text())
    QTest.keyClick(menu, Qt.Key(ord(key.upper())))
    assert main.percent is not before
    main.set_percent(before)
    menu.close()


def test_letters_are_given_out_in_order() -> None:
    assert lettered(["&File", "&Find", "Fit"]) == ["&File", "F&ind", "Fi&t"]
    assert lettered(["Save", "Save as", "as"]) == ["&Save", "Save &as", "as"]
    assert lettered(["A && B", "a"]) == ["&A && B", "a"]
    assert lettered(["&One", "&Or"], lambda a, b: False) == ["&One", "&Or"]
    assert lettered(["Ban&ana"]) == ["Ban&ana"], "the letter that is marked, not the first of its kind"


def test_pages_and_hidden_entries_take_no_letters_from_each_other(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    pages, whole = QStackedWidget(), QVBoxLayout(window)
    buttons = []
    for _ in range(2):
        page = QWidget()
        buttons.append(QPushButton("&Apply", page))
        pages.addWidget(page)
    whole.addWidget(pages)
    settle(window)
    assert [button.text() for button in buttons] == ["&Apply", "&Apply"]
    beside = QPushButton("&Apply")
    whole.addWidget(beside)
    settle(window)
    assert sorted([letter(beside.text()), letter(buttons[0].text())]) != ["a", "a"]
    menu = QMenu(window)
    hidden, shown = menu.addAction("&Add"), menu.addAction("&All")
    hidden.setVisible(False)
    letter_menu(menu)
    assert letter(shown.text()) == "a"
