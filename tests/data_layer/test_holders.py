"""Who held a lock and who came last to a barrier, against simulated threads of which it is known."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from desktop.core.accounts import Account
from desktop.data.holders import holders
from desktop.data.opening import open_trace
from tests.data_layer.test_root_causes import told
from tests.programs.causes.known import DATA

THREADS = 5
REGIONS = ("pthread_mutex_lock", "pthread_mutex_unlock", "!$omp barrier @a.c:3")


def _store() -> SimpleNamespace:
    places = [SimpleNamespace(process="0", rank=0, thread=i, id=i) for i in range(THREADS)]
    return SimpleNamespace(locations=places, regions=[SimpleNamespace(name=name) for name in REGIONS])


def _locked(rng: np.random.Generator) -> tuple[list[list[tuple[int, int]]], np.ndarray]:
    """Threads that come to a lock at times of their own: waits of each, and how long each was waited for."""
    ready = rng.integers(1, 50, THREADS)
    waits: list[list[tuple[int, int]]] = [[] for _ in range(THREADS)]
    blame, free, holds = np.zeros(THREADS, np.int64), 0, []
    for _ in range(200):
        who = int(np.argmin(ready))
        begin = int(ready[who])
        got = max(begin, free) + 1  # the call itself takes a tick
        for holder, since, until in holds:
            if holder != who:
                blame[holder] += max(0, min(until, got) - max(since, begin))
        free = got + int(rng.integers(5, 90) * (1 + 3 * (who == 2)))
        holds.append((who, got, free + 1))  # until the next one has got it
        waits[who].append((begin, got))
        ready[who] = free + int(rng.integers(1, 200))
    return waits, blame


@pytest.mark.parametrize("seed", range(5))
def test_who_held_a_lock(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("desktop.data.holders.process_of", lambda store: np.zeros(THREADS, np.int64))
    waits, blame = _locked(np.random.default_rng(seed))
    tables = [np.array([(a, b, Account.LOCK, 0) for a, b in rows], np.int64).T for rows in waits]
    found = holders(_store(), tables)  # type: ignore[arg-type]  # all that is asked of a store
    got = found.between(0, 1 << 60, THREADS, 1.0)[Account.LOCK, 0]
    waited = sum(b - a for rows in waits for a, b in rows)
    # A tick of each call is nobody's; who comes to a free lock waits for nobody.
    assert np.abs(got - blame).sum() <= 2 * 200 < 0.1 * waited
    assert got.argmax() == 2
    parts = [
        found.between(a, b, THREADS, 1.0).get((Account.LOCK, 0), 0) for a, b in ((0, 5000), (5000, 1 << 60))
    ]
    np.testing.assert_allclose(parts[0] + parts[1], got)


def test_only_getting_a_lock_of_ones_own_process_tells_who_holds_it() -> None:
    """Threads 0 to 2 of one process, 3 and 4 of another; who unlocks, or is alone, holds nothing."""
    store = _store()
    for place in store.locations[3:]:
        place.rank = 1
    store.regions.append(SimpleNamespace(name="!$omp critical sblock @a.c:9"))

    def got(region: int, *who: int) -> dict[tuple[int, int], np.ndarray]:
        """The first of them gets it at 5, the next one waits from 10 to 40."""
        tables = [np.zeros((4, 0), np.int64) for _ in range(THREADS)]
        for i, (begin, end) in zip(who, ((1, 5), (10, 40)), strict=False):
            tables[i] = np.array([[begin], [end], [Account.LOCK], [region]])
        return holders(store, tables).between(0, 100, THREADS, 1.0)  # type: ignore[arg-type]  # as above

    assert got(0, 0, 1)[Account.LOCK, 0].tolist() == [30, 0, 0, 0, 0]
    for region, who in ((0, (0, 3)), (0, (0,)), (1, (0, 1)), (3, (0, 1))):
        assert sum(ticks.sum() for ticks in got(region, *who).values()) == 0, (region, who)
    # Who comes first is not who gets it first.
    tables = [np.zeros((4, 0), np.int64) for _ in range(THREADS)]
    for i, (begin, end) in enumerate(((1, 30), (2, 5), (3, 60))):
        tables[i] = np.array([[begin], [end], [Account.LOCK], [0]])
    found = holders(store, tables)  # type: ignore[arg-type]  # as above
    assert found.between(0, 100, THREADS, 1.0)[Account.LOCK, 0].tolist() == [30, 25 + 25, 0, 0, 0]
    assert found.between(10, 20, THREADS, 1.0)[Account.LOCK, 0].tolist() == [0, 20, 0, 0, 0]


def test_who_came_last_to_a_barrier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("desktop.data.holders.process_of", lambda store: np.zeros(THREADS, np.int64))
    rng = np.random.default_rng(7)
    rows: list[list[tuple[int, int, int, int]]] = [[] for _ in range(THREADS)]
    blame, at = np.zeros(THREADS), 0
    for _ in range(100):
        come = at + rng.permutation(np.arange(1, 1 + THREADS)) * 40 + rng.integers(0, 30, THREADS)
        last = int(come.argmax())
        for i in range(THREADS):
            rows[i].append((int(come[i]), int(come[last]) + 3 + i, Account.THREADS, 2))
        blame[last] += sum(come[last] - come)
        at = int(come.max()) + 20
    found = holders(_store(), [np.array(one, np.int64).T for one in rows])  # type: ignore[arg-type]  # as above
    np.testing.assert_allclose(found.between(0, at, THREADS, 1.0)[Account.THREADS, 2], blame)


def test_the_sentence_names_who_held_it() -> None:
    with open_trace(DATA / "lock.tar.xz") as store:
        found = told(store)
    assert "wait for one another" in found.causes[0].sentence
    assert " held it for " not in found.causes[0].sentence  # they hold it in turn, alike
