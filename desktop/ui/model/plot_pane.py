"""The plots of a model, one tab each; only the one in sight is drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QSizePolicy,
    QSpinBox,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from desktop.ui.model import contents
from desktop.ui.pages import divided, fill_layout, set_up, turn_to
from desktop.ui.plots.chart import Chart
from desktop.workbench.model_results import CELL_MEASURES, QUANTITIES
from desktop.workbench.modelling import ModelBench, ModelSnapshot


class PlotPane(QWidget):
    """The cell and p that are looked at, and what is drawn of them."""

    def __init__(self, bench: ModelBench) -> None:
        super().__init__()
        self._bench = bench
        self._showing = False
        self.code, self.system = QComboBox(), QComboBox()
        for box, name in ((self.code, "Code"), (self.system, "System")):
            box.setObjectName(f"look_{name.lower()}")
            box.setAccessibleName(name)
            box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
            box.setMinimumContentsLength(3)
            box.currentTextChanged.connect(box.setToolTip)
        self.code.currentTextChanged.connect(lambda text: self._look(code=text))
        self.system.currentTextChanged.connect(lambda text: self._look(system=text))
        self.p = set_up(QSpinBox(), objectName="look_p", accessibleName="Processors p", range=(1, 10_000_000))
        self.p.setStepType(QSpinBox.StepType.AdaptiveDecimalStepType)
        self.p.setKeyboardTracking(False)
        self.p.valueChanged.connect(lambda value: self._look(p=float(value)))
        row = fill_layout(QHBoxLayout(), margins=(8, 4, 8, 2))
        for title, widget, stretch in (
            ("&Code", self.code, 1), ("on s&ystem", self.system, 1), ("with &p =", self.p, 0),
        ):  # fmt: skip
            label = set_up(QLabel(title), buddy=widget)
            row.addWidget(label)
            row.addWidget(widget, stretch)

        self.scaling = Chart("Scaling")
        self.residuals = Chart("Residuals")
        self.quantiles = Chart("Quantile-quantile")
        self.cells = Chart("Cells")
        self.speeds, self.works = (
            Chart("Relative speeds of the systems"),
            Chart("Relative works of the codes"),
        )
        self.shares = Chart("Shares of the functions")
        self.quantity = self._box(
            "Show", {q: {"time": "Time", "t'": "t'", "efficiency": "Efficiency", "speed-up": "Speed-up"}[q]
                     for q in QUANTITIES}
        )  # fmt: skip
        self.several = self._box(
            "of",
            {"cell": "this cell", "code": "this code on all systems", "system": "all codes on this system"},
        )
        self.log = set_up(QCheckBox("Logarithmic"), checked=True, toggled=lambda _: self._draw())
        self.against = self._box(
            "Against", {"fitted": "fitted", "p": "p", "system": "system", "code": "code"}
        )
        self.measure = self._box("Colour", CELL_MEASURES)
        self.leave_out = QPushButton("Leave cells out")
        self.leave_out.setToolTip("Predict every cell from a fit to all others")
        self.leave_out.clicked.connect(self._leave_cells_out)
        both = divided(Qt.Orientation.Horizontal, (self.speeds, 0), (self.works, 0))

        self.tabs = set_up(QTabWidget(), documentMode=True)
        self._pages: list[tuple[str, Callable[[ModelSnapshot], None], tuple[Chart, ...]]] = []
        self._page("Scaling", self._draw_scaling, (self.scaling,), self.quantity, self.several, self.log)
        self._page("Residuals", self._draw_residuals, (self.residuals,), self.against)
        self._page("Quantile-quantile", self._draw_quantiles, (self.quantiles,))
        self._page("Cells", self._draw_cells, (self.cells,), self.measure, self.leave_out)
        self._page("Speeds and works", self._draw_relative, (self.speeds, self.works), holder=both)
        self._page("Shares", self._draw_shares, (self.shares,))
        self.tabs.currentChanged.connect(lambda _: self._draw())
        fill_layout(QVBoxLayout(self), row, (self.tabs, 1), margins=0, spacing=2)

        for chart in (self.scaling, self.residuals, self.quantiles):
            chart.clicked.connect(self._pick)
        self.cells.cellClicked.connect(self._look_at_cell)
        self.speeds.clicked.connect(lambda k, _: self._look_at_cell(None, k))
        self.works.clicked.connect(lambda k, _: self._look_at_cell(k, None))

    def show_snapshot(self, old: ModelSnapshot, new: ModelSnapshot) -> None:
        self._showing = True
        fit, cell = new.fit, new.cell
        for k, box in enumerate((self.code, self.system)):
            names = () if fit is None else (fit.data.codes, fit.data.systems)[k]
            if names and names != tuple(box.itemText(i) for i in range(box.count())):
                box.clear()
                box.addItems(names)
            if cell is not None:
                box.setCurrentIndex(cell[k])
            box.setEnabled(fit is not None)
        self.p.setValue(round(new.view.p))
        self.leave_out.setEnabled(fit is not None and fit.kind == "joint" and not new.checks)
        self._showing = False
        if any(
            getattr(new, name) is not getattr(old, name)
            for name in ("fit", "view", "checks", "previous", "selection")
        ):
            self._draw()

    def picture(self) -> QImage:
        """Of the plot in sight; of two the first, or the one that has the focus."""
        plots = self._pages[self.tabs.currentIndex()][2]
        chosen = next((plot for plot in plots if plot.hasFocus()), plots[0])
        return chosen.picture()

    def show_tab(self, title: str) -> None:
        turn_to(self.tabs, title)

    # ---- drawing

    def _draw(self) -> None:
        self._pages[self.tabs.currentIndex()][1](self._bench.snapshot)

    def _draw_scaling(self, shown: ModelSnapshot) -> None:
        self.scaling.set_content(
            *contents.scaling(
                shown, self.quantity.currentData(), self.several.currentData(), self.log.isChecked()
            )
        )

    def _draw_residuals(self, shown: ModelSnapshot) -> None:
        self.residuals.set_content(*contents.residuals(shown, self.against.currentData()))

    def _draw_quantiles(self, shown: ModelSnapshot) -> None:
        self.quantiles.set_content(*contents.quantiles(shown))

    def _draw_cells(self, shown: ModelSnapshot) -> None:
        self.cells.set_content(*contents.cells(shown, self.measure.currentData()))

    def _draw_relative(self, shown: ModelSnapshot) -> None:
        self.speeds.set_content(*contents.relative(shown, "speed"))
        self.works.set_content(*contents.relative(shown, "work"))

    def _draw_shares(self, shown: ModelSnapshot) -> None:
        self.shares.set_content(*contents.shares(shown))

    # ---- acting

    def _look(self, **changes: Any) -> None:
        if not self._showing:
            self._bench.look(**changes)

    def _pick(self, line: int, more: bool) -> None:
        lines = self._bench.snapshot.view.lines
        self._bench.pick(sorted(lines ^ {line}) if more else [line])

    def _look_at_cell(self, code: int | None, system: int | None) -> None:
        fit = self._bench.snapshot.fit
        if fit is None:
            return
        changes = {}
        if code is not None:
            changes["code"] = fit.data.codes[code]
        if system is not None:
            changes["system"] = fit.data.systems[system]
        self._bench.look(**changes)

    def _leave_cells_out(self) -> None:
        self.measure.setCurrentIndex(self.measure.findData("left out"))
        self._bench.leave_cells_out()

    # ---- building

    def _box(self, title: str, values: dict[Any, str]) -> QComboBox:
        box = set_up(QComboBox(), accessibleName=title)
        box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        # Wide enough for the longest, where there is room.
        box.setMinimumContentsLength(5)
        box.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        box.setMaximumWidth(box.fontMetrics().averageCharWidth() * (max(map(len, values.values())) + 8))
        for value, text in values.items():
            box.addItem(text, value)
        box.currentIndexChanged.connect(lambda _: self._draw())
        return box

    def _page(
        self,
        title: str,
        draw: Callable[[ModelSnapshot], None],
        plots: tuple[Chart, ...],
        *controls: QWidget,
        holder: QWidget | None = None,
    ) -> None:
        page = QWidget()
        layout = QVBoxLayout(page)
        layout.setContentsMargins(0, 2, 0, 0)
        layout.setSpacing(2)
        if controls:
            row = QHBoxLayout()
            row.setContentsMargins(8, 2, 8, 0)
            for control in controls:
                if isinstance(control, QComboBox):
                    label = set_up(QLabel(control.accessibleName()), buddy=control)
                    row.addWidget(label)
                row.addWidget(control, isinstance(control, QComboBox))
            row.addStretch(0)
            layout.addLayout(row)
        layout.addWidget(holder or plots[0], 1)
        self._pages.append((title, draw, plots))
        self.tabs.addTab(page, title)
