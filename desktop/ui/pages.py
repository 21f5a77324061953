"""What the pages of windows are put together from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from PySide6.QtCore import QEvent, QObject, QRect, QSignalBlocker, Qt, SignalInstance
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QComboBox,
    QFrame,
    QGroupBox,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QLayout,
    QLineEdit,
    QMenu,
    QScrollArea,
    QSplitter,
    QTabWidget,
    QTreeWidget,
    QVBoxLayout,
    QWidget,
)  # fmt: skip

from desktop.ui.guard import guarded

W = TypeVar("W")
L = TypeVar("L", bound=QBoxLayout)


def set_up(made: W, **settings: Any) -> W:
    """Set properties by name and connect signals: ``set_up(QLabel(), wordWrap=True, linkActivated=go)``. A
    tuple is the arguments of a setter that takes several."""
    for name, value in settings.items():
        known = getattr(made, name, None)
        if isinstance(known, SignalInstance):
            known.connect(value)
        else:
            setter = getattr(made, f"set{name[0].upper()}{name[1:]}")
            setter(*value) if isinstance(value, tuple) else setter(value)
    return made


def fill_layout(
    layout: L,
    *parts: QWidget | QLayout | tuple[Any, ...] | None,
    margins: int | tuple[int, int, int, int] | None = None,
    spacing: int | None = None,
) -> L:
    """Add widgets and layouts (with a stretch: a tuple); None is room that stretches."""
    if margins is not None:
        layout.setContentsMargins(*(margins if isinstance(margins, tuple) else 4 * (margins,)))
    if spacing is not None:
        layout.setSpacing(spacing)
    for part in parts:
        one, *more = part if isinstance(part, tuple) else (part,)
        if one is None:
            layout.addStretch(1)
        elif isinstance(one, QLayout):
            layout.addLayout(one, *more)
        else:
            layout.addWidget(one, *more)
    return layout


def passing_menu(parent: QWidget) -> QMenu:
    """A menu that goes when it is closed."""
    return set_up(QMenu(parent), attribute=Qt.WidgetAttribute.WA_DeleteOnClose)


class _Rows(QTreeWidget):
    """Rows of which no column but the first takes more than `_SHARE` of the width, however long its texts."""

    @guarded(otherwise=int)
    def sizeHintForColumn(self, column: int) -> int:
        hint = super().sizeHintForColumn(column)
        return min(hint, int(_SHARE * self.viewport().width())) if column else hint


_SHARE = 0.35


def listing(name: str, *headings: str) -> QTreeWidget:
    """Rows of texts, of which the first takes the room that the others leave."""
    rows = set_up(_Rows(), accessibleName=name, headerLabels=list(headings), uniformRowHeights=True)
    rows.header().setStretchLastSection(False)
    for column in range(len(headings)):
        modes = QHeaderView.ResizeMode
        rows.header().setSectionResizeMode(column, modes.ResizeToContents if column else modes.Stretch)
    return rows


def refill(box: QComboBox, entries: Mapping[Any, str], chosen: Any = None) -> None:
    """Other entries for a combo box, by what they stand for, with `chosen`, else the first, as the current
    one; nobody is told."""
    with QSignalBlocker(box):
        box.clear()
        for key, text in entries.items():
            box.addItem(text, key)
        keys = list(entries)
        box.setCurrentIndex(keys.index(chosen) if chosen in entries else 0 if keys else -1)


def choices(entries: Mapping[Any, str], chosen: Any = None, **settings: Any) -> QComboBox:
    """A combo box, set up, of entries by what they stand for."""
    box = QComboBox()
    refill(box, entries, chosen)
    return set_up(box, **settings)


def divided(way: Qt.Orientation, *parts: tuple[QWidget, int], **settings: Any) -> QSplitter:
    """Parts with handles between them, and what each gets of more room; set up."""
    split = set_up(QSplitter(way), childrenCollapsible=False, **settings)
    for k, (widget, share) in enumerate(parts):
        split.addWidget(widget)
        split.setStretchFactor(k, share)
    return split


def row(*widgets: QWidget | tuple[QWidget, int] | None) -> QHBoxLayout:
    """Beside each other, as `fill_layout` takes them."""
    return fill_layout(QHBoxLayout(), *widgets)


def group(title: str, *parts: QWidget | QLayout) -> QGroupBox:
    """Above each other in a frame with a title."""
    box = QGroupBox(title)
    fill_layout(QVBoxLayout(box), *parts)
    return box


def stacked(*parts: QWidget | QLayout, stretch: int = -1) -> QWidget:
    """Above each other without margins; the part at `stretch` takes the room."""
    holder = QWidget()
    layout = fill_layout(QVBoxLayout(holder), *parts, margins=0)
    if stretch >= 0:
        layout.setStretch(stretch, 1)
    return holder


def beside(first: QWidget, second: QWidget, share: int = 50) -> QSplitter:
    """Two parts with a handle between them; the first gets `share` percent of the width."""
    split = divided(Qt.Orientation.Horizontal, (first, share), (second, 100 - share))
    split.setSizes([100 * share, 100 * (100 - share)])
    return split


def search_field(what: str, changed: Callable[[str], object]) -> QLineEdit:
    """A line for words that are looked for, which can be cleared."""
    return set_up(
        QLineEdit(), placeholderText=what, accessibleName=what, clearButtonEnabled=True, textChanged=changed
    )


def tabbed(pages: Mapping[str, QWidget]) -> QTabWidget:
    """Pages behind each other by their titles."""
    tabs = set_up(QTabWidget(), documentMode=True)
    for title, page in pages.items():
        tabs.addTab(page, title)
    return tabs


def turn_to(tabs: QTabWidget, title: str) -> None:
    """Show the page of that title."""
    tabs.setCurrentIndex([tabs.tabText(k) for k in range(tabs.count())].index(title))


def heading(text: str, factor: float) -> QLabel:
    """Bold, and so many times as large as other text."""
    label = QLabel(text)
    font = label.font()
    font.setPointSizeF(factor * font.pointSizeF())
    font.setBold(True)
    label.setFont(font)
    return label


def first_page(title: str, *parts: QLabel) -> tuple[QWidget, QVBoxLayout]:
    """What a window shows while nothing is open: what it is for. Below that comes what can be done."""
    page = QWidget()
    layout = fill_layout(QVBoxLayout(page), heading(title, 2.0), *parts, margins=(48, 36, 48, 24), spacing=12)
    return page, layout


def quiet(text: str = "") -> QLabel:
    """A paragraph."""
    return set_up(QLabel(text), wordWrap=True)


def scrolled(page: QWidget) -> QScrollArea:
    """A page that scrolls where it has less room than its texts need."""
    area = set_up(QScrollArea(), widget=page, widgetResizable=True, frameShape=QFrame.Shape.NoFrame)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    return area


def column(*widgets: QWidget) -> QWidget:
    """Widgets close above each other without margins; the last takes the room."""
    holder = stacked(*widgets, stretch=len(widgets) - 1)
    set_up(holder.layout(), spacing=1)
    return holder


class Floating(QWidget):
    """A page, and above its upper edge bars that come and go: the page stays where it is below them.

    What is under the pointer would otherwise be somewhere else when the user clicks. Only the first bars get
    room of their own where that is asked for (`make_room`).
    """

    def __init__(self, page: QWidget, *bars: QWidget, area: Callable[[], QRect] | None = None) -> None:
        """`area`: the part of it that the bars lie above; None: all of it."""
        super().__init__()
        self._area = area
        self._roomy: tuple[QWidget | None, int] = (None, 0)
        fill_layout(QVBoxLayout(self), page, margins=0)
        self._over = column(*bars)
        self._over.setParent(self)
        self._over.installEventFilter(self)
        self.place()

    def place(self) -> None:
        """Put the bars at the upper edge of their area."""
        layout = self._over.layout()
        assert layout is not None
        area = self.rect() if self._area is None else self._area()
        wide = area.width()
        high = layout.heightForWidth(wide) if layout.hasHeightForWidth() else layout.sizeHint().height()
        self._over.setGeometry(area.x(), area.y(), wide, high)
        self._over.raise_()
        page, bars = self._roomy
        if page is not None:
            above = self._over.children()[1:]  # without the layout
            shown = [bar for bar in above[:bars] if isinstance(bar, QWidget) and not bar.isHidden()]
            room = sum(
                bar.heightForWidth(wide) if bar.hasHeightForWidth() else bar.sizeHint().height()
                for bar in shown
            )
            page.setContentsMargins(0, room, 0, 0)

    def make_room(self, page: QWidget, bars: int) -> None:
        """`page` begins below so many of the first bars instead of under them."""
        self._roomy = (page, bars)
        self.place()

    @guarded
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.place()

    @guarded(otherwise=bool)
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self.place()
        return super().eventFilter(watched, event)
