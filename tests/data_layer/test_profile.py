"""Positions in call paths and in messages against a plain replay of the events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.core.open_regions import BEGIN, END
from desktop.data import digest, profile
from desktop.data.events import EventKind, Importer, Location, MessageKind, Region
from desktop.data.profile import FOLDED_PATHS, Profile
from desktop.data.store import Source, StoreWriter, TraceStore, open_store
from desktop.errors import StoreError
from tests.digests import PROFILE
from tests.oracles.callpaths import paths
from tests.oracles.utilization import Thread

MADE = Importer("made", "Made for tests", "1", lambda p, h: True, lambda p, s, g: None, lambda p: [p])
REGIONS = 4
KIND = {"enter": EventKind.ENTER, "leave": EventKind.LEAVE}


@contextmanager
def stored(
    threads: list[Thread],
    messages: list[list[tuple[int, ...]]] | None = None,
    digests: bool = True,
    cut: int = 7,
) -> Iterator[TraceStore]:
    """Appended `cut` rows at a time."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "made.h5"
        with StoreWriter(path, Source("made", "made"), MADE, PROFILE * digests) as writer:
            writer.describe(ticks_per_second=1e6)
            for number, thread in enumerate(threads):
                writer.location(Location(number, first=thread.first, last=thread.last, rank=number))
            for number in range(REGIONS):
                writer.region(Region(f"r{number}"))
            for number, thread in enumerate(threads):
                for a in range(0, len(thread.events), cut):
                    time, kind, region = zip(*thread.events[a : a + cut], strict=True)
                    writer.append(
                        "events",
                        number,
                        time=np.array(time, np.int64),
                        kind=np.array([KIND[k] for k in kind], np.uint8),
                        region=np.array(region, np.uint32),
                    )
            for number, rows in enumerate(messages or []):
                for a in range(0, len(rows), cut):
                    table = np.array(rows[a : a + cut], np.int64).T
                    names = ("time", "kind", "peer", "bytes")
                    rest = {"communicator": 0, "tag": 0, "request": 0}
                    writer.append(
                        "messages",
                        number,
                        **dict(zip(names, table, strict=True)),
                        **{name: np.full(table.shape[1], value) for name, value in rest.items()},
                    )
        with open_store(path) as store:
            yield store


@st.composite
def threads(draw: st.DrawFn) -> Thread:
    rows = draw(
        st.lists(
            st.tuples(
                st.integers(0, 60), st.sampled_from(["enter", "enter", "leave"]), st.integers(0, REGIONS - 1)
            ),
            max_size=60,
        )
    )
    rows.sort(key=lambda row: row[0])
    first = rows[0][0] - draw(st.integers(0, 3)) if rows else draw(st.integers(0, 5))
    last = (rows[-1][0] if rows else first) + draw(st.integers(0, 3))
    return Thread(first, last, rows)


def told(store: TraceStore, known: Profile, location: int, cuts: list[int]) -> list[tuple[Counter, Counter]]:
    """Ticks and calls by path between neighbouring cuts, where no paths are folded."""
    tree = known.tree(location).tree
    path: list[tuple[int, ...]] = [()]
    for parent, region in tree[:, 1:].T.tolist():
        path.append((*path[parent], region))
    ticks, calls = known.at(location, np.array(cuts, np.int64))
    return [
        tuple(
            Counter({path[n]: int(v) for n, v in enumerate(values[i + 1] - values[i]) if v})
            for values in (ticks, calls)
        )
        for i in range(len(cuts) - 1)
    ]


cutting = st.lists(st.integers(-5, 70), max_size=6, unique=True).map(sorted)


@settings(deadline=None, max_examples=40)
@given(st.lists(threads(), min_size=1, max_size=3), cutting, st.sampled_from([1, 2, 5, 64]), st.booleans())
def test_any_range_agrees_with_a_replay(many, cuts, rows, digests) -> None:
    """Whatever the nesting, however often notes are taken, on import or afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        for where in (digest, profile):
            patch.setattr(where, "ROWS", rows)
        patch.setattr(profile, "_WAITING", 8)
        with stored(many, digests=digests) as store:
            known = Profile(store)
            for cuts_now in ([BEGIN, END], [BEGIN, *cuts, END], [BEGIN, END]):
                for number, thread in enumerate(many):
                    for i, found in enumerate(told(store, known, number, cuts_now)):
                        begin, end = cuts_now[i], cuts_now[i + 1]
                        assert found == paths(thread, begin, min(end, 10**6), end == END)


@settings(deadline=None, max_examples=30)
@given(threads(), cutting, st.sampled_from([1, 5]), st.integers(1, 4))
def test_folded_paths_keep_their_regions(thread, cuts, rows, limit) -> None:
    """Of each region the time and the calls stay exact; all paths that are kept are real ones."""
    with pytest.MonkeyPatch.context() as patch:
        for where in (digest, profile):
            patch.setattr(where, "ROWS", rows)
        patch.setattr(profile, "PATHS", limit)
        with stored([thread]) as store:
            known = Profile(store)
            tree, folding = known.tree(0)
            assert (tree[0, 1:] >= 0).sum() <= limit
            assert folding == (FOLDED_PATHS in store.report.findings)
            cuts = [BEGIN, *cuts, END]
            ticks, calls = known.at(0, np.array(cuts, np.int64))
            for i in range(len(cuts) - 1):
                want = paths(thread, cuts[i], min(cuts[i + 1], 10**6), cuts[i + 1] == END)
                for found, expected in zip((ticks, calls), want, strict=True):
                    by_region: Counter = Counter()
                    for node, value in enumerate((found[i + 1] - found[i]).tolist()):
                        by_region[int(tree[1, node])] += value
                    wanted: Counter = Counter()
                    for path, value in expected.items():
                        wanted[path[-1] if path else -1] += value
                    assert +by_region == +wanted


def test_deep_recursion_and_a_stack_that_only_grows() -> None:
    """Notes stay small beside the events, and positions right."""
    enters = [(k, "enter", k % 3) for k in range(30_000)]
    leaves = [(40_000 + k, "leave", (29_999 - k) % 3) for k in range(30_000)]
    thread = Thread(0, 80_000, enters + leaves)
    with stored([thread], cut=5000) as store:
        known = Profile(store)
        assert known.tree(0).folding
        assert store.rows("folded", 0) + store.rows("profile", 0) < 60_000
        ticks, calls = known.at(0, np.array([BEGIN, 20_000, 35_000, 60_000, END]))
        assert np.diff(ticks.sum(axis=1)).tolist() == [20_000, 15_000, 25_000, 20_000]
        assert np.diff(calls.sum(axis=1)).tolist() == [20_000, 10_000, 0, 0]


@st.composite
def talks(draw: st.DrawFn) -> list[tuple[int, ...]]:
    one = st.tuples(
        st.integers(0, 60), st.sampled_from(list(MessageKind)), st.integers(-1, 2), st.integers(0, 9)
    )
    return sorted(draw(st.lists(one, max_size=60)))


@settings(deadline=None, max_examples=40)
@given(st.lists(talks(), min_size=3, max_size=3), cutting, st.sampled_from([1, 2, 5, 64]), st.booleans())
def test_messages_agree_with_a_count(talk, cuts, rows, digests) -> None:
    outward, inward = (MessageKind.SEND, MessageKind.ISEND), (MessageKind.RECV, MessageKind.IRECV)
    cuts = [BEGIN, *cuts, END]
    with pytest.MonkeyPatch.context() as patch:
        for where in (digest, profile):
            patch.setattr(where, "ROWS", rows)
        with stored([Thread(0, 60, [])] * 3, talk, digests) as store:
            known = Profile(store)
            for number, messages in enumerate(talk):
                peers, counts = known.traffic(number, np.array(cuts, np.int64))
                for i in range(len(cuts) - 1):
                    between = counts[:, i + 1] - counts[:, i]
                    for k, peer in enumerate(peers.tolist()):
                        inside = [m for m in messages if cuts[i] <= m[0] < cuts[i + 1] and m[2] == peer]
                        sent, got = ([m[3] for m in inside if m[1] in way] for way in (outward, inward))
                        assert between[:, k].tolist() == [len(sent), sum(sent), len(got), sum(got)]
                    rest = [m for m in messages if m[2] not in peers and m[1] in outward + inward]
                    assert not rest


@pytest.mark.parametrize(
    "column, value",
    [
        ("profile/node", 99),
        ("profile/top", 99),
        ("profile/row", 10**9),
        ("paths/parent", 50),
        ("paths/parent", -7),
    ],
)
def test_notes_that_cannot_be_are_refused(column: str, value: int) -> None:
    thread = Thread(0, 100, [(k, "enter" if k % 2 else "leave", k % 3) for k in range(90)])
    with stored([thread]) as store:
        path = store.path
        store.close()
        with h5py.File(path, "r+", locking=False) as file:
            file[f"derived/{column}"][-1] = value
        with open_store(path) as opened, pytest.raises(StoreError, match="call paths"):
            Profile(opened).at(0, np.array([BEGIN, 50, END]))
