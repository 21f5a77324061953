"""The style of all widgets: Fusion, with what a palette cannot say.

It is not a style sheet: under one, each widget is compared with all rules when it is made and when colours or
the font change, which took 1.6 s with all pages open.
"""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QCoreApplication, QEvent, QRect, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPalette, QPen
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QPlainTextEdit,
    QProxyStyle,
    QStyle,
    QStyleOptionButton,
    QStyleOptionHeader,
    QTabBar,
    QTextEdit,
    QToolTip,
    QWidget,
)

from desktop.ui.guard import guarded, saved
from desktop.ui.pages import set_up
from desktop.ui.theme import LIGHT, Theme, palette

_Control, _Primitive = QStyle.ControlElement, QStyle.PrimitiveElement
_Button, _State = QStyleOptionButton.ButtonFeature, QStyle.StateFlag
_TABS_BELOW = (QTabBar.Shape.RoundedSouth, QTabBar.Shape.TriangularSouth)
_TAB_TEXT = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextSingleLine | Qt.TextFlag.TextShowMnemonic
#: Lines along the selected tab, and around a button with the focus, pixels.
_TAB_LINE, _FOCUS = 3, 2
#: More room beside a heading, if there is some, pixels.
_HEADING = 4


class Style(QProxyStyle):
    """In the colours of a theme. All sizes are those of Fusion: Qt asks for them too often for an answer in
    Python."""

    def __init__(self) -> None:
        super().__init__("Fusion")
        self._theme = LIGHT

    def use(self, app: QApplication, theme: Theme) -> None:
        """Let the whole program have the colours of a theme."""
        self._theme = theme
        app.setPalette(palette(theme))
        QToolTip.setPalette(app.palette())

    # Qt's stubs lack the fields of options.

    @guarded
    def drawControl(
        self, element: QStyle.ControlElement, option: Any, painter: QPainter, widget: QWidget | None = None
    ) -> None:
        theme, rect = self._theme, option.rect
        if element == _Control.CE_TabBarTabShape:
            self._draw_tab(option, painter)
            return
        if element == _Control.CE_TabBarTabLabel:
            self._draw_tab_text(option, painter, widget)
            return
        if element in (_Control.CE_HeaderSection, _Control.CE_HeaderEmptyArea):
            _draw_bar(painter, rect, theme.surface, theme.border)
            return
        if element == _Control.CE_ToolBar:
            _draw_bar(painter, rect, theme.surface, theme.grid)
            return
        if element == _Control.CE_HeaderLabel:
            option = QStyleOptionHeader(option)
            option.palette.setColor(QPalette.ColorRole.ButtonText, QColor(theme.muted))
            wide = max(map(option.fontMetrics.horizontalAdvance, option.text.split("\n")))
            if wide + 2 * _HEADING <= rect.width():
                option.rect = rect.adjusted(_HEADING, 0, -_HEADING, 0)
        super().drawControl(element, option, painter, widget)
        if element == _Control.CE_MenuBarItem and not option.state & _State.State_Selected:
            # Fusion's line below a menu is not that of the bar where the bar is higher than its menus.
            painter.fillRect(rect.left(), rect.bottom(), rect.width(), 1, option.palette.window())
        if (
            element == _Control.CE_PushButtonBevel
            and option.state & _State.State_HasFocus
            and option.features & (_Button.DefaultButton | _Button.CommandLinkButton)
        ):  # which otherwise look alike with the focus and without
            self._outline(option, painter, theme.focus, _FOCUS)

    @guarded
    def drawPrimitive(
        self, element: QStyle.PrimitiveElement, option: Any, painter: QPainter, widget: QWidget | None = None
    ) -> None:
        theme = self._theme
        framed = isinstance(widget, QAbstractItemView | QTextEdit | QPlainTextEdit)
        if element == _Primitive.PE_Frame and framed:
            focused = option.state & _State.State_HasFocus
            self._outline(option, painter, theme.focus if focused else theme.grid)
            return
        super().drawPrimitive(element, option, painter, widget)
        if element == _Primitive.PE_IndicatorCheckBox:
            self._outline(option, painter, theme.muted)  # that of Fusion is hardly seen on a dark ground

    def _outline(self, option: Any, painter: QPainter, colour: str, width: int = 1) -> None:
        with saved(painter):
            painter.setPen(QPen(QColor(colour), width))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            inset = width / 2
            painter.drawRect(QRectF(option.rect).adjusted(inset, inset, -inset, -inset))

    def _draw_tab(self, option: Any, painter: QPainter) -> None:
        """A flat tab, with a line along the outer edge of the selected one."""
        theme, rect = self._theme, option.rect
        selected = option.state & _State.State_Selected
        hovered = option.state & _State.State_MouseOver
        fill = theme.background if selected else theme.raised if hovered else theme.surface
        painter.fillRect(rect, QColor(fill))
        self._outline(option, painter, theme.grid)
        if selected:
            top = rect.bottom() + 1 - _TAB_LINE if option.shape in _TABS_BELOW else rect.top()
            painter.fillRect(rect.left(), top, rect.width(), _TAB_LINE, QColor(theme.accent))

    def _draw_tab_text(self, option: Any, painter: QPainter, widget: Any) -> None:
        """In the height of the tab: that which Fusion leaves cuts what is below the line of some fonts."""
        theme, selected = self._theme, option.state & _State.State_Selected
        focused = selected and option.state & _State.State_HasFocus
        plain = selected or option.state & _State.State_MouseOver
        rect = self.subElementRect(QStyle.SubElement.SE_TabBarTabText, option, widget)
        rect.setTop(option.rect.top())
        rect.setHeight(option.rect.height())
        with saved(painter):
            painter.setPen(QColor(theme.accent if focused else theme.text if plain else theme.muted))
            if focused:
                painter.setFont(set_up(QFont(painter.font()), underline=True))
            painter.drawText(rect, int(_TAB_TEXT), option.text)


def _draw_bar(painter: QPainter, rect: QRect, fill: str, line: str) -> None:
    """A flat bar with a line below."""
    painter.fillRect(rect, QColor(fill))
    painter.fillRect(rect.left(), rect.bottom(), rect.width(), 1, QColor(line))


def apply(app: QApplication, theme: Theme) -> None:
    """Let the program have this style, and all widgets its font and the colours of a theme."""
    style = app.style()
    if not isinstance(style, Style):
        style = Style()
        app.setStyle(style)
    style.use(app, theme)
    for change in (QEvent.Type.ApplicationFontChange, QEvent.Type.ApplicationPaletteChange):
        # Now: what is measured, made or painted next would still find the former ones.
        QCoreApplication.sendPostedEvents(None, change)
