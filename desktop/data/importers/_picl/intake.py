"""The first pass over a PICL trace: lines to records, sorted by processor into a file, and their names.

Whether a file is such a trace, and of which format, is decided by its first lines: there is no header.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NoReturn

import numpy as np

from desktop.core.arrays import AnyArray, Flags, Ints
from desktop.core.jit import arithmetic
from desktop.data.consistency import RARE
from desktop.data.events import ImportReport
from desktop.data.importers._picl import lines as ln
from desktop.data.importers._picl import tables as tb
from desktop.data.lines import NumberedBlock, detected, in_order, numbered
from desktop.data.spill import Interner, Spill
from desktop.errors import TraceFormatError
from desktop.progress import Progress

#: Share of unreadable lines above which a file is refused.
REFUSED_SHARE = 0.2
MOST_PROCESSORS = 10_000_000
MOST_TEXTS = 100_000
#: Kinds of lines that are not part of a trace.
_WRONG = [tb.GARBAGE, tb.COMMENT, tb.FOREIGN, tb.COMMA]

_VERBOSE = re.compile(r"\s*([A-Za-z_]+)\s+clock\s+-?\d+\s+-?\d+\s+node\s+-?\d+(\s|$)")
_NUMBER = re.compile(r"[+-]?(\d+[.,]?\d*|[.,]\d+)([eEdD][+-]?\d+)?$")
_INTEGER = re.compile(r"[+-]?\d{1,18}$")
_LINE = re.compile(r"[^\r\n]+")


def line_form(line: str, strict: bool) -> int | None:
    """The format of a line, or None; strict: its type must be known and its fields complete."""
    tokens = line.split()
    verbose = _VERBOSE.match(line)
    if verbose:
        return tb.FORMAT_A if not strict or verbose[1] in tb.NAMES else None
    whole = [int(token) if _INTEGER.match(token) else None for token in tokens[:6]]
    match whole:
        case [int(key), int(), int(micros), int(node), *_] if key >= 1 and abs(micros) < 1_000_000:
            want = tb.FIELDS[key] if key <= tb.TRACE_FILES else len(tokens)
            fields = want in (-1, len(tokens) - 4) or (key == tb.COMPSTATS and len(tokens) == 8)
            return tb.FORMAT_A if not strict or (fields and (node >= -1 or node == tb.HOST)) else None
        case [int(record), int(), _, int(), int(), int(data)] if -record in tb.RECORDS_B and data >= 0:
            return tb.FORMAT_B if _NUMBER.match(tokens[2]) else None
    return None


def form_of(head: bytes, whole: bool) -> int | None:
    """The format of a file from its beginning; whole: the last line of `head` is complete."""
    text = head.replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe").replace(b"\x1a", b"").decode("latin-1")
    whole = whole or not re.search("[\r\n]", text)
    lines = (line[0].strip() for line in _LINE.finditer(text) if whole or line.end() < len(text))
    written = list(islice((line for line in lines if line and not line.startswith("#")), 250))
    if written and written[0].split()[0] == "-1":
        return None  # an ALOG file: creator and date; no record of B is of that type
    for skipped, line in enumerate(written[:51]):
        form = line_form(line, strict=True)
        if form is not None:
            sample = written[skipped : skipped + 200]
            if len(sample) > 1 and whole:
                # The last line of a file may be incomplete.
                sample = sample[:-1] if line_form(sample[-1], strict=False) is None else sample
            wrong = sum(line_form(other, strict=False) != form for other in sample)
            return form if wrong <= REFUSED_SHARE * len(sample) else None
    return None


def detect(path: Path, head: bytes) -> bool:
    suffixes = (".trf", ".ttf", ".raw", ".picl")
    return detected(path, head, lambda text, whole: form_of(text, whole) is not None, suffixes)


@arithmetic
def _give_keys(rows: AnyArray, at: Ints, numbers: Ints, paired: Flags) -> None:
    """Set the key numbers of rows[at]; paired (keys,): set for keys of entries and exits."""
    for i in range(len(at)):
        r = rows[at[i]]
        r["key"] = numbers[i]
        paired[numbers[i]] |= tb.ROLES[r["kind"]] > 0


class Intake:
    """The contents of a trace by unit (a processor and process): records in a file, and their names."""

    def __init__(self, path: Path, report: ImportReport, folder: Path) -> None:
        self.path, self.report = path, report
        self.form = tb.FORMAT_A
        self.units, self.partners = Interner(), Interner()
        self.spill = Spill(folder, ln.RECORD)
        self.paired = np.zeros(16, np.bool_)  # whether a key is one of entries and exits
        self.statistics: dict[tuple[int, int, int], float] = {}  # by processor, quantity, event
        self.texts: dict[str, int] = {}
        self.decimals = 6
        self.notes = np.zeros(ln.NOTED, np.int64)
        self.findings = np.zeros((tb.FOUND, 2), np.int64)
        self._seconds = np.array([-np.inf, -np.inf, 0.0, 0.0])
        self._lines = self._turns = 0
        self._unknown: Counter[str] = Counter()
        self._unknown_line: dict[str, int] = {}
        self._fourth: tuple[Counter[int], Counter[int]] = (Counter(), Counter())

    def close(self) -> None:
        self.spill.close()

    @property
    def records(self) -> int:
        return int(self.notes[ln.USED])

    def read(self, progress: Progress) -> None:
        """Read all lines, which is the first half of `progress`."""
        size = max(self.path.stat().st_size, 1)
        block = b""
        for (block, final, lines, before, done), parsed in in_order(self._parse, self._blocks()):
            if self.notes[ln.TAINTED]:
                parsed = ln.read_lines(block, self.form, final, lines, before, True)
            self._lines = before + lines
            self._note(parsed)
            if not self.records and self._lines > 1000:
                self._refuse_it(block)
            if len(parsed.rows):
                self._take(parsed)
            progress.step(done, 2 * size, "reading lines")
        self._check(block)
        self.decimals = max(6, min(int(self.notes[ln.SCALE]), 15))
        while self.decimals > 6 and self._seconds[ln.FURTHEST] * 10.0**self.decimals > 2**61:
            self.decimals -= 1

    def _blocks(self) -> Iterator[NumberedBlock]:
        for item in numbered(self.path, self.report):
            if not item[3]:
                self._choose(item[0])
            yield item

    def _parse(self, item: NumberedBlock) -> tuple[NumberedBlock, ln.Parsed]:
        return item, ln.read_lines(item[0], self.form, *item[1:4])

    def _choose(self, block: bytes) -> None:
        form = form_of(block[: 1 << 18], len(block) < 1 << 18)
        if form is None:
            lines = re.split("\r\n|\n|\r", block[: 1 << 18].decode("latin-1"))[:1000]
            forms = (line_form(line, strict=False) for line in lines)
            form = next((form for form in forms if form is not None), None)
        if form is None:
            self._refuse_it(block)
        self.form, self.keys = form, Interner(width=ln.WIDTHS[form])

    def _note(self, parsed: ln.Parsed) -> None:
        """Add the notes of a block to those of earlier ones."""
        mine, notes, counts = self.notes, parsed.notes, parsed.findings
        first, most = mine[ln.FIRST] or notes[ln.FIRST], max(mine[ln.SCALE], notes[ln.SCALE])
        mine += notes
        mine[[ln.FIRST, ln.SCALE, ln.TAINTED]] = first, most, notes[ln.TAINTED]
        if len(parsed.rows):
            begin, end, step, furthest = parsed.seconds.tolist()
            last = self._seconds[ln.END]
            if begin < last:
                counts[tb.BACK] += 1, 0
                counts[tb.BACK, 1] = parsed.rows["line"][0]
            most = self._seconds[[ln.STEP, ln.FURTHEST]]
            self._seconds[:] = begin, end, *np.maximum(most, (max(step, last - begin), furthest))
        self.findings[:, 1] = np.where(self.findings[:, 0] > 0, self.findings[:, 1], counts[:, 1])
        self.findings[:, 0] += counts[:, 0]

    def _take(self, parsed: ln.Parsed) -> None:
        rows = parsed.rows
        for row, text in parsed.texts:
            if rows["kind"][row] >= tb.STATISTICS:
                self._add_statistics(int(parsed.units[row] >> 32), int(rows["kind"][row]), text)
            else:
                if len(self.texts) >= MOST_TEXTS:
                    text = "(further texts are not kept)"
                rows["d0"][row] = self.texts.setdefault(text, len(self.texts))
                rows["nd"][row] = -1
        numbers = self.keys(parsed.keys)
        self.paired = np.pad(self.paired, (0, max(self.keys.used - len(self.paired), 0)))
        _give_keys(rows, parsed.keyed, numbers, self.paired)
        self._turns += int(np.count_nonzero(np.diff(parsed.units)))
        self.partners(parsed.partners)
        for side, values in enumerate(parsed.fourth):
            if len(values) and len(self._fourth[side]) < 10_000:
                values_there, times = np.unique(values, return_counts=True)
                self._fourth[side].update(dict(zip(values_there.tolist(), times.tolist(), strict=True)))
        if parsed.notes[ln.ODD]:
            self._note_unknown(rows, parsed.keys[:, 0])
        self.spill.add(rows, self.units(parsed.units), self.units.used)
        if self.units.used > MOST_PROCESSORS:
            hint = "it is damaged or no PICL trace"
            self._refuse(f"names more than {MOST_PROCESSORS} processors", hint=hint)

    def _add_statistics(self, processor: int, kind: int, text: str) -> None:
        """The part of a statistics line after NDATA: a quoted pattern and pairs of event and value."""
        tokens = text.split('"', 2)[-1].split() if text.startswith('"') else text.split()[1:]
        for event, value in zip(tokens[::2], tokens[1::2], strict=False):
            try:
                number = float(value.lower().replace("d", "e"))
                self.statistics[processor, kind - tb.STATISTICS, int(event)] = number
            except ValueError:
                return

    def _note_unknown(self, rows: AnyArray, keys: Ints) -> None:
        record = np.where(rows["kind"] == tb.UNKNOWN, rows["d3"], 0)
        event = np.zeros(len(rows), np.int64) if self.form == tb.FORMAT_A else keys.copy()
        defined = (event >= 0) | tb.EVENT_TABLE[np.clip(-event, 0, len(tb.EVENT_TABLE) - 1)]
        event[defined | (record != 0)] = 0
        odd = (record != 0) | (event != 0)
        types, first, counts = np.unique(
            np.stack((record, event))[:, odd], axis=1, return_index=True, return_counts=True
        )
        places = rows["line"][odd][first].tolist()
        for kind, code, line, count in zip(*types.tolist(), places, counts.tolist(), strict=True):
            name = f"record type {kind}" if kind else f"event {code}"
            name = name if name in self._unknown or len(self._unknown) < 100 else "further types"
            self._unknown[name] += count
            self._unknown_line.setdefault(name, line)

    @property
    def communicators(self) -> bool:
        """Whether the fourth field of sends and receives is a communicator: both sides have it, and agree."""
        sent, received = self._fourth
        return bool(sent) and sent == received and not self.notes[ln.BARE : ln.NOTED].any()

    # -- damaged lines

    def _refuse(self, what: str, where: str = "", hint: str = "choose another file") -> NoReturn:
        raise TraceFormatError(what, file=self.path, where=where, hint=hint)

    def _refuse_it(self, block: bytes) -> NoReturn:
        line = next((text for text in re.split(rb"[\r\n]+", block[: 1 << 16]) if text.strip()), b"")
        seen = f"its first line is {line[:60].decode('latin-1')!r}" if line else "it holds nothing"
        self._refuse(f"is not a PICL trace: {seen}", "line 1")

    def _check(self, block: bytes) -> None:
        """Refuse a file with too many unreadable lines."""
        counts, firsts = self.findings.T.tolist()
        limit = REFUSED_SHARE * self._lines
        if counts[tb.COMMA] and (not self.notes[ln.FIRST] or counts[tb.COMMA] > limit):
            hint = "replace the commas by points"
            self._refuse("writes decimal numbers with commas", f"line {firsts[tb.COMMA]}", hint)
        if not self.notes[ln.FIRST] or 0 < self.records <= self._unknown.total():
            self._refuse_it(block)
        wrong = sum(counts[kind] for kind in _WRONG)
        if wrong > limit and wrong > 1:
            first = min(firsts[kind] for kind in _WRONG if firsts[kind])
            reason = f"is not a PICL trace: {wrong} of {self._lines} lines cannot be read"
            self._refuse(reason, f"first in line {first}")

    def tell(self) -> None:
        """Report what was wrong with the lines."""
        facts = {
            "other": "B" if self.form == tb.FORMAT_A else "A",
            "decimals": self.decimals,
            "step": float(self._seconds[ln.STEP]),
        }
        # In a file sorted by time the processors alternate every few lines.
        alone = self.findings[tb.BACK, 0] <= max(1, RARE * self.records) and self._turns > 3 * self.units.used
        for name, (count, line) in zip(tb.NAMED, self.findings[: tb.BACK + 1].tolist(), strict=False):
            single = alone and name == tb.NAMED[tb.BACK]
            severity, text = tb.FINDINGS[f"single {name}" if single else name]
            if count:
                self.report.add(name, severity, text.format(**facts), count=count, where=f"line {line}")
        for name, count in self._unknown.items():
            consequence = (
                "counts as communication overhead" if name.startswith("event") else "changes no state"
            )
            # The library of A has no other types; a writer that adds types uses them often.
            odd = self.form == tb.FORMAT_A and count <= max(1, RARE * self.records)
            text, first = f"A type that is not known was kept; it {consequence}.", self._unknown_line[name]
            severity = "loss" if odd else "notice"
            self.report.add(f"unknown {name}", severity, text, count=count, where=f"line {first}")
