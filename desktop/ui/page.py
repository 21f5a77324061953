"""The base class of all pages of a window: commands from a table with the user's keys, messages, closing."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtGui import QAction, QColor, QKeySequence
from PySide6.QtWidgets import (
    QDockWidget,
    QMainWindow,
    QMenu,
    QSplitter,
    QTextBrowser,
    QToolBar,
    QToolButton,
    QWidget,
)

from desktop.core.units import capital
from desktop.ui import theme as themes
from desktop.ui.commands import AnyCommand
from desktop.ui.dialogs import Dialog, end_dialogs
from desktop.ui.guard import guarded
from desktop.ui.icons import icon
from desktop.ui.mnemonics import join, letter_menu, plain, settle
from desktop.ui.pages import asked_path, lay_out, set_up
from desktop.ui.settings import Settings
from desktop.ui.sizes import fitting
from desktop.ui.task_line import Running
from desktop.ui.workers import MainThread
from desktop.workbench.bench import changed
from desktop.workbench.jobs import Task

if TYPE_CHECKING:
    from desktop.ui.frame import Frame

_NATIVE = QKeySequence.SequenceFormat.NativeText


@dataclass(frozen=True)
class Message:
    """A sentence for the bar of its `kind`; `act`: what the button named `action` does; `dismissed`: called
    when the user has read it. `settled`: it has room of its own above the page instead of covering its upper
    edge; for messages that come while the page is filled or answer what the user has just done, when
    nothing moves away under the pointer."""

    kind: Literal["problem", "notice"]
    sentence: str
    details: str = ""
    action: str = ""
    act: Callable[[], object] | None = None
    dismissed: Callable[[], object] | None = None
    settled: bool = False


class Page(QMainWindow):
    """A page of a `Frame`: its centre, toolbars and docks. Who derives from it makes its centre, then calls
    `_make_actions`, and last `_begin`; it says what the conditions of commands look at (`snapshot`) and what
    it does with files and colours. The frame shows its messages, tasks and window title."""

    #: Which kind of page, the name of its keys in the settings, its table, the order of its menus, gestures
    #: listed beside the keys, and its page of the handbook.
    KIND: ClassVar[str]
    NAME: ClassVar[str]
    COMMANDS: ClassVar[tuple[AnyCommand, ...]]
    MENUS: ClassVar[tuple[str, ...]]
    MOUSE: ClassVar[tuple[tuple[str, str], ...]]
    PAGE: ClassVar[str] = "index.md"

    #: How the user has divided the page, which is kept; None of one that is not divided, or keeps it itself.
    split: QSplitter | None = None

    settings: Settings
    actions_by_id: dict[str, QAction]
    menus: dict[str, QMenu]
    frame: Frame

    def __init__(self, frame: Frame) -> None:
        super().__init__(frame.stack)  # where it will be: Qt looks through all of what gets another parent
        self.setWindowFlags(Qt.WindowType.Widget)
        self.setObjectName(f"{self.KIND}_page")
        self.frame, self.settings = frame, frame.settings
        self._theme = frame.theme
        self._results = MainThread(self)
        self.messages: dict[str, Message] = {}
        self.tasks: dict[str, Running] = {}
        self._keys: dict[str, tuple[str, ...]] = {}  # of commands, as they are
        self.status: tuple[QWidget, ...] = ()  # at the right end of the status bar while it is in front

    # ---- what a page says of itself

    @property
    @abstractmethod
    def snapshot(self) -> object:
        """The state that the conditions of commands look at."""

    @property
    def name(self) -> str:
        """What it is about, for its tab; "" while nothing is open."""
        return ""

    @property
    def source(self) -> Path | None:
        """The file or folder that it shows, if that is to be opened again with the next session."""
        return None

    @abstractmethod
    def open_paths(self, paths: list[Path]) -> None:
        """Open files and folders that were dropped."""

    def _show_theme(self, theme: themes.Theme) -> None:
        """Hand the theme to the widgets that paint themselves."""
        themes.dress(self, theme)
        ink = QColor(theme.text)
        for arrow in self.findChildren(QToolButton, "qt_toolbar_ext_button"):  # to tools without room
            arrow.setIcon(icon("hidden", ink, ink))  # that of the style is dark in every theme

    @abstractmethod
    def show_anew(self) -> None:
        """Write all numbers again, as the unit of time has changed."""

    def _placed(self, command: AnyCommand, menu: QMenu, action: QAction) -> None:
        """Called when a command was put into its menu."""

    def place_about(self, widget: QWidget | None) -> str:
        """Page and heading of the handbook on a widget of this page."""
        return self.PAGE

    @property
    def unsaved(self) -> str:
        """What closing would lose, as an object of "save": "the changes to quicksort"; "" if nothing."""
        return ""

    def save_work(self) -> bool:
        """Save what `unsaved` names; whether that succeeded."""
        return True

    @property
    def running(self) -> str:
        """What closing would stop, as a sentence; "" if nothing."""
        return ""

    def close_shown(self) -> None:
        """Close the page."""
        self.frame.close_page(self)

    # ---- what it tells

    def tell(
        self, key: str, kind: Literal["problem", "notice"], sentence: str, details: str = "", **more: object
    ) -> None:
        """Show a sentence in the bar of its kind, in place of an earlier one of this `key`; none if it is
        empty. `more`: fields of `Message`."""
        self.messages.pop(key, None)
        if sentence:
            self.messages[key] = changed(Message(kind, sentence, details), more)
        self.frame.show_messages()

    def tell_problem(self, problem: str, dismissed: Callable[[], object]) -> None:
        """Show a problem of what the user asked for, written as in errors: in lower case and without a full
        stop; "" ends it."""
        sentence = problem and f"{capital(problem.removesuffix('.'))}."
        self.tell("problem", "problem", sentence, dismissed=dismissed, settled=True)

    def show_task(
        self, key: str, task: Task | None, cancel: Callable[[], object] | None = None, *, timed: bool = True
    ) -> None:
        """Show the progress of a task; None: it has ended."""
        if task is not None:
            self.tasks[key] = Running(task, cancel, timed)
        elif self.tasks.pop(key, None) is None:
            return
        self.frame.show_tasks()

    def say(self, text: str, milliseconds: int = 4000) -> None:
        """Show a text in the status bar for a while."""
        self.frame.statusBar().showMessage(text, milliseconds)

    # ---- building

    def _make_actions(self) -> None:
        self.actions_by_id = {}
        self.menus = {name: QMenu(f"&{name}", self) for name in self.MENUS}
        for command in self.COMMANDS:
            parent, _, name = command.menu.partition("/")
            if command.menu not in self.menus:
                self.menus[command.menu] = self.menus[parent].addMenu(name)
            menu = self.menus[command.menu]
            if command.rule:
                menu.addSeparator()
            action = set_up(
                QAction(command.text, self), objectName=command.id, statusTip=command.tip,
                # The user's click toggles the mark; what is true is asked afterwards.
                checkable=command.mark is not None, triggered=partial(self._act, command),
            )  # fmt: skip
            menu.addAction(action)
            self.actions_by_id[command.id] = action
            self._placed(command, menu, action)

    def _act(self, command: AnyCommand) -> None:
        command.run(self)
        self._refresh_actions()

    def _refresh_actions(self) -> None:
        snapshot = self.snapshot
        for command in self.COMMANDS:
            action = self.actions_by_id[command.id]
            action.setEnabled(command.enabled(self if command.common else snapshot))
            if command.mark is not None:
                action.setChecked(command.mark(self))
        self.name_steps()

    def name_steps(self) -> None:
        """Name the next steps in the texts of undo and redo."""
        history = self.frame.history
        for name, label in (("undo", history.undo_label), ("redo", history.redo_label)):
            title, action = f"{name.capitalize()} {label or ''}".strip(), self.actions_by_id[name]
            action.setEnabled(label is not None)
            if plain(action.text()) != title:
                action.setText(title.replace("&", "&&"))

    def _begin(self) -> None:
        """Last step of building: leave drops to the frame, and apply the settings."""
        for child in self.findChildren(QWidget):
            # Otherwise plots and text fields take a drop before the window sees it.
            child.setAcceptDrops(False)
        for bar in self.findChildren(QToolBar):
            # Otherwise only a right click brings one back that was hidden.
            toggle = bar.toggleViewAction()
            toggle.setStatusTip(f"Show or hide the bar {bar.windowTitle()}")
            self.menus["View"].addAction(toggle)
        for dock in self.findChildren(QDockWidget):
            # A floating dock is a window of its own.
            dock.setAcceptDrops(True)
            dock.installEventFilter(self)
        settle(self, [self.menus[name].menuAction() for name in self.MENUS])
        for top in (self.menus[name] for name in self.MENUS):
            for menu in (top, *top.findChildren(QMenu)):
                # When it opens: some are filled only then, and some texts change.
                menu.aboutToShow.connect(partial(letter_menu, menu))
        self.apply_keys()
        state = None if self.split is None else self.settings.page_state(self.NAME)
        if self.split is not None and state is not None:
            self.split.restoreState(state)
        self._show_theme(self._theme)

    def _join(self, part: QWidget) -> None:
        """Last step of a part of the page that is made later."""
        for child in part.findChildren(QWidget):
            child.setAcceptDrops(False)  # files that are dropped are the window's
        join(part)
        themes.dress(part, self._theme)

    def arrived(self) -> None:
        """Called when it was moved to another frame."""
        self._refresh_actions()

    def use_theme(self, theme: themes.Theme) -> None:
        if theme != self._theme:
            self._theme = theme
            self._show_theme(theme)

    def finish(self) -> None:
        """Called once at its end: end its dialogs and its work; then nothing is delivered any more."""
        end_dialogs(self)
        if self.split is not None:
            self.settings.keep_page_state(self.NAME, self.split.saveState())
        self._end()
        self._results.close()

    def _end(self) -> None:
        """Save its state, and end its jobs. Called once."""

    # ---- keys

    def apply_keys(self) -> None:
        """Give every command its keys in the settings."""
        for command in self.COMMANDS:
            action, keys = self.actions_by_id[command.id], self.settings.keys(self.NAME, command)
            if keys == self._keys.get(command.id):
                continue
            self._keys[command.id] = keys
            action.setShortcuts([QKeySequence(key) for key in keys])
            keys_shown = ", ".join(key.toString(_NATIVE) for key in action.shortcuts())
            action.setToolTip(f"{command.title}{f' ({keys_shown})' if keys_shown else ''}\n{command.tip}")

    def keys_html(self) -> str:
        """The key list: commands with keys by menu, and gestures."""
        tables: dict[str, list[tuple[str, str]]] = {menu: [] for menu in self.MENUS}
        for c in self.COMMANDS:
            if keys := self.settings.keys(self.NAME, c):
                words = f"{c.title}: {c.tip[0].lower()}{c.tip[1:]}"
                tables[c.menu.split("/")[0]].append((", ".join(keys), words))
        tables["Mouse"] = list(self.MOUSE)
        return "".join(_keys_table(title, rows) for title, rows in tables.items() if rows)

    # ---- Qt's own

    @guarded(otherwise=bool)
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Pass drags and drops on a dock to the window."""
        # Each takes the class of events of its type.
        handlers: dict[QEvent.Type, Callable[[Any], None]] = {
            QEvent.Type.Drop: self.frame.dropEvent,
            QEvent.Type.DragEnter: self.frame.dragEnterEvent,
            QEvent.Type.DragLeave: self.frame.dragLeaveEvent,
        }
        if event.type() not in handlers or not isinstance(watched, QDockWidget):
            return super().eventFilter(watched, event)
        handlers[event.type()](event)
        return True

    @guarded(otherwise=QSize)
    def minimumSizeHint(self) -> QSize:
        """Nothing while it is hidden: a page behind others must not make the window larger than the one in
        front needs."""
        hint = super().minimumSizeHint()
        return hint if self.isVisible() else QSize(0, 0)

    # ---- files

    def ask_path(
        self, title: str, then: Callable[[Path], object], files: str = "", *, mode: str = "open"
    ) -> None:
        """Ask for a path as `asked_path` does, in the folder of the last file, and call `then` with it."""
        path = asked_path(self, title, self.settings.folder, files, mode=mode)
        if path is not None:
            then(path)

    # ---- help

    def show_help(self, place: str = "") -> None:
        """Open the handbook at ``"page.md#heading"``, else at the page's own section."""
        from desktop.ui.handbook import handbook

        handbook().show_place(place or self.PAGE)

    def explain_focus(self) -> None:
        """Open the handbook at what it says of the widget with the focus."""
        self.show_help(self.place_about(self.focusWidget()))

    def show_keys(self) -> None:
        """All keys and gestures, from the table that makes them."""
        KeyList(self).open()


class KeyList(Dialog):
    """The keys and gestures of a page."""

    def __init__(self, page: Page) -> None:
        super().__init__(page, "keys", "Keys and mouse")
        text = set_up(QTextBrowser(), html=page.keys_html(), accessibleName="Keys and gestures")
        buttons = self.closing()
        lay_out(self, text, buttons)
        self.resize(fitting(self, 38, 34))


def _keys_table(title: str, rows: list[tuple[str, str]]) -> str:
    cells = "".join(
        f"<tr><td width='32%'><b>{escape(keys)}</b></td><td>{escape(text)}</td></tr>" for keys, text in rows
    )
    return f"<h3>{escape(title)}</h3><table width='100%' cellpadding='2'>{cells}</table>"
