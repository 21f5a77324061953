"""What if: how long the run would last on another network, or if parts of it computed otherwise."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QGridLayout,
    QLabel,
    QPushButton,
    QSlider,
    QSpinBox,
    QWidget,
)

from desktop.core.units import percent, quantity, signed, time_scale
from desktop.data.columns import Column, TableRow
from desktop.ui.guard import guarded
from desktop.ui.pages import (
    beside,
    choices,
    labelled,
    lay_out,
    refill,
    row,
    set_up,
    titled,
    together,
)  # fmt: skip
from desktop.ui.panels import Panel, PanelSpec, why_empty
from desktop.ui.tables import FrameView
from desktop.workbench.workbench import Snapshot, Workbench

if TYPE_CHECKING:
    from desktop.core.changes import Changes
    from desktop.data.helping import Help
    from desktop.data.whatif import RunPrediction
    from desktop.workbench.what_if import WhatIf

_STEPS = 240  # of a slider


class Knob(QSlider):
    """A slider over powers of ten from `low` to `high`, whose ends may stand for 0 or for no limit."""

    turned = Signal()

    def __init__(
        self, low: float, high: float, *, first: float | None = None, last: float | None = None
    ) -> None:
        super().__init__(Qt.Orientation.Horizontal)
        self._low, self._high, self._first, self._last = math.log10(low), math.log10(high), first, last
        self._put: tuple[int, float] | None = None  # the position that a number was given to, and the number
        self.setRange(0, _STEPS)
        self.setPageStep(_STEPS // 12)
        self.valueChanged.connect(lambda _: self.turned.emit())

    @property
    def number(self) -> float:
        """The number that the knob's position stands for."""
        k = self.value()
        if self._put is not None and self._put[0] == k:
            return self._put[1]
        if k == 0 and self._first is not None:
            return self._first
        if k == _STEPS and self._last is not None:
            return self._last
        return float(f"{10 ** (self._low + (self._high - self._low) * k / _STEPS):.3g}")

    def put(self, number: float) -> None:
        """Move to the nearest position, without a signal; until it is moved, it stands for just this."""
        with QSignalBlocker(self):
            if number == self._first:
                self.setValue(0)
            elif number == self._last:
                self.setValue(_STEPS)
            else:
                share = (math.log10(max(number, 1e-300)) - self._low) / (self._high - self._low)
                self.setValue(round(_STEPS * min(max(share, 0.0), 1.0)))
        self._put = self.value(), number

    @guarded(otherwise=QSize)
    def minimumSizeHint(self) -> QSize:
        return QSize(4 * self.fontMetrics().height(), super().minimumSizeHint().height())


class WhatIfPanel(Panel):
    """Sliders for network and computing, the predicted duration, and the changes that would help most."""

    ROOM = 24  # all of it is seen

    def __init__(self, workbench: Workbench) -> None:
        super().__init__(workbench)
        self._state: WhatIf | None = None
        self._applied: Changes | None = None
        self.words = set_up(QLabel(), wordWrap=True, textFormat=Qt.TextFormat.PlainText,
                           accessibleName="Predicted duration of the run")  # fmt: skip
        self.reset = set_up(QPushButton("&As recorded"), clicked=self._reset)
        self.reset.setToolTip("Undo all changes, also while they are being predicted")
        self._grid = QGridLayout()
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setVerticalSpacing(2)
        self._grid.setColumnStretch(1, 2)
        self._grid.setColumnStretch(2, 3)
        self._values: list[tuple[QLabel, Callable[[], str]]] = []
        self.network = choices(
            {"": "As recorded", "machine": "Another one"}, act=lambda _: self._turned(),
            accessibleName="Network",
            toolTip="On another network, calls take only latency, bandwidth and waiting",
        )  # fmt: skip
        self.buses = set_up(QSpinBox(), accessibleName="Buses", maximum=99999, specialValueText="any number")
        self.buses.setToolTip("Messages that are under way at a time")
        self.buses.valueChanged.connect(lambda _: self._turned())
        self._line("Network", self.network, labelled("B&uses", self.buses))
        self.latency = self._knob("Latency", 1e-8, 1e-2, lambda v: quantity(v, "s"), first=0.0)
        self.bandwidth = self._knob(
            "Bandwidth", 1e6, 1e12, lambda v: "infinite" if math.isinf(v) else quantity(v, "B/s"),
            last=math.inf,
        )  # fmt: skip
        self.eager = self._knob(
            "Eager limit", 64, 1e8, lambda v: "none" if math.isinf(v) else quantity(v, "B"),
            first=0.0, last=math.inf,
        )  # fmt: skip
        self.eager.setToolTip("Larger messages are sent when their receive is posted (rendezvous)")
        for knob in (self.bandwidth, self.eager):
            knob.put(math.inf)
        self._on_network = (self.latency, self.bandwidth, self.eager, self.buses)
        self.region = self._box("Region that is faster")
        self.region_speed = self._speed("Region", self.region, "How many times faster the region is", _faster)
        self.phase = self._box("Phase that is faster")
        self.balanced = set_up(QCheckBox("Balance&d"), accessibleName="Balance the phase")
        self.balanced.setToolTip("Every processor computes as long in the phase as they do on average")
        self.balanced.toggled.connect(lambda _: self._turned())
        both = together(self.phase, self.balanced)
        self.phase_speed = self._speed("Phase", both, "How many times faster the phase is", _faster)
        self.first_rank, self.last_rank = (
            set_up(QSpinBox(), accessibleName=name, maximum=999999, valueChanged=lambda _: self._turned())
            for name in ("First slower rank", "Last slower rank")
        )
        ranks = together(self.first_rank, QLabel("to"), self.last_rank)
        self.rank_speed = self._speed("Ranks", ranks, "How many times slower the ranks are", _slower)
        self._speeds = (self.region_speed, self.phase_speed, self.rank_speed)
        for knob in self._speeds:
            knob.put(1.0)
        self.settings = QWidget()
        self.words.setMinimumWidth(8 * self.fontMetrics().height())  # narrower than what it says asks for
        lay_out(self.settings, row((self.words, 1), self.reset), self._grid, None, margins=0)
        self.helps = FrameView("What would help most", sortable=False)
        self.helps.activatedKey.connect(self._apply)
        self.helps.chosen.connect(self._apply)
        self.split = beside(self.settings, self.helps, 50)
        lay_out(self, self.split, margins=6)
        self._enable()

    # ---- made of

    def _line(self, name: str, first: QWidget, second: QWidget, value: QLabel | None = None) -> None:
        line = self._grid.rowCount()
        self._grid.addWidget(titled(name, first), line, 0)
        self._grid.addWidget(first, line, 1)
        self._grid.addWidget(second, line, 2)
        if value is not None:
            self._grid.addWidget(value, line, 3)

    def _value(self, words: Callable[[], str]) -> QLabel:
        value = QLabel()
        value.setMinimumWidth(value.fontMetrics().horizontalAdvance("0.00 × faster "))
        self._values.append((value, words))
        return value

    def _knob(self, name: str, low: float, high: float, words: Callable[[float], str], **ends: float) -> Knob:
        """A slider over two columns."""
        knob = set_up(Knob(low, high, **ends), accessibleName=name, turned=self._turned)
        line = self._grid.rowCount()
        self._grid.addWidget(titled(name, knob), line, 0)
        self._grid.addWidget(knob, line, 1, 1, 2)
        self._grid.addWidget(self._value(lambda: words(knob.number)), line, 3)
        return knob

    def _box(self, called: str) -> QComboBox:
        return choices({}, act=lambda _: self._turned(), narrow=8, accessibleName=called)

    def _speed(self, name: str, target: QWidget, called: str, words: Callable[[float], str]) -> Knob:
        knob = set_up(Knob(1 / 8, 8), accessibleName=called, turned=self._turned)
        self._line(name, target, knob, self._value(lambda: words(knob.number)))
        return knob

    # ---- showing

    @guarded(otherwise=QSize)
    def minimumSizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        settings = self.settings.minimumSizeHint()
        below = self.split.orientation() == Qt.Orientation.Vertical
        return QSize(settings.width() + em, settings.height() + (10 * em if below else em))

    def heightForWidth(self, width: int) -> int:
        """Needed as the sentence is wrapped; a scroll area asks for it."""
        return self.minimumSizeHint().height()

    @guarded
    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put the list beside the sliders where there is room, else below them."""
        super().resizeEvent(event)
        wide = self.width() >= self.settings.minimumSizeHint().width() + 24 * self.fontMetrics().height()
        orientation = Qt.Orientation.Horizontal if wide else Qt.Orientation.Vertical
        if orientation != self.split.orientation():
            self.split.setOrientation(orientation)
            self.updateGeometry()

    def show_snapshot(self, old: Snapshot, new: Snapshot) -> None:
        state, names = new.what_if, new.project.names
        ready, renamed = why_empty(new), names != old.project.names
        if state is self._state and ready == why_empty(old) and not renamed:
            return
        before, self._state = self._state, state
        self._fill_boxes(state, names)
        if state.prediction is not None and not state.outdated and state.changes != self._changes_set():
            self._stand_at(state.changes)
        self._say(state, ready)
        if before is None or state.helps is not before.helps or renamed:
            self._list([one.called(names) for one in state.helps or ()])
        # What is not applied any more can be clicked again.
        applied = (k for k, one in enumerate(state.helps or ()) if one.changes == state.changes)
        self.helps.select_key(next(applied, ""))
        self._enable()

    def _fill_boxes(self, state: WhatIf, names: Mapping[str, str]) -> None:
        refill(self.region, {name: names.get(name, name) for name in state.regions})
        refill(self.phase, {k: f"{k + 1}" for k in range(state.phases)})

    def _say(self, state: WhatIf, ready: str) -> None:
        prediction = state.prediction
        if state.problem:
            text = state.problem
            if prediction is not None and prediction.note == text:
                text = f"Nothing can be predicted for this run. {text}"
        elif prediction is None:
            text = (
                ready
                if self._workbench.snapshot.fit is None
                else "Being computed from the events of the trace."
            )
        elif state.changes is None or not prediction.changes.sentence:  # those asked for may be under way
            text = f"The run lasts {quantity(prediction.recorded_s, 's')}."
            text += " Change something to see how long it would last." if state.changes is None else ""
        else:
            changes = prediction.changes.called(self._workbench.snapshot.project.names).sentence
            change = signed(-100 * prediction.saved_s / prediction.recorded_s, 3)
            text = (
                f"{prediction.duration_words} instead of {quantity(prediction.recorded_s, 's')} "
                f"({change} %): {changes}.{self._from_estimate(state, prediction)}"
            )
            text += f" {prediction.crowded}" if prediction.crowded else ""
        first = prediction is not None and not prediction.changes.sentence and state.changes is not None
        if state.outdated and (state.task is not None or first):
            part = None if state.task is None else state.task.fraction
            text += f" Predicting{'' if part is None else f', {percent(part)}'} …"
        self.words.setText(text)
        self._show_values()

    def _from_estimate(self, state: WhatIf, prediction: RunPrediction) -> str:
        """What an entry of the list is compared with, if that is not the run as recorded."""
        for one in state.helps or ():
            if one.changes == prediction.changes and one.before_s != prediction.recorded_s:
                saved, before = quantity(one.saved_s, "s"), quantity(one.before_s, "s")
                return f" That is {saved} less than on the network as it is estimated, {before}."
        return ""

    def _show_values(self) -> None:
        for value, words in self._values:
            value.setText(words())

    def _list(self, helps: Sequence[Help]) -> None:
        scale = time_scale(max((one.saved_s for one in helps), default=0.0))
        columns = (
            Column("Change", "A click applies it", stretch=True),
            Column("Saves", "Seconds saved", scale.symbol),
            Column("Part", "Of the run", "%"),
        )
        rows = [
            TableRow((one.label, one.saved_s / scale.factor, 100 * one.share), k, tip=one.assumption)
            for k, one in enumerate(helps)
        ]
        self.helps.show_rows(columns, rows, "What would help most, sorted by the time saved; then bounds")

    def _enable(self) -> None:
        state = self._state
        able = state is not None and state.prediction is not None and not state.prediction.note
        for widget in (self.network, *self._speeds, self.first_rank, self.last_rank):
            widget.setEnabled(able)
        for widget in self._on_network:
            widget.setEnabled(able and bool(self.network.currentData()))
        for box, *others in (
            (self.region, self.region_speed), (self.phase, self.phase_speed, self.balanced)
        ):  # fmt: skip
            for part in (box, *others):
                part.setEnabled(able and box.count() > 0)
        self.reset.setEnabled(state is not None and state.changes is not None)

    # ---- acting

    def _changes_set(self) -> Changes | None:
        """The changes that the sliders say, or those applied from the list; None: as recorded."""
        from desktop.core.changes import NONE, Changes
        from desktop.core.machine import Machine

        if self._applied is not None:
            return self._applied
        network = None
        if self.network.currentData():
            network = Machine(
                self.latency.number, self.bandwidth.number, self.eager.number, self.buses.value()
            )
        region, phase = self.region.currentData(), self.phase.currentData()
        faster, sooner, slower = (knob.number for knob in self._speeds)
        ranks = self.first_rank.value(), self.last_rank.value(), slower
        changes = Changes(
            network=network,
            regions=((region, faster),) if region and faster != 1 else (),
            phases=((phase, sooner),) if phase is not None and sooner != 1 else (),
            balanced=(phase,) if phase is not None and self.balanced.isChecked() else (),
            slower=(ranks,) if slower != 1 else (),
        )
        return None if changes == NONE else changes

    def _turned(self) -> None:
        self._applied = None
        if self.last_rank.value() < self.first_rank.value():
            with QSignalBlocker(self.last_rank):
                self.last_rank.setValue(self.first_rank.value())
        self._enable()
        self._show_values()
        self._workbench.ask_what_if(self._changes_set())

    def _reset(self) -> None:
        self._stand_at(None)
        self._workbench.ask_what_if(None)

    def _apply(self, key: object) -> None:
        helps = (self._state and self._state.helps) or ()
        if isinstance(key, int) and key < len(helps):
            changes = helps[key].changes
            self._stand_at(changes)
            self._workbench.ask_what_if(changes)

    def _stand_at(self, changes: Changes | None) -> None:
        """Set the sliders to some changes, as far as there are sliders for them."""
        from desktop.core.changes import NONE
        from desktop.core.machine import IDEAL

        target = changes or NONE
        network = target.network or IDEAL
        self.network.setCurrentIndex(0 if target.network is None else 1)
        self.latency.put(network.latency_s)
        self.bandwidth.put(network.bandwidth)
        self.eager.put(network.eager)
        with QSignalBlocker(self.buses):
            self.buses.setValue(network.buses)
        for box, knob, pairs in (
            (self.region, self.region_speed, target.regions),
            (self.phase, self.phase_speed, target.phases or tuple((k, 1.0) for k in target.balanced)),
        ):
            knob.put(1.0)
            for name, factor in pairs:
                box.setCurrentIndex(max(box.findData(name), 0))
                knob.put(factor)
        with QSignalBlocker(self.balanced):
            self.balanced.setChecked(bool(target.balanced))
        self.rank_speed.put(1.0)
        for first, last, factor in target.slower:
            for spin, rank in ((self.first_rank, first), (self.last_rank, last)):
                with QSignalBlocker(spin):
                    spin.setValue(rank)
            self.rank_speed.put(factor)
        self._applied = changes
        self._show_values()
        self._enable()


def _faster(factor: float) -> str:
    return "as it was" if factor == 1 else f"{factor:.3g} × faster"


def _slower(factor: float) -> str:
    return "as they were" if factor == 1 else f"{factor:.3g} × slower"


PANEL = PanelSpec("whatif", "What if", "bottom", WhatIfPanel, "whatif.md", frozenset({"whatif"}))
