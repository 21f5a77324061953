"""The factor model of run times beside the trace, to which the run that is shown can be added."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QComboBox, QPushButton, QSizePolicy, QWidget

from desktop.core.units import capital
from desktop.ui.elided import Elided
from desktop.ui.pages import by_text, choices, labelled, refill, set_up, stacked
from desktop.ui.panels import PanelSpec
from desktop.ui.plots.chart import Chart
from desktop.ui.side_panel import SidePanel
from desktop.workbench.modelling import ModelBench
from desktop.workbench.side import ModelSide, ModelSideSnapshot
from desktop.workbench.workbench import Snapshot, Workbench


class ModelPanel(SidePanel[ModelSideSnapshot, ModelBench]):
    """Works, speeds and measurements, and a cell over p; rows of the shown run are marked."""

    _side: ModelSide

    def __init__(self, workbench: Workbench) -> None:
        super().__init__(workbench, "Table of run times")
        self.add.setText("&Open table…")
        self.numbers = self._combo("Table", lambda _: self._turn(), "Works and speeds", "Measurements")
        self.code = self._combo("Code of the chart", lambda _: self._look())
        self.system = self._combo("System of the chart", lambda _: self._look())
        self.tool(self.numbers, self.code, self.system, self.page)
        self.as_code = self._name("Code of this run")
        self.on_system = self._name("System of this run")
        self.phases = set_up(
            QCheckBox("and its p&hases"), toggled=lambda _: self._can_add(),
            toolTip="Each phase as a code of its own, with its duration",
        )  # fmt: skip
        self.add_run = self._button("A&dd this run", self.add_this_run)
        self._suggested = ("", "")
        named = [labelled(*one) for one in (("This run as", self.as_code), ("on", self.on_system))]
        for widget in named:
            widget.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.this_run = (*named, self.phases, self.add_run)
        for widget in self.this_run:
            self.flow.addWidget(widget)

    def _name(self, name: str) -> QComboBox:
        """A name to be written, or one of those known."""
        fixed = QSizePolicy.Policy.Fixed
        return choices(
            {}, narrow=12, editable=True, accessibleName=name, toolTip=name, sizePolicy=(fixed, fixed),
            insertPolicy=QComboBox.InsertPolicy.NoInsert, editTextChanged=lambda _: self._can_add(),
        )  # fmt: skip

    # ---- showing

    def make_content(self) -> QWidget:
        from desktop.ui.model.sheets import SheetView

        self.parameters = SheetView("Works and speeds")
        self.measured = set_up(SheetView("Measurements"), picked=lambda lines: self._pick(list(lines)))
        self.scaling = set_up(Chart("Scaling"), clicked=lambda line, _: self._pick([line]))
        self.beside((self.parameters, self.measured), self.scaling)
        self.note = set_up(Elided(), textFormat=Qt.TextFormat.PlainText)
        return stacked((self._split, 1), self.note, spacing=4)

    def why_empty(self, snapshot: ModelSideSnapshot) -> tuple[str, tuple[QPushButton, ...]]:
        model = snapshot.content
        if not snapshot.names:
            why = "The project holds no table of run times. Open one"
            if self._workbench.snapshot.run is None:
                return f"{why}.", (self.add,)
            return f"{why}, or start one with this run: the button above.", (self.add,)
        if model is None or (model.task is not None and model.project.table is None):
            return "The table is being read.", ()
        if model.project.table is None:
            name = snapshot.names[snapshot.index]
            if model.unassigned is not None:
                return f"The columns of {name} must be assigned: open its page.", (self.page_of,)
            return self.unreadable(name, model.problem)
        return "", ()

    def _show(self, old: ModelSideSnapshot, new: ModelSideSnapshot) -> None:
        super()._show(old, new)
        self._suggest()

    def show_results(self, old: ModelSideSnapshot, new: ModelSideSnapshot) -> None:
        from desktop.ui.model import contents
        from desktop.workbench import model_results as results

        model, last = new.content, old.content
        assert model is not None
        if last is None or model.fit is not last.fit:
            empty = results.EMPTY
            self.parameters.show_sheet(empty if model.fit is None else results.parameter_sheet(model.fit))
        if last is None or model.sheet is not last.sheet or new.rows != old.rows:
            sheet = model.sheet or results.EMPTY
            mine = np.isin(sheet.keys, [row.line for row in new.rows])
            self.measured.show_sheet(replace(sheet, strong=frozenset(np.flatnonzero(mine).tolist())))
        if last is None or model.view.lines != last.view.lines or model.sheet is not last.sheet:
            self.measured.select_keys(model.view.lines)
        names_of = ((), ()) if model.fit is None else (model.fit.data.codes, model.fit.data.systems)
        for k, (box, names) in enumerate(zip((self.code, self.system), names_of, strict=True)):
            refill(box, by_text(names))
            if model.cell is not None:
                box.setCurrentIndex(model.cell[k])
            box.setEnabled(bool(names))
        drawn = ("fit", "view", "previous", "selection")
        if new.rows != old.rows or any(getattr(model, f) is not getattr(last, f, None) for f in drawn):
            own_lines = frozenset(row.line for row in new.rows)
            self.scaling.set_content(*contents.scaling(model, "time", "cell", True, own_lines))
        notes = [model.problem] if model.problem else []
        notes += [*model.headline, *results.warnings(model.fit, model.selection)]
        self.note.setText(" ".join(f"{capital(text.rstrip('.'))}." for text in notes))
        self.note.setVisible(bool(notes))

    def show_snapshot(self, old: Snapshot, new: Snapshot) -> None:
        super().show_snapshot(old, new)
        if new.run is not old.run or new.fit is not old.fit:
            if (new.run is None) != (old.run is None):
                self._show(self._side.snapshot, self._side.snapshot)
            self._suggest()

    def _turn(self) -> None:
        self.tables.setCurrentIndex(self.numbers.currentIndex())

    # ---- this run

    def _suggest(self) -> None:
        """Propose names for the run, unless the user has written others; offer those of the table."""
        side = self._side
        has_run = self._workbench.snapshot.run is not None
        for widget in self.this_run:
            widget.setVisible(has_run)
        if not has_run:
            return
        model = side.snapshot.content
        data = None if model is None or model.selection is None else model.selection.data
        suggested = side.names_of_run()
        for box, name, old_name, names in (
            (self.as_code, suggested[0], self._suggested[0], () if data is None else data.codes),
            (self.on_system, suggested[1], self._suggested[1], () if data is None else data.systems),
        ):
            text = box.currentText()
            refill(box, by_text(names[:100]))
            box.setEditText(name if text in ("", old_name) else text)
            line = box.lineEdit()
            if line is not None and not line.hasFocus():
                line.setCursorPosition(0)
        self._suggested = suggested
        self._can_add()

    def _can_add(self) -> None:
        """Whether there is anything to be added that the table does not have."""
        side = self._side
        code, system = self.as_code.currentText(), self.on_system.currentText()
        rows = side.rows_of_run(code, system, phases=self.phases.isChecked())
        model = side.snapshot.content
        table = None if model is None else model.project.table
        times = table is None or not table.transformed
        self.add_run.setEnabled(bool(rows) and times)
        if not times:
            tip = "The table holds t' and a trace gives a time: choose or open a table of times"
        elif rows:
            tip = f"{rows[0].time:.6g} s on {rows[0].p:g} processors"
        elif code.strip() and system.strip():
            tip = "The table has this run already"
        else:
            tip = "Name the code and the system on which it ran"
        self.add_run.setToolTip(tip)

    def add_this_run(self) -> None:
        """Add the run that is shown, as it is named here."""
        names = self.as_code.currentText(), self.on_system.currentText()
        self._side.add_run(*names, phases=self.phases.isChecked())

    # ---- acting

    def _look(self) -> None:
        if self._side.bench is not None:
            self._side.bench.look(code=self.code.currentText(), system=self.system.currentText())

    def _pick(self, lines: list[int]) -> None:
        if self._side.bench is not None:
            self._side.bench.pick(sorted(lines))


PANEL = PanelSpec("model", "Factor model", "bottom", ModelPanel, "factor-model.md#the-model-beside-the-trace")
