"""What runs are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from desktop.data.naming import file_stem, named_by, run_name
from desktop.resources import samples


@pytest.mark.parametrize(
    ("trace", "member", "name", "stem"),
    [
        ("/runs/lu8.trf", None, "lu8.trf", "lu8"),
        ("/runs/lu8.prv.gz", None, "lu8.prv.gz", "lu8"),
        ("/runs/cholesky_16/traces.otf2", None, "cholesky_16", "cholesky_16"),
        ("/runs/cholesky_16", None, "cholesky_16", "cholesky_16"),
        ("/runs/n.16/EZTRACE_log.otf2", None, "n.16", "n.16"),
        ("/runs/lu/traces/trace.prv.bz2", None, "lu", "lu"),
        ("/runs/all.tar.gz", None, "all.tar.gz", "all"),
        ("/runs/all.tar.gz", "b/traces.otf2", "b", "b"),
        ("/runs/all.tar.gz", "traces.otf2", "all.tar.gz", "all.tar.gz"),
        ("/traces/trace/traces.otf2", None, "traces.otf2", "traces"),
    ],
)
def test_a_run_is_called_after_what_tells_it_from_others(
    trace: str, member: str | None, name: str, stem: str
) -> None:
    assert run_name(Path(trace), member) == name
    assert file_stem(Path(trace), member) == stem


def test_a_file_where_the_program_was_started_is_called_after_that_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "jacobi"
    home.mkdir()
    monkeypatch.chdir(home)
    assert run_name(Path("traces.otf2")) == "jacobi" and named_by(Path("traces.otf2")) == home


def test_bundled_traces_have_names_of_their_own() -> None:
    names = [run_name(sample.path) for sample in samples()]
    assert "traces.otf2" not in names and len(set(names)) == len(names)
