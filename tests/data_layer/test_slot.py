"""Room in a store: what is written in place comes back or is as none, and the file is always HDF5."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.data.events import Location, Region
from desktop.data.store import Source, StoreWriter, TraceStore, open_store
from desktop.data.store.description import ImporterInfo
from desktop.data.store.slot import NAME, STEP, Slot
from desktop.errors import StoreError

KEYS = [bytes([k]) * 32 for k in range(6)]


def made(path: Path, locations: int = 4, **how: Any) -> Path:
    with StoreWriter(path, Source("run", "run"), ImporterInfo("made", "1"), **how) as store:
        store.describe(ticks_per_second=1e9)
        store.region(Region("r"))
        for k in range(locations):
            store.location(Location(k))
            if store.wants(k):
                store.append("events", k, time=np.arange(9), kind=np.zeros(9, "u1"), region=np.zeros(9, "u4"))
    return path


def room(store: TraceStore) -> Slot:
    assert store.slot is not None
    return store.slot


def whole(path: Path) -> int:
    """Rows of events, as plain h5py finds them."""
    with h5py.File(path, "r") as file:
        rows = file["tables/events/time"][:]
        assert file[NAME][:].size and np.array_equal(rows[:9], np.arange(9))
    return int(rows.size)


@settings(deadline=None, max_examples=15)
@given(data=st.data())
def test_what_was_kept_last_stays(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Any sizes, any order, also where a write stopped at any byte; a key never gets what is not its own."""
    path = made(tmp_path_factory.mktemp("slot") / "made.h5")
    with open_store(path) as store:
        slot = room(store)
        half = slot._size // 2 // STEP * STEP
        kept: dict[bytes, set[bytes]] = {key: set() for key in KEYS}
        last: tuple[bytes, bytes] | None = None
        for turn in range(data.draw(st.integers(1, 12))):
            key = data.draw(st.sampled_from(KEYS))
            content = bytes([turn]) * data.draw(st.integers(0, half + 100))
            before = path.read_bytes()
            fits = slot.put(key, content)
            assert fits == (len(content) + 88 <= half)
            kept[key].add(content)
            if fits and data.draw(st.booleans()):  # it stopped here
                after = path.read_bytes()
                changed = np.flatnonzero(np.frombuffer(before, "u1") != np.frombuffer(after, "u1"))
                cut = int(changed[data.draw(st.integers(0, changed.size - 1))])
                path.write_bytes(after[:cut] + before[cut:])
                fits = slot.get(key) == content
            if fits:
                last = key, content
            if last is not None:
                assert slot.get(last[0]) == last[1]
            for one in KEYS:
                assert slot.get(one) in (None, *kept[one])
    assert whole(path) == 36


def test_the_file_stays_as_it_was_but_for_its_room(tmp_path: Path) -> None:
    """Its size, its time, its rows; a copy of it has what is kept, and knows that it is the same trace."""
    path = made(tmp_path / "made.h5")
    before, content = path.stat(), path.read_bytes()
    with open_store(path) as store:
        slot, identity = room(store), store.identity
        assert slot.get(KEYS[0]) is None and slot.put(KEYS[0], b"found")
        after = path.read_bytes()
        begin, end = slot._at, slot._at + slot._size
        assert (after[:begin], after[end:]) == (content[:begin], content[end:])
        assert path.stat().st_mtime_ns == before.st_mtime_ns and path.stat().st_size == before.st_size
    moved = tmp_path / "elsewhere.h5"
    moved.write_bytes(after)
    with open_store(moved) as store:
        assert store.identity == identity and room(store).get(KEYS[0]) == b"found"
    with open_store(made(tmp_path / "other.h5", 5)) as store:
        assert store.identity != identity


def test_nothing_is_written_where_it_must_not_be(tmp_path: Path) -> None:
    path = made(tmp_path / "made.h5")
    with open_store(path) as store:
        slot = room(store)
        path.chmod(0o444)
        assert not slot.put(KEYS[0], b"found")
        path.chmod(0o644)
        before = made(tmp_path / "new.h5", 5).read_bytes()
        if os.name != "nt":  # where a file that is open is not replaced
            os.replace(tmp_path / "new.h5", path)
            assert not slot.put(KEYS[0], b"found") and slot.get(KEYS[0]) is None
            assert path.read_bytes() == before
    assert not slot.put(KEYS[0], b"found") and slot.get(KEYS[0]) is None  # it is closed
    with open_store(made(tmp_path / "part.h5", only=lambda k: k < 2)) as store:
        assert store.slot is None


def test_a_strangers_room_is_one_stretch_of_bytes_or_none(tmp_path: Path) -> None:
    path = made(tmp_path / "made.h5")

    def with_room(**how: Any) -> None:
        with h5py.File(path, "r+", locking=False) as file:
            file.pop(NAME, None)
            if how:
                file.create_dataset(NAME, **how)

    chunks = {"data": np.zeros(4096, "u1"), "chunks": (512,)}
    for how in ({}, {"shape": 4096, "dtype": "u1"}, chunks):  # nothing, nowhere, in pieces
        with_room(**how)
        with open_store(path) as store:
            assert store.slot is None
    with_room(data=np.frombuffer(b"PW kept\n" * 512, "u1"))  # as if it were full of entries
    with open_store(path) as store:
        assert room(store).get(b"PW kept\n" * 4) is None and room(store).put(KEYS[0], b"found")
        assert room(store).get(KEYS[0]) == b"found"
    for how in ({"data": np.zeros(600)}, {"shape": 1 << 25, "dtype": "u1"}):
        with_room(**how)
        with pytest.raises(StoreError, match=NAME):
            open_store(path)


def test_two_that_write_at_once_recall_nothing_wrong(tmp_path: Path) -> None:
    path = made(tmp_path / "made.h5")
    wrong: list[object] = []

    def write(own: int) -> None:
        chance = random.Random(own)
        with open_store(path) as store:
            for _ in range(60):
                key = chance.choice(KEYS)
                room(store).put(key, key * chance.randrange(1, 200))
                wrong.extend(
                    (one, found) for one in KEYS if (found := room(store).get(one)) and {*found} != {one[0]}
                )

    threads = [threading.Thread(target=write, args=(own,)) for own in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and whole(path) == 36


VICTIM = """
import sys
from pathlib import Path
from desktop.data.store import open_store

chance = __import__("random").Random(int(sys.argv[2]))
with open_store(Path(sys.argv[1])) as store:
    print("ready", flush=True)
    while True:
        k = chance.randrange(6)
        store.slot.put(bytes([k]) * 32, bytes([k]) * chance.randrange(10_000))
"""


def kill_while_it_is_written(path: Path, turns: int) -> tuple[int, int]:
    """End a process that writes, `turns` times; how often something was found, how often nothing."""
    chance = random.Random(17)
    found = [0, 0]
    for turn in range(turns):
        victim = subprocess.Popen(
            [sys.executable, "-c", VICTIM, str(path), str(turn)],
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
        )
        assert victim.stdout is not None
        with victim.stdout:
            assert victim.stdout.readline()
            time.sleep(chance.uniform(0.0, 0.05))
            victim.send_signal(signal.SIGKILL)
            victim.wait()
        assert whole(path) == 36
        with open_store(path) as store:
            contents = {key: room(store).get(key) for key in KEYS}
        assert all(not content or {*content} == {key[0]} for key, content in contents.items())
        found[all(content is None for content in contents.values())] += 1
    return found[0], found[1]


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL on Windows")
def test_a_kill_at_any_moment_leaves_a_whole_store(tmp_path: Path) -> None:
    """Of plain h5py and of ours. Two hundred times: `python -m tests.data_layer.test_slot FOLDER`."""
    assert kill_while_it_is_written(made(tmp_path / "made.h5"), 2) == (2, 0)


if __name__ == "__main__":
    print(kill_while_it_is_written(made(Path(sys.argv[1]) / "made.h5"), 200))
