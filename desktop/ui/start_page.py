"""The page shown while no trace is open: ways to open one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from desktop.data.naming import run_name
from desktop.resources import Sample
from desktop.ui.pages import LinkButton, button, fill_layout, heading, quiet, row, set_up


class StartPage(QScrollArea):
    """Open, recent files, bundled traces, and where the keys are listed: `open_path` opens one of the files
    shown, `clear` forgets those opened before, and `ways` are the buttons, the usual one first."""

    def __init__(
        self,
        samples: Sequence[Sample],
        open_path: Callable[[Path], object],
        clear: Callable[[], object],
        ways: Mapping[str, Callable[[], object]],
    ) -> None:
        super().__init__()
        self._open_path, self._clear = open_path, clear
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

        inside = QWidget()
        grid = set_up(QGridLayout(), contentsMargins=(48, 36, 48, 24), verticalSpacing=20)
        grid.addLayout(self._head(ways), 0, 0)
        grid.addLayout(columns, 1, 0)
        grid.setRowStretch(1, 1)
        inside.setLayout(grid)
        self.setWidget(inside)

    def show_recent(self, paths: Sequence[Path]) -> None:
        """List files opened before; missing ones cannot be chosen."""
        while (item := self._recent.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        for path in paths:
            exists = path.exists()
            folder = str(path.parent) if exists else f"{path.parent} (missing)"
            link = self._link(run_name(path), folder, path)
            link.setEnabled(exists)
            self._recent.addWidget(link)
        if paths:
            clear = button("Clear this list", self._clear)
            self._recent.addWidget(clear, 0, Qt.AlignmentFlag.AlignLeft)
        else:
            self._recent.addWidget(quiet("Traces that you open are listed here."))

    def _head(self, ways: Mapping[str, Callable[[], object]]) -> QVBoxLayout:
        high = int(2.4 * self.fontMetrics().height())
        choose, *more = [button(text, act, minimumHeight=high) for text, act in ways.items()]
        wide = 18 * self.fontMetrics().averageCharWidth()
        self.setFocusProxy(set_up(choose, objectName="open_button", default=True, minimumWidth=wide))
        drop = QLabel("or drop a file or folder anywhere on this window")
        buttons = row(choose, *more, drop, None, spacing=12)
        about = quiet(
            "See how busy the processors of a parallel run were, and in which phases. "
            "Reads OTF2, OTF, Paraver and PICL traces, curves, and projects."
        )
        return fill_layout(QVBoxLayout(), heading("Phasewright", 2.2), about, buttons, spacing=12)

    def _link(self, title: str, text: str, path: Path) -> LinkButton:
        return set_up(LinkButton(title, text, lambda: self._open_path(path)), toolTip=str(path))
