"""The sheets of a factor model (`desktop.workbench.model_results`) in the table of the program."""

from __future__ import annotations

from dataclasses import replace

from desktop.data.columns import RowMarks
from desktop.ui.tables import FrameView
from desktop.workbench.model_results import ResultSheet


class SheetView(FrameView):
    """Shows sheets; keys are those of their rows."""

    def __init__(self, name: str) -> None:
        super().__init__(name, copies_one=True)

    def show_sheet(self, sheet: ResultSheet) -> None:
        """Show another sheet; rows of the same keys stay selected."""
        if sheet.frame is None:
            self.show_frame(None, self.frames.columns)
            return
        tones = ((sheet.muted, "faint"), (sheet.strong, "strong"), (sheet.alarming, "error"))
        self.show_frame(
            sheet.frame,
            [replace(column, missing="") for column in sheet.columns],
            RowMarks({k: tone for rows, tone in tones for k in rows}),
        )
