"""What changed at each breakpoint: regions, ranks, messages that differ most between neighbouring phases."""

from __future__ import annotations

from html import escape

from PySide6.QtWidgets import QTextBrowser

from desktop.core.units import quantity
from desktop.printing import printable
from desktop.ui.pages import lay_out, set_up
from desktop.ui.panels import Panel, PanelSpec, why_empty
from desktop.workbench.workbench import Snapshot, Workbench


class ChangesPanel(Panel):
    """Sentences, most different first; a click on a breakpoint selects the phase that ends there."""

    def __init__(self, workbench: Workbench) -> None:
        super().__init__(workbench)
        self.text = set_up(QTextBrowser(), accessibleName="What changed at each breakpoint", openLinks=False)
        self.text.anchorClicked.connect(lambda url: workbench.select_phase(int(url.toString())))
        lay_out(self, self.text, margins=6)

    def show_snapshot(self, old: Snapshot, new: Snapshot) -> None:
        phase, old_phase = new.project.view.phase, old.project.view.phase
        names = new.project.names
        unchanged = new.statistics is old.statistics and why_empty(new) == why_empty(old)
        if unchanged and phase == old_phase and names == old.project.names:
            return
        statistics = new.statistics
        if not statistics.changes:
            text = why_empty(new)
            if new.run is not None and len(new.rows) == 1:
                text = "One phase has no inner breakpoint: choose two phases or more."
            self.text.setHtml(f"<p>{(statistics.problem and escape(statistics.problem)) or text}</p>")
            return
        ends = {scope.phase: scope.end_s for scope in statistics.scopes if scope.phase >= 0}
        # The breakpoint of the selected phase first.
        order = sorted(statistics.changes, key=lambda k: (k != phase, k))
        parts = []
        for k in order:
            head = f"Breakpoint {k + 1} at {quantity(ends[k], 's', 6)}, phase {k + 1} to {k + 2}"
            items = "".join(
                f"<li>{escape(printable(change.called(names)))}</li>" for change in statistics.changes[k]
            )
            items = items or "<li>Nothing differs by more than what also differs within the phases.</li>"
            parts.append(f"<h4><a href='{k}'>{escape(head)}</a></h4><ol>{items}</ol>")
        self.text.setHtml("".join(parts))


PANEL = PanelSpec(
    "changes", "What changed", "bottom", ChangesPanel, "statistics.md#what-changed-at-a-breakpoint",
    frozenset({"ranges", "changes"}),
)  # fmt: skip
