"""Tables into files: CSV and spreadsheets, as pandas writes them, with no cell that is a formula."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from desktop.data.atomic import write_bytes
from desktop.printing import guarded

if TYPE_CHECKING:
    from pandas import DataFrame


def safe(frame: DataFrame) -> DataFrame:
    """A copy whose texts and headings no spreadsheet takes for a formula; what is infinite is empty."""
    import numpy as np

    made = frame.copy()
    made.attrs = {}
    for k, (_, column) in enumerate(frame.items()):
        if column.dtype.kind == "f":
            made.isetitem(k, column.where(np.isfinite(column)))
        elif column.dtype.kind not in "iub":
            made.isetitem(k, column.astype(object).map(lambda v: guarded(v) if isinstance(v, str) else v))
    made.columns = [guarded(str(name)) for name in frame.columns]
    return made


def as_csv_text(frame: DataFrame) -> str:
    """The text of a CSV file: headings, then rows; numbers in full, empty where they are not known."""
    text: str = safe(frame).to_csv(index=False, lineterminator="\n")
    return text


def write_frame(path: Path, frame: DataFrame) -> None:
    """Write a table as a spreadsheet where the name ends in .xlsx, else as CSV; whole or not at all.

    Raises
    ------
    OSError : the file cannot be written.
    """
    if path.suffix.lower() != ".xlsx":
        write_bytes(path, as_csv_text(frame).encode())
        return
    from io import BytesIO

    out = BytesIO()
    safe(frame).to_excel(out, index=False, engine="openpyxl")
    write_bytes(path, out.getvalue())
