"""A report on a factor model: how good it is, what it says of a cell, its parameters, its charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from desktop.core.factor_intervals import VERDICTS
from desktop.core.units import capital, count
from desktop.data.columns import cell_texts
from desktop.data.report import (
    Block,
    Paragraph,
    Picture,
    Points,
    Report,
    ReportTable,
    Section,
    Slide,
    provenance,
    today,
)
from desktop.ui.model import contents
from desktop.workbench import model_results as results
from desktop.workbench.model_answers import answers as answers_of
from desktop.workbench.modelling import ModelSnapshot

#: Cells of which a prediction is listed.
_CELLS = 64


def sections(
    snapshot: ModelSnapshot, name: str, number: int = 1
) -> tuple[tuple[Section, ...], tuple[Slide, ...]]:
    """Report sections and slides on the model of a table called `name`; figures count from `number`. Both are
    empty if nothing is fitted."""
    fit, cell, p = snapshot.fit, snapshot.cell, snapshot.view.p
    if fit is None or cell is None or snapshot.selection is None:
        return (), ()
    of_cell = f"{fit.data.codes[cell[0]]} on {fit.data.systems[cell[1]]}"
    excluded = len(snapshot.selection.excluded)
    summary = results.fit_summary(fit, excluded, snapshot.choice)
    answers = answers_of(fit, *cell, p)
    scaling, in_words = contents.scaling(snapshot, "time", "cell", True)
    pictures = [Picture("scaling", number, f"{in_words}.", scaling)]
    drawings = [contents.shares(snapshot)]
    if fit.kind == "joint":
        drawings += [contents.relative(snapshot, "speed"), contents.relative(snapshot, "work")]
    for key, (content, words) in zip(("shares", "speeds", "works"), drawings, strict=False):
        if not content.empty:
            pictures.append(Picture(key, number + len(pictures), f"{words}.", content))
    parameters, predictions = _parameters(snapshot), _predictions(snapshot)
    of_model: list[Block] = [Paragraph(" ".join(snapshot.headline)), Points(tuple(f"{s}." for s in summary))]
    of_model += [Points(notes)] if (notes := _notes(snapshot)) else []
    parts = (
        Section(f"Factor model of {name}", tuple(of_model)),
        Section(of_cell, (*(Paragraph(f"{one.question} {one.text}") for one in answers), pictures[0])),
        Section(f"On {p:.0f} processors", (predictions, *pictures[1:2])),
        Section(results.PARAMETERS[fit.kind], (parameters, *pictures[2:])),
    )
    slides = (
        Slide(f"{of_cell} on {p:.0f} processors: {answers[0].text.partition('; ')[0]}", pictures[0]),
        Slide(snapshot.headline[0], parameters),
        *(Slide(answers[-1].text.partition(". ")[0] + ".", one) for one in pictures[1:2]),
    )
    return parts, slides


def compose(snapshot: ModelSnapshot, name: str, command: str = "") -> Report:
    """A report on the model alone. `command`: the command line that makes it again.

    Raises
    ------
    ValueError : nothing is fitted.
    """
    parts, slides = sections(snapshot, name)
    if not parts or snapshot.fit is None:
        raise ValueError("there is no model to report on: choose functions and rows that can be fitted")
    fit = snapshot.fit
    subtitle = f"{count(fit.n, 'run')}, {count(len(fit.data.codes), 'code')} on "
    subtitle += count(len(fit.data.systems), "system")
    facts = ({"source": {"name": name}, "functions": list(fit.functions), "kind": fit.kind, "runs": fit.n},)
    parts = (*parts, provenance(command))
    title, headline = f"Factor model of {name}", snapshot.headline[0]
    return Report(title, subtitle, today(), parts, facts, headline, slides, appendix=True)


def _parameters(snapshot: ModelSnapshot) -> ReportTable:
    assert snapshot.fit is not None
    reference = snapshot.fit.reference
    note = f"Relative to {reference}, whose parameters are 1." if reference else ""
    names = ("kind", "of", "function", "verdict", "value", "low", "high")
    sheet = results.parameter_sheet(snapshot.fit)
    return _table(results.PARAMETERS[snapshot.fit.kind], sheet, names, left=4, note=note)


def _predictions(snapshot: ModelSnapshot) -> ReportTable:
    assert snapshot.fit is not None
    names = ("code", "system", "note", "predicted", "low", "high", "measured")
    sheet = results.prediction_sheet(snapshot.fit, snapshot.view.p)
    title = f"Every cell on {snapshot.view.p:.0f} processors"
    table = _table(title, sheet, names, left=3, note="Of one new run, with 95 %.")
    more = len(table.rows) - _CELLS
    note = f"{table.note} {more} cells more are in the window." if more > 0 else table.note
    return replace(table, rows=table.rows[:_CELLS], note=note)


def _table(title: str, sheet: results.ResultSheet, names: Sequence[str], left: int, note: str) -> ReportTable:
    """Columns of a sheet as the window shows them; so many at the `left` are words."""
    assert sheet.frame is not None
    by_name = {column.name: column for column in sheet.columns}
    head, *body = cell_texts(sheet.frame, [by_name[name] for name in names])
    return ReportTable(title, tuple(head), tuple(map(tuple, body)), left=left, note=note)


def _notes(snapshot: ModelSnapshot) -> tuple[str, ...]:
    """What has to be known, and the rows that stand out."""
    notes = [f"{capital(text)}." for text in results.warnings(snapshot.fit, snapshot.selection)]
    odd = results.standing_out(snapshot.fit, snapshot.selection)
    if odd:
        notes.append(f"Rows that stand out, by their lines in the table. {odd}. {capital(VERDICTS)}.")
    return tuple(notes)
