"""Side panels of the window. A new panel is one file and one line here.

A panel shows a snapshot, updating only what differs, and turns gestures into calls of the workbench. It keeps
no state of the document and knows no other panel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, TypeAlias

from PySide6.QtCore import QEvent
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QWidget

from desktop.ui.guard import guarded
from desktop.workbench.phase_statistics import Part
from desktop.workbench.workbench import Snapshot, Workbench


class Panel(QWidget):
    """Base of most panels. `ROOM`: the height that its main content needs, in heights of the text; 0: any."""

    ROOM = 0

    def __init__(self, workbench: Workbench) -> None:
        super().__init__()
        self._workbench = workbench

    def show_snapshot(self, old: Snapshot, new: Snapshot) -> None:
        """Draw what differs between two snapshots."""
        raise NotImplementedError

    def watch(self, on_top: bool) -> None:
        """Whether it is on top of the others."""

    def room(self) -> int:
        """The same height in pixels."""
        return self.ROOM * self.fontMetrics().height()

    def _arrange(self) -> None:
        """Lay it out for its size and font."""

    @guarded
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    @guarded
    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._arrange()


#: A `Panel`, or another widget with `show_snapshot`: whoever asks for one by its name knows its class.
AnyPanel: TypeAlias = Any


@dataclass(frozen=True)
class PanelSpec:
    """`id` names the dock in saved layouts; `title` stands on its tab; `make(workbench)` builds the widget.
    `page`: place in the handbook that explains it, ``"page.md#heading"``. `parts`: which statistics it shows,
    which are computed only while it is on top."""

    id: str
    title: str
    area: Literal["right", "bottom"]
    make: Callable[[Workbench], AnyPanel]
    page: str
    parts: frozenset[Part] = frozenset()


def panels() -> tuple[PanelSpec, ...]:
    """All panels in the order of their tabs."""
    names = (
        *("phases", "trace", "classes", "views"),
        *("table", "statistics", "profile", "messages", "changes", "whatif", "iterations"),
        *("effects", "model", "project"),
    )
    return tuple(import_module(f"desktop.ui.panels.{name}").PANEL for name in names)


def why_empty(snapshot: Snapshot) -> str:
    """Why a panel that explains phases from the events of a trace has nothing to show yet, and what to do."""
    if snapshot.opening is not None:
        return "The trace is being read."
    if snapshot.run is None:
        return "No trace is open: open one with File > Open."
    if snapshot.document is not None and not snapshot.document.locations:
        return "This is a curve without events: open the trace that it was made from."
    if snapshot.fit is None:
        return "The phases are being fitted."
    return "Being computed from the events of the trace."
