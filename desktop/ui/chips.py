"""What limits or changes the numbers, as chips beside the tools; the cross of each ends it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QToolButton, QWidget

from desktop.core.units import count, instant
from desktop.printing import printable
from desktop.ui.guard import guarded
from desktop.ui.pages import fill_layout
from desktop.workbench.limiting import waiting
from desktop.workbench.model import Project
from desktop.workbench.workbench import Snapshot, Workbench

#: The curve that is fitted unless another is chosen.
PLAIN = Project().curve


@dataclass(frozen=True)
class Chip:
    """`text` says what is the case, `tip` what follows, `end` makes it no more so."""

    key: str
    text: str
    tip: str
    end: Callable[[], None]


def chips(shown: Snapshot, bench: Workbench) -> list[Chip]:
    """All that holds now, in the order in which it acts."""
    found: list[Chip] = []
    rules, document = shown.project.rules, shown.document
    if shown.run is None or document is None:
        return found
    if rules is not None:
        if rules.repaired is not None and rules.repaired != document.repaired:
            found.append(
                Chip(
                    "clocks",
                    "times with clocks repaired" if rules.repaired else "times as recorded",
                    "End it: times as the trace's format recommends",
                    bench.reset_clocks,
                )
            )
        if rules.overrides:
            found.append(
                Chip(
                    "regions",
                    f"{count(len(rules.overrides), 'region')} classified otherwise",
                    "End it: all regions as the program classifies them",
                    bench.reset_regions,
                )
            )
        if rules.computing != type(rules)().computing:
            names = " and ".join(activity.name.lower() for activity in sorted(rules.computing))
            found.append(
                Chip(
                    "computing",
                    f"the curve counts {names}",
                    "End it: the curve counts computing alone",
                    bench.reset_computing,
                )
            )
    if shown.project.curve != PLAIN:
        known = (one["title"] for one in document.info["curves"] if one["curve"] == shown.project.curve)
        title = printable(next(known, shown.project.curve), 60)
        found.append(
            Chip(
                "curve",
                f"fitted curve: {title[:1].lower()}{title[1:]}",
                "End it: fit the processors that compute",
                lambda: bench.set_curve(PLAIN),
            )
        )
    limit = shown.project.limit
    if limit is not None:
        a, b = limit
        kept = waiting(shown.project)
        waits = f"; {count(kept, 'break')} outside of it not applied" if kept else ""
        found.append(
            Chip(
                "limit",
                f"analysis limited to {instant(a, b - a)} to {instant(b, b - a)}{waits}",
                "End it: analyse the whole run"
                + (", with the breaks outside that are locked or set by hand" if kept else ""),
                lambda: bench.limit_to(None),
            )
        )
    selection = shown.project.view.selection
    if selection is not None:
        a, b = selection
        found.append(
            Chip(
                "selection",
                f"statistics: selection {instant(a, b - a)} to {instant(b, b - a)}",
                "End it: select nothing",
                lambda: bench.select(None),
            )
        )
    return found


class ChipBar(QWidget):
    """A row of chips; nothing at all where there are none."""

    def __init__(self, workbench: Workbench) -> None:
        super().__init__()
        self._workbench = workbench
        self._shown: list[Chip] = []
        self._buttons: dict[str, QToolButton] = {}
        self.setObjectName("chips")
        self.setAccessibleName("Active limits")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._row = fill_layout(QHBoxLayout(self), None, margins=(8, 0, 8, 0))

    @property
    def texts(self) -> list[str]:
        return [chip.text for chip in self._shown]

    def show_snapshot(self, shown: Snapshot) -> None:
        self._shown = chips(shown, self._workbench)
        keys = [chip.key for chip in self._shown]
        for key in [key for key in self._buttons if key not in keys]:
            button = self._buttons.pop(key)
            self._row.removeWidget(button)
            button.hide()
            button.deleteLater()
        for place, chip in enumerate(self._shown):
            if chip.key not in self._buttons:
                made = self._buttons[chip.key] = QToolButton()
                made.setObjectName(f"chip_{chip.key}")
                made.clicked.connect(lambda _=False, key=chip.key: self._end(key))
                self._row.insertWidget(place, made)
            button = self._buttons[chip.key]
            button.setText(f"{chip.text}  ×")
            button.setToolTip(chip.tip)
            button.setAccessibleName(chip.text)
            button.setAccessibleDescription(chip.tip)

    @guarded(otherwise=QSize)
    def minimumSizeHint(self) -> QSize:
        """Chips that do not fit must not make the window wider."""
        return QSize(1, super().minimumSizeHint().height())

    def _end(self, key: str) -> None:
        for chip in self._shown:
            if chip.key == key:
                chip.end()
                return
