"""What the program is busy with, in the status bar of a window."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QHBoxLayout, QLabel, QProgressBar, QPushButton, QWidget

from desktop.ui.units import left
from desktop.workbench.jobs import Task


class TaskLine(QWidget):
    """Words, progress, and Cancel where there is a way to; in view while there is a task."""

    def __init__(self, cancel: Callable[[], object] | None = None) -> None:
        super().__init__()
        self._words = QLabel()
        self._words.setObjectName("task")
        self.progress = QProgressBar()
        self.progress.setMaximumWidth(16 * self.fontMetrics().averageCharWidth())
        self.progress.setTextVisible(False)
        self.progress.setAccessibleName(self.tr("Progress"))
        self.cancel = QPushButton(self.tr("Cancel"))
        self.cancel.setObjectName("cancel")
        if cancel is not None:
            self.cancel.clicked.connect(cancel)
        self.cancel.setVisible(cancel is not None)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        for widget in (self._words, self.progress, self.cancel):
            row.addWidget(widget)
        row.addStretch(1)
        self.hide()

    @property
    def text(self) -> str:
        return self._words.text()

    def show_task(self, task: Task | None, *, timed: bool = True) -> None:
        """`timed`: how long it still takes is said too."""
        self.setVisible(task is not None)
        if task is None:
            return
        remaining = left(task.left) if timed and task.left is not None else ""
        self._words.setText(" – ".join(part for part in (task.title, task.text, remaining) if part))
        self.progress.setRange(0, 0 if task.fraction is None else 1000)
        if task.fraction is not None:
            self.progress.setValue(round(1000 * task.fraction))
