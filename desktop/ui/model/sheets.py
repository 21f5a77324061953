"""The sheets of a factor model (`desktop.workbench.model_results`) in the table of the program."""

from __future__ import annotations

from dataclasses import replace

from desktop.data.columns import Column, RowMarks
from desktop.ui.tables import FrameView
from desktop.workbench.model_results import ResultSheet

_NEW = "Of one new measurement"
#: Columns of each kind of sheet; those that a sheet lacks are left out.
COLUMNS: dict[str, tuple[Column, ...]] = {
    "measured": (
        Column("Line", "Line of the source", name="line"),
        Column("Code", name="code"),
        Column("System", name="system"),
        Column("p", "Active processors", name="p", whole=True),
        Column("t'", "As measured", name="t_prime"),
        Column("Time", "As measured", name="time"),
        Column("t'", "Time × p × peak rate / operations: an inverse efficiency", name="response"),
        Column("Fitted", name="fitted"),
        Column("Residual", "Measured less fitted; the logarithm of measured over fitted where logarithms are "
               "fitted", significant=3, name="residual"),
        Column("Error", "(measured − fitted) / measured", significant=3, name="error"),
        Column("Studentized", "Residual over the spread that the other points have; beyond ±3 is rare",
               significant=3, name="studentized"),
        Column("Left out because", name="reason"),
        Column("Note", name="note"),
    ),
    "parameters": (
        Column("Kind", "speed of a system, work of a code, or delta of a cell", name="kind"),
        Column("Of", name="of"),
        Column("Function", name="function"),
        Column("Value", name="value"),
        Column("Std. error", "Asymptotic: s² (J'J)⁻¹", significant=3, name="se"),
        Column("95 % from", name="low"),
        Column("to", name="high"),
        Column("Different from zero?", name="verdict"),
    ),
    "ranking": (
        Column("Functions", name="functions"),
        Column("SSE", "Sum of squared residuals", significant=6, name="sse"),
        Column("R²", "Against zero (uncentred), as the paper has it", significant=5, name="r2"),
        Column("R² centred", "Against the mean", significant=5, name="r2_centred"),
        Column("s", "Residual standard deviation", name="s"),
        Column("Parameters", name="parameters", whole=True),
        Column("AICc", "Smaller is better; parameters cost", significant=5, name="aicc"),
        Column("Mean error", significant=3, name="mean_error"),
        Column("Largest error", significant=3, name="max_error"),
        Column("Undetermined", "Parameters not different from zero", name="undetermined", whole=True),
        Column("Negative", name="negative", whole=True),
        Column("Points", name="points", whole=True),
        Column("Status", name="status"),
    ),
    "forms": (
        Column("Code", name="code"),
        Column("System", name="system"),
        Column("Time over p", "The form that predicts what is left out best", name="form"),
        Column("Error", "Of inner points, each predicted by a search without it", significant=3,
               name="form_error"),
        Column("Error of the fit", "Of the fit that is shown, without each point", significant=3,
               name="fit_error"),
        Column("p", name="p", whole=True),
        Column("Predicted", name="predicted"),
        Column("95 % from", _NEW, name="low"),
        Column("to", _NEW, name="high"),
    ),
    "predictions": (
        Column("Code", name="code"),
        Column("System", name="system"),
        Column("p", name="p", whole=True),
        Column("Predicted", name="predicted"),
        Column("95 % from", _NEW, name="low"),
        Column("to", _NEW, name="high"),
        Column("Measured", "Median of the measurements at this p", name="measured"),
        Column("Note", name="note"),
    ),
}  # fmt: skip


class SheetView(FrameView):
    """Shows sheets; keys are those of their rows."""

    def __init__(self, name: str) -> None:
        super().__init__(name, copies_one=True)

    def show_sheet(self, sheet: ResultSheet) -> None:
        """Another sheet; rows of the same keys stay selected."""
        if sheet.frame is None:
            self.show_frame(None, self.frames.columns)
            return
        units = sheet.frame.attrs["units"]
        columns = COLUMNS.get(sheet.kind) or [
            Column(name, significant=3) if k else Column("Parameter", name=name)
            for k, name in enumerate(sheet.frame.columns)
        ]
        tones = ((sheet.muted, "faint"), (sheet.strong, "strong"), (sheet.alarming, "error"))
        self.show_frame(
            sheet.frame,
            [
                replace(column, unit=units.get(column.source, ""), missing="")
                for column in columns
                if column.source in sheet.frame
            ],
            RowMarks({k: tone for rows, tone in tones for k in rows}),
        )

    def select(self, lines: frozenset[int]) -> None:
        """Select the rows of some keys, without telling anybody."""
        self.select_keys(lines)
