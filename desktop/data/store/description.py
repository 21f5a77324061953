"""Everything about a trace but its rows, and its JSON form in the file, which is checked when it is read."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields

from desktop.core.clock_line import MOST_DRIFT
from desktop.core.plain import JSON
from desktop.data.events import Activity, Finding, ImportReport, Location, MetricAbout, Nesting, Region
from desktop.data.store.layout import TICK_LIMIT
from desktop.data.structure import Decoder


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
    """Counts of a location. `sent` counts send and isend, `received` completed receives."""

    enter: int = 0
    leave: int = 0
    sent: int = 0
    received: int = 0
    collectives: int = 0


@dataclass
class ClockSummary:
    """Outcome of the clock check (`desktop.data.clock`) with the default rules: how many instances were
    compared and how many contradict the clocks. The repair itself is in the locations."""

    checked: int = 0
    violations_before: int = 0
    violations_after: int = 0
    repair: str = "none"
    details: JSON = field(default_factory=dict)


#: The notes that are read by the program, where a trace has them; the others are only shown.
NOTES = {"communicator_names": dict, "threads": int, "cores": int, "switches": int}


@dataclass(eq=False)
class Description:
    """Everything about a trace but its rows; writer and reader of a store add these."""

    source: Source
    importer: ImporterInfo
    ticks_per_second: float = 0.0
    nesting: Nesting = "outermost"
    repair: bool = False
    notes: JSON = field(default_factory=dict)
    clock: ClockSummary = field(default_factory=ClockSummary)
    locations: list[Location] = field(default_factory=list)
    tallies: list[Tally] = field(default_factory=list)
    #: ticks in each `Activity` with the default rules, per location
    totals: list[list[int]] = field(default_factory=list)
    regions: list[Region] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    #: by name, which is among the texts; empty in stores of importers that did not record them
    metrics: dict[str, MetricAbout] = field(default_factory=dict)
    report: ImportReport = field(default_factory=ImportReport)

    def _bound(self, kind: str) -> int:
        return len(getattr(self, kind))


def encode(d: Description, selected: Sequence[int] | None = None) -> bytes:
    """The description as bytes for the file, with all locations or only those in `selected`.

    Raises
    ------
    ValueError : a number in it is infinite or NaN.
    """
    selected = range(len(d.locations)) if selected is None else selected
    # Not `asdict` of the whole: with many locations that takes longer than everything else.
    plain = {one.name: getattr(d, one.name) for one in fields(Description)} | {
        "source": asdict(d.source),
        "importer": asdict(d.importer),
        "clock": asdict(d.clock),
        # JSON has no infinity.
        "locations": [
            vars(at) if math.isfinite(at.half_width) else vars(at) | {"half_width": None}
            for at in (d.locations[i] for i in selected)
        ],
        "tallies": [vars(d.tallies[i]) for i in selected],
        "regions": [vars(region) for region in d.regions],
        "metrics": {name: vars(metric) for name, metric in d.metrics.items()},
        "report": [vars(finding) for finding in d.report],
    }
    return json.dumps(plain, separators=(",", ":"), allow_nan=False).encode("utf-8", "surrogateescape")


def decode(text: bytes) -> Description:
    """The description that `encode` has written.

    Raises
    ------
    ValueError, LookupError, TypeError, AttributeError : the text is something else.
    """
    plain = json.loads(text.decode("utf-8", "surrogateescape"))
    report = plain.pop("report")
    endless = [k for k, item in enumerate(plain["locations"]) if item["half_width"] is None]
    for k in endless:
        del plain["locations"][k]["half_width"]
    decoder = Decoder()
    description = decoder.decode(Description, plain)
    description.report.findings = {one.name: one for one in decoder.decode(list[Finding], report, "report")}
    for k in endless:
        description.locations[k].half_width = math.inf
    for location in description.locations:
        _check_location(location)
    for name, kind in NOTES.items():
        noted = description.notes.get(name)
        if noted is not None and type(noted) is not kind:
            raise ValueError(f"the note {name!r} is {noted!r}")
    if not description.ticks_per_second > 0:
        raise ValueError(f"ticks_per_second is {description.ticks_per_second}")
    count, totals = len(description.locations), description.totals
    fair = all(len(row) == len(Activity) and all(0 <= t <= 2 * TICK_LIMIT for t in row) for row in totals)
    if len(description.tallies) != count or len(totals) not in (0, count) or not fair:
        raise ValueError("counts and locations differ in number")
    return description


def _check_location(location: Location) -> None:
    times = (location.first, location.last)
    if (times[0] is None) != (times[1] is None):
        raise ValueError(f"location {location.id} is not described well")
    if not abs(location.drift) <= MOST_DRIFT:
        raise ValueError(f"the clock of location {location.id} drifts by {location.drift}")
    if times[0] is not None and times[1] is not None:
        limit = TICK_LIMIT
        inside = all(type(t) is int and -limit < t < limit for t in (*times, location.shift, location.origin))
        inside = inside and location.doubt >= 0
        if not inside or times[0] > times[1]:
            raise ValueError(f"location {location.id} ends before it begins, or out of range")
