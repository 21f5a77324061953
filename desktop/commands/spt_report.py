"""``phasewright spt report`` and ``spt figures``: an experiment as a report and as figures."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from desktop.commands.run_options import add_templates, template_of
from desktop.commands.terminal import Answer, Part, terminal_progress, without_display

if TYPE_CHECKING:
    from desktop.core.effects import Effects
    from desktop.data.answer import MeasuredResponse

FORMATS = ("svg", "png", "pdf")


def add_parts(part: Part) -> None:
    """Their arguments. `part` makes one of a name, a function and a text."""
    add = part("report", report, "the answer, tables and charts of an experiment: HTML, PDF or slides")
    add("table TABLE", "an experiment, or runs", type=Path)
    add("-o --output OUT", "ends in .html, .pdf or .pptx", type=Path, required=True)
    add("--title TITLE", default="")
    add_templates(add)
    add("--response NAME")

    add = part("figures", figures, "the charts of an experiment as files")
    add("table TABLE", "an experiment, or runs", type=Path)
    add("-o --output FOLDER", "is made", type=Path, required=True)
    add("--kind", "of the files; default svg", choices=FORMATS, default="svg")
    add("--plots P,P", "of half-normal, pareto, main-effects, residuals, interactions", default="")
    add("--data", "their values as CSV beside them")
    add("--response NAME")


def report(options: argparse.Namespace) -> Answer:
    """Write the report."""
    from desktop.data.report import Looks
    from desktop.ui.experiment.report import compose
    from desktop.ui.reporting import kind_of, write

    looks = Looks(user_file=template_of(options, kind_of(options.output)))
    effects, measured = _read(options)
    answer = measured.answer(effects)
    without_display()
    title = options.table.stem if measured.experiment is None else measured.experiment.name
    written = compose(options.title or title, effects, answer, measured)
    with terminal_progress() as progress:
        write(written, options.output, looks, progress)
    drawn = [p.figure for p in written.pictures]
    result = {"output": str(options.output), "title": written.title, "figures": drawn, "answer": answer.text}
    return result, [answer.text, f"the report is in {options.output}"]


def figures(options: argparse.Namespace) -> Answer:
    """Write each figure into a file with its name."""
    from desktop.ui.experiment.report import CHARTS, drawings
    from desktop.ui.exporting import export
    from desktop.ui.figures import Look

    names = [name.strip() for name in options.plots.split(",") if name.strip()] or list(CHARTS)
    unknown = next((name for name in names if name not in CHARTS), None)
    if unknown is not None:
        raise ValueError(f"there is no chart {unknown!r}, choose of {', '.join(CHARTS)}")
    effects, measured = _read(options)
    without_display()
    options.output.mkdir(parents=True, exist_ok=True)
    written: list[str] = []
    for name, content in drawings(effects, measured, names).items():
        path = options.output / f"{name}.{options.kind}"
        written += map(str, export("", content, Look(), path, kind=options.kind, data=options.data))
    return {"files": written}, [f"{len(written)} files are in {options.output}"]


def _read(options: argparse.Namespace) -> tuple[Effects, MeasuredResponse]:
    """The effects of an experiment or a table of runs, and what they are of."""
    from desktop.core.effects import analyse
    from desktop.data.answer import MeasuredResponse
    from desktop.data.experiment import experiment_of, to_trials
    from desktop.data.runs import read_runs

    experiment = experiment_of(options.table)
    if experiment is not None:
        effects = analyse(to_trials(experiment, options.response))
        return effects, MeasuredResponse.of(experiment, options.response)
    table = read_runs(options.table, response=options.response)
    return analyse(table.data), MeasuredResponse.of(table)
