"""The run sheet on paper: a document to print, or a PDF where there is no printer."""

from __future__ import annotations

from html import escape
from pathlib import Path

from PySide6.QtCore import QBuffer, QIODevice, QMarginsF
from PySide6.QtGui import QPageLayout, QPageSize, QPdfWriter, QTextDocument

from desktop.data.atomic import write_bytes
from desktop.data.experiment import Experiment
from desktop.ui.pages import set_up

_MARGIN_MM = 15


def sheet_html(experiment: Experiment) -> str:
    """Title, factors, and the trials in their order with room for the responses."""
    design, sheet = experiment.design(), experiment.sheet()
    array = experiment.plan.kind == "orthogonal-array"
    responses = [f"{r.name}{f' [{r.unit}]' if r.unit else ''}" for r in experiment.responses]
    heads = ["Order", "Replicate", "Treatment", *experiment.names, *responses, "Note"]
    lines = []
    for k, (replicate, treatment) in enumerate(zip(sheet.replicate, sheet.treatment, strict=True), 1):
        levels = [str(v) if array else "+" if v > 0 else "−" for v in design.levels[treatment]]
        cells = [str(k), str(replicate + 1), str(treatment + 1), *levels, *("" for _ in responses), ""]
        lines.append("<tr>" + "".join(f"<td align='center'>{escape(c)}</td>" for c in cells) + "</tr>")
    factors = "".join(
        f"<tr><td><b>{escape(f.name)}</b></td><td>{escape(f.file)}{f':{f.line}' if f.line else ''}</td>"
        f"<td>{escape(f.routine)}</td><td>{escape(f.construct)}</td>"
        f"<td>{escape(' '.join((*f.high.flags, *f.high.arguments)))}</td></tr>"
        for f in experiment.factors
    )
    return (
        f"<h2>{escape(experiment.title or experiment.folder.name)}: run sheet</h2>"
        f"<p>{design.runs} treatments, {experiment.plan.replicates} replicates, random order from seed "
        f"{', then '.join(map(str, sheet.seeds))}. Run one trial at a time, in this order, and nothing else "
        "meanwhile.</p>"
        f"<table border='1' cellspacing='0' cellpadding='2' style='font-size: 8pt'>{factors}</table><br>"
        "<table border='1' cellspacing='0' cellpadding='2' style='font-size: 8pt'><thead><tr>"
        + "".join(f"<th>{escape(h)}</th>" for h in heads)
        + f"</tr></thead>{''.join(lines)}</table>"
    )


def write_pdf(experiment: Experiment, path: Path) -> None:
    """The run sheet on pages of A4.

    Raises
    ------
    OSError : the file cannot be written.
    """
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = set_up(QPdfWriter(buffer), pageSize=QPageSize(QPageSize.PageSizeId.A4))
    margins = QMarginsF(_MARGIN_MM, _MARGIN_MM, _MARGIN_MM, _MARGIN_MM)
    writer.setPageMargins(margins, QPageLayout.Unit.Millimeter)
    writer.setTitle(experiment.title)
    document = set_up(QTextDocument(), html=sheet_html(experiment))
    document.print_(writer)
    write_bytes(path, bytes(buffer.data().data()))
