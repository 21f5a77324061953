"""How the phases of the compared runs scale: sentences, phases stacked over p, and a table of predictions."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSpinBox, QVBoxLayout, QWidget

from desktop.data.chart import Axis, Content
from desktop.ui.pages import choices, divided, fill_layout, quiet, set_up, titled
from desktop.ui.plots.chart import Chart
from desktop.ui.tables import Column, FrameView
from desktop.workbench.phase_modelling import PhaseModelSnapshot

if TYPE_CHECKING:
    from desktop.core.phase_model import PhaseModel

_NEW = "Of one new run, with 95 % probability"
#: Of `desktop.data.phase_scaling_told.table`.
COLUMNS = (
    Column("Phase", name="phase"),
    Column("p", "Processors", name="p", whole=True),
    Column("Predicted", "By the law of the phase, so that phases add up to the run", name="predicted"),
    Column("95 % from", _NEW, name="low", like="predicted"),
    Column("to", _NEW, name="high", like="predicted"),
    Column(
        "Measured", "Mean of the runs on so many processors", name="measured", like="predicted", missing=""
    ),
    Column("Part of run", "Of the predicted run", "%", 3, name="part"),
    Column("Global eff.", "Parallel efficiency times computation scaling", "%", 3, name="global"),
    Column("Parallel eff.", "Load balance times communication efficiency", "%", 3, name="parallel"),
    Column("Load balance", "Mean over maximum computing time", "%", 3, name="load_balance"),
    Column("Comm. eff.", "Maximum computing time over duration", "%", 3, name="communication"),
    Column("Comp. scaling", "Work on the least p over work here", "%", 3, name="computation_scaling"),
)
#: What the chart shows (`desktop.data.phase_scaling_told.SHOWN`).
_SHOWN = {"time": "Time", "share": "Part of the run", "cost": "Processors × time", "efficiency": "Efficiency"}


class PhasesView(QWidget):
    """Shows the snapshots of a `PhaseModeller`; `back` is what its button does."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("phases_over_p")
        self._model: PhaseModel | None = None
        self._matched = ""
        self.said = quiet(objectName="phases_said", contentsMargins=(8, 4, 8, 2))
        self.chart = Chart("Phases over p", help_at="compare.md#phases-over-p")
        self.table = FrameView("Predictions of the phases")
        self.back = QPushButton("Back to the comparison")
        self.what = choices(_SHOWN, objectName="phases_shown")
        self.p = set_up(QSpinBox(), objectName="phases_p", accessibleName="Predict at p")
        steps = QSpinBox.StepType.AdaptiveDecimalStepType
        set_up(self.p, range=(1, 10_000_000), stepType=steps, keyboardTracking=False)
        shown, at = titled("S&how", self.what), titled("&Predict at p =", self.p)
        parts = shown, self.what, at, self.p, None, self.back
        bar = fill_layout(QHBoxLayout(), *parts, margins=(8, 2, 8, 2))
        down = divided(Qt.Orientation.Vertical, (self.chart, 3), (self.table, 2))
        fill_layout(QVBoxLayout(self), self.said, bar, (down, 1), margins=0, spacing=2)
        self.what.currentIndexChanged.connect(lambda _: self._draw())
        self.p.valueChanged.connect(lambda _: self._show())

    def show_snapshot(self, old: PhaseModelSnapshot, new: PhaseModelSnapshot) -> None:
        """Draw the difference."""
        self._matched = new.matched
        if new.model is not self._model:
            self._model = new.model
            if new.model is not None:
                with QSignalBlocker(self.p):
                    self.p.setValue(round(2 * new.model.largest))
        if new.model is not old.model or new.task is not old.task or new.problem != old.problem:
            self._show(new)

    def _show(self, new: PhaseModelSnapshot | None = None) -> None:
        model = self._model
        if model is None:
            waiting = new is not None and new.task is not None
            text = (
                "The runs are being read…" if waiting else "No model of the phases can be made of these runs."
            )
            self.said.setText(text)
            self.chart.set_content(Content(Axis(""), Axis(""), empty=text))
            self.table.show_frame(None, COLUMNS)
            return
        from desktop.data.phase_scaling_told import sentences, table, warnings

        at = (*sorted(set(model.data.p.tolist())), float(self.p.value()))
        at = tuple(dict.fromkeys(at))
        said = " ".join(sentences(model))
        notes = " ".join((*warnings(model, at), f"{self._matched[:1].upper()}{self._matched[1:]}."))
        self.said.setText(f"<b>{escape(said)}</b><br>{escape(notes)}")
        frame = table(model, at)
        order = frame.sort_values("p", ascending=False, kind="stable").reset_index(drop=True)
        order.attrs.update(frame.attrs)
        self.table.show_frame(order, COLUMNS)
        self._draw()

    def _draw(self) -> None:
        if self._model is None:
            return
        from desktop.data.phase_scaling_told import chart, sentences

        largest = max(4.0 * self._model.largest, float(self.p.value()))
        self.chart.set_content(
            chart(self._model, self.what.currentData(), largest), " ".join(sentences(self._model))
        )
