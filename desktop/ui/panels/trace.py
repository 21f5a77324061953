"""What was opened: its facts, its clocks, and what the import found odd."""

from __future__ import annotations

from html import escape

from PySide6.QtCore import QSignalBlocker
from PySide6.QtWidgets import QLabel, QTextBrowser

from desktop.core.plain import JSON
from desktop.core.units import digits, grouped, quantity
from desktop.data.events import ImportReport
from desktop.ui.pages import choices, lay_out, row, set_up, titled
from desktop.ui.panels import Panel, PanelSpec
from desktop.workbench.workbench import Snapshot, TraceRun, Workbench

#: What is said of a repair, besides its numbers.
_REPAIRS = {
    "shift": " Each process is shifted by a constant.",
    "linear": " The clocks drift: each process gets a shift and a rate.",
    "impossible": " Neither shifts nor rates of the clocks repair that.",
}

#: severity -> what a reader calls it (one, many)
SEVERITY_NAMES = {
    "error": ("error", "errors"),
    "loss": ("loss", "losses"),
    "notice": ("notice", "notices"),
    "info": ("remark", "remarks"),
}


def summary(report: ImportReport) -> str:
    """How much of which severity: ``2 losses, 1 notice``; empty if there is nothing above a remark."""
    kinds = [finding.severity for finding in report]
    parts = [
        f"{kinds.count(severity)} {names[kinds.count(severity) != 1]}"
        for severity, names in SEVERITY_NAMES.items()
        if severity != "info" and severity in kinds
    ]
    return ", ".join(parts)


class TracePanel(Panel):
    """Facts and report as text that can be selected, and the switch for clocks."""

    def __init__(self, workbench: Workbench) -> None:
        super().__init__(workbench)
        self.clocks = choices({True: "with clocks repaired", False: "as recorded"}, objectName="clocks")
        self.clocks.activated.connect(lambda _: workbench.set_repaired(self.clocks.currentData()))
        label = titled("&Times", self.clocks)
        self._clocks_text = set_up(QLabel(), wordWrap=True)
        self.text = set_up(QTextBrowser(), objectName="trace_text")
        self.text.setAccessibleName("Facts about the trace and import report")
        self.text.setOpenLinks(False)
        lay_out(
            self, row(label, self.clocks, None), self._clocks_text, (self.text, 1), margins=(10, 8, 10, 8)
        )

    def show_snapshot(self, old: Snapshot, new: Snapshot) -> None:
        if new.document is old.document and new.run is old.run and new.project.rules == old.project.rules:
            return
        document, run = new.document, new.run
        clock = document.info.get("clock", {}) if document is not None else {}
        self._show_clocks(new, clock)
        if document is None or run is None:
            self.text.setHtml("<p>Open a trace to see its facts and what its import found.</p>")
            return
        self.text.setHtml(_facts(document.info, run) + _report(document.report))

    def _show_clocks(self, new: Snapshot, clock: JSON) -> None:
        rules = new.project.rules
        by_default = new.document is not None and new.document.repaired
        repaired = by_default if rules is None or rules.repaired is None else rules.repaired
        with QSignalBlocker(self.clocks):
            self.clocks.setCurrentIndex(self.clocks.findData(repaired))
        checked = int(clock.get("checked") or 0)
        self.clocks.setEnabled(new.run is not None and checked > 0)
        if new.run is None:
            self._clocks_text.setText("")
        elif not checked:
            self._clocks_text.setText("No messages between processors, so clocks cannot be compared.")
        else:
            before, after = int(clock["violations_before"]), int(clock["violations_after"])
            most = f", by {quantity(clock['most_before_s'], 's')} at most" if before else ""
            self._clocks_text.setText(
                f"Of {grouped(checked)} messages and collectives that were compared, {grouped(before)} "
                f"contradict the clocks as recorded{most}, {grouped(after)} with clocks repaired."
                + _REPAIRS.get(clock["repair"], "")
            )


def _facts(info: JSON, run: TraceRun) -> str:
    source, use, totals = info["source"], info["utilization"], info["totals"]
    processors, curve = float(use["processors"]), run.utilization.curve()
    rows = [
        ("Source", source["name"]),
        ("Size", quantity(float(source["size"]), "B", 3)),
        ("Format", f"{info['format']}, read by {info['importer']['name']} {info['importer']['version']}"),
        ("Duration", quantity(curve.duration, "s", 5)),
        ("Processors", f"{processors:g}"),
        ("Mean computing", f"{digits(curve.mean)} ({100 * curve.mean / processors:.1f} %)"),
        ("Steps of the curve", grouped(curve.segments)),
        ("Events", grouped(totals.get("events", 0))),
        (
            "Messages",
            f"{grouped(totals.get('messages_sent', 0))} sent, "
            f"{grouped(totals.get('messages_received', 0))} received",
        ),
        ("Collectives", grouped(totals.get("collectives", 0))),
    ]
    cells = "".join(
        f"<tr><td>{escape(name)}&nbsp;&nbsp;</td><td>{escape(str(value))}</td></tr>" for name, value in rows
    )
    return f"<table cellspacing='2'>{cells}</table>"


def _report(report: ImportReport) -> str:
    findings = list(report)
    if not findings:
        return "<h4>Import report</h4><p>No problems were found: all of the source was read.</p>"
    items = "".join(
        f"<p><b>{SEVERITY_NAMES[f.severity][0].capitalize()}, {grouped(f.count)}×</b> "
        f"{escape(f.text.rstrip('.'))}." + (f" First at {escape(f.where)}." if f.where else "") + "</p>"
        for f in findings
    )
    return f"<h4>Import report</h4>{items}"


PANEL = PanelSpec("trace", "Details", "right", TracePanel, "guide.md#details")
