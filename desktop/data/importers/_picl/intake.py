"""The first pass over a PICL trace: lines to records, by processor in a file, and what they name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from desktop.core.jit import arithmetic
from desktop.data.consistency import RARE
from desktop.data.events import ImportReport, Severity
from desktop.data.importers._picl import lines as ln
from desktop.data.importers._picl import source
from desktop.data.importers._picl import tables as tb
from desktop.data.lines import blocks, in_order, line_count
from desktop.data.spill import Interner, Spill
from desktop.errors import TraceFormatError
from desktop.progress import Progress

MOST_PROCESSORS = 10_000_000
MOST_TEXTS = 100_000
#: With so many keys at most a block begins: to learn them must not outweigh its lines.
MOST_KNOWN = 1 << 12

_A, _B = ln.FORMAT_A, ln.FORMAT_B
_POWERS = 10.0 ** -np.arange(64)

# What `_note` counts: records of unknown type, steps back in time, line of the first one, most decimals,
# partners named, fourth fields of sends and receives, sends and receives without one, clocks set (A).
_ODD, _BACK, _BACK_LINE, _SCALE, _PARTNERS, _FOURTH, _BARE, _SET, _NOTED = 0, 1, 2, 3, 4, 5, 7, 9, 10
# Its times: of the first and the last record, the largest step back, the largest absolute time.
_FIRST, _LAST, _STEP, _FURTHEST, _TIMES = range(5)


@arithmetic
def _give_keys(rows: Any, at: Any, numbers: Any, roles: Any, paired: Any) -> None:
    """Give rows[at] the numbers of their keys; paired (numbers,): set for those of entries and exits."""
    for i in range(len(at)):
        r = rows[at[i]]
        r["key"] = numbers[i]
        if roles[r["record"]] > 0:
            paired[numbers[i]] = True


@arithmetic
def _note(
    rows: Any, keys: Any, form: int, sides: Any, records: Any, events: Any, partners: Any, fourth: Any,
    counts: Any, seconds: Any, powers: Any,
) -> None:  # fmt: skip
    """Note what the records of a block say.

    partners (N,), fourth (2, N): who and which communicator sends and receives name. counts (_NOTED,), 0
    before. seconds (_TIMES,).
    """
    before, largest, furthest = rows[0]["time"] * powers[rows[0]["scale"]], 0.0, 0.0
    odd_ones, back, scale, named, clocks = 0, 0, 0, 0, 0
    seconds[_FIRST] = before
    for i in range(len(rows)):
        r = rows[i]
        record, event = r["record"], keys[i] if form == _B else 0
        t = r["time"] * powers[r["scale"]]
        if t < before:
            largest = max(largest, before - t)
            if back == 0:
                counts[_BACK_LINE] = r["line"]
            back += 1
        before = t
        furthest = max(furthest, abs(t))
        clocks += form == _A and record == ln.CLOCK_SYNC
        scale = max(scale, r["scale"])
        odd = record >= len(records) or not records[record]
        if form == _B and event < 0:
            odd = odd or event <= -len(events) or not events[-event]
        odd_ones += odd
        side = 0
        if r["nd"] >= 3 and record < 9 and -65 < event <= 0:
            side = sides[record, -event]
        if side > 0:
            if r["d2"] >= 0 or r["d2"] == ln.HOST:
                partners[named] = r["d2"]
                named += 1
            if r["nd"] >= 4:
                fourth[side - 1, counts[_FOURTH + side - 1]] = r["d3"]
                counts[_FOURTH + side - 1] += 1
            else:
                counts[_BARE + side - 1] += 1
    counts[_ODD], counts[_BACK], counts[_SCALE], counts[_PARTNERS] = odd_ones, back, scale, named
    counts[_SET] = clocks
    seconds[_LAST], seconds[_STEP], seconds[_FURTHEST] = before, largest, furthest


@arithmetic
def _renumber(rows: Any, dense: Any) -> None:
    """Give records the number dense[k] for their key's number k."""
    for i in range(len(rows)):
        if rows[i]["key"] >= 0:
            rows[i]["key"] = dense[rows[i]["key"]]


@dataclass
class _Block:
    """What a block of lines holds, with all that can be found without knowing the ones before."""

    parsed: ln.Parsed
    counts: NDArray[np.int64]
    seconds: NDArray[np.float64]
    partners: NDArray[np.int64]
    fourth: tuple[NDArray[np.int64], NDArray[np.int64]]
    #: Units of the block, and which of them each record has.
    units: Interner
    unit: NDArray[np.int64]
    #: Keys: those that the trace had already (`known`), and new ones; which of them each record with a key
    #: has; whether entries and exits have them.
    keys: Interner
    known: int
    key: NDArray[np.int64]
    paired: NDArray[np.bool_]


def _read_block(
    block: bytes,
    form: int,
    final: bool,
    lines: int,
    before: int,
    known: NDArray[np.int64],
    corrupt: bool = False,
) -> _Block:
    """A block of that many whole lines, with so many lines before it; known: keys that have a number.

    May run in any thread.
    """
    parsed = ln.read_lines(block, form, final, lines, before, corrupt)
    rows = parsed.rows
    counts, seconds = np.zeros(_NOTED, np.int64), np.zeros(_TIMES)
    partners, fourth = np.empty(len(rows), np.int64), np.empty((2, len(rows)), np.int64)
    units, keys = Interner(), Interner(known)
    unit = units(parsed.units)
    key = keys(parsed.keys)
    paired = np.zeros(keys.used, np.bool_)
    _give_keys(rows, parsed.keyed, key, tb.ROLES[form], paired)
    if len(rows):
        _note(
            rows, parsed.keys, form, tb.SIDES, tb.RECORDS[form], tb.EVENT_TABLE,
            partners, fourth, counts, seconds, _POWERS,
        )  # fmt: skip
    sent, received = (fourth[side, : counts[_FOURTH + side]] for side in range(2))
    return _Block(
        parsed, counts, seconds, partners[: counts[_PARTNERS]], (sent, received), units, unit, keys,
        len(known), key, paired,
    )  # fmt: skip


class Intake:
    """What a trace holds, by unit (a processor and process): records in a file, and all that they name."""

    def __init__(self, path: Path, report: ImportReport, folder: Path) -> None:
        self.path, self.report = path, report
        self.form = _A
        self.units, self.keys, self.partners = Interner(), Interner(), Interner()
        self.spill = Spill(folder, ln.RECORD)
        self.key_events: list[int] = []  # event of B, block type of A
        self.known = self.keys.values
        self.paired = np.zeros(16, np.bool_)  # whether a key is one of entries and exits
        self.statistics: dict[tuple[int, int, int], float] = {}  # by processor, record type, event
        self.texts: dict[str, int] = {}
        self.decimals = 6
        self.records = 0
        self._lines = 0
        self._first = 0
        self._odd = np.zeros((ln.ODDITIES, 2), np.int64)
        self._unknown: Counter[str] = Counter()
        self._unknown_line: dict[str, int] = {}
        self.synchronized = False  # whether there are records that a clock was set
        self._back = self._back_line = self._turns = 0
        self._bare = np.zeros(2, np.int64)
        self._last, self._step, self._furthest = -np.inf, 0.0, 0.0  # seconds, as in _TIMES
        self._fourth: tuple[Counter[int], Counter[int]] = (Counter(), Counter())

    def close(self) -> None:
        self.spill.close()

    def read(self, progress: Progress) -> None:
        """All lines; `progress` is half done then."""
        size = max(self.path.stat().st_size, 1)
        block = b""
        corrupt = False
        for block, final, lines, before, done, found in in_order(self._parse, self._blocks()):
            if corrupt:
                found = _read_block(block, self.form, final, lines, before, self.known, corrupt)
            parsed = found.parsed
            corrupt = parsed.corrupt
            self.records += len(parsed.rows)
            self._lines = before + lines
            self._first = self._first or parsed.first
            fresh = (self._odd[:, 1] == 0) & (parsed.odd[:, 1] > 0)
            self._odd[:, 0] += parsed.odd[:, 0]
            self._odd[fresh, 1] = parsed.odd[fresh, 1]
            if not self.records and self._lines > 1000:
                self._refuse(block)
            if len(parsed.rows):
                self._take(found)
            progress.step(done, 2 * size, "reading lines")
        self._check(block)
        while self.decimals > 6 and self._furthest * 10.0**self.decimals > 2**61:
            self.decimals -= 1

    def _blocks(self) -> Iterator[tuple[bytes, bool, int, int, int]]:
        """Blocks, whether it is the last, their lines, lines before, bytes of the file read."""
        before = 0
        for block, final, done in blocks(self.path, self.report):
            if not before:
                self._choose(block)
            lines = line_count(block)
            yield block, final, lines, before, done
            before += lines

    def _parse(self, item: tuple[bytes, bool, int, int, int]) -> tuple[bytes, bool, int, int, int, _Block]:
        block, final, lines, before, _ = item
        return *item, _read_block(block, self.form, final, lines, before, self.known)

    def _choose(self, block: bytes) -> None:
        form = source.form_of(block[: 1 << 18], len(block) < 1 << 18)
        if form is None:
            for line in re.split("\r\n|\n|\r", block[: 1 << 18].decode("latin-1"))[:1000]:
                form = source.line_form(line, strict=False)
                if form is not None:
                    break
            else:
                self._refuse(block)
        assert form is not None
        self.form = form

    def _take(self, block: _Block) -> None:
        parsed, counts = block.parsed, block.counts
        rows = parsed.rows
        for row, text in parsed.texts:
            if self.form == _B and 101 <= rows["record"][row] <= 105:
                self._add_statistics(int(parsed.units[row] >> 32), int(rows["record"][row]), text)
            else:
                if len(self.texts) >= MOST_TEXTS:
                    text = "(further texts are not kept)"
                rows["d0"][row] = self.texts.setdefault(text, len(self.texts))
                rows["nd"][row] = -1
        before = self.keys.used
        dense = self.keys(block.keys.values)
        if self.keys.used > before:
            # The first record of each new key says what it is.
            present, first = np.unique(block.key, return_index=True)
            named = parsed.keys if self.form == _B else rows["d0"][parsed.keyed]
            self.key_events.extend(named[first[dense[present] >= before]].tolist())
            # Other threads may read these while more are added.
            self.known = self.keys.values[:MOST_KNOWN]
            self.paired = np.pad(self.paired, (0, max(2 * self.keys.used - len(self.paired), 0)))
        self.paired[dense] |= block.paired
        if len(dense) > block.known:
            _renumber(rows, dense)
        self._note_times(block)
        self._turns += int(np.count_nonzero(np.diff(parsed.units)))
        self.decimals = max(self.decimals, min(int(counts[_SCALE]), 15))
        self.partners(block.partners)
        self._bare += counts[_BARE : _BARE + 2]
        self.synchronized |= bool(counts[_SET])
        for side, values in enumerate(block.fourth):
            if len(values) and len(self._fourth[side]) < 10_000:
                found, times = np.unique(values, return_counts=True)
                self._fourth[side].update(dict(zip(found.tolist(), times.tolist(), strict=True)))
        if counts[_ODD]:
            self._note_unknown(rows, parsed.keys)
        self.spill.add(rows, self.units(block.units.values)[block.unit], self.units.used)
        if self.units.used > MOST_PROCESSORS:
            raise TraceFormatError(
                f"names more than {MOST_PROCESSORS} processors",
                file=self.path,
                hint="it is damaged or no PICL trace",
            )

    def _note_times(self, block: _Block) -> None:
        """Steps back in time, within the block and from the one before."""
        first, last, step, furthest = block.seconds.tolist()
        back, line = int(block.counts[_BACK]), int(block.counts[_BACK_LINE])
        if first < self._last:
            back, line = back + 1, int(block.parsed.rows["line"][0])
        self._back, self._back_line = self._back + back, self._back_line or line
        self._step = max(self._step, step, self._last - first)
        self._last, self._furthest = last, max(self._furthest, furthest)

    def _add_statistics(self, processor: int, record: int, text: str) -> None:
        """The rest of a statistics line after NDATA: a quoted pattern and pairs of event and value."""
        tokens = text.split('"', 2)[-1].split() if text.startswith('"') else text.split()[1:]
        for event, value in zip(tokens[::2], tokens[1::2], strict=False):
            try:
                self.statistics[processor, record, int(event)] = float(value.lower().replace("d", "e"))
            except ValueError:
                return

    def _note_unknown(self, rows: NDArray[Any], keys: NDArray[np.int64]) -> None:
        record = rows["record"].astype(np.int64)
        event = np.zeros(len(rows), np.int64) if self.form == _A else keys.copy()
        odd_record = ~tb.RECORDS[self.form][np.minimum(record, 255)]
        odd = odd_record | ((event < 0) & ~tb.EVENT_TABLE[np.clip(-event, 0, 2047)])
        event[odd_record] = 0
        record[~odd_record] = 0
        types, first, counts = np.unique(
            np.stack((record, event))[:, odd], axis=1, return_index=True, return_counts=True
        )
        places = rows["line"][odd][first].tolist()
        for kind, code, line, count in zip(*types.tolist(), places, counts.tolist(), strict=True):
            name = f"record type {kind if self.form == _A else -kind}" if kind else f"event {code}"
            name = name if name in self._unknown or len(self._unknown) < 100 else "further types"
            self._unknown[name] += count
            self._unknown_line.setdefault(name, line)

    @property
    def communicators(self) -> bool:
        """Whether a fourth field of sends and receives is a communicator: both sides have it, and agree."""
        sent, received = self._fourth
        return bool(sent) and sent == received and not self._bare.any()

    # -- what is wrong with the lines

    def _refuse(self, block: bytes) -> None:
        line = next((text for text in re.split(rb"[\r\n]+", block[: 1 << 16]) if text.strip()), b"")
        found = f"its first line is {line[:60].decode('latin-1')!r}" if line else "it holds nothing"
        raise TraceFormatError(
            f"is not a PICL trace: {found}", file=self.path, where="line 1", hint="choose another file"
        )

    def _check(self, block: bytes) -> None:
        """Refuse a file of which too little is a trace."""
        counts, firsts = self._odd.T.tolist()
        limit = source.REFUSED_SHARE * self._lines
        if counts[ln.COMMA] and (not self._first or counts[ln.COMMA] > limit):
            raise TraceFormatError(
                "writes decimal numbers with commas",
                file=self.path,
                where=f"line {firsts[ln.COMMA]}",
                hint="replace the commas by points",
            )
        if not self._first or 0 < self.records <= sum(self._unknown.values()):
            self._refuse(block)
        kinds = (ln.GARBAGE, ln.COMMENT, ln.FOREIGN, ln.COMMA)
        wrong = sum(counts[kind] for kind in kinds)
        if wrong > limit and wrong > 1:
            raise TraceFormatError(
                f"is not a PICL trace: {wrong} of {self._lines} lines cannot be read",
                file=self.path,
                where=f"first in line {min(firsts[kind] for kind in kinds if firsts[kind])}",
                hint="choose another file",
            )

    def tell(self) -> None:
        """Report what was wrong with lines."""
        other = "B" if self.form == _A else "A"
        told: tuple[tuple[int, str, Severity, str], ...] = (
            (ln.GARBAGE, "unreadable lines", "loss", "Lines that are no record were left out."),
            (ln.COMMENT, "comments", "info", "Lines beginning with # were skipped."),
            (ln.SHORT, "lines with missing fields", "loss", "Only time, processor and type were kept."),
            (ln.CUT, "last line cut off", "loss", "The last line is incomplete and was left out."),
            (ln.UNENDED, "last line without end", "info", "The last line has no line end; it was kept."),
            (ln.FOREIGN, "lines of the other format", "loss", f"Lines of PICL format {other} were left out."),
            (ln.COMMA, "decimal commas", "loss", "Lines with a decimal comma were left out."),
            (
                ln.CORRUPT,
                "raw trace data",
                "loss",
                "The tracer met a corrupt record and wrote raw numbers; these lines were left out.",
            ),
            (ln.DIGITS, "times rounded", "notice", "Digits of times beyond the 18th were dropped."),
            (
                ln.DEFINITION,
                "records of all processors",
                "info",
                "Definitions and records that name no single processor were counted only.",
            ),
        )
        for index, name, severity, text in told:
            count, line = self._odd[index].tolist()
            if count:
                self.report.add(name, severity, text, count=count, where=f"line {line}")
        for name, count in self._unknown.items():
            kept = (
                "it counts as communication overhead" if name.startswith("event") else "it changes no state"
            )
            # The library of A has no other types; whoever writes more of them does so often.
            odd = self.form == _A and count <= max(1, RARE * self.records)
            self.report.add(
                f"unknown {name}",
                "loss" if odd else "notice",
                f"A type that is not known was kept; {kept}.",
                count=count,
                where=f"line {self._unknown_line[name]}",
            )
        # In a file sorted by time the processors take turns at every few lines.
        alone = self._back <= max(1, RARE * self.records) and self._turns > 3 * self.units.used
        if self._back and alone:
            self.report.add(
                "lines out of time order",
                "loss",
                "Lines are sorted by time but for single ones, whose times, or those before, are damaged; "
                f"the largest step back is {self._step:g} s.",
                count=self._back,
                where=f"line {self._back_line}",
            )
        elif self._back:
            self.report.add(
                "lines out of time order",
                "info",
                f"Lines were sorted by time; the largest step back is {self._step:g} s.",
                count=self._back,
                where=f"line {self._back_line}",
            )
