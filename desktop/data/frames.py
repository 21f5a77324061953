"""Reads tables from files and the clipboard, and writes them to files, with pandas.

What is read may come from anyone: its size is bounded before anything is built of it. What is written
contains no cell that a spreadsheet takes for a formula.
"""

from __future__ import annotations

import csv
import io
import re
import zipfile
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from desktop.core.units import grouped
from desktop.data.atomic import write_bytes
from desktop.data.reading import plain
from desktop.errors import TableError, explained, reason
from desktop.printing import guarded, unguarded

if TYPE_CHECKING:
    from pandas import DataFrame

#: Most bytes of a file, rows, columns, cells, letters of a cell, so that a wrong file gives a clear error.
LARGEST, ROWS, COLUMNS, CELLS, CELL = 64 << 20, 1_000_000, 16_384, 32_000_000, 1 << 17
#: Most rows below the headings that spreadsheets hold.
SHEET_ROWS = (1 << 20) - 1
_DECIMAL_COMMA = r"^([+-]?\d+),(\d+(?:[eE][+-]?\d+)?)$"
_WORDS = re.compile(r"[^ \t]+")
_EXCEL = b"PK\x03\x04"


# ---- reading


def read_bytes(path: Path) -> bytes:
    """The bytes of a table; raises TableError if it is too large or cannot be read."""
    with explained(TableError, file=path):
        size = path.stat().st_size
        if size > LARGEST:
            raise TableError(
                f"has {size} bytes, tables of up to {LARGEST >> 20} MB are read",
                file=path,
                hint="choose a table of measurements or trials",
            )
        return plain(path).read_bytes()


def decoded(data: bytes, path: Path) -> str:
    """The text of a table in any usual encoding; raises TableError if it is not text."""
    for encoding in ("utf-8-sig", "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8", "cp1252"):
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\0" not in text:
            return text
    raise TableError("is no text", file=path, hint="name a table: CSV, TSV, .xlsx, or an NPB listing")


def is_workbook(data: bytes) -> bool:
    """Whether a file starts like spreadsheets (and other archives)."""
    return data.startswith(_EXCEL)


def _is_data(line: str) -> bool:
    return bool(line.strip()) and not line.startswith("#")


def _separator(line: str) -> str:
    """The separator of the cells in a line; "" for blanks."""
    sign = max((",", ";", "\t"), key=line.count)
    return sign if sign in line else ""


def first_cells(text: str, most: int = 1) -> list[list[str]]:
    """The cells of the first lines of a text that may be a table: its heading and a few rows, without pandas,
    so that any file can be inspected."""
    lines = list(islice(filter(_is_data, text.splitlines()), most))
    sign = _separator(lines[0]) if lines else ""
    rows = csv.reader(lines, delimiter=sign) if sign else (line.split() for line in lines)
    try:
        return [[unguarded(cell.strip()) for cell in row] for row in rows]
    except csv.Error:
        return []


def read_cells(text: str, source: str | Path = "") -> DataFrame:
    """All cells of a table given as text.

    Cells are separated by comma, semicolon or tab, whichever is most frequent in the first line, or by blanks
    if it has none. With semicolons, a comma is the decimal sign. Blank lines and comments (#) are left out.

    Returns
    -------
    Texts without blanks at their ends, "" where a row is short; the index is the line (from 1) at which a row
    ends.

    Raises
    ------
    TableError : it is too large, or a quoted cell does not end; names the line.
    """
    import pandas as pd

    lines = [line for line in text.split("\n") if _is_data(line)]
    if len(lines) > ROWS + 1:
        raise TableError(f"has more than {ROWS} rows", file=source or None, hint="choose a part of it")
    sign = _separator(lines[0]) if lines else ""
    every = text.split("\n") if lines else ()  # comments are parsed before they are left out
    wide = max((line.count(sign) + 1 if sign else len(_WORDS.findall(line)) for line in every), default=0)
    if wide * len(lines) > CELLS:
        raise TableError(
            f"has {len(lines)} lines and one with {wide} cells, tables of up to {CELLS} cells are read",
            file=source or None,
            hint="choose a table of measurements or trials",
        )
    if not wide:
        return pd.DataFrame()
    try:
        cells = pd.read_csv(
            io.StringIO(text), sep=sign or r"\s+", names=range(wide), header=None, index_col=False, dtype=str,
            keep_default_na=False, skip_blank_lines=False, low_memory=False,
            quoting=csv.QUOTE_MINIMAL if sign else csv.QUOTE_NONE, on_bad_lines="error",
        ).fillna("")  # fmt: skip
    except pd.errors.ParserError as error:
        place = re.search(r"starting at row (\d+)", str(error))
        raise TableError(
            "cannot be read: a cell begins with a quotation mark and does not end with one",
            file=source or None,
            where=f"line {int(place[1]) + 1}" if place else "",
        ) from None
    if len(text) > CELL and max(int(cells[c].str.len().max()) for c in cells) > CELL:
        raise TableError(f"cannot be read, a cell of it has more than {CELL} letters", file=source or None)
    cells.index = pd.Index(1 + sum(cells[c].str.count("\n") for c in cells).to_numpy()).to_series().cumsum()
    cells = cells[~cells[0].str.startswith("#")]
    cells = cells.apply(lambda column: column.str.strip())
    cells = cells[(cells != "").any(axis=1)]
    for column in cells:
        marked = cells[column].str.startswith("'")
        if marked.any():
            cells.loc[marked, column] = cells.loc[marked, column].map(unguarded)
        if sign == ";":
            cells[column] = cells[column].str.replace(_DECIMAL_COMMA, r"\1.\2", regex=True)
    return cells


def read_sheet(data: bytes, path: Path, most: int = ROWS) -> DataFrame:
    """The first sheet of a workbook, or its first non-empty rows, in the form of `read_cells`.

    pandas would read a whole sheet before its size is known, so the cells are fetched row by row.

    Raises
    ------
    TableError : it cannot be read, is too large, or empty.
    """
    import pandas as pd

    rows: dict[int, list[str]] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > 8 * LARGEST:
                raise TableError("unpacks to more than a table can have", file=path)
        from openpyxl import load_workbook

        book = load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        cells = 0
        for number, row in enumerate(book.worksheets[0].iter_rows(values_only=True, max_col=COLUMNS), 1):
            texts = ["" if cell is None else str(cell).strip() for cell in row]
            while texts and not texts[-1]:
                texts.pop()
            cells += len(texts)
            if number > ROWS or cells > CELLS:
                raise TableError(f"has more than {ROWS} rows or {CELLS} cells", file=path)
            if texts:
                rows[number] = texts
            if len(rows) == most:
                break
        book.close()
    except TableError:
        raise
    except Exception as error:  # openpyxl passes on whatever the XML parser, zip and its own checks raise
        raise TableError(
            f"cannot be read as a spreadsheet ({reason(error)})", file=path, hint="save it as CSV"
        ) from None
    if not rows:
        raise TableError("its first sheet is empty", file=path, hint="put the table on the first sheet")
    if max(map(len, rows.values())) * len(rows) > CELLS:
        raise TableError(f"has more than {CELLS} cells", file=path)
    return pd.DataFrame.from_dict(rows, orient="index").fillna("")


def read_frame(path: Path) -> DataFrame:
    """The cells of a file, text or workbook; errors as for `read_bytes`, `read_cells` and `read_sheet`."""
    data = read_bytes(path)
    return read_sheet(data, path) if is_workbook(data) else read_cells(decoded(data, path), path)


def headed(cells: DataFrame) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The heading of a table, and its rows with their lines; trailing columns without one are left out."""
    lines, rows = cells.index.tolist(), cells.to_numpy(object).tolist()
    header = rows[0] if rows else []
    while header and not header[-1]:
        header.pop()
    return header, [(line, row[: len(header)]) for line, row in zip(lines[1:], rows[1:], strict=True)]


# ---- writing


def safe(frame: DataFrame) -> DataFrame:
    """A copy whose texts and headings no spreadsheet takes for a formula; infinite numbers become empty."""
    import numpy as np
    import pandas as pd

    copied = frame.copy()
    copied.attrs = {}
    for k, (_, column) in enumerate(frame.items()):
        if column.dtype.kind == "f":
            copied.isetitem(k, column.where(np.isfinite(column)))
        elif column.dtype.kind not in "iub":
            # Not by `map`, which turns whole numbers into floats if some are missing.
            values = [guarded(v) if isinstance(v, str) else v for v in column.astype(object)]
            copied.isetitem(k, pd.Series(values, column.index, dtype=object))
    copied.columns = [guarded(str(name)) for name in frame.columns]
    return copied


def as_csv_text(frame: DataFrame) -> str:
    """The text of a CSV file: headings, then rows; numbers with all digits, empty where unknown."""
    text: str = safe(frame).to_csv(index=False, lineterminator="\n")
    return text


def write_frame(path: Path, frame: DataFrame) -> None:
    """Write a table atomically: as a spreadsheet if the name ends in .xlsx, else as CSV.

    Raises
    ------
    OSError : the file cannot be written.
    ValueError : a spreadsheet does not hold as many rows.
    """
    if path.suffix.lower() != ".xlsx":
        write_bytes(path, as_csv_text(frame).encode())
        return
    if len(frame) > SHEET_ROWS:
        most, rows = grouped(SHEET_ROWS), grouped(len(frame))
        raise ValueError(f"{path}: a spreadsheet holds at most {most} rows, not {rows}: write a .csv file")
    out = BytesIO()
    safe(frame).to_excel(out, index=False, engine="openpyxl")
    write_bytes(path, out.getvalue())
