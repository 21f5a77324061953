"""A report on an experiment: the answer, its tables and its charts, for HTML, PDF and slides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from desktop.core.effects import Effects
from desktop.core.units import capital, count, digits, with_unit
from desktop.data.answer import MeasuredResponse, SptAnswer
from desktop.data.chart import Content
from desktop.data.columns import cell_texts, table
from desktop.data.experiment import Experiment, Factor
from desktop.data.report import Paragraph, Picture, Points, Report, ReportTable, Section, Slide, today
from desktop.ui.experiment import charts
from desktop.workbench import effect_rows

#: Charts of a report and of ``spt figures``, by name.
CHARTS = ("half-normal", "pareto", "main-effects", "residuals", "interactions")


def drawings(
    analysis: Effects, measured: MeasuredResponse, names: Sequence[str] = CHARTS
) -> dict[str, Content]:
    """The charts of effects that can be drawn, by name; interactions of the largest pair."""
    of_response, unit = with_unit(measured.response, measured.unit), measured.effect_unit(analysis)
    pairs = sorted((e for e in analysis.effects if len(e.members) == 2), key=lambda e: -abs(e.value))
    draw = {
        "half-normal": lambda: charts.half_normal(analysis, analysis, False, unit, ""),
        "pareto": lambda: charts.pareto(analysis, analysis, False, unit, ""),
        "main-effects": lambda: charts.main_effects(analysis, analysis, of_response, ""),
        "residuals": lambda: charts.residuals(analysis, charts.RESIDUALS[0], of_response),
    }
    if pairs:
        a, b = (analysis.trials.factors[j] for j in pairs[0].members)
        draw["interactions"] = lambda: charts.interaction(analysis, a, b, of_response)
    drawn = {name: draw[name]() for name in names if name in draw}
    return {name: content for name, content in drawn.items() if content.shown}


def compose(title: str, analysis: Effects, answer: SptAnswer, measured: MeasuredResponse) -> Report:
    """The report: first the answer, then what it rests on."""
    response, unit = measured.response, measured.effect_unit(analysis)
    pictures = tuple(
        Picture(name, number, _FINDINGS[name], content)
        for number, (name, content) in enumerate(drawings(analysis, measured).items(), 1)
    )
    # The same objects: slides leave out of their appendix the tables that they have shown.
    ranks, effects = _ranks(analysis, unit, measured.factors), _effects(analysis, unit)
    blocks = [Paragraph(sentence) for sentence in answer.sentences]
    if answer.next:
        blocks.append(Paragraph(f"Next: {answer.next}."))
    scale = "" if analysis.transform == 1 else " (transformed)"
    notes = [
        f"Trial {s.label} gave {digits(s.value)}, expected {digits(s.expected)}{scale}."
        for s in analysis.suspects
    ]
    notes += [f"{capital(note)}." for note in analysis.notes]
    sections = [
        Section("The answer", tuple(blocks)),
        Section("Factors", (ranks,)),
        Section("Effects", (effects, *((Points(tuple(notes)),) if notes else ()), *pictures)),
        Section("Analysis of variance", (_anova(analysis),)),
    ]
    if measured.experiment is not None:
        sections.append(_described(measured.experiment))
    first = answer.sentences[0]
    story = [Slide(first, pictures[0])] if pictures else []
    story += [Slide("What every factor does", ranks)]
    story += [Slide(_FINDINGS[p.figure], p) for p in pictures[1:3]]
    if answer.next:
        story.append(Slide("Next", Points((f"{capital(answer.next)}.",))))
    subtitle = f"{count(len(analysis.trials.y), 'trial')}, response {response}"
    facts = (
        {
            "source": {"name": title},
            "response": response,
            "trials": len(analysis.trials.y),
            "answer": answer.text,
        },
    )
    return Report(title, subtitle, today(), tuple(sections), facts, first, tuple(story), True)


_FINDINGS = {
    "half-normal": "Effects that are noise lie on the line; those that stand out are labelled.",
    "pareto": "Effects by size, with the limit above which they are marked.",
    "main-effects": "Mean response without and with each delay.",
    "residuals": "What the effects leave unexplained, in the order of the trials.",
    "interactions": "The two factors with the largest interaction; parallel lines mean none.",
}


def _sheet(
    title: str, rows: effect_rows.Rows, titles: Sequence[str], left: int, note: str = ""
) -> ReportTable:
    """Columns of a table of the window, by their titles; so many at the `left` are words. Columns that are
    empty in all rows are left out."""
    columns, lines = rows
    selected = [next(c for c in columns if c.title == heading) for heading in titles]
    head, *body = cell_texts(table(columns, lines)[0], selected)
    kept = [k for k in range(len(head)) if not body or any(row[k] for row in body)]
    head, *body = ([row[k] for k in kept] for row in (head, *body))
    words = sum(k < left for k in kept)
    return ReportTable(title, tuple(head), tuple(map(tuple, body)), left=words, note=note)


def _ranks(analysis: Effects, unit: str, factors: Mapping[str, Factor]) -> ReportTable:
    titles = ("Factor", "Low means", "High means", "File", "Line", "Rank", "Effect", "±", "Share")
    return _sheet("Factors", effect_rows.rank(analysis, unit, factors), titles, 4)


def _effects(analysis: Effects, unit: str) -> ReportTable:
    titles = ("Term", "Aliased with", "Marked", "Effect", "SE", "t", "p")
    return _sheet("Effects", effect_rows.effects(analysis, unit), titles, 3, f"★ above {analysis.threshold}.")


def _anova(analysis: Effects) -> ReportTable:
    titles = ("Source", "Sum of squares", "df", "Mean square", "F", "p")
    return _sheet("Analysis of variance", effect_rows.anova(analysis), titles, 1)


def _described(experiment: Experiment) -> Section:
    design, plan = experiment.design(), experiment.plan
    lines = [
        f"{count(design.runs, 'treatment')}, {count(plan.replicates, 'replicate')}, seed {plan.seed}.",
        f"Built by: {' '.join(experiment.program.build) or 'nothing'}.",
        f"Run by: {' '.join(experiment.program.run)}.",
    ]
    return Section("How it was measured", (Points(tuple(lines)),))
