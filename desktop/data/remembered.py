"""Accounts, efficiencies, delay costs and words of a run, kept in the user's cache for the next opening.

One file for each run, rules and phases, in a folder of the cache that nobody else writes: neither the trace
nor its store is touched, so that both may be read-only, and nothing that came with them is believed. (HDF5
does not change a file that others have open, and a file is lost if a process is killed meanwhile.) Its name
is a digest of all that the numbers depend on, among it the state of the store's file, so that it is never
stale: what has changed has another name. The folder holds `FILES` files and `BYTES` at most; those used
longest ago go first. A file that cannot be read is as none, one that cannot be written is left out.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
from platformdirs import user_cache_path

import desktop
from desktop.core.accounts import Account
from desktop.core.explanation import Explanation, Told, ToldPhase
from desktop.data.atomic import PartFile
from desktop.data.causality import Replayed
from desktop.data.causes import Caused, Delay
from desktop.data.statistics import RangeStats
from desktop.data.store import TraceStore
from desktop.data.utilization import Rules
from desktop.errors import DesktopError

#: To be raised when accounts, causes or words of a run become others.
VERSION = 2
FILES, BYTES = 200, 1 << 26


class Ranges(NamedTuple):
    """What the numbers belong to: the rules, and the ends of a run's phases with what they and regions are
    called."""

    rules: Rules
    breaks: Sequence[float]
    names: Sequence[str]
    called: Mapping[str, str]


def recall(
    store: TraceStore, of: Ranges, stats: Sequence[RangeStats], causes: bool
) -> tuple[tuple[RangeStats, ...], Explanation | None] | None:
    """`stats` with what was kept of them, and the words; None unless all are known, with delay costs where
    `causes` are wanted."""
    with suppress(OSError, ValueError, KeyError, TypeError, BadZipFile, EOFError):
        place = _place(store, of)
        if place.stat().st_size > BYTES:
            return None
        with np.load(place, allow_pickle=False) as file:
            about = json.loads(bytes(file["about"]))
            known = {tuple(span): k for k, span in enumerate(about["spans"])}
            found = []
            for one in stats:
                k = known[one.start_s, one.end_s]
                found.append(
                    _filled(one, about["ranges"][k], {n: file[f"{n}_{k}"] for n in about["arrays"][k]})
                )
        os.utime(place)
        if causes and any(one.caused is None for one in found if _waits(one)):
            return None
        told = about["words"]
        return tuple(found), None if told is None else _explanation(told)
    return None


def keep(store: TraceStore, of: Ranges, stats: Sequence[RangeStats], words: Explanation | None) -> None:
    """Keep what was found for the next opening."""
    arrays: dict[str, Any] = {}
    names, ranges = [], []
    for k, one in enumerate(stats):
        parts, plain = _parted(one)
        names.append(list(parts))
        ranges.append(plain)
        arrays |= {f"{name}_{k}": part for name, part in parts.items()}
    if sum(part.nbytes for part in arrays.values()) > BYTES // 4:
        return
    about = {
        "spans": [(one.start_s, one.end_s) for one in stats],
        "ranges": ranges,
        "arrays": names,
        "words": None if words is None else asdict(words),
    }
    arrays["about"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
    with suppress(OSError, DesktopError):
        place = _place(store, of)
        place.parent.mkdir(parents=True, exist_ok=True)
        with PartFile(place) as part, part.part.open("wb") as file:
            np.savez(file, **arrays)
        _bound(place.parent)


def _place(store: TraceStore, of: Ranges) -> Path:
    state = Path(store.path).stat()
    key = [
        VERSION, desktop.__version__, str(store.path), state.st_mtime_ns, state.st_size, store.importer.id,
        store.importer.version, sorted(of.rules.computing), sorted(of.rules.overrides.items()),
        of.rules.repaired, [float(at) for at in of.breaks], list(of.names), sorted(of.called.items()),
    ]  # fmt: skip
    digest = hashlib.sha256(json.dumps(key).encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return user_cache_path("phasewright", appauthor=False) / "accounts" / f"{digest}.npz"


def _bound(folder: Path) -> None:
    """Remove what was used longest ago."""
    there = sorted((path.stat().st_mtime, path.stat().st_size, path) for path in folder.glob("*.npz"))
    held = sum(size for _, size, _ in there)
    for k, (_, size, path) in enumerate(there):
        if len(there) - k > FILES or held > BYTES:
            path.unlink(missing_ok=True)
            held -= size


def _waits(stats: RangeStats) -> bool:
    return stats.replayed is not None and stats.replayed.waiting_s is not None


def _parted(stats: RangeStats) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arrays by name, and what is none."""
    parts: dict[str, Any] = {} if stats.accounts is None else {"accounts": stats.accounts}
    plain: dict[str, Any] = {}
    for whole in (stats.replayed, stats.caused):
        for one in () if whole is None else fields(whole):
            value = getattr(whole, one.name)
            if isinstance(value, np.ndarray):
                parts[one.name] = value
            else:
                plain[one.name] = [asdict(delay) for delay in value] if one.name == "delays" else value
    return parts, plain


def _filled(stats: RangeStats, plain: dict[str, Any], parts: dict[str, Any]) -> RangeStats:
    accounts = parts.pop("accounts")
    places = stats.is_processor.size
    if accounts.shape != (places, len(Account)) or accounts.dtype != np.int64:
        raise ValueError("accounts of another run")
    if any(part.dtype != np.float64 or part.shape[:1] not in _sizes(stats) for part in parts.values()):
        raise ValueError("numbers of another run")
    both = plain | parts
    delays = tuple(Delay(**one) for one in both.pop("delays", ()))
    replayed = Replayed(**{name: both.pop(name) for name in _names(Replayed)})
    caused = Caused(**both, delays=delays) if both else None
    return replace(stats, accounts=accounts, replayed=replayed, caused=caused)


def _sizes(stats: RangeStats) -> tuple[tuple[int], tuple[int]]:
    """Of what is by location, and by region."""
    return (stats.is_processor.size,), (stats.exclusive_s.size + 2,)


def _names(whole: Any) -> Iterable[str]:
    return (one.name for one in fields(whole))


def _explanation(told: dict[str, Any]) -> Explanation:
    def causes(rows: list[dict[str, Any]]) -> tuple[Told, ...]:
        return tuple(Told(**row | {"locations": tuple(row["locations"])}) for row in rows)

    phases = tuple(ToldPhase(**row | {"causes": causes(row["causes"])}) for row in told["phases"])
    return Explanation(**told | {"causes": causes(told["causes"]), "phases": phases})
