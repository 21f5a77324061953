"""A report on an experiment: the answer, its tables and its charts, for HTML, PDF and slides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from desktop.core.effects import Effects
from desktop.core.units import count, digits
from desktop.data.answer import SptAnswer
from desktop.data.chart import Content
from desktop.data.columns import shown_texts, table
from desktop.data.experiment import Experiment, Factor
from desktop.data.report import Paragraph, Picture, Points, Report, ReportTable, Section, Slide, today
from desktop.ui.experiment import charts
from desktop.workbench import effect_rows

#: Charts of a report and of ``spt figures``, by name.
CHARTS = ("half-normal", "pareto", "main-effects", "residuals", "interactions")


def drawings(found: Effects, response: str, unit: str, names: Sequence[str] = CHARTS) -> dict[str, Content]:
    """The charts of effects that can be drawn, by name; interactions of the largest pair."""
    of_response = f"{response} [{unit}]" if unit else response
    pairs = sorted((e for e in found.effects if len(e.members) == 2), key=lambda e: -abs(e.value))
    made = {
        "half-normal": lambda: charts.half_normal(found, found, False, unit, ""),
        "pareto": lambda: charts.pareto(found, found, False, unit, ""),
        "main-effects": lambda: charts.main_effects(found, found, of_response, ""),
        "residuals": lambda: charts.residuals(found, charts.RESIDUALS[0], of_response),
    }
    if pairs:
        a, b = (found.trials.factors[j] for j in pairs[0].members)
        made["interactions"] = lambda: charts.interaction(found, a, b, of_response)
    drawn = {name: made[name]() for name in names if name in made}
    return {name: content for name, content in drawn.items() if content.shown}


def compose(
    title: str,
    found: Effects,
    answer: SptAnswer,
    response: str,
    unit: str,
    factors: Mapping[str, Factor] | None = None,
    experiment: Experiment | None = None,
) -> Report:
    """The report: first the answer, then what it rests on."""
    factors = factors or {}
    pictures = tuple(
        Picture(name, number, _FINDINGS[name], content)
        for number, (name, content) in enumerate(drawings(found, response, unit).items(), 1)
    )
    # One and the same, as slides leave out of their appendix what they have shown.
    ranks, effects = _ranks(found, unit, factors), _effects(found, unit)
    blocks = [Paragraph(sentence) for sentence in answer.sentences]
    if answer.next:
        blocks.append(Paragraph(f"Next: {answer.next}."))
    notes = [
        f"Trial {s.label} gave {digits(s.value)}, expected {digits(s.expected)}." for s in found.suspects
    ]
    notes += [f"{note[:1].upper()}{note[1:]}." for note in found.notes]
    sections = [
        Section("The answer", tuple(blocks)),
        Section("Factors", (ranks,)),
        Section("Effects", (effects, *((Points(tuple(notes)),) if notes else ()), *pictures)),
        Section("Analysis of variance", (_anova(found),)),
    ]
    if experiment is not None:
        sections.append(_described(experiment))
    first = answer.sentences[0]
    story = [Slide(first, pictures[0])] if pictures else []
    story += [Slide("What every factor does", ranks)]
    story += [Slide(_FINDINGS[p.figure], p) for p in pictures[1:3]]
    if answer.next:
        story.append(Slide("Next", Points((f"{answer.next[:1].upper()}{answer.next[1:]}.",))))
    subtitle = f"{count(len(found.trials.y), 'trial')}, response {response}"
    facts = (
        {
            "source": {"name": title},
            "response": response,
            "trials": len(found.trials.y),
            "answer": answer.text,
        },
    )
    return Report(title, subtitle, today(), tuple(sections), facts, first, tuple(story), True)


_FINDINGS = {
    "half-normal": "Effects that are noise lie on the line; those that stand out bear their names.",
    "pareto": "Effects by size, with the limit above which they are marked.",
    "main-effects": "Mean response without and with each delay.",
    "residuals": "What the effects leave unexplained, in the order of the trials.",
    "interactions": "The two factors that depend on each other most; parallel lines do not.",
}


def _sheet(
    title: str, rows: effect_rows.Rows, titles: Sequence[str], left: int, note: str = ""
) -> ReportTable:
    """Columns of a table of the window, by their titles; so many at the `left` are words."""
    columns, lines = rows
    kept = [next(c for c in columns if c.title == wanted) for wanted in titles]
    head, *body = shown_texts(table(columns, lines)[0], kept)
    return ReportTable(title, tuple(head), tuple(map(tuple, body)), left=left, note=note)


def _ranks(found: Effects, unit: str, factors: Mapping[str, Factor]) -> ReportTable:
    titles = ("Factor", "Low means", "High means", "File", "Line", "Rank", "Effect", "±", "Share")
    return _sheet("Factors", effect_rows.rank(found, unit, factors), titles, 4)


def _effects(found: Effects, unit: str) -> ReportTable:
    titles = ("Term", "Not told apart from", "Marked", "Effect", "SE", "t", "p")
    return _sheet("Effects", effect_rows.effects(found, unit), titles, 3, f"★ above {found.threshold}.")


def _anova(found: Effects) -> ReportTable:
    titles = ("Source", "Sum of squares", "df", "Mean square", "F", "p")
    return _sheet("Analysis of variance", effect_rows.anova(found), titles, 1)


def _described(experiment: Experiment) -> Section:
    design, plan = experiment.design(), experiment.plan
    lines = [
        f"{count(design.runs, 'treatment')}, {count(plan.replicates, 'replicate')}, seed {plan.seed}.",
        f"Built by: {' '.join(experiment.program.build) or 'nothing'}.",
        f"Run by: {' '.join(experiment.program.run)}.",
    ]
    return Section("How it was measured", (Points(tuple(lines)),))
