"""Archives open as the trace in them does, and whatever a stranger packed stays in its own folder."""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import os
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.data import archive, opening
from desktop.data.archive import is_archive, unpack
from desktop.data.atomic import WorkFolder
from desktop.data.info import info
from desktop.data.opening import open_trace
from desktop.errors import TraceFormatError
from desktop.progress import Cancelled, Progress
from desktop.resources import samples

PICL = next(sample.path for sample in samples() if sample.path.suffix == ".trf")
CURVE = b"0 1\n1 4\n2.5 0\n3 0\n"
TARS = {".tar": "w", ".tar.gz": "w:gz", ".tgz": "w:gz", ".tar.bz2": "w:bz2", ".tar.xz": "w:xz"}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setattr(opening, "user_cache_path", lambda *_, **__: folder)
    return folder


def pack(path: Path, files: dict[str, bytes]) -> Path:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, content in files.items():
                packed.writestr(name, content)
        return path
    with tarfile.open(path, TARS["".join(path.suffixes)]) as packed:  # type: ignore[call-overload]  # all are modes
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            packed.addfile(member, io.BytesIO(content))
    return path


def tar_of(path: Path, *members: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w") as packed:
        for member in members:
            packed.addfile(member, io.BytesIO(bytes(member.size)))
    return path


def facts_but_source(path: Path, **how: Path) -> dict[str, object]:
    with open_trace(path, **how) as store:
        facts = info(store)
    facts.pop("source")
    return facts


@pytest.mark.parametrize("ending", [*TARS, ".zip"])
def test_an_archive_opens_as_the_trace_in_it(tmp_path: Path, cache: Path, ending: str) -> None:
    packed = pack(
        tmp_path / f"run{ending}", {"run/README": b"of no meaning", f"run/{PICL.name}": PICL.read_bytes()}
    )
    assert is_archive(packed)
    with open_trace(packed) as store:
        first = store.path
        assert store.source.name == packed.name
        assert store.source.size == packed.stat().st_size
        assert store.source.sha256 == hashlib.sha256(packed.read_bytes()).hexdigest()
    assert facts_but_source(packed) == facts_but_source(PICL, output=tmp_path / "directly.h5")
    with open_trace(packed) as again:
        assert again.path == first, "imported twice"
    assert [path.name for path in (cache / "imports").iterdir()] == [first.name]


def test_a_folder_of_many_files_opens(tmp_path: Path) -> None:
    sample = next(sample.path for sample in samples() if sample.path.suffix == ".otf2")
    shutil.make_archive(str(tmp_path / "folder"), "xztar", sample.parent.parent, sample.parent.name)
    packed = tmp_path / "folder.tar.xz"
    assert facts_but_source(packed) == facts_but_source(sample, output=tmp_path / "directly.h5")


def test_an_archive_that_changed_is_imported_again(tmp_path: Path) -> None:
    packed = pack(tmp_path / "run.tar.gz", {"curve.csv": CURVE})
    assert facts_but_source(packed)["duration_s"] == 3
    pack(packed, {"curve.csv": CURVE.replace(b"3 0", b"4.5 0")})
    os.utime(packed, ns=(1, 1))
    assert facts_but_source(packed)["duration_s"] == 4.5


def test_a_time_unit_and_a_format_reach_into_the_archive(tmp_path: Path) -> None:
    packed = pack(tmp_path / "run.zip", {"a.csv": CURVE, PICL.name: PICL.read_bytes()})
    assert facts_but_source(packed)["format"] == "picl", "a curve beside a trace is a note"
    with open_trace(packed, format_id="curve", time_unit="ms") as store:
        assert info(store)["duration_s"] == pytest.approx(0.003)


def test_what_is_not_one_trace_is_said(tmp_path: Path) -> None:
    several = {f"{name}/{PICL.name}": PICL.read_bytes() for name in "ab"}
    with pytest.raises(
        TraceFormatError, match=rf"several traces \(a/{PICL.name}, b/{PICL.name}\), unpack it"
    ):
        open_trace(pack(tmp_path / "two.tar", several))
    with pytest.raises(TraceFormatError, match="without a trace"):
        open_trace(pack(tmp_path / "none.zip", {"letter.txt": b"Dear Ann"}))
    with pytest.raises(TraceFormatError, match=r"run\.tar/sub/curve\.csv: .*line 5") as caught:
        open_trace(pack(tmp_path / "run.tar", {"sub/curve.csv": CURVE + b"oops\n"}))
    assert "unpacked" not in str(caught.value)


def test_one_of_several_traces_is_opened_by_its_name(tmp_path: Path) -> None:
    packed = pack(tmp_path / "two.zip", {"a/run.csv": CURVE, "b/run.csv": CURVE.replace(b"3 0", b"4.5 0")})
    with pytest.raises(TraceFormatError) as caught:
        open_trace(packed)
    assert caught.value.choices == ("a/run.csv", "b/run.csv")
    digest = hashlib.sha256(packed.read_bytes()).hexdigest()
    for again in range(2):
        for name, seconds in zip(caught.value.choices, (3, 4.5), strict=True):
            with open_trace(packed, member=name) as store:
                assert info(store)["duration_s"] == seconds, again
                assert Path(store.source.path) == packed / name
                assert (store.source.name, store.source.sha256) == ("run.csv", digest)
    with pytest.raises(TraceFormatError, match=r"without a trace 'c/run.csv'"):
        open_trace(packed, member="c/run.csv")
    with pytest.raises(TraceFormatError, match="no archive"):
        open_trace(PICL, member="a/run.csv")


def test_a_store_of_one_trace_is_not_taken_for_another(tmp_path: Path) -> None:
    packed = pack(tmp_path / "two.tar", {"a.csv": CURVE, "b.csv": CURVE.replace(b"3 0", b"4.5 0")})
    output = tmp_path / "out.h5"
    open_trace(packed, member="a.csv", output=output).close()
    with open_trace(packed, member="b.csv", output=output) as store:
        assert info(store)["duration_s"] == 4.5


def test_a_packed_text_is_no_archive(tmp_path: Path) -> None:
    for name, content in {
        "t.gz": gzip.compress(CURVE),
        "t.xz": lzma.compress(CURVE),
        "t": CURVE,
        "e": b"",
    }.items():
        (tmp_path / name).write_bytes(content)
        assert not is_archive(tmp_path / name)
    assert not is_archive(tmp_path) and not is_archive(tmp_path / "nowhere")


def test_litter_of_macos_is_left_out(tmp_path: Path) -> None:
    files = {"._c.csv": CURVE, "__MACOSX/c.csv": CURVE, "c.csv": CURVE}
    for name in ("run.tar", "run.zip"):
        assert facts_but_source(pack(tmp_path / name, files))["duration_s"] == 3


# --- what must not be unpacked ---


def member(name: str, kind: bytes = tarfile.REGTYPE, **more: object) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type = kind
    for field, value in more.items():
        setattr(made, field, value)
    return made


def zip_of(path: Path, name: str, mode: int = stat.S_IFREG, flags: int = 0) -> Path:
    made = zipfile.ZipInfo(name)
    made.external_attr = (mode | 0o644) << 16
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr(made, b"content")
    if flags:
        content = bytearray(path.read_bytes())
        content[content.index(b"PK\x01\x02") + 8] |= flags
        path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (member("../out"), "out of its folder"),
        (member("a/../../out"), "out of its folder"),
        (member("/etc/out"), "out of its folder"),
        (member("C:\\out"), "out of its folder"),
        (member("c:out"), "out of its folder"),
        (member("l", tarfile.SYMTYPE, linkname="../out"), "a link"),
        (member("l", tarfile.LNKTYPE, linkname="a"), "a link"),
        (member("p", tarfile.FIFOTYPE), "a device"),
        (member("d", tarfile.CHRTYPE, devmajor=1, devminor=3), "a device"),
    ],
)
def test_tar_members_that_are_refused(tmp_path: Path, made: tarfile.TarInfo, said: str) -> None:
    refused(tmp_path, tar_of(tmp_path / "bad.tar", member("a", size=3), made), said)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (("../out",), "out of its folder"),
        (("/out",), "out of its folder"),
        (("l", stat.S_IFLNK), "a link"),
        (("p", stat.S_IFIFO), "a device"),
        (("c", stat.S_IFREG, 1), "an encrypted file"),
    ],
)
def test_zip_members_that_are_refused(tmp_path: Path, made: tuple[str, int, int], said: str) -> None:
    refused(tmp_path, zip_of(tmp_path / "bad.zip", *made), said)


def refused(tmp_path: Path, packed: Path, said: str) -> None:
    with pytest.raises(TraceFormatError, match=said):
        unpack(packed, empty(tmp_path), Progress())
    assert not list(tmp_path.rglob("out"))
    with pytest.raises(TraceFormatError, match=said):
        open_trace(packed)


def empty(tmp_path: Path) -> Path:
    folder = tmp_path / "folder"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


@pytest.mark.parametrize("ending", [".tar.gz", ".zip"])
@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"MEMBERS": 2}, "more than 2 files, the limit"),
        ({"UNPACKED": 1 << 10}, "GiB unpacked, the limit"),
        ({"RATIO": 20, "RATIO_FROM": 1 << 16}, "more than 20 times as large, the limit"),
    ],
)
def test_limits_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, limits: dict[str, int], said: str
) -> None:
    packed = pack(tmp_path / f"bomb{ending}", {f"{i}.csv": bytes(1 << 20) for i in range(3)})
    unpack(packed, empty(tmp_path), Progress())
    for name, value in limits.items():
        monkeypatch.setattr(archive, name, value)
    with pytest.raises(TraceFormatError, match=said):
        unpack(packed, empty(tmp_path), Progress())


def test_endless_headers_do_not_fill_the_memory(tmp_path: Path) -> None:
    long_name = tmp_path / "long.tar"
    tar_of(long_name, member("././@LongLink", tarfile.GNUTYPE_LONGNAME, size=8 << 20), member("a"))
    chain = tmp_path / "chain.tar"
    tar_of(chain, *[member("x", tarfile.XHDTYPE, size=0) for _ in range(3000)], member("a"))
    for packed in (long_name, chain):
        with pytest.raises(TraceFormatError, match="header"):
            unpack(packed, empty(tmp_path), Progress())


def test_a_full_disk_is_said_before_it_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive.shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 5, 5))
    with pytest.raises(TraceFormatError, match="has no room"):
        open_trace(pack(tmp_path / "run.tar", {"c.csv": CURVE}))


# --- damage ---

FILES = {"run/curve.csv": CURVE, "run/more.bin": bytes(range(256)) * 40, "run/empty": b""}


@settings(deadline=None, max_examples=120)
@given(
    ending=st.sampled_from([*TARS, ".zip"]),
    harm=st.sampled_from(["cut", "flip"]),
    at=st.floats(0, 1, exclude_max=True),
    bit=st.integers(0, 7),
)
def test_damage_is_one_sentence_or_harmless(
    tmp_path_factory: pytest.TempPathFactory, ending: str, harm: str, at: float, bit: int
) -> None:
    tmp_path = tmp_path_factory.mktemp("damage")
    packed = pack(tmp_path / f"run{ending}", FILES)
    content = bytearray(packed.read_bytes())
    if harm == "cut":
        del content[int(at * len(content)) :]
    else:
        content[int(at * len(content))] ^= 1 << bit
    packed.write_bytes(content)
    folder = empty(tmp_path)
    before = {packed, folder}
    try:
        unpack(packed, folder, Progress())
    except TraceFormatError as error:
        assert str(packed) in str(error) and "\n" not in str(error)
    assert set(tmp_path.iterdir()) == before, "written outside"
    for path in folder.rglob("*"):
        assert path.is_file() or path.is_dir()
    shutil.rmtree(tmp_path)


@pytest.mark.parametrize("ending", [*TARS, ".zip"])
def test_a_cut_archive_is_refused(tmp_path: Path, ending: str) -> None:
    packed = pack(tmp_path / f"run{ending}", FILES)
    whole = packed.read_bytes()
    packed.write_bytes(whole[: len(whole) // 2 if ending != ".tar" else 1200])
    with pytest.raises(TraceFormatError, match=r"cut or damaged|match no format"):
        open_trace(packed)


def test_a_damaged_header_is_not_taken_for_the_end(tmp_path: Path) -> None:
    packed = pack(tmp_path / "run.tar", FILES)
    content = bytearray(packed.read_bytes())
    content[1024 + 3] ^= 1  # the name in the second header
    packed.write_bytes(content)
    with pytest.raises(TraceFormatError, match="header"):
        unpack(packed, empty(tmp_path), Progress())


# --- nothing is left ---


class Stopper(Progress):
    def __init__(self, at: int) -> None:
        super().__init__()
        self.left = at

    def step(self, done: float, total: float, text: str = "") -> None:
        self.left -= 1
        if self.left == 0:
            self.cancel()
        super().step(done, total, text)


@pytest.mark.parametrize("at", [1, 2, 3, 4, 6])
def test_cancelled_while_unpacking_leaves_nothing(tmp_path: Path, cache: Path, at: int) -> None:
    packed = pack(tmp_path / "run.tar.gz", {"a": bytes(3 << 20), "c.csv": CURVE})
    with pytest.raises(Cancelled):
        open_trace(packed, Stopper(at))
    assert list((cache / "imports").iterdir()) == []


def test_progress_says_that_it_unpacks(tmp_path: Path) -> None:
    seen: list[tuple[float, str]] = []

    class Watch(Progress):
        def show(self, done: float, total: float, text: str) -> None:
            seen.append((done / total, text))

    open_trace(pack(tmp_path / "run.tar.gz", {"a": os.urandom(3 << 20), "c.csv": CURVE}), Watch()).close()
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert {text for _, text in seen} >= {"unpacking", "looking for traces"}


def test_a_work_folder_left_by_a_killed_process_goes(tmp_path: Path) -> None:
    target = tmp_path / "store.h5"
    read: Callable[[], list[Path]] = lambda: sorted(tmp_path.glob("*.work"))  # noqa: E731 - one line, used often
    (tmp_path / f"{target.name}.00000000.work").mkdir()
    left = tmp_path / f"{target.name}.11111111.work"
    (left / "deep").mkdir(parents=True)
    (left / "lock").touch()
    with WorkFolder(target) as mine:
        (mine / "content").touch()
        with WorkFolder(target) as other:
            assert read() == sorted([mine, other]), "one in use was taken for left over"
        assert read() == [mine]
    assert read() == []


def test_a_folder_with_one_trace_is_that_trace(tmp_path: Path) -> None:
    folder = tmp_path / "run 3" / "logs"
    folder.mkdir(parents=True)
    shutil.copy(PICL, folder)
    (folder.parent / "notes.txt").write_text("nodes were slow\n")
    (folder.parent / "numbers.csv").write_text("0,1\n1,2\n2,0\n")
    with open_trace(folder.parent) as inside, open_trace(folder / PICL.name) as named:
        assert inside.path == named.path and inside.source.name == PICL.name


def test_of_a_folder_with_several_traces_one_is_chosen(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for name in ("a", "b"):
        (runs / name).mkdir(parents=True)
        shutil.copy(PICL, runs / name)
    with pytest.raises(
        TraceFormatError, match=r"is a folder of several traces .*, open one of them"
    ) as refused:
        open_trace(runs)
    assert refused.value.choices == (f"a/{PICL.name}", f"b/{PICL.name}")
    with open_trace(runs, member=refused.value.choices[1]) as store:
        assert store.source.name == PICL.name
    with pytest.raises(TraceFormatError, match="is a folder without a trace 'c'"):
        open_trace(runs, member="c")


def test_a_folder_without_a_trace_says_so(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    (runs / "letter.txt").write_text("Dear all,\n")
    with pytest.raises(
        TraceFormatError, match="is a folder without a trace that can be imported, known are: "
    ):
        open_trace(runs)
