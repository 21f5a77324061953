"""The tables of a store besides `events.TABLES`, and the values allowed in each column."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from desktop.core.arrays import AnyArray
from desktop.data.events import TABLES, Activity, EventKind, MessageKind

FORMAT = "phasewright"
SCHEMA = 3  # 1 had no `links`, 2 neither `Location.doubt` nor rates of clocks
SUFFIX = ".h5"
#: Rows in a chunk of a column: the least that is read to get one row.
CHUNK = 1 << 14
FORMER_CHUNKS = (1 << 16,)
#: Largest description that is written or read, in bytes; 10^5 locations need some 40 MB.
DESCRIPTION_LIMIT = 1 << 28

#: Times beyond this many ticks (73 years of nanoseconds) are damage; sums of two stay far within int64.
TICK_LIMIT = 1 << 61

#: Tables derived from the others. ``calls``: how often a location entered a region, without zeros.
#: ``utilization`` (all rows belong to location 0): processors in each activity from `time` on (ticks since
#: the first event) with the default rules; the last row is the end. ``outline`` (one row, of location 0):
#: `desktop.data.utilization.outline` of that curve. ``links``: the sender's messages whose two ends are
#: known, sent at `time`, received by `peer` at `arrival` (each as recorded). ``strips``, ``timeline``,
#: ``checkpoints``: see `desktop.data.timeline`; ``paths``, ``profile``, ``folded``, ``traffic``: see
#: `desktop.data.profile`; ``presence``, ``exchanges``: see `desktop.data.presence`.
DERIVED: dict[str, dict[str, str]] = {
    "calls": {"region": "u4", "count": "i8"},
    "utilization": {"time": "i8"} | {a.name.lower(): "i4" for a in Activity},
    "outline": {"end": "i8", "segments": "i8", "integral": "i8", "most": "i4"},
    "links": {"time": "i8", "arrival": "i8", "peer": "i4", "bytes": "i8", "tag": "i8"},
    "strips": {"first": "i8", "last": "i8", "width": "u1", "region": "i4", "activity": "u1"},
    "timeline": {"region": "i4", "activity": "u1", "regions": "u8", "activities": "u1"},
    "checkpoints": {"time": "i8", "row": "i8", "region": "i4", "since": "i8"},
    "paths": {"parent": "i4", "region": "u4"},
    "profile": {"row": "i8", "time": "i8", "top": "u4", "node": "u4", "ticks": "i8", "calls": "i8"},
    "folded": {"row": "i8", "node": "u4"},
    "traffic": {"row": "i8", "time": "i8", "peer": "i4"}
    | dict.fromkeys(("sent", "bytes_sent", "received", "bytes_received"), "i8"),
    "presence": {"begin": "i8", "end": "i8", "what": "u4", "calls": "i8", "inside": "i8"},
    "exchanges": {"begin": "i8", "end": "i8", "what": "u4", "calls": "i8", "inside": "i8"},
}

#: Columns of all tables, with their types.
COLUMNS = TABLES | DERIVED

#: The column by which the rows of a location are sorted; "" if they are not.
KEYS = {
    "collectives": "begin",
    "calls": "region",
    "outline": "end",
    "strips": "first",
    **dict.fromkeys(("profile", "folded", "traffic"), "row"),
    **dict.fromkeys(("timeline", "paths", "presence", "exchanges"), ""),
}
#: Columns whose values must be below a fixed number, or refer to one of these lists.
BOUNDS: dict[tuple[str, str], int | str] = {
    ("events", "kind"): len(EventKind),
    ("events", "region"): "regions",
    ("messages", "kind"): len(MessageKind),
    ("messages", "peer"): "locations",
    ("collectives", "operation"): "texts",
    ("collectives", "root"): "locations",
    ("marks", "text"): "texts",
    ("metrics", "metric"): "texts",
    ("calls", "region"): "regions",
    ("links", "peer"): "locations",
    ("strips", "width"): 62,
    ("strips", "region"): "regions",
    ("strips", "activity"): len(Activity),
    ("timeline", "region"): "regions",
    ("timeline", "activity"): len(Activity),
    ("timeline", "activities"): 1 << len(Activity),
    ("checkpoints", "region"): "regions",
    ("paths", "region"): "regions",
    ("traffic", "peer"): "locations",
}
#: Columns in which -1 stands for "none".
OPTIONAL = {
    ("messages", "peer"),
    ("collectives", "root"),
    ("strips", "region"),
    ("timeline", "region"),
    ("checkpoints", "region"),
    ("traffic", "peer"),
}


def as_declared(
    table: str, columns: Mapping[str, AnyArray], declared: Mapping[str, dict[str, str]] = TABLES
) -> dict[str, AnyArray]:
    """The columns (rows,), converted to the declared types without changing a value.

    Raises
    ------
    ValueError : a column is missing, unknown or of another length, or its type cannot hold its values.
    """
    types = declared[table]
    if columns.keys() != types.keys():
        raise ValueError(f"{table}: has columns {', '.join(types)}, got {', '.join(columns)}")
    block = {}
    size = None
    for name, dtype in types.items():
        column = np.asarray(columns[name])
        size = column.size if size is None else size
        if column.shape != (size,):
            raise ValueError(f"{table}.{name}: has shape {column.shape}, expected ({size},)")
        block[name] = column.astype(dtype, copy=False)
        if not np.can_cast(column.dtype, dtype) and not np.array_equal(block[name], column):
            raise ValueError(f"{table}.{name}: has values that do not fit into {dtype}")
    return block


def check_values(
    table: str,
    block: Mapping[str, AnyArray],
    bound: Callable[[str], int],
    error: Callable[[str], Exception],
) -> None:
    """Check all references, so that kernels may use them as unchecked indices; raises `error`.

    `block`: columns (rows,) of a table. `bound`: gives the number of "regions", "locations" or "texts".
    """
    for name, values in block.items():
        limit = BOUNDS.get((table, name))
        if limit is None or not values.size:
            continue
        least = -1 if (table, name) in OPTIONAL else 0
        most = (bound(limit) if isinstance(limit, str) else limit) - 1
        low, high = int(values.min()), int(values.max())
        if low < least or high > most:
            raise error(f"{table}.{name} is {low if low < least else high}, allowed are {least} to {most}")
