"""The global definitions and their meaning: locations in order, regions, members of communicators.

Source: OTF2 3.2 reference (score-p.org). Tools that write archives differ in what they leave out; comments
name them where it matters.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from desktop.core.arrays import Flags, Ints
from desktop.core.jit import arithmetic, place_in
from desktop.data.events import Activity, Location, MetricAbout, Region, Sink
from desktop.data.importers._otf2.records import CONTEXTS, FLUSHING, NOT_MEASURED, UNDEFINED
from desktop.data.importers._otf2.tables import (
    KINDS,
    METRIC_LAST,
    METRIC_MODES,
    METRIC_NEXT,
    PARADIGMS,
    PREFIXES,
    ROLES,
)

COMM_LOCATIONS, COMM_GROUP, COMM_SELF = 4, 5, 6
GLOBAL_MEMBERS = 1  # flag of a group: ranks in records are those in the COMM_LOCATIONS group itself
MPI = 4
MASK = (1 << 64) - 1
#: Communicators whose names are kept, and most letters of each.
NAMED, LONGEST = 10_000, 200

#: Definition records that are kept, by number, and which of their further fields.
KEPT: dict[str, tuple[str, ...]] = {
    "ClockProperties": ("begin", "length"),  # the number is the resolution
    "String": ("text",),
    "LocationGroup": ("name", "kind"),
    "Location": ("name", "kind", "records", "group"),
    "Region": ("name", "role", "paradigm", "description", "canonical"),
    "Group": ("kind", "paradigm", "flags", "members"),
    "Comm": ("group", "name"),
    "MetricMember": ("name", "mode", "base", "exponent", "unit"),
    "MetricClass": ("members",),
    "MetricInstance": ("metric_class",),
    "CallingContext": ("region",),
}


@arithmetic
def look_up(keys: Ints, sorted_keys: Ints, values: Ints, out: Ints) -> None:
    """out[k]: values[i] where sorted_keys[i] == keys[k], -1 where there is none; a run of equal keys costs
    one search."""
    last_key, value = -1, -1
    for k in range(keys.size):
        key = keys[k]
        if key != last_key:
            at = place_in(sorted_keys, key)
            last_key = key
            value = values[at] if at < sorted_keys.size and sorted_keys[at] == key else -1
        out[k] = value


@dataclass
class Space:
    """Sparse numbers of the trace -> dense indices, for `look_up`. Location numbers may use all of their 64
    bits; here as in the rows they are treated as signed."""

    keys: Ints
    values: Ints

    @staticmethod
    def of(pairs: dict[int, int]) -> Space:
        keys = np.array([key & MASK for key in pairs], np.uint64).view(np.int64)
        order = np.argsort(keys)
        return Space(keys[order], np.array(list(pairs.values()), np.int64)[order])

    def __call__(self, numbers: Ints) -> Ints:
        indices = np.empty(numbers.size, np.int64)
        look_up(np.ascontiguousarray(numbers), self.keys, self.values, indices)
        return indices

    def add(self, pairs: dict[int, int]) -> None:
        both = Space.of(dict(zip(self.keys.tolist(), self.values.tolist(), strict=True)) | pairs)
        self.keys, self.values = both.keys, both.values


@dataclass
class LocationPlace:
    """A location, and what is needed to read it; `first`: index of the first location of its process, which
    stands for the process in messages; `wrong_clock`: its clock offsets are not trusted."""

    location: Location
    group: int
    declared: int
    index: int = -1
    first: int = -1
    wrong_clock: bool = False


class Definitions:
    """The global definitions by record and number; of several with one number the last one counts."""

    def __init__(self) -> None:
        # The meaning of number and fields depends on the record.
        self.by: dict[str, dict[Any, tuple[Any, ...]]] = {record: {} for record in KEPT}
        self.records = 0  # of any kind
        self.repeated = 0
        self.torn = 0  # texts that end before their record does

    def add(self, record: str, number: int, *fields: Any) -> None:
        """Add a definition; `fields` as named by `KEPT`."""
        table = self.by[record]
        # EZTrace gives two groups of different kinds the same number.
        key = (number, fields[0]) if record == "Group" else number
        self.repeated += key in table
        table[key] = fields

    @property
    def clock(self) -> tuple[int, int, int]:
        """Ticks per second, begin and length of the run; 0 where not defined."""
        resolution, (begin, length) = next(reversed(self.by["ClockProperties"].items()), (0, (0, 0)))
        return resolution, begin, length

    def name(self, string: int, otherwise: str) -> str:
        """The string with a number; `otherwise` if it is not defined or empty."""
        fields = self.by["String"].get(string)
        return (fields[0].decode("utf-8", "replace") if fields and fields[0] else "") or otherwise

    def _lost(self, string: int) -> bool:
        """Whether a string is referred to but not defined."""
        return string != UNDEFINED and string not in self.by["String"]

    def _renamed(self) -> list[int]:
        """Regions whose name differs from their description and canonical name while these are equal, in an
        archive in which most regions have one text in all three places, as EZTrace writes them. Score-P
        leaves the description empty and has other canonical names for a few regions, such as ``main``."""
        regions = self.by["Region"].items()
        thrice = sum(name == description == canonical for _, (name, _, _, description, canonical) in regions)
        odd = [
            identity
            for identity, (name, _, _, description, canonical) in regions
            if name != description == canonical
            and self.name(description, "") not in ("", self.name(name, ""))
        ]
        return odd if 3 * len(odd) <= thrice else []

    def _illegible(self) -> list[int]:
        """Regions whose names contain control characters, read as UTF-8 or else as Latin-1."""
        illegible = []
        for identity, (name, *_) in self.by["Region"].items():
            (text,) = self.by["String"].get(name, (b"",))
            try:
                letters = text.decode("utf-8")
            except UnicodeDecodeError:
                letters = text.decode("latin-1")
            if any(unicodedata.category(letter) == "Cc" and letter not in "\t\n\r" for letter in letters):
                illegible.append(identity)
        return illegible

    def _unequal(self) -> list[int]:
        """EZTrace's own regions, if some name occurs less often than another: each process defines all of
        them."""
        by_name: dict[str, list[int]] = {"Working": [], "EZTrace finalize": []}
        for identity, (name, *_) in self.by["Region"].items():
            by_name.get(self.name(name, ""), []).append(identity)
        most, least = sorted(by_name.values(), key=len, reverse=True)
        return most if 0 < len(least) < len(most) else []

    def comm_locations(self, paradigm: int) -> NDArray[np.uint64]:
        """Location numbers by world rank of a paradigm."""
        for (_, kind), group in self.by["Group"].items():
            if kind == COMM_LOCATIONS and group[1] == paradigm:
                return np.array(group[3], np.uint64)
        return np.empty(0, np.uint64)

    def members(self, comm: int) -> NDArray[np.uint64] | None:
        """Location numbers by rank within a communicator; None: each process has its own, empty: unknown."""
        group_number, _ = self.by["Comm"][comm]
        for kind in (COMM_GROUP, COMM_SELF, COMM_LOCATIONS):
            group = self.by["Group"].get((group_number, kind))
            if group is None:
                continue
            if kind == COMM_SELF:
                return None
            _, paradigm, flags, members = group
            world = self.comm_locations(paradigm)
            if kind == COMM_LOCATIONS or flags & GLOBAL_MEMBERS:
                return world
            ranks = np.array(members, np.uint64)
            return world[ranks.astype(np.int64)] if (ranks < world.size).all() else world[:0]
        return np.empty(0, np.uint64)

    def reordered(self) -> list[int]:
        """Communicators whose ranks are not in the order of world ranks, which is that of locations."""
        reordered = []
        for comm, (group, _) in self.by["Comm"].items():
            members = np.array(self.by["Group"].get((group, COMM_GROUP), ((),))[-1], np.uint64)
            if (members[1:] < members[:-1]).any():
                reordered.append(comm)
        return reordered

    def communicators(self) -> dict[str, str]:
        """Names of communicators by number; of the first `NAMED`."""
        names = {str(comm): self.name(name, "") for comm, (_, name) in self.by["Comm"].items()}
        return dict(islice(((comm, name[:LONGEST]) for comm, name in names.items() if name), NAMED))

    def metric(self, metric: int, i: int) -> tuple[str, MetricAbout]:
        """Name and meaning of the i-th value of a metric class, or of an instance of one."""
        by = self.by
        instance = by["MetricInstance"].get(metric)
        (members,) = by["MetricClass"].get(instance[0] if instance else metric, ((),))
        member = by["MetricMember"].get(members[i]) if i < len(members) else None
        otherwise = f"metric {metric}.{i}"
        if not member:
            return otherwise, MetricAbout()
        name, mode, base, exponent, unit = member
        of = self.name(unit, "").replace("#", "")
        exponent -= (exponent >> 63) << 64
        if exponent:
            power = f"{10 if base else 2}^{exponent}"
            of = PREFIXES.get(exponent, f"{power} ") + of if base and of else f"{power} {of}".strip()
        value, timing = METRIC_MODES.get(mode & 0x0F, "absolute"), mode & 0xF0
        # A sum up to this point in time has accumulated since the sample before.
        since = timing == METRIC_LAST or (value == "relative" and timing != METRIC_NEXT)
        return self.name(name, otherwise), MetricAbout(of, value, "last" if since else "next")

    def places(self) -> list[LocationPlace]:
        """All locations in display order, numbered within their process."""
        groups, named = self.by["LocationGroup"], self.name
        world = self.comm_locations(MPI).tolist()
        order = {number: rank for rank, number in enumerate(world)}
        locations = self.by["Location"]
        ranks = {locations[number][3]: rank for number, rank in order.items() if number in locations}
        further = {group for _, kind, _, group in locations.values() if kind not in KINDS} - ranks.keys()
        ranks |= {
            group: rank for rank, group in enumerate(sorted(further), max(ranks.values(), default=-1) + 1)
        }
        places: list[LocationPlace] = []
        for identity, (string, kind, declared, group) in locations.items():
            fields = groups.get(group)
            of_device = fields is not None and fields[1] == 2
            sort = "accelerator" if of_device and kind != 3 else KINDS.get(kind, "cpu")
            location = Location(
                id=identity,
                name=named(string, f"location {identity}"),
                rank=ranks.get(group, -1),
                kind=sort,
                process=named(fields[0], "") if fields else "",
                # A stream without a kernel is idle.
                base=Activity.COMPUTING if sort == "cpu" else Activity.IDLE,
            )
            places.append(LocationPlace(location, group, declared))
        # Sorted by rank; within a rank processors first, the one that calls MPI before its threads.
        places.sort(
            key=lambda p: (
                p.location.rank if p.location.rank >= 0 else len(places),
                p.location.kind != "cpu",
                order.get(p.location.id, len(order)),
                p.location.id,
            )
        )
        threads: dict[tuple[int, str], int] = {}
        for place in places:
            key = (place.group, place.location.kind)
            place.location.thread = threads.get(key, 0)
            threads[key] = place.location.thread + 1
        return places

    def regions(self, sink: Sink) -> Space:
        """Define regions and calling contexts in the sink; returns their indices there."""
        named = self.name
        region: dict[int, int] = {}
        lost = [
            k
            for k, (text, _, _, description, canonical) in self.by["Region"].items()
            if any(map(self._lost, (text, description, canonical)))
        ]
        for which, text in (
            (lost, "Names of regions are not defined; what is called by a number here may be any call."),
            (
                self._renamed(),
                "Names of regions are not those of their descriptions; they may be other calls.",
            ),
            (self._illegible(), "Names of regions hold control characters; they may be other calls."),
            (
                self._unequal(),
                "Not every process has all of the tracer's own regions; some have lost their names.",
            ),
        ):
            if which:
                sink.report.add("region names", "loss", text, count=len(which), where=f"region {which[0]}")
        for identity, (string, role, paradigm, *_) in self.by["Region"].items():
            name = named(string, f"region {identity}")
            does = ROLES[role] if role < len(ROLES) else "unknown"
            written = PARADIGMS[paradigm] if paradigm < len(PARADIGMS) else "unknown"
            region[identity] = sink.region(Region(name, does, written))
        for context, (identity,) in self.by["CallingContext"].items():
            if identity in region:
                region[CONTEXTS + context] = region[identity]
        for key, name in ((NOT_MEASURED, "MEASUREMENT OFF"), (FLUSHING, "TRACE BUFFER FLUSH")):
            region[key] = sink.region(
                Region(name, "artificial", "measurement_system", Activity.UNMEASURED, synthetic=True)
            )
        return Space.of(region)


class Communicators:
    """Members of all communicators in one array: rank r of the i-th is `members[start[i] + r]`."""

    def __init__(self, definitions: Definitions, dense: dict[int, int]) -> None:
        """`dense`: location number -> index."""
        members: list[Ints] = []
        start, is_self, index = [0], [], {}
        locations = Space.of(dense)
        for i, comm in enumerate(definitions.by["Comm"]):
            numbers = definitions.members(comm)
            index[comm] = i
            is_self.append(numbers is None)
            members.append(locations((np.empty(0) if numbers is None else numbers).astype(np.int64)))
            start.append(start[-1] + members[-1].size)
        self._numbers = Space.of(index)
        self._members = np.concatenate([*members, np.empty(0, np.int64)])
        self._start, self._is_self = np.array(start, np.int64), np.array(is_self, bool)

    def peers(self, comm: Ints, rank: Ints, location: int) -> tuple[NDArray[np.int32], Flags]:
        """Location index of each rank in its communicator (-1 unknown), and where that is MPI_COMM_SELF."""
        i = self._numbers(comm)
        defined = i >= 0
        i = np.where(defined, i, 0)
        if not self._is_self.size:
            return np.full(rank.size, -1, np.int32), defined
        is_self = defined & self._is_self[i]
        inside = defined & (rank < self._start[i + 1] - self._start[i])
        index = np.full(rank.size, -1, np.int32)
        index[inside] = self._members[(self._start[i] + rank)[inside]]
        index[is_self & (rank == 0)] = location
        return index, is_self
