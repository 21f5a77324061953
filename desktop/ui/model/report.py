"""A report on a factor model: how good it is, what it says of a cell, its parameters, its charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from desktop.core.factor_intervals import VERDICTS
from desktop.core.units import capital, count
from desktop.data.columns import shown_texts
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
    shown: ModelSnapshot, name: str, number: int = 1
) -> tuple[tuple[Section, ...], tuple[Slide, ...]]:
    """What is said of the model of a table called `name`, and what of it on slides; figures count from
    `number`. Nothing where nothing is fitted.
    """
    fit, cell = shown.fit, shown.cell
    if fit is None or cell is None or shown.selection is None:
        return (), ()
    of_cell = f"{fit.data.codes[cell[0]]} on {fit.data.systems[cell[1]]}"
    left_out = len(shown.selection.excluded)
    summary = results.summary(fit, shown.test, left_out, shown.choice)
    answers = answers_of(fit, *cell, shown.view.p)
    scaling, in_words = contents.scaling(shown, "time", "cell", True)
    pictures = [Picture("scaling", number, f"{in_words}.", scaling)]
    drawings = [contents.shares(shown)]
    if fit.kind == "joint":
        drawings += [contents.relative(shown, "speed"), contents.relative(shown, "work")]
    for key, (content, words) in zip(("shares", "speeds", "works"), drawings, strict=False):
        if not content.empty:
            pictures.append(Picture(key, number + len(pictures), f"{words}.", content))
    parameters, predictions = _parameters(shown), _predictions(shown)
    good: list[Block] = [Paragraph(" ".join(shown.headline)), Points(tuple(f"{line}." for line in summary))]
    good += [Points(notes)] if (notes := _notes(shown)) else []
    parts = (
        Section(f"Factor model of {name}", tuple(good)),
        Section(of_cell, (*(Paragraph(f"{one.question} {one.text}") for one in answers), pictures[0])),
        Section(f"On {shown.view.p:.0f} processors", (predictions, *pictures[1:2])),
        Section(results.PARAMETERS[fit.kind], (parameters, *pictures[2:])),
    )
    slides = (
        Slide(
            f"{of_cell} on {shown.view.p:.0f} processors: {answers[0].text.partition('; ')[0]}", pictures[0]
        ),
        Slide(shown.headline[0], parameters),
        *(Slide(answers[-1].text.partition(". ")[0] + ".", one) for one in pictures[1:2]),
    )
    return parts, slides


def compose(shown: ModelSnapshot, name: str, command: str = "") -> Report:
    """A report on nothing else. `command`: the command line that makes it again.

    Raises
    ------
    ValueError : nothing is fitted.
    """
    parts, slides = sections(shown, name)
    if not parts or shown.fit is None:
        raise ValueError("there is no model to report on: choose functions and rows that can be fitted")
    fit = shown.fit
    subtitle = f"{count(fit.n, 'run')}, {count(len(fit.data.codes), 'code')} on "
    subtitle += count(len(fit.data.systems), "system")
    facts = ({"source": {"name": name}, "functions": list(fit.functions), "kind": fit.kind, "runs": fit.n},)
    parts = (*parts, provenance(command))
    return Report(
        f"Factor model of {name}", subtitle, today(), parts, facts, shown.headline[0], slides, appendix=True
    )


def _parameters(shown: ModelSnapshot) -> ReportTable:
    assert shown.fit is not None
    reference = shown.fit.reference
    note = f"Relative to {reference}, whose parameters are 1." if reference else ""
    names = ("kind", "of", "function", "verdict", "value", "low", "high")
    sheet = results.parameter_sheet(shown.fit)
    return _table(results.PARAMETERS[shown.fit.kind], sheet, names, left=4, note=note)


def _predictions(shown: ModelSnapshot) -> ReportTable:
    assert shown.fit is not None
    names = ("code", "system", "note", "predicted", "low", "high", "measured")
    sheet, title = (
        results.prediction_sheet(shown.fit, shown.view.p),
        f"Every cell on {shown.view.p:.0f} processors",
    )
    table = _table(title, sheet, names, left=3, note="Of one new run, with 95 %.")
    more = len(table.rows) - _CELLS
    note = f"{table.note} {more} cells more are in the window." if more > 0 else table.note
    return replace(table, rows=table.rows[:_CELLS], note=note)


def _table(title: str, sheet: results.ResultSheet, names: Sequence[str], left: int, note: str) -> ReportTable:
    """Columns of a sheet as the window shows them; so many at the `left` are words."""
    assert sheet.frame is not None
    known = {column.name: column for column in sheet.columns}
    head, *body = shown_texts(sheet.frame, [known[name] for name in names])
    return ReportTable(title, tuple(head), tuple(map(tuple, body)), left=left, note=note)


def _notes(shown: ModelSnapshot) -> tuple[str, ...]:
    """What has to be known, and the rows that stand out."""
    notes = [f"{capital(text)}." for text in results.warnings(shown.fit, shown.selection)]
    odd = results.standing_out(shown.fit, shown.selection)
    if odd:
        notes.append(f"Rows that stand out, by their lines in the table. {odd}. {capital(VERDICTS)}.")
    return tuple(notes)
