"""Tasks under way, in the status bar of a window: each with its progress and Cancel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QObject, QPoint, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QMainWindow,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from desktop.core.units import left
from desktop.ui.guard import guarded
from desktop.ui.pages import fill_layout, set_up
from desktop.workbench.jobs import Task


@dataclass(frozen=True)
class Running:
    """A task under way; `timed`: with an estimate of its remaining time."""

    task: Task
    cancel: Callable[[], object] | None = None
    timed: bool = True


class TaskLine(QWidget):
    """Text, progress, and Cancel if the task can be cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self._words = set_up(QLabel(), objectName="task")
        wide = 16 * self.fontMetrics().averageCharWidth()
        self.progress = set_up(
            QProgressBar(), maximumWidth=wide, textVisible=False, accessibleName="Progress"
        )
        self.cancel = set_up(QPushButton("Cancel"), objectName="cancel")
        self.cancel.clicked.connect(lambda: self._act and self._act())
        self._act: Callable[[], object] | None = None
        fill_layout(QHBoxLayout(self), self._words, self.progress, self.cancel, None, margins=0)

    @property
    def text(self) -> str:
        """What is said of the task."""
        return self._words.text()

    def show_task(self, running: Running, page: str) -> None:
        """`page`: the title of its page, "" for the page in front."""
        task, cancel = running.task, running.cancel
        remaining = left(task.left) if running.timed and task.left is not None else ""
        words = " – ".join(part for part in (task.title, task.text, remaining) if part)
        self._words.setText(f"{page}: {words}" if page else words)
        self.progress.setRange(0, 0 if task.fraction is None else 1000)
        if task.fraction is not None:
            self.progress.setValue(round(1000 * task.fraction))
        self._act = cancel
        self.cancel.setVisible(cancel is not None)


class TaskList(QWidget):
    """All tasks that are under way: the first one in the line, a button for the list of all if there are
    more. `show_tasks` gets each with its page, by keys."""

    def __init__(self, window: QMainWindow) -> None:
        super().__init__(window)
        self._bar = window.statusBar()
        self._bar.messageChanged.connect(lambda _: self._arrange())
        self._lines: dict[tuple[int, str], TaskLine] = {}
        self.more = set_up(QToolButton(), objectName="all_tasks", checkable=True)
        self.more.setToolTip("List all running tasks, with progress and Cancel")
        self.more.toggled.connect(lambda _: self._arrange())
        self.list = set_up(QFrame(window), objectName="task_list", accessibleName="Running tasks")
        self.list.setFrameShape(QFrame.Shape.StyledPanel)
        self.list.setAutoFillBackground(True)
        self.list.hide()
        self._rows = QVBoxLayout(self.list)
        self._row = fill_layout(QHBoxLayout(self), self.more, margins=0)
        #: Height of a line with its buttons, which a status bar needs before there is a task as well.
        self.line_height = max(TaskLine().sizeHint().height(), self.more.sizeHint().height())
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.hide()
        window.installEventFilter(self)

    @property
    def lines(self) -> tuple[TaskLine, ...]:
        """One for each task, in the order in which they are listed."""
        return tuple(self._lines.values())

    @property
    def text(self) -> str:
        """What the first line says; "" without a task."""
        return next((line.text for line in self._lines.values()), "")

    def show_tasks(self, tasks: Mapping[tuple[int, str], tuple[Running, str]]) -> None:
        """Show a line for each running task, with its page's title; keys: the page and the task's name."""
        for key in [key for key in self._lines if key not in tasks]:
            line = self._lines.pop(key)
            line.hide()
            line.setParent(None)
            line.deleteLater()
        self._lines = {key: self._lines.get(key) or TaskLine() for key in tasks}
        for key, (running, page) in tasks.items():
            self._lines[key].show_task(running, page)
        self._arrange()

    def _arrange(self) -> None:
        lines = self.lines
        if len(lines) < 2:
            self.more.setChecked(False)
        several = self.more.isChecked()
        for k, line in enumerate(lines):
            if several:
                self._rows.addWidget(line)
            elif k == 0:
                self._row.insertWidget(0, line, 1)
            line.setVisible(several or k == 0)
        self.more.setText(f"{len(lines)} tasks")
        self.more.setVisible(len(lines) > 1)
        # What the bar says for a moment, as a menu's tip, would be written over it.
        self.setVisible(bool(lines) and not self._bar.currentMessage())
        self.list.setVisible(several)
        if several:
            self._place()

    def _place(self) -> None:
        """Above the status bar, at the left."""
        self.list.adjustSize()
        window = self.window()
        corner = self.mapTo(window, QPoint(0, 0))
        self.list.move(corner.x(), max(0, corner.y() - self.list.height() - 4))
        self.list.raise_()

    @guarded(otherwise=bool)
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Esc closes the list before it does anything else; it stays above the status bar."""
        if not self.list.isHidden():
            escape = isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape
            if event.type() == QEvent.Type.Resize:
                self._place()
            elif escape and event.type() == QEvent.Type.ShortcutOverride:
                event.accept()  # so that it comes as a key
                return True
            elif escape and event.type() == QEvent.Type.KeyPress:
                self.more.setChecked(False)
                return True
        return super().eventFilter(watched, event)
