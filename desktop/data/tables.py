"""Tables of run times: CSV, TSV, spreadsheets, pasted text and the listings of the NAS benchmarks.

A table is read into rows as written, columns are recognised by their headings (or named by the user), and
every row that cannot be used keeps the reason. Nothing is repaired silently.
"""

from __future__ import annotations

import math
import re
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from desktop.core.factor_fit import Measurements
from desktop.core.frames import TABLES, attributes, frame
from desktop.data.frames import (
    LARGEST,
    decoded,
    first_cells,
    headed,
    is_workbook,
    read_bytes,
    read_cells,
    read_frame,
    read_sheet,
)
from desktop.data.reading import head
from desktop.errors import TableError, explained

if TYPE_CHECKING:
    from pandas import DataFrame

#: Roles of columns.
ROLES = ("code", "system", "p", "time", "t_prime", "size", "work", "peak", "repeat", "note")
#: Headings (lower case, without unit) of each role; the first one found counts.
_HEADINGS: dict[str, tuple[str, ...]] = {
    "code": ("code", "program", "application", "app", "benchmark", "kernel"),
    "system": ("system", "machine", "computer", "host", "platform", "cluster"),
    "p": ("p", "processors", "procs", "processes", "cores", "ranks", "n_procs", "np", "p_cores", "mpi_ranks"),
    "time": ("time", "t", "seconds", "runtime", "run_time", "elapsed", "wall", "wall_time", "walltime",
             "time_median", "time_s_median", "time_min"),
    "t_prime": ("t_prime", "t'", "tprime"),
    "size": ("size", "problem_size", "elements", "unknowns", "grid_points"),
    "work": ("w", "work", "operations", "ops", "flop", "flops"),
    "peak": ("r_peak", "rpeak", "peak", "peak_rate"),
    "repeat": ("repeat", "replicate", "run", "repetition"),
    "note": ("note", "remark", "comment", "excluded"),
}  # fmt: skip
#: Units of each role with the factor to seconds, operations, operations per second.
UNITS: dict[str, dict[str, float]] = {
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0},
    "work": {"op": 1.0, "mop": 1e6, "gop": 1e9, "top": 1e12},
    "peak": {"op/s": 1.0, "mop/s": 1e6, "gop/s": 1e9, "top/s": 1e12},
}
_UNIT_NAMES = {
    "sec": "s", "secs": "s", "seconds": "s", "msec": "ms", "µs": "us", "usec": "us", "minutes": "min",
    "hours": "h", "flop": "op", "mflop": "mop", "gflop": "gop", "tflop": "top", "flops": "op/s",
    "mflops": "mop/s", "gflops": "gop/s", "tflops": "top/s", "flop/s": "op/s", "mflop/s": "mop/s",
    "gflop/s": "gop/s", "tflop/s": "top/s",
}  # fmt: skip

Repeats = Literal["points", "median", "minimum"]
#: Longest cell, so that a wrong file gives a clear error.
_CELL = 1000
#: How names differ that may be the same.
ALIKE = "differ by case, blanks, - or _ only"
#: Beyond these, squares of products overflow.
_MOST_P, _MOST_TIME, _MOST_VALUE = 1e9, 1e30, 1e30


@dataclass(frozen=True)
class Row:
    """One measurement. `line` is its place in the source (from 1); `reason`: why it is excluded, or "";
    `trace`: the identity of the trace it was taken from, see `desktop.data.trace_rows`."""

    line: int
    code: str = ""
    system: str = ""
    p: float = math.nan
    time: float = math.nan
    work: float = math.nan
    peak: float = math.nan
    repeat: str = ""
    note: str = ""
    source: str = ""
    reason: str = ""
    trace: str = ""
    size: float = math.nan


@dataclass(frozen=True)
class Table:
    """`rows` in the order of the source; `columns`: role -> heading; `transformed`: `time` contains t'.

    `similar`: names that `ALIKE`, proposed for merging (never merged automatically).
    """

    source: str
    rows: tuple[Row, ...]
    columns: Mapping[str, str]
    units: Mapping[str, str]
    transformed: bool = False
    similar: tuple[tuple[str, ...], ...] = ()
    other: tuple[str, ...] = ()

    def to_frame(self) -> DataFrame:
        """One row per measurement, indexed by line: ``TABLES["measurements"]`` of `desktop.core.frames`, NaN
        where there is none; t' has no unit."""
        columns = attributes("measurements", self.rows)
        units = {"time": ""} if self.transformed else None
        return frame(TABLES["measurements"], columns, index=columns["line"], units=units)

    def exclude(self, lines: Sequence[int], reason: str) -> Table:
        """Exclude rows by line, for a reason; an empty reason includes usable ones again."""
        out = set(lines)
        return replace(
            self,
            rows=tuple(
                replace(row, reason=reason or _fault(row)) if row.line in out else row for row in self.rows
            ),
        )

    def rename(self, old: Sequence[str], new: str) -> Table:
        """Give codes and systems with any of the old names the new one."""
        names = set(old)
        rows = tuple(
            replace(
                row,
                code=new if row.code in names else row.code,
                system=new if row.system in names else row.system,
            )
            for row in self.rows
        )
        return replace(self, rows=rows, similar=_similar(rows))

    def with_rows(self, rows: Sequence[Row]) -> Table:
        """Append measurements; their lines continue those of the table."""
        last = max((row.line for row in self.rows), default=0)
        more = tuple(
            replace(row, line=last + k, reason=row.reason or _fault(row)) for k, row in enumerate(rows, 1)
        )
        every = self.rows + more
        return replace(self, rows=every, similar=_similar(every))


@dataclass(frozen=True)
class TableEdits:
    """Changes to a table since it was read, so that they can be applied again.

    `names`: new names of codes and systems. `work`, `peak`: those of codes and systems, by their names in the
    source, if they were taken from a separate table; `columns`: its headings by role. `reasons`: why lines
    are excluded, or "" for lines included again. `added`: rows below the others.
    """

    names: dict[str, str] = field(default_factory=dict)
    work: dict[str, float] | None = None
    peak: dict[str, float] | None = None
    columns: dict[str, str] = field(default_factory=dict)
    reasons: tuple[tuple[int, str], ...] = ()
    added: tuple[Row, ...] = ()

    @classmethod
    def between(cls, read: Table, now: Table) -> TableEdits:
        """The changes from a table as read to the result of `Table`'s methods and `with_values`."""
        pairs = list(zip(read.rows, now.rows, strict=False))
        called = {old: new for a, b in pairs for old, new in ((a.code, b.code), (a.system, b.system))}

        def values(role: Literal["work", "peak"], of: Literal["code", "system"]) -> dict[str, float] | None:
            if all(_same(getattr(a, role), getattr(b, role)) for a, b in pairs):
                return None
            named = ((getattr(a, of), getattr(b, role)) for a, b in pairs)
            return {name: value for name, value in named if not math.isnan(value)}

        return cls(
            {old: new for old, new in called.items() if old != new},
            values("work", "code"),
            values("peak", "system"),
            {role: name for role, name in now.columns.items() if read.columns.get(role) != name},
            tuple((a.line, b.reason) for a, b in pairs if a.reason != b.reason),
            now.rows[len(read.rows) :],
        )

    def on(self, read: Table) -> Table:
        """The table with these changes; those to lines that no longer exist are left out."""
        reasons = dict(self.reasons)
        rows = tuple(
            replace(
                row,
                code=self.names.get(row.code, row.code),
                system=self.names.get(row.system, row.system),
                work=row.work if self.work is None else self.work.get(row.code, math.nan),
                peak=row.peak if self.peak is None else self.peak.get(row.system, math.nan),
                reason=reasons.get(row.line, row.reason),
            )
            for row in read.rows
        )
        edited = replace(read, rows=rows, columns={**read.columns, **self.columns}, similar=_similar(rows))
        return edited.with_rows(self.added)


def _same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


#: Bytes of a file that are inspected to recognise it.
_HEAD = 1 << 16


def headings(source: Path | str) -> tuple[str, ...]:
    """The names of columns in the first line of a table; () if there are none (a listing, no text).

    Raises
    ------
    TableError : a spreadsheet that cannot be read.
    OSError : the file cannot be read.
    """
    if isinstance(source, str):
        text = source[:_HEAD]
    elif source.is_dir():
        return ()
    else:
        data = head(source, _HEAD)
        if is_workbook(data):
            with suppress(zipfile.BadZipFile), zipfile.ZipFile(source) as archive:
                if "xl/workbook.xml" in archive.namelist() and source.stat().st_size <= LARGEST:
                    return tuple(headed(read_sheet(source.read_bytes(), source, 1))[0])
            return ()  # an archive of something else
        try:
            text = decoded(data.rpartition(b"\n")[0] or data, source)
        except TableError:
            return ()
        if _LISTING.search(text):
            return ()
    return tuple(next(iter(first_cells(text)), ()))


def missing_roles(header: Sequence[str]) -> tuple[str, ...]:
    """Roles that a table of measurements needs and no heading has: of code, system, p and time (or t')."""
    roles = recognise(header)
    required = ("code", "system", "p", "t_prime" if "t_prime" in roles else "time")
    return tuple(role for role in required if role not in roles)


def holds_measurements(path: Path) -> bool:
    """Whether this is a table of measurements, judged by its headings."""
    try:
        header = headings(path)
    except (OSError, TableError):
        return False
    return bool(header) and not missing_roles(header)


def read_table(
    source: Path | str, *, columns: Mapping[str, str] | None = None, units: Mapping[str, str] | None = None
) -> Table:
    """A table from a file, a folder of NPB listings, or pasted text.

    Parameters
    ----------
    source : a path (CSV, TSV, .xlsx, one listing, or a folder of listings), or the text itself.
    columns : role -> heading, for headings that are not recognised, or have another meaning.
    units : of "time", "work", "peak", if not in the heading; by default s, op, op/s.

    Raises
    ------
    TableError : it cannot be read, lacks a column, or has no usable row; names row and column.
    """
    if isinstance(source, str):
        return _tabulate(read_cells(source, "pasted text"), "pasted text", columns or {}, units or {})
    path = Path(source)
    with explained(TableError, file=path):
        if path.is_dir():
            return _from_listings(path)
    data = read_bytes(path)
    if is_workbook(data):
        return _tabulate(read_sheet(data, path), str(path), columns or {}, units or {})
    text = decoded(data, path)
    if _LISTING.search(text):
        return _listings([(path, text)], str(path))
    return _tabulate(read_cells(text, path), str(path), columns or {}, units or {})


def with_values(table: Table, source: Path, role: Literal["work", "peak"], unit: str | None = None) -> Table:
    """The same rows with the work of their codes, or the peak of their systems, from a separate table.

    Raises
    ------
    TableError : the table of values cannot be read, or names no code or system of the first.
    """
    of: Literal["code", "system"] = "code" if role == "work" else "system"
    header, lines = headed(read_frame(source))
    names = [_heading(heading) for heading in header]
    value_at = next((k for k, name in enumerate(names) if name[0].startswith(_HEADINGS[role])), None)
    name_at = next((k for k, name in enumerate(names) if name[0] in _HEADINGS[of]), None)
    if value_at is None or name_at is None:
        raise TableError(
            f"has no columns for {of} and {role}",
            file=source,
            where="line 1",
            hint=f"its columns are {_listed(header)}",
        )
    factor = UNITS[role].get(_unit(unit or names[value_at][1]) or next(iter(UNITS[role])), None)
    if factor is None:
        raise TableError(f"the unit of {header[value_at]!r} is not known", file=source, where="line 1")
    values: dict[str, float] = {}
    for line, cells in lines:
        if cells[value_at]:
            try:
                value = float(cells[value_at]) * factor
            except ValueError:
                value = math.nan
            if not abs(value) < _MOST_VALUE:
                wrong = "no number" if math.isnan(value) else "beyond what is measured"
                raise TableError(
                    f"{role} of {cells[name_at]} is {cells[value_at]!r}, which is {wrong}",
                    file=source,
                    where=f"line {line}",
                )
            values[cells[name_at].strip()] = value
    if not any(getattr(row, of) in values for row in table.rows):
        raise TableError(f"names no {of} of {table.source}", file=source, hint="names have to be the same")
    looked_up = (values.get(getattr(row, of), math.nan) for row in table.rows)
    rows = (
        replace(row, work=value) if role == "work" else replace(row, peak=value)
        for row, value in zip(table.rows, looked_up, strict=True)
    )
    return replace(table, rows=tuple(rows), columns={**table.columns, role: header[value_at]})


# --- headings ---


def _heading(text: str) -> tuple[str, str]:
    """A heading and its unit: ``Time [ms]``, ``time_s``, ``r_peak (Mflop/s)``, ``operations_gflop``."""
    name = " ".join(text.strip().casefold().split())
    bracket = re.match(r"^(.*?)\s*[\[(]\s*([^\])]+?)\s*[\])]$", name)
    if bracket:
        return bracket[1].replace(" ", "_"), _unit(bracket[2])
    name = name.replace(" ", "_")
    front, _, tail = name.rpartition("_")
    if front and (_unit(tail) in _ALL_UNITS):
        return front, _unit(tail)
    for part in ("_s_", "_ms_", "_gflops_", "_mflops_"):
        if part in name:
            return name.replace(part, "_"), _unit(part.strip("_"))
    return name, ""


def _unit(text: str) -> str:
    plain = text.casefold().replace("per_second", "/s")
    return _UNIT_NAMES.get(plain, plain)


_ALL_UNITS = {unit for table in UNITS.values() for unit in table}


def recognise(header: Sequence[str]) -> dict[str, int]:
    """Role -> index of the column with a heading for it."""
    names = [_heading(text)[0] for text in header]
    exact = [" ".join(text.strip().casefold().split()).replace(" ", "_") for text in header]
    roles: dict[str, int] = {}
    for role, headings in _HEADINGS.items():
        for heading in headings:
            at = next((k for k in range(len(names)) if heading in (exact[k], names[k])), None)
            if at is not None and at not in roles.values():
                roles[role] = at
                break
    return roles


def _tabulate(cells: DataFrame, source: str, columns: Mapping[str, str], units: Mapping[str, str]) -> Table:
    header, lines = headed(cells)
    if not header:
        raise TableError("holds no table", file=source, hint="the first line names the columns")
    spot = {"file": source, "where": f"line {int(cells.index[0])}"}
    for role in units:
        if role not in UNITS:
            raise TableError(f"there is no unit of {role!r}", hint=f"known are {', '.join(UNITS)}")
    places = recognise(header)
    for role, heading in columns.items():
        if role not in ROLES:
            raise TableError(f"there is no column meaning {role!r}", hint=f"known are {', '.join(ROLES)}")
        if heading not in header:
            hint = f"its columns are {_listed(header)}"
            raise TableError(f"has no column {heading!r}", **spot, hint=hint)
        places = {r: at for r, at in places.items() if at != header.index(heading)}
        places[role] = header.index(heading)
    usual = ("time", "t", "seconds")
    named_time = "time" in places and _heading(header[places["time"]])[0] in usual
    if "t_prime" in places and "t_prime" not in columns and ("time" in columns or named_time):
        del places["t_prime"]
    transformed = "t_prime" in places
    if transformed:
        places.pop("time", None)
    for role in ("code", "system", "p", "t_prime" if transformed else "time"):
        if role not in places:
            hint = f"its columns are {_listed(header)}; call one {_HEADINGS[role][0]!r} or say which it is"
            raise TableError(f"has no column for {'the time' if role == 'time' else role}", **spot, hint=hint)
    used_units: dict[str, str] = {}
    for role, factors in UNITS.items():
        if role not in places:
            continue
        unit = _unit(units.get(role, "")) or _heading(header[places[role]])[1] or next(iter(factors))
        if unit + "/s" in factors:
            unit += "/s"
        if role == "work" and unit.removesuffix("/s") in factors:
            unit = unit.removesuffix("/s")
        if unit not in factors:
            reason = f"the unit {unit!r} of column {header[places[role]]!r} is not known"
            raise TableError(reason, **spot, hint=f"known are {', '.join(factors)}")
        used_units[role] = unit
    rows = tuple(_row(number, row, places, used_units, transformed) for number, row in lines)
    return _checked(
        Table(
            source,
            rows,
            {role: header[at] for role, at in places.items()},
            used_units,
            transformed,
            _similar(rows),
            tuple(name for k, name in enumerate(header) if k not in places.values()),
        )
    )


def _listed(names: Sequence[str]) -> str:
    listed = ", ".join(repr(name) for name in names[:12])
    return listed + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def _row(
    number: int, cells: list[str], places: Mapping[str, int], units: Mapping[str, str], transformed: bool
) -> Row:
    def cell(role: str) -> str:
        at = places.get(role)
        return cells[at][:_CELL] if at is not None and at < len(cells) else ""

    def value(role: str) -> float:
        if "_" in cell(role):
            return math.nan  # Python would read 1_0 as 10
        try:
            return float(cell(role)) * UNITS[role][units[role]] if role in units else float(cell(role))
        except ValueError:
            return math.nan

    row = Row(
        number,
        cell("code"),
        cell("system"),
        value("p"),
        value("t_prime" if transformed else "time"),
        value("work") if "work" in places else math.nan,
        value("peak") if "peak" in places else math.nan,
        cell("repeat"),
        cell("note"),
        size=value("size") if "size" in places else math.nan,
    )
    written = {"p": cell("p"), "time": cell("t_prime" if transformed else "time")}
    return replace(row, reason=_fault(row, written))


def _fault(row: Row, written: Mapping[str, str] | None = None) -> str:
    """Why a row cannot be used; "" if it can."""
    texts = written or {}
    if not row.code:
        return "no code is named"
    if not row.system:
        return "no system is named"
    if not (math.isfinite(row.p) and row.p >= 1 and row.p == int(row.p)):
        return f"p is {texts.get('p') or row.p!r}, it must be a positive whole number"
    if not (math.isfinite(row.time) and row.time > 0):
        return f"the time is {texts.get('time') or row.time!r}, it must be a positive number"
    if row.p > _MOST_P or not 1 / _MOST_TIME < row.time < _MOST_TIME:
        return f"p = {row.p:g} and time {row.time:g} are beyond what is measured, check the columns"
    return ""


def _checked(table: Table) -> Table:
    if not table.rows:
        raise TableError(
            "holds no rows below its heading", file=table.source, hint="give one row a measurement"
        )
    if all(row.reason for row in table.rows):
        row = table.rows[0]
        raise TableError(
            f"has no usable row: {row.reason}",
            file=table.source,
            where=f"line {row.line}",
            hint="check which column is which",
        )
    return table


def _similar(rows: Sequence[Row]) -> tuple[tuple[str, ...], ...]:
    groups_alike = []
    for names in ({row.code for row in rows}, {row.system for row in rows}):
        groups: dict[str, list[str]] = {}
        for name in sorted(names):
            groups.setdefault(re.sub(r"[\s_-]+", "", name.casefold()), []).append(name)
        groups_alike += [tuple(group) for group in groups.values() if len(group) > 1]
    return tuple(groups_alike)


# --- listings of the NAS parallel benchmarks ---

_LISTING = re.compile(r"^\s*(\w+) Benchmark Completed\.?\s*$", re.MULTILINE | re.IGNORECASE)
_FIELD = re.compile(r"^\s*([A-Za-z/ ]+?)\s*=\s*(.+?)\s*$")


def _from_listings(folder: Path) -> Table:
    listings = []
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.stat().st_size < LARGEST:
            with path.open("rb") as file:
                text = file.read().decode("utf-8", "replace")
            if _LISTING.search(text):
                listings.append((path, text))
            if len(listings) > 100_000:
                raise TableError("holds more than 100000 listings", file=folder)
    if not listings:
        raise TableError(
            "holds no result listing of the NAS parallel benchmarks",
            file=folder,
            hint="a listing has a line such as 'BT Benchmark Completed.'",
        )
    return _listings(listings, str(folder))


def _listings(files: Sequence[tuple[Path, str]], source: str) -> Table:
    """One row for every "Benchmark Completed": its code is NAME.CLASS, its system the folder's name."""
    rows: list[Row] = []
    for path, text in files:
        parts = _LISTING.split(text)
        for name, body in zip(parts[1::2], parts[2::2], strict=True):
            fields: dict[str, str] = {}
            for line in body.splitlines():
                match = _FIELD.match(line)
                if match:
                    fields.setdefault(match[1].casefold(), match[2])
            rows.append(_listing(name, fields, path, len(rows) + 1))
    _name_inconsistent(rows)
    return _checked(
        Table(source, tuple(rows), {"time": "Time in seconds", "p": "Total processes"},
              {"time": "s", "work": "op"}, False, _similar(rows))
    )  # fmt: skip


def _name_inconsistent(rows: list[Row]) -> None:
    """Exclude runs whose rate times time differs from the work of the other runs of their code. If it is
    unknown which are right, all lose their work, not their time."""
    for code in {row.code for row in rows}:
        indices = [k for k, row in enumerate(rows) if row.code == code and not row.reason and row.work > 0]
        if not indices:
            continue
        usual = float(np.median([rows[k].work for k in indices]))
        odd = [k for k in indices if abs(rows[k].work / usual - 1.0) > 0.01]
        for k in indices if 2 * len(odd) >= len(indices) else odd:
            row = rows[k]
            sentence = (
                f"{row.source}: its Mop/s total times its time are {row.work:.4g} operations, "
                f"those of the other runs of {code} {usual:.4g}"
            )
            if 2 * len(odd) < len(indices):
                rows[k] = replace(row, reason=sentence)
            elif odd:
                rows[k] = replace(row, work=math.nan, note=f"{sentence}; which is right is not known")


def _listing(name: str, fields: Mapping[str, str], path: Path, number: int) -> Row:
    def value(*keys: str) -> float:
        for key in keys:
            if key in fields:
                try:
                    return float(fields[key].split()[0])
                except (ValueError, IndexError):
                    return math.nan
        return math.nan

    kind = fields.get("class", "").strip()
    seconds = value("time in seconds")
    row = Row(
        number,
        f"{name.upper()}.{kind}" if kind else name.upper(),
        path.parent.name,
        value("total processes", "total threads", "total number of processes"),
        seconds,
        value("mop/s total") * 1e6 * seconds,
        source=path.name,
    )
    if fields.get("verification", "").casefold().startswith("unsuccess"):
        return replace(row, reason="the benchmark says that its verification was unsuccessful")
    return replace(row, reason=_fault(row))


# --- what is fitted ---


@dataclass(frozen=True, eq=False)
class Selection:
    """What is fitted of a table. lines : (N,) the row's line of every measurement (the first one's if
    repeats were combined). dropped : columns that were not used, and why, in words."""

    data: Measurements
    lines: tuple[int, ...]
    excluded: tuple[Row, ...]
    dropped: tuple[str, ...]


def measurements(table: Table, repeats: Repeats = "points") -> Selection:
    """The usable rows as numbers.

    Work must be one number per code and peak one per system, positive and known for all; else they are left
    out for all (with a note).

    Raises
    ------
    TableError : work or peak contradict each other or are not positive.
    """
    rows = [row for row in table.rows if not row.reason]
    excluded = tuple(row for row in table.rows if row.reason)
    if not rows:
        raise TableError("every row is excluded", file=table.source, hint="include some rows again")
    codes = tuple(dict.fromkeys(row.code for row in rows))
    systems = tuple(dict.fromkeys(row.system for row in rows))
    dropped: list[str] = []
    work = _shared(table, rows, "work", "code", codes, dropped)
    peak = _shared(table, rows, "peak", "system", systems, dropped)
    size = _sizes(rows, dropped)
    points: list[tuple[Row, float]] = [(row, row.time) for row in rows]
    if repeats != "points":
        cells: dict[tuple[str, str, float, float], list[Row]] = {}
        for row in rows:
            cells.setdefault((row.code, row.system, row.p, row.size if size else 0.0), []).append(row)
        join = np.median if repeats == "median" else np.min
        points = [(group[0], float(join([row.time for row in group]))) for group in cells.values()]
    where_code, where_system = {n: i for i, n in enumerate(codes)}, {n: i for i, n in enumerate(systems)}
    data = Measurements(
        codes,
        systems,
        np.array([where_code[row.code] for row, _ in points], np.int64),
        np.array([where_system[row.system] for row, _ in points], np.int64),
        np.array([row.p for row, _ in points], np.float64),
        np.array([time for _, time in points], np.float64),
        work,
        peak,
        table.transformed,
        np.array([row.size for row, _ in points], np.float64) if size else None,
    )
    return Selection(data, tuple(row.line for row, _ in points), excluded, tuple(dropped))


def _sizes(rows: Sequence[Row], dropped: list[str]) -> bool:
    """Whether every row has a positive problem size."""
    valid = [math.isfinite(row.size) and row.size > 0 for row in rows]
    if any(valid) and not all(valid):
        row = rows[valid.index(False)]
        dropped.append(f"the problem size is not known in line {row.line} and others, so it is used for none")
    return all(valid)


def _shared(
    table: Table,
    rows: Sequence[Row],
    role: Literal["work", "peak"],
    of: Literal["code", "system"],
    names: Sequence[str],
    dropped: list[str],
) -> np.ndarray | None:
    """The one value of every code or system; None if some have none."""
    if all(math.isnan(getattr(row, role)) for row in rows):
        return None
    values: dict[str, Counter[float]] = {name: Counter() for name in names}
    for row in rows:
        value = getattr(row, role)
        if math.isnan(value):
            continue
        if not (math.isfinite(value) and value > 0):
            raise TableError(
                f"{role} of {getattr(row, of)} is {value:g}, it must be positive",
                file=table.source,
                where=f"line {row.line}, column {table.columns.get(role, role)}",
                hint="correct it or leave the column out",
            )
        values[getattr(row, of)][value] += 1
    missing = [name for name in names if not values[name]]
    if missing:
        dropped.append(f"{role} is missing for {_listed(missing)}, so it is used for none")
        return None
    medians = []
    for name in names:
        seen = sorted(values[name])
        # Operation counts derived from rounded rates agree to some digits only.
        if seen[-1] > 1.02 * seen[0] and table.transformed:
            dropped.append(f"{role} of {name} is {seen[0]:g} and {seen[-1]:g}, so it is used for none")
            return None
        if seen[-1] > 1.02 * seen[0]:
            row = next(r for r in rows if getattr(r, of) == name and getattr(r, role) == seen[-1])
            raise TableError(
                f"{name} has {role} {seen[0]:g} and {seen[-1]:g}",
                file=table.source,
                where=f"line {row.line}, column {table.columns.get(role, role)}",
                hint=f"a {of} has one {role}; give other sizes another name",
            )
        medians.append(float(np.median(list(values[name].elements()))))
    return np.array(medians)
