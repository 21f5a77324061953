"""The window of a project: its pages in a strip of tabs; menus, bars, tasks and keys once for all of them.

There is one main frame for each project, which owns all pages. A page may stand in a frame of its own, such
as on a second screen: another `Frame`, whose `main` is the first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import (
    QByteArray,
    QCoreApplication,
    QEvent,
    QObject,
    QPoint,
    QRect,
    QSize,
    Qt,
    QTimer,
    QUrl,
    Signal,
)
from PySide6.QtGui import (
    QCloseEvent,
    QDesktopServices,
    QDragEnterEvent,
    QDragLeaveEvent,
    QDropEvent,
    QGuiApplication,
    QResizeEvent,
)
from PySide6.QtWidgets import QApplication, QLabel, QMainWindow, QMessageBox, QStackedWidget, QTabBar, QWidget

from desktop.core import units
from desktop.data import memory
from desktop.remote import how
from desktop.ui import style
from desktop.ui import theme as themes
from desktop.ui.commands import KINDS, TITLES
from desktop.ui.dialogs import end_dialogs
from desktop.ui.guard import guarded
from desktop.ui.message_bar import MessageBar
from desktop.ui.page import Message, Page
from desktop.ui.pages import Floating, column, passing_menu, set_up
from desktop.ui.settings import Settings, ThemeChoice, log_folder
from desktop.ui.sizes import keep_on_screen, stand_beside
from desktop.ui.task_line import Running, TaskList
from desktop.workbench.bench import Bench
from desktop.workbench.history import AnyBranch, History
from desktop.workbench.jobs import Task

if TYPE_CHECKING:  # each is loaded with its first page
    from desktop.data.tables import Row
    from desktop.ui.experiment_page import ExperimentPage
    from desktop.ui.model_page import ModelPage
    from desktop.ui.trace_page import TracePage
    from desktop.ui.watch_page import WatchPage
    from desktop.workbench.experimenting import ExperimentBench
    from desktop.workbench.modelling import ModelBench

#: Letters that a tab may always have, and the width of its margins in letters.
_TAB, _AROUND_TAB = 28, 7

_DROP_HINT = """background: palette(base); color: palette(text); border: 3px dashed palette(highlight);
    font-size: 24pt;"""


def chosen_theme(settings: Settings) -> themes.Theme:
    """The theme of the settings; "system" is that of the desktop, light if it has none."""
    choice = settings.theme
    if choice == "system":
        scheme = QGuiApplication.styleHints().colorScheme()
        choice = "dark" if scheme == Qt.ColorScheme.Dark else "light"
    return themes.coloured(themes.DARK if choice == "dark" else themes.LIGHT, settings.colours)


class _TabStrip(QTabBar):
    """The tabs of the pages, at the right end of the menu bar, where they take no height; they scroll where
    the menus leave too little room."""

    def __init__(self, room: Callable[[], int]) -> None:
        super().__init__()
        self._room = room
        set_up(self, objectName="pages", accessibleName="Pages", drawBase=False, expanding=False)
        self.setUsesScrollButtons(True)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)

    @guarded(otherwise=QSize)
    def sizeHint(self) -> QSize:
        size = super().sizeHint()
        return QSize(min(size.width(), max(self._room(), 6 * self.fontMetrics().height())), size.height())

    @guarded(otherwise=QSize)
    def minimumSizeHint(self) -> QSize:
        return self.sizeHint().boundedTo(super().minimumSizeHint())


class Frame(QMainWindow):
    """A window with pages. `main`: the main frame of its project; None: this is the main one."""

    settingsChanged = Signal()  # for the other windows; this project's have followed already
    newWindowRequested = Signal(object)  # list[Path] to open in windows of their own
    openRequested = Signal(object, object)  # Path and OpenOptions, for a window of its own
    quitRequested = Signal()
    closed = Signal()

    settings: Settings
    main: Frame
    history: History  # of all pages of the project
    trace: TracePage  # of the project; in whichever of its frames

    def __init__(self, settings: Settings | None = None, main: Frame | None = None) -> None:
        super().__init__()
        self.main = main or self
        self.settings = settings or (main.settings if main else Settings())
        self.theme = chosen_theme(self.settings)
        self.torn: list[Frame] = []
        self.current: Page | None = None
        self._places: list[Page | str] = []  # of the tabs; a kind of which there is no page yet
        self._visited: list[Page] = []  # the one seen last is last
        self._own_tasks: dict[str, Running] = {}
        self._messages: dict[str, tuple[Page | None, str, Message] | None] = {}
        self._own_messages: dict[str, Message] = {}
        self._box: QMessageBox | None = None
        self._labels: tuple[str | None, str | None] = (None, None)
        self._leaving = self._ended = False
        self.history = main.history if main else History()
        self.history.changed = self.main._name_steps
        self._unit = self.settings.time_unit
        self.setObjectName("frame")
        self.setWindowTitle("Phasewright")
        self.apply_settings()  # first, so that nothing that is made has to follow them
        self._make_centre()
        self._take_place()
        self.setAcceptDrops(True)
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        app.screenRemoved.connect(self.keep_on_screen)
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._scheme_changed)
        if main is None:
            self.trace = cast("TracePage", self._make("trace"))
            self.go_to(self.trace)

    # ---- building

    def _make_centre(self) -> None:
        self.stack = QStackedWidget()
        self.problem_bar, self.notice_bar = MessageBar("problem"), MessageBar("notice")
        for bar, kind in ((self.problem_bar, "problem"), (self.notice_bar, "notice")):
            bar.acted.connect(partial(self._act, kind))
            bar.dismissed.connect(partial(self._dismiss, kind))
        self.strip = _TabStrip(self._room_for_tabs)
        self.strip.currentChanged.connect(self._tab_chosen)
        self.strip.customContextMenuRequested.connect(self._tab_menu)
        self._below = below = Floating(
            self.stack, self.notice_bar, self.problem_bar, area=self._room_for_bars
        )
        if self.menuBar().isNativeMenuBar():  # which is not in the window
            self.setCentralWidget(column(self.strip, below))
        else:
            self.menuBar().setCornerWidget(self.strip, Qt.Corner.TopRightCorner)
            self.setCentralWidget(below)
        self.task_list = TaskList(self)
        self.statusBar().addWidget(self.task_list, 1)
        self.statusBar().setMinimumHeight(self.task_list.line_height)  # so that nothing moves with a task
        self._drop_hint = set_up(QLabel("Drop to open", self), alignment=Qt.AlignmentFlag.AlignCenter)
        self._drop_hint.hide()
        for child in self.findChildren(QWidget):
            child.setAcceptDrops(False)  # otherwise the details of a problem take a drop before the window

    def _room_for_bars(self) -> QRect:
        """The centre of the page in front, so that bars do not cover toolbars and docks."""
        if self.current is None or self._ended:  # pages are deleted one by one then
            return self.stack.rect()
        return self.current.centralWidget().geometry()

    def _room_for_tabs(self) -> int:
        """Width (pixels) beside the menus; by their names, as the bar itself asks for the tabs' size."""
        names = () if self.current is None else self.current.MENUS
        texts = self.menuBar().fontMetrics().horizontalAdvance("".join(names))
        return self.width() - texts - 2 * self.fontMetrics().height() * len(names)

    def _take_place(self) -> None:
        """Restore position and size as far as the screens allow; at first take all of a small screen."""
        geometry = self.settings.geometry if self.main is self else None
        room = self.screen().availableSize()
        first = QSize(min(1600, room.width()), min(1000, room.height()))
        if geometry is None or not self.restoreGeometry(geometry):
            self.resize(first)
            self.move(self.screen().availableGeometry().topLeft())
        keep_on_screen(self)

    def keep_on_screen(self) -> None:
        """Move it onto the screen in the next turn of the event loop, when its border is known."""
        QTimer.singleShot(0, self, partial(keep_on_screen, self))

    # ---- pages

    @property
    def pages(self) -> list[Page]:
        """The pages in this frame, in the order of their tabs."""
        return [place for place in self._places if isinstance(place, Page)]

    @property
    def frames(self) -> list[Frame]:
        """All frames of the project."""
        return [self.main, *self.main.torn]

    @property
    def all_pages(self) -> list[Page]:
        """The pages in all frames of the project."""
        return [page for frame in self.frames for page in frame.pages]

    def of_kind(self, kind: str) -> list[Page]:
        """All pages of a kind."""
        return [page for page in self.all_pages if kind == page.KIND]

    def _make(self, kind: str, bench: object = None) -> Page:
        """Make another page of a kind; `bench`: of an experiment or table that is open already."""
        module = import_module(f"desktop.ui.{kind}_page")
        options = {} if bench is None else {"bench": bench}
        page: Page = getattr(module, f"{kind.capitalize()}Page")(self.main, **options)
        self.main.take(page)
        return page

    def take(self, page: Page) -> None:
        """Put a page into this frame, after the others."""
        page.frame = self
        page.setAcceptDrops(False)
        self.stack.addWidget(page)
        page.installEventFilter(self)
        page.centralWidget().installEventFilter(self)
        self._places.append(page)
        self._arrange()
        if self is not self.main:
            self.main._arrange()  # or a tab stays there that would make another page of this kind
        for frame in self.frames:
            frame.show_tasks()
        self.show_messages()
        page.arrived()

    def _let_go(self, page: Page) -> None:
        """Take a page out of this frame, and bring another one to the front."""
        page.removeEventFilter(self)
        page.centralWidget().removeEventFilter(self)
        self._places.remove(page)
        self._visited = [p for p in self._visited if p is not page]
        if page is self.current:
            self._leave(page)
            self.current = None
        self.stack.removeWidget(page)
        self.main._arrange()
        if self.current is None and (self._visited or self._places):
            self._show(self._visited[-1] if self._visited else self._places[0])
        self.show_messages()

    def _arrange(self) -> None:
        """Sort the tabs by kind; a kind without any page gets a tab that makes one."""
        if self is self.main:
            kinds = {page.KIND for page in self.all_pages}
            pages: list[Page | str] = [place for place in self._places if isinstance(place, Page)]
            self._places = pages + [kind for kind in KINDS if kind not in kinds]
        order = list(TITLES)
        self._places.sort(key=lambda place: order.index(place if isinstance(place, str) else place.KIND))
        self.strip.blockSignals(True)
        while self.strip.count() > len(self._places):
            self.strip.removeTab(self.strip.count() - 1)
        while self.strip.count() < len(self._places):
            self.strip.addTab("")
        if self.current in self._places:
            self.strip.setCurrentIndex(self._places.index(self.current))
        self.strip.blockSignals(False)
        self.strip.setVisible(len(self._places) > 1)
        self._name_tabs()
        self.strip.updateGeometry()

    def _name_tabs(self) -> None:
        letter = self.fontMetrics().averageCharWidth()
        limit = max(_TAB, self._room_for_tabs() // max(len(self._places), 1) // letter - _AROUND_TAB)
        for k, place in enumerate(self._places):
            text = tip = TITLES[place if isinstance(place, str) else place.KIND]
            if isinstance(place, Page):
                tip = self.title_of(place)
                text = tip if len(tip) <= limit else f"{tip[: limit - 1]}…"
                text += "*" if place.isWindowModified() else ""
            if self.strip.tabText(k) != (text := text.replace("&", "&&")):
                self.strip.setTabText(k, text)  # which lays out the window
                self.strip.setTabToolTip(k, tip)
                bar = self.menuBar()  # which gives its corner another width in no other way
                QCoreApplication.postEvent(bar, QResizeEvent(bar.size(), bar.size()))

    def title_of(self, page: Page) -> str:
        """The title of a page, in its tab and before its messages while it is not in front; with the title of
        its window if that is of another project."""
        kind = TITLES[page.KIND]
        title = f"{kind}: {page.name}" if page.name else kind
        if page.frame.main is self.main:
            return title
        return f"{page.frame.main.trace.windowTitle().replace('[*]', '')} › {title}"

    def _tab_chosen(self, index: int) -> None:
        if 0 <= index < len(self._places):
            self._show(self._places[index])

    def _show(self, place: Page | str) -> Page:
        """Bring a page of this frame to the front; for a kind make one."""
        page = place if isinstance(place, Page) else self._make(place)
        if page is self.current:
            return page
        if self.current is not None:
            self._leave(self.current)
        self.current = page
        page.use_theme(self.theme)
        self._visited = [*(p for p in self._visited if p is not page), page]
        for name in page.MENUS:
            self.menuBar().addMenu(page.menus[name])
        # Laid out now and not with the next picture: only then Alt and a letter opens a menu.
        self.menuBar().actionGeometry(self.menuBar().actions()[0])
        for widget in page.status:
            self.statusBar().addPermanentWidget(widget)
            widget.show()
        self.stack.setCurrentWidget(page)
        self._below.place()
        self._arrange()
        self._show_title()
        self.show_messages()
        self.show_tasks()
        page._refresh_actions()
        return page

    def _leave(self, page: Page) -> None:
        for action in self.menuBar().actions():
            self.menuBar().removeAction(action)
        for widget in page.status:
            self.statusBar().removeWidget(widget)

    def go_to(self, page: Page) -> None:
        """Bring a page to the front, in whichever frame it is."""
        frame = page.frame
        frame._show(page)
        if frame is not self and frame.isVisible():
            frame.raise_()
            frame.activateWindow()

    def show_kind(self, kind: str) -> Page:
        """Bring the last visited page of a kind to the front, or make one."""
        pages = self.of_kind(kind)
        seen = [page for frame in self.frames for page in frame._visited if page in pages]
        page = seen[-1] if seen else pages[0] if pages else self._make(kind)
        self.go_to(page)
        return page

    def watch(self, folder: Path, command: list[str] | None) -> None:
        """Watch a run that is recorded into a folder; `command`: run this to record it."""
        page = cast("WatchPage", self._make("watch"))
        self.go_to(page)
        page.start(folder, command)

    def step_page(self, by: int) -> None:
        """Go to the page `by` tabs further."""
        if self._places and self.current is not None:
            self._show(self._places[(self._places.index(self.current) + by) % len(self._places)])

    @property
    def can_detach(self) -> bool:
        """Whether a page can move to a window of its own: this is the main window and has others."""
        return self.main is self and len(self.pages) > 1

    def detach(self, page: Page) -> Frame:
        """Move a page of the main frame to a frame of its own."""
        beside = Frame(self.settings, self)
        self.torn.append(beside)
        focus = page.focusWidget()
        self._let_go(page)
        beside.take(page)
        beside._show(page)
        beside.resize(page.size().expandedTo(QSize(640, 400)))
        stand_beside(beside, self, other_screen=True)
        if self.isVisible():
            beside.show()
            beside.keep_on_screen()
        if focus is not None:
            focus.setFocus()
        return beside

    def attach(self) -> None:
        """Move the pages of this frame back into the main one."""
        if self.main is not self:
            self.close()

    def close_page(self, page: Page) -> None:
        """Close a page, after asking what to do with unsaved work."""
        if not self.ask_before([page], partial(self._close_page, page)):
            self._close_page(page)

    def _close_page(self, page: Page) -> None:
        if page not in self.all_pages:
            return  # asked twice
        frame = page.frame
        frame._let_go(page)
        page.finish()
        for widget in page.status:
            widget.deleteLater()
        page.deleteLater()
        if not frame._places:
            frame.close()
        self.show_tasks()

    def _tab_menu(self, place: QPoint) -> None:
        index = self.strip.tabAt(place)
        if index < 0:
            return
        page, menu = self._show(self._places[index]), passing_menu(self)
        menu.addActions([page.actions_by_id[name] for name in ("detach", "attach", "close")])
        menu.popup(self.strip.mapToGlobal(place))

    # ---- what is opened

    def open_model(self, source: Path | ModelBench | tuple[Row, ...] | None = None) -> ModelPage:
        """Show a page of the factor model with a table, the bench of one of the project, or rows."""
        page = cast("ModelPage", self._page_for("model", source))
        if isinstance(source, Path) and page.source != source.absolute():
            page.open_path(source)
        elif isinstance(source, tuple) and source:
            page.bench.add_rows(source)
        return page

    def open_experiment(self, source: Path | ExperimentBench | str = "") -> ExperimentPage:
        """Show a page of experiments with a file, the bench of one of the project, or a command's dialog."""
        page = cast("ExperimentPage", self._page_for("experiment", source))
        if isinstance(source, Path) and page.source != source.absolute():
            page.open_path(source)
        elif isinstance(source, str) and source:
            page.actions_by_id[source].trigger()
        return page

    def _page_for(self, kind: str, source: object) -> Page:
        """The page that shows this file or bench, else an empty one, else a new one."""
        pages = self.of_kind(kind)
        if not source:
            return self.show_kind(kind)
        if isinstance(source, Bench):
            showing = (page for page in pages if getattr(page, "bench", None) is source)
            page = next(showing, None) or self._make(kind, source)
            for idle in pages:
                if not (idle.name or idle.source or idle.tasks or idle is page):
                    self._close_page(idle)  # nothing was on it
            self.go_to(page)
            return page
        path = source.absolute() if isinstance(source, Path) else None
        matches = [page for page in pages if path is not None and page.source == path]
        free = [page for page in pages if not page.name and page.source is None and not page.tasks]
        page = next(iter(matches or free), None) or self._make(kind)
        self.go_to(page)
        return page

    def keep_in_project(self, page: ModelPage | ExperimentPage) -> None:
        """Put the experiment or table of a page into the project of this window."""
        record, desk = page.bench.record(), self.main.trace.desk
        if record is None:
            page.say("Save the experiment first, so that a project can refer to it", 8000)
            return
        desk.take_in(record, page.bench)
        page.say(f"Kept in {desk.name}; save it there", 8000)

    # ---- what pages tell

    def tell(self, key: str, sentence: str) -> None:
        """Show a notice of the program itself."""
        self._own_messages[key] = Message("notice", sentence, settled=True)
        self.show_messages()

    def show_messages(self) -> None:
        """Show in each bar the latest message of the page in front; problems also of other pages, with their
        titles. Notices of other pages wait until these are in front."""
        room = 0  # for so many of the bars, the upper one first
        for k, (kind, bar) in enumerate((("notice", self.notice_bar), ("problem", self.problem_bar)), 1):
            messages: list[tuple[Page | None, str, Message]] = [
                (page, key, message)
                for page in sorted(self.pages, key=lambda page: page is self.current)
                for key, message in page.messages.items()
                if message.kind == kind and (kind == "problem" or page is self.current)
            ]
            messages += [(None, key, m) for key, m in self._own_messages.items() if m.kind == kind]
            latest = self._messages[kind] = messages[-1] if messages else None
            if latest is None:
                bar.hide()
                continue
            page, _, message = latest
            prefix = "" if page is None or page is self.current else f"{self.title_of(page)}: "
            bar.show_message(prefix + message.sentence, message.details, message.action)
            if message.settled and page in (None, self.current):
                room = k
        if self.current is not None and not self._ended:
            self._below.make_room(self.current.centralWidget(), room)

    def _act(self, kind: str) -> None:
        latest = self._messages.get(kind)
        if latest is not None and latest[2].act is not None:
            if latest[0] is not None:
                self.go_to(latest[0])
            latest[2].act()

    def _dismiss(self, kind: str) -> None:
        latest = self._messages.get(kind)
        if latest is None:
            return
        page, key, message = latest
        (self._own_messages if page is None else page.messages).pop(key, None)
        if message.dismissed is not None:
            message.dismissed()
        self.show_messages()

    def show_task(self, key: str, task: Task | None, cancel: Callable[[], object] | None = None) -> None:
        """Show the progress of a task of the program itself; None: it has ended."""
        if task is not None:
            self.main._own_tasks[key] = Running(task, cancel)
        else:
            self.main._own_tasks.pop(key, None)
        self.show_tasks()

    def show_tasks(self) -> None:
        """Show the tasks of all pages in every frame of the project."""
        for frame in self.frames:
            tasks: dict[tuple[int, str], tuple[Running, str]] = {}
            # Of the page in front first.
            for page in sorted(self.all_pages, key=lambda page: page is not frame.current):
                title = "" if page is frame.current else self.title_of(page)
                tasks |= {(id(page), key): (running, title) for key, running in page.tasks.items()}
            tasks |= {(0, key): (running, "") for key, running in self.main._own_tasks.items()}
            frame.task_list.show_tasks(tasks)

    def _show_title(self) -> None:
        if self.current is not None:
            title = self.current.windowTitle() or "Phasewright"
            self.setWindowTitle(title)
            self.setWindowFilePath(self.current.windowFilePath())
            self.setWindowModified(self.current.isWindowModified() and "[*]" in title)

    # ---- undo

    def undo(self) -> None:
        """Undo the last step of all pages, and go to the page that it was made on."""
        self._go_where(self.history.undo)

    def redo(self) -> None:
        """Redo the step that was undone last, and go to the page that it was made on."""
        self._go_where(self.history.redo)

    def _go_where(self, step: Callable[[], AnyBranch | None]) -> None:
        trace = self.main.trace
        matched = trace.desk.projects.workspace.comparison.matched
        branch = step()
        if branch is None:
            return
        benches = ((page, getattr(page, "bench", None)) for page in self.all_pages)
        page = next((page for page, bench in benches if getattr(bench, "branch", None) is branch), None)
        if trace.desk.projects.workspace.comparison.matched != matched:
            page = trace.comparing
        self.go_to(page or trace)

    def _name_steps(self) -> None:
        for page in self.all_pages:
            page.name_steps()

    # ---- closing

    def ask_before(self, pages: Sequence[Page], go_on: Callable[[], object]) -> bool:
        """If closing these pages would lose or stop something, ask once for all, and call `go_on` after
        saving or discarding it; whether it was asked."""
        if self._box is not None:
            return True
        losing = [page for page in pages if page.unsaved]
        stopped = [page.running for page in pages if page.running]
        if not losing and not stopped:
            return False
        button = QMessageBox.StandardButton
        if losing:
            text = "Save {}?".format(" and ".join(page.unsaved for page in losing))
            details = ["What is not saved is lost.", *stopped]
            buttons = button.Save | button.Discard | button.Cancel
        else:
            text, details = "Close anyway?", stopped
            buttons = button.Discard | button.Cancel
        box = self._box = QMessageBox(QMessageBox.Icon.Question, "Phasewright", text, buttons, self)
        box.setObjectName("save_question")
        box.setInformativeText(" ".join(details))

        def answered(_: int) -> None:
            answer = box.standardButton(box.clickedButton()) if box.clickedButton() else button.Cancel
            self._box = None
            box.deleteLater()
            saved = answer == button.Save and all(page.save_work() for page in losing)
            if saved or answer == button.Discard:
                go_on()

        box.finished.connect(answered)
        box.open()
        return True

    def close_unasked(self) -> None:
        """Close without asking, also with unsaved work."""
        self._leaving = True
        self.close()

    @guarded
    def closeEvent(self, event: QCloseEvent) -> None:
        """A frame beside the main one gives its pages back; the main one asks, and ends all pages and frames
        of the project."""
        if self._ended:
            return  # with the program
        if self.main is not self:
            self._ended = True
            self.main.torn.remove(self)
            for page in self.pages:
                self._let_go(page)
                self.main.take(page)
                self.main._show(page)
            end_dialogs(self)
            self.deleteLater()
        else:
            if not self._leaving and self.ask_before(self.all_pages, self.close_unasked):
                event.ignore()
                return
            self._ended = True
            self._keep_session()
            end_dialogs(self)
            for frame in self.frames:  # the ends of jobs are waited for without them
                frame.hide()
            for page in self.all_pages:
                page.finish()
            for frame in self.torn:
                frame._ended = True
                end_dialogs(frame)
                frame.deleteLater()
        super().closeEvent(event)
        self.closed.emit()

    # ---- sessions

    def _keep_session(self) -> None:
        """Save which pages are open and where, for the next time that this project is opened."""
        self.settings.save_geometry(self.saveGeometry())
        pages = [
            page for page in self.all_pages if page is self.trace or page.source or page.KIND == "compare"
        ]
        front = self.current if self.current in pages else self.trace
        described = []
        for page in pages:
            path = "" if page is self.trace or page.source is None else str(page.source)
            geometry = b"" if page.frame is self else page.frame.saveGeometry().toBase64().data()
            described.append({"kind": page.KIND, "path": path, "own": bytes(geometry).decode()})
        project = self.trace.desk.projects.path
        if project is not None or len(pages) > 1:
            runs = self.trace.desk.projects.open_runs
            session = json.dumps({"pages": described, "front": pages.index(front), "runs": runs})
            self.settings.keep_session(project, session)

    def restore_session(self, project: Path | None) -> None:
        """Open the pages that were open with a project (None: without one) when it was closed, but for
        invalid and missing ones."""
        try:
            session = json.loads(self.settings.session(project))
            described, front = list(session["pages"]), int(session["front"])
            self.trace.desk.projects.reopen([run for run in session["runs"] if isinstance(run, int)])
        except (ValueError, TypeError, LookupError):
            return
        restored = [self._restored(record) if isinstance(record, dict) else None for record in described]
        for record, page in zip(described, restored, strict=True):
            own = record.get("own") if isinstance(record, dict) else None  # geometry of a window of its own
            if page is not None and isinstance(own, str) and own and page.frame is self and self.can_detach:
                beside = self.detach(page)
                beside.restoreGeometry(QByteArray.fromBase64(own.encode("ascii", "replace")))
                beside.keep_on_screen()
        in_front = restored[front] if 0 <= front < len(restored) else None
        self.go_to(in_front or self.trace)

    def _restored(self, described: dict[str, object]) -> Page | None:
        kind, path = described.get("kind"), described.get("path")
        if kind == "trace":
            return self.trace
        if kind == "compare":
            return self.show_kind("compare")
        if kind not in KINDS or not isinstance(path, str) or not path or not Path(path).exists():
            return None
        # What the project has is shown as it is worked on there.
        bench = self.trace.desk.bench_of(Path(path))
        if kind == "model":
            return self.open_model(cast("ModelBench | None", bench) or Path(path))
        return self.open_experiment(cast("ExperimentBench | None", bench) or Path(path))

    # ---- settings

    def apply_settings(self) -> None:
        """Apply the settings in all frames of the project: keys, units, memory and theme."""
        for page in self.all_pages:
            page.apply_keys()
        memory.set_limit(self.settings.memory << 20)
        how.command = self.settings.remote_command
        units.set_time_unit(self.settings.time_unit)
        if self._unit != self.settings.time_unit:
            self._unit = self.settings.time_unit
            for page in self.all_pages:
                page.show_anew()
        self.use_theme(chosen_theme(self.settings))

    def choose_theme(self, choice: ThemeChoice) -> None:
        """Set the theme, in all windows at once."""
        self.settings.theme = choice
        self.tell_settings()

    def choose_text_size(self, percent: int) -> None:
        """Set the size of text in percent, in all windows at once."""
        self.settings.text_size = percent
        self.tell_settings()

    def tell_settings(self) -> None:
        """Let this window and all others follow a change of the settings."""
        self.main.settingsChanged.emit()
        self.main.apply_settings()

    def use_theme(self, theme: themes.Theme) -> None:
        """Use `theme`, regardless of the settings."""
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        font = app.font()
        if app.property("base_font_size") is None:  # points at 100 %
            app.setProperty("base_font_size", font.pointSizeF())
        size = float(app.property("base_font_size")) * self.settings.text_size / 100
        if abs(font.pointSizeF() - size) > 0.01:
            font.setPointSizeF(size)
            app.setFont(font)
            for window in app.topLevelWidgets():
                if isinstance(window, Frame) and window.isVisible():
                    # It is laid out in this turn of the event loop, and painted in the next.
                    window.setUpdatesEnabled(False)
                    QTimer.singleShot(0, window, partial(window.setUpdatesEnabled, True))
        style.apply(app, theme)
        for frame in self.frames:
            frame.theme = theme
            if frame.current is not None:
                frame.current.use_theme(theme)  # the others when they come to the front

    def _scheme_changed(self) -> None:
        if self.settings.theme == "system" and self.main is self:
            self.apply_settings()

    # ---- files from elsewhere

    @guarded
    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if any(url.isLocalFile() for url in event.mimeData().urls()):
            event.acceptProposedAction()
            self._drop_hint.setStyleSheet(_DROP_HINT)  # each time, as colours stay those of when it was set
            self._drop_hint.setGeometry(self.centralWidget().geometry())
            self._drop_hint.show()
            self._drop_hint.raise_()

    @guarded
    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        self._drop_hint.hide()

    @guarded
    def dropEvent(self, event: QDropEvent) -> None:
        self._drop_hint.hide()
        event.acceptProposedAction()
        paths = [Path(url.toLocalFile()) for url in event.mimeData().urls() if url.isLocalFile()]
        if paths and self.current is not None:
            self.current.open_paths(paths)

    @guarded
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._name_tabs()
        self._drop_hint.setGeometry(self.centralWidget().geometry())

    @guarded(otherwise=bool)
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """The title of the page in front is that of the window; bars lie above its centre."""
        if event.type() in (QEvent.Type.Resize, QEvent.Type.Move) and not isinstance(watched, Page):
            self._below.place()
            return False
        if event.type() in (QEvent.Type.WindowTitleChange, QEvent.Type.ModifiedChange):
            if watched is self.current:
                self._show_title()
            self._name_tabs()
        return super().eventFilter(watched, event)

    # ---- the program

    def new_window(self, paths: Iterable[Path] = ()) -> None:
        """Ask the program for another main window, with these traces."""
        self.main.newWindowRequested.emit(list(paths))

    def quit(self) -> None:
        """Ask the program to close all windows."""
        self.main.quitRequested.emit()

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

    def show_about(self) -> None:
        from desktop.ui.about import About

        About(self).open()

    def show_log_folder(self) -> None:
        """Open the folder of log files; where the desktop cannot, say where it is."""
        folder = log_folder()
        folder.mkdir(parents=True, exist_ok=True)
        if not QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder))):
            self.statusBar().showMessage(f"The log is in {folder}", 8000)
