"""The plots of a model, one tab each; only the one in sight is drawn."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QCheckBox, QComboBox, QSizePolicy, QSpinBox, QTabWidget, QWidget

from desktop.data.chart import Content
from desktop.ui.model import contents
from desktop.ui.pages import (
    K,
    button,
    by_text,
    choices,
    divided,
    lay_out,
    refill,
    row,
    set_up,
    stacked,
    titled,
    turn_to,
)
from desktop.ui.plots.chart import Chart
from desktop.workbench.model_results import CELL_MEASURES, QUANTITIES
from desktop.workbench.modelling import ModelBench, ModelSnapshot

#: What a plot shows of a snapshot, and the same in words.
Draws = Callable[[ModelSnapshot], tuple[Content, str]]


class PlotPane(QWidget):
    """The cell and p that are looked at, and what is drawn of them."""

    def __init__(self, bench: ModelBench) -> None:
        super().__init__()
        self._bench = bench
        self._showing = False
        self.code, self.system = (
            choices({}, narrow=3, objectName=f"look_{name.lower()}", accessibleName=name)
            for name in ("Code", "System")
        )
        self.code.currentTextChanged.connect(lambda text: self._look(code=text))
        self.system.currentTextChanged.connect(lambda text: self._look(system=text))
        self.p = set_up(
            QSpinBox(), objectName="look_p", accessibleName="Processors p", range=(1, 10_000_000),
            stepType=QSpinBox.StepType.AdaptiveDecimalStepType, keyboardTracking=False,
            valueChanged=lambda value: self._look(p=float(value)),
        )  # fmt: skip
        cell = row(
            titled("&Code", self.code), (self.code, 1), titled("on s&ystem", self.system),
            (self.system, 1), titled("with &p =", self.p), self.p, margins=(8, 4, 8, 2),
        )  # fmt: skip

        self.scaling, self.residuals, self.quantiles, self.cells = map(
            Chart, ("Scaling", "Residuals", "Quantile-quantile", "Cells")
        )
        self.speeds = Chart("Relative speeds of the systems")
        self.works = Chart("Relative works of the codes")
        self.shares = Chart("Shares of the functions")
        self.quantity = self._box(
            "Show", {q: {"time": "Time", "t'": "t'", "efficiency": "Efficiency", "speed-up": "Speed-up"}[q]
                     for q in QUANTITIES}
        )  # fmt: skip
        cells = {
            "cell": "this cell",
            "code": "this code on all systems",
            "system": "all codes on this system",
        }
        self.several = self._box("of", cells)
        self.log = set_up(QCheckBox("Logarithmic"), checked=True, toggled=lambda _: self._draw())
        self.against = self._box("Against", by_text(("fitted", "p", "system", "code")))
        self.measure = self._box("Colour", CELL_MEASURES)
        self.leave_out = button(
            "Leave cells out", self._leave_cells_out, "Predict every cell from a fit to all others"
        )
        both = divided(Qt.Orientation.Horizontal, (self.speeds, 0), (self.works, 0))

        self.tabs = set_up(QTabWidget(), documentMode=True)
        self._pages: list[dict[Chart, Draws]] = []
        controls = self.quantity, self.several, self.log
        self._page("Scaling", {self.scaling: lambda snapshot: contents.scaling(
            snapshot, self.quantity.currentData(), self.several.currentData(), self.log.isChecked()
        )}, *controls)  # fmt: skip
        of_residuals = lambda snapshot: contents.residuals(snapshot, self.against.currentData())  # noqa: E731 - handed on
        self._page("Residuals", {self.residuals: of_residuals}, self.against)
        self._page("Quantile-quantile", {self.quantiles: contents.quantiles})
        of_cells = lambda snapshot: contents.cells(snapshot, self.measure.currentData())  # noqa: E731 - handed on
        self._page("Cells", {self.cells: of_cells}, self.measure, self.leave_out)
        relative = {
            self.speeds: lambda snapshot: contents.relative(snapshot, "speed"),
            self.works: lambda snapshot: contents.relative(snapshot, "work"),
        }
        self._page("Speeds and works", relative, holder=both)
        self._page("Shares", {self.shares: contents.shares})
        self.tabs.currentChanged.connect(lambda _: self._draw())
        lay_out(self, cell, (self.tabs, 1), margins=0, spacing=2)

        for chart in (self.scaling, self.residuals, self.quantiles):
            chart.clicked.connect(self._pick)
        self.cells.cellClicked.connect(self._look_at_cell)
        self.speeds.clicked.connect(lambda k, _: self._look_at_cell(None, k))
        self.works.clicked.connect(lambda k, _: self._look_at_cell(k, None))

    def show_snapshot(self, old: ModelSnapshot, new: ModelSnapshot) -> None:
        self._showing = True
        fit, cell = new.fit, new.cell
        for k, box in enumerate((self.code, self.system)):
            if fit is not None:
                refill(box, by_text((fit.data.codes, fit.data.systems)[k]))
            if cell is not None:
                box.setCurrentIndex(cell[k])
            box.setToolTip(box.currentText())
            box.setEnabled(fit is not None)
        self.p.setValue(round(new.view.p))
        self.leave_out.setEnabled(fit is not None and fit.kind == "joint" and not new.checks)
        self._showing = False
        drawn = ("fit", "view", "checks", "previous", "selection")
        if any(getattr(new, name) is not getattr(old, name) for name in drawn):
            self._draw()

    def picture(self) -> QImage:
        """A picture of the plot in sight; of two the first, or the one that has the focus."""
        plots = list(self._pages[self.tabs.currentIndex()])
        return next((plot for plot in plots if plot.hasFocus()), plots[0]).picture()

    def show_tab(self, title: str) -> None:
        """Bring the plot with this title to the front."""
        turn_to(self.tabs, title)

    # ---- drawing

    def _draw(self) -> None:
        for plot, drawn in self._pages[self.tabs.currentIndex()].items():
            plot.set_content(*drawn(self._bench.snapshot))

    # ---- acting

    def _look(self, **changes: object) -> None:
        if not self._showing:
            self._bench.look(**changes)

    def _pick(self, line: int, more: bool) -> None:
        lines = self._bench.snapshot.view.lines
        self._bench.pick(sorted(lines ^ {line}) if more else [line])

    def _look_at_cell(self, code: int | None, system: int | None) -> None:
        fit = self._bench.snapshot.fit
        if fit is not None:
            changes = {} if code is None else {"code": fit.data.codes[code]}
            self._bench.look(**changes | ({} if system is None else {"system": fit.data.systems[system]}))

    def _leave_cells_out(self) -> None:
        self.measure.setCurrentIndex(self.measure.findData("left out"))
        self._bench.leave_cells_out()

    # ---- building

    def _box(self, title: str, values: dict[K, str]) -> QComboBox:
        # Wide enough for the longest, where there is room.
        wide = self.fontMetrics().averageCharWidth() * (max(map(len, values.values())) + 8)
        policy = QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed
        return choices(
            values, narrow=5, accessibleName=title, sizePolicy=policy, maximumWidth=wide,
            currentIndexChanged=lambda _: self._draw(),
        )  # fmt: skip

    def _page(
        self, title: str, plots: dict[Chart, Draws], *controls: QWidget, holder: QWidget | None = None
    ) -> None:
        """A tab of plots with what each draws, below controls; `holder`: what several plots stand in."""
        above = row(margins=(8, 2, 8, 0) if controls else 0)
        for control in controls:
            if isinstance(control, QComboBox):
                above.addWidget(titled(control.accessibleName(), control))
            above.addWidget(control, isinstance(control, QComboBox))
        above.addStretch(0)
        self._pages.append(plots)
        drawn = holder or next(iter(plots))
        self.tabs.addTab(stacked(above, (drawn, 1), margins=(0, 2, 0, 0), spacing=2), title)
