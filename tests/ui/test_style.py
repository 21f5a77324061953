"""What the style paints that a palette cannot say, in each theme, and that widgets follow a change of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QMenuBar,
    QPushButton,
    QTabBar,
    QTextEdit,
    QTreeWidget,
    QWidget,
)
from pytestqt.qtbot import QtBot

from desktop.ui import style
from desktop.ui.message_bar import MessageBar
from desktop.ui.pages import set_up, stacked
from desktop.ui.theme import DARK, LIGHT, Theme

W = TypeVar("W", bound=QWidget)
Show = Callable[[Any], Any]


@pytest.fixture(params=[LIGHT, DARK], ids=lambda theme: theme.name)
def theme(qapp: QApplication, request: pytest.FixtureRequest) -> Iterator[Theme]:
    yield request.param
    style.apply(qapp, LIGHT)


@pytest.fixture
def shown(qtbot: QtBot, qapp: QApplication, theme: Theme) -> Callable[[W], W]:
    """Shows a widget beside another one before the theme is chosen."""
    holders: list[QWidget] = []

    def show(widget: W) -> W:
        holders.append(stacked(widget, QPushButton("Beside")))
        qtbot.addWidget(holders[-1])
        style.apply(qapp, LIGHT if theme.dark else DARK)
        holders[-1].show()
        qapp.processEvents()
        style.apply(qapp, theme)
        qapp.processEvents()
        return widget

    return show


def seen(widget: QWidget) -> QImage:
    return widget.grab().toImage()


def colours(image: QImage) -> set[str]:
    return {image.pixelColor(x, y).name() for x in range(image.width()) for y in range(image.height())}


@pytest.mark.parametrize("shape", [QTabBar.Shape.RoundedNorth, QTabBar.Shape.RoundedSouth])
def test_the_selected_tab_has_a_line_at_its_outer_edge(
    shown: Show, theme: Theme, shape: QTabBar.Shape
) -> None:
    tabs = set_up(QTabBar(), shape=shape, expanding=False, focusPolicy=Qt.FocusPolicy.NoFocus)
    for text in ("Trace", "Compare", "Model"):
        tabs.addTab(text)
    tabs.setCurrentIndex(1)
    image = seen(shown(tabs))
    for k in range(3):
        box = tabs.tabRect(k)
        top, bottom = (image.pixelColor(box.center().x(), y).name() for y in (box.top(), box.bottom()))
        edge, other = (top, bottom) if shape == QTabBar.Shape.RoundedNorth else (bottom, top)
        assert (edge == theme.accent) == (k == 1) and other != theme.accent
        text = theme.text if k == 1 else theme.muted
        assert text in colours(image.copy(box)) and (k == 1 or theme.text not in colours(image.copy(box)))


def test_no_line_is_below_a_menu_in_a_higher_bar(shown: Show, theme: Theme) -> None:
    bar = QMenuBar()
    entry = bar.addMenu("File").menuAction()
    shown(bar).setMinimumHeight(bar.height() + 9)
    QApplication.processEvents()
    box = bar.actionGeometry(entry)
    assert box.bottom() < bar.height() - 4
    ground = bar.palette().window().color().name()
    assert colours(seen(bar).copy(box.left(), box.bottom(), box.width(), 1)) == {ground}


@pytest.mark.parametrize("kind", [QTextEdit, QTreeWidget])
def test_what_scrolls_has_a_frame_that_shows_the_focus(
    qtbot: QtBot, shown: Show, theme: Theme, kind: type[QWidget]
) -> None:
    widget = shown(kind())
    edge = widget.rect().left(), widget.rect().center().y()
    window = widget.window()
    window.activateWindow()
    window.findChild(QPushButton).setFocus()
    qtbot.waitUntil(lambda: not widget.hasFocus())
    assert seen(widget).pixelColor(*edge).name() == theme.grid
    widget.setFocus()
    qtbot.waitUntil(widget.hasFocus)
    assert seen(widget).pixelColor(*edge).name() == theme.focus


def test_a_box_is_seen_on_any_ground(shown: Show, theme: Theme) -> None:
    box = shown(QCheckBox())
    for checked in (False, True):
        box.setChecked(checked)
        assert {theme.muted, theme.background} <= colours(seen(box))


def test_the_default_button_shows_the_focus(qtbot: QtBot, shown: Show, theme: Theme) -> None:
    button = shown(set_up(QPushButton("Open"), default=True))
    button.window().activateWindow()
    button.setFocus()
    qtbot.waitUntil(button.hasFocus)
    assert seen(button).pixelColor(button.rect().center().x(), 0).name() == theme.focus
    button.clearFocus()
    assert theme.focus not in colours(seen(button))


def test_a_message_follows_the_theme(shown: Show, theme: Theme) -> None:
    bar = MessageBar("notice")
    shown(bar)
    bar.show_message("A sentence.")
    QApplication.processEvents()
    image = seen(bar)
    assert image.pixelColor(2, bar.height() // 2) == QColor("#0072b2")
    assert image.pixelColor(8, bar.height() // 2).name() == theme.background


def test_the_style_is_made_once(qapp: QApplication) -> None:
    style.apply(qapp, DARK)
    made = qapp.style()
    style.apply(qapp, LIGHT)
    assert qapp.style() is made and isinstance(made, style.Style) and not qapp.styleSheet()
