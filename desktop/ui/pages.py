"""What the pages of windows are put together from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from PySide6.QtCore import QEvent, QObject, QRect, QSignalBlocker, QSize, Qt, Signal, SignalInstance
from PySide6.QtGui import QIcon, QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QComboBox,
    QCommandLinkButton,
    QFileDialog,
    QFormLayout,
    QFrame,
    QGroupBox,
    QHBoxLayout,
    QHeaderView,
    QInputDialog,
    QLabel,
    QLayout,
    QLineEdit,
    QMenu,
    QMessageBox,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QSplitter,
    QTabWidget,
    QTreeWidget,
    QVBoxLayout,
    QWidget,
)  # fmt: skip

from desktop.ui.guard import guarded

W = TypeVar("W")
K = TypeVar("K")
#: What a layout holds: a widget or a layout, in a tuple with more arguments of how it is added; None: room.
Part: TypeAlias = QWidget | QLayout | tuple[Any, ...] | None
#: Of all sides alike, or left, above, right and below.
Margins: TypeAlias = int | tuple[int, int, int, int]
L = TypeVar("L", bound=QBoxLayout)


def set_up(widget: W, /, **settings: object) -> W:
    """Set properties by name and connect signals: ``set_up(QLabel(), wordWrap=True, linkActivated=go)``. A
    tuple is the arguments of a setter that takes several."""
    for name, value in settings.items():
        member = getattr(widget, name, None)
        if isinstance(member, SignalInstance):
            member.connect(value)
        else:
            setter = getattr(widget, f"set{name[0].upper()}{name[1:]}")
            setter(*value) if isinstance(value, tuple) else setter(value)
    return widget


def fill_layout(layout: L, *parts: Part, margins: Margins | None = None, spacing: int | None = None) -> L:
    """Add widgets and layouts (with a stretch: a tuple); None is room that stretches.

    A layout that holds something is added before the outer one is that of a widget. Otherwise PySide makes
    Python objects for the inner one's items, and takes what Qt later makes at their addresses for them.
    """
    if margins is not None:
        layout.setContentsMargins(*(margins if isinstance(margins, tuple) else 4 * (margins,)))
    if spacing is not None:
        layout.setSpacing(spacing)
    for part in parts:
        item, *args = part if isinstance(part, tuple) else (part,)
        if item is None:
            layout.addStretch(1)
        elif isinstance(item, QLayout):
            layout.addLayout(item, *args)
        else:
            layout.addWidget(item, *args)
    return layout


def lay_out(
    widget: QWidget, *parts: Part, margins: Margins | None = None, spacing: int | None = None
) -> QVBoxLayout:
    """Put parts into a widget, above each other, as `fill_layout` takes them."""
    layout = fill_layout(QVBoxLayout(), *parts, margins=margins, spacing=spacing)
    widget.setLayout(layout)
    return layout


def passing_menu(parent: QWidget) -> QMenu:
    """A menu that is freed when it is closed."""
    return set_up(QMenu(parent), attribute=Qt.WidgetAttribute.WA_DeleteOnClose)


class _TreeRows(QTreeWidget):
    """Rows of which no column but the first takes more than `_SHARE` of the width, however long its texts."""

    @guarded(otherwise=int)
    def sizeHintForColumn(self, column: int) -> int:
        hint = super().sizeHintForColumn(column)
        return min(hint, int(_SHARE * self.viewport().width())) if column else hint


_SHARE = 0.35


def listing(name: str, *headings: str) -> QTreeWidget:
    """Rows of texts, of which the first takes the room that the others leave."""
    rows = set_up(_TreeRows(), accessibleName=name, headerLabels=list(headings), uniformRowHeights=True)
    rows.header().setStretchLastSection(False)
    for column in range(len(headings)):
        modes = QHeaderView.ResizeMode
        rows.header().setSectionResizeMode(column, modes.ResizeToContents if column else modes.Stretch)
    return rows


def refill(box: QComboBox, entries: Mapping[K, str], current: K | None = None) -> None:
    """Replace the entries of a combo box, texts by their data. The current one becomes `current`, else it
    stays, else it is the first; no signal is sent."""
    keys, data = list(entries), box.currentData() if current is None else current
    with QSignalBlocker(box):
        if [(box.itemData(k), box.itemText(k)) for k in range(box.count())] != list(entries.items()):
            box.clear()
            for key, text in entries.items():
                box.addItem(text, key)
        box.setCurrentIndex(keys.index(data) if data in entries else 0 if keys else -1)


def choices(
    entries: Mapping[K, str],
    chosen: K | None = None,
    act: Callable[[K], object] | None = None,
    *,
    name: str = "",
    narrow: int = 0,
    **settings: object,
) -> QComboBox:
    """A combo box, set up, of texts by their data; `act` gets the data when the user chooses.
    `narrow`: it needs room for so many characters only, and longer texts are cut."""
    box = QComboBox()
    if name:
        set_up(box, accessibleName=name, objectName=name.lower().replace(" ", "_"))
    if narrow:
        box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        box.setMinimumContentsLength(narrow)
    refill(box, entries, chosen)
    if act is not None:
        box.activated.connect(lambda _: act(box.currentData()))
    return set_up(box, **settings)


def by_text(names: Iterable[str]) -> dict[str, str]:
    """Entries whose data are their texts."""
    return {name: name for name in names}


def line(name: str, act: Callable[[str], object], tip: str = "") -> QLineEdit:
    """A line of text; `act` gets it when the user has finished with it."""
    field = set_up(QLineEdit(), accessibleName=name, objectName=name.lower().replace(" ", "_"), toolTip=tip)
    field.editingFinished.connect(lambda: act(field.text()))
    return field


def button(
    text: str, act: Callable[[], object], tip: str = "", name: str = "", **settings: object
) -> QPushButton:
    """A button, set up, that does `act`."""
    return set_up(QPushButton(text), toolTip=tip, objectName=name, clicked=lambda: act(), **settings)


class _Title(QLabel):
    """Qt measures a text with kerning, and draws it without beside the underlined letter, which is wider."""

    @guarded(otherwise=QSize)
    def sizeHint(self) -> QSize:
        return super().sizeHint() + QSize(self.fontMetrics().averageCharWidth() // 2, 0)

    @guarded(otherwise=QSize)
    def minimumSizeHint(self) -> QSize:
        return super().minimumSizeHint() + QSize(self.fontMetrics().averageCharWidth() // 2, 0)


def titled(text: str, field: QWidget) -> QLabel:
    """The label of a field, whose letter gives the field the focus."""
    return set_up(_Title(text), buddy=field)


def together(*parts: Part, margins: Margins = 0) -> QWidget:
    """Parts beside each other in one widget."""
    holder = QWidget()
    holder.setLayout(row(*parts, margins=margins))
    return holder


def labelled(text: str, field: QWidget, margins: Margins = 0) -> QWidget:
    """A field with its label before it, as one widget."""
    return together(titled(text, field), field, margins=margins)


def form(*rows: tuple[str, QWidget | QLayout] | QWidget, parent: QWidget | None = None) -> QFormLayout:
    """Fields below each other with their labels before them; a widget alone takes the whole width."""
    layout = QFormLayout()
    for entry in rows:
        if isinstance(entry, QWidget):
            layout.addRow(entry)
            continue
        text, field = entry
        first = field.first if isinstance(field, _Row) else field
        layout.addRow(titled(text, first) if isinstance(first, QWidget) else QLabel(text), field)
    if parent is not None:
        parent.setLayout(layout)
    return layout


def divided(orientation: Qt.Orientation, *parts: tuple[QWidget, int], **settings: object) -> QSplitter:
    """A splitter, set up, of widgets and their stretch factors."""
    split = set_up(QSplitter(orientation), childrenCollapsible=False)
    for k, (widget, share) in enumerate(parts):
        split.addWidget(widget)
        split.setStretchFactor(k, share)
    return set_up(split, **settings)  # sizes are of what it holds


class _Row(QHBoxLayout):
    """`first`: its first part, without its stretch."""

    first: Part = None


def row(*parts: Part, margins: Margins | None = None, spacing: int | None = None) -> QHBoxLayout:
    """Parts beside each other, as `fill_layout` takes them."""
    layout = fill_layout(_Row(), *parts, margins=margins, spacing=spacing)
    first = parts[0] if parts else None
    layout.first = first[0] if isinstance(first, tuple) else first
    return layout


def group(title: str, *parts: Part, spacing: int | None = None) -> QGroupBox:
    """Parts above each other in a frame with a title, as `fill_layout` takes them."""
    box = QGroupBox(title)
    lay_out(box, *parts, spacing=spacing)
    return box


def stacked(*parts: Part, margins: Margins = 0, spacing: int | None = None) -> QWidget:
    """Parts above each other, as `fill_layout` takes them."""
    holder = QWidget()
    lay_out(holder, *parts, margins=margins, spacing=spacing)
    return holder


def beside(first: QWidget, second: QWidget, share: int = 50) -> QSplitter:
    """Two parts with a handle between them; the first gets `share` percent of the width."""
    split = divided(Qt.Orientation.Horizontal, (first, share), (second, 100 - share))
    split.setSizes([100 * share, 100 * (100 - share)])
    return split


def search_field(hint: str, changed: Callable[[str], object]) -> QLineEdit:
    """A line for words to search for, with a button that clears it."""
    return set_up(
        QLineEdit(), placeholderText=hint, accessibleName=hint, clearButtonEnabled=True, textChanged=changed
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
    """A bold label, `factor` times as large as other text."""
    label = QLabel(text)
    font = label.font()
    font.setPointSizeF(factor * font.pointSizeF())
    font.setBold(True)
    label.setFont(font)
    return label


def first_page(
    title: str, text: QLabel, *links: tuple[str, str, Callable[[], object]], start: QPushButton | None = None
) -> QWidget:
    """What a page shows while nothing is open: what it is for, and what can be done, by `links` (title,
    text, act) or by the one button `start`."""
    parts: list[Part] = [heading(title, 2.0), text, *(LinkButton(*link) for link in links)]
    if start is not None:
        parts.append((start, 0, Qt.AlignmentFlag.AlignLeft))
    return stacked(*parts, None, margins=(48, 36, 48, 24), spacing=12)


def quiet(text: str = "", **settings: object) -> QLabel:
    """A paragraph that can be selected and copied, set up."""
    selected = Qt.TextInteractionFlag.TextSelectableByMouse
    return set_up(QLabel(text), wordWrap=True, textInteractionFlags=selected, **settings)


def scrolled(page: QWidget) -> QScrollArea:
    """A page that scrolls where it has less room than its texts need."""
    area = set_up(QScrollArea(), widget=page, widgetResizable=True, frameShape=QFrame.Shape.NoFrame)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    return area


def column(*widgets: QWidget) -> QWidget:
    """Widgets close above each other without margins; the last takes the room."""
    return stacked(*widgets[:-1], (widgets[-1], 1), spacing=1)


def asked_path(
    parent: QWidget, title: str, start: str | Path = "", files: str = "", *, mode: str = "open"
) -> Path | None:
    """Ask for a file (of the kinds `files`) to "open" or "save", or for a "folder", beginning at `start`;
    None where the user changes their mind."""
    if mode == "folder":
        name = QFileDialog.getExistingDirectory(parent, title, str(start))
    else:
        ask = QFileDialog.getOpenFileName if mode == "open" else QFileDialog.getSaveFileName
        name, _ = ask(parent, title, str(start), files)
    return Path(name) if name else None


def asked_paths(parent: QWidget, title: str, start: str | Path = "", files: str = "") -> list[Path]:
    """Ask for files to open; [] where the user changes their mind."""
    names, _ = QFileDialog.getOpenFileNames(parent, title, str(start), files)
    return [Path(name) for name in names]


def ask_text(
    parent: QWidget, title: str, label: str, text: str, act: Callable[[str], object], name: str = ""
) -> None:
    """Ask for a line of text, for `act`."""
    set_up(
        QInputDialog(parent), objectName=name, attribute=Qt.WidgetAttribute.WA_DeleteOnClose,
        windowTitle=title, labelText=label, textValue=text, textValueSelected=act,
    ).open()  # fmt: skip


def warn(parent: QWidget, text: str) -> None:
    """Show a warning in a message box."""
    box = QMessageBox(QMessageBox.Icon.Warning, "Phasewright", text, parent=parent)
    set_up(box, attribute=Qt.WidgetAttribute.WA_DeleteOnClose).open()


class PathField(QWidget):
    """A field for the path of a file, with a button to choose one; `changed` emits its text."""

    changed = Signal(str)

    def __init__(self, name: str, files: str, path: str = "") -> None:
        super().__init__()
        self._files = name, files
        self.line = set_up(
            QLineEdit(path), accessibleName=name, placeholderText="None", clearButtonEnabled=True,
            textChanged=self.changed,
        )  # fmt: skip
        self.browse = button("Browse…", self._choose, f"Choose {name.lower()}", autoDefault=False)
        self.browse.setAccessibleName(f"Choose {name.lower()}")
        self.setFocusProxy(self.line)
        fill_layout(QHBoxLayout(self), (self.line, 1), self.browse, margins=0)

    @property
    def value(self) -> str:
        """The path as written, without blanks around it."""
        return self.line.text().strip()

    def setValue(self, path: str) -> None:
        self.line.setText(path)

    def _choose(self) -> None:
        name, files = self._files
        if (path := asked_path(self, f"Choose {name.lower()}", self.value, files)) is not None:
            self.line.setText(str(path))


class LinkButton(QCommandLinkButton):
    """A title with text below; a click does `act`. Qt's own arrow is black on every theme, and its height
    follows from the narrowest width it could get, so both are replaced."""

    def __init__(self, title: str, text: str, act: Callable[[], object]) -> None:
        super().__init__(title.replace("&", "&&"), text)
        self.clicked.connect(lambda: act())
        self.setIcon(QIcon())
        self.setIconSize(QSize(0, 0))
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    @guarded(otherwise=bool)
    def event(self, event: QEvent) -> bool:
        sized = event.type() in (QEvent.Type.Polish, QEvent.Type.FontChange, QEvent.Type.Resize)
        # Only where it differs: a new height is another resize.
        if sized and self.maximumHeight() != self.sizeHint().height():
            self.setMaximumHeight(self.sizeHint().height())
            self.updateGeometry()
        return super().event(event)

    @guarded(otherwise=QSize)
    def sizeHint(self) -> QSize:
        """As high as its text at its present width."""
        metrics = self.fontMetrics()
        room = QRect(0, 0, max(self.width() - 2 * metrics.height(), 1), 100 * metrics.height())
        text = metrics.boundingRect(room, Qt.TextFlag.TextWordWrap, self.description())
        return QSize(super().sizeHint().width(), int(2.6 * metrics.height()) + text.height())

    @guarded(otherwise=QSize)
    def minimumSizeHint(self) -> QSize:
        return QSize(0, self.sizeHint().height())

    def hasHeightForWidth(self) -> bool:
        return False


class Floating(QWidget):
    """A page, and bars that come and go over its upper edge without moving it, so that the user does not
    click on something else. Only the first bars get room of their own if that is asked for (`make_room`).
    """

    def __init__(self, page: QWidget, *bars: QWidget, area: Callable[[], QRect] | None = None) -> None:
        """`area`: the part of it that the bars lie above; None: all of it."""
        super().__init__()
        self._area = area
        self._roomy: tuple[QWidget | None, int] = (None, 0)
        lay_out(self, page, margins=0)
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
            visible = [bar for bar in above[:bars] if isinstance(bar, QWidget) and not bar.isHidden()]
            room = sum(
                bar.heightForWidth(wide) if bar.hasHeightForWidth() else bar.sizeHint().height()
                for bar in visible
            )
            room += max(len(visible) - 1, 0) * layout.spacing()
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
