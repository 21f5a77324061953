"""What all windows share: commands from a table, the user's keys and looks, dropped files, and the dialogs of
the program as a whole."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from html import escape
from pathlib import Path
from typing import Any, ClassVar

from PySide6.QtCore import QByteArray, QEvent, QObject, QSize, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import (
    QAction,
    QCloseEvent,
    QDesktopServices,
    QDragEnterEvent,
    QDragLeaveEvent,
    QDropEvent,
    QGuiApplication,
    QKeySequence,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QApplication,
    QDialogButtonBox,
    QDockWidget,
    QLabel,
    QMainWindow,
    QMenu,
    QTextBrowser,
    QToolBar,
    QVBoxLayout,
    QWidget,
)

from desktop.data import memory
from desktop.ui import theme as themes
from desktop.ui import units
from desktop.ui.commands import Command, translated
from desktop.ui.dialogs import Dialog, end_dialogs
from desktop.ui.mnemonics import letter_menu, plain, settle
from desktop.ui.settings import Settings, ThemeChoice, log_folder
from desktop.ui.sizes import fitting, keep_on_screen
from desktop.ui.workers import MainThread

_NATIVE = QKeySequence.SequenceFormat.NativeText


def base_font_size() -> float:
    """Points of the program's text at 100 %."""
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    size = app.property("base_font_size")
    if size is None:
        size = app.font().pointSizeF()
        app.setProperty("base_font_size", size)
    return float(size)


def chosen_theme(settings: Settings) -> themes.Theme:
    """What the settings say, where "system" follows the desktop if it says anything, else light."""
    choice = settings.theme
    if choice == "system":
        scheme = QGuiApplication.styleHints().colorScheme()
        choice = "dark" if scheme == Qt.ColorScheme.Dark else "light"
    return themes.coloured(themes.DARK if choice == "dark" else themes.LIGHT, settings.colours)


class Page(QMainWindow):
    """A window of the program. Who derives from it makes its centre, then calls `_make_actions`, and last
    `_begin`; it says what the commands are asked about (`shown`) and what it does with files and colours."""

    settingsChanged = Signal()  # for the other windows; this one has followed already
    newWindowRequested = Signal(object)  # list[Path] to open in windows of their own
    projectAsked = Signal()  # what it shows is to be kept in a project
    closed = Signal()

    #: Its table, the order of its menus, gestures listed beside the keys, and its page of the handbook.
    NAME: ClassVar[str]
    COMMANDS: ClassVar[tuple[Command[Any, Any], ...]]
    MENUS: ClassVar[tuple[str, ...]]
    MOUSE: ClassVar[tuple[tuple[str, str], ...]]
    PAGE: ClassVar[str] = "index.md"

    settings: Settings
    actions_by_id: dict[str, QAction]

    def __init__(self, settings: Settings | None = None) -> None:
        super().__init__()
        self.settings = settings or Settings()
        self._theme = chosen_theme(self.settings)
        self._unit = ""
        self._ended = False
        self._results = MainThread(self)
        self._drop_hint = QLabel(self.tr("Drop to open"), self)
        self._drop_hint.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._drop_hint.setStyleSheet(
            "background: palette(base); color: palette(text); border: 3px dashed palette(highlight);"
            "font-size: 24pt;"
        )
        self._drop_hint.hide()

    # ---- what a window says of itself

    @property
    @abstractmethod
    def shown(self) -> Any:
        """What the conditions of commands are asked about."""

    @abstractmethod
    def open_paths(self, paths: list[Path]) -> None:
        """Open files and folders that were dropped."""

    @abstractmethod
    def _show_theme(self, theme: themes.Theme) -> None:
        """Hand the theme to what paints itself."""

    @abstractmethod
    def _show_anew(self) -> None:
        """Say all numbers again: the unit of time has changed."""

    def _placed(self, command: Command[Any, Any], menu: QMenu, action: QAction) -> None:
        """A command has been put into its menu."""

    def place_about(self, widget: QWidget | None) -> str:
        """Page and heading of the handbook on a widget of this window."""
        return self.PAGE

    # ---- building

    def _make_actions(self) -> None:
        self.actions_by_id = {}
        self.menus: dict[str, QMenu] = {
            name: self.menuBar().addMenu(f"&{translated(name)}") for name in self.MENUS
        }
        for command in self.COMMANDS:
            parent, _, name = command.menu.partition("/")
            if command.menu not in self.menus:
                self.menus[command.menu] = self.menus[parent].addMenu(translated(name))
            menu = self.menus[command.menu]
            if command.rule:
                menu.addSeparator()
            action = QAction(command.text, self)
            action.setObjectName(command.id)
            action.setStatusTip(command.tip)
            action.setCheckable(command.mark is not None)
            # The user's click toggles the mark; what is true is asked afterwards.
            action.triggered.connect(partial(self._act, command))
            menu.addAction(action)
            self.actions_by_id[command.id] = action
            self._placed(command, menu, action)

    def _act(self, command: Command[Any, Any]) -> None:
        command.run(self)
        self._refresh_actions()

    def _refresh_actions(self) -> None:
        shown = self.shown
        for command in self.COMMANDS:
            action = self.actions_by_id[command.id]
            action.setEnabled(command.enabled(shown))
            if command.mark is not None:
                action.setChecked(command.mark(self))
        steps = (("undo", self.tr("Undo {0}"), shown.undo), ("redo", self.tr("Redo {0}"), shown.redo))
        for name, text, label in steps:
            told, action = text.format(label or "").strip(), self.actions_by_id[name]
            if plain(action.text()) != told:
                action.setText(told.replace("&", "&&"))

    def _begin(self) -> None:
        """All is made: take drops, and look as the settings say."""
        self.setAcceptDrops(True)
        for child in self.findChildren(QWidget):
            # Otherwise plots and text fields take a drop before the window sees it.
            child.setAcceptDrops(False)
        for bar in self.findChildren(QToolBar):
            # Otherwise only a right click brings one back that was hidden.
            shown = bar.toggleViewAction()
            shown.setStatusTip(self.tr("Show or hide the bar {0}").format(bar.windowTitle()))
            self.menus["View"].addAction(shown)
        for dock in self.findChildren(QDockWidget):
            # A floating dock is a window of its own.
            dock.setAcceptDrops(True)
            dock.installEventFilter(self)
        settle(self, self.menuBar())
        for menu in self.menuBar().findChildren(QMenu):
            # When it opens: some are filled only then, and some texts change.
            menu.aboutToShow.connect(partial(letter_menu, menu))
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        app.screenRemoved.connect(self.keep_on_screen)
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._scheme_changed)
        self.apply_settings()

    def _take_place(self, geometry: QByteArray | None) -> None:
        """Where and as large as it was, as far as the screens allow now; at first most of the screen."""
        room = self.screen().availableSize()
        first = QSize(min(1600, int(0.92 * room.width())), min(1000, int(0.9 * room.height())))
        if geometry is None or not self.restoreGeometry(geometry):
            self.resize(first)
            self.move(self.screen().availableGeometry().topLeft())
        keep_on_screen(self)

    def keep_on_screen(self) -> None:
        """When its frame is known: in a moment."""
        QTimer.singleShot(0, self, partial(keep_on_screen, self))

    def _may_close(self) -> bool:
        """Ask whether it may, if anything would be lost."""
        return True

    def _end(self) -> None:
        """Keep what is kept of it, and end what works for it. Called once."""

    def closeEvent(self, event: QCloseEvent) -> None:
        """However it is closed: ask, end its dialogs and its work; then nothing is delivered any more."""
        if self._ended:
            return  # with the window that it belongs to, and now with the program
        if not self._may_close():
            event.ignore()
            return
        self._ended = True
        end_dialogs(self)
        self._end()
        self._results.close()
        super().closeEvent(event)
        self.closed.emit()

    # ---- settings

    def keys_of(self, command: Command[Any, Any]) -> tuple[str, ...]:
        """The user's, or those it has at first."""
        chosen = self.settings.keys(self.NAME, command)
        return command.keys if chosen is None else chosen

    def apply_settings(self) -> None:
        """Show what the settings say: keys, units and looks."""
        for command in self.COMMANDS:
            action, keys = self.actions_by_id[command.id], self.keys_of(command)
            action.setShortcuts([QKeySequence(key) for key in keys])
            told = ", ".join(key.toString(_NATIVE) for key in action.shortcuts())
            action.setToolTip(f"{command.title}{f' ({told})' if told else ''}\n{command.tip}")
        memory.set_limit(self.settings.memory << 20)
        units.set_time_unit(self.settings.time_unit)
        if self._unit != self.settings.time_unit:
            self._unit = self.settings.time_unit
            self._show_anew()
        self.use_theme(chosen_theme(self.settings))

    def choose_theme(self, choice: ThemeChoice) -> None:
        self.settings.theme = choice
        self.tell_settings()

    def choose_text_size(self, percent: int) -> None:
        self.settings.text_size = percent
        self.tell_settings()

    def tell_settings(self) -> None:
        """The settings have changed: this window and all others follow."""
        self.settingsChanged.emit()
        self.apply_settings()

    def use_theme(self, theme: themes.Theme) -> None:
        """Show `theme` whatever the settings say."""
        self._theme = theme
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        font = app.font()
        size = base_font_size() * self.settings.text_size / 100
        changed = abs(font.pointSizeF() - size) > 0.01
        if changed:
            font.setPointSizeF(size)
            app.setFont(font)
        if changed or app.styleSheet() != themes.stylesheet(theme):
            # Every widget of every window takes a new sheet, which is worth a look whether it is new. After
            # the font: widgets under a style sheet take a new font only with a new sheet.
            themes.apply(app, theme)
        self._show_theme(theme)

    def _scheme_changed(self) -> None:
        if self.settings.theme == "system":
            self.apply_settings()

    # ---- files from elsewhere

    def keep_in_project(self) -> None:
        """Ask for a project that keeps what this window shows."""
        self.projectAsked.emit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """What is dragged over a dock is dragged over the window."""
        if isinstance(watched, QDockWidget):
            if isinstance(event, QDropEvent) and event.type() == QEvent.Type.Drop:
                self.dropEvent(event)
                return True
            if isinstance(event, QDragEnterEvent):
                self.dragEnterEvent(event)
                return True
            if isinstance(event, QDragLeaveEvent):
                self.dragLeaveEvent(event)
                return True
        return super().eventFilter(watched, event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if any(url.isLocalFile() for url in event.mimeData().urls()):
            event.acceptProposedAction()
            self._drop_hint.setGeometry(self.centralWidget().geometry())
            self._drop_hint.show()
            self._drop_hint.raise_()

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        self._drop_hint.hide()

    def dropEvent(self, event: QDropEvent) -> None:
        self._drop_hint.hide()
        event.acceptProposedAction()
        paths = [Path(url.toLocalFile()) for url in event.mimeData().urls() if url.isLocalFile()]
        if paths:
            self.open_paths(paths)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._drop_hint.setGeometry(self.centralWidget().geometry())

    # ---- the program

    def new_window(self) -> None:
        self.newWindowRequested.emit([])

    def show_preferences(self) -> None:
        """Ask for settings, which act at once in all windows."""
        from desktop.ui.preferences import Preferences

        dialog = Preferences(self.settings, self)
        dialog.changed.connect(self.tell_settings)
        dialog.open()

    def show_palette(self) -> None:
        """Find a command by words."""
        from desktop.ui.palette import Palette

        Palette(self).open()

    def show_help(self, place: str = "") -> None:
        """The handbook, at ``"page.md#heading"`` or at its contents."""
        from desktop.ui.handbook import handbook

        handbook().show_place(place or self.PAGE)

    def explain_focus(self) -> None:
        self.show_help(self.place_about(self.focusWidget()))

    def show_about(self) -> None:
        from desktop.ui.about import About

        About(self).open()

    def show_log_folder(self) -> None:
        folder = log_folder()
        folder.mkdir(parents=True, exist_ok=True)
        if not QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder))):
            self.statusBar().showMessage(self.tr("The log is in {0}").format(folder), 8000)

    def show_keys(self) -> None:
        """All keys and gestures, from the table that makes them."""
        KeyList(self).open()

    def keys_html(self) -> str:
        """The key list: commands with keys by menu, and gestures."""
        parts = []
        for menu in self.MENUS:
            rows = [
                (", ".join(self.keys_of(c)), f"{c.title}: {c.tip[0].lower()}{c.tip[1:]}")
                for c in self.COMMANDS
                if c.menu.split("/")[0] == menu and self.keys_of(c)
            ]
            if rows:
                parts.append(_keys_table(translated(menu), rows))
        gestures = [(translated(how), translated(what)) for how, what in self.MOUSE]
        return "".join([*parts, _keys_table(self.tr("Mouse"), gestures)])


class KeyList(Dialog):
    """The keys and gestures of a window."""

    def __init__(self, window: Page) -> None:
        super().__init__(window)
        self.setObjectName("keys")
        self.setWindowTitle(self.tr("Keys and mouse"))
        text = QTextBrowser()
        text.setHtml(window.keys_html())
        text.setAccessibleName(self.tr("Keys and gestures"))
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.addWidget(text)
        layout.addWidget(buttons)
        self.resize(fitting(self, 38, 34))


def _keys_table(title: str, rows: list[tuple[str, str]]) -> str:
    cells = "".join(
        f"<tr><td width='32%'><b>{escape(keys)}</b></td><td>{escape(text)}</td></tr>" for keys, text in rows
    )
    return f"<h3>{escape(title)}</h3><table width='100%' cellpadding='2'>{cells}</table>"
