"""The limit on what is kept of a trace is kept to, and changes no answer."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from desktop.core.open_regions import BEGIN, END
from desktop.data import memory
from desktop.data.opening import open_trace
from desktop.data.profile import KEPT, Profile
from desktop.data.store import TraceStore
from desktop.data.timeline import MESSAGE_BYTES, open_timeline
from desktop.resources import samples


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TraceStore]:
    folder = tmp_path_factory.mktemp("memory")
    with open_trace(samples()[0].path, output=folder / "made.h5") as opened:
        yield opened


def test_the_limit_has_a_floor() -> None:
    memory.set_limit(0)
    assert memory.limit() == memory.LEAST
    memory.set_limit(memory.DEFAULT)
    assert memory.limit() == memory.DEFAULT


def test_positions_beyond_the_limit_are_found_again(
    store: TraceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = store.locations[0].last
    cuts = np.linspace(store.locations[0].first, last, 400).astype(np.int64)
    asked = [np.array([BEGIN, cut, END], np.int64) for cut in np.unique(cuts)]
    free = Profile(store)
    answers = [free.at(0, cut) for cut in asked]
    room = free._positions.held // 4
    assert free._positions.held > 0
    monkeypatch.setattr(memory, "limit", lambda: int(room / KEPT))
    tight = Profile(store)
    for cut, (ticks, calls) in zip(asked, answers, strict=True):
        found = tight.at(0, cut)
        assert np.array_equal(found[0], ticks) and np.array_equal(found[1], calls)
        assert tight._positions.held <= room or len(tight._positions._values) == 1


def test_messages_are_kept_while_there_is_memory(store: TraceStore, monkeypatch: pytest.MonkeyPatch) -> None:
    line = open_timeline(store)
    assert line is not None
    known = line.messages()
    assert known is not None and known.sent_s.size > 100
    exactly = known.sent_s.size * MESSAGE_BYTES
    monkeypatch.setattr(memory, "limit", lambda: exactly)
    again = open_timeline(store)
    assert again is not None and again.messages() is not None
    monkeypatch.setattr(memory, "limit", lambda: exactly - 1)
    short = open_timeline(store)
    assert short is not None and short.messages() is None
