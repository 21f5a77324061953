"""The statistics of ranges as plain values: what ``phasewright stats --json`` prints."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from desktop.core.accounts import Account
from desktop.core.plain import JSON
from desktop.data.events import Activity
from desktop.data.statistics import SINGLE, RangeStats, Statistics
from desktop.data.utilization import Utilization

#: Number of most loaded and of idlest processors that are named.
NAMED = 5
#: Most segments of a critical path that are listed.
SEGMENTS = 1000
#: What is said of a region.
_REGION = ("name", "role", "activity", "exclusive_s", "inclusive_s", "calls", "share")
#: Seconds of a location in communication, as fields of `Replayed`.
_WAITING = {"communication_s": "communication_s", "waiting_s": "waiting_s", "transfer_s": "moving_s"}


def explained(
    statistics: Statistics,
    use: Utilization,
    run: RangeStats,
    stats: RangeStats,
    before: RangeStats | None = None,
    called: Mapping[str, str] | None = None,
) -> JSON:
    """A range of a run in names and numbers, None for unknown values. `called`: other names of regions.

    Keys: those of `SINGLE` (see `desktop.data.statistics.RangeStats`); ``ideal_s`` (duration on an ideal
    network) and ``ideal_note`` (why it is unknown); ``activities``: processor-seconds by name with ``_s``;
    ``accounts``: the same by the accounts of `desktop.core.accounts`, which add up to length x processors
    (also for each location); ``concurrency``: ``level`` and ``share`` of the time; ``roles``:
    processor-seconds; ``regions``: ``name``, ``trace_name`` (the same unless renamed), ``role``,
    ``activity``, ``exclusive_s``, ``inclusive_s``, ``calls``, ``share`` (of all processors' time);
    ``locations``: ``id``, ``name``, ``utilization``, seconds by activity, ``sent``, ``received``,
    ``bytes_sent``, ``bytes_received``, ``communication_s``, ``waiting_s``, ``transfer_s`` (communication that
    is not waiting); ``most_loaded``, ``idlest``: names; ``messages``: totals and ``matrix``: ``sender``,
    ``receiver`` (ids of locations), ``count``, ``bytes``; ``waiting_note``; ``note``; ``changes``:
    differences from the range before: ``kind``, ``left``, ``right``, ``sentence``;
    ``causes``: see `_causes`.
    """
    replayed, messages, store, called = stats.replayed, stats.messages, statistics.store, called or {}
    ids: list[int | None] = [location.id for location in store.locations]
    pairs = None
    if messages is not None:
        columns = (messages.sender, messages.receiver, messages.count, messages.bytes)
        pairs = [
            {"sender": ids[s], "receiver": ids[r] if r >= 0 else None, "count": count, "bytes": size}
            for s, r, count, size in zip(*(column.tolist() for column in columns), strict=True)
        ]
    return {
        **{name: getattr(stats, name) for name in SINGLE},
        "ideal_s": replayed.ideal_s if replayed else None,
        "ideal_note": replayed.ideal_note if replayed else "",
        "activities": _by_name(stats.by_activity),
        "accounts": stats.account_s and _by_name(stats.account_s),
        "concurrency": [
            {"level": level, "share": share}
            for level, share in zip(stats.levels.tolist(), stats.shares.tolist(), strict=True)
        ],
        "roles": statistics.by_role(stats),
        "regions": [
            {
                **{name: getattr(row, name) for name in _REGION},
                "name": called.get(row.name, row.name),
                "trace_name": row.name,
                "activity": None if row.activity is None else row.activity.name.lower(),
            }
            for row in statistics.flat(stats, use)
        ],
        "locations": [_location(statistics, stats, i) for i in range(len(ids)) if stats.is_processor[i]],
        "most_loaded": [statistics.name(i) for i in stats.most_loaded(NAMED).tolist()],
        "idlest": [statistics.name(i) for i in stats.idlest(NAMED).tolist()],
        "messages": None
        if messages is None
        else {
            "sent": int(messages.sent.sum()),
            "received": int(messages.received.sum()),
            "bytes_sent": int(messages.bytes_sent.sum()),
            "bytes_received": int(messages.bytes_received.sum()),
            "matrix": pairs,
        },
        "waiting_note": replayed.waiting_note if replayed else "",
        "note": stats.note,
        "changes": [
            {name: getattr(change, name) for name in ("kind", "left", "right", "seconds")}
            | {"sentence": change.called(called)}
            for change in (() if before is None else statistics.changes(run, before, stats))
        ],
        "causes": _causes(statistics, use, stats, called),
    }


def _causes(
    statistics: Statistics, use: Utilization, stats: RangeStats, called: Mapping[str, str]
) -> JSON | None:
    """Who made others wait, and the critical path (`desktop.data.causes`), all in seconds; None if unknown.

    Keys: ``waiting_s``; ``costs_s``: waiting, at any time, caused by delays of the range; ``unexplained_s``:
    waiting of the whole run whose cause is unknown; ``delays``: the largest ``short_term_s`` and
    ``long_term_s`` costs, with ``location`` (id) and ``region``; ``locations``: ``id``, ``waits_direct_s``,
    ``waits_indirect_s``, ``costs_short_term_s``, ``costs_long_term_s``, ``path_s``, ``slack_s`` (the least);
    ``regions``: ``name`` and the same; ``critical_path``: ``length_s`` and ``segments`` of the range, each
    with ``location`` (id), ``start_s`` and ``end_s``, the earliest `SEGMENTS` of them.
    """
    caused = stats.caused
    if caused is None:
        return None
    causes = statistics.causes(use)
    ids = [location.id for location in statistics.store.locations]
    keys = [f"{name}_s" for name in ("waits_direct", "waits_indirect", "costs_short_term", "costs_long_term")]
    keys += ["path_s", "slack_s"]

    def rows(*columns: ArrayLike) -> list[dict[str, float]]:
        table = np.column_stack(columns)
        return [dict(zip(keys, row, strict=True)) for row in table.tolist()]

    by_location = rows(caused.waits_s, caused.costs_s, caused.path_s, caused.slack_s)
    by_region = rows(
        caused.region_waits_s, caused.region_costs_s, caused.region_path_s, caused.region_slack_s
    )  # fmt: skip
    seen = [any(row[key] for key in keys[:-1]) for row in by_region]
    return {
        "waiting_s": float(caused.waits_s.sum()),
        "costs_s": float(caused.costs_s.sum()),
        "unexplained_s": caused.unexplained_s,
        "delays": [
            {
                "location": ids[at.location],
                "region": called.get(at.name, at.name),
                "short_term_s": at.short_s,
                "long_term_s": at.long_s,
            }
            for at in caused.delays
        ],
        "locations": [{"id": ids[i], **by_location[i]} for i in np.flatnonzero(stats.is_processor).tolist()],
        "regions": [
            {"name": called.get(name := causes.name(i), name), **row}
            for i, row in enumerate(by_region)
            if seen[i]
        ],
        "critical_path": {
            "length_s": float(caused.path_s.sum()),
            "segments": [
                {"location": ids[i], "start_s": start, "end_s": end}
                for i, start, end in causes.path_between(stats.start_s, stats.end_s, use, SEGMENTS)
            ],
        },
    }


def single(stats: RangeStats) -> JSON:
    """A range in one row: the values of `SINGLE`, seconds by activity and account, messages and bytes."""
    talk, caused = stats.messages, stats.caused
    accounts = _by_name(stats.account_s or dict.fromkeys(Account))
    return {
        **{name: getattr(stats, name) for name in SINGLE},
        **_by_name(stats.by_activity),
        **{f"account_{name}": value for name, value in accounts.items()},
        "waits_s": None if caused is None else float(caused.waits_s.sum()),
        "makes_others_wait_s": None if caused is None else float(caused.costs_s.sum()),
        "critical_path_s": None if caused is None else float(caused.path_s.sum()),
        "messages_sent": None if talk is None else int(talk.sent.sum()),
        "bytes_sent": None if talk is None else int(talk.bytes_sent.sum()),
    }


def _by_name(seconds: Mapping[Activity, float] | Mapping[Account, float | None]) -> dict[str, float | None]:
    return {f"{one.name.lower()}_s": value for one, value in seconds.items()}


def _location(statistics: Statistics, stats: RangeStats, i: int) -> JSON:
    talk, replayed = stats.messages, stats.replayed
    accounts = None
    if stats.accounts is not None:
        accounts = _by_name({one: float(stats.accounts[i, one] * stats.unit_s) for one in Account})
    return {
        "id": statistics.store.locations[i].id,
        "name": statistics.name(i),
        "utilization": stats.utilization[i],
        **_by_name({activity: float(stats.seconds[i, activity]) for activity in Activity}),
        "accounts": accounts,
        **{
            name: None if talk is None else int(getattr(talk, name)[i])
            for name in ("sent", "received", "bytes_sent", "bytes_received")
        },
        **{
            name: None if (column := getattr(replayed, of, None)) is None else float(column[i])
            for name, of in _WAITING.items()
        },
    }
