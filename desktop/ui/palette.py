"""The command palette: finds any command by words in any order.

Commands of the page in front come first, then those of the other pages of the window, then of other windows;
one that several have is listed once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QAction, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QMenu, QTreeWidgetItem

from desktop.ui.commands import AnyCommand
from desktop.ui.dialogs import Dialog
from desktop.ui.frame import Frame
from desktop.ui.guard import guarded
from desktop.ui.mnemonics import plain
from desktop.ui.page import Page
from desktop.ui.pages import lay_out, listing, set_up

#: Rows that are shown at most.
MOST_ROWS = 200


@dataclass(frozen=True)
class PaletteEntry:
    """A command: its text, the menus that lead there, and the page that it acts on."""

    text: str
    place: str
    page: Page
    action: QAction

    @property
    def command(self) -> AnyCommand | None:
        """Its row in the page's table; None for entries that a menu is filled with, such as recent files."""
        name = self.action.objectName()
        return next((c for c in self.page.COMMANDS if c.id == name), None)

    @property
    def identity(self) -> tuple[str, str]:
        """Equal for entries that do the same, on whichever page."""
        command = self.command
        return (self.place, self.text) if command is None else (command.id, command.text)

    @property
    def tip(self) -> str:
        """What it does, or why it cannot."""
        command = self.command
        tip = f"{self.action.statusTip().rstrip('.')}."
        return tip if self.action.isEnabled() or command is None else f"{command.obstacle} {tip}"


def entries(page: Page) -> list[PaletteEntry]:
    """All entries of the menus of a page and their submenus."""
    collected: dict[QAction, PaletteEntry] = {}

    def collect(above: QMenu, place: str) -> None:
        # Not by QAction.menu(), whose answer takes the menu with it when Python lets go of it (PySide 6.10).
        below = above.findChildren(QMenu, options=Qt.FindChildOption.FindDirectChildrenOnly)
        for action in above.actions():
            text = plain(action.text())
            menu = next((menu for menu in below if menu.menuAction() == action), None)
            if menu is not None:
                menu.aboutToShow.emit()  # some are filled only when they are opened
                collect(menu, f"{place} › {text}" if place else text)
            elif text and not action.isSeparator() and action not in collected:
                collected[action] = PaletteEntry(text, place, page, action)

    for name in page.MENUS:
        page.menus[name].aboutToShow.emit()
        collect(page.menus[name], plain(page.menus[name].title()))
    return list(collected.values())


def score(query: str, text: str, more: str = "") -> float:
    """How well `text` answers the words of `query`, in any order; 0: it does not.

    A word counts most at the beginning of a word of the text, less within one, less where its letters follow
    each other with gaps, and least where only `more` (menus, tip) knows it.
    """
    total = 0.0
    text_words, more_words = text.lower().split(), more.lower().split()
    for word in query.lower().split():
        best = max((_of_word(word, w) for w in text_words), default=0.0)
        best = best or 0.2 * max((_of_word(word, w) for w in more_words if word in w), default=0.0)
        if not best:
            return 0.0
        total += best
    # Of texts with equal scores, the shorter one first.
    return total + 1 / (2 + len(text)) if query.strip() else 1.0


def _of_word(word: str, target: str) -> float:
    if target.startswith(word):
        return 2.0 if target == word else 1.8
    if word in target:
        return 1.0
    letters = iter(target)
    # Letters with gaps: the first one must be right.
    return 0.5 if len(word) > 1 and word[0] == target[0] and all(c in letters for c in word) else 0.0


class Palette(Dialog):
    """A line to type in, and the commands found. Return goes to the page of the current one and runs it."""

    def __init__(self, parent: Frame) -> None:
        super().__init__(parent, "palette", "Command palette")
        self._frame = parent
        entries_by_action: dict[tuple[str, str], PaletteEntry] = {}
        for page in self._pages(parent):
            for entry in entries(page):
                entries_by_action.setdefault(entry.identity, entry)
        self._entries = list(entries_by_action.values())
        self.words = set_up(
            QLineEdit(), placeholderText="Words of a command, such as: zoom sel",
            accessibleName="Words of a command", clearButtonEnabled=True, textChanged=self._find,
        )  # fmt: skip
        self.words.installEventFilter(self)
        self.list = set_up(listing("Commands found", "Command", "Menu", "Key"), rootIsDecorated=False)
        self.list.currentItemChanged.connect(lambda *_: self._tell())
        self.list.itemActivated.connect(lambda *_: self._run())
        self.note = set_up(QLabel(), wordWrap=True, minimumHeight=2 * self.fontMetrics().height())
        self.note.setAlignment(Qt.AlignmentFlag.AlignTop)
        lay_out(self, self.words, self.list, self.note)
        em = self.fontMetrics().height()
        self.resize(min(40 * em, parent.width() - 2 * em), min(28 * em, parent.height() - 2 * em))
        self._find("")

    @staticmethod
    def _pages(first: Frame) -> Iterator[Page]:
        """All pages: the one in front, others of this window, those of other windows."""
        pages = first.all_pages
        yield from sorted(pages, key=lambda page: page is not first.current)
        for window in QApplication.topLevelWidgets():
            if isinstance(window, Frame) and window.isVisible():
                yield from (page for page in window.pages if page not in pages)

    def _find(self, words: str) -> None:
        scored = [(score(words, e.text, f"{e.place} {e.action.statusTip()}"), e) for e in self._entries]
        # Stable: what answers alike keeps the order of the menus, this window's before those of others.
        best = sorted((one for one in scored if one[0]), key=lambda one: -one[0])[:MOST_ROWS]
        self.list.clear()
        first: QTreeWidgetItem | None = None
        for _, entry in best:
            place = entry.place
            if entry.page is not self._frame.current:
                page = self._frame.title_of(entry.page)
                place = f"{page} › {entry.place}"
            keys = ", ".join(
                key.toString(QKeySequence.SequenceFormat.NativeText) for key in entry.action.shortcuts()
            )
            item = QTreeWidgetItem([entry.text, place, keys])
            item.setData(0, Qt.ItemDataRole.UserRole, entry)
            item.setToolTip(1, place)
            if not entry.action.isEnabled():
                for column in range(3):
                    item.setForeground(column, self.palette().placeholderText())
            self.list.addTopLevelItem(item)
            first = first or item
        if first is not None:
            self.list.setCurrentItem(first)
        else:
            self._tell()

    def current_entry(self) -> PaletteEntry | None:
        """The entry that Return runs."""
        item = self.list.currentItem()
        entry: PaletteEntry | None = None if item is None else item.data(0, Qt.ItemDataRole.UserRole)
        return entry

    def _tell(self) -> None:
        entry = self.current_entry()
        self.note.setText("No command has these words." if entry is None else entry.tip)

    def _run(self) -> None:
        entry = self.current_entry()
        if entry is None or not entry.action.isEnabled():
            QApplication.beep()
            return
        # Closed first: a command may open a dialog of its own, or close the window.
        self.accept()
        if entry.page is not self._frame.current:
            self._frame.go_to(entry.page)
        entry.action.trigger()

    @guarded(otherwise=bool)
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Up and Down move in the list while the words have the focus; Return runs what is chosen."""
        if watched is self.words and event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            if event.key() in (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown):
                QApplication.sendEvent(self.list, event)
                return True
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self._run()
                return True
        return super().eventFilter(watched, event)
