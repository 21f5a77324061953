"""The results of a model as tables and sentences, one tab each; only the one in sight is filled."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from PySide6.QtWidgets import QLabel, QTextBrowser, QWidget

from desktop.ui.model.sheets import SheetView
from desktop.ui.pages import button, lay_out, row, set_up, stacked, tabbed, turn_to
from desktop.workbench import model_results as results
from desktop.workbench.model_answers import answers
from desktop.workbench.model_results import EMPTY
from desktop.workbench.modelling import ModelBench, ModelSnapshot

_NO_RANKING = "Fits every one and every two of the seven functions, to compare them."

_FORMS = "A function of p for every cell by itself: c0 + c1 p^i log2(p)^j + c2 …, cross-validated."


class TablePane(QWidget):
    """Parameters, all pairs, correlations, predictions, and answers in words."""

    def __init__(self, bench: ModelBench) -> None:
        super().__init__()
        self._bench = bench
        self.parameters = SheetView("Parameters")
        self.ranking = SheetView("All pairs")
        self.correlations = SheetView("Correlations of parameters")
        self.forms = SheetView("Normal forms")
        self.predictions = SheetView("Predictions")
        self.answers = set_up(QTextBrowser(), objectName="answers", accessibleName="Answers")
        self.rank = button("Fit all pairs", bench.rank, name="rank")
        self.ranked = set_up(QLabel(_NO_RANKING), wordWrap=True)
        self.ranking.activatedKey.connect(self._take_pair)
        self.predictions.picked.connect(self._look_at)
        self.forms.picked.connect(self._look_at)
        self.search = button("Search normal forms", bench.search_forms, name="search")
        about = set_up(QLabel(_FORMS), wordWrap=True)
        searched = row(self.search, (about, 1), margins=(8, 4, 8, 0))
        forms = stacked(searched, (self.forms, 1), spacing=2)
        ranked = row(self.rank, (self.ranked, 1), margins=(8, 4, 8, 0))
        pairs = stacked(ranked, (self.ranking, 1), spacing=2)

        pages: dict[str, tuple[QWidget, Callable[[ModelSnapshot], None]]] = {
            "Parameters": (self.parameters, self._fill_parameters),
            "All pairs": (pairs, self._fill_ranking),
            "Normal forms": (forms, self._fill_forms),
            "Correlations": (self.correlations, self._fill_correlations),
            "Predictions": (self.predictions, self._fill_predictions),
            "Answers": (self.answers, self._fill_answers),
        }
        self.tabs = tabbed({title: widget for title, (widget, _) in pages.items()})
        self._fill = [fill for _, fill in pages.values()]
        self.tabs.currentChanged.connect(lambda _: self._refill())
        lay_out(self, self.tabs, margins=0)

    @property
    def sheets(self) -> tuple[SheetView, ...]:
        """All tables, in the order of their tabs."""
        return self.parameters, self.ranking, self.forms, self.correlations, self.predictions

    def show_tab(self, title: str) -> None:
        """Bring the table with this title to the front."""
        turn_to(self.tabs, title)

    def show_snapshot(self, old: ModelSnapshot, new: ModelSnapshot) -> None:
        self.rank.setEnabled(new.selection is not None and new.task is None)
        self.search.setEnabled(new.selection is not None and new.task is None)
        if (new.fit, new.ranking, new.forms, new.view) != (old.fit, old.ranking, old.forms, old.view):
            self._refill()

    def _refill(self) -> None:
        self._fill[self.tabs.currentIndex()](self._bench.snapshot)

    def _fill_parameters(self, snapshot: ModelSnapshot) -> None:
        self.parameters.show_sheet(EMPTY if snapshot.fit is None else results.parameter_sheet(snapshot.fit))

    def _fill_ranking(self, snapshot: ModelSnapshot) -> None:
        if snapshot.ranking is None:
            self.ranking.show_sheet(EMPTY)
            self.ranked.setText(_NO_RANKING)
            return
        self.ranking.show_sheet(results.ranking_sheet(snapshot.ranking))
        dropped = results.dropped_pairs(snapshot.ranking)
        hint = "Double-click a pair, or press Return, to use it."
        self.ranked.setText(f"{hint} Not listed: {dropped}." if dropped else hint)

    def _fill_forms(self, snapshot: ModelSnapshot) -> None:
        fit, forms = snapshot.fit, snapshot.forms
        if fit is None or forms is None:
            self.forms.show_sheet(EMPTY)
        else:
            self.forms.show_sheet(results.forms_sheet(fit, forms, snapshot.view.p))

    def _fill_correlations(self, snapshot: ModelSnapshot) -> None:
        if snapshot.fit is None or snapshot.cell is None or not snapshot.fit.parameters:
            self.correlations.show_sheet(EMPTY)
        else:
            self.correlations.show_sheet(results.correlation_sheet(snapshot.fit, *snapshot.cell))

    def _fill_predictions(self, snapshot: ModelSnapshot) -> None:
        fit = snapshot.fit
        self.predictions.show_sheet(EMPTY if fit is None else results.prediction_sheet(fit, snapshot.view.p))

    def _fill_answers(self, snapshot: ModelSnapshot) -> None:
        if snapshot.fit is None or snapshot.cell is None:
            self.answers.setHtml("")
            return
        place = self.answers.verticalScrollBar().value()
        parts = [
            f"<p><b>{escape(answer.question)}</b><br>{escape(answer.text)}</p>"
            for answer in answers(snapshot.fit, *snapshot.cell, snapshot.view.p)
        ]
        self.answers.setHtml("".join(parts))
        self.answers.verticalScrollBar().setValue(place)

    def _take_pair(self, key: int) -> None:
        ranking = self._bench.snapshot.ranking
        if ranking is not None and 0 <= key < len(ranking.fits):
            self._bench.set_functions(ranking.fits[key].functions)

    def _look_at(self, keys: tuple[int, ...]) -> None:
        fit = self._bench.snapshot.fit
        if fit is not None and len(keys) == 1:
            code, system = divmod(keys[0], len(fit.data.systems))
            self._bench.look(code=fit.data.codes[code], system=fit.data.systems[system])
