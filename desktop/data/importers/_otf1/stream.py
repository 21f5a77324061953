"""One stream of an OTF trace: reads its event file line by line, and keeps its rows by process on disk."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import numpy as np

from desktop.core.arrays import Ints, Records
from desktop.data.importers._otf1 import lines as ln
from desktop.data.importers._otf1.text import Text
from desktop.data.spill import Spill

#: Lines read at a time; more if their rows go to many processes.
LINES = 1 << 17
#: Different comments kept per stream.
TEXTS = 1 << 14
#: The comment that a trace writer leaves when it gives up.
_ABORTED = "error due to unsorted time stamp"

MARK = np.dtype([("time", "i8"), ("text", "i8")])


class Stream:
    """The contents of an event file.

    spills: rows by group for each of `lines.ROWS`, with `MARK` for comments; None: no rows. state and known:
    see `lines.step`. texts: of the comments, by number.
    """

    def __init__(self, file: Path, groups: dict[int, int], span: int, folder: Path) -> None:
        """`groups`: process -> group, or `lines.UNWANTED`. `span`: a time step this long is damage."""
        self.text = Text(file)
        self.folder, self.span = folder, span
        self.processes = np.array(sorted(groups), np.int64)
        self.groups = np.array([groups[process] for process in sorted(groups)], np.int64)
        self.count = max(groups.values()) + 1
        self.state = np.zeros(ln.STATE, np.int64)
        self.state[[ln.TIME, ln.PROCESS]] = -1
        self.state[ln.GROUP] = ln.NOBODY
        self.facts = np.zeros((self.count, ln.FACTS), np.int64)
        self.facts[:, ln.FIRST] = ln.LIMIT
        self.facts[:, [ln.LAST, ln.ENTERED]] = -1
        self.spills: list[Spill | None] = [None] * len(ln.ROWS)
        self.texts: dict[str, int] = {}
        self.aborted = False
        self.comments_lost = 0

    def in_order(self, table: int, group: int) -> bool:
        """Whether the rows of a group are known to be in order of time."""
        overtaken = self.facts[group, ln.OVERTAKEN] if table == ln.COLLECTIVES else 0
        return not self.state[ln.BACK] and not overtaken

    @property
    def complete(self) -> bool:
        """Whether the file ends as writers end it: with the last time and its process once more."""
        state = self.state
        return bool(state[ln.ENDING] == 2 and state[ln.TIME] == state[ln.RECORDED])

    def read(self, stop: Event) -> None:
        """Read the whole file, unless `stop` is set. Errors are recorded; only OSError of a full disk is
        raised."""
        opened = np.empty(ln.OPENED, np.int64)
        room = min(max(LINES, 64 * self.count), 1 << 20)
        rows = [np.empty(room, dtype) for dtype in ln.ROWS]
        owners = np.empty((len(rows), room), np.int64)
        n = np.zeros(len(rows), np.int64)
        values = np.zeros(ln.FIELDS, np.int64)
        for block in self.text.blocks():
            buf = np.frombuffer(block, np.uint8)
            at = 0
            while at < len(buf):
                if stop.is_set():
                    return
                at = ln.step(
                    buf, at, self.span, values, self.processes, self.groups, self.state, self.facts, opened,
                    *rows, owners, n,
                )  # fmt: skip
                for table in range(ln.NOTES):
                    self._keep(table, rows[table][: n[table]], owners[table, : n[table]])
                if n[ln.NOTES]:
                    self._keep_notes(block, rows[ln.NOTES][: n[ln.NOTES]], owners[ln.NOTES, : n[ln.NOTES]])

    def _keep(self, table: int, rows: Records, groups: Ints) -> None:
        if not len(rows):
            return
        spill = self.spills[table]
        if spill is None:
            spill = self.spills[table] = Spill(self.folder, rows.dtype)
        spill.add(rows.copy(), groups.copy(), self.count)  # copies, as the buffers are reused

    def _keep_notes(self, block: bytes, notes: Records, groups: Ints) -> None:
        numbered = []
        for (_, at, size), group in zip(notes.tolist(), groups.tolist(), strict=True):
            text = block[at + 1 : at + min(size, 1 << 12)].decode("utf-8", "replace").strip()
            text = text.removeprefix("EVTCOMMENT").strip().strip('"')
            self.aborted |= text.startswith(_ABORTED)
            room = group >= 0 and (text in self.texts or len(self.texts) < TEXTS)
            self.comments_lost += group >= 0 and not room
            numbered.append(self.texts.setdefault(text, len(self.texts)) if room else -1)
        numbers = np.array(numbered, np.int64)
        marks = np.empty((numbers >= 0).sum(), MARK)
        marks["time"], marks["text"] = notes["time"][numbers >= 0], numbers[numbers >= 0]
        self._keep(ln.NOTES, marks, groups[numbers >= 0])

    def close(self) -> None:
        for spill in self.spills:
            if spill is not None:
                spill.close()
