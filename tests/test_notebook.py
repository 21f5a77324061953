"""The Python interface: the numbers of the commands, tables with units, figures, SQL; and its notebooks."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import desktop.phasewright as pw
from desktop import cli, resources
from desktop.core.frames import TABLES
from desktop.data.project_file import write
from desktop.errors import DesktopError
from desktop.workbench.model import PhaseSettings, Workspace
from desktop.workbench.run_comparison import plain_run

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((resources.folder() / "docs" / "notebooks").glob("*.ipynb"))
PAGE = (resources.folder() / "docs" / "python.md").read_text(encoding="utf-8")
WITH_SQL = pytest.mark.skipif(
    importlib.util.find_spec("duckdb") is None, reason="DuckDB, an extra, is not installed"
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pw.Run]:
    """A bundled trace, imported into a cache of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        with pw.open(pw.samples()["lu_8_picl"]) as opened:
            yield opened


def test_importing_it_loads_nothing_heavy() -> None:
    heavy = ("pandas", "scipy", "PySide6", "numpy", "numba", "h5py")
    code = f"import sys, desktop.phasewright; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_users_import_is_this_module() -> None:
    """`import phasewright`, as the build puts it at the top level, also of an editable install."""
    done = subprocess.run(
        [sys.executable, "-c", "import phasewright as pw; print(pw.open.__module__, pw.__version__)"],
        capture_output=True, text=True, check=True, cwd=Path.home(),
    )  # fmt: skip
    assert done.stdout.split() == ["desktop.notebook", pw.__version__]


def test_tables_are_those_of_the_commands(run: pw.Run, capsys: pytest.CaptureFixture[str]) -> None:
    def said(*words: str) -> Any:
        assert cli.run([words[0], str(run.path), *words[1:], "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    told, phases = said("phases", "-n", "3"), run.phases(3)
    assert phases.breaks == told["breaks_s"]
    assert list(phases.names) == [phase["name"] for phase in told["phases"]]
    assert phases.to_frame()["work"].tolist() == [phase["work_s"] for phase in told["phases"]]
    ranges = said("stats", "-n", "3")["ranges"]
    table = run.statistics("phase", n=3).to_frame()
    assert table["range"].tolist() == [one["name"] for one in ranges]
    assert table["load_balance"].tolist() == [one["load_balance"] for one in ranges]
    causes = said("explain", "-n", "3")
    assert run.explain(3).sentence == causes["paragraph"]
    whole = run.explain(3).to_frame().query("phase == 0")
    assert whole["lost"].tolist() == [cause["lost_s"] for cause in causes["causes"]]


def test_every_table_is_as_declared(run: pw.Run) -> None:
    tables = {
        "curve": run.curve(), "statistics": run.statistics(), "accounts": run.accounts("phase"),
        "profile": run.regions(), "message list": run.messages(), "events": run.events(),
        "causes": run.explain(),
    }  # fmt: skip
    for name, result in tables.items():
        found = result.to_frame()
        assert list(found.columns) == [one.name for one in TABLES[name]]
        assert found.attrs["units"] == {one.name: one.unit for one in TABLES[name]}
        assert len(found) > 0
        assert "<table" in result._repr_html_()


def test_messages_events_and_accounts_add_up(run: pw.Run) -> None:
    totals = run.info()["totals"]
    events = run.events().to_frame()
    assert (events["kind"] == "enter").sum() == (events["kind"] == "leave").sum()
    assert len(run.messages().to_frame()) == totals["messages_received"]
    inside = run.events(0.01, 0.02).to_frame()["time_s"]
    assert len(inside) == ((events["time_s"] >= 0.01) & (events["time_s"] <= 0.02)).sum()
    shares = run.accounts("phase", n=3).to_frame().groupby("range")["share"].sum()
    assert shares.tolist() == pytest.approx([1.0] * 4)
    steps = run.curve().to_frame()
    area = (steps["level"] * (steps["end_s"] - steps["start_s"])).sum()
    assert area == pytest.approx(run.info()["utilization"]["integral_s"])


def test_figures_are_drawn_and_written(run: pw.Run, tmp_path: Path) -> None:
    figure = run.plot(n=3, size=(120, 60))
    drawn = ElementTree.fromstring(figure._repr_svg_())
    assert drawn.tag.endswith("svg")
    assert drawn.attrib["viewBox"] == "0 0 120 60"
    for name, start in (("a.svg", b"<?xml"), ("a.pdf", b"%PDF"), ("a.png", b"\x89PNG")):
        figure.save(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)
    with pytest.raises(ValueError, match=r"ends in \.svg"):
        figure.save(tmp_path / "a.doc")
    with pytest.raises(ValueError, match="there is no figure 'pie'"):
        run.plot("pie")
    bars = run.timeline(0.01, 0.02).to_frame()
    assert bars["start_s"].min() == pytest.approx(0.01, abs=1e-4)
    assert bars["end_s"].max() == pytest.approx(0.02, abs=1e-4)


def test_figures_need_no_application_and_no_display(tmp_path: Path) -> None:
    (tmp_path / "run.csv").write_text("0,4\n2,1\n5,0\n")
    code = (
        "import desktop.phasewright as pw\n"
        f"svg = pw.open({str(tmp_path / 'run.csv')!r}).plot(n=2).svg()\n"
        "assert svg.startswith('<svg')\n"
    )
    hidden = {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"}
    plain = {key: value for key, value in os.environ.items() if key not in hidden}
    cache = {"XDG_CACHE_HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=plain | cache)


def test_a_project_says_what_is_asked_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    trace, project = tmp_path / "run.csv", tmp_path / "kept.phasewright"
    trace.write_text("0,8\n4,2\n10,6\n15,0\n")
    write(project, Workspace((plain_run(trace, PhaseSettings("constant", 2)),)))
    with pw.open(project) as run:
        assert (run.phases().n, run.phases().fit.model) == (2, "constant")
        assert run.phases(3).breaks == [0, 4, 10, 15]
        for n, model, said in (
            (0, None, "1 phase or more"),
            (1, "budget", "2 parameters"),
            (2, "x", "model"),
        ):
            with pytest.raises(ValueError, match=said):
                run.phases(n, model)
        with pytest.raises(ValueError, match="must be 'run' or 'phase'"):
            run.statistics("week")  # type: ignore[arg-type]  # that is what is tried
        assert run.messages().to_frame().empty and run.explain().sentence == ""
        with pytest.raises(ValueError, match="no figure 'timeline'"):
            run.timeline()
    with pytest.raises(DesktopError, match="does not exist"):
        pw.open(tmp_path / "nothing.otf2")


@WITH_SQL
def test_the_five_questions_of_the_page_have_answers(run: pw.Run) -> None:
    questions = re.findall(r"```sql\n(.*?)```", PAGE, re.S)
    assert len(questions) == 5
    regions, pairs, sent, _calls, quiet = (run.sql(question, n=3) for question in questions)
    profile = run.regions().to_frame().query("calls > 0")
    assert regions["exclusive"].tolist() == profile["exclusive"].nlargest(5).tolist()
    messages = run.messages().to_frame()
    assert pairs["bytes"][0] == messages.groupby(["sender", "receiver"])["bytes"].sum().max()
    assert sent["messages"].sum() == len(messages)
    steps = run.curve().to_frame().query("level < 4")
    assert quiet["seconds"][0] == pytest.approx((steps["end_s"] - steps["start_s"]).sum())
    longest = run.sql(questions[3].replace("MPI_Recv", profile["region"].iloc[0]))
    assert longest["lasts_s"].is_monotonic_decreasing and longest["lasts_s"][0] > 0


@WITH_SQL
def test_sql_reads_no_files(run: pw.Run, tmp_path: Path) -> None:
    import duckdb

    (tmp_path / "a.csv").write_text("a\n1\n")
    with pytest.raises(duckdb.PermissionException):
        run.sql(f"select * from read_csv('{tmp_path / 'a.csv'}')")


def test_all_that_the_page_names_is_there_with_its_words() -> None:
    for name in re.findall(r"`run\.(\w+)\(", PAGE):
        assert getattr(pw.Run, name).__doc__
    for name in re.findall(r"pw\.(\w+)\(", PAGE):
        assert name in pw.__all__
    for name in pw.__all__:
        assert getattr(pw, name).__doc__


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_show_what_they_keep(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run anew, cell by cell, they show the same kinds of things where they did (packaging/notebooks.py keeps
    what they show)."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, "phasewright", pw)
    kept = json.loads(path.read_text(encoding="utf-8"))
    if "sql(" in json.dumps(kept):
        pytest.importorskip("duckdb", reason="DuckDB, an extra, is not installed")
    spec = importlib.util.spec_from_file_location("notebooks", ROOT / "packaging" / "notebooks.py")
    assert spec is not None and spec.loader is not None
    runner = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(runner)
    again = runner.ran(kept, path.name)
    for before, after in zip(kept["cells"], again["cells"], strict=True):
        told = [
            [(bool(one.get("text")), sorted(one.get("data", ()))) for one in cell.get("outputs", ())]
            for cell in (before, after)
        ]
        assert told[0] == told[1]
    kinds = [
        kind for cell in kept["cells"] for one in cell.get("outputs", ()) for kind in one.get("data", ())
    ]
    assert kinds.count("text/html") >= 3


def test_notebooks_hold_nothing_of_a_machine() -> None:
    assert len(NOTEBOOKS) == 2
    for path in NOTEBOOKS:
        text = path.read_text(encoding="utf-8")
        assert len(text) < 150_000
        assert not re.search(r"/(home|root|work|tmp|Users)/", text)
