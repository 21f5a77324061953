"""A trimmed trace says of itself what the whole says of the range."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop import cli
from desktop.data.opening import open_trace
from desktop.data.statistics import Statistics
from desktop.data.store import TraceStore, open_store
from desktop.data.trim import of_ranks, trim
from desktop.data.utilization import build, states
from desktop.errors import StoreError, TraceFormatError
from desktop.progress import Cancelled, Progress
from tests.data_layer import archives
from tests.data_layer.test_statistics import several, stored, talk
from tests.oracles.utilization import Thread


def same(store: TraceStore, part: TraceStore, a: float, b: float, own: list[int]) -> None:
    """States, curve, times by region and messages of the part are those of the range."""
    use, cut = build(store), build(part)
    unit = use.unit
    first, last = round(a / unit), round(b / unit)
    for new, old in enumerate(own):
        begin, end, activity = states(store, old)
        begin, end = (np.clip(t - use.start, first, last) - first for t in (begin, end))
        some = begin < end
        got = states(part, new)
        # The axis of some locations begins with the first of them.
        offset = cut.start - use.start - first
        assert (got[0] - cut.start + offset).tolist() == begin[some].tolist()
        assert (got[1] - cut.start + offset).tolist() == end[some].tolist()
        assert got[2].tolist() == activity[some].tolist()
    if len(own) < len(store.locations):
        return
    curve = cut.curve()
    whole = b
    if cut.edges[-1] < last - first:
        assert not use.counts[:, use.edges[:-1] == first + cut.edges[-1]].any()
        b = (first + int(cut.edges[-1])) * unit  # nobody is there at the end of the range
    window = use.curve().window(a, b)
    assert curve.capacity == window.capacity
    np.testing.assert_allclose(curve.edges + first, window.edges, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(curve.level, window.level)
    # What happens as the last one ends, and takes no time, is in the range, but not before that end.
    want, every = Statistics(store).ranges([(a, b), (a, whole)], use)
    (got_stats,) = Statistics(part).ranges([(0.0, curve.duration)], cut)
    for name in ("seconds", "useful_s", "exclusive_s", "inclusive_s", "outside_s", "shares", "levels"):
        np.testing.assert_allclose(getattr(got_stats, name), getattr(want, name), rtol=1e-12, atol=1e-12)
    found = part.report.findings
    again = sum(found[n].count for n in ("trimmed: open at start", "trimmed: workers") if n in found)
    assert got_stats.calls.sum() == every.calls.sum() + again
    if every.messages is not None and got_stats.messages is not None:
        for name in ("sent", "received", "bytes_sent", "bytes_received", "sender", "receiver", "count"):
            np.testing.assert_array_equal(getattr(got_stats.messages, name), getattr(every.messages, name))
    else:
        assert every.messages is None or not every.messages.sent.any()


@settings(deadline=None, max_examples=25)
@given(
    several,
    st.sampled_from(["outermost", "strongest"]),
    st.floats(0, 1),
    st.floats(0, 1),
    talk(),
    st.data(),
)
def test_a_part_is_the_range(many, nesting, start, end, messages, data) -> None:
    """Any nesting, shifts, threads that work in parallel regions, messages; all or some locations."""
    messages = {
        i: [row for row in rows if row[2] < len(many) and many[i].first <= row[0] <= many[i].last]
        for i, rows in messages.items()
        if i < len(many)
    }
    with stored(many, messages, nesting=nesting) as store, TemporaryDirectory() as folder:
        length = int(build(store).edges[-1])
        a, b = sorted((round(start * length), round(end * length)))
        if a == b:
            a, b = (a, a + 1) if a < length else (a - 1, a)
        own = data.draw(st.sets(st.integers(0, len(many) - 1), min_size=1).map(sorted) | st.none())
        path = Path(folder) / "part.h5"
        clocks = build(store).start
        lasting = [
            i
            for i, t in enumerate(many)
            if min(t.last + t.shift - clocks, b) > max(t.first + t.shift - clocks, a)
        ]
        if not set(lasting) & set(range(len(many)) if own is None else own):
            return  # nobody is there for any time: see below
        trim(store, path, a, b, own)
        with open_store(path) as part:
            same(store, part, a, b, list(range(len(many))) if own is None else own)
            assert [at.shift for at in part.locations] == [
                store.locations[i].shift for i in (own or range(len(many)))
            ]


@pytest.fixture(params=["mpt_farm_6_dilated", "ezt_openmp_4", "public_scorep_stencil4d_32"])
def trace(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[TraceStore]:
    archive = archives.unpack(request.param, tmp_path)
    with open_trace(next(archive.rglob("*.otf2")), output=tmp_path / "trace.h5") as store:
        yield store


def test_parts_of_real_programs(trace: TraceStore, tmp_path: Path) -> None:
    unit, length = 1 / trace.ticks_per_second, int(build(trace).edges[-1])
    everybody = list(range(len(trace.locations)))
    for number, (a, b) in enumerate(((0.0, 1.0), (0.31, 0.74), (0.9, 1.0), (0.0, 0.02))):
        path = tmp_path / f"{number}.h5"
        start, end = round(a * length) * unit, round(b * length) * unit
        trim(trace, path, start, end)
        with open_store(path) as part:
            same(trace, part, start, end, everybody)
            assert part.clock == trace.clock
            assert part.source.sha256 == trace.source.sha256
            if (a, b) == (0.0, 1.0):
                for table in ("events", "messages", "collectives", "links", "metrics", "marks"):
                    for i in everybody:
                        for one, other in zip(part.blocks(table, i), trace.blocks(table, i), strict=True):
                            for x, y in zip(one, other, strict=True):
                                np.testing.assert_array_equal(x, y)


def test_links_of_a_part_are_those_of_the_whole_with_both_ends_inside(tmp_path: Path) -> None:
    """A message whose send is cut off must not lend its receive to the next one."""
    threads = [Thread(0, 40, [(0, "enter", 0)]), Thread(0, 40, [(0, "enter", 0)])]
    sends = [(t, 0, 1, 0, size) for t, size in ((5, 1), (12, 2), (20, 3), (28, 4))]
    receives = [(t, 3, 0, 0, size) for t, size in ((11, 1), (15, 2), (24, 3), (33, 4))]
    with stored(threads, {0: sends, 1: receives}) as store:
        trim(store, tmp_path / "part.h5", 10, 30)
    with open_store(tmp_path / "part.h5") as part:
        (links,) = part.blocks("links", 0)
    assert [column.tolist() for column in links[:4]] == [[12, 20], [15, 24], [1, 1], [2, 3]]


def test_a_curve_is_cut_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "c.txt").write_text("0 1\n1 5\n2 2\n4 0\n")
    with open_trace(tmp_path / "c.txt", output=tmp_path / "c.h5") as store:
        trim(store, tmp_path / "part.h5", 0.5, 3.0)
    with open_store(tmp_path / "part.h5") as part:
        curve = build(part).curve()
        assert (curve.edges * curve.unit).tolist() == pytest.approx([0.5, 1, 2, 3])
        assert curve.level.tolist() == [1, 5, 2]


def test_what_cannot_be_trimmed_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    threads = [Thread(0, 40, [(0, "enter", 0)]), Thread(0, 10, [])]
    target = tmp_path / "part.h5"

    class Stop(Progress):
        def show(self, done: float, total: float, text: str) -> None:
            self.cancel()

    with stored(threads) as store:
        for a, b in ((5, 5), (40, 50), (7, 3), (-3, 0), (float("nan"), 5)):
            with pytest.raises(StoreError, match="holds nothing from"):
                trim(store, target, a, b)
        with pytest.raises(StoreError, match="less than a tick"):
            trim(store, target, 5.1, 5.2)
        with pytest.raises(StoreError, match="no such location"):
            trim(store, target, 0, 5, [2])
        with pytest.raises(StoreError, match="trace itself"):
            trim(store, store.path, 0, 5)
        with pytest.raises(TraceFormatError, match="no processor"):
            trim(store, target, 20, 30, [1])
        with pytest.raises(Cancelled):
            trim(store, target, 0, 5, progress=Stop())
    assert list(tmp_path.iterdir()) == []


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    trace = next(archives.unpack("mpt_farm_6_dilated", tmp_path).rglob("*.otf2"))
    out = tmp_path / "part.h5"
    words = ["import", trace, "--start", 0.01, "--end", 0.02, "--ranks", "0-2,5", "-o", out, "--json"]
    assert cli.run([str(word) for word in words]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [place["rank"] for place in told["locations"]] == [0, 1, 2, 5]
    assert told["duration_s"] == pytest.approx(0.01)
    assert told["source"]["name"].startswith(trace.name + " [0.01 s to 0.02 s")
    for wrong, sentence in (
        (["--ranks", "7"], "no rank 7"),
        (["--ranks", "2-"], "no list of ranks"),
        (["--start", "99"], "holds nothing"),
    ):
        code = cli.run(["import", str(trace), *wrong, "-o", str(tmp_path / "other.h5")])
        assert code in (1, 2) and sentence in capsys.readouterr().err
    assert cli.run(["import", str(trace), "--start", "0"]) == 1
    assert "-o" in capsys.readouterr().err


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(-1, 6), max_size=12), st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7))))
def test_ranks_are_named_one_by_one_or_from_to(ranks: list[int], named: list[tuple[int, int]]) -> None:
    wanted = {rank for a, b in named for rank in range(a, b + 1)}
    text = ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in named if a <= b)
    if text and wanted <= set(ranks):
        assert of_ranks(ranks, text) == [i for i, rank in enumerate(ranks) if rank in wanted]
    else:
        with pytest.raises(StoreError, match="no rank" if text else "no list of ranks"):
            of_ranks(ranks, text)
