"""No two sentences on the screen contradict each other, nor the window and the command line."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from desktop import cli, resources
from desktop.core.phases import AS_SUGGESTED
from desktop.ui.frame import Frame
from desktop.ui.settings import Settings
from desktop.ui.tables import FrameView
from desktop.ui.trace_page import TracePage
from tests.programs.catalogue import DEVELOPMENT
from tests.programs.later import LATER
from tests.programs.phased.known import DATA as RECORDED
from tests.programs.phased.known import taken
from tests.programs.simulated import simulate, write
from tests.ui.agreement import Said, cells, disagreements, figures_of, scale_of

DATA = Path(__file__).parent.parent / "data"
SAMPLES = [one.path for one in resources.samples()]
OTF2 = ("ezt_farm_8_dilated", "ezt_psort_8_dilated", "ezt_pthread_5", "ezt_wave1d_4", "public_scorep_ember_4")
FILES = [
    *SAMPLES,
    "otf1/jacobi2d_9_short_zlib9.tar.xz",
    *(f"otf2/{name}.tar.gz" for name in (*OTF2, "damaged_a_evt_truncated_half")),
    "paraver/farm_6.prv",
    *(f"picl/v1-{name}.trf" for name in ("farm4-flush", "fft4-bufferfull")),
    *(f"picl/v2-ncptl-{name}.trf" for name in ("butterfly8", "pipeline6", "reduce6-deadlock")),
    *(f"recorded {name}" for name in ("multigrid_16", "pipeline_5", "ring_6")),
    *(f"simulated {name}" for name in ("farm", "refinement", "refilled")),
]
#: Those that are looked at with other phases as well.
SETTINGS = {str(SAMPLES[0]), "otf2/ezt_wave1d_4.tar.gz", "simulated farm"}


@pytest.fixture
def opened(
    qtbot: QtBot, own_places: None, settings: Settings, no_thread_left: None, tmp_path: Path
) -> Iterator[Callable[[str], TracePage]]:
    """A page in a window with a trace in it."""
    page = Frame(settings).trace
    qtbot.addWidget(page.frame)
    page.frame.resize(1920, 1080)
    page.frame.show()

    def made(name: str) -> TracePage:
        page.open_path(place(name, tmp_path))
        settle(qtbot, page)
        problem = page.workbench.snapshot.problem
        if problem is not None and "wheel" in problem.sentence.lower():
            pytest.skip("the OTF2 library has no wheel for this Python")
        assert page.workbench.snapshot.run is not None, problem
        return page

    yield made
    page.frame.close_unasked()


def place(name: str, folder: Path) -> Path:
    """Where a trace is, which is made if need be."""
    kind, _, rest = name.partition(" ")
    if kind == "recorded":
        return taken(RECORDED / f"{rest}.tar.xz", folder)[0]
    if kind == "simulated":
        program, ranks = (DEVELOPMENT | LATER)[rest]
        return write(simulate(program, ranks, 0.1, 3, rest), folder / f"{rest}.h5")
    return DATA / name  # as it is, if absolute


def settle(qtbot: QtBot, page: TracePage) -> None:
    """Until nothing is computed any more, and every panel has been told."""
    for _ in range(2):
        qtbot.waitUntil(lambda: not page.busy, timeout=120_000)
        qtbot.wait(5)


@pytest.mark.parametrize("name", FILES, ids=lambda name: re.split("[/ ]", str(name))[-1])
def test_no_two_sentences_contradict(qtbot: QtBot, opened: Callable[[str], TracePage], name: str) -> None:
    """Of the first picture, of more phases than are suggested, of the curve alone, of a budget."""
    page = opened(str(name))
    bench, wrong = page.workbench, {}
    states: dict[str, Callable[[], object]] = {
        "first": lambda: None,
        "two more": lambda: bench.set_n(bench.snapshot.project.phases.n + 2),
        "the curve alone": lambda: bench.set_pure(True),
        "a budget": lambda: (bench.set_pure(False), bench.set_model("budget"), bench.use_suggestion()),
    }
    for state, ask in states.items() if str(name) in SETTINGS else [("first", states["first"])]:
        ask()
        settle(qtbot, page)
        if found := disagreements(page, lambda: settle(qtbot, page)):
            wrong[state] = found
    assert not wrong


def test_what_contradicts_is_seen(
    qtbot: QtBot, opened: Callable[[str], TracePage], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each kind one sentence is made false, which alone is complained of."""
    page = opened(str(SAMPLES[0]))
    panel: Any = page.panel("phases")
    assert disagreements(page, lambda: settle(qtbot, page)) == []
    changes = {
        "fact_worst": ("phase 1", "phase 2"),
        "fact_sse": ("4", "5"),
        "fact_equal": ("14", "17"),
        "fact_epsilon": ("5.9", "4.9"),
        "fact_suggestion": ("2 of 2", "2 of 3"),
        "fact_second": ("n = 4", "n = 5"),
    }
    for figure, (old, new) in changes.items():
        label: Any = panel.findChild(QLabel, figure)
        said = label.full_text
        assert old in said
        label.say(said.replace(old, new, 1))
        assert disagreements(page, lambda: settle(qtbot, page)), figure
        label.say(said)
    told = panel.why.toPlainText()
    assert "37 % of the run" in told
    monkeypatch.setattr(panel.why, "toPlainText", lambda: told.replace("37 % of the run", "39 % of the run"))
    assert any("share of the run" in one for one in disagreements(page, lambda: settle(qtbot, page)))


@pytest.mark.parametrize(
    ("name", "model"),
    [
        (SAMPLES[0], "mixed"),
        ("recorded ring_6", "mixed"),
        ("simulated farm", "mixed"),
        (SAMPLES[0], "budget"),
    ],
    ids=str,
)
def test_the_command_line_says_what_the_window_says(
    qtbot: QtBot,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    opened: Callable[[str], TracePage],
    name: str,
    model: str,
) -> None:
    """`phases`, its sweep, `iterations` and `report`, against the labels and tables of the window."""
    page = opened(str(name))
    page.workbench.set_model(model)
    settle(qtbot, page)
    page.workbench.use_suggestion()
    settle(qtbot, page)
    file = str(next(iter(tmp_path.glob("*.h5")), None) or _source(str(name), tmp_path))

    def run(*words: str) -> str:
        assert cli.run([words[0], file, *words[1:]]) == 0
        return capsys.readouterr().out

    facts = figures_of(page.panel("phases"))
    table = cells(page.panel("table").findChild(FrameView))
    fit = json.loads(run("phases", "--model", model, "--json"))
    swept = json.loads(run("phases", "--model", model, "--max-n", "5", "--json"))
    n, why = re.fullmatch(r"n = (\d+): (.*)", facts["fact_suggestion"], re.DOTALL).groups()  # type: ignore[union-attr]
    assert (swept["suggested_n"], swept["reason"], fit["reason"]) == (int(n), why, why)
    second = swept["runner_up"]
    assert facts["fact_second"] == ("–" if second is None else f"n = {second['n']}: {second['reason']}")
    assert fit["n"] == len(table) and fit["note"] == AS_SUGGESTED in facts["fact_equal"]
    for row, phase in zip(table, fit["phases"], strict=True):
        assert row["Name"][0] == phase["name"]
        for title, key in (("Start", "start_s"), ("End", "end_s"), ("Error", "error"), ("Mean", "mean")):
            text, unit = row[title]
            assert Said(text, scale_of(unit) if title in ("Start", "End") else 1.0).agrees(phase[key]), title
    assert Said(facts["fact_epsilon"].partition(" ")[0]).agrees(fit["epsilon"])
    found = json.loads(run("iterations", "--json"))
    page.show_panel("iterations")
    settle(qtbot, page)
    said = page.panel("iterations").words.text()  # type: ignore[attr-defined]
    assert found["reason"] in said and (bool(found["levels"]) != ("No iterations were found" in said))
    if found["levels"]:
        assert said.startswith(f"{found['levels'][0]['count']} iterations")
    report = tmp_path / "report.html"
    run("report", "--model", model, "-o", str(report))
    text = html.unescape(re.sub(r"<[^>]+>", " ", re.sub(r"(?s)<svg.*?</svg>", "", report.read_text("utf-8"))))
    text = re.sub(r"\s+", " ", text)
    assert f", as many as are suggested: {why}." in text and f"{n} (suggested)" in text
    worst = re.match(r"phase (\d+)", facts["fact_worst"])[1]  # type: ignore[index]
    assert f"Phase {worst} has the largest error" in text
    assert "set by hand." not in text and "may lie from" not in text
    if model == "mixed":
        low, _, high = facts["fact_certificate"].removeprefix("from ").partition(" to ")
        bounds = re.search(r"lies between ([\d.e-]+) and ([\d.e-]+)\.", text)
        assert bounds is not None
        for stated, bound in zip((low, high or low), bounds.groups(), strict=True):
            assert Said(stated.partition(" ")[0]).agrees(float(bound)), text


def _source(name: str, folder: Path) -> Path:
    """The trace that `place` made or found."""
    return folder / name.removeprefix("recorded ") if name.startswith("recorded ") else place(name, folder)
