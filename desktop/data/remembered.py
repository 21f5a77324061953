"""Accounts, efficiencies, delay costs, explanations and costs (for comparisons) of a run, stored for the next
opening.

A store has space for them (`desktop.data.store.slot`), so that they stay with it. If it has too little (it is
older, or the run has too many locations), or must not be written, they are stored in a folder of the user's
cache, with at most `FILES` files and `BYTES`; the least recently used go first.

The key is a digest of everything the numbers depend on: trace, rules, phases and names. So nothing is ever
outdated: a change gives another key. A store may come from anyone: stored results are checked against the
ranges, and ignored if they do not fit. If they cannot be written, nothing is stored.
"""

from __future__ import annotations

import json
import math
import os
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, TypeVar, get_type_hints

import numpy as np
from platformdirs import user_cache_path

import desktop
from desktop.core.accounts import Account
from desktop.core.arrays import AnyArray
from desktop.core.charges import ENDING, NOT_BEGUN, RunCosts
from desktop.core.critical_path import CriticalPath, PathLine
from desktop.core.explanation import Explanation
from desktop.core.plain import JSON
from desktop.data.atomic import write_bytes
from desktop.data.causality import Causality, Replayed
from desktop.data.causes import Caused, path_line
from desktop.data.remote_frames import inflated
from desktop.data.statistics import RangeStats, Statistics
from desktop.data.store import TraceStore
from desktop.data.structure import Decoder, encode
from desktop.data.utilization import Rules, Utilization, build
from desktop.errors import DesktopError
from desktop.progress import Progress

#: To be increased when accounts, causes or explanations of a run, or their form here, change.
VERSION = 10
FILES, BYTES = 200, 1 << 26
#: Most bytes for a run and its phases, unpacked.
MOST = 1 << 24
# No clock has so many ticks, and the difference of two of them still fits into 64 bits.
_FAR = 1 << 61
_Numbers = TypeVar("_Numbers", Replayed, Caused)


class Ranges(NamedTuple):
    """What the numbers depend on: the rules, the ends of a run's phases, and the names of phases and
    regions."""

    rules: Rules
    breaks: Sequence[float]
    names: Sequence[str]
    called: Mapping[str, str]


def recall(
    store: TraceStore, of: Ranges, stats: Sequence[RangeStats], causes: bool, elsewhere: bool = False
) -> tuple[tuple[RangeStats, ...], Explanation | None] | None:
    """`stats` with their stored results, and the explanation; None unless all are known, with delay costs if
    `causes` are wanted. `elsewhere`: whether the store's machine may be asked to compute them."""
    key = _key(store, of)
    places = [partial(_in_store, store, key), partial(_in_cache, store, key)]
    if elsewhere and store.elsewhere is not None:
        places.append(partial(_elsewhere, store, of, stats))
    for packed in places:
        with suppress(OSError, ValueError, LookupError, TypeError, ArithmeticError, RecursionError):
            about, at, content = _unpacked(packed())
            stored = {}
            for one in about["ranges"]:
                stored[tuple(one["span"])] = one, at
                at += sum(_size(name, stats[0]) for name in one["arrays"])
            recalled = tuple(_filled(one, *stored[one.start_s, one.end_s], content) for one in stats)
            if not causes or all(one.caused is not None for one in recalled if _waits(one)):
                return recalled, None if about["words"] is None else _words(about["words"], of, stats[0])
    return None


def _in_store(store: TraceStore, key: bytes) -> bytes:
    return b"" if store.slot is None else store.slot.get(key) or b""


def _in_cache(store: TraceStore, key: bytes) -> bytes:
    place = _place(store, key)
    if place.stat().st_size > BYTES:
        return b""
    os.utime(place)
    return place.read_bytes()


def _elsewhere(store: TraceStore, of: Ranges, stats: Sequence[RangeStats]) -> bytes:
    """Results from the machine of the store: computing them here would need all its events."""
    assert store.elsewhere is not None
    request = {
        "rules": encode(of.rules, Path()), "breaks": [float(at) for at in of.breaks], "names": list(of.names),
        "called": dict(of.called), "spans": [(one.start_s, one.end_s) for one in stats],
    }  # fmt: skip
    try:
        packed = store.elsewhere.ask({"accounts": request}, MOST)
    except DesktopError:  # they cannot be fetched
        return b""
    _cache(store, _key(store, of), packed)
    return packed


def answer_for(store: TraceStore, statistics: Statistics, request: JSON, progress: Progress) -> bytes:
    """The answer to `_elsewhere`, on the machine of the store. `statistics`: of the store, which cache who
    waited for whom for the next request; used by one thread at a time.

    Raises
    ------
    ValueError, LookupError, TypeError : the request is invalid.
    DesktopError : the store is damaged.
    """
    from desktop.data.root_causes import explain

    rules = Decoder().decode(Rules, request["rules"])
    of = Ranges(rules, [float(at) for at in request["breaks"]], request["names"], request["called"])
    use = build(store, rules, progress)
    spans = [(float(a), float(b)) for a, b in request["spans"]]
    stats = statistics.ranges(spans, use, progress)
    recalled = recall(store, of, stats, True)
    if recalled is not None:
        return _packed(*recalled)
    stats = statistics.ranges(spans, use, progress, replay=True)
    words = explain(
        statistics, use, of.breaks, of.names, of.called, progress, statistics.causality(use, progress)
    )
    keep(store, of, stats, words)
    return _packed(stats, words)


def remote_path(store: TraceStore, use: Utilization) -> PathLine | None:
    """The critical path computed by the machine of the store; None if it cannot be fetched."""
    assert store.elsewhere is not None
    with suppress(DesktopError, ValueError):
        content = inflated(store.elsewhere.ask({"path": encode(use.rules, Path())}, MOST), MOST)
        location, begin, end = np.frombuffer(content, np.int64).reshape(3, -1)
        good = ((location >= 0) & (location < len(store.locations))).all()
        good &= (begin > -_FAR).all() and (end < _FAR).all() and (begin <= end).all()
        if good and (begin[1:] >= end[:-1]).all():
            return path_line(CriticalPath(location, begin, end), use)
    return None


def path_for(store: TraceStore, statistics: Statistics, request: JSON, progress: Progress) -> bytes:
    """The answer to `remote_path`; `statistics` and errors as for `answer_for`."""
    use = build(store, Decoder().decode(Rules, request), progress)
    whole = np.stack(statistics.causes(use, progress).path).astype(np.int64).tobytes()
    if len(whole) > MOST:
        raise ValueError("the critical path is too long to be sent")
    return zlib.compress(whole, 1)


def keep(store: TraceStore, of: Ranges, stats: Sequence[RangeStats], words: Explanation | None) -> None:
    """Store results for the next opening."""
    packed = _packed(stats, words)
    key = _key(store, of)
    with suppress(OSError, DesktopError):
        if packed and (store.slot is None or not store.slot.put(key, packed)):
            _cache(store, key, packed)


def costs_of(
    store: TraceStore,
    rules: Rules,
    span: tuple[float, float],
    progress: Progress,
    use: Utilization | None = None,
    causality: Causality | None = None,
) -> RunCosts | None:
    """Where the time of a range of a run goes (seconds on the axis of the curve), stored in the cache for the
    next time; None for a curve, and for a store on another machine, as it takes all events. `use`,
    `causality`: by these rules, if already known.

    Raises
    ------
    ValueError : the range contains no tick of the curve.
    """
    from desktop.data.root_causes import costs

    if store.elsewhere is not None:
        return None
    key = _key(store, Ranges(rules, span, ("costs",), {}))
    titles = {*map(int, Account), NOT_BEGUN, ENDING}
    with suppress(OSError, ValueError, TypeError, ArithmeticError, RecursionError):
        processors, rows = json.loads(inflated(_in_cache(store, key), MOST))
        times = {
            (int(a), str(region), str(where)): np.array([own, waits]) for a, region, where, own, waits in rows
        }
        whole = sum(float(one.sum()) for one in times.values())
        if (
            math.isclose(whole, processors * (span[1] - span[0]), rel_tol=1e-6)
            and {a for a, _, _ in times} <= titles
        ):
            return RunCosts(float(processors), times)
    use = use or build(store, rules, progress)
    found = costs(Statistics(store), use, span, progress, causality)
    if found is not None:
        listed = [(*about, *time.tolist()) for about, time in found.times.items()]
        _cache(store, key, zlib.compress(json.dumps((found.processors, listed)).encode(), 1))
    return found


def _cache(store: TraceStore, key: bytes, packed: bytes) -> None:
    with suppress(OSError, DesktopError):
        place = _place(store, key)
        place.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(place, packed)
        _bound(place.parent)


def _packed(stats: Sequence[RangeStats], words: Explanation | None) -> bytes:
    """The content to be stored; empty if it is too large."""
    ranges, content = [], []
    for one in stats:
        arrays, plain = _parted(one)
        ranges.append({"span": (one.start_s, one.end_s), "arrays": list(arrays), **plain})
        content += [part.tobytes() for part in arrays.values()]
    about = json.dumps({"ranges": ranges, "words": None if words is None else asdict(words)}).encode()
    whole = b"".join([len(about).to_bytes(8, "little"), about, *content])
    return b"" if len(whole) > MOST else zlib.compress(whole, 1)


def _key(store: TraceStore, of: Ranges) -> bytes:
    """The key of the results, the same wherever the store is."""
    key = [
        VERSION, desktop.__version__, store.identity, sorted(of.rules.computing),
        sorted(of.rules.overrides.items()), of.rules.repaired,
        [round(at * store.ticks_per_second) for at in of.breaks], list(of.names), sorted(of.called.items()),
    ]  # fmt: skip
    return sha256(json.dumps(key).encode("utf-8", "surrogatepass")).digest()


def _place(store: TraceStore, key: bytes) -> Path:
    """A place in the cache, for this very state of the file."""
    state = store.path.stat()
    # The local part of a store on another machine changes; its name contains its state.
    when = 0 if store.elsewhere is not None else state.st_mtime_ns
    name = sha256(key + f"{store.path}\0{state.st_size}\0{when}".encode("utf-8", "surrogatepass"))
    return user_cache_path("phasewright", appauthor=False) / "accounts" / name.hexdigest()[:32]


def _bound(folder: Path) -> None:
    """Remove the least recently used files."""
    files = sorted((path.stat().st_mtime, path.stat().st_size, path) for path in folder.iterdir())
    held = sum(size for _, size, _ in files)
    for k, (_, size, path) in enumerate(files):
        if len(files) - k > FILES or held > BYTES:
            path.unlink(missing_ok=True)
            held -= size


def _waits(stats: RangeStats) -> bool:
    return stats.replayed is not None and stats.replayed.waiting_s is not None


def _unpacked(packed: bytes) -> tuple[JSON, int, bytes]:
    """The plain values, where the arrays begin, the whole content."""
    content = inflated(packed, MOST)
    at = 8 + int.from_bytes(content[:8], "little")
    return json.loads(content[8:at]), at, content


def _parted(stats: RangeStats) -> tuple[dict[str, AnyArray], JSON]:
    """Arrays by name, and everything else."""
    arrays = {} if stats.accounts is None else {"accounts": stats.accounts.astype(np.int64)}
    plain: JSON = {}
    for kind in ("replayed", "caused"):
        whole = getattr(stats, kind)
        plain[kind] = None if whole is None else {}
        for one in () if whole is None else fields(whole):
            value = getattr(whole, one.name)
            if isinstance(value, np.ndarray):
                arrays[one.name] = value.astype(np.float64)
            else:
                plain[kind][one.name] = [asdict(delay) for delay in value] if one.name == "delays" else value
    return arrays, plain


def _shape(name: str, stats: RangeStats) -> tuple[int, int]:
    places, regions = stats.is_processor.size, stats.exclusive_s.size + 2
    if name == "accounts":
        return places, len(Account)
    return regions if name.startswith("region_") else places, 2 if name.endswith(
        ("waits_s", "costs_s")
    ) else 1


def _size(name: str, stats: RangeStats) -> int:
    rows, columns = _shape(name, stats)
    return 8 * rows * columns


def _filled(stats: RangeStats, plain: JSON, at: int, content: bytes) -> RangeStats:
    """`stats` with the stored results from `at` on.

    Raises
    ------
    ValueError, LookupError, TypeError : it belongs to something else.
    """
    arrays: dict[str, AnyArray] = {}
    for name in plain["arrays"]:
        rows, columns = _shape(name, stats)
        kind = np.int64 if name == "accounts" else np.float64
        part = np.frombuffer(content, kind, rows * columns, at)
        at += part.nbytes
        arrays[name] = part if columns == 1 else part.reshape(rows, columns)
        if not (np.isfinite(part) | (name.endswith("slack_s") & np.isnan(part))).all():
            raise ValueError(f"{name} has numbers that are none")
    accounts = arrays.pop("accounts")
    ticks = np.where(stats.is_processor, round(stats.duration_s / stats.unit_s), 0)
    if (accounts < 0).any() or not np.array_equal(accounts.sum(axis=1), ticks):
        raise ValueError("the accounts do not add up")
    caused = None if plain["caused"] is None else _decoded(Caused, plain["caused"], arrays)
    replayed = _decoded(Replayed, plain["replayed"], arrays)
    if caused is not None:
        for delay in caused.delays:
            if not (
                0 <= delay.location < stats.is_processor.size and delay.region < stats.exclusive_s.size + 2
            ):
                raise ValueError("a delay of nobody")
    return replace(stats, accounts=accounts, replayed=replayed, caused=caused)


def _decoded(kind: type[_Numbers], plain: JSON, arrays: dict[str, AnyArray]) -> _Numbers:
    declared, decoder = get_type_hints(kind), Decoder()
    values: JSON = {
        one.name: decoder.decode(declared[one.name], plain[one.name])
        for one in fields(kind)
        if one.name not in arrays
    }
    return kind(**values | {one.name: arrays[one.name] for one in fields(kind) if one.name in arrays})


def _words(plain: JSON, of: Ranges, run: RangeStats) -> Explanation:
    """The explanation, after checking that all its places are in this run.

    Raises
    ------
    ValueError : one is not.
    """
    words = Decoder().decode(Explanation, plain)
    phases = len(words.phases)
    if phases not in (0, len(of.breaks) - 1) or not 0 <= words.named <= len(words.causes):
        raise ValueError("words of other phases")
    for one_cause in (*words.causes, *(cause for phase in words.phases for cause in phase.causes)):
        if not (-1 <= one_cause.phase < max(phases, 1) and one_cause.start_s <= one_cause.end_s) or not all(
            -1 <= at < run.is_processor.size for at in (one_cause.about, *one_cause.locations)
        ):
            raise ValueError("words of another run")
    return words
