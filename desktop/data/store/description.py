"""All of a trace but its rows, and its form in the file: JSON, checked when it comes back."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from typing import Any, TypeVar, get_args

from desktop.core.clock_line import MOST_DRIFT
from desktop.data.events import (
    SEVERITIES,
    Activity,
    Finding,
    ImportReport,
    Location,
    LocationKind,
    Nesting,
    Region,
)
from desktop.data.store.layout import TICK_LIMIT


@dataclass
class Source:
    """What was imported. `files`: path, size in bytes and modification time in ns of every file of it."""

    path: str
    name: str
    size: int = 0
    sha256: str = ""
    files: list[tuple[str, int, int]] = field(default_factory=list)


@dataclass
class ImporterInfo:
    id: str
    version: str


@dataclass
class Tally:
    """What a location holds. `sent` counts send and isend, `received` completed receives."""

    enter: int = 0
    leave: int = 0
    sent: int = 0
    received: int = 0
    collectives: int = 0


@dataclass
class ClockSummary:
    """Outcome of the clock check (`desktop.data.clock`) with the default rules: how many instances were
    compared and how many contradict the clocks; the repair stands in the locations."""

    checked: int = 0
    violations_before: int = 0
    violations_after: int = 0
    repair: str = "none"
    details: dict[str, Any] = field(default_factory=dict)


@dataclass
class Description:
    """Everything about a trace but its rows."""

    source: Source
    importer: ImporterInfo
    ticks_per_second: float = 0.0
    nesting: Nesting = "outermost"
    repair: bool = False
    notes: dict[str, Any] = field(default_factory=dict)
    clock: ClockSummary = field(default_factory=ClockSummary)
    locations: list[Location] = field(default_factory=list)
    tallies: list[Tally] = field(default_factory=list)
    #: ticks in each `Activity` with the default rules, per location
    totals: list[list[int]] = field(default_factory=list)
    regions: list[Region] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    report: ImportReport = field(default_factory=ImportReport)


class Described:
    """The attributes that writer and reader share."""

    description: Description

    @property
    def source(self) -> Source:
        return self.description.source

    @property
    def importer(self) -> ImporterInfo:
        return self.description.importer

    @property
    def ticks_per_second(self) -> float:
        return self.description.ticks_per_second

    @property
    def nesting(self) -> Nesting:
        return self.description.nesting

    @property
    def repair(self) -> bool:
        return self.description.repair

    @property
    def notes(self) -> dict[str, Any]:
        return self.description.notes

    @property
    def clock(self) -> ClockSummary:
        return self.description.clock

    @property
    def locations(self) -> Sequence[Location]:
        return self.description.locations

    @property
    def tallies(self) -> Sequence[Tally]:
        return self.description.tallies

    @property
    def totals(self) -> Sequence[Sequence[int]]:
        return self.description.totals

    @property
    def regions(self) -> Sequence[Region]:
        return self.description.regions

    @property
    def texts(self) -> Sequence[str]:
        return self.description.texts

    @property
    def report(self) -> ImportReport:
        return self.description.report

    def _bound(self, kind: str) -> int:
        return len(getattr(self.description, kind))


def encode(description: Description) -> bytes:
    """As it stands in the file.

    Raises
    ------
    ValueError : a number in it is infinite or none.
    """
    d = description
    # Not `asdict` as a whole: of many locations that takes longer than all else.
    plain = vars(d) | {
        "source": asdict(d.source),
        "importer": asdict(d.importer),
        "clock": asdict(d.clock),
        # JSON has no infinity
        "locations": [
            vars(at) if math.isfinite(at.half_width) else vars(at) | {"half_width": None}
            for at in d.locations
        ],
        "tallies": [vars(tally) for tally in d.tallies],
        "regions": [vars(region) for region in d.regions],
        "report": [vars(finding) for finding in d.report],
    }
    return json.dumps(plain, separators=(",", ":"), allow_nan=False).encode("utf-8", "surrogateescape")


def decode(text: bytes) -> Description:
    """What `encode` has written.

    Raises
    ------
    ValueError, LookupError, TypeError, AttributeError : it is something else.
    """
    plain = json.loads(text.decode("utf-8", "surrogateescape"))
    report = ImportReport()
    for item in plain["report"]:
        finding = _record(Finding, item)
        if finding.severity not in SEVERITIES:
            raise ValueError(f"{finding.severity!r} is no severity")
        report.findings[finding.name] = finding
    source = _record(Source, plain["source"])
    source.files = [(str(name), int(size), int(time)) for name, size, time in source.files]
    for item in plain["locations"]:
        if item["half_width"] is None:
            item["half_width"] = math.inf
        item.setdefault("drift", 0.0)  # schema 2 had no rates of clocks
        item.setdefault("origin", 0)
    locations = [_record(Location, item) for item in plain["locations"]]
    for location in locations:
        location.base = Activity(location.base)
        _check_location(location)
    regions = [_record(Region, item) for item in plain["regions"]]
    for region in regions:
        region.activity = None if region.activity is None else Activity(region.activity)
    ticks_per_second = float(plain["ticks_per_second"])
    if not (math.isfinite(ticks_per_second) and ticks_per_second > 0):
        raise ValueError(f"ticks_per_second is {ticks_per_second}")
    if plain["nesting"] not in ("outermost", "strongest"):
        raise ValueError(f"{plain['nesting']!r} is no rule of nesting")
    tallies = [_record(Tally, item) for item in plain["tallies"]]
    totals = [[int(ticks) for ticks in row] for row in plain["totals"]]
    fair = all(len(row) == len(Activity) and all(0 <= t <= 2 * TICK_LIMIT for t in row) for row in totals)
    if len(tallies) != len(locations) or not fair:
        raise ValueError("counts and locations differ in number")
    if totals and len(totals) != len(locations):
        raise ValueError("totals and locations differ in number")
    return Description(
        source=source,
        importer=_record(ImporterInfo, plain["importer"]),
        ticks_per_second=ticks_per_second,
        nesting=plain["nesting"],
        repair=bool(plain["repair"]),
        notes=dict(plain["notes"]),
        clock=_record(ClockSummary, plain["clock"]),
        locations=locations,
        tallies=tallies,
        totals=totals,
        regions=regions,
        texts=[str(item) for item in plain["texts"]],
        report=report,
    )


@cache
def _fields(kind: type[Any]) -> tuple[frozenset[str], list[tuple[str, str, type | tuple[type, ...]]]]:
    """The names of a dataclass, and those of simple types with what they must be."""
    types = {f.name: str(f.type) for f in fields(kind)}
    return frozenset(types), [(name, of, _PLAIN[of]) for name, of in types.items() if of in _PLAIN]


#: Fields that files of a former schema have not, with what holds for them then.
_LATER: dict[str, dict[str, Any]] = {"Location": {"doubt": 0}}

_Record = TypeVar("_Record")
_PLAIN: dict[str, type | tuple[type, ...]] = {
    "int": int,
    "float": (int, float),
    "str": str,
    "bool": bool,
}


def _record(kind: type[_Record], plain: dict[str, Any]) -> _Record:
    """A dataclass from its plain form, all fields present and those of simple types of that type."""
    names, checks = _fields(kind)  # type: ignore[arg-type]  # a class is hashable
    plain = _LATER.get(kind.__name__, {}) | plain
    if plain.keys() != names:
        raise ValueError(f"{kind.__name__} has not the fields {', '.join(sorted(names))}")
    for name, annotation, wanted in checks:
        if not isinstance(plain[name], wanted):
            raise ValueError(f"{kind.__name__}.{name} is {plain[name]!r}, not of type {annotation}")
    return kind(**plain)


def _check_location(location: Location) -> None:
    times = (location.first, location.last)
    if (times[0] is None) != (times[1] is None) or location.kind not in get_args(LocationKind):
        raise ValueError(f"location {location.id} is not described well")
    if not abs(location.drift) <= MOST_DRIFT:
        raise ValueError(f"the clock of location {location.id} drifts by {location.drift}")
    if times[0] is not None and times[1] is not None:
        limit = TICK_LIMIT
        inside = all(type(t) is int and -limit < t < limit for t in (*times, location.shift, location.origin))
        inside = inside and location.doubt >= 0
        if not inside or times[0] > times[1]:
            raise ValueError(f"location {location.id} ends before it begins, or out of range")
