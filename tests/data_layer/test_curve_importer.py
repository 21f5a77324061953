"""Two columns of numbers in their many spellings, and a sentence with the line for every wrong one."""

from __future__ import annotations

import gzip
import random
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.data import lines
from desktop.data.importers import curve, detect
from desktop.data.opening import open_trace
from desktop.data.utilization import build
from desktop.errors import TraceFormatError
from desktop.progress import Cancelled, Progress


def read(path: Path) -> tuple[list[float], list[float]]:
    blocks = list(curve.read_curve(path))
    time = np.concatenate([block[0] for block in blocks]).tolist()
    return time, np.concatenate([block[1] for block in blocks]).tolist()


ROWS = ([0.0, 0.5, 2.0], [1.0, 3.5, 0.0])
SPELLINGS = {
    "commas": "0,1\n0.5,3.5\n2,0\n",
    "spaces": "  0   1\n0.5\t3.5 \n2 0",
    "semicolons": "0; 1\n.5; 3.5\n2.; 0\n",
    "column names": "time,processors\n0,1\n0.5,3.5\n2,0\n",
    "comments": "# made by hand\n\n0 1 # start\n5e-1 3.5\n# nearly\n2 +0\n\n",
    "comment, then names": "# a\n\nt level\n0 1\n0.5 3.5\n2 0\n",
    "windows": "\ufefftime,level\r\n0,1\r\n0.5,3.5\r\n2,0\r\n",
    "old mac": "0 1\r0.5 3.5\r2 0\r",
}


@pytest.mark.parametrize("text", SPELLINGS.values(), ids=SPELLINGS.keys())
def test_spellings(tmp_path: Path, text: str) -> None:
    path = tmp_path / "curve"
    path.write_bytes(text.encode())
    assert detect(path).id == "curve"
    assert read(path) == ROWS


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("0 1\n", "has only one row, a curve needs at least two"),
        ("t,n\n", "no row of numbers"),
        ("0 1\n1 2\n1 3\n", "1.0 does not come after 1.0, line 3"),
        ("0 1\n1 2\n\n# x\n0.5 3\n", "0.5 does not come after 1.0, line 5"),
        ("0 1\n1 two\n", "the level 'two' is not a number, line 2"),
        ("0 1\nx 2\n", "the time 'x' is not a number, line 2"),
        ("0 1\n1_0 2\n", "the time '1_0' is not a number, line 2"),
        ("0 1\n1 nan\n", "the level 'nan' is not a finite number, line 2"),
        ("0 1\ninf 1\n", "the time 'inf' is not a finite number, line 2"),
        ("0 1\n1 -2\n2 0\n", "the level -2.0 is negative, line 2"),
        ("0 1\n1\n", "has 1 column instead of 2, line 2"),
        ("0 1 2\n1 2 3\n", "has 3 columns instead of 2, line 1"),
        ("t n extra\n0 1\n1 2\n", "names 3 columns instead of 2, line 1"),
        ("t n\nt n\n0 1\n1 2\n", "the time 't' is not a number, line 2"),
        ("0 1\n1 " + "9" * 70_000, "a line that is too long, line 2"),
    ],
)
def test_malformed(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "curve.csv"
    path.write_text(text)
    with pytest.raises(TraceFormatError) as caught:
        read(path)
    assert says in str(caught.value) and str(path) in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"\0\1\2\3", b"hello world\nthis is text\n", b"<xml>\n</xml>\n", b"\xff\xfe0\0"]
)
def test_other_content_is_no_curve(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    assert not curve.detect(path, content)
    with pytest.raises(TraceFormatError, match="no format that can be imported"):
        detect(path)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.floats(-1e12, 1e12), min_size=2, max_size=40, unique=True).map(sorted),
    st.data(),
    st.sampled_from([3, 17, 1 << 21]),
)
def test_blocks_do_not_show(
    tmp_path_factory: pytest.TempPathFactory, times: list[float], data: st.DataObject, size: int
) -> None:
    """Every number comes back exactly, wherever the file is cut into blocks; so does the line of an error."""
    levels = data.draw(st.lists(st.floats(0, 1e6), min_size=len(times), max_size=len(times)))
    path = tmp_path_factory.mktemp("curve") / "curve.csv"
    written = ["# time, level"] + [f"{t!r},{h!r}" for t, h in zip(times, levels, strict=True)]
    path.write_text("\n".join(written))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK", size)
        assert read(path) == (times, levels)
        bad = data.draw(st.integers(1, len(times)))
        written.insert(bad + 1, "oops,1")
        path.write_text("\n".join(written))
        with pytest.raises(TraceFormatError, match=f"'oops' is not a number, line {bad + 2},"):
            read(path)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.one_of(
            st.floats(allow_nan=False, allow_infinity=False, min_value=0).map(repr),
            st.from_regex(r"\A[0-9]{0,20}\.?[0-9]{1,22}([eE][+-]?[0-9]{1,2})?\Z"),
            st.tuples(st.integers(1 << 53, 10**18), st.integers(-22, 22)).map(lambda x: f"{x[0]}e{x[1]}"),
            st.integers(1 << 52, (1 << 53) - 1).map(lambda x: f"{2 * x + 1}"),  # halves,
        ),
        min_size=1,
        max_size=60,
    )
)
def test_every_number_is_rounded_as_python_rounds_it(
    tmp_path_factory: pytest.TempPathFactory, levels: list[str]
) -> None:
    path = tmp_path_factory.getbasetemp() / "numbers"
    path.write_text("".join(f"{k} {text}\n" for k, text in enumerate(levels)) + f"{len(levels)} 0\n")
    assert read(path)[1] == [*map(float, levels), 0.0]


def test_a_packed_curve_is_a_curve(tmp_path: Path) -> None:
    path = tmp_path / "curve.csv.gz"
    path.write_bytes(gzip.compress(SPELLINGS["column names"].encode()))
    assert detect(path).id == "curve"
    assert read(path) == ROWS


def test_any_damage_is_a_curve_or_a_sentence(tmp_path: Path) -> None:
    """Cut at many places, bytes flipped, lines swapped: what is read rises, the rest is a sentence."""
    luck = random.Random(3)
    whole = "".join(f"{k * 0.25:.6f},{k * 7 % 64}\n" for k in range(400)).encode()
    path = tmp_path / "curve.csv"
    outcomes = set()
    for attempt in range(300):
        broken = bytearray(whole)
        if attempt % 3 == 0:
            del broken[luck.randrange(len(broken)) :]
        elif attempt % 3 == 1:
            for _ in range(luck.randrange(1, 4)):
                broken[luck.randrange(len(broken))] = luck.choice(b"0123456789 -.,\n#ex\0\xff")
        else:
            rows = bytes(broken).splitlines(keepends=True)
            i, j = luck.randrange(len(rows)), luck.randrange(len(rows))
            rows[i], rows[j] = rows[j], rows[i]
            broken = bytearray(b"".join(rows))
        path.write_bytes(broken)
        try:
            time, level = read(path)
        except TraceFormatError as error:
            outcomes.add("sentence")
            assert str(path) in str(error)
        else:
            outcomes.add("curve")
            assert len(time) == len(level) > 1
            assert time == sorted(set(time))
            assert min(level) >= 0
    assert outcomes == {"sentence", "curve"}


def test_memory_does_not_grow_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "BLOCK", 1 << 16)
    rows = "".join(f"{k}.5,{k % 64}\n" for k in range(400_000))
    path = tmp_path / "curve.csv"
    peaks = []
    for size in (len(rows) // 4, len(rows)):
        path.write_text(rows[:size][: rows[:size].rfind("\n") + 1])
        for _ in curve.read_curve(path):  # compiles
            pass
        tracemalloc.start()
        for _ in curve.read_curve(path):
            pass
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0]


def test_units_of_time(tmp_path: Path) -> None:
    path = tmp_path / "curve.csv"
    path.write_text("1000 1\n1500 4\n3000 2\n3500 0\n")
    for unit, in_second in (("s", 1), ("ms", 1e3), ("us", 1e6), ("ns", 1e9)):
        with open_trace(path, output=tmp_path / f"{unit}.h5", time_unit=unit) as store:
            found = build(store).curve()
            assert found.edges.tolist() == [1000, 1500, 3000, 3500]
            assert found.level.tolist() == [1, 4, 2]
            assert (found.capacity, found.duration) == (4, pytest.approx(2500 / in_second))


def test_cancelling_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "curve.csv"
    path.write_text("0 1\n1 2\n")
    progress = Progress()
    progress.cancel()
    with pytest.raises(Cancelled):
        open_trace(path, progress, output=tmp_path / "out.h5")
    assert list(tmp_path.iterdir()) == [path]
