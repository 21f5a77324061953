"""What somebody means who names a folder, and several sources at once."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from desktop import cli
from desktop.data import opening
from desktop.data.archive import unpack
from desktop.data.opening import import_all, open_trace
from desktop.data.sources import DEPTH, expand, traces_in
from desktop.errors import StoreError, TraceFormatError
from desktop.progress import Progress
from desktop.resources import samples
from tests.data_layer.test_archive import CURVE, PICL, pack

OTF2 = next(sample.path for sample in samples() if sample.path.suffix == ".otf2")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # reaches other processes too
    return tmp_path / "cache"


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    """A folder of traces as people keep them."""
    folder = tmp_path / "shelf"
    shutil.copytree(OTF2.parent, folder / "a" / "run")
    shutil.copy(PICL, folder / "run.trf")
    (folder / "notes.md").write_text("0 1\n1 0\n")
    (folder / "curve.csv").write_bytes(CURVE)
    pack(folder / "packed.tar.gz", {"c.csv": CURVE})
    return folder


def test_a_folder_stands_for_the_traces_in_it(shelf: Path) -> None:
    found = expand([shelf], Progress())
    names = {name: path.relative_to(shelf).as_posix() for path, name in found.paths}
    assert names == {
        f"a-run-{OTF2.name}": f"a/run/{OTF2.name}",
        "run.trf": "run.trf",
        "curve.csv": "curve.csv",
        "packed.tar.gz": "packed.tar.gz",
    }
    strange = {path.name for path in found.strange}
    assert "notes.md" in strange and not strange & {"0.evt", "0.def", OTF2.with_suffix(".def").name}


def test_a_folder_that_is_one_trace_stays(shelf: Path) -> None:
    assert expand([shelf / "a" / "run"], Progress()).paths == [(shelf / "a" / "run", "run")]
    assert expand([shelf / "a"], Progress()).paths == [(shelf / "a" / "run" / OTF2.name, f"run-{OTF2.name}")]


def test_a_recorded_run_is_one_trace_wherever_it_lies(tmp_path: Path) -> None:
    packed = Path(__file__).parents[1] / "data" / "causes" / "bandwidth.tar.xz"
    with open_trace(packed) as store:
        assert [place.rank for place in store.locations] == [0, 1, 2, 3]
    unpack(packed, tmp_path, Progress())
    shutil.copytree(tmp_path / "bandwidth", tmp_path / "again" / "bandwidth")
    found = expand([tmp_path], Progress())
    assert [name for _, name in found.paths] == ["again-bandwidth", "bandwidth"] and not found.strange


def test_an_error_of_no_file_names_the_trace_and_not_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise StoreError("a process died")

    monkeypatch.setattr("desktop.data.opening._import", die)
    shutil.copy(PICL, tmp_path / "run.trf")
    with pytest.raises(StoreError) as error:
        open_trace(tmp_path)
    assert error.value.file == str(tmp_path / "run.trf")


def test_equal_names_are_told_apart(shelf: Path) -> None:
    paths = [shelf / "run.trf", shelf, shelf / "curve.csv"]
    names = [name for _, name in expand(paths, Progress()).paths]
    assert len(set(names)) == len(names) == 6


def test_traces_are_not_looked_for_without_end(tmp_path: Path) -> None:
    deep = tmp_path
    for level in range(DEPTH + 2):
        deep = deep / str(level)
        deep.mkdir()
        shutil.copy(PICL, deep / f"{level}.trf")
    found = traces_in(tmp_path, Progress())
    assert [path.name for path, _ in found.traces] == [f"{level}.trf" for level in range(DEPTH)]


def test_a_folder_with_too_many_files_is_refused(
    shelf: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("desktop.data.sources.MOST_FILES", 2)
    for command in ("import", "stats", "info"):
        assert cli.run([command, str(shelf)]) == 1
        assert (
            capsys.readouterr()
            .err.strip()
            .endswith(f"{shelf}: holds more than 2 files, name the trace in it")
        )


@pytest.mark.parametrize("side_by_side", [0, 1 << 60])
def test_one_that_fails_does_not_stop_the_others(
    shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, side_by_side: int
) -> None:
    monkeypatch.setattr(opening, "SIDE_BY_SIDE", side_by_side)
    bad = tmp_path / "bad.csv"
    bad.write_text("0 1\n1 oops\n")
    sources = [(bad, None), (shelf / "run.trf", tmp_path / "picl.h5"), (tmp_path / "nowhere", None)]
    first, second, third = import_all([*sources, (shelf / "curve.csv", None)], format_id=None)[:3]
    assert isinstance(first, TraceFormatError) and "line 2" in str(first)
    assert isinstance(third, TraceFormatError) and "does not exist" in str(third)
    assert second == tmp_path / "picl.h5"
    with open_trace(second) as mine, open_trace(PICL) as theirs:
        assert mine.tallies == theirs.tallies and mine.totals == theirs.totals


def test_one_whose_process_dies_does_not_stop_the_others(
    shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "SIDE_BY_SIDE", 0)
    monkeypatch.setattr(opening, "_import_one", die_of_curves)
    dead, alive = import_all([(shelf / "curve.csv", None), (shelf / "run.trf", None)])
    assert isinstance(alive, Path) and alive.exists()
    assert f"{shelf / 'curve.csv'}: the process that read it died, twice" in str(dead)


def die_of_curves(path: Path, *rest: object) -> Path:
    if path.name == "curve.csv":
        os._exit(11)
    with open_trace(path) as store:
        return store.path


# --- the same words in a shell ---


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = cli.run([str(word) for word in words])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_import_of_a_folder(capsys: pytest.CaptureFixture[str], shelf: Path, tmp_path: Path) -> None:
    output = tmp_path / "stores"
    output.mkdir()
    code, out, err = run(capsys, "import", shelf, "-o", output)
    assert code == 0 and out.count("\n") == 4
    assert "not recognised as traces" in err and str(shelf / "notes.md") in err
    assert sorted(path.name for path in output.iterdir()) == sorted(
        ["curve.csv.h5", "packed.tar.gz.h5", "run.trf.h5", f"a-run-{OTF2.name}.h5"]
    )
    code, out, err = run(capsys, "import", shelf, "-o", tmp_path / "one.h5")
    assert code == 1 and "several sources need a folder" in err


def test_exit_codes_of_several(capsys: pytest.CaptureFixture[str], shelf: Path, tmp_path: Path) -> None:
    for name in ("bad.csv", "worse.csv"):
        (tmp_path / name).write_text("0 1\n1 oops\n")
    good, bad, worse = shelf / "run.trf", tmp_path / "bad.csv", tmp_path / "worse.csv"
    assert run(capsys, "import", good, shelf / "curve.csv")[0] == 0
    code, out, err = run(capsys, "import", bad, good, "--json")
    found = json.loads(out)
    assert code == 3 and "line 2" in err and found["not_recognised"] == []
    assert "line 2" in found["imports"][0]["error"] and found["imports"][1]["format"] == "picl"
    assert run(capsys, "import", bad, worse)[0] == 1
    (tmp_path / "empty").mkdir()
    code, _, err = run(capsys, "import", tmp_path / "empty")
    assert code == 1 and "a folder without a trace" in err
