"""A source is imported once, found again while it stays the same, and never half."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import tempfile
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from desktop.data import digest, importers, matching, opening
from desktop.data.events import Importer, Location, Region, Sink
from desktop.data.info import info
from desktop.data.opening import open_trace
from desktop.data.spill import Spill
from desktop.data.store import TraceStore, open_store
from desktop.data.utilization import Rules, _Replay, build
from desktop.errors import DesktopError, StoreError, TraceFormatError
from desktop.progress import Cancelled, Progress
from tests.data_layer.memory import Memory

CURVE = "0 1\n1 4\n2.5 0\n3 0\n"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setattr(opening, "user_cache_path", lambda *_, **__: folder)
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "curve.csv"
    path.write_text(CURVE)
    return path


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Path]]:
    """Every source that an importer reads."""
    seen: list[Path] = []
    plain = opening._import

    def counting(path: Path, *rest: object) -> None:
        seen.append(path)
        plain(path, *rest)  # type: ignore[arg-type]  # passed on as they are

    monkeypatch.setattr(opening, "_import", counting)
    yield seen


def test_a_second_open_uses_the_store(source: Path, reads: list[Path], cache: Path) -> None:
    with open_trace(source) as store:
        assert store.path.is_relative_to(cache)
        assert store.source.size == len(CURVE)
        assert store.source.sha256 == hashlib.sha256(CURVE.encode()).hexdigest()
    with open_trace(source) as again, open_trace(again.path) as directly:
        assert again.path == directly.path
    assert len(reads) == 1
    open_trace(source, force=True).close()
    assert len(reads) == 2


def test_messages_that_lack_an_end_are_reported(tmp_path: Path) -> None:
    """Of the four sends one is longer than its receive, and one is never received."""
    path = tmp_path / "run.trf"
    send, receive = "-3 -21 0.{} 0 0 3 2 {} 7 1", "-4 -52 0.{} 1 0 3 2 8 {} 0"
    ends = [send.format(1, 8), send.format(2, 8), send.format(3, 9), send.format(4, 8)]
    ends += [receive.format(5, 7), receive.format(6, 7), receive.format(7, 7), receive.format(8, 9)]
    path.write_text("\n".join(["-3 -901 0 0 0 0", *ends, "-4 -901 0.9 0 0 0", ""]))
    with open_trace(path) as store:
        found = store.report.findings
        assert [found[f"{which} without partner"].count for which in ("sends", "receives")] == [1, 1]
        assert "no receive was found" in found["sends without partner"].text
        assert "no send was found" in found["receives without partner"].text
        assert found["messages of unequal length"].count == 1


@pytest.mark.parametrize(
    ("stage", "sentence"), [("read", "cannot be imported"), ("keep", "cannot be written")]
)
def test_a_full_disk_gets_a_sentence(
    stage: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While lines are read, or when matched messages are written; nothing is left behind."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    if stage == "read":
        monkeypatch.setattr(Spill, "_append", full)
    else:
        keep = matching.Links.keep

        def late(links: matching.Links) -> None:
            monkeypatch.setattr(Spill, "_append", full)
            keep(links)

        monkeypatch.setattr(matching.Links, "keep", late)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    trace = Path(__file__).parents[1] / "data" / "paraver" / "farm_6.prv"
    with pytest.raises(DesktopError, match=rf"{sentence} \(No space left on device\).*make room"):
        open_trace(trace, output=tmp_path / "farm.h5")
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_told_by_the_place_that_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stands beside the store while a trace is read is not in the temporary folder."""
    made, plain = tmp_path / "made", tempfile.TemporaryFile
    made.mkdir()

    def full(*_: object, dir: Path | None = None, **__: object) -> object:
        if dir == made:
            raise OSError(errno.ENOSPC, "No space left on device")
        return plain(dir=dir)

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    trace = Path(__file__).parents[1] / "data" / "paraver" / "farm_6.prv"
    with pytest.raises(TraceFormatError, match="make room there") as told:
        open_trace(trace, output=made / "farm.h5")
    assert f"{trace}: cannot be imported (No space left on device), writing {made / 'farm.h5'}," in str(
        told.value
    )
    assert not list(made.iterdir())


def test_a_changed_source_is_imported_again(source: Path, reads: list[Path], cache: Path) -> None:
    open_trace(source).close()
    source.write_text(CURVE.replace("4", "5"))
    os.utime(source, ns=(1, 1))
    with open_trace(source) as store:
        assert build(store).curve().capacity == 5
    assert len(reads) == 2
    assert len(list((cache / "imports").iterdir())) == 1, "the superseded store stays in the cache"


def test_a_store_whose_source_has_vanished_opens(source: Path, tmp_path: Path) -> None:
    open_trace(source, output=tmp_path / "kept.h5").close()
    source.unlink()
    with open_trace(tmp_path / "kept.h5") as store:
        assert build(store).curve().level.tolist() == [1, 4, 0]
    with pytest.raises(TraceFormatError, match="does not exist"):
        open_trace(source)


def test_a_damaged_cache_is_replaced(source: Path, reads: list[Path]) -> None:
    with open_trace(source) as store:
        path = store.path
    path.write_bytes(path.read_bytes()[:900])
    with open_trace(source) as store:
        assert build(store).curve().capacity == 4
    assert len(reads) == 2


def test_output_is_reused_and_foreign_files_are_kept(source: Path, tmp_path: Path, reads: list[Path]) -> None:
    output = tmp_path / "mine.h5"
    open_trace(source, output=output).close()
    open_trace(source, output=output).close()
    assert len(reads) == 1
    letter = tmp_path / "letter.h5"
    letter.write_text("Dear Ann")
    with pytest.raises(StoreError, match="exists and is no imported trace"):
        open_trace(source, output=letter)
    assert letter.read_text() == "Dear Ann"
    open_trace(source, output=letter, force=True).close()
    with open_trace(letter) as store:
        assert store.source.name == "curve.csv"


def test_a_source_that_cannot_be_read_leaves_nothing(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "curve.csv"
    path.write_text(CURVE + "oops\n")
    with pytest.raises(TraceFormatError, match="line 5"):
        open_trace(path)
    assert list((cache / "imports").iterdir()) == []


def test_a_unit_of_time_is_for_curves_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: Path
) -> None:
    monkeypatch.setattr(importers, "importer", lambda _: made(lambda sink, progress: None))
    with pytest.raises(TraceFormatError, match="its own unit of time"):
        open_trace(source, format_id="made", time_unit="ms")


# --- a made-up importer, to see what happens around `read` ---


def made(read: object, files: object = lambda path: [path]) -> Importer:
    return Importer(
        "made",
        "Made for tests",
        "1",
        lambda path, head: True,
        lambda path, sink, progress: read(sink, progress),  # type: ignore[operator]  # one of those below
        files,  # type: ignore[arg-type]  # one of those below
    )


def two_ranks(sink: Sink, progress: Progress, repair: bool = True) -> None:
    """Rank 1's clock is 100 ticks behind: both take part in a barrier, from 10 and 30 to 40."""
    sink.describe(ticks_per_second=1000, repair=repair)
    barrier = sink.region(Region("MPI_Barrier", "barrier", "mpi"))
    name = sink.text("Barrier")
    for rank, (begin, end, late) in enumerate([(10, 40, 0), (30, 40, -100)]):
        here = sink.location(Location(100 + rank, f"rank {rank}", rank, first=late, last=60 + late))
        times = np.array([begin, end]) + late
        sink.append("events", here, time=times, kind=np.array([0, 1]), region=np.array([barrier, barrier]))
        sink.append(
            "collectives",
            here,
            begin=times[:1],
            end=times[1:],
            operation=np.array([name]),
            communicator=np.array([0]),
            root=np.array([-1]),
            sent=np.array([0]),
            received=np.array([0]),
        )
    sink.report.add("odd", "info", "Something odd.", where="line 3")


@pytest.fixture
def importing(monkeypatch: pytest.MonkeyPatch) -> object:
    def use(read: object, **how: object) -> None:
        monkeypatch.setattr(opening.importers, "detect", lambda path: made(read, **how))

    return use


def test_clocks_are_checked_repaired_and_reported(source: Path, importing: object) -> None:
    importing(two_ranks)  # type: ignore[operator]  # a fixture that is a function
    with open_trace(source) as store:
        facts = info(store)
        assert facts["clock"] == {
            "checked": 1,
            "violations_before": 1,
            "violations_after": 0,
            "repair": "shift",
            "most_before_s": 0.07,
            "most_after_s": 0.0,
        }
        shift = [location.shift for location in store.locations]
        assert shift[0] == 0 and 70 <= shift[1] <= 130, "not within what the barrier allows"
        off_ms = max(shift[1] - 70, 110 - shift[1])  # it enters at -70 and leaves at -60
        told = next(iter(store.report)).text
        assert told.startswith("The clocks contradict 1 of 1 collectives, by 70 ms at most; "), "no messages"
        assert f", which leaves no contradiction; then they agree to {off_ms} ms if none drifts." in told
        assert store.locations[1].half_width == np.inf, "one barrier says nothing of rates"
        as_recorded = build(store, Rules(repaired=False)).curve()
        assert as_recorded.duration == pytest.approx(0.160)
        assert facts["duration_s"] < 0.1
        assert [entry["name"] for entry in facts["report"]] == ["clocks contradict", "odd"]
        json.dumps(facts, allow_nan=False)


def many_regions(sink: Sink, progress: Progress) -> None:
    """Regions and locations are defined between blocks of events, which others digest meanwhile."""
    sink.describe(ticks_per_second=1e6)
    some = 50
    for k in range(200):
        regions = [sink.region(Region(f"r{some * k + i}")) for i in range(some)]
        here = sink.location(Location(k, f"rank {k}", k, first=0, last=2 * some))
        for part in (regions[: some // 2], regions[some // 2 :]):
            at = 2 * np.arange(len(part)) + (0 if part[0] == regions[0] else some)
            sink.append(
                "events",
                here,
                time=np.stack([at, at + 1], axis=1).ravel(),
                kind=np.tile([0, 1], len(part)),
                region=np.repeat(part, 2),
            )


def test_regions_and_locations_are_defined_while_events_are_digested(source: Path, importing: object) -> None:
    """An array was sized by the list of regions, which the importer's thread went on to extend."""
    importing(many_regions)  # type: ignore[operator]  # a fixture that is a function
    with open_trace(source) as store:
        assert len(store.regions) == 10_000 and len(store.locations) == 200
        assert [store.regions[k].name for k in (0, 777, 9_999)] == ["r0", "r777", "r9999"]
        assert sum(store.rows("events", k) for k in range(200)) == 20_000
        assert build(store).curve().window(0.0, 1e-4).mean == pytest.approx(200, rel=0.05)


def test_a_region_that_comes_while_others_are_classified_is_taken_the_next_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    memory = Memory()
    memory.region(Region("first"))
    known = digest.classes_of, digest.parallel_regions

    def come() -> None:
        if len(memory.regions) < 20:
            memory.region(Region(f"late {len(memory.regions)}"))

    def classes_of(regions: Sequence[Region], rules: Rules) -> NDArray[np.uint8]:
        come()
        return known[0](regions, rules)

    def parallel_regions(regions: Sequence[Region]) -> NDArray[np.uint8]:
        come()
        return known[1](regions)

    monkeypatch.setattr(digest, "classes_of", classes_of)
    monkeypatch.setattr(digest, "parallel_regions", parallel_regions)
    made = digest.EventDigest(memory)
    for turn in range(3):
        there = len(memory.regions)
        time, region = np.array([2 * turn, 2 * turn + 1]), np.array([turn, turn])
        made.take("events", 0, {"time": time, "kind": np.array([0, 1]), "region": region})
        assert made._classes.size == made._active.size == there < len(memory.regions)


def test_clocks_do_not_count_where_the_trace_has_offsets_of_its_own(source: Path, importing: object) -> None:
    importing(partial(two_ranks, repair=False))  # type: ignore[operator]  # a fixture that is a function
    with open_trace(source) as store:
        assert (store.clock.repair, store.clock.details["possible"]) == ("none", "shift")
        assert (store.clock.violations_before, store.clock.violations_after) == (1, 1)
        assert 70 <= store.locations[1].shift <= 130, "not within what the barrier allows"
        assert build(store).curve().duration == pytest.approx(0.160)
        assert set(store.report.findings) == {"odd", "clocks contradict"}


@pytest.mark.parametrize(("where", "fails"), [(opening, "check_clocks"), (_Replay, "_side_by_side")])
def test_what_fails_beside_the_other_is_told(
    source: Path, importing: object, cache: Path, monkeypatch: pytest.MonkeyPatch, where: object, fails: str
) -> None:
    def full(*_: object) -> None:
        raise StoreError("cannot be written (No space left on device)")

    importing(partial(two_ranks, repair=False))  # type: ignore[operator]  # a fixture that is a function
    monkeypatch.setattr(where, fails, full)
    with pytest.raises(StoreError, match="No space left"):
        open_trace(source)
    assert list((cache / "imports").iterdir()) == []
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("utilization")]


def test_info_adds_up(source: Path, importing: object) -> None:
    importing(two_ranks)  # type: ignore[operator]  # a fixture that is a function
    with open_trace(source) as store:
        facts = info(store)
    assert facts["format"] == facts["importer"]["name"] == "made"
    assert facts["totals"] == {
        "events": 6,
        "enter": 2,
        "leave": 2,
        "messages_sent": 0,
        "messages_received": 0,
        "collectives": 2,
        "mpi_calls": 2,
    }
    assert facts["mpi_calls"] == {"MPI_Barrier": 2}
    first = facts["locations"][0]
    assert (first["id"], first["rank"], first["enter"], first["mpi_calls"]) == (100, 0, 1, 1)
    assert first["computing_s"] == pytest.approx(0.030) and first["idle_s"] == pytest.approx(0.030)
    use = facts["utilization"]
    assert use["processors"] == use["max"] == 2
    assert use["integral_s"] == pytest.approx(sum(place["computing_s"] for place in facts["locations"]))
    assert use["mean"] == pytest.approx(use["integral_s"] / facts["duration_s"])


@pytest.mark.parametrize(  # two while reading, then clocks (in silence if beside), then the utilization
    ("at", "repair"), [*((at, True) for at in range(1, 6)), *((at, False) for at in range(1, 4))]
)
def test_cancelled_at_any_step_leaves_nothing(
    source: Path, importing: object, cache: Path, at: int, repair: bool
) -> None:
    class Stopper(Progress):
        left = at

        def step(self, done: float, total: float, text: str = "") -> None:
            self.left -= 1
            if self.left == 0:
                self.cancel()
            super().step(done, total, text)

    def read(sink: Sink, progress: Progress) -> None:
        progress.step(0, 2, "reading")
        two_ranks(sink, progress, repair)
        progress.step(1, 2, "reading")

    importing(read)  # type: ignore[operator]  # a fixture that is a function
    with pytest.raises(Cancelled):
        open_trace(source, Stopper())
    assert list((cache / "imports").iterdir()) == []


def test_progress_only_grows(source: Path, importing: object) -> None:
    seen = []

    class Watch(Progress):
        def show(self, done: float, total: float, text: str) -> None:
            seen.append(done / total)

    importing(two_ranks)  # type: ignore[operator]  # a fixture that is a function
    open_trace(source, Watch()).close()
    assert seen == sorted(seen) and 0.8 <= seen[-1] <= 1


@pytest.mark.skipif(os.name == "nt", reason="an open file cannot be removed there")
def test_a_store_stays_while_a_process_has_it_open(tmp_path: Path, cache: Path) -> None:
    """Of a window, which opens it again for a report, while another program opens the changed trace."""
    source = tmp_path / "curve.csv"

    def opened_anew(level: int) -> TraceStore:
        source.write_text(f"0,{level}\n1,{level + 10}\n2,0\n")
        os.utime(source, (level, level))
        return open_trace(source)

    with opened_anew(1) as first:
        opened_anew(2).close()
        with open_store(first.path) as again:
            assert again.identity == first.identity
    with opened_anew(3) as last:
        assert not first.path.exists() and len(list((cache / "imports").iterdir())) == 1
        assert last.path.exists()


def test_a_source_that_changes_meanwhile_is_said(source: Path, importing: object) -> None:
    def read(sink: Sink, progress: Progress) -> None:
        two_ranks(sink, progress)
        source.write_text("longer than before, by far\n" * 3)

    importing(read)  # type: ignore[operator]  # a fixture that is a function
    with open_trace(source) as store:
        assert "source changed" in store.report.findings


def test_all_files_of_a_source_count(source: Path, tmp_path: Path, importing: object) -> None:
    """The hash goes over all of them; a change of any one makes the store stale."""
    other = tmp_path / "other.part2"
    other.write_text("more")
    importing(two_ranks, files=lambda path: [path, other])  # type: ignore[operator]  # a fixture that is a function
    with open_trace(source) as store:
        assert store.source.sha256 == hashlib.sha256((CURVE + "more").encode()).hexdigest()
        assert store.source.size == len(CURVE) + 4
        former = store.path
    other.write_text("still more")
    with open_trace(source) as store:
        assert store.path != former


def test_a_disk_error_while_reading_is_a_sentence(source: Path, importing: object, cache: Path) -> None:
    def read(sink: Sink, progress: Progress) -> None:
        raise OSError(5, "Input/output error")

    importing(read)  # type: ignore[operator]  # a fixture that is a function
    with pytest.raises(TraceFormatError, match=r"cannot be read \(Input/output error\)"):
        open_trace(source)
    assert list((cache / "imports").iterdir()) == []


def test_a_cache_that_cannot_be_made_is_a_sentence(source: Path, cache: Path) -> None:
    cache.write_text("a file is in the way")
    with pytest.raises(StoreError, match="choose with -o"):
        open_trace(source)
