"""Temporary files of rows by group: what they give back, what they do when the disk is full, and numbers."""

from __future__ import annotations

import errno
import os
import tempfile
import threading
import time
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from desktop.data import spill
from desktop.data.importers import paraver, picl
from desktop.data.spill import Interner, Sorted, Spill, by_time, copied, joined
from desktop.errors import TraceFormatError
from desktop.progress import Progress
from tests.data_layer.memory import Memory

DATA = Path(__file__).parents[1] / "data"
#: Of whole words, of bytes, and with a gap between its fields.
DTYPES = (
    np.dtype([("time", "i8"), ("number", "i8")]),
    np.dtype([("time", "i8"), ("number", "i4"), ("more", "u1")]),
    np.dtype([("time", "i8"), ("more", "u1"), ("number", "i4"), ("last", "i2")], align=True),
)


def numbered(times, dtype):
    rows = np.zeros(len(times), dtype)
    rows["time"], rows["number"] = times, np.arange(len(times))
    return rows


@given(
    dtype=some.sampled_from(DTYPES),
    written=some.lists(some.tuples(some.integers(0, 5), some.integers(0, 30)), max_size=80),
    cut=some.integers(1, 9),
    most=some.integers(1, 12),
    batch=some.sampled_from([1, 7, 1000]),
    overlap=some.sampled_from([-1, 1, 4]),
)
@settings(deadline=None, max_examples=100)
def test_every_group_comes_back_in_order(dtype, written, cut, most, batch, overlap):
    groups = np.array([group for group, _ in written], np.int64)
    rows = numbered([at for _, at in written], dtype)
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(spill, "BATCH", batch)
        patch.setattr(spill, "OVERLAP", overlap)
        with closing(Spill(Path(folder), dtype)) as found:
            for at in range(0, len(rows), cut):
                found.add(rows[at : at + cut], groups[at : at + cut], 6)
            for group in range(7):
                own = rows[groups == group]
                assert found.size(group) == len(own)
                assert np.array_equal(found.read(group)["number"], own["number"])
                parts = [part["number"] for part in found.parts(group, most)]
                assert np.array_equal(np.concatenate([*parts, own["number"][:0]]), own["number"])
                own = own[np.argsort(own["time"], kind="stable")]
                with closing(by_time(found, group, most)) as ordered:
                    for _ in range(2):  # it may be asked again
                        chunks = list(ordered.chunks())
                        assert all(a["time"][-1] < b["time"][0] for a, b in pairwise(chunks))
                        assert np.array_equal(
                            np.concatenate([*(rows["number"] for rows in chunks), own["number"][:0]]),
                            own["number"],
                        )


@given(dtype=some.sampled_from(DTYPES), sizes=some.lists(some.integers(0, 4), min_size=1, max_size=5))
@settings(deadline=None, max_examples=50)
def test_rows_are_moved_whole(dtype, sizes):
    parts = [numbered(range(size), dtype) for size in sizes]
    for part in parts:
        other = copied(part)
        assert other.dtype == dtype and other.shape == part.shape and np.array_equal(other, part)
        assert not np.shares_memory(other, part)
    assert np.array_equal(joined(parts), np.concatenate(parts))


@given(
    known=some.lists(some.integers(-(2**63), 2**63 - 1), unique=True),
    calls=some.lists(some.lists(some.integers(-400, 400) | some.integers(-(2**63), 2**63 - 1), max_size=300)),
)
@settings(deadline=None, max_examples=100)
def test_numbers_go_by_first_appearance(known, calls):
    interner = Interner()
    interner(np.array(known, np.int64))
    numbers = {value: number for number, value in enumerate(known)}
    for values in calls:
        expected = [numbers.setdefault(value, len(numbers)) for value in values]
        assert interner(np.array(values, np.int64)).tolist() == expected
    assert interner.values.tolist() == list(numbers)


def test_values_can_be_asked_while_more_are_added(monkeypatch):
    """As one thread does that delivers what another one numbers."""
    interner, intern, asked = Interner(), spill._intern, []

    def watching(*args):
        known = interner.values.copy()
        done = intern(*args)
        asked.append(np.array_equal(interner.values[: len(known)], known) and known.all())
        return done

    monkeypatch.setattr(spill, "_intern", watching)
    for first in range(1, 4000, 100):
        interner(np.arange(first, first + 100))
        assert np.array_equal(interner.values, np.arange(1, first + 100))
    assert len(asked) > 40 and all(asked)


def test_no_values_are_slow_to_number():
    """Those of which a product with the golden ratio would end alike: by its plain low bits, each would be
    compared with all before it."""
    inverse = pow(0x9E3779B97F4A7C15, -1, 1 << 64)
    values = [(n << 32 | n) * inverse % (1 << 64) for n in range(1, 100_001)]
    chosen = np.array(values, np.uint64).view(np.int64)
    Interner()(chosen[:1])
    begin = time.thread_time()
    assert np.array_equal(Interner()(chosen), np.arange(100_000))
    assert time.thread_time() - begin < 1


def full(self, rows):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_told_to_all_who_ask(tmp_path, monkeypatch):
    """Or one thread would read what another one has been told is not there."""
    monkeypatch.setattr(spill, "BATCH", 4)
    rows = numbered(range(10), DTYPES[0])
    with closing(Spill(tmp_path, rows.dtype)) as found:
        found.add(rows, np.zeros(10, np.int64), 1)
        found._writer.submit(int).result()  # these are written
        with monkeypatch.context() as patch:
            patch.setattr(Spill, "_append", full)
            found.add(rows, np.zeros(10, np.int64), 1)
            found._writer.submit(int).result()  # what was handed over before is over
        for _ in range(3):
            with pytest.raises(OSError, match="No space left"):
                found.size(0)
            with pytest.raises(OSError, match="No space left"):
                found.add(rows, np.zeros(10, np.int64), 1)


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="not on this system")
def test_many_rows_have_their_room_before_they_are_set(tmp_path, monkeypatch):
    """Where a file is mapped and the disk is full, the system ends the process that writes to it."""
    monkeypatch.setattr(spill, "IN_MEMORY", 10)
    taken = []
    monkeypatch.setattr(os, "posix_fallocate", lambda *about: taken.append(about[1:]))
    assert len(spill.room(tmp_path, 1000, DTYPES[0])) == 1000 and taken == [(0, 16_000)]

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space left") as raised:
        spill.room(tmp_path, 1000, DTYPES[0])
    assert raised.value.filename == str(tmp_path)


def test_a_file_that_lost_its_end_is_not_read_beyond_it(tmp_path):
    rows = numbered(range(1000), DTYPES[0])
    with closing(Spill(tmp_path, rows.dtype)) as found:
        found.add(rows, np.arange(1000) % 2, 2)
        assert found.size(0) == 500
        found._file.truncate(700 * rows.itemsize)
        assert len(found.read(0)) == 500
        with pytest.raises(OSError, match="lost its end"):
            found.read(1)


def test_what_cannot_be_sorted_leaves_no_file_open(tmp_path, monkeypatch):
    files = watched(monkeypatch)
    rows = numbered(range(100, 0, -1), DTYPES[0])
    with closing(Spill(tmp_path, rows.dtype)) as found:
        found.add(rows, np.zeros(100, np.int64), 1)
        assert found.size(0) == 100
        monkeypatch.setattr(Sorted, "_store", full)
        with pytest.raises(OSError, match="No space left"):
            by_time(found, 0, 10)
        # Compilers of kernels have files of their own.
        own, *others = [file.closed for file in files]
        assert not own and others and all(others)


def watched(monkeypatch):
    """The temporary files that are opened from now on."""
    files, opened = [], tempfile.TemporaryFile

    def watching(**options):
        files.append(opened(**options))
        return files[-1]

    monkeypatch.setattr(tempfile, "TemporaryFile", watching)
    return files


class Failing(Memory):
    """A sink that takes so many blocks of rows."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room

    def append(self, table, location, **columns):
        self.room -= 1
        if self.room < 0:
            raise TraceFormatError("no more")
        super().append(table, location, **columns)


@pytest.mark.parametrize(
    ("importer", "name"),
    [
        (picl.IMPORTER, "picl/v2-ncptl-butterfly8.trf"),
        (picl.IMPORTER, "picl/v1-fft16-upshot.trf"),
        (paraver.IMPORTER, "paraver/farm_6.prv"),
    ],
    ids=lambda value: getattr(value, "id", None),
)
@pytest.mark.parametrize("where", ["sink", "disk", "files"])
def test_when_an_import_fails_no_file_and_no_thread_is_left(where, importer, name, tmp_path, monkeypatch):
    """Also while the error is held, with all that it refers to: elsewhere open files cannot be removed."""
    monkeypatch.setattr("desktop.data.lines.BLOCK", 4000)
    monkeypatch.setattr(picl.walk, "CHUNK", 40)
    monkeypatch.setattr(paraver, "CHUNK", 200)
    monkeypatch.setattr(spill, "BATCH", 256)
    monkeypatch.setattr(spill, "OVERLAP", -1)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    files, append = watched(monkeypatch), Spill._append
    opened = tempfile.TemporaryFile
    before = set(threading.enumerate())
    failed = 0
    for room in (0, 1, 2, 3, 5, 8, 13, 21, 34):
        left = [room]

        def short(real, *args, left=left, **options):
            left[0] -= 1
            return real(*args, **options) if left[0] >= 0 else full(None, None)

        sink = Memory()
        with monkeypatch.context() as patch:
            if where == "sink":
                sink = Failing(room)
            elif where == "disk":
                patch.setattr(Spill, "_append", lambda *args, short=short: short(append, *args))
            else:
                patch.setattr(
                    tempfile, "TemporaryFile", lambda short=short, **options: short(opened, **options)
                )
            try:
                importer.read(DATA / name, sink, Progress())
            except (TraceFormatError, OSError):
                failed += 1
                assert all(file.closed for file in files)
                assert set(threading.enumerate()) == before
                assert not list(tmp_path.iterdir())
    assert failed
