"""The contents of a trace, as printed by ``phasewright info --json``."""

from __future__ import annotations

from collections import Counter

import numpy as np

from desktop.core.plain import JSON, plain_values
from desktop.data.call_tables import entered
from desktop.data.classify import mpi_call
from desktop.data.consistency import doubt
from desktop.data.curves import available
from desktop.data.events import Activity, Location
from desktop.data.store import TraceStore
from desktop.data.utilization import outline


def info(store: TraceStore) -> JSON:
    """Names and numbers of a trace, full precision, None for unknown values.

    ``totals.messages_sent`` counts send and isend, ``messages_received`` completed receives, each message
    once; ``collectives`` counts each location in every operation. Times of locations (``first_s``,
    ``last_s``) are seconds since the trace's start, with clocks repaired if that is the default.
    """
    curve = outline(store)
    mpi, mpi_of_each = _mpi_calls(store)
    tallies, clock = store.tallies, store.clock
    checks = ("checked", "violations_before", "violations_after", "repair")
    fields = ("name", "severity", "count", "where", "text")
    facts: JSON = plain_values(
        {
            "format": store.importer.id,
            "source": {"name": store.source.name, "size": store.source.size, "sha256": store.source.sha256},
            "importer": {"name": store.importer.id, "version": store.importer.version},
            "ticks_per_second": store.ticks_per_second,
            "duration_s": curve.duration_s,
            "totals": {
                "events": sum(location.records for location in store.locations),
                "enter": sum(tally.enter for tally in tallies),
                "leave": sum(tally.leave for tally in tallies),
                "messages_sent": sum(tally.sent for tally in tallies),
                "messages_received": sum(tally.received for tally in tallies),
                "collectives": sum(tally.collectives for tally in tallies),
                "mpi_calls": mpi.total(),
            },
            "mpi_calls": dict(sorted(mpi.items())),
            "locations": [
                {
                    "id": location.id,
                    "name": location.name,
                    "rank": location.rank,
                    "thread": location.thread,
                    "kind": location.kind,
                    "events": location.records,
                    "enter": tally.enter,
                    "leave": tally.leave,
                    "mpi_calls": mpi_calls,
                    **{f"{activity.name.lower()}_s": seconds[activity] for activity in Activity},
                    "first_s": _seconds(location.first, location, store, curve.start),
                    "last_s": _seconds(location.last, location, store, curve.start),
                    "damage": location.damage or None,
                }
                for location, tally, mpi_calls, seconds in zip(
                    store.locations, tallies, mpi_of_each, curve.seconds.tolist(), strict=True
                )
            ],
            "utilization": {
                "processors": curve.processors,
                "processors_defined": curve.defined,
                "segments": curve.segments,
                "mean": curve.mean,
                "max": curve.most,
                "integral_s": curve.integral_s,
                "in_doubt_s": in_doubt(store),
            },
            "curves": [one._asdict() for one in available(store)],
            "clock": {
                **{name: getattr(clock, name) for name in checks},
                **{name: clock.details.get(name, 0.0) for name in ("most_before_s", "most_after_s")},
            },
            "report": [{name: getattr(finding, name) for name in fields} for finding in store.report],
        }
    )
    return facts


def in_doubt(store: TraceStore) -> float | None:
    """Most processor-seconds of the curve that may be wrong because of losses; None: unknown."""
    lacking = doubt(store)
    return 0.0 if lacking is None else lacking.seconds


def _mpi_calls(store: TraceStore) -> tuple[Counter[str], list[int]]:
    """Number of calls of each MPI function, and of all of them by each location."""
    is_mpi = np.array([mpi_call(region.name) for region in store.regions], bool)
    total = np.zeros(len(store.regions), np.int64)
    for location in range(len(store.locations)):
        for regions, counts in store.blocks("calls", location, "region", "count"):
            total[regions] += counts
    by_name: Counter[str] = Counter()
    for index in np.flatnonzero(total * is_mpi).tolist():
        by_name[store.regions[index].name] += int(total[index])
    return by_name, entered(store, is_mpi).tolist()


def _seconds(tick: int | None, location: Location, store: TraceStore, start: int) -> float | None:
    if tick is None:
        return None
    return float((location.clock(store.repair).common(tick) - start) / store.ticks_per_second)
