"""How the phases of the compared runs scale: sentences, phases stacked over p, and a table of predictions."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtWidgets import QComboBox, QPushButton, QSpinBox, QWidget

from desktop.core.units import capital
from desktop.data.chart import Axis, Content
from desktop.data.columns import Column
from desktop.ui.pages import choices, divided, lay_out, quiet, refill, row, set_up, titled
from desktop.ui.plots.chart import Chart
from desktop.ui.tables import FrameView
from desktop.workbench.phase_modelling import PhaseModelSnapshot

if TYPE_CHECKING:
    from desktop.core.phase_model import PhaseModel
    from desktop.core.phase_systems import SystemsModel

_SYSTEM = Column("System", "The system of the runs", name="system")
_INTERVAL = "Of one new run, with 95 % probability"
#: Of `desktop.data.phase_scaling_words.table`.
COLUMNS = (
    Column("Phase", name="phase"),
    Column("p", "Processors", name="p", whole=True),
    Column("Predicted", "By the law of the phase, so that phases add up to the run", name="predicted"),
    Column("95 % from", _INTERVAL, name="low", like="predicted"),
    Column("to", _INTERVAL, name="high", like="predicted"),
    Column(
        "Measured", "Mean of the runs on so many processors", name="measured", like="predicted", missing=""
    ),
    Column("Part of run", "Of the predicted run", "%", 3, name="part"),
    *(
        column
        for title, tip, name in (
            ("Global eff.", "Parallel efficiency times computation scaling", "global"),
            ("Parallel eff.", "Load balance times communication efficiency", "parallel"),
            ("Load balance", "Mean over maximum computing time", "load_balance"),
            ("Comm. eff.", "Maximum computing time over duration", "communication"),
            ("Comp. scaling", "Work on the least p over work here", "computation_scaling"),
        )
        for column in (
            Column(title, tip, "%", 3, name=name),
            Column("95 % from", _INTERVAL, "%", 3, name=f"{name}_low"),
            Column("to", _INTERVAL, "%", 3, name=f"{name}_high"),
        )
    ),
)
#: What the chart shows (`desktop.data.phase_scaling_words.QUANTITIES`).
_SHOWN = {"time": "Time", "share": "Part of the run", "cost": "Processors × time", "efficiency": "Efficiency"}


class PhasesView(QWidget):
    """Shows the snapshots of a `PhaseModeller`; `back` and `systems` are what its buttons do."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("phases_over_p")
        self._model: PhaseModel | SystemsModel | None = None
        self._matched = ""
        self.words = quiet(objectName="phases_words", contentsMargins=(8, 4, 8, 2))
        self.chart = Chart("Phases over p", help_at="compare.md#phases-over-p")
        self.table = FrameView("Predictions of the phases")
        self.back = QPushButton("Back to the comparison")
        self.systems = set_up(
            QPushButton("Systems…"), objectName="phases_systems", toolTip="What each run was on"
        )
        self.system = choices(
            {}, act=lambda _: self._draw(), objectName="phases_system",
            sizeAdjustPolicy=QComboBox.SizeAdjustPolicy.AdjustToContents,
        )  # fmt: skip
        self._on = titled("&On", self.system)
        self.measure = choices(_SHOWN, objectName="phases_shown")
        self.p = set_up(QSpinBox(), objectName="phases_p", accessibleName="Predict at p")
        steps = QSpinBox.StepType.AdaptiveDecimalStepType
        set_up(self.p, range=(1, 10_000_000), stepType=steps, keyboardTracking=False)
        show, predict = titled("S&how", self.measure), titled("&Predict at p =", self.p)
        parts = self._on, self.system, show, self.measure, predict, self.p, None, self.systems, self.back
        bar = row(*parts, margins=(8, 2, 8, 2))
        down = divided(Qt.Orientation.Vertical, (self.chart, 3), (self.table, 2))
        lay_out(self, self.words, bar, (down, 1), margins=0, spacing=2)
        self.measure.currentIndexChanged.connect(lambda _: self._draw())
        self.p.valueChanged.connect(lambda _: self._show())

    def show_snapshot(self, old: PhaseModelSnapshot, new: PhaseModelSnapshot) -> None:
        """Draw what differs."""
        self._matched = new.matched
        if new.model is not self._model:
            self._model = new.model
            names = [name for name, _ in self._models]
            refill(self.system, {name: name for name in names})
            for widget in (self._on, self.system):
                widget.setVisible(len(names) > 1)
            if names:
                with QSignalBlocker(self.p):
                    self.p.setValue(round(2 * max(model.largest for _, model in self._models)))
        if new.model is not old.model or new.task is not old.task or new.problem != old.problem:
            self._show(new)

    @property
    def _models(self) -> tuple[tuple[str, PhaseModel], ...]:
        """The model of every system, by its name."""
        if self._model is None:
            return ()
        from desktop.data.phase_scaling_words import by_system

        return by_system(self._model)

    def _show(self, new: PhaseModelSnapshot | None = None) -> None:
        model = self._model
        if model is None:
            if new is not None and new.task is not None:
                text = "The runs are being read…"
            elif new is not None and new.problem:
                text = f"{capital(new.problem.removesuffix('.'))}."
            else:
                text = "These runs do not allow a model of the phases."
            self.words.setText(text)
            self.chart.set_content(Content(Axis(""), Axis(""), empty=text))
            self.table.show_frame(None, COLUMNS)
            return
        from desktop.data.phase_scaling_words import sentences, speed_lines, table, warnings

        models = self._models
        ps = (*sorted({p for _, m in models for p in m.data.p.tolist()}), float(self.p.value()))
        ps = tuple(dict.fromkeys(ps))
        notes = " ".join((
            *(f"{line}." for line in speed_lines(model)), *warnings(model, ps),
            f"{capital(self._matched)}.",
        ))  # fmt: skip
        self.words.setText(f"<b>{escape(' '.join(sentences(model)))}</b><br>{escape(notes)}")
        frame = table(model, ps)
        order = frame.sort_values("p", ascending=False, kind="stable").reset_index(drop=True)
        order.attrs.update(frame.attrs)
        self.table.show_frame(order, (_SYSTEM, *COLUMNS) if "system" in frame else COLUMNS)
        self._draw()

    def _draw(self) -> None:
        models = dict(self._models)
        if not models:
            return
        from desktop.data.phase_scaling_words import chart, sentences

        model = models.get(self.system.currentData() or "") or next(iter(models.values()))
        largest = max(4.0 * model.largest, float(self.p.value()))
        self.chart.set_content(chart(model, self.measure.currentData(), largest), " ".join(sentences(model)))
