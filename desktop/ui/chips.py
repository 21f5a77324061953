"""What limits or changes the numbers, as chips beside the tools; the cross of each ends it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QToolButton, QWidget

from desktop.core.units import count, instant
from desktop.printing import printable
from desktop.ui.guard import guarded
from desktop.ui.pages import fill_layout, set_up
from desktop.workbench.limiting import count_outside
from desktop.workbench.model import Project
from desktop.workbench.workbench import Document, Snapshot, Workbench

#: The curve that is fitted unless another is chosen.
PLAIN = Project().curve


@dataclass(frozen=True)
class Chip:
    """A limit in force: `text` names it, `tip` says what its cross does, `end` lifts it."""

    key: str
    text: str
    tip: str
    end: Callable[[], None]


def chips(snapshot: Snapshot, bench: Workbench) -> list[Chip]:
    """All limits in force, in the order in which they act."""
    run, document = snapshot.run, snapshot.document
    return [] if run is None or document is None else list(_chips(snapshot, document, bench))


def _chips(snapshot: Snapshot, document: Document, bench: Workbench) -> Iterator[Chip]:
    rules, curve, limit = snapshot.project.rules, snapshot.project.curve, snapshot.project.limit
    if rules is not None:
        if rules.repaired is not None and rules.repaired != document.repaired:
            text = "times with clocks repaired" if rules.repaired else "times as recorded"
            yield Chip("clocks", text, "Remove: times as the trace's format recommends", bench.reset_clocks)
        if rules.overrides:
            text = f"{count(len(rules.overrides), 'region')} classified otherwise"
            yield Chip("regions", text, "Remove: classify all regions automatically", bench.reset_regions)
        if rules.computing != type(rules)().computing:
            names = " and ".join(activity.name.lower() for activity in sorted(rules.computing))
            tip = "Remove: count computing only"
            yield Chip("computing", f"the curve counts {names}", tip, bench.reset_computing)
    if curve != PLAIN:
        titles = (one["title"] for one in document.info["curves"] if one["curve"] == curve)
        title = printable(next(titles, curve), 60)
        text, tip = f"fitted curve: {title[:1].lower()}{title[1:]}", "Remove: fit the computing processors"
        yield Chip("curve", text, tip, lambda: bench.set_curve(PLAIN))
    if limit is not None:
        outside = count_outside(snapshot.project)
        waits = f"; {count(outside, 'breakpoint')} outside of it not applied" if outside else ""
        tip = "Remove: analyse the whole run"
        tip += ", with the breakpoints outside that are locked or set by hand" if outside else ""
        yield Chip(
            "limit", f"analysis limited to {_span_words(limit)}{waits}", tip, lambda: bench.limit_to(None)
        )
    selection = snapshot.project.view.selection
    if selection is not None:
        text = f"statistics: selection {_span_words(selection)}"
        yield Chip("selection", text, "Remove: clear the selection", lambda: bench.select(None))


def _span_words(span: tuple[float, float]) -> str:
    return " to ".join(instant(t, span[1] - span[0]) for t in span)


class ChipBar(QWidget):
    """A row of chips; nothing at all where there are none."""

    def __init__(self, workbench: Workbench) -> None:
        super().__init__()
        self._workbench = workbench
        self._chips: list[Chip] = []
        self._buttons: dict[str, QToolButton] = {}
        policy = QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed
        set_up(self, objectName="chips", accessibleName="Active limits", sizePolicy=policy)
        self._row = fill_layout(QHBoxLayout(self), None, margins=(8, 0, 8, 0))

    @property
    def texts(self) -> list[str]:
        """The texts of the chips that are shown, from the left."""
        return [chip.text for chip in self._chips]

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Show a chip for all that the snapshot restricts; buttons of chips that stay are reused."""
        self._chips = chips(snapshot, self._workbench)
        keys = [chip.key for chip in self._chips]
        for key in [key for key in self._buttons if key not in keys]:
            button = self._buttons.pop(key)
            self._row.removeWidget(button)
            button.hide()
            button.deleteLater()
        for place, chip in enumerate(self._chips):
            if chip.key not in self._buttons:
                new_button = self._buttons[chip.key] = set_up(QToolButton(), objectName=f"chip_{chip.key}")
                new_button.clicked.connect(lambda _=False, key=chip.key: self._end(key))
                self._row.insertWidget(place, new_button)
            set_up(
                self._buttons[chip.key], text=f"{chip.text}  ×", toolTip=chip.tip, accessibleName=chip.text,
                accessibleDescription=chip.tip,
            )  # fmt: skip

    @guarded(otherwise=QSize)
    def minimumSizeHint(self) -> QSize:
        """Chips that do not fit must not make the window wider."""
        return QSize(1, super().minimumSizeHint().height())

    def _end(self, key: str) -> None:
        next(chip for chip in self._chips if chip.key == key).end()
