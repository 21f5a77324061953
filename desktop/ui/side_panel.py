"""The base of the panels of experiments and of tables of run times: the choice of one in the project, a
button for its page, and, while there are no results, the reason and what can be done about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QComboBox, QPushButton, QSizePolicy, QStackedWidget, QTableView, QWidget

from desktop.ui.flow import flowing
from desktop.ui.guard import in_ems
from desktop.ui.mnemonics import join
from desktop.ui.pages import button, choices, divided, lay_out, quiet, refill, set_up
from desktop.ui.panels import Panel
from desktop.ui.theme import LIGHT, Theme, dress
from desktop.workbench.side import B, Side, T
from desktop.workbench.workbench import Snapshot, Workbench

#: Width, in heights of the text, from which on numbers and picture stand beside each other.
_BESIDE = 46


class SidePanel(Panel, Generic[T, B]):
    """Shows a `Side`, which is attached as soon as the panel is made. The widgets of results are made when
    there are some, as that loads the modules that compute them."""

    ROOM = 19  # some rows and a chart are seen
    _side: Side[T, B]

    addAsked = Signal()  # an experiment or a table for the project
    openAsked = Signal(int)  # the page of the one at this place
    findAsked = Signal(int)  # where it is now

    def __init__(self, workbench: Workbench, name: str) -> None:
        super().__init__(workbench)
        self._theme: Theme = LIGHT
        self._has_content = self._content_due = False
        self.tools: list[QWidget] = []
        self.useless: set[QWidget] = set()  # those of them that say nothing about what is shown
        self.choice = self._combo(name, lambda place: self._side.choose(place))
        self.page = set_up(self._button("&Page…", self._open_page), toolTip="All of it, on a page of its own")
        self.head, self.flow = flowing(self.choice)
        self.why = quiet(textFormat=Qt.TextFormat.PlainText)
        self.add = self._button("", self.addAsked.emit)
        self.read_again = self._button("&Read again", lambda: self._side.read_again())
        self.find_it = self._button("F&ind it…", lambda: self.findAsked.emit(self.choice.currentIndex()))
        self.page_of = self._button("Open its &page…", self._open_page)
        self.answers, _ = flowing(self.add, self.read_again, self.find_it, self.page_of)
        empty = QWidget()
        lay_out(empty, self.why, self.answers, None)
        self.pages = QStackedWidget()
        self.pages.addWidget(empty)
        lay_out(self, self.head, (self.pages, 1), margins=(6, 4, 6, 4), spacing=4)

    # ---- building

    def _combo(self, name: str, act: Callable[[int], object], *texts: str) -> QComboBox:
        """A box with `texts`; `act` gets the index of the one that the user chooses."""
        policy = QComboBox.SizeAdjustPolicy.AdjustToContents
        return choices(
            dict(enumerate(texts)), accessibleName=name, toolTip=name, activated=act, sizeAdjustPolicy=policy,
            maximumWidth=30 * self.fontMetrics().averageCharWidth(),
        )  # fmt: skip

    def _button(self, text: str, act: Callable[[], object]) -> QPushButton:
        return button(text, act, sizePolicy=(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed))

    def beside(self, numbers: Sequence[QTableView], plot: QWidget) -> None:
        """Lay out tables, one in view, and a plot beside each other where there is room."""
        self.tables = QStackedWidget()
        for table in numbers:
            self.tables.addWidget(table)
        self._split = divided(Qt.Orientation.Horizontal, (self.tables, 3), (plot, 2))

    # ---- what a panel says of itself

    def make_content(self) -> QWidget:
        """The widget of the results."""
        raise NotImplementedError

    def why_empty(self, snapshot: T) -> tuple[str, tuple[QPushButton, ...]]:
        """Why there are no results, and the buttons that help; "" if there are."""
        raise NotImplementedError

    def show_results(self, old: T, new: T) -> None:
        """Draw what differs."""
        raise NotImplementedError

    def unreadable(self, name: str, problem: str) -> tuple[str, tuple[QPushButton, ...]]:
        """`why_empty` of one that cannot be read."""
        return f"{name} cannot be read: {problem.rstrip('.')}.", (self.read_again, self.find_it, self.add)

    # ---- showing

    def attach(self, side: Side[T, B]) -> None:
        """Show a side of the workbench from now on."""
        self._side = side
        side.subscribe(self._show)
        self._show_anew()

    def watch(self, on_top: bool) -> None:
        self._side.watch(on_top)

    def show_snapshot(self, old: Snapshot, new: Snapshot) -> None:
        if (new.opening is None) != (old.opening is None):
            self._show(self._side.snapshot, self._side.snapshot)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme

    minimumSizeHint = in_ems(14, 11)

    def heightForWidth(self, width: int) -> int:
        """The least height for numbers and picture, beside or below each other; a scroll area asks for it."""
        em = self.fontMetrics().height()
        content = 9 * em if width >= _BESIDE * em else 22 * em
        return max(self.head.heightForWidth(width - 12), 0) + content

    def _show(self, old: T, new: T) -> None:
        refill(self.choice, dict(enumerate(new.names)))
        self.choice.setCurrentIndex(new.index)
        set_up(self.choice, toolTip=self.choice.currentText(), visible=bool(new.names))
        self.page.setEnabled(new.index >= 0)
        why, buttons = self.why_empty(new)
        self.why.setText(why)
        for answer in self.answers.findChildren(QPushButton):
            answer.setVisible(answer in buttons)
        if not why and not self._has_content:
            if not self._content_due:
                self._content_due = True
                QTimer.singleShot(0, self, self._make)
            return
        if not why:
            self.show_results(old, new)
        self.pages.setCurrentIndex(1 if not why else 0)
        for widget in self.tools:
            widget.setVisible(not why and widget not in self.useless)
        self._arrange()

    def _make(self) -> None:
        """Make the widgets of results, and fill them in the next turn of the event loop, as both are slow."""
        content = self.make_content()
        for child in content.findChildren(QWidget):
            child.setAcceptDrops(False)  # files that are dropped are the window's
        self.pages.addWidget(content)
        self._has_content = True
        join(self)
        dress(self, self._theme)
        QTimer.singleShot(0, self, self._show_anew)

    def _show_anew(self) -> None:
        self._show(type(self._side.snapshot)(), self._side.snapshot)

    def tool(self, *widgets: QWidget) -> None:
        """Widgets above the results, that are there while results are."""
        for widget in widgets:
            widget.hide()
            self.flow.addWidget(widget)
            self.tools.append(widget)

    # ---- room

    def _arrange(self) -> None:
        """Numbers and picture beside each other, or one below the other where that is too narrow."""
        for box in self.findChildren(QComboBox):
            box.setMaximumWidth(30 * self.fontMetrics().averageCharWidth())
        if not self._has_content:
            return
        narrow = self.width() < _BESIDE * self.fontMetrics().height()
        orientation = Qt.Orientation.Vertical if narrow else Qt.Orientation.Horizontal
        if self._split.orientation() != orientation:
            self._split.setOrientation(orientation)

    def _open_page(self) -> None:
        if self._side.snapshot.index >= 0:
            self.openAsked.emit(self._side.snapshot.index)
