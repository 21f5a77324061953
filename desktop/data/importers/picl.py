"""PICL traces: PICL 1 (format A, compact and verbose lines) and PICL 2 as MPICL writes it (format B).

Both are lines of text without header, version or table of names; what a file is, is found from its first
lines. The grammars are in `_picl.lines`, the rules of pairing and classification in `_picl.states`; here the
records of each processor become what the sink takes, and oddities are reported.

Sources: the node library of PICL 1.x (Oak Ridge National Laboratory), ORNL/TM-12125 (Worley), and for the
states ORNL/TM-11637, section 1.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from desktop.data.events import (
    Activity,
    EventKind,
    Importer,
    Location,
    MessageKind,
    Region,
    Severity,
    Sink,
)
from desktop.data.importers._picl import lines as ln
from desktop.data.importers._picl import source
from desktop.data.importers._picl import states as st
from desktop.data.importers._picl import tables as tb
from desktop.data.lines import blocks
from desktop.data.spill import Interner, Spill, by_time, room
from desktop.errors import TraceFormatError
from desktop.progress import Progress

CHUNK = 1 << 18
MOST_PROCESSORS = 10_000_000
MOST_TEXTS = 100_000

_A, _B = ln.FORMAT_A, ln.FORMAT_B


@dataclass
class _Statistics:
    """Statistics records of format B: (processor, record type, event) to value."""

    values: dict[tuple[int, int, int], float] = field(default_factory=dict)

    def add(self, processor: int, record: int, text: str) -> None:
        """The rest of a statistics line after NDATA: a quoted pattern and pairs of event and value."""
        tokens = text.split('"', 2)[-1].split() if text.startswith('"') else text.split()[1:]
        for event, value in zip(tokens[::2], tokens[1::2], strict=False):
            try:
                key = (processor, record, int(event))
                self.values[key] = float(value.lower().replace("d", "e"))
            except ValueError:
                return


@dataclass
class _Place:
    """A location to be: its processor, process (-1: the only one), units of the spill file, index."""

    processor: int
    process: int
    units: list[int]
    index: int = -1
    location: Location = field(default_factory=lambda: Location(0))


class _Reading:
    """One import."""

    def __init__(self, path: Path, sink: Sink, progress: Progress, folder: Path) -> None:
        self.path, self.sink, self.progress, self.folder = path, sink, progress, folder
        self.report = sink.report
        self.form = _A
        self.lines = ln.LineReader(_A)
        self.units, self.keys = Interner(), Interner()
        self.partners = Interner()
        self.spill = Spill(folder, ln.RECORD)
        self.key_events: list[int] = []
        self.statistics = _Statistics()
        self.texts: dict[str, int] = {}
        self.unknown: Counter[str] = Counter()
        self.unknown_line: dict[str, int] = {}
        self.decimals = 6
        self.furthest = 0.0  # seconds
        self.backward = [0, 0.0, 0]  # steps back, the largest in seconds, line of the first
        self.previous = -np.inf
        self.fourth: tuple[Counter[int], Counter[int]] = (Counter(), Counter())
        self.bare = [0, 0]  # sends and receives without a fourth field

    # -- first pass: lines to the spill file

    def parse(self) -> None:
        size = max(self.path.stat().st_size, 1)
        started = False
        for block, final, done in blocks(self.path, self.report):
            if not started:
                self._choose(block)
                started = True
            rows, texts = self.lines.parse(block, final)
            if self.lines.state[ln.RECORDS] == 0 and self.lines.state[ln.LINE] > 1000:
                self._refuse_empty(block)
            self._take(rows, texts)
            self.progress.step(done, 2 * size, "reading lines")
        self._check_lines(block)

    def _choose(self, block: bytes) -> None:
        form = source.form_of(block[: 1 << 18], len(block) < 1 << 18)
        if form is None:
            for line in re.split("\r\n|\n|\r", block[: 1 << 18].decode("latin-1"))[:1000]:
                form = source.line_form(line, strict=False)
                if form is not None:
                    break
            else:
                self._refuse_empty(block)
        assert form is not None
        self.form = form
        self.lines = ln.LineReader(form)

    def _refuse_empty(self, block: bytes) -> None:
        line = next((text for text in re.split(rb"[\r\n]+", block[: 1 << 16]) if text.strip()), b"")
        found = f"its first line is {line[:60].decode('latin-1')!r}" if line else "it holds nothing"
        raise TraceFormatError(
            f"is not a PICL trace: {found}", file=self.path, where="line 1", hint="choose another file"
        )

    def _take(self, rows: NDArray[Any], texts: list[tuple[int, str]]) -> None:
        if not len(rows):
            return
        a = self.form == _A
        record, event = rows["record"], rows["event"]
        for row, text in texts:
            if not a and 101 <= record[row] <= 105:
                self.statistics.add(int(rows["unit"][row] >> 32), int(record[row]), text)
            else:
                if len(self.texts) >= MOST_TEXTS:
                    text = "(further texts are not kept)"
                rows["d0"][row] = self.texts.setdefault(text, len(self.texts))
                rows["nd"][row] = -1  # marks the number of a text
        self._note_unknown(rows)
        self._note_order(rows)
        paired = tb.ROLES[self.form][record] > 0
        if a:
            paired &= rows["key"] != ln.NONE
        before = self.keys.used
        key = self.keys(np.ascontiguousarray(rows["key"][paired]))
        new = key >= before
        if new.any():
            _, first = np.unique(key[new], return_index=True)
            self.key_events.extend(event[paired][new][first].tolist())
        rows["key"] = -1
        rows["key"][paired] = key
        self._note_partners(rows)
        self.decimals = max(self.decimals, int(rows["scale"].max()))
        self.spill.add(rows, self.units(np.ascontiguousarray(rows["unit"])), self.units.used)
        if self.units.used > MOST_PROCESSORS:
            raise TraceFormatError(
                f"names more than {MOST_PROCESSORS} processors",
                file=self.path,
                hint="it is damaged or no PICL trace",
            )

    def _note_unknown(self, rows: NDArray[Any]) -> None:
        record, event = rows["record"].astype(np.int64), rows["event"].astype(np.int64)
        if self.form == _A:
            event[:] = 0
            odd = odd_record = record > 24
        else:
            odd_record = ~tb.RECORD_TABLE[np.minimum(record, 255)]
            odd = odd_record | ((event < 0) & ~tb.EVENT_TABLE[np.clip(-event, 0, 2047)])
            event[odd_record] = 0
        if not odd.any():
            return
        record[~odd_record] = 0
        types, first, counts = np.unique(
            np.stack((record, event))[:, odd], axis=1, return_index=True, return_counts=True
        )
        places = rows["line"][odd][first].tolist()
        for kind, code, line, count in zip(*types.tolist(), places, counts.tolist(), strict=True):
            name = f"record type {kind if self.form == _A else -kind}" if kind else f"event {code}"
            name = name if name in self.unknown or len(self.unknown) < 100 else "further types"
            self.unknown[name] += count
            self.unknown_line.setdefault(name, line)

    def _note_order(self, rows: NDArray[Any]) -> None:
        seconds = rows["time"] * np.power(10.0, -rows["scale"].astype(np.float64))
        self.furthest = max(self.furthest, float(np.abs(seconds).max()))
        steps = np.diff(seconds, prepend=self.previous if np.isfinite(self.previous) else seconds[:1])
        back = steps < 0
        if back.any():
            if not self.backward[0]:
                self.backward[2] = int(rows["line"][np.argmax(back)])
            self.backward[0] += int(back.sum())
            self.backward[1] = max(self.backward[1], float(-steps.min()))
        self.previous = float(seconds[-1])

    def _note_partners(self, rows: NDArray[Any]) -> None:
        sends, receives = self._ends(rows)
        for side, chosen in enumerate((sends, receives)):
            named = rows["d2"][chosen]
            named = np.unique(named[((named >= 0) & (named < 1 << 31)) | (named == ln.HOST)])
            if len(named):
                self.partners(named)
            if self.form == _B and chosen.any():
                full = rows["nd"][chosen] >= 4
                self.bare[side] += int((~full).sum())
                values, counts = np.unique(rows["d3"][chosen][full], return_counts=True)
                if len(self.fourth[side]) < 10_000:
                    self.fourth[side].update(dict(zip(values.tolist(), counts.tolist(), strict=True)))

    def _ends(self, rows: NDArray[Any]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which records are sends and receives with all their fields."""
        record, whole = rows["record"], rows["nd"] >= 3
        if self.form == _A:
            return whole & (record == 4), whole & ((record == 6) | (record == 8))
        event = rows["event"]
        return (
            whole & (record == 3) & tb.SEND_TABLE[np.clip(event, -64, 0) + 64],
            whole & (record == 4) & tb.RECEIVE_TABLE[np.clip(event, -64, 0) + 64],
        )

    def _check_lines(self, block: bytes) -> None:
        counts, state = self.lines.counts, self.lines.state
        if state[ln.FIRST_RECORD] == 0:
            if counts[ln.COMMA]:
                self._refuse_commas()
            self._refuse_empty(block)
        known = int(state[ln.RECORDS]) - sum(self.unknown.values())
        if known <= 0 and state[ln.RECORDS] > 0:
            self._refuse_empty(block)
        limit = source.REFUSED_SHARE * int(state[ln.LINE])
        if counts[ln.COMMA] > limit:
            self._refuse_commas()
        wrong = int(counts[ln.GARBAGE] + counts[ln.COMMENT] + counts[ln.FOREIGN] + counts[ln.COMMA])
        if wrong > limit and wrong > 1:
            places = [int(self.lines.firsts[k]) for k in (ln.GARBAGE, ln.COMMENT, ln.FOREIGN, ln.COMMA)]
            raise TraceFormatError(
                f"is not a PICL trace: {wrong} of {int(state[ln.LINE])} lines cannot be read",
                file=self.path,
                where=f"first in line {min(p for p in places if p)}",
                hint="choose another file",
            )

    def _refuse_commas(self) -> None:
        raise TraceFormatError(
            "writes decimal numbers with commas",
            file=self.path,
            where=f"line {int(self.lines.firsts[ln.COMMA])}",
            hint="replace the commas by points",
        )

    # -- second pass: processor by processor to the sink

    def deliver(self) -> None:
        places = self._places()
        self.sink.describe(
            ticks_per_second=float(10**self.decimals), nesting="strongest", notes=self._notes()
        )
        self._define_regions()
        for place in places:
            place.index = self.sink.location(place.location)
        by_processor = {place.processor: place.index for place in reversed(places)}
        self.known = np.array(sorted(by_processor), np.int64)
        self.index_of = np.array([by_processor[p] for p in self.known.tolist()], np.int64)
        self.cpus = np.array([p.processor for p in places if p.processor >= 0], np.int64)
        total = max(int(self.lines.state[ln.RECORDS]), 1)
        size = max(self.path.stat().st_size, 1)
        self.buckets = 1 + total // (1 << 19)
        self.messages = Spill(self.folder, st.ENDPOINT)
        self.found: dict[str, list[Any]] = {}
        self.twins = 0
        done = 0
        for place in places:
            self._deliver(place)
            done += place.location.records
            self.progress.step(size + size * done / total, 2 * size, "arranging processors")
        self._match()
        self.messages.close()
        self._tell(total)

    def _places(self) -> list[_Place]:
        processes: dict[int, dict[int, list[int]]] = {}
        for unit, value in enumerate(self.units.values.tolist()):
            processes.setdefault(value >> 32, {}).setdefault((value & 0xFFFFFFFF) - 1, []).append(unit)
        places: list[_Place] = []
        for processor in sorted({*processes, *self.partners.values.tolist()}):
            parts = processes.get(processor, {})
            named = sorted(p for p in parts if p >= 0)
            if len(named) > 1:
                places += [_Place(processor, process, parts[process]) for process in named]
                places[-len(named)].units += parts.get(-1, [])
            else:
                places.append(_Place(processor, -1, [u for units in parts.values() for u in units]))
        places.sort(key=lambda p: (p.processor == ln.HOST, p.processor, p.process))
        word = "node" if self.form == _A else "processor"
        for place in places:
            host = place.processor == ln.HOST
            several = place.process >= 0
            place.location = Location(
                id=place.processor if not several else (place.processor << 32) | place.process,
                name="host" if host else f"{word} {place.processor}" + f".{place.process}" * several,
                rank=-1 if host else place.processor,
                kind="host" if host else "cpu",
            )
        self.split = any(place.process >= 0 for place in places)
        # A fourth field of sends and receives is a communicator only if both sides have it and agree.
        sent, received = self.fourth
        self.communicators = bool(sent) and sent == received and not any(self.bare) and not self.split
        whole = self.decimals
        self.decimals = min(whole, 15)
        while self.decimals > 6 and self.furthest * 10.0**self.decimals > 2**61:
            self.decimals -= 1
        return places

    def _notes(self) -> dict[str, Any]:
        notes: dict[str, Any] = {"format": "PICL 1 (A)" if self.form == _A else "PICL 2 (B)"}
        if self.statistics.values:
            notes["statistics"] = [
                {
                    "processor": processor,
                    "event": event,
                    "name": tb.EVENTS_B.get(event, ""),
                    "quantity": tb.STATISTICS[record],
                    "value": value,
                }
                for (processor, record, event), value in sorted(self.statistics.values.items())[:100_000]
            ]
        return notes

    def _define_regions(self) -> None:
        region = self.sink.region
        self.state_regions = np.full(st.STATES, -1, np.int64)
        for state, what in tb.STATES:
            if self.form == _A or what.activity is Activity.UNMEASURED:
                self.state_regions[state] = region(what)
        events = self.key_events
        self.region_of = np.full(max(len(events), 1), -1, np.int64)
        self.user = np.zeros(len(self.region_of), np.bool_)
        self.collective = np.full(len(self.region_of), -1, np.int64)
        self.trace_key = -1
        for key, event in enumerate(events):
            if self.form == _A:
                if self.keys.values[key] == ln.WAIT:
                    continue
                name = tb.BLOCKS_A.get(event, f"block {event}")
                own = event in tb.BLOCKS_A
                self.region_of[key] = region(
                    Region(name, tb.role(name), "picl" if own else "user", Activity.COMPUTING)
                )
                if own:
                    self.collective[key] = self.sink.text(name)
                continue
            name = f"event {event}" if event >= 0 else tb.EVENTS_B.get(event, f"unknown event {event}")
            self.user[key] = event >= 0
            paradigm = "user" if event >= 0 else "picl"
            self.region_of[key] = region(Region(name, tb.role(name), paradigm, tb.activity_b(event)))
            if event == -402 or -793 <= event <= -780:
                self.collective[key] = self.sink.text(name)
            if event == -901:
                self.trace_key = key

    def _note(self, name: str, severity: Severity, count: int, line: int, text: str) -> None:
        """Gather a finding over processors; the smallest line number is kept."""
        if count:
            found = self.found.setdefault(name, [severity, 0, line, text])
            found[1] += count
            found[2] = min(found[2], line)

    def _deliver(self, place: _Place) -> None:
        location = place.location
        parts = [self.spill.read(unit) for unit in place.units]
        if not parts:
            location.damage = "no data"
            return
        rows = parts[0] if len(parts) == 1 else np.concatenate(parts)
        location.records = len(rows)
        if self.form == _A:
            rows = self._one_run(rows)
        elif (rounded := int(st.to_ticks(rows, self.decimals))) > 0:
            self._note(
                "times rounded", "notice", rounded, int(rows["line"].min()),
                f"Times have more decimals than can be kept; they were rounded to {self.decimals}.",
            )  # fmt: skip
        rows = by_time(self.folder, rows)
        n = len(rows)
        location.first, location.last = int(rows[0]["time"]), int(rows[-1]["time"])
        self.twins += int(st.twins(rows))
        roles = tb.ROLES[self.form]
        mate = room(self.folder, n, np.dtype(np.int64))
        heads = np.full(len(self.region_of), -1, np.int64)
        orphans, orphan_line, opened, open_line = st.pair(rows, roles, heads, mate)
        self._note(
            "exits without entry", "notice", orphans, orphan_line,
            "Ends of events or waits without a begin were ignored.",
        )  # fmt: skip
        self._note(
            "entries without exit", "notice", opened, open_line,
            "Events or waits that never end were closed at their processor's last record "
            "(user events where tracing ends).",
        )  # fmt: skip
        if self.form == _A:
            states: _StatesA | _StatesB = _StatesA(self, place, rows, mate)
        else:
            states = _StatesB(self, place, rows, mate)
        self._events(place, rows, mate, states)
        self._collectives(place, rows, mate)
        self._messages(place, rows)
        self._marks(place, rows)

    def _one_run(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Without records on another clock and of former runs; rows in line order, format A."""
        record, time = rows["record"], rows["time"]
        begin = 0
        syncs = np.flatnonzero(record == 23)
        if len(syncs):
            begin = int(syncs[-1]) + 1 if syncs[-1] + 1 < len(rows) else 0
        elif len(rows) >= 8:
            begin = _clock_jump(time)
        if begin:
            self._note(
                "clock jump", "loss", begin, int(rows["line"][0]),
                "Records from before the clocks were synchronized are on another clock and were left out.",
            )  # fmt: skip
            rows = rows[begin:]
        run = _last_run(rows)
        if run:
            self._note(
                "several runs", "loss", run, int(rows["line"][run]),
                "The file holds several runs, one appended to the other; the last one was read. To see "
                "another one, split the file at the line named here.",
            )  # fmt: skip
            rows = rows[run:]
        return rows

    def _events(
        self, place: _Place, rows: NDArray[Any], mate: NDArray[Any], states: _StatesA | _StatesB
    ) -> None:
        roles = tb.ROLES[self.form]
        dangling = np.zeros(len(self.region_of), np.int64)
        now = st.BUSY
        for begin, end in _chunks(rows):
            size = 2 * (end - begin) + int(dangling.sum())
            time, kind, region = np.empty(size, np.int64), np.empty(size, np.uint8), np.empty(size, np.uint32)
            used = st.regions(
                rows, roles, mate, self.region_of, self.user, dangling, self.trace_key, begin, end,
                time, kind, region,
            )  # fmt: skip
            times, changed = states.changes(begin, end)
            before = np.concatenate(([now], changed))[:-1]
            now = int(changed[-1]) if len(changed) else now
            twice = np.repeat(times, 2)
            both = np.stack((self.state_regions[before], self.state_regions[changed]), axis=1).ravel()
            kinds = np.tile(np.array([EventKind.LEAVE, EventKind.ENTER], np.uint8), len(times))
            real = both >= 0
            time = np.concatenate((time[:used], twice[real]))
            kind = np.concatenate((kind[:used], kinds[real]))
            region = np.concatenate((region[:used], both[real].astype(np.uint32)))
            order = np.argsort(time, kind="stable")
            self._append("events", place, time=time[order], kind=kind[order], region=region[order])
        still = np.repeat(np.arange(len(dangling)), dangling)
        open_regions = self.region_of[still]
        if self.state_regions[now] >= 0:
            open_regions = np.append(open_regions, self.state_regions[now])
        self._append(
            "events",
            place,
            time=np.full(len(open_regions), place.location.last, np.int64),
            kind=np.full(len(open_regions), EventKind.LEAVE, np.uint8),
            region=open_regions.astype(np.uint32),
        )
        states.finish()

    def _append(self, table: str, place: _Place, **columns: NDArray[Any]) -> None:
        if len(next(iter(columns.values()))):
            self.sink.append(table, place.index, **columns)

    def _index(self, processors: NDArray[np.int64]) -> NDArray[np.int32]:
        """Location index by processor number, -1 for wildcards and the like."""
        at = np.minimum(np.searchsorted(self.known, processors), len(self.known) - 1)
        return np.where(self.known[at] == processors, self.index_of[at], -1).astype(np.int32)

    def _collectives(self, place: _Place, rows: NDArray[Any], mate: NDArray[Any]) -> None:
        for begin, end in _chunks(rows):
            key = rows["key"][begin:end]
            entry = (tb.ROLES[self.form][rows["record"][begin:end]] == 1) & (key >= 0)
            at = np.flatnonzero(entry & (self.collective[key] >= 0)) + begin
            if not len(at):
                continue
            chosen, partner = rows[at], mate[at]
            closed = partner >= 0
            ends = np.where(closed, rows["time"][np.maximum(partner, 0)], place.location.last)
            received = np.where(closed, rows["d0"][np.maximum(partner, 0)], 0)
            fields = np.stack([chosen["d0"], chosen["d1"], chosen["d2"]])
            if self.form == _A:
                sent = received = np.zeros(len(at), np.int64)
                subset = np.zeros(len(at), np.int64)
                root = np.where(chosen["event"] == -1, -1, chosen["d1"])
            else:
                event, nd = chosen["event"], chosen["nd"]
                rooted = np.isin(event, list(tb.ROOTED_B)) & (nd >= 3)
                barrier = event == -402
                root = np.where(rooted, fields[1], -1)
                subset = np.select([rooted, barrier], [fields[2], fields[0]], fields[1])
                sent = np.where(barrier | (nd < 2), 0, np.maximum(fields[0], 0))
                # The exit of an allreduce carries something else, that of a barrier nothing.
                received = np.where(barrier | (event == -782), 0, np.maximum(received, 0))
            self._append(
                "collectives",
                place,
                begin=np.ascontiguousarray(chosen["time"]),
                end=np.asarray(ends, np.int64),
                operation=self.collective[chosen["key"]].astype(np.uint32),
                communicator=np.asarray(subset & 0xFFFFFFFF, np.uint32),
                root=self._index(root),
                sent=sent,
                received=received,
            )

    def _messages(self, place: _Place, rows: NDArray[Any]) -> None:
        own = place.processor
        for begin, end in _chunks(rows):
            part = rows[begin:end]
            sends, receives = self._ends(part)
            at = np.flatnonzero(sends | receives)
            if not len(at):
                continue
            chosen, is_send = part[at], sends[at]
            if self.form == _A:
                kinds = np.where(is_send, MessageKind.SEND, MessageKind.RECV)
            else:
                kinds = tb.KIND_TABLE[chosen["event"] + 64]
            partner = np.ascontiguousarray(chosen["d2"])
            if self.form == _A and (broadcast := is_send & (partner == -1)).any():
                others = self.cpus[self.cpus != own]
                copies = np.where(broadcast, len(others), 1)
                chosen, kinds, is_send = (np.repeat(x, copies) for x in (chosen, kinds, is_send))
                partner = np.repeat(partner, copies)
                partner[np.repeat(broadcast, copies)] = np.tile(others, int(broadcast.sum()))
            communicator = chosen["d3"] if self.communicators else np.zeros(len(chosen), np.int64)
            self._append(
                "messages",
                place,
                time=np.ascontiguousarray(chosen["time"]),
                kind=kinds.astype(np.uint8),
                peer=self._index(partner),
                communicator=(communicator & 0xFFFFFFFF).astype(np.uint32),
                tag=np.ascontiguousarray(chosen["d1"]),
                bytes=np.ascontiguousarray(chosen["d0"]),
                request=np.zeros(len(chosen), np.uint64),
            )
            ends = np.zeros(len(chosen), st.ENDPOINT)
            ends["time"], ends["tag"], ends["bytes"] = chosen["time"], chosen["d1"], chosen["d0"]
            ends["source"] = np.where(is_send, own, partner)
            ends["destination"] = np.where(is_send, partner, own)
            ends["communicator"] = communicator
            ends["side"] = ~is_send
            channel = ends["source"] * 1_000_003 + ends["destination"] * 10_007 + ends["tag"]
            self.messages.add(ends, np.mod(channel, self.buckets), self.buckets)

    def _match(self) -> None:
        result = np.zeros(st.MATCH, np.int64)
        for bucket in range(self.buckets):
            ends = self.messages.read(bucket)
            order = np.lexsort(
                (
                    ends["time"],
                    ends["side"],
                    ends["communicator"],
                    ends["tag"],
                    ends["destination"],
                    ends["source"],
                )
            )
            st.match(ends, order, self.communicators, result)
        self.matches = result

    def _marks(self, place: _Place, rows: NDArray[Any]) -> None:
        names: dict[tuple[int, int], str] = {}
        texts = list(self.texts)
        for begin, end in _chunks(rows):
            part = rows[begin:end]
            record, event = part["record"], part["event"]
            spoken = part["nd"] == -1
            if self.form == _A:
                chosen = spoken | np.isin(record, (9, 15, 17, 18, 22))
            else:
                chosen = spoken | ((record == 2) & ((event >= 0) | ((event <= -912) & (event >= -914))))
            at = np.flatnonzero(chosen)
            if not len(at):
                continue
            spoken = spoken[at]
            value = np.where(spoken, part["d0"][at], part["d0"][at] if self.form == _A else event[at])
            kind = np.where(spoken, -1, record[at]).astype(np.int64)
            value[np.isin(kind, (9, 17, 18, 22)) & (self.form == _A)] = 0
            pairs, inverse = np.unique(np.stack((kind, value)), axis=1, return_inverse=True)
            for k, v in pairs.T.tolist():
                if (k, v) not in names:
                    if k == -1:
                        names[k, v] = texts[v]
                    elif self.form == _B:
                        names[k, v] = f"mark {v}" if v >= 0 else tb.EVENTS_B[v]
                    else:
                        names[k, v] = f"mark {v}" if k == 15 else ln.NAMES[k].replace("_", " ")
            numbers = np.array([self.sink.text(names[k, v]) for k, v in pairs.T.tolist()], np.uint32)
            numbers = numbers[inverse.ravel()]
            self._append("marks", place, time=np.ascontiguousarray(part["time"][at]), text=numbers)

    # -- the report

    def _tell(self, total: int) -> None:
        self._tell_lines()
        for name, (severity, count, line, text) in self.found.items():
            self.report.add(name, severity, text, count=count, where=f"line {line}" if line else "")
        if 2 * self.twins > total:
            self.report.add(
                "repeated lines",
                "notice",
                "More than half of the lines occur twice, as when a file was appended to itself. The curve "
                "is the same without the repeated lines, counts of messages are not: remove them.",
                count=self.twins,
            )
        result = self.matches
        unit = 10.0**-self.decimals
        if result[st.MATCHED]:
            self.report.add(
                "messages matched",
                "info",
                "Messages with both ends in the trace.",
                count=int(result[st.MATCHED]),
            )
        for name, index in (("sends", st.SENDS_LEFT), ("receives", st.RECEIVES_LEFT)):
            if result[index]:
                self.report.add(
                    f"{name} without partner",
                    "notice",
                    f"There are {name} of which the other end is not in the trace.",
                    count=int(result[index]),
                )
        if result[st.EARLY]:
            self.report.add(
                "receives before their send",
                "notice",
                f"The clocks contradict each other by up to {result[st.EARLIEST] * unit:g} s; times are "
                "shown as recorded.",
                count=int(result[st.EARLY]),
            )
        if result[st.UNEQUAL]:
            self.report.add(
                "messages of unequal length",
                "notice",
                "The two ends of a message give different numbers of bytes; it was kept.",
                count=int(result[st.UNEQUAL]),
            )

    def _tell_lines(self) -> None:
        counts, firsts = self.lines.counts, self.lines.firsts
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
            if counts[index]:
                where = f"line {int(firsts[index])}"
                self.report.add(name, severity, text, count=int(counts[index]), where=where)
        for name, count in self.unknown.items():
            self.report.add(
                f"unknown {name}",
                "notice",
                "A type that is not known was kept; "
                + (
                    "it counts as communication overhead."
                    if name.startswith("event")
                    else "it changes no state."
                ),
                count=count,
                where=f"line {self.unknown_line[name]}",
            )
        steps, largest, line = self.backward
        if steps:
            self.report.add(
                "lines out of time order",
                "info",
                f"Lines were sorted by time; the largest step back is {largest:g} s.",
                count=int(steps),
                where=f"line {line}",
            )


class _StatesA:
    """Changes of state of a processor of format A, chunk by chunk."""

    def __init__(self, reading: _Reading, place: _Place, rows: NDArray[Any], mate: NDArray[Any]) -> None:
        self._reading, self._place, self._rows, self._mate = reading, place, rows, mate
        record = rows["record"]
        seen = np.bincount(np.clip(record, 0, 25), minlength=26)
        counted = (record == 11) & (rows["nd"] > 0)
        stamps = rows["time"][counted]
        several = len(stamps) > 1 and bool(stamps[0] < stamps[-1])
        levels = rows["d1"][((record == 1) | (record == 14)) & (rows["nd"] >= 3)]
        calls = bool(seen[[4, 6, 7, 8, 10]].any())
        surrounding = not len(levels) or int(levels.max()) >= 2 or not calls
        self._usable = several and surrounding
        self._restarted = bool(seen[1] > 1)
        self._carry = np.zeros(st.CARRY, np.int64)
        self._total = int(rows["d0"][counted].max()) if counted.any() else 0
        location, line = place.location, int(rows[0]["line"])
        note = reading._note
        alone = location.first == location.last
        described = bool(seen[[4, 6, 7, 8, 9, 10, 15, 20, 21, 22]].any())
        if not self._usable and not described and not alone:
            self._carry[st.STOPPED] = 1
            self._silent = True
            location.damage = "no data"
            elapsed = int(rows[-1]["time"] - rows[0]["time"])
            note(
                "statistics only", "error", 1, line,
                f"There are statistics but no events, so there is no curve. Totals of {location.name}: "
                f"computing {(elapsed - self._total) * 1e-6:g} s, communicating {self._total * 1e-6:g} s.",
            )  # fmt: skip
        else:
            self._silent = False
            if not self._usable and calls:
                note(
                    "sends without duration", "notice", 1, line,
                    "Sends and non-blocking receives have no duration in this trace: only waiting is known.",
                )  # fmt: skip
        if alone:
            location.damage = "no data"
        if seen[17]:
            location.damage = "buffer full"
            note(
                "trace buffer full", "loss", int(seen[17]), int(rows["line"][record == 17].min()),
                "The trace buffer was full; from there on nothing is known of the processor until its end.",
            )  # fmt: skip
        if seen[18]:
            note(
                "trace flushes", "notice", int(seen[18]), int(rows["line"][record == 18].min()),
                "The program was held up while its trace was written; the time counts as overhead.",
            )  # fmt: skip
        if not seen[19] and not alone and location.kind == "cpu":
            location.damage = location.damage or "incomplete"
            note(
                "tracing without end", "notice", 1, line,
                "The end of tracing (trace_exit) is missing; a processor ends with its last record.",
            )  # fmt: skip

    def changes(self, begin: int, end: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Times and new states in rows[begin:end]."""
        if self._silent:
            first = begin == 0
            return self._rows["time"][:first].copy(), np.full(int(first), st.NO_DATA, np.int64)
        time, state = np.empty(2 * (end - begin), np.int64), np.empty(2 * (end - begin), np.int64)
        used = st.states_a(
            self._rows, self._mate, self._usable, self._restarted, begin, end, self._carry, time, state
        )
        return time[:used], state[:used]

    def finish(self) -> None:
        carry, note = self._carry, self._reading._note
        note(
            "intervals partly computing", "notice", int(carry[st.PARTIAL]), int(carry[st.PARTIAL_LINE]),
            "Statistics at both ends of an interval say that only a part of it was communication; it counts "
            "as computing when that is less than half.",
        )  # fmt: skip
        note(
            "statistics restarted", "notice", int(carry[st.RESTARTS]), int(carry[st.RESTART_LINE]),
            "A running total of the time in communication decreases; the interval is not known unless the "
            "total wrapped at 32 bits.",
        )  # fmt: skip
        note(
            "negative durations", "notice", int(carry[st.BACKWARD]), int(carry[st.BACKWARD_LINE]),
            "A trace flush ends before it begins; it was taken as 0.",
        )  # fmt: skip


class _StatesB:
    """Spans of a processor of format B of which nothing is known, as changes of state."""

    def __init__(self, reading: _Reading, place: _Place, rows: NDArray[Any], mate: NDArray[Any]) -> None:
        location = place.location
        record, event, time = rows["record"], rows["event"], rows["time"]
        first, last = int(time[0]), int(time[-1])
        line = int(rows[0]["line"])
        note = reading._note
        spans: list[tuple[int, int, int]] = []  # begin, end, state
        if not np.isin(record, (3, 4)).any():
            spans.append((first, last, st.NO_DATA))
            location.damage = "no data"
            note(
                "no events", "error", 1, line,
                "There are statistics or marks but no events of some processors, so their curve is unknown.",
            )  # fmt: skip
        else:
            tracing = event == -901
            begins = np.flatnonzero(tracing & (record == 3))
            ends = np.flatnonzero(tracing & (record == 4))
            sessions = [(int(time[b]), int(time[mate[b]]) if mate[b] >= 0 else last) for b in begins]
            if len(ends) and mate[ends[0]] < 0:
                sessions.insert(0, (first, int(time[ends[0]])))
            if not len(ends):
                location.damage = "incomplete"
                note(
                    "tracing without end", "notice", 1, line,
                    "The end of tracing (-4 -901) is missing; a processor ends with its last record.",
                )  # fmt: skip
            if sessions:
                at = first
                for begin, end in sorted(sessions):
                    if begin > at:
                        spans.append((at, begin, st.NOT_TRACED))
                    at = max(at, end)
                if at < last:
                    spans.append((at, last, st.NOT_TRACED))
            lost = np.flatnonzero(((event == -913) | (event == -914)) & np.isin(record, (2, 3)))
            if len(lost):
                location.damage = "buffer full"
                note(
                    "trace buffer full", "loss", len(lost), int(rows["line"][lost].min()),
                    "The trace buffer was full; from there on nothing is known of the processor.",
                )  # fmt: skip
                stops = time[ends]
                for begin in time[lost].tolist():
                    after = np.searchsorted(stops, begin, "right")
                    spans.append((begin, int(stops[after]) if after < len(stops) else last, st.NO_DATA))
            flushes = (event == -912) & (record != 4)
            if flushes.any():
                note(
                    "trace flushes", "notice", int(flushes.sum()), int(rows["line"][flushes].min()),
                    "The program was held up while its trace was written; the time counts as overhead.",
                )  # fmt: skip
            self._compare(reading, place, rows, mate)
        self._times, self._states = _flat(spans)
        self._time = time
        if first == last:
            location.damage = "no data"

    def _compare(self, reading: _Reading, place: _Place, rows: NDArray[Any], mate: NDArray[Any]) -> None:
        """Totals of the trace's own statistics against the sums of the paired events."""
        stated = reading.statistics.values
        if not stated:
            return
        total = np.zeros(len(reading.region_of), np.int64)
        st.add_durations(rows, tb.ROLES[_B], mate, total)
        unit = 10.0**-reading.decimals
        for key, event in enumerate(reading.key_events):
            value = stated.get((place.processor, 101, event))
            if value is not None and abs(total[key] * unit - value) > 0.01 * abs(value) + 1e-5:
                reading._note(
                    "statistics disagree", "notice", 1, int(rows[0]["line"]),
                    f"Totals in the trace differ from the sums of its events (first: {event} of "
                    f"{place.location.name}, {value:g} s against {total[key] * unit:g} s); the events are "
                    "believed.",
                )  # fmt: skip

    def changes(self, begin: int, end: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Times and new states in rows[begin:end]."""
        low = np.searchsorted(self._times, self._time[begin], "left")
        high = np.searchsorted(self._times, self._time[end - 1], "right")
        return self._times[low:high], self._states[low:high]

    def finish(self) -> None:
        """Nothing is left to say."""


def _flat(spans: list[tuple[int, int, int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Spans (begin, end, state) as changes of state; where they overlap the lower state wins."""
    cuts = sorted({t for begin, end, _ in spans if begin < end for t in (begin, end)})
    edges = np.array(cuts, np.int64)
    level = np.full(len(edges), st.BUSY, np.int64)
    for begin, end, state in sorted(spans, key=lambda span: -span[2]):
        level[np.searchsorted(edges, begin) : np.searchsorted(edges, end)] = state
    if not len(edges):
        return edges, level
    changed = np.flatnonzero(np.diff(level, prepend=st.BUSY))
    return edges[changed], level[changed]


def _chunks(rows: NDArray[Any]) -> Iterator[tuple[int, int]]:
    """Parts of records sorted by time, cut between different times."""
    time = rows["time"]
    begin = 0
    while begin < len(rows):
        end = min(begin + CHUNK, len(rows))
        end = int(np.searchsorted(time, time[end - 1], "right"))
        yield begin, end
        begin = end


def _clock_jump(time: NDArray[np.int64]) -> int:
    """Where, in line order, a clock was set back so far that all before is on another one; 0 if nowhere."""
    least_before = np.minimum.accumulate(time)[:-1]
    after = time[::-1]
    most = np.maximum.accumulate(after)[::-1][1:]
    least = np.minimum.accumulate(after)[::-1][1:]
    many = np.arange(1, len(time)) <= len(time) // 2
    jump = many & (least_before - most > 100 * np.maximum(most - least, 1))
    return int(np.flatnonzero(jump)[-1]) + 1 if jump.any() else 0


def _last_run(rows: NDArray[Any]) -> int:
    """Where, in line order, the last run begins: at a trace_start after a trace_start and a trace_exit
    whose times it does not continue."""
    at = np.flatnonzero((rows["record"] == 1) | (rows["record"] == 19))
    begin = 0
    started = exited = False
    for i in at.tolist():
        if rows[i]["record"] == 19:
            exited = True
            continue
        if started and exited:
            if rows[i]["time"] < rows["time"][begin:i].max():
                begin = i
            exited = False
        started = True
    return begin


def _read(path: Path, sink: Sink, progress: Progress) -> None:
    try:
        with tempfile.TemporaryDirectory(prefix="phasewright-") as folder:
            reading = _Reading(path, sink, progress, Path(folder))
            try:
                reading.parse()
                reading.deliver()
            finally:
                reading.spill.close()
    except OSError as error:
        raise TraceFormatError(
            f"cannot be imported ({error.strerror or error})",
            file=path,
            hint="check that it can be read and that the temporary folder has room",
        ) from error


IMPORTER = Importer(
    id="picl",
    title="PICL trace",
    version="1",
    detect=source.detect,
    read=_read,
    files=lambda path: [path],
    patterns=("*.trf", "*.ttf", "*.raw"),
)
