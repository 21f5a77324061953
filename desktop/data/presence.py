"""Which region each processor is in over time, and the direction and size of its messages: the basis of a
run's structure events. Stored on import in two tables of stretches (`desktop.core.presence`)::

    presence   begin, end, what, calls, inside   of events: what is a region
    exchanges  begin, end, what, calls, inside   of sends: 0 to a higher location, 1 to a lower one, 2 + k of
                                                 fewer than 2^k bytes
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from desktop.core.arrays import AnyArray, Bytes, Ints
from desktop.core.curve import StepCurve
from desktop.core.landmarks import Landmarks, Stretches, landmarks, with_standstills
from desktop.core.phase_names import MESSAGES, PROGRAM, WAITING, Doings, doings
from desktop.core.presence import SIZES, TOUCH, Presence, sends
from desktop.data.classify import is_communication, mpi_call, region_activity
from desktop.data.collectives import depends
from desktop.data.digest import DerivedRows, DigestTarget
from desktop.data.events import SENDS, Activity, MessageKind, Region
from desktop.data.store import DERIVED, TraceStore
from desktop.data.utilization import Utilization
from desktop.progress import Progress

#: Numbers in ``exchanges``.
_CLASSES = SIZES + 64
_SENDS = np.array([k in SENDS for k in sorted(MessageKind)], np.uint8)
#: Names that recorders (EZTrace, that of MPI calls) use for all of a process's life: no part of the program.
LIFE = "Working"
#: Most locations inspected: so many show what most processors do.
LOOKED_AT = 256


class _Noted:
    """Builds one of the two tables, location after location."""

    def __init__(self, target: DigestTarget, table: str) -> None:
        self._target, self._table = target, table
        self._presence = Presence()
        self._location, self._last = -1, 0

    def feed(self, location: int, time: Ints, kind: Bytes, thing: NDArray[np.uint32], numbers: int) -> None:
        if location != self._location:
            self.close()
            self._location = location
        if time.size:
            self._presence.feed(time, kind, thing, numbers)
            self._last = int(time[-1])

    def close(self) -> None:
        if self._location < 0:
            return
        columns = dict(zip(DERIVED[self._table], self._presence.take(self._last), strict=True))
        columns["what"] = columns["what"].astype(np.uint32)
        self._target.derive(self._table, self._location, **columns)
        self._location = -1


class PresenceDigest:
    """A `desktop.data.store.Digest`. Memory: the stretches of one location."""

    def __init__(self, target: DigestTarget) -> None:
        self._target = target
        self._events, self._sends = _Noted(target, "presence"), _Noted(target, "exchanges")

    def take(self, table: str, location: int, block: Mapping[str, AnyArray]) -> None:
        if table == "events":
            time, kind, region = (np.ascontiguousarray(block[name]) for name in ("time", "kind", "region"))
            self._events.feed(location, time, kind, region, len(self._target.regions))
        elif table == "messages":
            columns = (np.ascontiguousarray(block[name]) for name in ("time", "kind", "peer", "bytes"))
            rows = block["time"].size
            time, thing = np.empty(2 * rows, np.int64), np.empty(2 * rows, np.uint32)
            n = 2 * sends(location, *columns, _SENDS, time, thing)
            self._sends.feed(location, time[:n], np.full(n, TOUCH, np.uint8), thing[:n], _CLASSES)

    def finish(self) -> None:
        self._events.close()
        self._sends.close()

    def release(self) -> None: ...


def structure(store: TraceStore, use: Utilization, progress: Progress | None = None) -> Structure:
    """The stretches of a run, from enough processors to represent all."""
    progress = progress or Progress()
    places = [i for i, location in enumerate(store.locations) if location.kind == "cpu"]
    if len(places) > LOOKED_AT:
        places = [places[i * len(places) // LOOKED_AT] for i in range(LOOKED_AT)]
    tables = [t for t, of in (("presence", "events"), ("exchanges", "messages")) if store.has(of)]
    columns_of: dict[tuple[str, int], dict[str, AnyArray]] = {}
    if all(map(store.has, tables)):
        names = tuple(DERIVED["presence"])
        for table in tables:
            begin, count = store.places(table).T
            spans = [(int(begin[i]), int(begin[i] + count[i])) for i in places if count[i]]
            store.bring(table, spans, names)
            for location in places:
                columns = store.part(table, location, 0, store.rows(table, location), *names)
                columns_of[table, location] = dict(zip(names, columns, strict=True))
    else:
        derived = DerivedRows(store, lambda rows: [PresenceDigest(rows)], progress, "structure", places)
        columns_of = {key: part for key, (part,) in derived.rows.items()}
    clocks = use.rules.clocks(store)
    parts: list[tuple[AnyArray, ...]] = [(np.zeros(0), np.zeros(0), *[np.zeros(0, np.int64)] * 4)]
    for (table, location), held in columns_of.items():
        since, until = (
            (clocks[location].common(held[name]) - use.start) * use.unit for name in ("begin", "end")
        )
        thing = held["what"].astype(np.int64)
        # A damaged table may contain anything.
        good = (thing < (len(store.regions) if table == "presence" else _CLASSES)) & (until >= since)
        good &= (held["calls"] > 0) & (held["inside"] >= 0)
        thing = thing if table == "presence" else -1 - thing
        place = np.full(thing.size, location)
        parts.append(
            tuple(x[good] for x in (since, until, thing, place, held["calls"], held["inside"] * use.unit))
        )
    begin, end, thing, place, calls, inside = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Structure(Stretches(begin, end, thing, place, calls, inside, len(places)), tuple(store.regions))


@dataclass(frozen=True, eq=False)
class Structure:
    """Stretches of a run, in seconds on the curve's axis, and its regions."""

    stretches: Stretches
    regions: tuple[Region, ...]

    def landmarks(self, curve: StepCurve, marks: Iterable[tuple[float, str]] = ()) -> Landmarks:
        """The structure events in the part of the run covered by a curve. `marks`: times (s) and texts of the
        user's annotations."""
        start, end = curve.span
        events = landmarks(
            self.stretches,
            start,
            end,
            self._name,
            self._waits,
            marks=tuple(marks),
            next_to=lambda one, other: max(one, other) < -SIZES and abs(one - other) == 1,
        )
        return with_standstills(events, curve)

    def doings(self, curve: StepCurve) -> Doings:
        """The basis for names of phases, in the part covered by `curve`, the utilization."""
        life = np.array([region.name == LIFE for region in self.regions] or [False])
        rows = self.stretches
        return doings(
            rows.take((rows.what < 0) | ~life[np.maximum(rows.what, 0)]),
            curve,
            lambda at: self._kind(self.regions[at]) if at >= 0 else (self._name(at), MESSAGES),
        )

    @staticmethod
    def _kind(region: Region) -> tuple[str, str]:
        activity = region_activity(region)
        if mpi_call(region.name) or activity != Activity.COMPUTING:
            return region.name, WAITING
        return region.name, PROGRAM

    def _name(self, thing: int) -> str:
        if thing >= 0:
            return self.regions[thing].name
        code = -1 - thing
        if code < SIZES:
            return f"sending to {('higher', 'lower')[code]} ranks"
        return f"sending of {_size(code - SIZES)}"

    def _waits(self, thing: int, happens: str) -> bool:
        if thing < 0:
            return happens == "ends"
        if not is_communication(self.regions[thing]):
            return False
        together = depends(self.regions[thing].name) is not None
        return happens == ("begins" if together else "ends")


def _size(bits: int) -> str:
    """Messages whose number of bytes has `bits` bits, in words."""
    if bits == 0:
        return "empty messages"
    low, unit = 1 << (bits - 1), "B"
    for larger in ("KiB", "MiB", "GiB"):
        if low >= 1024:
            low, unit = low >> 10, larger
    return f"messages of {low} to {2 * low} {unit}"
