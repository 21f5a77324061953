"""What is there before a trace is: ways to get one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QEvent, QRect, QSize, Qt, Signal
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import (
    QCommandLinkButton,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from desktop.data.naming import run_name
from desktop.resources import Sample
from desktop.ui.guard import guarded
from desktop.ui.pages import fill_layout, heading, quiet, set_up


class StartPage(QScrollArea):
    """Open, recent files, bundled traces, and where the keys are listed."""

    openRequested = Signal(object)  # Path
    chooseRequested = Signal()
    keysRequested = Signal()
    tourRequested = Signal()
    clearRequested = Signal()

    def __init__(self, samples: Sequence[Sample]) -> None:
        super().__init__()
        set_up(self, objectName="start_page", widgetResizable=True, frameShape=QScrollArea.Shape.NoFrame)
        self._recent = set_up(QVBoxLayout(), spacing=2)

        left = fill_layout(QVBoxLayout(), heading("Bundled traces of real runs", 1.2), spacing=2)
        for sample in samples:
            left.addWidget(self._link(sample.title, sample.text, sample.path))
        left.addStretch(1)
        right = fill_layout(QVBoxLayout(), heading("Recent", 1.2), self._recent, None, spacing=2)
        columns = set_up(QHBoxLayout(), spacing=40)
        if samples:
            columns.addLayout(left, 3)
        columns.addLayout(right, 2)

        page = QWidget()
        grid = set_up(QGridLayout(page), contentsMargins=(48, 36, 48, 24), verticalSpacing=20)
        grid.addLayout(self._head(), 0, 0)
        grid.addLayout(columns, 1, 0)
        grid.setRowStretch(1, 1)
        self.setWidget(page)

    def show_recent(self, paths: Sequence[Path]) -> None:
        """List files opened before; missing ones cannot be chosen."""
        while (item := self._recent.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        for path in paths:
            there = path.exists()
            folder = str(path.parent) if there else f"{path.parent} (missing)"
            link = self._link(run_name(path), folder, path)
            link.setEnabled(there)
            self._recent.addWidget(link)
        if paths:
            clear = set_up(QPushButton("Clear this list"), clicked=self.clearRequested)
            self._recent.addWidget(clear, 0, Qt.AlignmentFlag.AlignLeft)
        else:
            self._recent.addWidget(quiet("Traces that you open are listed here."))

    def _head(self) -> QVBoxLayout:
        choose = set_up(QPushButton("Open a trace…"), objectName="open_button", default=True)
        choose.setMinimumHeight(int(2.4 * choose.fontMetrics().height()))
        choose.setMinimumWidth(18 * choose.fontMetrics().averageCharWidth())
        choose.clicked.connect(self.chooseRequested)
        self.setFocusProxy(choose)
        keys = set_up(QPushButton("List of keys"), minimumHeight=choose.minimumHeight())
        keys.clicked.connect(self.keysRequested)
        tour = set_up(QPushButton("Tour in five minutes"), minimumHeight=choose.minimumHeight())
        tour.clicked.connect(self.tourRequested)
        row = set_up(QHBoxLayout(), spacing=12)
        for button in (choose, tour, keys):
            row.addWidget(button)
        row.addWidget(QLabel("or drop a file or folder anywhere on this window"))
        row.addStretch(1)
        head = fill_layout(QVBoxLayout(), heading("Phasewright", 2.2), spacing=12)
        head.addWidget(
            quiet(
                "See how busy the processors of a parallel run were, and in which phases. "
                "Reads OTF2, OTF, Paraver and PICL traces, curves, and projects."
            )
        )
        head.addLayout(row)
        return head

    def _link(self, title: str, text: str, path: Path) -> QCommandLinkButton:
        link = _Link(title.replace("&", "&&"), text)
        link.setToolTip(str(path))
        link.clicked.connect(lambda: self.openRequested.emit(path))
        return link


class _Link(QCommandLinkButton):
    """A title with text below. Qt's own arrow is black on every theme, and its height follows from the
    narrowest width it could get, so both are replaced."""

    def __init__(self, title: str, text: str) -> None:
        super().__init__(title, text)
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
        """As high as its text at the width that it has."""
        metrics = self.fontMetrics()
        room = QRect(0, 0, max(self.width() - 2 * metrics.height(), 1), 100 * metrics.height())
        text = metrics.boundingRect(room, Qt.TextFlag.TextWordWrap, self.description())
        return QSize(super().sizeHint().width(), int(2.6 * metrics.height()) + text.height())

    @guarded(otherwise=QSize)
    def minimumSizeHint(self) -> QSize:
        return QSize(0, self.sizeHint().height())

    def hasHeightForWidth(self) -> bool:
        return False
